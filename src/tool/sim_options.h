/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of `rueda sim`. Nothing is printed; files are read only for
 * --topology, and an error becomes one line of text.
 */
#ifndef RUEDA_TOOL_SIM_OPTIONS_H
#define RUEDA_TOOL_SIM_OPTIONS_H

#include "predict/training.h"

#define RUEDA_TOOL_SIM_ALGOS  16
#define RUEDA_TOOL_SIM_POINTS 64
#define RUEDA_TOOL_SIM_FAULTS 64
#define RUEDA_TOOL_SIM_JOBS   256

/* Texts are borrowed from argv. */
struct rueda_tool_sim_options {
    struct rueda_sim_net net; /* of the largest number of ranks */
    bool has_hosts;           /* said in words, not by a file */
    const char *topology;     /* NULL: none */
    const char *model;        /* the name of a built-in one, or a path */
    struct {
        int ranks; /* with this many ranks and more, a step of one takes */
        double ms;
    } computes[RUEDA_TOOL_SIM_POINTS];       /* ascending */
    int compute_count;                       /* 0: the model's */
    double jitter;                           /* a part of the computation */
    const char *algos[RUEDA_TOOL_SIM_ALGOS]; /* "auto": the library chooses */
    int algo_count;                          /* 0: each */
    rueda_compression compression;
    int points[RUEDA_TOOL_SIM_POINTS]; /* numbers of ranks, ascending */
    int point_count;
    int steps;
    uint64_t seed;
    size_t fusion_bytes;
    double overhead_ns;      /* negative: the default */
    double work_bytes_per_s; /* 0: the default */
    struct rueda_straggler stragglers[RUEDA_TOOL_SIM_FAULTS];
    int straggler_count;
    struct rueda_sim_fault faults[RUEDA_TOOL_SIM_FAULTS];
    int fault_count;
    int jobs;             /* threads; 0: as many as cores */
    const char *json;     /* NULL: none, like these */
    const char *plot;     /* an SVG */
    const char *measured; /* what is shown beside the predictions */
    bool is_list;         /* of models */
    bool is_show;         /* the model's text */
    bool is_help;
};

/*
 * Read argv[0 .. argc-1], which are the words after "sim". On an error returns
 * false, and words says which, with what was probably meant.
 */
bool rueda_tool_sim_options_parse(int argc, char **argv,
                                  struct rueda_tool_sim_options *out,
                                  struct rueda_text *words);

/* What a step of one rank takes in a job of this size; negative: as the model
 * says. */
double rueda_tool_sim_compute_ms(const struct rueda_tool_sim_options *options,
                                 int ranks);

/* The part of a network that has this number of ranks: some on one host, or
 * hosts that are full. False if there is no such part. */
bool rueda_tool_sim_net_of(const struct rueda_sim_net *net, int ranks,
                           struct rueda_sim_net *out);

/* Which algorithms there are for --algo: "auto" and those of an allreduce that
 * need no shared memory. Ended by NULL. */
const char *const *rueda_tool_sim_algos(void);

#endif /* RUEDA_TOOL_SIM_OPTIONS_H */
