/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank of a test, whatever it runs on, and the places where a test body can
 * run: processes (processes.h) or threads (threads.h), each with all short cuts
 * or with messages only.
 *
 * A body does not assert: it returns 0, or says what went wrong in words that
 * the test's own thread prints before it fails.
 */
#ifndef RUEDA_TESTS_SUPPORT_PARTY_H
#define RUEDA_TESTS_SUPPORT_PARTY_H

#include <rueda/rueda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define PARTY_MOST  8 /* ranks */
#define PARTY_WORDS 512
#define PARTY_ROOM  4096

/* Instrumented code is slow: loops are cut there. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PARTY_TSAN 1
#elif __has_feature(address_sanitizer)
#define PARTY_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define PARTY_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define PARTY_ASAN 1
#endif
#if defined(PARTY_TSAN) || defined(PARTY_ASAN)
#define PARTY_IS_SLOW 1
#else
#define PARTY_IS_SLOW 0
#endif

/* For the ranks of a test, from beginning to end. */
#if PARTY_IS_SLOW || defined(RUEDA_TEST_COVERAGE)
#define PARTY_DEADLINE_MS 100000
#else
#define PARTY_DEADLINE_MS 20000
#endif

/* What the ranks of a test and the test itself can all see. */
struct party_board {
    char words[PARTY_MOST][PARTY_WORDS];
    /* For the test's own use, zeroed at first. */
    _Alignas(64) unsigned char room[PARTY_ROOM];
};

struct party {
    int rank;
    int size;
    const char *job; /* the name to join by, if the ranks are processes */
    rueda_ctx *ctx;  /* joined already, unless the test does that itself */
    void *arg;
    struct party_board *board;
};

/* The life of a rank: 0 if all is well. */
typedef int (*party_fn)(struct party *me);

/* Say what went wrong; always returns 1. The first words stay. */
int party_says(struct party *me, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* 0 if they are equal, else 1, with words: what was done. */
int party_expect(struct party *me, rueda_status is, rueda_status wanted,
                 const char *what);

/* ---- Places ----------------------------------------------------------- */

struct party_place {
    const char *name;
    bool is_threads;
    const char *transport; /* RUEDA_TRANSPORT */
};

/* Processes and threads, each directly and with messages only. */
extern const struct party_place party_processes;
extern const struct party_place party_processes_messages;
extern const struct party_place party_threads;
extern const struct party_place party_threads_messages;

/* Table rows: the test in one place, in both kinds of processes, or in all
 * four; its state is the place. */
#define PARTY_TEST(test, place)                                                \
    {                                                                          \
#test " [" #place "]", test, NULL, NULL, (void *)&party_##place        \
    }
#define PARTY_IN_PROCESSES(test)                                               \
    PARTY_TEST(test, processes), PARTY_TEST(test, processes_messages)
#define PARTY_EVERYWHERE(test)                                                 \
    PARTY_IN_PROCESSES(test), PARTY_TEST(test, threads),                       \
        PARTY_TEST(test, threads_messages)

/*
 * Run body on `size` ranks that have joined a job, and assert that each of them
 * came back in time with 0; prints the words of those that did not. Skips the
 * test where processes cannot be had (thread sanitizer).
 */
void party_run(const struct party_place *place, int size, party_fn body,
               void *arg);

/* Skip the test, with a reason, where it forks and must not. */
void party_skip_without_fork(void);

/* Lines of the log go nowhere from now on: for tests of failures. */
void party_hush(void);

/* A job's name that nobody else uses. */
void party_job_name(char *out, size_t bytes);

/* The time of the clock that never jumps, in milliseconds. */
int64_t party_now_ms(void);
void party_sleep_ms(int ms);

#endif /* RUEDA_TESTS_SUPPORT_PARTY_H */
