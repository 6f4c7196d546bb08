/* SPDX-License-Identifier: Apache-2.0 */
#include "support/history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The operations in an order, for one check. */
struct list {
    const struct history_op **ops;
    size_t count;
};

struct check {
    const struct history_op *ops;
    size_t count;
    struct list doubtful; /* changes that had no answer */
    struct rueda_text *why;
};

typedef bool (*choice)(const struct history_op *op, int key);

/* ---- What an operation is ------------------------------------------------ */

static bool is_answered(const struct history_op *op)
{
    return op->end_ns != 0;
}

/* It has changed its key, and is known to. */
static bool is_change(const struct history_op *op)
{
    return is_answered(op) && op->status == RUEDA_OK &&
           op->kind != HISTORY_GET && op->revision > 0;
}

/* It may have changed its key. */
static bool is_doubtful(const struct history_op *op, int key)
{
    (void)key;
    return !is_answered(op) && op->kind != HISTORY_GET;
}

/* It tells what was there. */
static bool is_read(const struct history_op *op)
{
    return is_answered(op) &&
           (op->kind == HISTORY_GET ||
            (op->kind == HISTORY_CAS && op->status == RUEDA_ERR_MISMATCH) ||
            (op->kind == HISTORY_DELETE && op->revision == 0));
}

static bool of_any_key(const struct history_op *op, int key)
{
    (void)key;
    return is_change(op);
}

static bool of_key(const struct history_op *op, int key)
{
    return op->key == key && is_change(op);
}

static bool seen_at_key(const struct history_op *op, int key)
{
    return op->key == key && is_answered(op) && op->revision > 0;
}

/* ---- Lists --------------------------------------------------------------- */

static int by_revision(const void *a, const void *b)
{
    const struct history_op *x = *(const struct history_op *const *)a;
    const struct history_op *y = *(const struct history_op *const *)b;

    if (x->revision != y->revision)
        return x->revision < y->revision ? -1 : 1;
    return (int)is_change(y) - (int)is_change(x); /* the change comes first */
}

/* Those that are chosen, by revision; released by free(). */
static struct list list_of(const struct check *check, choice choose, int key)
{
    struct list list = {
        malloc((check->count + 1) * sizeof(struct history_op *)), 0};

    if (list.ops == NULL)
        abort();
    for (size_t i = 0; i < check->count; i++)
        if (choose(&check->ops[i], key))
            list.ops[list.count++] = &check->ops[i];
    qsort(list.ops, list.count, sizeof(struct history_op *), by_revision);
    return list;
}

static bool fail(struct check *check, const struct history_op *op,
                 const char *what)
{
    static const char *const kinds[] = {"get", "set", "cas", "delete", "add"};

    rueda_text_set(check->why,
                   "%s: %s of key %d by client %d, value %" PRIx64
                   ", found %" PRIx64 ", revision %" PRIu64,
                   what, kinds[op->kind], op->key, op->client, op->value,
                   op->found, op->revision);
    return false;
}

/* ---- Order --------------------------------------------------------------- */

/* What was answered before another began has the lower revision, or the same.
 * From the end: the earliest answer of those with higher ones. */
static bool check_times(struct check *check, const struct list *list)
{
    int64_t earliest = INT64_MAX;
    size_t i = list->count;

    while (i > 0) {
        const uint64_t revision = list->ops[i - 1]->revision;
        int64_t here = earliest;

        for (; i > 0 && list->ops[i - 1]->revision == revision; i--) {
            if (list->ops[i - 1]->begin_ns > earliest)
                return fail(check, list->ops[i - 1],
                            "the past was seen after something newer");
            if (list->ops[i - 1]->end_ns < here)
                here = list->ops[i - 1]->end_ns;
        }
        earliest = here;
    }
    return true;
}

static bool check_revisions(struct check *check, uint64_t next, uint64_t others)
{
    struct list all = list_of(check, of_any_key, 0);
    const uint64_t doubtful = check->doubtful.count;
    bool is_right = check_times(check, &all);

    for (size_t i = 1; i < all.count && is_right; i++)
        if (all.ops[i]->revision == all.ops[i - 1]->revision)
            is_right = fail(check, all.ops[i], "two changes have one revision");
    if (is_right && (next < all.count + others + 1 ||
                     next > all.count + others + 1 + doubtful)) {
        rueda_text_set(check->why,
                       "%zu changes are known, %" PRIu64
                       " more may be, and there were %" PRIu64,
                       all.count + (size_t)others, doubtful, next - 1);
        is_right = false;
    }
    free(all.ops);
    return is_right;
}

/* ---- Reads --------------------------------------------------------------- */

/* Has a request without an answer written that, before `end_ns`? */
static bool may_be_written(const struct check *check,
                           const struct history_op *read)
{
    for (size_t i = 0; i < check->doubtful.count; i++) {
        const struct history_op *op = check->doubtful.ops[i];

        if (op->key == read->key && op->begin_ns <= read->end_ns &&
            (op->kind == HISTORY_ADD || op->value == read->found))
            return true;
    }
    return false;
}

/* What was found at a revision is what its change left there. All that was seen
 * there stands together, the change first, if it is known. */
static bool check_values(struct check *check, const struct list *seen)
{
    const struct history_op *change = NULL;

    for (size_t i = 0; i < seen->count; i++) {
        const struct history_op *op = seen->ops[i];

        if (is_change(op)) {
            change = op;
            continue;
        }
        if (change == NULL || change->revision != op->revision) {
            if (!may_be_written(check, op))
                return fail(check, op, "nobody has written what was found");
            if (i > 0 && seen->ops[i - 1]->revision == op->revision &&
                seen->ops[i - 1]->found != op->found)
                return fail(check, op, "one revision has two values");
            continue;
        }
        if (op->end_ns < change->begin_ns)
            return fail(check, op, "it was found before it was written");
        if (change->kind == HISTORY_DELETE ||
            op->found !=
                (change->kind == HISTORY_ADD ? change->found : change->value))
            return fail(check, op, "something else was found than written");
    }
    return true;
}

/* Can the key have been away at some moment of the read? */
static bool may_be_away(const struct check *check, const struct list *changes,
                        const struct history_op *read)
{
    for (size_t i = 0; i <= changes->count; i++) {
        const bool is_away =
            i == 0 || changes->ops[i - 1]->kind == HISTORY_DELETE;

        if (is_away &&
            (i == 0 || changes->ops[i - 1]->begin_ns <= read->end_ns) &&
            (i == changes->count || changes->ops[i]->end_ns >= read->begin_ns))
            return true;
    }
    for (size_t i = 0; i < check->doubtful.count; i++)
        if (check->doubtful.ops[i]->kind == HISTORY_DELETE &&
            check->doubtful.ops[i]->key == read->key &&
            check->doubtful.ops[i]->begin_ns <= read->end_ns)
            return true;
    return false;
}

static bool check_absences(struct check *check, const struct list *changes,
                           int key)
{
    for (size_t i = 0; i < check->count; i++) {
        const struct history_op *op = &check->ops[i];

        if (op->key == key && is_read(op) && op->revision == 0 &&
            !may_be_away(check, changes, op))
            return fail(check, op, "nothing was found where something was");
    }
    return true;
}

/* ---- Writes that depend on what was there ----------------------------- */

/* The revision is that of a known change of the key. */
static bool is_known(const struct list *changes, uint64_t revision)
{
    for (size_t i = 0; i < changes->count; i++)
        if (changes->ops[i]->revision == revision)
            return true;
    return false;
}

/* A doubtful change may stand between two known ones. */
static bool check_exchange(struct check *check, const struct list *changes,
                           size_t i)
{
    const struct history_op *op = changes->ops[i];
    const struct history_op *before = i > 0 ? changes->ops[i - 1] : NULL;
    const uint64_t last =
        before == NULL || before->kind == HISTORY_DELETE ? 0 : before->revision;
    bool is_doubted = false;

    for (size_t k = 0; k < check->doubtful.count; k++)
        is_doubted =
            is_doubted || (check->doubtful.ops[k]->key == op->key &&
                           check->doubtful.ops[k]->begin_ns <= op->end_ns);
    if (op->expected == last ||
        (is_doubted &&
         (op->expected == 0 ||
          (op->expected > (before ? before->revision : 0) &&
           op->expected < op->revision && !is_known(changes, op->expected)))))
        return true;
    return fail(check, op, "it took the place of something else");
}

/* Each client has added 1 to its part as often as it says, and perhaps as often
 * more as it had no answer. */
static bool check_sum(struct check *check, const struct history_op *op,
                      const uint64_t known[HISTORY_CLIENTS],
                      uint64_t last[HISTORY_CLIENTS])
{
    for (int i = 0; i < HISTORY_CLIENTS; i++) {
        const uint64_t part =
            op->found >> (i * HISTORY_PART_BITS) & (HISTORY_PART(1) - 1);
        uint64_t doubtful = 0;

        for (size_t k = 0; k < check->doubtful.count; k++)
            doubtful += check->doubtful.ops[k]->client == i &&
                        check->doubtful.ops[k]->key == op->key &&
                        check->doubtful.ops[k]->begin_ns <= op->end_ns;
        if (part < known[i] || part > known[i] + doubtful || part < last[i])
            return fail(check, op, "the sum is wrong");
        last[i] = part;
    }
    return true;
}

static bool check_dependent(struct check *check, const struct list *changes)
{
    uint64_t known[HISTORY_CLIENTS] = {0};
    uint64_t last[HISTORY_CLIENTS] = {0};

    for (size_t i = 0; i < changes->count; i++) {
        const struct history_op *op = changes->ops[i];

        if (op->kind == HISTORY_CAS && !check_exchange(check, changes, i))
            return false;
        if (op->kind != HISTORY_ADD)
            continue;
        known[op->client]++;
        if (!check_sum(check, op, known, last))
            return false;
    }
    return true;
}

/* ---- All of it ----------------------------------------------------------- */

static bool check_key(struct check *check, int key)
{
    struct list changes = list_of(check, of_key, key);
    struct list seen = list_of(check, seen_at_key, key);
    const bool is_right = check_times(check, &seen) &&
                          check_values(check, &seen) &&
                          check_absences(check, &changes, key) &&
                          check_dependent(check, &changes);

    free(changes.ops);
    free(seen.ops);
    return is_right;
}

/* A CAS that did not match has found another revision than it asked for. One
 * that was asked again tells what is there by then (store.h): if it wanted the
 * key to be away, and it was not, it may be since. */
static bool check_refusals(struct check *check)
{
    for (size_t i = 0; i < check->count; i++) {
        const struct history_op *op = &check->ops[i];

        if (is_answered(op) && op->status == RUEDA_ERR_MISMATCH &&
            op->revision == op->expected && op->expected > 0)
            return fail(check, op, "it was refused although it matched");
    }
    return true;
}

bool history_check(const struct history_op *ops, size_t count, uint64_t next,
                   uint64_t others, struct rueda_text *why)
{
    struct check check = {.ops = ops, .count = count, .why = why};
    bool is_right;
    int keys = 0;

    for (size_t i = 0; i < count; i++)
        if (ops[i].key >= keys)
            keys = ops[i].key + 1;
    check.doubtful = list_of(&check, is_doubtful, 0);
    is_right = check_revisions(&check, next, others) && check_refusals(&check);
    for (int key = 0; key < keys && is_right; key++)
        is_right = check_key(&check, key);
    free(check.doubtful.ops);
    return is_right;
}
