/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/assignment.h"

#include <stdlib.h>
#include <string.h>

#define MOST_RANKS   65536
#define MOST_COLUMNS 65535 /* and rows */

/* Write the assignment in the order in which unpack() reads it. */
void rueda_assignment_pack(const struct rueda_assignment *assignment,
                           struct rueda_packer *packer)
{
    rueda_frame_pack_number(packer, (uint32_t)assignment->size);
    rueda_frame_pack_number(packer, (uint32_t)assignment->first_rank);
    rueda_frame_pack_number(packer, (uint32_t)assignment->count);
    rueda_frame_pack_number(packer, assignment->is_elastic);
    rueda_frame_pack_number(packer, assignment->has_input);
    rueda_frame_pack_number(packer, (uint32_t)assignment->terminal);
    rueda_frame_pack_number(packer, (uint32_t)assignment->columns);
    rueda_frame_pack_number(packer, (uint32_t)assignment->rows);
    rueda_frame_pack_number(packer, assignment->bind);
    rueda_frame_pack_number(packer, (uint32_t)assignment->grace_ms);
    rueda_frame_pack_text(packer, assignment->folder);
    rueda_frame_pack_list(packer, &assignment->command);
    rueda_frame_pack_list(packer, &assignment->stores);
    rueda_frame_pack_list(packer, &assignment->variables);
    for (int i = 0; i < assignment->count; i++)
        rueda_frame_pack_list(packer, &assignment->ranks[i]);
}

/* Do the numbers fit together? They come over a connection, so each is checked
 * before it is used. */
static bool is_sound(const struct rueda_assignment *assignment)
{
    if (assignment->size < 1 || assignment->size > MOST_RANKS ||
        assignment->first_rank < 0 || assignment->count < 1 ||
        assignment->count > assignment->size ||
        assignment->first_rank > assignment->size - assignment->count ||
        assignment->terminal < 0 || assignment->terminal > assignment->count ||
        assignment->columns < 0 || assignment->columns > MOST_COLUMNS ||
        assignment->rows < 0 || assignment->rows > MOST_COLUMNS ||
        assignment->bind > RUEDA_BIND_CORE || assignment->grace_ms < 0 ||
        assignment->folder[0] != '/' || assignment->command.count < 1)
        return false;
    for (int i = 0; i < assignment->stores.count; i++)
        if (strchr(assignment->stores.list[i], ':') == NULL)
            return false;
    return true;
}

static bool are_variables(const struct rueda_strings *list)
{
    for (int i = 0; i < list->count; i++)
        if (strchr(list->list[i], '=') == NULL)
            return false;
    return !list->is_short;
}

static bool unpack_ranks(struct rueda_unpacker *unpacker,
                         struct rueda_assignment *assignment)
{
    assignment->ranks =
        calloc((size_t)assignment->count, sizeof(*assignment->ranks));
    if (assignment->ranks == NULL)
        return false;
    for (int i = 0; i < assignment->count; i++) {
        rueda_frame_unpack_list(unpacker, &assignment->ranks[i]);
        if (unpacker->is_bad || !are_variables(&assignment->ranks[i]))
            return false;
    }
    return true;
}

/* A folder that does not fit is none. */
static void unpack_folder(struct rueda_unpacker *unpacker, char *out)
{
    size_t len;
    const char *folder = rueda_frame_unpack_bytes(unpacker, &len);

    if (len < RUEDA_FOLDER_BYTES && memchr(folder, '\0', len) == NULL)
        memcpy(out, folder, len);
}

/* Read an assignment into a copy, and hand it out only if all of it is there
 * and sound. */
bool rueda_assignment_unpack(const struct rueda_frame *frame,
                             struct rueda_assignment *out)
{
    struct rueda_unpacker unpacker;
    struct rueda_assignment assignment = {.ranks = NULL};
    uint32_t is_elastic;
    uint32_t has_input;

    rueda_unpacker_begin(&unpacker, frame);
    assignment.size = (int)rueda_frame_unpack_number(&unpacker);
    assignment.first_rank = (int)rueda_frame_unpack_number(&unpacker);
    assignment.count = (int)rueda_frame_unpack_number(&unpacker);
    is_elastic = rueda_frame_unpack_number(&unpacker);
    assignment.is_elastic = is_elastic == 1;
    has_input = rueda_frame_unpack_number(&unpacker);
    assignment.has_input = has_input == 1;
    assignment.terminal = (int)rueda_frame_unpack_number(&unpacker);
    assignment.columns = (int)rueda_frame_unpack_number(&unpacker);
    assignment.rows = (int)rueda_frame_unpack_number(&unpacker);
    assignment.bind = rueda_frame_unpack_number(&unpacker);
    assignment.grace_ms = (int)rueda_frame_unpack_number(&unpacker);
    unpack_folder(&unpacker, assignment.folder);
    rueda_frame_unpack_list(&unpacker, &assignment.command);
    rueda_frame_unpack_list(&unpacker, &assignment.stores);
    rueda_frame_unpack_list(&unpacker, &assignment.variables);
    if (!unpacker.is_bad && is_elastic <= 1 && has_input <= 1 &&
        is_sound(&assignment) && are_variables(&assignment.variables) &&
        !assignment.command.is_short && !assignment.stores.is_short &&
        unpack_ranks(&unpacker, &assignment) &&
        rueda_unpacker_is_done(&unpacker)) {
        *out = assignment;
        return true;
    }
    rueda_assignment_fini(&assignment);
    return false;
}

void rueda_assignment_fini(struct rueda_assignment *assignment)
{
    rueda_strings_fini(&assignment->command);
    rueda_strings_fini(&assignment->stores);
    rueda_strings_fini(&assignment->variables);
    for (int i = 0; assignment->ranks != NULL && i < assignment->count; i++)
        rueda_strings_fini(&assignment->ranks[i]);
    free(assignment->ranks);
    memset(assignment, 0, sizeof(*assignment));
}
