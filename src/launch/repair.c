/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/repair.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "job/agreement.h"
#include "job/ballot.h"
#include "job/rollcall.h"
#include "launch/launch_state.h"

struct rueda_repair {
    int size;
    atomic_bool is_on;        /* by RUEDA_REPAIR here, or as ranks say */
    atomic_bool is_removed[]; /* [size]; the keeper's thread writes */
};

/* Keys of a job that the launcher keeps begin with the number of its life:
 * "1/repair/...", "1/job". Take that off. */
static bool skip_prefix(const char **key, size_t *bytes, const char *prefix)
{
    const size_t len = strlen(prefix);
    const char *at = *key;
    size_t left = *bytes;

    while (left > 0 && *at >= '0' && *at <= '9') {
        at++;
        left--;
    }
    if (left < len || memcmp(at, prefix, len) != 0)
        return false;
    *key = at + len;
    *bytes = left - len;
    return true;
}

/* What rank 0 has decided for all says whether they repair their job. */
static void read_decision(struct rueda_repair *repair, const void *value,
                          size_t bytes)
{
    struct rueda_rollcall call = {.topology = NULL};
    struct rueda_text error = {{0}};

    if (rueda_rollcall_read(value, bytes, repair->size, &call, &error) ==
        RUEDA_OK)
        atomic_store(&repair->is_on,
                     rueda_agreement_decides_repair(call.decision));
    rueda_rollcall_fini(&call);
}

static void on_key(void *arg, const char *key, size_t key_bytes,
                   const void *value, size_t bytes)
{
    struct rueda_repair *repair = arg;
    struct rueda_ballot_word word;

    if (skip_prefix(&key, &key_bytes, "/job") && key_bytes == 0)
        read_decision(repair, value, bytes);
    else if (skip_prefix(&key, &key_bytes, "/repair/") &&
             rueda_ballot_read(key, key_bytes, value, bytes, repair->size,
                               &word) &&
             word.kind == RUEDA_BALLOT_GONE && word.speaker != word.member)
        atomic_store(&repair->is_removed[word.member], true);
}

static bool is_wanted(void)
{
    const char *repair = rueda_environment("RUEDA_REPAIR");

    return repair != NULL && strcmp(repair, "1") == 0;
}

bool rueda_repair_open(int size, struct rueda_keeper_args *args,
                       struct rueda_repair **out)
{
    *out = calloc(1, sizeof(**out) + (size_t)size * sizeof(atomic_bool));
    if (*out == NULL)
        return false;
    (*out)->size = size;
    atomic_init(&(*out)->is_on, is_wanted());
    args->watched = "";
    args->changed = on_key;
    args->arg = *out;
    return true;
}

void rueda_repair_close(struct rueda_repair *repair)
{
    free(repair);
}

bool rueda_repair_has_removed(const struct rueda_repair *repair, int rank)
{
    return repair != NULL && rank >= 0 && rank < repair->size &&
           atomic_load(&repair->is_removed[rank]);
}

bool rueda_repair_can_go_on(const struct rueda_launch *launch)
{
    int running = 0;

    for (int i = 0; i < launch->node_count; i++)
        running += launch->nodes[i].count - launch->nodes[i].ended;
    return launch->repair != NULL && atomic_load(&launch->repair->is_on) &&
           running > 0;
}
