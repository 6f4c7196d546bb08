/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process sets, as a program makes them. A change is an operation of the global
 * set like any other: what ranks disagree about is found where all operations
 * are compared.
 */
#include <stdlib.h>
#include <string.h>

#include "api/submit.h"
#include "base/hash.h"
#include "job/set_text.h"

/* One change at a time; ranks that make and remove at once meet here. */
#define CHANGE_NAME "rueda.process_set"

/* A private set ends under this name, once. */
#define CLOSE_NAME "rueda.process_set.close"

static int compare_ranks(const void *a, const void *b)
{
    int left = *(const int *)a;
    int right = *(const int *)b;

    return (left > right) - (left < right);
}

/* Ascending ranks that are all there, and each once. */
static rueda_status check_ranks(const rueda_ctx *ctx, const int *sorted,
                                int count)
{
    struct rueda_text error = {{0}};

    rueda_text_add(&error, "rank %d: a process set with ",
                   rueda_ctx_formation(ctx)->rank);
    for (int i = 0; i < count; i++) {
        if (sorted[i] < 0 || sorted[i] >= rueda_size(ctx))
            rueda_text_add(&error, "rank %d, in a job of %d ranks", sorted[i],
                           rueda_size(ctx));
        else if (i > 0 && sorted[i] == sorted[i - 1])
            rueda_text_add(&error, "rank %d twice; name each rank once",
                           sorted[i]);
        else
            continue;
        return rueda_fault(RUEDA_ERR_INVALID, error.chars);
    }
    return RUEDA_OK;
}

/* The same on all ranks if they mean the same. */
static uint64_t hash_of(const int *ranks, int count)
{
    uint64_t hash = (uint64_t)count;

    for (int i = 0; i < count; i++)
        hash = rueda_hash_mix(hash ^ (uint64_t)ranks[i]);
    return hash;
}

/* The message of a change that was not submitted. */
static rueda_status refuse(const rueda_ctx *ctx, rueda_status status)
{
    struct rueda_text error = {{0}};

    rueda_text_add(&error, "rank %d: %s", rueda_ctx_formation(ctx)->rank,
                   status == RUEDA_ERR_INVALID
                       ? "another change of process sets is in flight; make "
                         "changes one after another, on all ranks in the same "
                         "order"
                       : rueda_status_str(status));
    return rueda_fault(status, error.chars);
}

/* Hand it over. Takes the list. what: a number that all ranks agree on if they
 * mean the same change; it goes where tensors have their shape, so ranks that
 * differ get the message of a mismatch. */
static rueda_status change(rueda_ctx *ctx, int kind, int *ranks, int count,
                           uint64_t what, rueda_handle *out_handle)
{
    struct rueda_ticket *ticket;
    rueda_status status = rueda_submission_take(ctx, kind, &ticket);

    if (status != RUEDA_OK) {
        free(ranks);
        return refuse(ctx, status);
    }
    ticket->set = RUEDA_SET_GLOBAL;
    ticket->member_count = rueda_size(ctx);
    ticket->ranks = ranks;
    ticket->op.has_own = true;
    ticket->rank_count = count;
    ticket->request.dims = 2;
    ticket->request.shape[0] = (uint64_t)count;
    ticket->request.shape[1] = what;
    status = rueda_submission_set_name(ticket, CHANGE_NAME);
    if (status == RUEDA_OK)
        status = rueda_submission_claim(ctx, ticket, ticket->request.name);
    if (status != RUEDA_OK) {
        rueda_submission_drop(ctx, ticket);
        return refuse(ctx, status);
    }
    *out_handle = ticket->op.handle;
    rueda_engine_submit(&ctx->engine, &ticket->op);
    return RUEDA_OK;
}

/* A copy in order, which the caller frees, of ranks that are all there; NULL
 * with a status if they are not. */
static int *sort_ranks(const rueda_ctx *ctx, const int *ranks, int count,
                       rueda_status *out_status)
{
    int *sorted;

    if (ranks == NULL || count < 1) {
        *out_status = rueda_fault(
            RUEDA_ERR_INVALID, "a process set without ranks; name one or more");
        return NULL;
    }
    sorted = malloc((size_t)count * sizeof(*sorted));
    if (sorted == NULL) {
        *out_status = refuse(ctx, RUEDA_ERR_NOMEM);
        return NULL;
    }
    memcpy(sorted, ranks, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), compare_ranks);
    *out_status = check_ranks(ctx, sorted, count);
    if (*out_status == RUEDA_OK)
        return sorted;
    free(sorted);
    return NULL;
}

/* Check and sort the ranks, then submit the change. The list lives until the
 * change has ended. */
static rueda_status create(rueda_ctx *ctx, const int *ranks, int count,
                           rueda_handle *out_handle)
{
    rueda_status status;
    int *sorted = sort_ranks(ctx, ranks, count, &status);

    if (sorted == NULL)
        return status;
    return change(ctx, RUEDA_SET_ADD, sorted, count, hash_of(sorted, count),
                  out_handle);
}

/* create(), and wait for all others. */
static rueda_status create_now(rueda_ctx *ctx, const int *ranks, int count,
                               int *out_set)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    rueda_handle handle = 0;
    rueda_status status = create(ctx, ranks, count, &handle);

    if (status == RUEDA_OK)
        status = rueda_wait_for(ctx, handle, -1, &result);
    if (status == RUEDA_OK)
        *out_set = result.set;
    return status;
}

/* May this program change sets while it runs? */
static rueda_status check_dynamic(const rueda_ctx *ctx)
{
    rueda_status status = rueda_ctx_check(ctx);

    if (status == RUEDA_OK)
        status = rueda_ctx_check_worker(ctx);
    if (status != RUEDA_OK || ctx->job->config.dynamic_sets)
        return status;
    return rueda_fault(
        RUEDA_ERR_INVALID,
        "process sets are added and removed only where all ranks have "
        "HOROVOD_DYNAMIC_PROCESS_SETS=1, which is RUEDA_DYNAMIC_SETS=1, or "
        "process_sets=\"dynamic\" when they start; sets that never change can "
        "be there from the start (RUEDA_PROCESS_SETS)");
}

rueda_status rueda_set_create(rueda_ctx *ctx, const int *ranks, int count,
                              int *out_set)
{
    rueda_status status = check_dynamic(ctx);

    if (status == RUEDA_OK)
        status = rueda_ctx_check_wait();
    return status == RUEDA_OK ? create_now(ctx, ranks, count, out_set) : status;
}

rueda_status rueda_set_create_async(rueda_ctx *ctx, const int *ranks, int count,
                                    rueda_handle *out_handle)
{
    rueda_status status = check_dynamic(ctx);

    return status == RUEDA_OK ? create(ctx, ranks, count, out_handle) : status;
}

rueda_status rueda_set_destroy(rueda_ctx *ctx, int set)
{
    rueda_handle handle = 0;
    rueda_status status = rueda_ctx_check_wait();

    if (status == RUEDA_OK)
        status = rueda_set_destroy_async(ctx, set, &handle);
    return status == RUEDA_OK ? rueda_wait(ctx, handle, -1) : status;
}

/* Removing is an operation of the global set, so that all ranks remove at the
 * same place in the log. */
rueda_status rueda_set_destroy_async(rueda_ctx *ctx, int set,
                                     rueda_handle *out_handle)
{
    rueda_status status = check_dynamic(ctx);
    int *id;

    if (status != RUEDA_OK)
        return status;
    if (set == RUEDA_SET_GLOBAL || set == RUEDA_WHOLE_JOB)
        return rueda_fault(RUEDA_ERR_INVALID,
                           "the process set of all ranks stays");
    if (rueda_set_size(ctx, set) < 0) {
        struct rueda_text error = {{0}};

        rueda_text_set(&error,
                       "rank %d: there is no process set %d; it was never "
                       "made, or has been removed",
                       rueda_ctx_formation(ctx)->rank, set);
        return rueda_fault(RUEDA_ERR_INVALID, error.chars);
    }
    id = malloc(sizeof(*id));
    if (id == NULL)
        return refuse(ctx, RUEDA_ERR_NOMEM);
    *id = set;
    return change(ctx, RUEDA_SET_DROP, id, 1, (uint64_t)set, out_handle);
}

/* ---- Private sets ----------------------------------------------------- */

static rueda_status refuse_private(const rueda_ctx *ctx, int set,
                                   const char *why)
{
    struct rueda_text error = {{0}};

    rueda_text_set(&error, "rank %d: private process set %d: %s",
                   rueda_ctx_formation(ctx)->rank, set, why);
    return rueda_fault(RUEDA_ERR_INVALID, error.chars);
}

static bool is_private(int set)
{
    return set >= RUEDA_PRIVATE_SETS && set < RUEDA_PRIVATE_SETS_END;
}

static bool is_listed(const rueda_ctx *ctx, const int *ranks, int count)
{
    for (int i = 0; i < count; i++)
        if (ranks[i] == rueda_ctx_formation(ctx)->rank)
            return true;
    return false;
}

/* Takes the ranks, which are in order. */
static rueda_status submit_open(rueda_ctx *ctx, int *ranks, int count, int set,
                                rueda_handle *out_handle)
{
    struct rueda_ticket *ticket;
    rueda_status status = rueda_submission_take(ctx, RUEDA_SET_OPEN, &ticket);

    if (status != RUEDA_OK) {
        free(ranks);
        return refuse(ctx, status);
    }
    ticket->ranks = ranks;
    ticket->rank_count = count;
    ticket->op.has_own = true;
    ticket->made_set = set;
    *out_handle = ticket->op.handle;
    rueda_engine_submit(&ctx->engine, &ticket->op);
    return RUEDA_OK;
}

rueda_status rueda_set_open_async(rueda_ctx *ctx, const int *ranks, int count,
                                  int set, rueda_handle *out_handle)
{
    rueda_status status = rueda_ctx_check(ctx);
    int *sorted;

    if (status != RUEDA_OK)
        return status;
    if (!is_private(set))
        return refuse_private(ctx, set,
                              "its id is not one of a private set; take a "
                              "number from 524288 to 1048575");
    if (rueda_set_size(ctx, set) >= 0)
        return refuse_private(ctx, set,
                              "it is there already; give each an id of its "
                              "own");
    sorted = sort_ranks(ctx, ranks, count, &status);
    if (sorted == NULL)
        return status;
    if (!is_listed(ctx, sorted, count)) {
        free(sorted);
        return refuse_private(ctx, set,
                              "this rank is not a member; only members open "
                              "it");
    }
    return submit_open(ctx, sorted, count, set, out_handle);
}

rueda_status rueda_set_close_async(rueda_ctx *ctx, int set,
                                   rueda_handle *out_handle)
{
    rueda_status status = rueda_ctx_check(ctx);
    struct rueda_ticket *ticket;
    int size;

    if (status != RUEDA_OK)
        return status;
    size = is_private(set) ? rueda_set_size(ctx, set) : -1;
    if (size < 0)
        return refuse_private(ctx, set, "it is not open");
    status = rueda_submission_take(ctx, RUEDA_SET_CLOSE, &ticket);
    if (status != RUEDA_OK)
        return refuse(ctx, status);
    ticket->set = set;
    ticket->member_count = size;
    status = rueda_submission_set_name(ticket, CLOSE_NAME);
    if (status == RUEDA_OK)
        status = rueda_submission_claim(ctx, ticket, ticket->request.name);
    if (status != RUEDA_OK) {
        rueda_submission_drop(ctx, ticket);
        return status == RUEDA_ERR_INVALID
                   ? refuse_private(ctx, set, "it is being closed already")
                   : refuse(ctx, status);
    }
    *out_handle = ticket->op.handle;
    rueda_engine_submit(&ctx->engine, &ticket->op);
    return RUEDA_OK;
}

/* ---- What there is ---------------------------------------------------- */

static const struct rueda_set *hold(const rueda_ctx *ctx, int set)
{
    return rueda_engine_hold_set(&((rueda_ctx *)ctx)->engine, set);
}

static void release(const rueda_ctx *ctx, const struct rueda_set *set)
{
    rueda_engine_release_set(&((rueda_ctx *)ctx)->engine, set);
}

int rueda_set_size(const rueda_ctx *ctx, int set)
{
    const struct rueda_set *found = hold(ctx, set);
    const int size = found != NULL ? found->size : -1;

    release(ctx, found);
    return size;
}

int rueda_set_rank(const rueda_ctx *ctx, int set)
{
    const struct rueda_set *found = hold(ctx, set);
    const int rank = found != NULL ? found->me : -1;

    release(ctx, found);
    return rank;
}

int rueda_set_ranks(const rueda_ctx *ctx, int set, int *ranks, int room)
{
    const struct rueda_set *found = hold(ctx, set);
    int count;

    if (found == NULL)
        return -1;
    count = found->size < room ? found->size : room;
    for (int i = 0; i < count; i++)
        ranks[i] = found->ranks[i];
    release(ctx, found);
    return count;
}

/* ---- From the start ------------------------------------------------------ */

/* The sets that RUEDA_PROCESS_SETS or the caller gave, one after another, so
 * that their ids are the same on all ranks. */
rueda_status rueda_static_sets_make(rueda_ctx *ctx, const char *text,
                                    struct rueda_text *error)
{
    int *ranks = calloc((size_t)rueda_size(ctx), sizeof(int));
    rueda_status status = RUEDA_OK;
    int set;

    if (ranks == NULL)
        return RUEDA_ERR_NOMEM;
    while (status == RUEDA_OK) {
        int count = rueda_set_text_next(&text, rueda_size(ctx), ranks, error);

        if (count == 0)
            break;
        status =
            count < 0 ? RUEDA_ERR_INVALID : create_now(ctx, ranks, count, &set);
    }
    if (status != RUEDA_OK)
        rueda_text_set(error, "%s", rueda_last_error());
    free(ranks);
    return status;
}
