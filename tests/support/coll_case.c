/* SPDX-License-Identifier: Apache-2.0 */
#include "support/coll_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/numbers.h"

#define MAX_RANKS 32

/* ---- One rank's buffers ---------------------------------------------- */

static struct numbers numbers_of(const struct coll_case *c, int size)
{
    return (struct numbers){
        .kind = c->kind,
        .dtype = c->dtype,
        .reduction = c->reduction,
        .root = c->root,
        .size = size,
        .prescale = c->prescale,
        .postscale = c->postscale,
        .is_uneven = c->is_uneven,
        .count = c->count,
    };
}

/* What one rank passes, and what it should get. */
struct side {
    size_t send_counts[MAX_RANKS];
    size_t recv_counts[MAX_RANKS];
    size_t send_total;
    size_t recv_total;
    char *send;
    char *input; /* what send holds at first */
    char *recv;
    char *expected;
};

static char *bytes_of(const struct coll_case *c, size_t count)
{
    /* One more, for zero elements; the sanitizer watches the rest. */
    char *bytes = malloc(count * rueda_dtype_size(c->dtype) + 1);

    assert_non_null(bytes);
    return bytes;
}

/* side is sides[rank] of an array whose earlier ones have been made. */
static void side_init(const struct coll_case *c, int size, int rank,
                      struct side *side)
{
    const bool is_same_for_all =
        c->kind == RUEDA_ALLREDUCE || c->kind == RUEDA_BROADCAST;
    const struct numbers numbers = numbers_of(c, size);
    const size_t elem = rueda_dtype_size(c->dtype);
    size_t room;

    numbers_counts(&numbers, rank, side->send_counts, side->recv_counts);
    side->send_total = numbers_sent(&numbers, rank);
    side->recv_total = numbers_received(&numbers, rank);
    room = side->send_total > side->recv_total ? side->send_total
                                               : side->recv_total;
    side->send = bytes_of(c, c->is_in_place ? room : side->send_total);
    side->input = bytes_of(c, side->send_total);
    side->recv = c->is_in_place ? side->send : bytes_of(c, side->recv_total);
    side->expected = bytes_of(c, side->recv_total);
    numbers_write(&numbers, rank, 0, side->send_total, side->input);
    memset(side->recv, 0x5a, (c->is_in_place ? room : side->recv_total) * elem);
    memcpy(side->send, side->input, side->send_total * elem);
    if (is_same_for_all && rank > 0)
        memcpy(side->expected, side[-1].expected, side->recv_total * elem);
    else
        numbers_expect(&numbers, rank, side->expected);
}

static void side_fini(struct side *side)
{
    if (side->recv != side->send)
        free(side->recv);
    free(side->send);
    free(side->input);
    free(side->expected);
}

static struct rueda_coll coll_of(const struct coll_case *c,
                                 const struct side *side, int rank)
{
    struct rueda_coll coll = {
        .kind = c->kind,
        .root = c->root,
        .arith = {c->dtype, c->reduction,
                  c->prescale == 0.0 ? 1.0 : c->prescale,
                  c->postscale == 0.0 ? 1.0 : c->postscale},
        .elem_bytes = rueda_dtype_size(c->dtype),
        .send = side->send,
        .recv = side->recv,
        .count = c->count,
        .compression = c->compression,
    };

    if (c->is_uneven) {
        coll.recv_counts = side->recv_counts;
        if (c->kind == RUEDA_ALLTOALL)
            coll.send_counts = side->send_counts;
        if (c->kind == RUEDA_ALLGATHER)
            coll.count = side->recv_counts[rank];
    }
    return coll;
}

/* ---- Checks ---------------------------------------------------------- */

static void say(const struct coll_case *c, int size, const char *what)
{
    print_error("%s %s on %d ranks, %s %s, count %zu%s%s: %s\n", c->algo->name,
                rueda_kind_str(c->kind), size, rueda_dtype_str(c->dtype),
                rueda_reduction_str(c->reduction), c->count,
                c->is_in_place ? ", in place" : "",
                c->is_uneven ? ", uneven" : "", what);
}

static bool is_side_right(const struct coll_case *c, int size,
                          const struct side *side)
{
    const size_t elem = rueda_dtype_size(c->dtype);

    if (memcmp(side->recv, side->expected, side->recv_total * elem) != 0) {
        say(c, size, "wrong result");
        return false;
    }
    if (!c->is_in_place &&
        memcmp(side->send, side->input, side->send_total * elem) != 0) {
        say(c, size, "input was written");
        return false;
    }
    return true;
}

struct coll_job {
    struct coll_case what;
    int size;
    struct side sides[MAX_RANKS];
    struct rueda_coll coll[MAX_RANKS];
};

struct coll_job *coll_job_open(const struct coll_case *c, int size)
{
    struct coll_job *job = calloc(1, sizeof(*job));

    assert_non_null(job);
    assert_true(size <= MAX_RANKS);
    job->what = *c;
    job->size = size;
    for (int i = 0; i < size; i++) {
        side_init(c, size, i, &job->sides[i]);
        job->coll[i] = coll_of(c, &job->sides[i], i);
    }
    return job;
}

void coll_job_close(struct coll_job *job)
{
    for (int i = 0; i < job->size; i++)
        side_fini(&job->sides[i]);
    free(job);
}

const struct rueda_coll *coll_job_colls(const struct coll_job *job)
{
    return job->coll;
}

bool coll_job_is_right(const struct coll_job *job, int rank)
{
    return is_side_right(&job->what, job->size, &job->sides[rank]);
}

void coll_case_check(struct ranks *ranks, const struct coll_case *c)
{
    struct coll_job *job = coll_job_open(c, ranks->size);
    const rueda_status status = ranks_run(ranks, c->algo, job->coll);

    if (status != RUEDA_OK)
        say(c, ranks->size, rueda_status_str(status));
    assert_int_equal(status, RUEDA_OK);
    for (int i = 0; i < ranks->size; i++)
        assert_true(coll_job_is_right(job, i));
    coll_job_close(job);
}

void coll_case_check_sizes(const struct coll_case *c)
{
    static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 16};
    static const size_t counts[] = {0, 1, 2, 3, 17, 1000, 70001};

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct ranks *ranks = ranks_open(sizes[s]);

        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
            for (int flags = 0; flags < 4; flags++) {
                struct coll_case one = *c;

                one.count = counts[k];
                one.is_in_place = (flags & 1) != 0;
                one.is_uneven = (flags & 2) != 0;
                one.root = c->kind == RUEDA_BROADCAST ? sizes[s] / 2 : 0;
                /* Many ranks with long pieces say nothing new, slowly. */
                if (numbers_has_pieces(c->kind) && sizes[s] > 3)
                    one.count = one.count / 4 + one.count % 4;
                if (one.is_uneven && !numbers_has_pieces(c->kind))
                    continue;
                coll_case_check(ranks, &one);
            }
        ranks_close(ranks);
    }
}

void coll_case_check_numbers(const struct coll_case *c)
{
    static const rueda_reduction reductions[] = {RUEDA_SUM, RUEDA_MIN,
                                                 RUEDA_MAX, RUEDA_PRODUCT};
    struct ranks *ranks = ranks_open(5);

    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++)
        for (int r = 0; r < 4; r++)
            for (int in_place = 0; in_place < 2; in_place++) {
                struct coll_case one = *c;

                one.dtype = (rueda_dtype)dtype;
                one.reduction = reductions[r];
                one.is_in_place = in_place != 0;
                one.count = 3001;
                coll_case_check(ranks, &one);
            }
    ranks_close(ranks);
}

void coll_case_check_scales(const struct coll_case *c)
{
    static const int sizes[] = {1, 2, 3, 8};
    static const size_t counts[] = {1, 17, 20001};
    static const rueda_dtype dtypes[] = {RUEDA_INT32, RUEDA_FLOAT16,
                                         RUEDA_FLOAT32};

    for (int s = 0; s < 4; s++) {
        struct ranks *ranks = ranks_open(sizes[s]);

        for (int k = 0; k < 3; k++)
            for (int flags = 0; flags < 6; flags++) {
                struct coll_case one = *c;

                one.prescale = flags % 3 == 0 ? 1.0 : 2.0;
                one.postscale = flags % 3 == 1 ? 3.0 : 0.5;
                one.dtype = flags % 3 == 0 ? RUEDA_FLOAT32 : dtypes[k];
                one.is_in_place = flags >= 3;
                one.count = counts[k];
                coll_case_check(ranks, &one);
            }
        ranks_close(ranks);
    }
}

static void check_others_ended(const struct ranks *ranks)
{
    for (int i = 0; i < ranks->size; i++) {
        const rueda_status status = ranks->status[i];

        if (i == ranks->leaver || (status == RUEDA_OK && ranks->leaves_after))
            continue;
        assert_int_equal(status, RUEDA_ERR_PEER_LOST);
    }
}

void coll_case_check_leaving(const struct coll_case *c, int size)
{
    coll_case_check_leaving_hosts(c, size, NULL);
}

void coll_case_check_leaving_hosts(const struct coll_case *c, int size,
                                   const int *hosts)
{
    struct coll_job *job = coll_job_open(c, size);
    rueda_status status = RUEDA_IN_PROGRESS;

    for (int after = 0; status != RUEDA_OK; after++) {
        struct ranks *ranks = ranks_open(size);

        if (hosts != NULL)
            ranks_arrange(ranks, hosts);
        ranks->leaver = after % size;
        ranks->leaves_after = after;
        status = ranks_run(ranks, c->algo, job->coll);
        if (status != RUEDA_OK)
            check_others_ended(ranks);
        ranks_close(ranks);
    }
    coll_job_close(job);
}
