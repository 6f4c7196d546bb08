/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread of a simulated rank takes its turns, and when, as the engine's
 * policy decides in virtual time: a caller that waits, a thread that submits
 * and helps, or the background thread after its grace.
 */
#ifndef RUEDA_TESTS_SIM_PROGRAM_DRIVE_H
#define RUEDA_TESTS_SIM_PROGRAM_DRIVE_H

#include "engine/policy.h"

struct scenario;

struct program_drive {
    struct rueda_policy policy;
    bool is_helping;    /* a thread that submitted takes the next turn */
    bool is_background; /* the background thread takes the next turns */
    bool is_told;       /* there is work, which waits for a thread: */
    int64_t told_ns;    /* since when */
    int64_t untaken_ns; /* since when an operation waits for its first turn; */
    bool is_untaken;    /* if one does */
};

void program_drive_open(struct scenario *scenario, int index);

/* An operation of this size has been pushed. */
void program_drive_submit(struct scenario *scenario, int index, size_t bytes);

/* Does a thread take a turn now? If not, the rank was told when it has the next
 * one. is_awaited: a caller waits. */
bool program_drive_begin(struct scenario *scenario, int index, bool is_awaited);

/* The turn is over; is_idle: nothing is left to do. */
void program_drive_end(struct scenario *scenario, int index, bool is_idle);

#endif /* RUEDA_TESTS_SIM_PROGRAM_DRIVE_H */
