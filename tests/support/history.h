/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Was what clients saw of a store linearizable, and each of their requests
 * carried out once at most? That is: could all of it have happened one request
 * after another, each at some moment between its question and its answer?
 *
 * To find such an order is hard in general (Gibbons and Korach, 1997). Here the
 * store says it: every change has a revision, from one counter. So the order is
 * given, and is checked against the times and the answers, in n log n. What had
 * no answer may have been carried out at any later time, once, or not at all.
 */
#ifndef RUEDA_TESTS_SUPPORT_HISTORY_H
#define RUEDA_TESTS_SUPPORT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rueda/rueda.h>

#include "base/text.h"

#define HISTORY_CLIENTS 6

typedef enum history_kind {
    HISTORY_GET,
    HISTORY_SET,
    HISTORY_CAS,
    HISTORY_DELETE,
    HISTORY_ADD, /* on keys where there is nothing else but GET */
} history_kind;

/* A value says who has written it; no two are the same, and none is 0. In a sum
 * each client has a part of its own, to which it adds 1 at a time. */
#define HISTORY_PART_BITS 10
#define HISTORY_PART(client)                                                   \
    ((uint64_t)1 << ((unsigned)(client)*HISTORY_PART_BITS))

struct history_op {
    history_kind kind;
    int client;
    int key;
    uint64_t value;    /* that it writes */
    uint64_t expected; /* CAS: the revision */
    int64_t begin_ns;
    int64_t end_ns; /* of the answer; 0: there was none */

    /* The answer. A CAS that did not match has found these, like a GET. */
    rueda_status status;
    uint64_t revision; /* 0: the key was not there */
    uint64_t found;    /* GET, and CAS without a match: the value; ADD: sum */
};

/* Check all that clients did, in any order of the array, which stays as it is.
 * next: the revision of a change after all of them; others: changes before that
 * are not in the array. False: why says what cannot have been. */
bool history_check(const struct history_op *ops, size_t count, uint64_t next,
                   uint64_t others, struct rueda_text *why);

#endif /* RUEDA_TESTS_SUPPORT_HISTORY_H */
