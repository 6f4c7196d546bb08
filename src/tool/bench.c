/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `rueda bench` from its options to its table: makes the sides, runs rounds,
 * computes ratios and writes results.
 */
#include "tool/bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/near.h"
#include "job/seat.h"
#include "tool/help.h"
#include "tool/json.h"
#include "tool/launched.h"
#include "tool/library.h"
#include "tool/size.h"
#include "tool/step.h"
#include "tool/table.h"
#include "tool/tune.h"

#define START_S 40.0

rueda_crew_kind rueda_bench_crew_kind(const struct rueda_bench *bench)
{
    const char *transport = bench->options.transport;

    return transport != NULL && strcmp(transport, "loop") == 0
               ? RUEDA_CREW_THREADS
               : RUEDA_CREW_PROCESSES;
}

static bool is_on_tcp(const struct rueda_bench *bench)
{
    const char *transport = bench->options.transport;

    return transport != NULL && strcmp(transport, "tcp") == 0;
}

bool rueda_bench_has_slab(const struct rueda_bench *bench)
{
    const char *transport = bench->options.transport;

    return transport == NULL || strcmp(transport, "auto") == 0;
}

void rueda_bench_work(const struct rueda_bench *bench, size_t bytes,
                      struct rueda_case *out_work)
{
    const struct rueda_bench_options *options = &bench->options;

    *out_work = (struct rueda_case){
        .op = options->op,
        .dtype = options->dtype,
        .reduction = options->reduction,
        .size = bench->np,
        .is_shared = options->is_shared,
    };
    rueda_case_set_bytes(out_work, bytes);
}

void rueda_side_work(const struct rueda_side *side,
                     const struct rueda_case *work, struct rueda_case *out_work)
{
    *out_work = *work;
    out_work->is_shared = work->is_shared && !side->is_private;
    /* Two ranks send as many elements in all collectives that it stands beside:
     * all of them to allreduce, one of two pieces otherwise. */
    if (side->is_raw)
        out_work->op = RUEDA_BENCH_EXCHANGE;
}

/* Is there memory for this size on all sides at once? Where not, the size is
 * left out with a message, and the benchmark goes on. */
bool rueda_bench_fits(struct rueda_bench *bench, const struct rueda_case *work)
{
    char need_text[RUEDA_SIZE_TEXT];
    char free_text[RUEDA_SIZE_TEXT];
    struct rueda_case its;
    size_t need = 0;

    for (int i = 0; i < bench->side_count; i++) {
        const struct rueda_side *side = &bench->sides[i];

        rueda_side_work(side, work, &its);
        if (!side->is_out)
            need += (side->is_copy ? 2 * rueda_case_bytes(&its)
                                   : rueda_case_send_bytes(&its) +
                                         rueda_case_recv_bytes(&its)) *
                    (size_t)bench->np;
    }
    rueda_tool_machine_read(&bench->machine);
    /* A tenth is left to other processes. */
    if (need < bench->machine.memory_free / 10 * 9)
        return true;
    printf("# %zu bytes left out: all sides together need %s, %s are free\n",
           rueda_case_bytes(work), rueda_size_words(need, need_text),
           rueda_size_words(bench->machine.memory_free, free_text));
    return false;
}

/* Add a crew of worker processes under this name; with algo, one that is
 * restricted to that algorithm. */
bool rueda_bench_add(struct rueda_bench *bench, const char *name,
                     rueda_crew_kind kind, const char *algo)
{
    struct rueda_crew *crew = calloc(1, sizeof(*crew));

    if (crew == NULL || bench->side_count == RUEDA_SIDES_MAX) {
        free(crew);
        rueda_text_set(&bench->words, "no room for %s", name);
        return false;
    }
    crew->name = name;
    crew->number = bench->crew_count;
    crew->size = bench->np;
    crew->kind = kind;
    crew->transport = bench->options.transport;
    if (algo != NULL)
        snprintf(crew->algo, sizeof(crew->algo), "%s:%s",
                 rueda_kind_str(rueda_bench_op_kind(bench->options.op)), algo);
    crew->placing = bench->options.placing;
    crew->hosts = bench->options.host_count > 0 ? &bench->options : NULL;
    crew->is_crowded = bench->np > bench->machine.usable;
    if (!rueda_crew_start(crew, &bench->listener, START_S)) {
        rueda_text_set(&bench->words, "%s", crew->words.chars);
        free(crew);
        return false;
    }
    bench->crews[bench->crew_count++] = crew;
    bench->sides[bench->side_count++] =
        (struct rueda_side){.name = name, .crew = crew};
    return true;
}

/* What the ranks of a host call the way that an option asks for: the option
 * names what users know, the library what it does. */
static const char *way_of(const char *transport)
{
    if (strcmp(transport, "shm") == 0)
        return "direct";
    return strcmp(transport, "messages") == 0 ? "shm" : transport;
}

bool rueda_bench_is_way_right(struct rueda_bench *bench, const char *used)
{
    const char *wanted = bench->options.transport;

    if (bench->np < 2 || wanted == NULL || strcmp(wanted, "auto") == 0 ||
        strcmp(way_of(wanted), used) == 0)
        return true;
    rueda_text_set(&bench->words, "the ranks were to use %s, and use %s",
                   wanted, used);
    return false;
}

/* Start the ranks of a peer that has some of its own. */
static bool start_peer(struct rueda_bench *bench, rueda_peer peer,
                       const char *name)
{
    struct rueda_side *side = &bench->sides[bench->side_count];
    rueda_crew_kind kind = rueda_bench_crew_kind(bench);
    const char *algo = bench->options.algo;

    switch (peer) {
    case RUEDA_PEER_OPENMPI:
        return rueda_bench_add(bench, name, RUEDA_CREW_OPENMPI, NULL);
    case RUEDA_PEER_MPICH:
        if (bench->options.host_count == 0 && !is_on_tcp(bench))
            return rueda_bench_add(bench, name, RUEDA_CREW_MPICH, NULL);
        rueda_text_set(&bench->words, "it is measured in shared memory only, "
                                      "and these ranks have a network");
        return false;
    case RUEDA_PEER_RAW:
        kind = RUEDA_CREW_RAW;
        algo = NULL;
        break;
    case RUEDA_PEER_ALGO:
        algo = strcmp(name, "auto") != 0 ? name : NULL;
        break;
    default:
        break;
    }
    if (!rueda_bench_add(bench, name, kind, algo))
        return false;
    side->is_raw = peer == RUEDA_PEER_RAW;
    side->is_algo = peer == RUEDA_PEER_ALGO;
    side->is_private = peer == RUEDA_PEER_PRIVATE;
    return true;
}

/* A peer that cannot run is reported, and the run continues without it. */
static bool add_peer(struct rueda_bench *bench, rueda_peer peer,
                     const char *name)
{
    /* What has no size has no buffers to copy, or to be elsewhere. */
    if (!rueda_bench_op_has_size(bench->options.op) &&
        (peer == RUEDA_PEER_MEMCPY || peer == RUEDA_PEER_PRIVATE))
        return true;
    if (peer == RUEDA_PEER_MEMCPY) {
        bench->sides[bench->side_count++] = (struct rueda_side){
            .name = name,
            .crew = bench->sides[0].crew,
            .is_copy = true,
        };
        return true;
    }
    if (start_peer(bench, peer, name))
        return true;
    if (bench->listener.signal != 0)
        return false;
    fprintf(stderr, "rueda: %s is left out: %s\n", name, bench->words.chars);
    bench->words.chars[0] = '\0';
    return true;
}

/* The first side has to run, and by the transport that was asked for; a peer
 * that cannot is left out. */
static bool start_sides(struct rueda_bench *bench)
{
    const struct rueda_bench_options *options = &bench->options;

    if (options->is_tune)
        return rueda_tune_start(bench);
    if (!rueda_bench_add(bench, "rueda", rueda_bench_crew_kind(bench),
                         options->algo) ||
        !rueda_bench_is_way_right(bench, bench->sides[0].crew->used))
        return false;
    for (int i = 0; i < options->peer_count; i++)
        if (!add_peer(bench, options->peers[i], options->peer_names[i]))
            return false;
    return true;
}

/* Every size from min on, or the one row of what has no size. */
static bool sweep(struct rueda_bench *bench, struct rueda_json *json)
{
    const struct rueda_bench_options *options = &bench->options;
    const bool has_size = rueda_bench_op_has_size(options->op);
    const size_t factor = (size_t)options->factor;
    struct rueda_case work;
    struct rueda_row row;
    size_t last = 0;

    for (size_t bytes = options->min_bytes; bytes <= options->max_bytes;
         bytes *= factor) {
        rueda_bench_work(bench, bytes, &work);
        if ((!has_size || rueda_case_bytes(&work) != last) &&
            rueda_bench_fits(bench, &work)) {
            if (!rueda_measure(bench, &work, &row))
                return false;
            if (options->is_tune)
                rueda_tune_row(bench, &row);
            else
                rueda_table_row(bench, &row);
            rueda_json_row(json, bench, &row);
        }
        last = rueda_case_bytes(&work);
        if (!has_size || bytes > options->max_bytes / factor)
            break;
    }
    return true;
}

/* Run all sizes, print the table, and write the JSON file and the tuning if
 * they are asked for. */
bool rueda_bench_report(struct rueda_bench *bench)
{
    struct rueda_json json = {0};
    bool is_well;

    if (bench->options.json != NULL &&
        !rueda_json_open(&json, bench->options.json)) {
        rueda_text_set(&bench->words, "%s: %s", bench->options.json,
                       strerror(errno));
        return false;
    }
    rueda_table_head(bench);
    is_well = sweep(bench, &json);
    if (is_well)
        rueda_table_foot(bench);
    if (is_well && bench->options.is_tune)
        is_well = rueda_tune_finish(bench);
    if (!rueda_json_close(&json) && is_well) {
        rueda_text_set(&bench->words, "%s: %s", bench->options.json,
                       strerror(errno));
        is_well = false;
    }
    return is_well;
}

void rueda_bench_fini(struct rueda_bench *bench)
{
    for (int i = 0; i < bench->side_count; i++) {
        rueda_series_fini(&bench->sides[i].times);
        rueda_series_fini(&bench->sides[i].ratios);
    }
    for (int i = 0; i < bench->crew_count; i++) {
        rueda_crew_stop(bench->crews[i]);
        free(bench->crews[i]);
    }
    rueda_probe_close(&bench->probe);
    free(bench->replies);
}

/* A signal is not a failure of the benchmark: its exit code says which it was.
 */
static int finish(struct rueda_bench *bench, bool is_well)
{
    const int signal = bench->listener.signal;

    fflush(stdout);
    rueda_bench_fini(bench);
    if (signal != 0) {
        fprintf(stderr, "rueda: ended by signal %d (%s)\n", signal,
                strsignal(signal));
        return 128 + signal;
    }
    if (!is_well)
        fprintf(stderr, "rueda: %s\n", bench->words.chars);
    return is_well ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* All ranks are ours: start them. */
static int coordinate(struct rueda_bench *bench)
{
    bool is_well = rueda_crew_listener_open(
        &bench->listener, bench->options.host_count > 0, &bench->words);

    if (!is_well)
        return finish(bench, false);
    is_well = start_sides(bench) && rueda_bench_report(bench);
    rueda_crew_listener_close(&bench->listener);
    return finish(bench, is_well);
}

/* An unknown algorithm is a mistake on the command line too. */
static bool is_algo_known(struct rueda_bench *bench, const char *algo)
{
    const char *names[RUEDA_TOOL_LIBRARY_ALGOS + 1];
    const char *near;

    rueda_tool_library_algos(rueda_bench_op_kind(bench->options.op),
                             rueda_bench_has_slab(bench),
                             bench->options.host_count > 1, names);
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], algo) == 0)
            return true;
    rueda_text_set(&bench->words, "no algorithm '%.40s' can do this", algo);
    near = rueda_near_match(algo, names);
    if (near != NULL) {
        rueda_text_add(&bench->words, "; did you mean '%s'?", near);
        return false;
    }
    for (int i = 0; names[i] != NULL; i++)
        rueda_text_add(&bench->words, "%s %s", i == 0 ? "; there are" : ",",
                       names[i]);
    return false;
}

static bool are_algos_known(struct rueda_bench *bench)
{
    const struct rueda_bench_options *options = &bench->options;

    if (options->algo != NULL && !is_algo_known(bench, options->algo))
        return false;
    for (int i = 0; i < options->peer_count; i++)
        if (options->peers[i] == RUEDA_PEER_ALGO &&
            strcmp(options->peer_names[i], "auto") != 0 &&
            !is_algo_known(bench, options->peer_names[i]))
            return false;
    return true;
}

/* `rueda bench`: the options, then either as a rank that a launcher started, or
 * as the coordinator of crews of its own. */
int rueda_bench_main(int argc, char **argv)
{
    struct rueda_bench bench = {.probe = {.fd = -1}};
    struct rueda_seat_query query;
    struct rueda_config config;
    struct rueda_seat seat;

    if (argc > 0 && strcmp(argv[0], "step") == 0)
        return rueda_step_main(argc - 1, argv + 1);
    if (!rueda_bench_options_parse(argc, argv, &bench.options, &bench.words) ||
        !are_algos_known(&bench)) {
        fprintf(stderr, "rueda: %s (see 'rueda bench --help')\n",
                bench.words.chars);
        return 2;
    }
    if (bench.options.is_help) {
        fputs(rueda_bench_help(), stdout);
        return EXIT_SUCCESS;
    }
    if (rueda_config_load(&config, &bench.words) != RUEDA_OK) {
        fprintf(stderr, "rueda: %s\n", bench.words.chars);
        return EXIT_FAILURE;
    }
    rueda_tool_machine_read(&bench.machine);
    bench.np = bench.options.np;
    if (bench.np == 0)
        bench.np = bench.machine.usable < 2 ? 2 : bench.machine.usable;
    if (bench.np > RUEDA_NP_MAX)
        bench.np = RUEDA_NP_MAX;
    rueda_seat_query_init(&query);
    if (rueda_seat_find(&query, &seat, &bench.words) != RUEDA_OK) {
        fprintf(stderr, "rueda: %s\n", bench.words.chars);
        return EXIT_FAILURE;
    }
    /* The shell of srun --pty or mpirun -np 1 is a job of one, in which there
     * is nothing to measure. */
    if (seat.size > 1)
        return rueda_launched_main(&bench);
    bench.replies = calloc((size_t)bench.np, sizeof(*bench.replies));
    if (bench.replies == NULL || !rueda_probe_open(&bench.probe)) {
        fprintf(stderr, "rueda: no memory: %s\n", strerror(errno));
        free(bench.replies);
        return EXIT_FAILURE;
    }
    return coordinate(&bench);
}
