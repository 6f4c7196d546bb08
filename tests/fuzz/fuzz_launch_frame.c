/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an agent and a launcher send each other, one frame behind the other. An
 * assignment that is accepted is written in no other way; of other frames every
 * kind of field is read, whatever they hold.
 */
#include "fuzz/fuzz.h"
#include "launch/assignment.h"

static void try_assignment(const struct rueda_frame *frame)
{
    struct rueda_packer packer;
    struct rueda_assignment assignment;

    if (!rueda_assignment_unpack(frame, &assignment))
        return;
    must(assignment.count > 0 &&
         assignment.first_rank + assignment.count <= assignment.size);
    must(assignment.command.list[assignment.command.count] == NULL);
    rueda_packer_begin(&packer, RUEDA_FRAME_START);
    rueda_assignment_pack(&assignment, &packer);
    rueda_packer_end(&packer);
    must(!packer.is_short && packer.len == frame->len + RUEDA_FRAME_HEAD);
    must(memcmp(packer.bytes + RUEDA_FRAME_HEAD, frame->bytes, frame->len) ==
         0);
    rueda_packer_fini(&packer);
    rueda_assignment_fini(&assignment);
}

static void try_fields(const struct rueda_frame *frame)
{
    struct rueda_unpacker unpacker;
    struct rueda_strings list = {.list = NULL};
    char text[16];
    size_t len;
    const unsigned char *bytes;

    rueda_unpacker_begin(&unpacker, frame);
    rueda_frame_unpack_number(&unpacker);
    rueda_frame_unpack_text(&unpacker, text, sizeof(text));
    must(strlen(text) < sizeof(text));
    bytes = rueda_frame_unpack_bytes(&unpacker, &len);
    must(len == 0 || bytes + len <= frame->bytes + frame->len);
    rueda_frame_unpack_list(&unpacker, &list);
    must(list.count == 0 || list.list[list.count] == NULL);
    rueda_strings_fini(&list);
    must(!rueda_unpacker_is_done(&unpacker) || unpacker.left == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rueda_frame frame;
    size_t bytes = 0;

    while (rueda_frame_next(data, size, &frame, &bytes) == RUEDA_OK) {
        must(bytes <= size && frame.len + RUEDA_FRAME_HEAD == bytes);
        if (frame.kind == RUEDA_FRAME_START)
            try_assignment(&frame);
        try_fields(&frame);
        data += bytes;
        size -= bytes;
    }
    return 0;
}
