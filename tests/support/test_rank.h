/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank of a test, whatever it runs on, and the places where a test body can
 * run: processes (processes.h) or threads (threads.h), each with all short cuts
 * or with messages only.
 *
 * A body does not assert: it returns 0, or says what went wrong in words that
 * the test's own thread prints before it fails.
 */
#ifndef RUEDA_TESTS_SUPPORT_TEST_RANK_H
#define RUEDA_TESTS_SUPPORT_TEST_RANK_H

#include <rueda/rueda.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define RANK_MOST  8 /* ranks */
#define RANK_WORDS 512
#define RANK_ROOM  4096

/* Instrumented code is slow: loops are cut there. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RANK_TSAN 1
#elif __has_feature(address_sanitizer)
#define RANK_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define RANK_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define RANK_ASAN 1
#endif
#if defined(RANK_TSAN) || defined(RANK_ASAN)
#define RANK_IS_SLOW 1
#else
#define RANK_IS_SLOW 0
#endif

/* For the ranks of a test, from beginning to end. */
#if RANK_IS_SLOW || defined(RUEDA_TEST_COVERAGE)
#define RANK_DEADLINE_MS 100000
#else
#define RANK_DEADLINE_MS 20000
#endif

/* What the ranks of a test and the test itself can all see. */
struct rank_board {
    char words[RANK_MOST][RANK_WORDS];
    /* For the test's own use, zeroed at first. */
    _Alignas(64) unsigned char room[RANK_ROOM];
};

struct test_rank {
    int rank;
    int size;
    const char *job; /* the name to join by, if the ranks are processes */
    rueda_ctx *ctx;  /* joined already, unless the test does that itself */
    void *arg;
    struct rank_board *board;
};

/* The life of a rank: 0 if all is well. */
typedef int (*rank_fn)(struct test_rank *me);

/* Say what went wrong; always returns 1. The first words stay. */
int rank_says(struct test_rank *me, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* 0 if they are equal, else 1, with words: what was done. */
int rank_expect(struct test_rank *me, rueda_status is, rueda_status wanted,
                const char *what);

/* ---- Setups ----------------------------------------------------------- */

struct rank_setup {
    const char *name;
    bool is_threads;
    const char *transport; /* RUEDA_TRANSPORT */
};

/* Processes and threads, each directly and with messages only. */
extern const struct rank_setup rank_processes;
extern const struct rank_setup rank_processes_messages;
extern const struct rank_setup rank_threads;
extern const struct rank_setup rank_threads_messages;

/* Table rows: the test in one setup, in both kinds of processes, or in all
 * four; its state is the setup. */
#define RANK_TEST(test, setup)                                                 \
    {                                                                          \
#test " [" #setup "]", test, NULL, NULL, (void *)&rank_##setup         \
    }
#define RANK_IN_PROCESSES(test)                                                \
    RANK_TEST(test, processes), RANK_TEST(test, processes_messages)
#define RANK_EVERYWHERE(test)                                                  \
    RANK_IN_PROCESSES(test), RANK_TEST(test, threads),                         \
        RANK_TEST(test, threads_messages)

/*
 * Run body on `size` ranks that have joined a job, and assert that each of them
 * came back in time with 0; prints the words of those that did not. Skips the
 * test where processes cannot be had (thread sanitizer).
 */
void rank_run(const struct rank_setup *setup, int size, rank_fn body,
              void *arg);

/* Skip the test, with a reason, where it forks and must not. */
void rank_skip_without_fork(void);

/* Lines of the log go nowhere from now on: for tests of failures. */
void rank_hush(void);

/* A job's name that no other test uses. */
void rank_job_name(char *out, size_t bytes);

/* The time of the clock that never jumps, in milliseconds. */
int64_t rank_now_ms(void);
void rank_sleep_ms(int ms);

#endif /* RUEDA_TESTS_SUPPORT_TEST_RANK_H */
