/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What fuzz targets share. A target is one function, which libFuzzer calls with
 * bytes that it has made up; it fails by must(), or by a sanitizer. It keeps
 * nothing from one call to the next, so that a failure can be replayed.
 */
#ifndef RUEDA_TESTS_FUZZ_H
#define RUEDA_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As assert(), in every build. */
#define must(what) ((what) ? (void)0 : fuzz_failed(__FILE__, __LINE__, #what))

_Noreturn static inline void fuzz_failed(const char *file, int line,
                                         const char *what)
{
    fprintf(stderr, "%s:%d: this must be, and is not: %s\n", file, line, what);
    abort();
}

/* What is left of an input: data is taken from its beginning and choices from
 * its end, so that one can be changed without moving the other. */
struct fuzz_input {
    const uint8_t *data;
    size_t size;
};

/* Zero when there are no more. */
static inline unsigned fuzz_choice(struct fuzz_input *input)
{
    return input->size > 0 ? input->data[--input->size] : 0;
}

/* Up to count bytes; returns how many there are. */
static inline size_t fuzz_take(struct fuzz_input *input, size_t count,
                               const uint8_t **out)
{
    if (count > input->size)
        count = input->size;
    *out = input->data;
    input->data += count;
    input->size -= count;
    return count;
}

/* The data as a string, cut at its first zero, in memory of its own with
 * nothing behind it. The caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);

    must(text != NULL);
    return text;
}

/* ---- support.c ---------------------------------------------------------- */

/* Random bytes, which are counted here, start again. */
void fuzz_random_restart(void);

/* A stream at whose end `ours` wait the bytes of data, and then no more. What
 * is sent there is taken and never read. */
struct fuzz_stream {
    int ours;
    int theirs;
};

void fuzz_stream_open(struct fuzz_stream *stream, const void *data,
                      size_t size);
void fuzz_stream_close(struct fuzz_stream *stream);

/* How many of the first descriptors are open: none was lost where that stays
 * the same. */
int fuzz_descriptors(void);

#endif /* RUEDA_TESTS_FUZZ_H */
