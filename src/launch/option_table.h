/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of ruedarun, as data: how each is written, what it takes, what it
 * is called in a configuration file, which variable it sets for the program,
 * and its line of help. options.c reads command lines by it, yaml.c
 * files, help.c prints it. Pure; any thread.
 */
#ifndef RUEDA_LAUNCH_OPTION_TABLE_H
#define RUEDA_LAUNCH_OPTION_TABLE_H

#include <stdbool.h>

typedef enum rueda_option_id {
    RUEDA_OPTION_NP,
    RUEDA_OPTION_PER_NODE,
    RUEDA_OPTION_MODULE,
    RUEDA_OPTION_HOSTS,
    RUEDA_OPTION_HOSTFILE,
    RUEDA_OPTION_CONFIG_FILE,
    RUEDA_OPTION_BIND,
    RUEDA_OPTION_GRACE,
    RUEDA_OPTION_LINGER,
    RUEDA_OPTION_DEBUG,
    RUEDA_OPTION_RESTARTS,
    RUEDA_OPTION_TF_CONFIG,

    RUEDA_OPTION_SSH_PORT,
    RUEDA_OPTION_SSH_IDENTITY,
    RUEDA_OPTION_NETWORK,
    RUEDA_OPTION_LISTEN,
    RUEDA_OPTION_KEY_FILE,
    RUEDA_OPTION_START_TIMEOUT,

    RUEDA_OPTION_OUTPUT,
    RUEDA_OPTION_TIMESTAMP,
    RUEDA_OPTION_PREFIX,
    RUEDA_OPTION_RANKS,
    RUEDA_OPTION_TEE,
    RUEDA_OPTION_VERBOSE,

    RUEDA_OPTION_HELP,
    RUEDA_OPTION_VERSION,
    RUEDA_OPTION_CHECK_BUILD,
    RUEDA_OPTION_COMPLETION,

    RUEDA_OPTION_FUSION,
    RUEDA_OPTION_CYCLE_TIME,
    RUEDA_OPTION_CACHE,
    RUEDA_OPTION_HIER_ALLREDUCE,
    RUEDA_OPTION_HIER_ALLGATHER,
    RUEDA_OPTION_TORUS,
    RUEDA_OPTION_TIMELINE,
    RUEDA_OPTION_TIMELINE_CYCLES,
    RUEDA_OPTION_STALL_CHECK,
    RUEDA_OPTION_STALL_WARNING,
    RUEDA_OPTION_STALL_SHUTDOWN,
    RUEDA_OPTION_LOG_LEVEL,
    RUEDA_OPTION_LOG_TIMESTAMP,

    RUEDA_OPTION_AUTOTUNE,
    RUEDA_OPTION_AUTOTUNE_LOG,
    RUEDA_OPTION_AUTOTUNE_WARMUP,
    RUEDA_OPTION_AUTOTUNE_STEPS,
    RUEDA_OPTION_AUTOTUNE_SAMPLES,
    RUEDA_OPTION_AUTOTUNE_NOISE,

    RUEDA_OPTION_TCP,
    RUEDA_OPTION_NCCL_STREAMS,
    RUEDA_OPTION_THREAD_AFFINITY,
    RUEDA_OPTION_GLOO_TIMEOUT,
    RUEDA_OPTION_GLOO,

    RUEDA_OPTION_MPI,
    RUEDA_OPTION_JSRUN,
    RUEDA_OPTION_MPI_ARGS,
    RUEDA_OPTION_BINDING_ARGS,

    RUEDA_OPTION_DISABLE_CACHE,
    RUEDA_OPTION_MPI_THREADS,
    RUEDA_OPTION_CONTROLLER,

    RUEDA_OPTION_MIN_NP,
    RUEDA_OPTION_MAX_NP,
    RUEDA_OPTION_DISCOVERY,
    RUEDA_OPTION_SLOTS,
    RUEDA_OPTION_ELASTIC_TIMEOUT,
    RUEDA_OPTION_RESET_LIMIT,
    RUEDA_OPTION_COOLDOWN,

    RUEDA_OPTION_COUNT
} rueda_option_id;

/* A switch takes no value: its name turns it on, its other name off. */
typedef enum rueda_option_kind {
    RUEDA_TAKES_NOTHING,
    RUEDA_TAKES_TEXT,
    RUEDA_TAKES_WHOLE,
    RUEDA_TAKES_DECIMAL,
    RUEDA_TAKES_CHOICE, /* in any case of letters; kept as it is listed */
} rueda_option_kind;

/* What the help shows together. */
typedef enum rueda_option_group {
    RUEDA_GROUP_HIDDEN, /* understood, for old command lines' sake */
    RUEDA_GROUP_START,
    RUEDA_GROUP_PROCESSES,
    RUEDA_GROUP_HOSTS,
    RUEDA_GROUP_OUTPUT,
    RUEDA_GROUP_OTHERS,
    RUEDA_GROUP_TUNING,
    RUEDA_GROUP_AUTOTUNE,
    RUEDA_GROUP_LIBRARY,
    RUEDA_GROUP_MPI,
    RUEDA_GROUP_ELASTIC,
    RUEDA_GROUP_COUNT
} rueda_option_group;

/* Of those that share a letter at most one may be given. */
typedef enum rueda_option_rivals {
    RUEDA_RIVALS_NONE,
    RUEDA_RIVALS_HOSTS,
    RUEDA_RIVALS_CONTROLLER,
    RUEDA_RIVALS_TIMESTAMP,
    RUEDA_RIVALS_COUNT,
} rueda_option_rivals;

struct rueda_option {
    const char *name;
    const char *others[3];   /* more names */
    const char *negation[2]; /* what turns a switch off */
    rueda_option_kind kind;
    double low; /* of a number */
    double high;
    const char *const *choices; /* ended by NULL */
    int values;                 /* words it takes; 0 stands for 1 */
    bool is_list;               /* given again, it adds to what there is */

    const char *key; /* "section.name" in a configuration file */

    /* The variable for the program, its value being the option's: a switch is
     * 1 or 0 (is_inverse: 0 or 1), megabytes become bytes. Only where the
     * option `with` is given and on, if there is one. */
    const char *variable;
    bool is_inverse;
    bool is_megabytes;
    rueda_option_id with; /* RUEDA_OPTION_NP: none */

    rueda_option_rivals rivals;

    rueda_option_group group;
    const char *value; /* how the help calls what it takes */
    const char *help;
};

extern const struct rueda_option rueda_options_table[RUEDA_OPTION_COUNT];

#endif /* RUEDA_LAUNCH_OPTION_TABLE_H */
