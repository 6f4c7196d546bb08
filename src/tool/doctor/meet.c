/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doctor's ranks: they meet in pairs, measure latency, bandwidth and clock
 * offsets, and print lines for the doctor. Ranks of different hosts exchange
 * messages. The two of a host share memory, as collectives do there: what they
 * measure is an allreduce in a set of their own.
 */
#include "tool/doctor/meet.h"

#include <rueda/rueda.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool/clock.h"
#include "tool/doctor/pair.h"
#include "tool/stats.h"

/* Exchanges of a meeting at most, and how long they may take. */
#define SHORT_MOST    200
#define SHORT_SECONDS 0.5
#define LONG_MOST     9
#define LONG_SECONDS  1.0
#define LONG_BYTES    ((size_t)4 << 20)

/* The first ones make connections and touch memory. */
#define SHORT_WARM_UPS 10
#define LONG_WARM_UPS  1

/* Every message begins with this. Both sides send it and both see the other's,
 * so they agree on the last exchange without one more message. */
struct stamp {
    int64_t wall_ns;
    int64_t is_late; /* I would like to stop after this one */
};

struct met_rank {
    rueda_ctx *ctx;
    int rank;
    int size;
    struct stamp *out; /* LONG_BYTES */
    struct stamp *in;
};

static void say(const struct rueda_line *line)
{
    rueda_line_write(line, stdout);
    fflush(stdout);
}

static void say_failure(int rank, const char *words)
{
    struct rueda_line line = {.kind = RUEDA_LINE_FAILED, .rank = rank};

    rueda_finding_copy(line.words, sizeof(line.words), words);
    say(&line);
}

static int64_t wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- Exchanges ---------------------------------------------------------- */

/* An exchange with a peer: this many bytes of each reach the other. What
 * arrives begins with the other's stamp, or with the sum of both. */
typedef rueda_status exchange_fn(struct met_rank *rank, int peer, size_t bytes);

/* Send to a peer and receive from it at the same time. The bytes are passed off
 * as what training sends, since those of other types are authenticated. */
static rueda_status exchange_messages(struct met_rank *rank, int peer,
                                      size_t bytes)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    const size_t count = bytes / sizeof(float);
    rueda_handle received;
    rueda_handle sent = 0;
    rueda_status status;

    args.dtype = RUEDA_FLOAT32;
    args.dims = 1;
    args.shape = &count;
    args.peer = peer;
    args.send = rank->out;
    args.recv = rank->in;
    args.kind = RUEDA_RECV;
    status = rueda_submit(rank->ctx, &args, &received);
    args.kind = RUEDA_SEND;
    if (status == RUEDA_OK)
        status = rueda_submit(rank->ctx, &args, &sent);
    if (status == RUEDA_OK)
        status = rueda_wait(rank->ctx, received, -1);
    return status == RUEDA_OK ? rueda_wait(rank->ctx, sent, -1) : status;
}

/* The set of the two ranks of a host; another id for each host. */
static int set_of_host(const struct met_rank *rank)
{
    return RUEDA_PRIVATE_SETS + rank->rank / RUEDA_DOCTOR_RANKS;
}

static rueda_status open_set_of_host(struct met_rank *rank, int peer)
{
    const int ranks[] = {rank->rank, peer};
    rueda_handle handle;
    rueda_status status =
        rueda_set_open_async(rank->ctx, ranks, 2, set_of_host(rank), &handle);

    return status == RUEDA_OK ? rueda_wait(rank->ctx, handle, -1) : status;
}

/* The sum of both stamps is no time, but above 0 where one wants to stop. */
static rueda_status exchange_sums(struct met_rank *rank, int peer, size_t bytes)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    const size_t count = bytes / sizeof(int64_t);
    rueda_handle handle;
    rueda_status status;

    (void)peer;
    args.kind = RUEDA_ALLREDUCE;
    args.reduction = RUEDA_SUM;
    args.set = set_of_host(rank);
    args.flags = RUEDA_ORDERED;
    args.dtype = RUEDA_INT64;
    args.dims = 1;
    args.shape = &count;
    args.send = rank->out;
    args.recv = rank->in;
    status = rueda_submit(rank->ctx, &args, &handle);
    return status == RUEDA_OK ? rueda_wait(rank->ctx, handle, -1) : status;
}

struct series {
    int most;
    int warm_ups;
    double seconds; /* that they may take */
    size_t bytes;
    exchange_fn *exchange;
};

/* The median time of an exchange. Both sides stop after the same one. */
static rueda_status measure(struct met_rank *rank, int peer,
                            const struct series *wanted, double *out_median,
                            int64_t *in_out_delta_ns)
{
    const double begin = rueda_tool_clock();
    struct rueda_series times = {0};
    rueda_status status = RUEDA_OK;
    bool is_over = false;

    for (int i = 0; i < wanted->most && status == RUEDA_OK && !is_over; i++) {
        const double start = rueda_tool_clock();
        int64_t delta;

        rank->out->is_late = start - begin > wanted->seconds;
        rank->out->wall_ns = wall_ns();
        status = wanted->exchange(rank, peer, wanted->bytes);
        delta = wall_ns() - rank->in->wall_ns;
        if (status != RUEDA_OK)
            break;
        if (i < wanted->warm_ups)
            continue;
        rueda_series_add(&times, rueda_tool_clock() - start);
        is_over = rank->out->is_late != 0 || rank->in->is_late != 0;
        if (delta < *in_out_delta_ns)
            *in_out_delta_ns = delta;
    }
    *out_median = rueda_series_median(&times);
    rueda_series_fini(&times);
    return status;
}

/* Measure one way between this rank and a peer: latency with few bytes,
 * bandwidth with many. */
static rueda_status meet(struct met_rank *rank, int peer, const char *way,
                         exchange_fn *exchange)
{
    const struct series short_ones = {SHORT_MOST, SHORT_WARM_UPS, SHORT_SECONDS,
                                      sizeof(struct stamp), exchange};
    const struct series long_ones = {LONG_MOST, LONG_WARM_UPS, LONG_SECONDS,
                                     LONG_BYTES, exchange};
    struct rueda_line line = {.kind = RUEDA_LINE_HALF};
    int64_t delta_ns = INT64_MAX;
    int64_t ignored = INT64_MAX;
    rueda_status status;
    double seconds;

    memcpy(line.half.way, way, strlen(way));
    line.half.rank = rank->rank;
    line.half.peer = peer;
    status = measure(rank, peer, &short_ones, &line.half.latency, &delta_ns);
    if (status != RUEDA_OK)
        return status;
    /* The clocks of a host are one. */
    line.half.delta_ns = exchange == exchange_sums ? 0 : delta_ns;
    status = measure(rank, peer, &long_ones, &seconds, &ignored);
    if (status == RUEDA_OK)
        line.half.bandwidth = (double)LONG_BYTES / seconds;
    say(&line);
    return status;
}

/* The other rank of this host: by collectives where the transport has shared
 * memory, else by messages. */
static rueda_status meet_neighbour(struct met_rank *rank, const char *way,
                                   bool has_memory)
{
    const int peer = rank->rank ^ 1;
    rueda_status status;

    if (!has_memory)
        return meet(rank, peer, way, exchange_messages);
    status = open_set_of_host(rank, peer);
    return status == RUEDA_OK ? meet(rank, peer, way, exchange_sums) : status;
}

/* ---- A job -------------------------------------------------------------- */

/* The first rank of each host meets those of all others. */
static rueda_status go_round(struct met_rank *rank)
{
    const int hosts = rank->size / RUEDA_DOCTOR_RANKS;
    const int host = rank->rank / RUEDA_DOCTOR_RANKS;
    const bool is_first = rank->rank % RUEDA_DOCTOR_RANKS == 0;
    rueda_status status = RUEDA_OK;

    for (int i = 0; i < rueda_pair_rounds(hosts) && status == RUEDA_OK; i++) {
        const int partner = rueda_pair_partner(hosts, i, host);

        if (is_first && partner >= 0)
            status = meet(rank, partner * RUEDA_DOCTOR_RANKS, "tcp",
                          exchange_messages);
    }
    return status;
}

/* Join by this transport, meet my neighbour, and, if it is shared memory, the
 * others too. */
static bool join(struct met_rank *rank, const char *way, bool has_memory)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    struct rueda_line joined = {.kind = RUEDA_LINE_JOINED};
    char error[RUEDA_FINDING_WORDS] = "";
    rueda_status status;

    args.error = error;
    args.error_bytes = sizeof(error);
    setenv("RUEDA_TRANSPORT", way, 1);
    status = rueda_init(&args, &rank->ctx);
    if (status != RUEDA_OK) {
        say_failure(rank->rank,
                    error[0] != '\0' ? error : rueda_status_str(status));
        return false;
    }
    rank->rank = rueda_rank(rank->ctx);
    rank->size = rueda_size(rank->ctx);
    joined.rank = rank->rank;
    say(&joined);
    if (rank->size % RUEDA_DOCTOR_RANKS == 0)
        status = meet_neighbour(rank, way, has_memory);
    if (status == RUEDA_OK && has_memory)
        status = go_round(rank);
    /* A rank that has met all others waits: if it left, ranks that still meet
     * would report it as lost. */
    if (status == RUEDA_OK)
        status = rueda_barrier(rank->ctx);
    if (status != RUEDA_OK)
        say_failure(rank->rank, rueda_error(rank->ctx)[0] != '\0'
                                    ? rueda_error(rank->ctx)
                                    : rueda_status_str(status));
    rueda_shutdown(rank->ctx);
    return status == RUEDA_OK;
}

int rueda_doctor_meet(void)
{
    struct met_rank rank = {.rank = 0};

    rank.out = calloc(1, LONG_BYTES);
    rank.in = calloc(1, LONG_BYTES);
    if (rank.out == NULL || rank.in == NULL)
        say_failure(0, "no memory");
    else if (join(&rank, "shm", true))
        join(&rank, "tcp", false);
    free(rank.out);
    free(rank.in);
    return 0;
}
