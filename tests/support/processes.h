/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks as child processes of the test. A child never returns into cmocka: it
 * ends by _exit() with what its body returned, and dies with the test if that
 * dies first. Only by the test's own thread, with no other thread running.
 */
#ifndef RUEDA_TESTS_SUPPORT_PROCESSES_H
#define RUEDA_TESTS_SUPPORT_PROCESSES_H

#include <sys/types.h>

#include "support/test_rank.h"

/* In place of an exit code. */
#define PROCESS_RUNS   (-1)
#define PROCESS_LATE   (-2)   /* had to be killed at the deadline */
#define PROCESS_SIGNAL (-100) /* less the number of the signal */

struct processes {
    int size;
    char job[64];
    struct rank_board *board;
    pid_t pids[RANK_MOST];
    int codes[RANK_MOST];
    int expected[RANK_MOST]; /* 0 unless the test says otherwise */
};

typedef enum processes_way {
    processes_join,    /* each has a context before body runs, and after it is
                          shut down */
    processes_by_self, /* body does that, or does not */
} processes_way;

/* Start the ranks; skips the test where it cannot fork. Ended by
 * processes_end(). */
void processes_start(struct processes *processes, int size, processes_way way,
                     rank_fn body, void *arg);

/*
 * Wait until this rank has ended, at most this long, and return its code: what
 * its body returned, PROCESS_SIGNAL - the signal that killed it, or
 * PROCESS_RUNS.
 */
int processes_wait(struct processes *processes, int rank, int timeout_ms);

/*
 * Wait for all and let go of them; who is late is killed. Returns how many did
 * not end as expected, after printing what they said; codes[] stay.
 */
int processes_end(struct processes *processes, int timeout_ms);

#endif /* RUEDA_TESTS_SUPPORT_PROCESSES_H */
