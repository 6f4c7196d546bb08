/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of each launcher: one row each, the nearest first. seat.c
 * reads them; to add a launcher, add a name in seat.h and a row. Pure.
 */
#ifndef RUEDA_JOB_SEAT_LAUNCHERS_H
#define RUEDA_JOB_SEAT_LAUNCHERS_H

#include "job/seat.h"

enum {
    RUEDA_SEAT_RANK,
    RUEDA_SEAT_SIZE,
    RUEDA_SEAT_LOCAL_RANK,
    RUEDA_SEAT_LOCAL_SIZE,
    RUEDA_SEAT_CROSS_RANK,
    RUEDA_SEAT_CROSS_SIZE,
    RUEDA_SEAT_NUMBERS
};

/* Room for an option as text. */
#define RUEDA_SEAT_TEXT 16

struct rueda_launcher_row {
    rueda_launcher launcher;
    const char *owner;                     /* "Open MPI's ", before a name */
    const char *claim;                     /* why it goes before later rows */
    const char *names[RUEDA_SEAT_NUMBERS]; /* NULL: it does not say that */
    const char *other_size;                /* taken if the size is not there */
    const char *witness; /* another name, shown where numbers are missing */
    const char *remedy;  /* for missing numbers */

    /* Optional: why variables that are there need not be of this launcher. */
    const char *doubt;

    /* Optional: whether it started us. Without it: one of names is there. */
    bool (*is_here)(const struct rueda_seat_query *query);

    /* Optional: the local size, where its variable is not a number. */
    int (*local_size)(const struct rueda_seat_query *query);

    const char *job;        /* the socket's name: this, */
    const char *parts[2];   /* then the values of these variables, */
    const char *joint;      /* with this between the two, */
    const char *other_part; /* or of this one if neither is there; */
    bool has_parent;        /* or the id of the query's parent */

    /* How ranks are introduced if neither caller nor settings say it. Sets
     * introduction, and store where that is it. The size is above 1. */
    rueda_status (*introduce)(const struct rueda_seat_query *query,
                              const struct rueda_launcher_row *row,
                              struct rueda_seat *seat,
                              struct rueda_text *error);
};

/* What to do where ranks of several hosts have no way to meet. */
#define RUEDA_SEAT_STORE_ADVICE                                                \
    "set RUEDA_STORE=host:port and RUEDA_KEY_FILE for all ranks"

/* All but RUEDA_LAUNCHER_NONE, the nearest first. */
const struct rueda_launcher_row *rueda_launcher_rows(int *out_count);

/* The value of a variable, NULL where it is unset or empty. */
const char *rueda_seat_variable(const struct rueda_seat_query *query,
                                const char *name);

/* The name that a number goes by here. NULL: there is none. */
const char *rueda_launcher_name(const struct rueda_seat_query *query,
                                const struct rueda_launcher_row *row,
                                int number);

/* What is said for a number, or NULL; buf[RUEDA_SEAT_TEXT] may be used. */
const char *rueda_launcher_value(const struct rueda_seat_query *query,
                                 const struct rueda_launcher_row *row,
                                 int number, char *buf);

/* The first name for which something is said, or NULL. */
const char *rueda_launcher_trace(const struct rueda_seat_query *query,
                                 const struct rueda_launcher_row *row);

/* Does the launcher say that all ranks are on this host? */
bool rueda_launcher_is_one_host(const struct rueda_seat_query *query,
                                const struct rueda_seat *seat);

bool rueda_launcher_is_here(const struct rueda_seat_query *query,
                            const struct rueda_launcher_row *row);

#endif /* RUEDA_JOB_SEAT_LAUNCHERS_H */
