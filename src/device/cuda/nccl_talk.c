/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All members tell each other something. In each round a member has the entries
 * of itself and of the have - 1 before it, and doubles them: it hears as many
 * from the member that is `have` places before it, and sends its own to the one
 * that is as many places after it. With five members the member 0 has
 *
 *     round    hears from    entries of
 *       1          4         0 4
 *       2          3         0 4 3 2
 *       3          1         0 4 3 2 1
 */
#include <string.h>

#include "device/cuda/nccl_state.h"

/* What is said decides where members connect to. */
static struct rueda_tag tag_of(const struct rueda_task *task)
{
    struct rueda_tag tag = task->tag;

    tag.sequence |= RUEDA_TAG_PROVEN;
    return tag;
}

void rueda_nccl_talk_begin(struct rueda_nccl_talk *talk, const void *mine,
                           size_t bytes)
{
    memcpy(talk->entries, mine, bytes);
    talk->bytes = bytes;
    talk->have = 1;
    talk->is_talking = false;
}

void rueda_nccl_talk_listen(struct rueda_nccl_talk *talk,
                            struct rueda_task *task, size_t bytes)
{
    struct rueda_mesh *mesh = task->place->mesh;

    rueda_mesh_recv(mesh, (mesh->rank - 1 + mesh->size) % mesh->size,
                    tag_of(task), talk->entries + bytes, bytes, &talk->heard);
    talk->is_listening = true;
}

/* With `have` entries, of me and those before me: those that the member `have`
 * before me has are the next ones. */
static void begin_round(struct rueda_nccl_talk *talk, struct rueda_task *task,
                        int more)
{
    struct rueda_mesh *mesh = task->place->mesh;
    const int to = (mesh->rank + talk->have) % mesh->size;
    const int from = (mesh->rank - talk->have + mesh->size) % mesh->size;

    if (!talk->is_listening)
        rueda_mesh_recv(mesh, from, tag_of(task),
                        talk->entries + (size_t)talk->have * talk->bytes,
                        (size_t)more * talk->bytes, &talk->heard);
    talk->is_listening = false;
    rueda_mesh_send(mesh, to, tag_of(task), talk->entries,
                    (size_t)more * talk->bytes, &talk->sent);
    talk->is_talking = true;
}

rueda_status rueda_nccl_talk_turn(struct rueda_nccl_talk *talk,
                                  struct rueda_task *task)
{
    const int size = task->place->mesh->size;

    while (talk->have < size) {
        const int left = size - talk->have;
        const int more = talk->have < left ? talk->have : left;

        if (!talk->is_talking)
            begin_round(talk, task, more);
        if (talk->heard.status != RUEDA_OK)
            return talk->heard.status;
        if (talk->sent.status != RUEDA_OK)
            return talk->sent.status;
        talk->have += more;
        talk->is_talking = false;
        task->moves++;
    }
    return RUEDA_OK;
}
