/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of `rueda bench` on the command line. Pure: nothing is printed and
 * nothing is looked up; a mistake becomes one line of words.
 */
#ifndef RUEDA_TOOL_OPTIONS_H
#define RUEDA_TOOL_OPTIONS_H

#include "base/text.h"
#include "tool/case.h"

typedef enum rueda_peer {
    RUEDA_PEER_OPENMPI,
    RUEDA_PEER_MPICH,
    RUEDA_PEER_MEMCPY,
    RUEDA_PEER_PRIVATE, /* Rueda itself, where our side has shared memory */
} rueda_peer;
#define RUEDA_PEER_COUNT 4

const char *rueda_peer_str(rueda_peer peer);

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
    bool is_shared;
    bool is_bound; /* rank r to the r-th usable core, on every side */
    int rounds;    /* alternations a size; 0: not said */
    rueda_peer peers[RUEDA_PEER_COUNT];
    int peer_count;
    const char *json; /* NULL: none */
    bool is_tune;
    const char *tune_file; /* NULL: standard output */
    bool is_help;
};

#define RUEDA_NP_MAX 256

/*
 * Read argv[0 .. argc-1], which are the words after "bench". On a mistake
 * returns false, and words says which, with what was probably meant.
 */
bool rueda_bench_options_parse(int argc, char **argv,
                               struct rueda_bench_options *out_options,
                               struct rueda_text *words);

#endif /* RUEDA_TOOL_OPTIONS_H */
