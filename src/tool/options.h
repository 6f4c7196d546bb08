/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of `rueda bench`. Pure: nothing is printed and nothing is
 * looked up; an error becomes one line of text.
 */
#ifndef RUEDA_TOOL_OPTIONS_H
#define RUEDA_TOOL_OPTIONS_H

#include "base/text.h"
#include "tool/case.h"
#include "tool/placing.h"

typedef enum rueda_peer {
    RUEDA_PEER_OPENMPI,
    RUEDA_PEER_MPICH,
    RUEDA_PEER_MEMCPY,
    RUEDA_PEER_PRIVATE, /* Rueda itself, where our side has shared memory */
    RUEDA_PEER_RAW,     /* plain sockets between two processes */
    RUEDA_PEER_ALGO,    /* Rueda itself with another algorithm, or "auto" */
} rueda_peer;
#define RUEDA_PEERS_MAX 11
#define RUEDA_PEER_NAME 32

/* A host and how many ranks it has. */
struct rueda_bench_host {
    char name[64];
    int ranks;
};
#define RUEDA_BENCH_MOST_HOSTS 16

/* Texts are borrowed from argv. */
struct rueda_bench_options {
    rueda_bench_op op;
    int np;                /* 0: not said */
    const char *transport; /* NULL: not said */
    const char *algo;      /* NULL: the library chooses */
    rueda_dtype dtype;
    rueda_reduction reduction;
    size_t min_bytes;
    size_t max_bytes;
    int factor; /* from a size to the next */
    bool is_shared;
    rueda_placing placing; /* of the ranks of every side */
    int rounds;            /* rounds for each size; 0: not given */
    rueda_peer peers[RUEDA_PEERS_MAX];
    char peer_names[RUEDA_PEERS_MAX][RUEDA_PEER_NAME]; /* in the table */
    int peer_count;
    struct rueda_bench_host
        hosts[RUEDA_BENCH_MOST_HOSTS]; /* ranks in their order */
    int host_count;                    /* 0: all ranks are on this host */
    const char *hosts_text;            /* the list as it was given */
    const char *rsh;  /* what starts commands on hosts, or NULL */
    const char *json; /* NULL: none */
    bool is_tune;
    const char *tune_file; /* NULL: standard output */
    bool is_help;
};

#define RUEDA_NP_MAX 256

/*
 * Read argv[0 .. argc-1], which are the words after "bench". On an error
 * returns false, and words says which, with what was probably meant.
 */
bool rueda_bench_options_parse(int argc, char **argv,
                               struct rueda_bench_options *out_options,
                               struct rueda_text *words);

#endif /* RUEDA_TOOL_OPTIONS_H */
