/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step of many tensors, by name, beside the same bytes in one bare
 * allreduce; then one small and one large tensor, and ranks that do nothing.
 * Ways are measured in turn, every answer is checked, and a time is that of the
 * slowest rank. Cores of a virtual machine move apart and together, for seconds
 * at a time: so ways are compared within a round, and the median of the rounds
 * is reported.
 */
#include "tool/step.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "base/number.h"
#include "job/seat.h"
#include "tool/clock.h"
#include "tool/help.h"
#include "tool/json.h"
#include "tool/stats.h"

#define LARGE_BYTES ((size_t)128 << 20)
#define SMALL_BYTES ((size_t)8)
#define WARM_ROUNDS 10

struct options {
    int np;
    int tensors;
    size_t bytes; /* of each */
    int rounds;
    int large_rounds;
    int idle_s;
    const char *json;
    bool is_help;
};

/* One rank. */
struct step {
    struct options options;
    rueda_ctx *ctx;
    int rank;
    int size;
    float *memory; /* all tensors in a row */
    size_t count;  /* elements of all */
    char (*names)[24];
    rueda_handle *handles;
    char words[1024]; /* why it failed */
};

/* Medians over the rounds. */
struct result {
    const char *name;
    double named_us;
    double bare_us;
    /* By name less bare, within each round: what names cost. */
    double beyond_us;
    double ratio;
};

static bool is_well(struct step *self, rueda_status status, const char *what)
{
    if (status == RUEDA_OK)
        return true;
    if (self->words[0] == '\0')
        snprintf(self->words, sizeof(self->words), "rank %d: %s: %s: %s",
                 self->rank, what, rueda_status_str(status),
                 rueda_error(self->ctx)[0] != '\0' ? rueda_error(self->ctx)
                                                   : rueda_last_error());
    return false;
}

/* ---- Answers ------------------------------------------------------------ */

/* Small whole numbers, so that sums over the ranks are exact in a float. */
static float value_of(size_t index, int rank)
{
    return (float)(index % 31 + (size_t)rank);
}

static void fill(struct step *self, size_t count)
{
    for (size_t i = 0; i < count; i++)
        self->memory[i] = value_of(i, self->rank);
}

/* Every element must be what arithmetic says. */
static bool check(struct step *self, size_t count)
{
    const float shift =
        (float)self->size * (float)(self->size - 1) / 2; /* of the ranks */

    for (size_t i = 0; i < count; i++) {
        float wanted = (float)self->size * value_of(i, 0) + shift;

        if (self->memory[i] == wanted)
            continue;
        snprintf(self->words, sizeof(self->words),
                 "rank %d: element %zu is %g and should be %g", self->rank, i,
                 (double)self->memory[i], (double)wanted);
        return false;
    }
    return true;
}

/* ---- Ways to reduce ------------------------------------------------------ */

/* Tensors of equal size, the last one first as in a backward pass. */
static bool run_named(struct step *self, int tensors, size_t count)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;

    args.kind = RUEDA_ALLREDUCE;
    args.dims = 1;
    args.shape = &count;
    for (int i = tensors - 1; i >= 0; i--) {
        args.name = self->names[i];
        args.send = self->memory + (size_t)i * count;
        args.recv = self->memory + (size_t)i * count;
        if (!is_well(self, rueda_submit(self->ctx, &args, &self->handles[i]),
                     "submit"))
            return false;
    }
    for (int i = 0; i < tensors; i++)
        if (!is_well(self, rueda_wait(self->ctx, self->handles[i], -1), "wait"))
            return false;
    return true;
}

static bool run_bare(struct step *self, int tensors, size_t count)
{
    const size_t all = (size_t)tensors * count;

    return is_well(self,
                   rueda_allreduce(self->ctx, self->memory, self->memory, all,
                                   RUEDA_FLOAT32, RUEDA_SUM),
                   "allreduce");
}

/* One turn: the time of the slowest rank, or a negative one. */
static double time_once(struct step *self, int tensors, size_t count,
                        bool is_named)
{
    const size_t all = (size_t)tensors * count;
    double begun;
    double took;

    fill(self, all);
    if (!is_well(self, rueda_barrier(self->ctx), "barrier"))
        return -1;
    begun = rueda_tool_clock();
    if (!(is_named ? run_named(self, tensors, count)
                   : run_bare(self, tensors, count)))
        return -1;
    took = rueda_tool_clock() - begun;
    if (!check(self, all) ||
        !is_well(self,
                 rueda_allreduce(self->ctx, &took, &took, 1, RUEDA_FLOAT64,
                                 RUEDA_MAX),
                 "allreduce"))
        return -1;
    return took;
}

/* Both ways, each of them first in every other round; seconds by name in
 * took[1], bare in took[0]. */
static bool time_both(struct step *self, int tensors, size_t count, int round,
                      double took[2])
{
    for (int i = 0; i < 2; i++) {
        const int way = (i + round + WARM_ROUNDS) % 2;

        took[way] = time_once(self, tensors, count, way == 1);
        if (took[way] < 0)
            return false;
    }
    return true;
}

enum {
    NAMED,
    BARE,
    BEYOND,
    RATIO,
    COLUMNS
};

/* Named and ordered operations in turn, round after round. */
static bool compare(struct step *self, const char *name, int tensors,
                    size_t count, struct result *out)
{
    const int rounds = (size_t)tensors * count * sizeof(float) < LARGE_BYTES
                           ? self->options.rounds
                           : self->options.large_rounds;
    struct rueda_series series[COLUMNS] = {{0}};
    bool is_good = true;

    for (int i = -WARM_ROUNDS; i < rounds && is_good; i++) {
        double took[2];

        is_good = time_both(self, tensors, count, i, took);
        if (i < 0 || !is_good)
            continue;
        is_good =
            rueda_series_add(&series[NAMED], took[1] * 1e6) &&
            rueda_series_add(&series[BARE], took[0] * 1e6) &&
            rueda_series_add(&series[BEYOND], (took[1] - took[0]) * 1e6) &&
            rueda_series_add(&series[RATIO], took[1] / took[0]);
    }
    *out = (struct result){
        .name = name,
        .named_us = rueda_series_median(&series[NAMED]),
        .bare_us = rueda_series_median(&series[BARE]),
        .beyond_us = rueda_series_median(&series[BEYOND]),
        .ratio = rueda_series_median(&series[RATIO]),
    };
    for (int i = 0; i < COLUMNS; i++)
        rueda_series_fini(&series[i]);
    return is_good;
}

/* ---- Doing nothing ------------------------------------------------------- */

static double cpu_ms(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
}

/* CPU time of the rank that used most while none did anything. */
static bool be_idle(struct step *self, double *out_ms)
{
    double ms = cpu_ms();

    sleep((unsigned)self->options.idle_s);
    ms = cpu_ms() - ms;
    if (!is_well(
            self,
            rueda_allreduce(self->ctx, &ms, &ms, 1, RUEDA_FLOAT64, RUEDA_MAX),
            "allreduce"))
        return false;
    *out_ms = ms;
    return true;
}

/* ---- Report ----------------------------------------------------------- */

static void print_rows(const struct step *self, const struct result *rows,
                       int count, double idle_ms)
{
    const char *note = NULL;

    printf("# %d ranks, times of the slowest rank in us, medians of %d rounds, "
           "answers checked\n",
           self->size, self->options.rounds);
    printf("%-28s %12s %12s %12s %8s\n", "what", "by name", "bare", "beyond",
           "ratio");
    for (int i = 0; i < count; i++)
        printf("%-28s %12.1f %12.1f %12.1f %8.2f\n", rows[i].name,
               rows[i].named_us, rows[i].bare_us, rows[i].beyond_us,
               rows[i].ratio);
    /* By name a step does all that it does bare. */
    for (int i = 0; i < count && note == NULL; i++)
        note = rueda_note_on_noise(rows[i].beyond_us);
    if (note != NULL)
        printf("# %s\n", note);
    if (self->options.idle_s > 0)
        printf("idle for %d s: %.1f ms of CPU at most\n", self->options.idle_s,
               idle_ms);
}

/* The rows as a JSON file. */
static bool write_json(struct step *self, const struct result *rows, int count,
                       double idle_ms)
{
    FILE *file = fopen(self->options.json, "we");

    if (file == NULL)
        goto err;
    fprintf(file,
            "{\"ranks\": %d, \"tensors\": %d, \"bytes\": %zu, \"rows\": [",
            self->size, self->options.tensors, self->options.bytes);
    for (int i = 0; i < count; i++) {
        fprintf(file, "%s{\"what\": ", i > 0 ? ", " : "");
        rueda_json_text(file, rows[i].name);
        fprintf(file, ", \"named_us\": ");
        rueda_json_number(file, rows[i].named_us);
        fprintf(file, ", \"bare_us\": ");
        rueda_json_number(file, rows[i].bare_us);
        fprintf(file, ", \"beyond_us\": ");
        rueda_json_number(file, rows[i].beyond_us);
        fprintf(file, ", \"ratio\": ");
        rueda_json_number(file, rows[i].ratio);
        fprintf(file, "}");
    }
    fprintf(file, "], \"idle_cpu_ms\": ");
    rueda_json_number(file, idle_ms);
    fprintf(file, "}\n");
    if (fclose(file) == 0)
        return true;
err:
    snprintf(self->words, sizeof(self->words), "%s: %s", self->options.json,
             strerror(errno));
    return false;
}

/* ---- A rank ----------------------------------------------------------- */

/* The three rows of the table: many tensors, one small one, one large one. */
static bool measure(struct step *self)
{
    const size_t count = self->options.bytes / sizeof(float);
    struct result rows[3];
    char title[64];
    double idle_ms = 0;
    int row_count = 0;

    snprintf(title, sizeof(title), "%d tensors of %zu bytes",
             self->options.tensors, self->options.bytes);
    if (!compare(self, title, self->options.tensors, count,
                 &rows[row_count++]) ||
        !compare(self, "one of 8 bytes", 1, SMALL_BYTES / sizeof(float),
                 &rows[row_count++]))
        return false;
    if (self->options.large_rounds > 0 &&
        !compare(self, "one of 128 MiB", 1, LARGE_BYTES / sizeof(float),
                 &rows[row_count++]))
        return false;
    if (self->options.idle_s > 0 && !be_idle(self, &idle_ms))
        return false;
    if (self->rank != 0)
        return true;
    print_rows(self, rows, row_count, idle_ms);
    return self->options.json == NULL ||
           write_json(self, rows, row_count, idle_ms);
}

/* Memory for the largest row, and a name and a handle for each tensor. */
static bool open_memory(struct step *self)
{
    size_t bytes = (size_t)self->options.tensors * self->options.bytes;

    if (self->options.large_rounds > 0 && bytes < LARGE_BYTES)
        bytes = LARGE_BYTES;
    if (bytes < SMALL_BYTES)
        bytes = SMALL_BYTES;
    self->memory = malloc(bytes);
    self->names = calloc((size_t)self->options.tensors, sizeof(*self->names));
    self->handles =
        calloc((size_t)self->options.tensors, sizeof(*self->handles));
    if (self->memory == NULL || self->names == NULL || self->handles == NULL) {
        snprintf(self->words, sizeof(self->words), "no memory for %zu bytes",
                 bytes);
        return false;
    }
    for (int i = 0; i < self->options.tensors; i++)
        snprintf(self->names[i], sizeof(self->names[i]), "layer.%d.grad", i);
    return true;
}

/* rank and size -1: as a launcher says. */
static int be_rank(const struct options *options, int rank, int size,
                   const char *job)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    struct step self = {.options = *options};
    bool is_good = false;

    args.rank = rank;
    args.size = size;
    args.job = job;
    args.error = self.words;
    args.error_bytes = sizeof(self.words);
    if (rueda_init(&args, &self.ctx) == RUEDA_OK) {
        self.rank = rueda_rank(self.ctx);
        self.size = rueda_size(self.ctx);
        is_good = open_memory(&self) && measure(&self);
        if (is_good)
            rueda_barrier(self.ctx);
        rueda_shutdown(self.ctx);
    }
    if (!is_good)
        fprintf(stderr, "rueda: %s\n", self.words);
    free(self.memory);
    free(self.names);
    free(self.handles);
    return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* All ranks as children; the first that fails decides. They see each other's
 * deaths, so none stays behind. */
static int be_parent(const struct options *options)
{
    const pid_t me = getpid();
    char job[32];
    int code = EXIT_SUCCESS;
    int status;

    snprintf(job, sizeof(job), "step-%d", (int)me);
    for (int rank = 0; rank < options->np; rank++) {
        pid_t child = fork();

        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != me)
                _exit(EXIT_FAILURE);
            exit(be_rank(options, rank, options->np, job));
        }
        if (child < 0) {
            fprintf(stderr, "rueda: fork: %s\n", strerror(errno));
            code = EXIT_FAILURE;
            break;
        }
    }
    while (wait(&status) > 0)
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            code = EXIT_FAILURE;
    return code;
}

/* ---- Command line ----------------------------------------------------- */

static bool parse_count(const char *text, int least, int most, int *out)
{
    int value;

    if (!rueda_parse_int(text, &value) || value < least || value > most)
        return false;
    *out = value;
    return true;
}

/* One option with its value. False: there is no such option, or the value is
 * out of range. */
static bool parse_option(struct options *options, const char *name,
                         const char *value)
{
    if (strcmp(name, "--np") == 0)
        return parse_count(value, 1, 1024, &options->np);
    if (strcmp(name, "--tensors") == 0)
        return parse_count(value, 1, 100000, &options->tensors);
    if (strcmp(name, "--rounds") == 0)
        return parse_count(value, 1, 1000000, &options->rounds);
    if (strcmp(name, "--large") == 0)
        return parse_count(value, 0, 1000000, &options->large_rounds);
    if (strcmp(name, "--idle") == 0)
        return parse_count(value, 0, 3600, &options->idle_s);
    if (strcmp(name, "--bytes") == 0)
        return rueda_parse_size(value, &options->bytes) &&
               options->bytes >= sizeof(float) &&
               options->bytes <= ((size_t)1 << 30);
    if (strcmp(name, "--json") == 0) {
        options->json = value;
        return true;
    }
    return false;
}

/* All options are pairs of a name and a value, but --help. */
static bool parse(int argc, char **argv, struct options *options)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            options->is_help = true;
            return true;
        }
        if (i + 1 == argc || !parse_option(options, argv[i], argv[i + 1])) {
            fprintf(stderr,
                    "rueda: '%s%s%s' is not an option of bench step (see "
                    "'rueda bench step --help')\n",
                    argv[i], i + 1 < argc ? " " : "",
                    i + 1 < argc ? argv[i + 1] : "");
            return false;
        }
        i++;
    }
    return true;
}

/* `rueda bench step`: as a rank that a launcher started, or with processes of
 * its own. */
int rueda_step_main(int argc, char **argv)
{
    struct options options = {.np = 2,
                              .tensors = 400,
                              .bytes = 4096,
                              .rounds = 200,
                              .large_rounds = 21};
    struct rueda_seat_query query;
    struct rueda_text words = {{0}};
    struct rueda_seat seat;

    if (!parse(argc, argv, &options))
        return 2;
    if (options.is_help) {
        fputs(rueda_step_help(), stdout);
        return EXIT_SUCCESS;
    }
    rueda_seat_query_init(&query);
    if (rueda_seat_find(&query, &seat, &words) != RUEDA_OK) {
        fprintf(stderr, "rueda: %s\n", words.chars);
        return EXIT_FAILURE;
    }
    return seat.size > 1 ? be_rank(&options, -1, -1, NULL)
                         : be_parent(&options);
}
