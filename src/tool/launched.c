/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `rueda bench` as one rank of a job that another launcher has started: rank 0
 * commands the others by broadcasts.
 *
 *     rank 0                              the others
 *     lead()                              follow()
 *       exchange()   -- broadcast ------>   the command
 *                    both carry it out      (worker.c)
 *                    <------ allgather --   the replies
 *
 * Commands travel through the library that is measured, but never inside a
 * timed part. All ranks make the same collectives in the same order: each
 * command is one broadcast and, unless it is the last, one allgather.
 */
#include "tool/launched.h"

#include <stdio.h>
#include <stdlib.h>

#include "tool/placing.h"
#include "tool/system.h"
#include "tool/worker.h"

struct launched_rank {
    struct rueda_bench_worker worker;
    rueda_ctx *ctx;
};

static bool pass_on(struct launched_rank *rank,
                    struct rueda_control_command *command,
                    struct rueda_text *words)
{
    const rueda_status status =
        rueda_broadcast(rank->ctx, command, sizeof(*command), RUEDA_UINT8, 0);

    if (status == RUEDA_OK)
        return true;
    rueda_text_set(words, "%s: %s", rueda_status_str(status),
                   rueda_error(rank->ctx));
    return false;
}

static bool collect(struct launched_rank *rank, const struct rueda_reply *mine,
                    struct rueda_reply *out_all, struct rueda_text *words)
{
    const rueda_status status =
        rueda_allgather(rank->ctx, mine, out_all, sizeof(*mine), RUEDA_UINT8);

    if (status == RUEDA_OK)
        return true;
    rueda_text_set(words, "%s: %s", rueda_status_str(status),
                   rueda_error(rank->ctx));
    return false;
}

/* Rank 0's end of a command: it is a worker as well. Where a rank has failed
 * the others are told to leave, or they would wait for the next command. */
static bool exchange(struct rueda_crew *crew,
                     const struct rueda_control_command *command,
                     struct rueda_reply *out_replies)
{
    struct launched_rank *rank = crew->exchange_arg;
    struct rueda_control_command copy = *command;
    struct rueda_reply mine;
    bool is_well = pass_on(rank, &copy, &crew->words);

    if (!is_well || command->kind == RUEDA_CONTROL_QUIT)
        return is_well;
    rueda_bench_worker_do(&rank->worker, command, &mine);
    is_well = collect(rank, &mine, out_replies, &crew->words);
    for (int i = 0; i < crew->size && is_well; i++) {
        if (out_replies[i].is_ok)
            continue;
        rueda_text_set(&crew->words, "%s", out_replies[i].words);
        is_well = false;
    }
    if (!is_well) {
        const struct rueda_control_command quit = {.kind = RUEDA_CONTROL_QUIT};

        exchange(crew, &quit, NULL);
        crew->is_up = false;
    }
    return is_well;
}

/* The other ranks: do what rank 0 says until it says quit. */
static bool follow(struct launched_rank *rank, int size,
                   struct rueda_text *words)
{
    struct rueda_reply *all = calloc((size_t)size, sizeof(*all));
    struct rueda_control_command command;
    struct rueda_reply mine;
    bool is_well = all != NULL;

    while (is_well) {
        is_well = pass_on(rank, &command, words);
        if (!is_well || command.kind == RUEDA_CONTROL_QUIT)
            break;
        rueda_bench_worker_do(&rank->worker, &command, &mine);
        is_well = collect(rank, &mine, all, words);
    }
    free(all);
    return is_well;
}

/* Rank 0 coordinates the others through the job itself, so no crew is started.
 */
static bool lead(struct rueda_bench *bench, struct launched_rank *rank)
{
    static struct rueda_crew crew;
    bool is_well;

    for (int i = 0; i < bench->options.peer_count; i++)
        if (bench->options.peers[i] != RUEDA_PEER_MEMCPY)
            fprintf(stderr,
                    "rueda: %s is left out: it is measured only where "
                    "rueda bench starts the ranks itself\n",
                    bench->options.peer_names[i]);
    crew = (struct rueda_crew){
        .name = "rueda",
        .size = bench->np,
        .is_up = true,
        .exchange = exchange,
        .exchange_arg = rank,
        .log_fd = -1,
    };
    snprintf(crew.used, sizeof(crew.used), "%s",
             rank->worker.system->transport);
    bench->sides[bench->side_count++] =
        (struct rueda_side){.name = "rueda", .crew = &crew};
    for (int i = 0; i < bench->options.peer_count; i++)
        if (bench->options.peers[i] == RUEDA_PEER_MEMCPY &&
            rueda_bench_op_has_size(bench->options.op))
            bench->sides[bench->side_count++] = (struct rueda_side){
                .name = "memcpy",
                .crew = &crew,
                .is_copy = true,
            };
    bench->replies = calloc((size_t)bench->np, sizeof(*bench->replies));
    is_well = bench->replies != NULL && rueda_probe_open(&bench->probe) &&
              rueda_bench_report(bench);
    rueda_crew_stop(&crew);
    rueda_bench_fini(bench);
    return is_well;
}

/* Settings are read when the context is made. */
static void set_environment(const struct rueda_bench *bench)
{
    const struct rueda_bench_options *options = &bench->options;
    char algo[96];

    if (options->transport != NULL)
        setenv("RUEDA_TRANSPORT", options->transport, 1);
    if (options->algo == NULL)
        return;
    snprintf(algo, sizeof(algo), "%s:%s",
             rueda_kind_str(rueda_bench_op_kind(options->op)), options->algo);
    setenv("RUEDA_ALGO", algo, 1);
}

/* `rueda bench` under a launcher: every rank of the launcher's job measures. */
int rueda_launched_main(struct rueda_bench *bench)
{
    struct launched_rank rank = {0};
    struct rueda_system *system;
    bool is_well;

    if (bench->options.is_tune || bench->options.host_count > 0 ||
        rueda_bench_crew_kind(bench) == RUEDA_CREW_THREADS) {
        fprintf(stderr, "rueda: --tune, --hosts and --transport loop need a "
                        "rueda bench that starts the ranks itself; unset "
                        "RUEDA_RANK\n");
        return 2;
    }
    set_environment(bench);
    system = rueda_system_rueda(-1, -1, NULL, &bench->words);
    if (system == NULL) {
        fprintf(stderr, "rueda: %s\n", bench->words.chars);
        return EXIT_FAILURE;
    }
    rank.worker.system = system;
    rank.worker.placing = bench->options.placing;
    rank.ctx = rueda_system_ctx(system);
    bench->np = system->size;
    if (bench->np > RUEDA_NP_MAX) {
        rueda_text_set(&bench->words, "at most %d ranks", RUEDA_NP_MAX);
        is_well = false;
    } else {
        is_well = rueda_bench_is_way_right(bench, system->transport);
    }
    if (is_well) {
        is_well = system->rank == 0 ? lead(bench, &rank)
                                    : follow(&rank, bench->np, &bench->words);
    }
    if (!is_well)
        fprintf(stderr, "rueda: %s\n", bench->words.chars);
    rueda_bench_worker_fini(&rank.worker);
    system->ops->close(system);
    return is_well ? EXIT_SUCCESS : EXIT_FAILURE;
}
