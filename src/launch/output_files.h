/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that get the ranks' output: FOLDER/rank.N/stdout and stderr of
 * --output-filename, and the one of --tee. A thread writes, so that a disk or a
 * network file system that hangs holds up nothing else. What it does not take
 * for RUEDA_CONSOLE_PATIENCE_NS is left out, and counted, until it takes some
 * again. Called on the loop's thread only.
 */
#ifndef RUEDA_LAUNCH_OUTPUT_FILES_H
#define RUEDA_LAUNCH_OUTPUT_FILES_H

#include <stdint.h>

#include <rueda/rueda.h>

#include "base/text.h"

#define RUEDA_OUTPUT_TEE (-1)

struct rueda_output_files;

struct rueda_output_files_args {
    const char *folder; /* or NULL */
    const char *tee;    /* or NULL */
    bool is_going_on;   /* after a restart: add to what is there */

    /* Called on the thread when the queue has become shorter. */
    void (*changed)(void *arg);
    void *arg;
};

/* Open them for `size` processes. On failure a message. */
rueda_status rueda_output_files_open(const struct rueda_output_files_args *args,
                                     int size, struct rueda_output_files **out,
                                     struct rueda_text *words);

/* Open those of more processes. False with a message. */
bool rueda_output_files_grow(struct rueda_output_files *files, int size,
                             struct rueda_text *words);

/* Did a file have output of an older job? It is gone. */
bool rueda_output_files_were_there(const struct rueda_output_files *files);

/* Queue bytes for file 2 * rank + stream - 1, or for RUEDA_OUTPUT_TEE. A file
 * that is not open takes nothing. */
void rueda_output_files_put(struct rueda_output_files *files, int index,
                            const char *bytes, size_t len);

/* Does so much wait that the caller should add no more? */
bool rueda_output_files_is_full(struct rueda_output_files *files);

/* Why writing has failed, once for all files: errno's number, else 0; and what
 * was left out because nothing could be written for long, once some of it can,
 * or if is_last. */
int rueda_output_files_check(struct rueda_output_files *files, bool is_last,
                             uint64_t *out_left_out);

/* Wait until all is written, or give that up; rueda_output_files_check() has
 * the rest. Nothing is put any more. */
void rueda_output_files_finish(struct rueda_output_files *files);
void rueda_output_files_close(struct rueda_output_files *files);

#endif /* RUEDA_LAUNCH_OUTPUT_FILES_H */
