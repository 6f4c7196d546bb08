/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two wires of PMI: a command and its answer, each some pairs key=value.
 *
 *   lines     "cmd=get kvsname=a key=b\n"     separated by spaces
 *   counted   "21    cmd=kvs-get;key=b;"      each ended by a semicolon, after
 *                                             their length in six characters
 *
 * PMI-1 uses lines; PMI-2 greets with a line and goes on counted. A value has
 * no separator in it: what we send is digits, and names that came this way.
 * What comes in is held to bounds and believed only where it can be checked.
 *
 * What passes may be a secret: copies on the stack are wiped here, the wire
 * itself by its owner.
 */
#ifndef RUEDA_JOB_PMI_WIRE_H
#define RUEDA_JOB_PMI_WIRE_H

#include <rueda/rueda.h>

#include "base/text.h"

/* The longest message that we take, and the longest that we send: servers of
 * PMI-1 may stop reading a line at 1024. */
#define RUEDA_PMI_MOST_IN  4096
#define RUEDA_PMI_MOST_OUT 1024

struct rueda_pmi_wire {
    int fd; /* borrowed */
    bool is_counted;
    int64_t deadline_ns;
    struct rueda_text *error;
    const char *silence; /* the words if no answer comes in time */
    size_t held;         /* bytes that came and were not taken */
    char inbox[RUEDA_PMI_MOST_IN];
    char answer[RUEDA_PMI_MOST_IN]; /* the last one, ended by a zero */
};

/* Speak lines over fd. */
void rueda_pmi_wire_init(struct rueda_pmi_wire *wire, int fd,
                         int64_t deadline_ns, struct rueda_text *error);

/*
 * Send the words, wait for the answer, and keep it for rueda_pmi_value(). It
 * has to be of the kind that is expected, with rc=0 or without any rc. On
 * failure the wire's error says what happened.
 */
rueda_status rueda_pmi_ask(struct rueda_pmi_wire *wire, const char *kind,
                           const char *words, ...)
    __attribute__((format(printf, 3, 4)));

/* The value of a key in the last answer. False if it has none, or one that
 * does not fit. */
bool rueda_pmi_value(const struct rueda_pmi_wire *wire, const char *key,
                     char *out, size_t bytes);

/* The same for a whole number from 0 on. */
bool rueda_pmi_number(const struct rueda_pmi_wire *wire, const char *key,
                      int *out);

/* Bytes as two hexadecimal digits each, ended by a zero. */
void rueda_pmi_hex_write(const void *bytes, size_t count, char *out);

/* True if text is exactly the digits of count bytes. */
bool rueda_pmi_hex_read(const char *text, void *out, size_t count);

#endif /* RUEDA_JOB_PMI_WIRE_H */
