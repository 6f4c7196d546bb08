/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ranks print, line by line, each with its rank before it, to our own
 * standard output and error and, if wanted, to files; and our own messages. On
 * the loop's thread only.
 */
#ifndef RUEDA_LAUNCH_OUTPUT_H
#define RUEDA_LAUNCH_OUTPUT_H

#include "base/text.h"
#include "launch/console.h"
#include "launch/tail.h"

struct rueda_output;

/* What stands before each line. */
typedef enum rueda_prefix {
    RUEDA_PREFIX_RANK, /* "[3]<stdout>:" */
    RUEDA_PREFIX_HOST, /* "[3@node1]<stdout>:" */
    RUEDA_PREFIX_NONE,
} rueda_prefix;

struct rueda_output_args {
    int size; /* ranks, or processes if these get their ranks later */
    const char *program; /* the program's name, for our own messages */
    const char *folder;  /* of files, or NULL */
    const char *tee;     /* one file for all, or NULL */
    const char *ranks;   /* that are shown, as chosen.h has it; NULL: all */
    rueda_prefix prefix;
    bool has_timestamps;
    bool is_going_on; /* after a restart: files keep what they have */

    /* Called on another thread when something about the consoles may have
     * changed. */
    void (*changed)(void *arg);
    void *arg;
};

/* Makes the folders and files. On failure a message, and nothing is left except
 * perhaps folders. */
rueda_status rueda_output_open(const struct rueda_output_args *args,
                               struct rueda_output **out,
                               struct rueda_text *words);

/* Make room for `size` processes, the first of which are there already. False:
 * no memory, or no files. */
bool rueda_output_grow(struct rueda_output *output, int size);

/* From now on a process is rank `name` in the prefix of its lines. */
void rueda_output_name(struct rueda_output *output, int rank, int name);

/* The host that a process is on, borrowed until the output is closed. */
void rueda_output_host(struct rueda_output *output, int rank, const char *host);

/* The bytes of this rank, which has the terminal, are shown as they come. */
void rueda_output_give_terminal(struct rueda_output *output, int rank);

/* How many columns and rows of our terminal are left to a rank beside the
 * prefix; 0: there is no terminal. */
void rueda_output_room(const struct rueda_output *output, int *out_columns,
                       int *out_rows);

/* Bytes of a rank, of stream 1 or 2. */
void rueda_output_feed(struct rueda_output *output, int rank, int stream,
                       const char *bytes, size_t len);

/* The rank has ended: what it left unfinished is shown. */
void rueda_output_end(struct rueda_output *output, int rank);

/* A line of our own, on standard error. */
void rueda_output_say(struct rueda_output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same without our name before it. */
void rueda_output_say_plainly(struct rueda_output *output, const char *format,
                              ...) __attribute__((format(printf, 2, 3)));

/* A line that the next one takes the place of, on a terminal; elsewhere
 * nothing. "" takes it away. */
void rueda_output_progress(struct rueda_output *output, const char *words);

/* Should no more be fed for now? */
bool rueda_output_is_full(struct rueda_output *output);

/* Call this now and then while it is full: gives up readers that do not read,
 * and prints what was dropped, and that standard output cannot be written. */
void rueda_output_check(struct rueda_output *output);

/* errno's number once standard output cannot be written any more, else 0. */
int rueda_output_error(struct rueda_output *output);

/* The last lines of a rank on standard error. */
const struct rueda_tail *rueda_output_tail(const struct rueda_output *output,
                                           int rank);

/* The rank whose Python exception came first, or -1. */
int rueda_output_first_exception(const struct rueda_output *output);

/* Shows what is unfinished, waits until all is written or no process reads it,
 * and frees. NULL is allowed. */
void rueda_output_close(struct rueda_output *output);

#endif /* RUEDA_LAUNCH_OUTPUT_H */
