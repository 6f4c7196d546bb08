/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the command line of `rueda sim`, with suggestions for mistyped words.
 */
#include "tool/sim_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/near.h"
#include "base/number.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define VALUE_BYTES  256
#define MOST_RANKS   65536
#define MOST_MS      1e9

typedef struct rueda_tool_sim_options sim_options;

/* ---- Values ----------------------------------------------------------- */

static const char *const algo_names[] = {
    "auto", "hier", "ring", "halving_doubling", "doubling", NULL,
};

const char *const *rueda_tool_sim_algos(void)
{
    return algo_names;
}

/* These parsers write a message that names the option, what it takes and what
 * it got. */
static bool whole(const char *name, const char *value, int low, int high,
                  int *out, struct rueda_text *words)
{
    int number;

    if (!rueda_parse_int(value, &number) || number < low || number > high) {
        rueda_text_set(words, "%s takes a number from %d to %d, not '%.64s'",
                       name, low, high, value);
        return false;
    }
    *out = number;
    return true;
}

/* A finite number without more behind it. */
static bool real(const char *value, double low, double high, double *out)
{
    char *end;
    const double number = strtod(value, &end);

    if (end == value || *end != '\0' || !isfinite(number) || number < low ||
        number > high)
        return false;
    *out = number;
    return true;
}

static bool refuse(const char *name, const char *value, const char *expected,
                   struct rueda_text *words)
{
    rueda_text_set(words, "%s takes %s, not '%.64s'", name, expected, value);
    return false;
}

/* Cut value at the first of these letters: false if there is none, or what is
 * before it is too long. */
static bool cut(const char *value, char at, char *out_first,
                const char **out_rest)
{
    const char *found = strchr(value, at);

    if (found == NULL || (size_t)(found - value) >= VALUE_BYTES)
        return false;
    memcpy(out_first, value, (size_t)(found - value));
    out_first[found - value] = '\0';
    *out_rest = found + 1;
    return true;
}

/* A rate and a latency, in this order or the other; both or one. */
static bool wire(const char *name, const char *value,
                 struct rueda_sim_wire *wire, struct rueda_text *words)
{
    char first[VALUE_BYTES];
    const char *second = NULL;
    const char *parts[2] = {value, NULL};
    double ns;

    if (cut(value, ',', first, &second)) {
        parts[0] = first;
        parts[1] = second;
    }
    for (int i = 0; i < 2 && parts[i] != NULL; i++) {
        if (rueda_sim_time_parse(parts[i], &ns))
            wire->latency_ns = (uint64_t)(ns + 0.5);
        else if (!rueda_sim_rate_parse(parts[i], &wire->bytes_per_s))
            return refuse(name, value,
                          "a rate and a latency such as "
                          "25gbit,10us or 10GB/s",
                          words);
    }
    return true;
}

/* ---- The network ------------------------------------------------------ */

static bool set_hosts(sim_options *options, const char *value,
                      struct rueda_text *words)
{
    options->has_hosts = true;
    return whole("--hosts", value, 1, MOST_RANKS, &options->net.hosts, words);
}

static bool set_ranks_per_host(sim_options *options, const char *value,
                               struct rueda_text *words)
{
    options->has_hosts = true;
    return whole("--ranks-per-host", value, 1, MOST_RANKS,
                 &options->net.ranks_per_host, words);
}

static bool set_link(sim_options *options, const char *value,
                     struct rueda_text *words)
{
    options->has_hosts = true;
    return wire("--link", value, &options->net.uplink, words);
}

static bool set_local(sim_options *options, const char *value,
                      struct rueda_text *words)
{
    options->has_hosts = true;
    return wire("--local", value, &options->net.port, words);
}

static bool set_topology(sim_options *options, const char *value,
                         struct rueda_text *words)
{
    options->topology = value;
    return rueda_sim_net_read(value, &options->net, words) == RUEDA_OK;
}

static int by_size(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static bool set_ranks(sim_options *options, const char *value,
                      struct rueda_text *words)
{
    char word[VALUE_BYTES];
    const char *rest = value;

    options->point_count = 0;
    while (rest != NULL) {
        const char *next = NULL;

        if (!cut(rest, ',', word, &next))
            snprintf(word, sizeof(word), "%s", rest);
        if (options->point_count == RUEDA_TOOL_SIM_POINTS)
            return refuse("--ranks", value, "at most 64 numbers", words);
        if (!whole("--ranks", word, 1, MOST_RANKS,
                   &options->points[options->point_count++], words))
            return false;
        rest = next;
    }
    qsort(options->points, (size_t)options->point_count, sizeof(int), by_size);
    return true;
}

/* ---- What runs -------------------------------------------------------- */

static bool set_model(sim_options *options, const char *value,
                      struct rueda_text *words)
{
    if (value[0] == '\0')
        return refuse("--model", value, "a name or a file", words);
    options->model = value;
    return true;
}

/* 12.5, or 1:12.5,4:20. */
static bool set_compute(sim_options *options, const char *value,
                        struct rueda_text *words)
{
    static const char expected[] =
        "milliseconds, or ascending RANKS:MS such as 1:250,4:290";
    char word[VALUE_BYTES];
    const char *rest = value;

    options->compute_count = 0;
    while (rest != NULL) {
        const int i = options->compute_count;
        const char *next = NULL;
        char ranks[VALUE_BYTES] = "1";
        const char *ms = word;

        if (!cut(rest, ',', word, &next))
            snprintf(word, sizeof(word), "%s", rest);
        cut(word, ':', ranks, &ms);
        if (i == RUEDA_TOOL_SIM_POINTS ||
            !rueda_parse_int(ranks, &options->computes[i].ranks) ||
            options->computes[i].ranks < 1 ||
            (i > 0 &&
             options->computes[i].ranks <= options->computes[i - 1].ranks) ||
            !real(ms, 0.0, MOST_MS, &options->computes[i].ms))
            return refuse("--compute-ms", value, expected, words);
        options->compute_count++;
        rest = next;
    }
    return true;
}

/* That of the largest number of ranks that is not above this one: what is
 * measured with 4 ranks holds for 5 until there is a figure for these. */
double rueda_tool_sim_compute_ms(const struct rueda_tool_sim_options *options,
                                 int ranks)
{
    double ms = options->compute_count > 0 ? options->computes[0].ms : -1.0;

    for (int i = 0; i < options->compute_count; i++)
        if (options->computes[i].ranks <= ranks)
            ms = options->computes[i].ms;
    return ms;
}

static bool set_jitter(sim_options *options, const char *value,
                       struct rueda_text *words)
{
    if (!real(value, 0.0, 100.0, &options->jitter))
        return refuse("--jitter", value, "percent, from 0 to 100", words);
    options->jitter /= 100.0;
    return true;
}

static bool set_algo(sim_options *options, const char *value,
                     struct rueda_text *words)
{
    char word[VALUE_BYTES];
    const char *rest = value;

    options->algo_count = 0;
    while (rest != NULL) {
        const char *next = NULL;
        int i;

        if (!cut(rest, ',', word, &next))
            snprintf(word, sizeof(word), "%s", rest);
        if (strcmp(word, "direct") == 0) {
            rueda_text_set(words, "direct works on shared memory, of which the "
                                  "simulator has none; --local is its rate");
            return false;
        }
        i = rueda_near_find("algorithm", word, algo_names, words);
        if (i < 0)
            return false;
        if (options->algo_count == RUEDA_TOOL_SIM_ALGOS)
            return refuse("--algo", value, "at most 16 names", words);
        options->algos[options->algo_count++] = algo_names[i];
        rest = next;
    }
    return true;
}

static bool set_compression(sim_options *options, const char *value,
                            struct rueda_text *words)
{
    static const char *const names[] = {"none", "fp16", "bf16", NULL};
    static const rueda_compression kinds[] = {
        RUEDA_COMPRESS_NONE, RUEDA_COMPRESS_FP16, RUEDA_COMPRESS_BF16};
    const int i = rueda_near_find("compression", value, names, words);

    if (i >= 0)
        options->compression = kinds[i];
    return i >= 0;
}

static bool set_steps(sim_options *options, const char *value,
                      struct rueda_text *words)
{
    return whole("--steps", value, 2, 10000, &options->steps, words);
}

static bool set_seed(sim_options *options, const char *value,
                     struct rueda_text *words)
{
    return rueda_parse_whole(value, UINT64_MAX, &options->seed) ||
           refuse("--seed", value, "a whole number", words);
}

static bool set_fusion(sim_options *options, const char *value,
                       struct rueda_text *words)
{
    return rueda_parse_size(value, &options->fusion_bytes) ||
           refuse("--fusion-bytes", value, "a size such as 16m", words);
}

static bool set_overhead(sim_options *options, const char *value,
                         struct rueda_text *words)
{
    return rueda_sim_time_parse(value, &options->overhead_ns) ||
           refuse("--overhead", value, "a time such as 2us", words);
}

static bool set_arithmetic(sim_options *options, const char *value,
                           struct rueda_text *words)
{
    return rueda_sim_rate_parse(value, &options->work_bytes_per_s) ||
           refuse("--arithmetic", value, "a rate such as 8GB/s", words);
}

/* ---- Bad days --------------------------------------------------------- */

static bool set_straggler(sim_options *options, const char *value,
                          struct rueda_text *words)
{
    struct rueda_straggler straggler;
    char rank[VALUE_BYTES];
    const char *factor;

    if (!cut(value, ':', rank, &factor) ||
        !rueda_parse_int(rank, &straggler.rank) || straggler.rank < 0 ||
        !real(factor, 0.01, 1e6, &straggler.factor))
        return refuse("--straggler", value,
                      "RANK:FACTOR, by which its computation is slower, such "
                      "as 3:1.5",
                      words);
    if (options->straggler_count == RUEDA_TOOL_SIM_FAULTS)
        return refuse("--straggler", value, "at most 64 ranks", words);
    options->stragglers[options->straggler_count++] = straggler;
    return true;
}

static bool add_fault(sim_options *options, const char *name,
                      const struct rueda_sim_fault *fault,
                      struct rueda_text *words)
{
    if (options->fault_count == RUEDA_TOOL_SIM_FAULTS)
        return refuse(name, "more", "at most 64 faults", words);
    options->faults[options->fault_count++] = *fault;
    return true;
}

static bool set_kill(sim_options *options, const char *value,
                     struct rueda_text *words)
{
    struct rueda_sim_fault fault = {.kind = RUEDA_SIM_KILL,
                                    .until_ns = RUEDA_SIM_NEVER};
    char rank[VALUE_BYTES];
    const char *when;
    double ns;

    if (!cut(value, '@', rank, &when) || !rueda_parse_int(rank, &fault.rank) ||
        fault.rank < 0 || !rueda_sim_time_parse(when, &ns))
        return refuse("--kill", value, "RANK@TIME such as 3@250ms", words);
    fault.from_ns = (uint64_t)ns;
    return add_fault(options, "--kill", &fault, words);
}

static bool set_unplug(sim_options *options, const char *value,
                       struct rueda_text *words)
{
    struct rueda_sim_fault fault = {.kind = RUEDA_SIM_UNPLUG,
                                    .link = RUEDA_SIM_UPLINK};
    char host[VALUE_BYTES];
    char from[VALUE_BYTES];
    const char *rest;
    const char *until;
    double from_ns;
    double until_ns;

    if (!cut(value, '@', host, &rest) || !cut(rest, '-', from, &until) ||
        !rueda_parse_int(host, &fault.index) || fault.index < 0 ||
        !rueda_sim_time_parse(from, &from_ns) ||
        !rueda_sim_time_parse(until, &until_ns) || until_ns < from_ns)
        return refuse("--unplug", value, "HOST@TIME-TIME such as 2@100ms-150ms",
                      words);
    fault.from_ns = (uint64_t)from_ns;
    fault.until_ns = (uint64_t)until_ns;
    return add_fault(options, "--unplug", &fault, words);
}

/* ---- Results ---------------------------------------------------------- */

static bool set_jobs(sim_options *options, const char *value,
                     struct rueda_text *words)
{
    return whole("--jobs", value, 1, RUEDA_TOOL_SIM_JOBS, &options->jobs,
                 words);
}

static bool set_json(sim_options *options, const char *value,
                     struct rueda_text *words)
{
    (void)words;
    options->json = value;
    return true;
}

static bool set_plot(sim_options *options, const char *value,
                     struct rueda_text *words)
{
    (void)words;
    options->plot = value;
    return true;
}

static bool set_measured(sim_options *options, const char *value,
                         struct rueda_text *words)
{
    (void)words;
    options->measured = value;
    return true;
}

static bool set_list(sim_options *options, const char *value,
                     struct rueda_text *words)
{
    (void)value;
    (void)words;
    options->is_list = true;
    return true;
}

static bool set_show(sim_options *options, const char *value,
                     struct rueda_text *words)
{
    (void)value;
    (void)words;
    options->is_show = true;
    return true;
}

static bool set_help(sim_options *options, const char *value,
                     struct rueda_text *words)
{
    (void)value;
    (void)words;
    options->is_help = true;
    return true;
}

/* ---- The command line ------------------------------------------------- */

/* The one list of options: parsing, and suggestions for mistyped ones. */
static const struct sim_option {
    const char *name;
    bool takes_value;
    bool (*set)(sim_options *options, const char *value,
                struct rueda_text *words);
} table[] = {
    {"--hosts", true, set_hosts},
    {"--ranks-per-host", true, set_ranks_per_host},
    {"--link", true, set_link},
    {"--local", true, set_local},
    {"--topology", true, set_topology},
    {"--ranks", true, set_ranks},
    {"--model", true, set_model},
    {"--compute-ms", true, set_compute},
    {"--jitter", true, set_jitter},
    {"--algo", true, set_algo},
    {"--compression", true, set_compression},
    {"--steps", true, set_steps},
    {"--seed", true, set_seed},
    {"--fusion-bytes", true, set_fusion},
    {"--overhead", true, set_overhead},
    {"--arithmetic", true, set_arithmetic},
    {"--straggler", true, set_straggler},
    {"--kill", true, set_kill},
    {"--unplug", true, set_unplug},
    {"--jobs", true, set_jobs},
    {"--json", true, set_json},
    {"--plot", true, set_plot},
    {"--measured", true, set_measured},
    {"--list-models", false, set_list},
    {"--show-model", false, set_show},
    {"--help", false, set_help},
    {"-h", false, set_help},
};

static const struct sim_option *find_option(const char *word, size_t len,
                                            struct rueda_text *words)
{
    const char *known[COUNT(table) + 1] = {NULL};
    char name[32];

    for (size_t i = 0; i < COUNT(table); i++) {
        known[i] = table[i].name;
        if (strlen(table[i].name) == len &&
            memcmp(table[i].name, word, len) == 0)
            return &table[i];
    }
    snprintf(name, sizeof(name), "%.*s", (int)len, word);
    rueda_text_set(words, "unknown option '%s'", name);
    rueda_near_suggest(name, known, words);
    return NULL;
}

/* Returns how many words of argv that were, 0 for a mistake. */
static int parse_option(int argc, char **argv, sim_options *options,
                        struct rueda_text *words)
{
    const size_t len = strcspn(argv[0], "=");
    const char *value = argv[0][len] == '=' ? argv[0] + len + 1 : NULL;
    const struct sim_option *option;
    int used = 1;

    if (argv[0][0] != '-') {
        rueda_text_set(words,
                       "there is no operation '%.64s'; every word is an "
                       "option",
                       argv[0]);
        return 0;
    }
    option = find_option(argv[0], len, words);
    if (option == NULL)
        return 0;
    if (!option->takes_value && value != NULL) {
        rueda_text_set(words, "%s takes no value", option->name);
        return 0;
    }
    if (option->takes_value && value == NULL) {
        if (argc < 2) {
            rueda_text_set(words, "%s needs a value", option->name);
            return 0;
        }
        value = argv[used++];
    }
    return option->set(options, value, words) ? used : 0;
}

bool rueda_tool_sim_net_of(const struct rueda_sim_net *net, int ranks,
                           struct rueda_sim_net *out)
{
    struct rueda_sim_net part = *net;

    if (ranks <= net->ranks_per_host) {
        part.hosts = 1;
        part.ranks_per_host = ranks;
    } else {
        if (ranks % net->ranks_per_host != 0 ||
            ranks / net->ranks_per_host > net->hosts)
            return false;
        part.hosts = ranks / net->ranks_per_host;
    }
    if (part.hosts_per_rack > part.hosts)
        part.hosts_per_rack = part.hosts;
    *out = part;
    return true;
}

/* Where --ranks is not given: 1, 2, 4 ... ranks of a host, 1, 2, 4 ... full
 * hosts, and all of them. */
static void set_points(sim_options *options)
{
    const struct rueda_sim_net *net = &options->net;
    const int all = rueda_sim_net_ranks(net);
    int *count = &options->point_count;

    if (*count > 0)
        return;
    for (int ranks = 1; ranks < net->ranks_per_host; ranks *= 2)
        options->points[(*count)++] = ranks;
    for (int hosts = 1; hosts < net->hosts; hosts *= 2)
        options->points[(*count)++] = hosts * net->ranks_per_host;
    options->points[(*count)++] = all;
}

static bool check_points(const sim_options *options, struct rueda_text *words)
{
    struct rueda_sim_net ignored;

    for (int i = 0; i < options->point_count; i++)
        if (!rueda_tool_sim_net_of(&options->net, options->points[i],
                                   &ignored)) {
            rueda_text_set(words,
                           "--ranks %d: there are %d hosts of %d ranks, of "
                           "which one is in use, or several in full",
                           options->points[i], options->net.hosts,
                           options->net.ranks_per_host);
            return false;
        }
    return true;
}

/* Options that exclude each other, and those that must be there. */
static bool complete(sim_options *options, struct rueda_text *words)
{
    if (options->topology != NULL && options->has_hosts) {
        rueda_text_set(words, "--topology says what --hosts, --ranks-per-host, "
                              "--link and --local do; leave these out");
        return false;
    }
    if (options->topology == NULL)
        options->net.hosts_per_rack = options->net.hosts;
    if (rueda_sim_net_check(&options->net, words) != RUEDA_OK)
        return false;
    if (options->model == NULL) {
        rueda_text_set(words, "--model is needed: a name (rueda sim "
                              "--list-models) or a file");
        return false;
    }
    set_points(options);
    return check_points(options, words);
}

bool rueda_tool_sim_options_parse(int argc, char **argv,
                                  struct rueda_tool_sim_options *out,
                                  struct rueda_text *words)
{
    sim_options options = {
        .compression = RUEDA_COMPRESS_NONE,
        .steps = 2,
        .seed = 1,
        .fusion_bytes = (size_t)16 << 20,
        .overhead_ns = -1.0,
    };

    /* A network without a line has the values that are left out in files. */
    if (rueda_sim_net_parse("", &options.net, words) != RUEDA_OK)
        return false;
    for (int i = 0; i < argc;) {
        const int used = parse_option(argc - i, argv + i, &options, words);

        if (used == 0)
            return false;
        i += used;
    }
    if (!options.is_help && !options.is_list && !complete(&options, words))
        return false;
    *out = options;
    return true;
}
