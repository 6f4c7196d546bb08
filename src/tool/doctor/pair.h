/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of hosts: which hosts meet in which round, and how to judge the
 * results. Pure.
 */
#ifndef RUEDA_TOOL_DOCTOR_PAIR_H
#define RUEDA_TOOL_DOCTOR_PAIR_H

#include "tool/doctor/line.h"

/* The doctor starts this many ranks on each host: host h has 2h and 2h + 1. */
#define RUEDA_DOCTOR_RANKS 2

/* Every host meets every other: the number of rounds, and the partner of `host`
 * in one of them; -1: none. */
int rueda_pair_rounds(int hosts);
int rueda_pair_partner(int hosts, int round, int host);

struct rueda_pair {
    int a; /* hosts; the same: two ranks of one host */
    int b;
    char way[8];
    double latency;   /* seconds one way; of both ends the longer. NaN: they
                         could not meet, finding.value says why */
    double bandwidth; /* bytes a second each way; of both ends the less */
    bool has_offset;  /* b's clock less a's, and how far that may be wrong */
    double offset;
    double error;
    struct rueda_finding finding;
};

struct rueda_pairs {
    struct rueda_pair *list;
    int count;
};

/* Take in a report of one of the doctor's ranks; hosts: how many there are.
 * False: there are no such ranks, or there is no memory. */
bool rueda_pairs_take(struct rueda_pairs *pairs, const struct rueda_half *half,
                      int hosts);

/* These hosts could not meet by TCP, or not completely: the message of the
 * library or the launcher. Without memory it is left out. */
void rueda_pairs_fail(struct rueda_pairs *pairs, int a, int b,
                      const char *words);

/* NULL: they have not met. */
const struct rueda_pair *rueda_pairs_find(const struct rueda_pairs *pairs,
                                          int a, int b, const char *way);

/* Sort them, compare each with the others of its way, and fill in the findings.
 */
void rueda_pairs_judge(struct rueda_pairs *pairs);

void rueda_pairs_fini(struct rueda_pairs *pairs);

#endif /* RUEDA_TOOL_DOCTOR_PAIR_H */
