/* SPDX-License-Identifier: Apache-2.0 */
#include "support/threads.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct thread {
    pthread_t id;
    struct test_rank me;
    rank_fn body;
    int code;
};

static void *live(void *arg)
{
    struct thread *thread = arg;

    thread->code = thread->body(&thread->me);
    rueda_shutdown(thread->me.ctx);
    return NULL;
}

static void join_or_exit(struct thread *thread, const struct timespec *deadline)
{
    if (pthread_timedjoin_np(thread->id, NULL, deadline) == 0)
        return;
    fprintf(stderr, "rank %d is late: %s\n", thread->me.rank,
            thread->me.board->words[thread->me.rank]);
    _exit(1);
}

int threads_run(int size, rank_fn body, void *arg, int timeout_ms)
{
    static struct rank_board board;
    struct thread threads[RANK_MOST];
    rueda_ctx *contexts[RANK_MOST];
    struct timespec deadline;
    int failures = 0;

    memset(&board, 0, sizeof(board));
    assert_int_equal(rueda_init_threads(size, NULL, contexts), RUEDA_OK);
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += timeout_ms / 1000;
    for (int i = 0; i < size; i++) {
        threads[i].body = body;
        threads[i].me = (struct test_rank){
            .rank = i,
            .size = size,
            .ctx = contexts[i],
            .arg = arg,
            .board = &board,
        };
        assert_int_equal(
            pthread_create(&threads[i].id, NULL, live, &threads[i]), 0);
    }
    for (int i = 0; i < size; i++)
        join_or_exit(&threads[i], &deadline);
    for (int i = 0; i < size; i++) {
        if (threads[i].code == 0)
            continue;
        failures++;
        print_error("rank %d: %s\n", i, board.words[i]);
    }
    return failures;
}
