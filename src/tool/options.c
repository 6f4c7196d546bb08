/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the command line of `rueda bench`, with suggestions for mistyped
 * words.
 */
#include "tool/options.h"

#include <string.h>

#include "base/config.h"
#include "base/near.h"
#include "base/number.h"
#include "tool/lists.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What an operation may be called; step, the last, has options of its own. */
static const char *const op_names[] = {
    "allreduce", "allgather", "broadcast", "alltoall", "reducescatter",
    "barrier",   "pingpong",  "step",      NULL,
};
static const char *const dtype_names[] = {
#define X(name, value, bytes, text) text,
    RUEDA_DTYPE_MAP(X)
#undef X
        NULL,
};
static const char *const reduction_names[] = {
#define X(name, value, text) text,
    RUEDA_REDUCTION_MAP(X)
#undef X
        NULL,
};
static const char *const transport_names[] = {"auto", "shm",  "messages",
                                              "tcp",  "loop", NULL};
static const char *const bind_names[] = {
    [RUEDA_PLACING_START] = "none",
    [RUEDA_PLACING_BOUND] = "core",
    [RUEDA_PLACING_FREE] = "free",
    NULL,
};
static const char *const alloc_names[] = {"private", "shared", NULL};

/* A whole number within limits, or a message that names them. */
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

static bool bytes(const char *name, const char *value, size_t *out,
                  struct rueda_text *words)
{
    if (rueda_parse_size(value, out) && *out > 0)
        return true;
    rueda_text_set(words,
                   "%s takes a size in bytes such as 8, 4k or 128m, not "
                   "'%.64s'",
                   name, value);
    return false;
}

typedef bool (*setter)(struct rueda_bench_options *options, const char *value,
                       struct rueda_text *words);

static bool set_np(struct rueda_bench_options *options, const char *value,
                   struct rueda_text *words)
{
    return whole("--np", value, 1, RUEDA_NP_MAX, &options->np, words);
}

static bool set_rounds(struct rueda_bench_options *options, const char *value,
                       struct rueda_text *words)
{
    return whole("--rounds", value, 1, 1000, &options->rounds, words);
}

static bool set_transport(struct rueda_bench_options *options,
                          const char *value, struct rueda_text *words)
{
    const int i = rueda_near_find("transport", value, transport_names, words);

    if (i >= 0)
        options->transport = transport_names[i];
    return i >= 0;
}

static bool set_algo(struct rueda_bench_options *options, const char *value,
                     struct rueda_text *words)
{
    if (value[0] == '\0') {
        rueda_text_set(words, "--algo takes the name of an algorithm");
        return false;
    }
    options->algo = value;
    return true;
}

static bool set_dtype(struct rueda_bench_options *options, const char *value,
                      struct rueda_text *words)
{
    const int i = rueda_near_find("dtype", value, dtype_names, words);

    if (i >= 0)
        options->dtype = (rueda_dtype)i;
    return i >= 0;
}

static bool set_reduction(struct rueda_bench_options *options,
                          const char *value, struct rueda_text *words)
{
    const int i = rueda_near_find("reduction", value, reduction_names, words);

    if (i >= 0)
        options->reduction = (rueda_reduction)i;
    return i >= 0;
}

static bool set_min(struct rueda_bench_options *options, const char *value,
                    struct rueda_text *words)
{
    return bytes("--min", value, &options->min_bytes, words);
}

static bool set_max(struct rueda_bench_options *options, const char *value,
                    struct rueda_text *words)
{
    return bytes("--max", value, &options->max_bytes, words);
}

static bool set_factor(struct rueda_bench_options *options, const char *value,
                       struct rueda_text *words)
{
    return whole("--factor", value, 2, 1024, &options->factor, words);
}

static bool set_alloc(struct rueda_bench_options *options, const char *value,
                      struct rueda_text *words)
{
    const int i = rueda_near_find("kind of memory", value, alloc_names, words);

    if (i >= 0)
        options->is_shared = i == 1;
    return i >= 0;
}

static bool set_bind(struct rueda_bench_options *options, const char *value,
                     struct rueda_text *words)
{
    const int i = rueda_near_find("binding", value, bind_names, words);

    if (i >= 0)
        options->placing = (rueda_placing)i;
    return i >= 0;
}

static bool set_rsh(struct rueda_bench_options *options, const char *value,
                    struct rueda_text *words)
{
    (void)words;
    options->rsh = value;
    return true;
}

static bool set_json(struct rueda_bench_options *options, const char *value,
                     struct rueda_text *words)
{
    (void)words;
    options->json = value;
    return true;
}

static bool set_tune(struct rueda_bench_options *options, const char *value,
                     struct rueda_text *words)
{
    (void)words;
    options->is_tune = true;
    options->tune_file = value;
    return true;
}

static bool set_help(struct rueda_bench_options *options, const char *value,
                     struct rueda_text *words)
{
    (void)value;
    (void)words;
    options->is_help = true;
    return true;
}

typedef enum takes {
    TAKES_NOTHING,
    TAKES_VALUE,
    MAY_TAKE_VALUE,
} takes;

/* The one list of options. Each setter checks its value alone; is_consistent()
 * checks what options mean for each other, when all have been read. */
static const struct option {
    const char *name;
    takes takes;
    setter set;
} table[] = {
    {"--np", TAKES_VALUE, set_np},
    {"--transport", TAKES_VALUE, set_transport},
    {"--algo", TAKES_VALUE, set_algo},
    {"--dtype", TAKES_VALUE, set_dtype},
    {"--reduction", TAKES_VALUE, set_reduction},
    {"--min", TAKES_VALUE, set_min},
    {"--max", TAKES_VALUE, set_max},
    {"--factor", TAKES_VALUE, set_factor},
    {"--alloc", TAKES_VALUE, set_alloc},
    {"--bind", TAKES_VALUE, set_bind},
    {"--rounds", TAKES_VALUE, set_rounds},
    {"--vs", TAKES_VALUE, rueda_peers_parse},
    {"--hosts", TAKES_VALUE, rueda_bench_hosts_parse},
    {"--rsh", TAKES_VALUE, set_rsh},
    {"--json", TAKES_VALUE, set_json},
    {"--tune", MAY_TAKE_VALUE, set_tune},
    {"--help", TAKES_NOTHING, set_help},
};

static const struct option *find_option(const char *word, size_t len)
{
    if (len == 2 && memcmp(word, "-h", 2) == 0)
        return find_option("--help", 6);
    for (size_t i = 0; i < COUNT(table); i++)
        if (strlen(table[i].name) == len &&
            memcmp(table[i].name, word, len) == 0)
            return &table[i];
    return NULL;
}

/* The message for an unknown option suggests the nearest known one. */
static void unknown_option(const char *word, struct rueda_text *words)
{
    const char *known[COUNT(table) + 1];
    char name[32];
    size_t len = strcspn(word, "=");

    for (size_t i = 0; i < COUNT(table); i++)
        known[i] = table[i].name;
    known[COUNT(table)] = NULL;
    if (len >= sizeof(name))
        len = sizeof(name) - 1;
    memcpy(name, word, len);
    name[len] = '\0';
    rueda_text_set(words, "unknown option '%s'", name);
    rueda_near_suggest(name, known, words);
}

/* One option and its value, if it has one. Returns how many words of argv that
 * were, 0 for a mistake. */
static int parse_option(int argc, char **argv,
                        struct rueda_bench_options *options,
                        struct rueda_text *words)
{
    const size_t len = strcspn(argv[0], "=");
    const struct option *option = find_option(argv[0], len);
    const char *value = argv[0][len] == '=' ? argv[0] + len + 1 : NULL;
    rueda_bench_op op;
    int used = 1;

    if (option == NULL) {
        unknown_option(argv[0], words);
        return 0;
    }
    if (option->takes == TAKES_NOTHING && value != NULL) {
        rueda_text_set(words, "%s takes no value", option->name);
        return 0;
    }
    if (option->takes == TAKES_VALUE && value == NULL) {
        if (argc < 2) {
            rueda_text_set(words, "%s needs a value", option->name);
            return 0;
        }
        value = argv[used++];
    }
    if (option->takes == MAY_TAKE_VALUE && value == NULL && argc > 1 &&
        argv[1][0] != '-' && !rueda_bench_op_parse(argv[1], &op))
        value = argv[used++];
    return option->set(options, value, words) ? used : 0;
}

/* Two plain processes do no arithmetic, so they stand beside operations in
 * which both ranks send as much as they receive. */
static void check_raw(const struct rueda_bench_options *options,
                      struct rueda_text *words)
{
    if (!rueda_peers_have(options, RUEDA_PEER_RAW))
        return;
    if (options->np != 2)
        rueda_text_set(words, "--vs raw is an exchange between two ranks; say "
                              "--np 2");
    else if (options->op == RUEDA_BENCH_BROADCAST ||
             options->op == RUEDA_BENCH_PINGPONG ||
             options->op == RUEDA_BENCH_BARRIER)
        rueda_text_set(words,
                       "--vs raw sends as much as it receives, which %s does "
                       "not",
                       rueda_bench_op_str(options->op));
}

/* Options that only make sense together with --hosts. */
static void check_hosts(const struct rueda_bench_options *options,
                        struct rueda_text *words)
{
    if (options->host_count == 0) {
        if (options->rsh != NULL)
            rueda_text_set(words, "--rsh goes with --hosts");
        return;
    }
    if (options->rsh == NULL || options->rsh[0] == '\0')
        rueda_text_set(words, "--hosts needs --rsh, a program that starts "
                              "commands there");
    else if (options->np != rueda_bench_hosts_ranks(options))
        rueda_text_set(words, "--np is not the number of ranks that --hosts "
                              "has");
    else if (options->transport != NULL &&
             strcmp(options->transport, "loop") == 0)
        rueda_text_set(words, "--transport loop has its ranks in one process, "
                              "not on hosts");
    else if (rueda_peers_have(options, RUEDA_PEER_RAW))
        rueda_text_set(words, "--vs raw runs on this host alone, without "
                              "--hosts");
}

/* What other options imply for the number of ranks. */
static void set_ranks(struct rueda_bench_options *options)
{
    if (options->np != 0)
        return;
    if (options->host_count > 0)
        options->np = rueda_bench_hosts_ranks(options);
    else if (rueda_peers_have(options, RUEDA_PEER_RAW))
        options->np = 2;
}

/* Options that exclude each other. */
static bool is_consistent(const struct rueda_bench_options *options,
                          struct rueda_text *words)
{
    const bool is_float =
        options->dtype == RUEDA_FLOAT16 || options->dtype == RUEDA_BFLOAT16 ||
        options->dtype == RUEDA_FLOAT32 || options->dtype == RUEDA_FLOAT64;

    if (options->min_bytes > options->max_bytes)
        rueda_text_set(words, "--min is more than --max");
    else if (options->reduction == RUEDA_ADASUM && !is_float)
        rueda_text_set(words, "adasum takes floating types only, not %s",
                       rueda_dtype_str(options->dtype));
    else if (options->reduction == RUEDA_ADASUM &&
             options->op != RUEDA_BENCH_ALLREDUCE)
        rueda_text_set(words, "adasum is a reduction of allreduce only");
    else if (options->is_tune && options->algo != NULL)
        rueda_text_set(words, "--tune tries every algorithm; leave --algo out");
    else if (options->reduction == RUEDA_ADASUM &&
             (options->is_tune || options->algo != NULL))
        rueda_text_set(words, "adasum has one algorithm, there is no choice");
    else if (options->op == RUEDA_BENCH_PINGPONG && options->np == 1)
        rueda_text_set(words, "pingpong needs two ranks");
    else if (rueda_peers_have(options, RUEDA_PEER_PRIVATE) &&
             !options->is_shared)
        rueda_text_set(words, "--vs private is for a run with shared memory; "
                              "add --alloc shared");
    else
        check_raw(options, words);
    if (rueda_text_is_empty(words))
        check_hosts(options, words);
    return rueda_text_is_empty(words);
}

/* The usual range of sizes, where it does not contradict what was said. */
static void set_range(struct rueda_bench_options *options)
{
    const size_t low = 8;
    const size_t high = (size_t)128 << 20;

    if (options->min_bytes == 0)
        options->min_bytes = options->max_bytes != 0 && options->max_bytes < low
                                 ? options->max_bytes
                                 : low;
    if (options->max_bytes == 0)
        options->max_bytes =
            options->min_bytes > high ? options->min_bytes : high;
    if (options->factor == 0)
        options->factor = options->is_tune ? 4 : 8;
}

/* The words of `rueda bench`: one operation, and options before or after it. */
bool rueda_bench_options_parse(int argc, char **argv,
                               struct rueda_bench_options *out_options,
                               struct rueda_text *words)
{
    struct rueda_bench_options options = {
        .op = RUEDA_BENCH_ALLREDUCE,
        .dtype = RUEDA_FLOAT32,
        .reduction = RUEDA_SUM,
    };
    bool has_op = false;

    for (int i = 0; i < argc;) {
        if (argv[i][0] == '-') {
            const int used = parse_option(argc - i, argv + i, &options, words);

            if (used == 0)
                return false;
            i += used;
            continue;
        }
        if (has_op) {
            rueda_text_set(words, "one operation at a time, not '%.64s' too",
                           argv[i]);
            return false;
        }
        if (rueda_near_find("operation", argv[i], op_names, words) < 0)
            return false;
        has_op = rueda_bench_op_parse(argv[i], &options.op);
        if (!has_op) {
            rueda_text_set(words, "%s comes first, with options of its own",
                           argv[i]);
            return false;
        }
        i++;
    }
    set_range(&options);
    set_ranks(&options);
    if (!options.is_help && !is_consistent(&options, words))
        return false;
    *out_options = options;
    return true;
}
