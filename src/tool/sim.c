/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `rueda sim`: simulate each number of ranks with each algorithm, several at a
 * time in threads of their own, the largest first, and print the rows in order.
 *
 *     rows     | 1 auto | 2 ring | 2 hier | ... | 256 hier |
 *                printed from here on ->     <- simulated from here on
 *
 * The largest row takes longest, so it must not be the last to begin. A row
 * belongs to the thread that simulates it until is_done says that it is ready;
 * the main thread only prints. Each simulation is one of its own and depends on
 * nothing but its settings and the seed, so the number of threads changes no
 * figure.
 */
#include "tool/sim.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/near.h"
#include "launch/limit.h"
#include "os/clock.h"
#include "os/machine.h"
#include "os/thread.h"
#include "tool/help.h"

/* Of a rank: its doorbell and its poller. */
#define DESCRIPTORS 2

struct sweep {
    struct rueda_tool_sim_report report;
    pthread_mutex_t lock; /* guards: */
    pthread_cond_t changed;
    bool *is_done; /* [count] */
    int next;      /* rows are begun from the last to the first */
    int done;
    bool shows; /* how far it is, on a terminal */
};

/* ---- One row ---------------------------------------------------------- */

/* The words of the command line as a training. What it points to lives as long
 * as the options. */
static rueda_status set_training(const struct sweep *sweep,
                                 const struct rueda_tool_sim_row *row,
                                 struct rueda_training *training,
                                 struct rueda_text *words)
{
    const struct rueda_tool_sim_options *options = sweep->report.options;
    struct rueda_sim_net net;
    char rule[64];

    rueda_tool_sim_net_of(&options->net, row->ranks, &net);
    rueda_training_default(training, sweep->report.model, &net);
    training->compression = options->compression;
    training->compute_ns = row->compute_ms * 1e6;
    training->jitter = options->jitter;
    training->steps = options->steps;
    training->seed = options->seed;
    training->fusion_bytes = options->fusion_bytes;
    if (options->overhead_ns >= 0.0)
        training->overhead_ns = (uint64_t)options->overhead_ns;
    if (options->work_bytes_per_s > 0.0)
        training->work_bytes_per_s = options->work_bytes_per_s;
    training->stragglers = options->stragglers;
    training->straggler_count = options->straggler_count;
    training->faults = options->faults;
    training->fault_count = options->fault_count;
    if (strcmp(row->algo, "auto") == 0)
        return RUEDA_OK;
    snprintf(rule, sizeof(rule), "allreduce:%s", row->algo);
    return rueda_select_parse(&training->select, rule, words);
}

static void simulate(const struct sweep *sweep, struct rueda_tool_sim_row *row)
{
    const int64_t began = rueda_clock_ns();
    struct rueda_training training;

    row->status = set_training(sweep, row, &training, &row->words);
    if (row->status == RUEDA_OK)
        row->status = rueda_training_run(&training, &row->result, &row->words);
    row->wall_s = (double)(rueda_clock_ns() - began) / 1e9;
}

/* ---- Threads ---------------------------------------------------------- */

/* The first rows are the last to be ready. Under the lock. */
static void show(const struct sweep *sweep)
{
    if (sweep->shows && sweep->done < sweep->report.count)
        fprintf(stderr, "\r%d of %d simulated", sweep->done,
                sweep->report.count);
}

static void hide(const struct sweep *sweep)
{
    if (sweep->shows)
        fputs("\r\033[K", stderr);
}

/* One thread: rows from the last to the first, until there are none. Simulating
 * is done without the lock. */
static void *work(void *arg)
{
    struct sweep *sweep = arg;

    pthread_mutex_lock(&sweep->lock);
    while (sweep->next >= 0) {
        const int i = sweep->next--;

        pthread_mutex_unlock(&sweep->lock);
        simulate(sweep, &sweep->report.rows[i]);
        pthread_mutex_lock(&sweep->lock);
        sweep->is_done[i] = true;
        sweep->done++;
        show(sweep);
        pthread_cond_broadcast(&sweep->changed);
    }
    pthread_mutex_unlock(&sweep->lock);
    return NULL;
}

static void print_rows(struct sweep *sweep)
{
    rueda_tool_sim_head(&sweep->report);
    fflush(stdout);
    for (int i = 0; i < sweep->report.count; i++) {
        pthread_mutex_lock(&sweep->lock);
        while (!sweep->is_done[i])
            pthread_cond_wait(&sweep->changed, &sweep->lock);
        hide(sweep);
        rueda_tool_sim_print(&sweep->report, &sweep->report.rows[i]);
        fflush(stdout);
        pthread_mutex_unlock(&sweep->lock);
    }
}

/* As many as cores, rows, or --jobs, whichever are fewest. */
static int job_count(const struct sweep *sweep)
{
    struct rueda_cpus cpus;
    int jobs = sweep->report.options->jobs;

    if (jobs == 0) {
        rueda_machine_cpus(&cpus);
        jobs = rueda_cpus_count(&cpus);
    }
    if (jobs > sweep->report.count)
        jobs = sweep->report.count;
    return jobs < 1                     ? 1
           : jobs > RUEDA_TOOL_SIM_JOBS ? RUEDA_TOOL_SIM_JOBS
                                        : jobs;
}

/* Ranks that end by a fault that was asked for are a result; any other failure
 * of a row is one of the command. */
static int run_all(struct sweep *sweep)
{
    pthread_t threads[RUEDA_TOOL_SIM_JOBS];
    const int jobs = job_count(sweep);
    int started = 0;

    pthread_mutex_init(&sweep->lock, NULL);
    pthread_cond_init(&sweep->changed, NULL);
    sweep->next = sweep->report.count - 1;
    sweep->shows = isatty(STDERR_FILENO);
    rueda_limit_need(jobs * DESCRIPTORS *
                     rueda_sim_net_ranks(&sweep->report.options->net));
    while (started < jobs &&
           rueda_thread_start(&threads[started], work, sweep) == RUEDA_OK)
        started++;
    if (started == 0)
        work(sweep);
    print_rows(sweep);
    for (int i = 0; i < started; i++)
        rueda_thread_join(threads[i]);
    pthread_cond_destroy(&sweep->changed);
    pthread_mutex_destroy(&sweep->lock);
    for (int i = 0; i < sweep->report.count; i++) {
        const struct rueda_tool_sim_row *row = &sweep->report.rows[i];

        if (row->status != RUEDA_OK ||
            (row->result.status != RUEDA_OK &&
             sweep->report.options->fault_count == 0))
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

/* ---- Rows ------------------------------------------------------------- */

/* `hier` is for several hosts, and one rank has nothing to choose. */
static bool makes_sense(const char *algo, const struct rueda_sim_net *net)
{
    if (rueda_sim_net_ranks(net) == 1)
        return strcmp(algo, "auto") == 0;
    return strcmp(algo, "hier") != 0 || net->hosts > 1;
}

/* From --compute-ms, else from the model. */
static double compute_ms(const struct sweep *sweep, int ranks)
{
    const double ms = rueda_tool_sim_compute_ms(sweep->report.options, ranks);

    return ms >= 0.0 ? ms : sweep->report.model->compute_ns / 1e6;
}

/* A number of ranks for which no algorithm makes sense still gets a row, with
 * the library's own choice. */
static bool list_rows(struct sweep *sweep)
{
    const struct rueda_tool_sim_options *options = sweep->report.options;
    const char *const *all = rueda_tool_sim_algos();
    const char *algos[RUEDA_TOOL_SIM_ALGOS + 1] = {NULL};
    int count = 0;

    for (int i = 0; i < options->algo_count; i++)
        algos[i] = options->algos[i];
    if (options->algo_count == 0)
        for (int i = 0; all[i] != NULL; i++)
            algos[i] = all[i];
    sweep->report.rows =
        calloc((size_t)options->point_count * RUEDA_TOOL_SIM_ALGOS,
               sizeof(*sweep->report.rows));
    sweep->is_done = calloc((size_t)options->point_count * RUEDA_TOOL_SIM_ALGOS,
                            sizeof(*sweep->is_done));
    if (sweep->report.rows == NULL || sweep->is_done == NULL)
        return false;
    for (int i = 0; i < options->point_count; i++) {
        struct rueda_sim_net net;
        int of_point = 0;

        rueda_tool_sim_net_of(&options->net, options->points[i], &net);
        for (int k = 0; algos[k] != NULL; k++) {
            const bool is_last = algos[k + 1] == NULL;

            if (!makes_sense(algos[k], &net) && !(is_last && of_point == 0))
                continue;
            of_point++;
            sweep->report.rows[count++] = (struct rueda_tool_sim_row){
                .compute_ms = compute_ms(sweep, options->points[i]),
                .ranks = options->points[i],
                .hosts = net.hosts,
                .algo = makes_sense(algos[k], &net) ? algos[k] : "auto",
            };
        }
    }
    sweep->report.count = count;
    return true;
}

/* Lines of a number of ranks and the milliseconds of a step. */
static bool read_measured(struct sweep *sweep)
{
    const char *path = sweep->report.options->measured;
    FILE *file = fopen(path, "re");
    char line[256];
    int number = 0;

    if (file == NULL) {
        fprintf(stderr, "rueda sim: %s: %s\n", path, strerror(errno));
        return false;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        int ranks;
        double ms;
        char more;

        number++;
        line[strcspn(line, "#\n")] = '\0';
        if (line[strspn(line, " \t\r")] == '\0')
            continue;
        if (sscanf(line, "%d %lf %c", &ranks, &ms, &more) != 2 || !(ms > 0.0)) {
            fprintf(stderr,
                    "rueda sim: %s: line %d: expected a number of ranks and "
                    "the milliseconds of a step\n",
                    path, number);
            fclose(file);
            return false;
        }
        for (int i = 0; i < sweep->report.count; i++)
            if (sweep->report.rows[i].ranks == ranks)
                sweep->report.rows[i].measured_ms = ms;
    }
    fclose(file);
    return true;
}

/* ---- The command ------------------------------------------------------ */

static int list_models(void)
{
    for (int i = 0; rueda_model_names[i] != NULL; i++) {
        struct rueda_text ignored = {""};
        struct rueda_model model;

        if (rueda_model_parse(rueda_model_text(rueda_model_names[i]), &model,
                              &ignored) != RUEDA_OK)
            return EXIT_FAILURE;
        printf("%-12s %4d tensors  %12.0f parameters  %7.1f ms a step of %g "
               "%ss\n",
               model.name, model.gradient_count, model.elements,
               model.compute_ns / 1e6, model.batch, model.sample);
        rueda_model_fini(&model);
    }
    return EXIT_SUCCESS;
}

/* By name, or from a file. A word without a slash or a point that is no name is
 * a mistyped one. */
static bool find_model(const char *word, struct rueda_model *out)
{
    const char *text = rueda_model_text(word);
    struct rueda_text error = {""};
    const char *near;

    if (text != NULL && rueda_model_parse(text, out, &error) == RUEDA_OK)
        return true;
    if (text == NULL && rueda_model_read(word, out, &error) == RUEDA_OK)
        return true;
    near = rueda_near_match(word, rueda_model_names);
    fprintf(stderr, "rueda sim: --model: %s", error.chars);
    if (text == NULL && near != NULL && strpbrk(word, "/.") == NULL)
        fprintf(stderr, "; did you mean '%s'?", near);
    fputs(" (rueda sim --list-models)\n", stderr);
    return false;
}

static int report_files(const struct rueda_tool_sim_report *report)
{
    const struct rueda_tool_sim_options *options = report->options;
    int code = EXIT_SUCCESS;

    if (options->json != NULL && !rueda_tool_sim_json(report, options->json)) {
        fprintf(stderr, "rueda sim: %s: %s\n", options->json, strerror(errno));
        code = EXIT_FAILURE;
    }
    if (options->plot != NULL && !rueda_tool_sim_plot(report, options->plot)) {
        fprintf(stderr, "rueda sim: %s: %s\n", options->plot, strerror(errno));
        code = EXIT_FAILURE;
    }
    return code;
}

static int sweep_all(const struct rueda_tool_sim_options *options,
                     const struct rueda_model *model)
{
    struct sweep sweep = {
        .report = {.options = options, .model = model},
    };
    int code = EXIT_FAILURE;

    sweep.report.alone_ms = compute_ms(&sweep, 1);
    if (!(sweep.report.alone_ms > 0.0)) {
        fputs("rueda sim: the model does not say how long a step takes; add "
              "--compute-ms\n",
              stderr);
        return 2;
    }
    if (!list_rows(&sweep))
        fputs("rueda sim: no memory\n", stderr);
    else if (options->measured == NULL || read_measured(&sweep))
        code = run_all(&sweep);
    if (sweep.report.rows != NULL && code == EXIT_SUCCESS)
        code = report_files(&sweep.report);
    free(sweep.report.rows);
    free(sweep.is_done);
    return code;
}

int rueda_tool_sim_main(int argc, char **argv)
{
    struct rueda_tool_sim_options options;
    struct rueda_text words = {""};
    struct rueda_model model;
    int code = EXIT_SUCCESS;

    if (!rueda_tool_sim_options_parse(argc, argv, &options, &words)) {
        fprintf(stderr, "rueda sim: %s (see 'rueda sim --help')\n",
                words.chars);
        return 2;
    }
    if (options.is_help) {
        fputs(rueda_tool_sim_help(), stdout);
        return EXIT_SUCCESS;
    }
    if (options.is_list)
        return list_models();
    if (!find_model(options.model, &model))
        return 2;
    if (options.is_show && rueda_model_text(options.model) != NULL)
        fputs(rueda_model_text(options.model), stdout);
    else if (options.is_show)
        printf("model %s: %d tensors, %.0f parameters\n", model.name,
               model.gradient_count, model.elements);
    else
        code = sweep_all(&options, &model);
    rueda_model_fini(&model);
    return code;
}
