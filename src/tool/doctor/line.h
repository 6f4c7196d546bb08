/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the doctor's helpers on the hosts report to the doctor: lines of text
 * with tabs between their fields, so that they pass through ssh and ruedarun,
 * with any output of a shell before and after. They come from another machine
 * and may contain anything. Pure.
 */
#ifndef RUEDA_TOOL_DOCTOR_LINE_H
#define RUEDA_TOOL_DOCTOR_LINE_H

#include <stdint.h>
#include <stdio.h>

#include "tool/doctor/finding.h"

/* An interface's network, as "10.1.0.0/16", and its longest packet. */
struct rueda_net {
    char interface[32];
    char network[64];
    int mtu;
};

/* What one rank has measured with another. */
struct rueda_half {
    char way[8]; /* "shm" or "tcp" */
    int rank;
    int peer;
    double latency;   /* seconds, one way */
    double bandwidth; /* bytes a second each way, both at a time; 0: none */
    int64_t delta_ns; /* when a message came by my clock, less when it left by
                         the peer's; the least of all */
};

typedef enum rueda_line_kind {
    RUEDA_LINE_FINDING,
    RUEDA_LINE_NET,
    RUEDA_LINE_HALF,
    RUEDA_LINE_JOINED, /* rank is in the job */
    RUEDA_LINE_FAILED, /* rank is not, or no longer: words */
    RUEDA_LINE_END,    /* the report is complete */
} rueda_line_kind;

struct rueda_line {
    rueda_line_kind kind;
    struct rueda_finding finding;
    struct rueda_net net;
    struct rueda_half half;
    int rank;
    char words[RUEDA_FINDING_WORDS];
};

/* With a newline. */
void rueda_line_write(const struct rueda_line *line, FILE *file);

/* The text is one line, without its newline. False: it is none of ours, or
 * spoilt; out is then undefined. */
bool rueda_line_read(const char *text, struct rueda_line *out);

/* Every line of ours in a text of many. */
void rueda_line_each(const char *text,
                     void (*take)(void *arg, const struct rueda_line *line),
                     void *arg);

#endif /* RUEDA_TOOL_DOCTOR_LINE_H */
