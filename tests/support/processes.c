/* SPDX-License-Identifier: Apache-2.0 */
#include "support/processes.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int join_and_run(struct test_rank *me, rank_fn body)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    char words[RANK_WORDS] = "";
    rueda_status status;
    int code;

    args.rank = me->rank;
    args.size = me->size;
    args.job = me->job;
    args.timeout_ms = 15000;
    args.error = words;
    args.error_bytes = sizeof(words);
    status = rueda_init(&args, &me->ctx);
    if (status != RUEDA_OK)
        return rank_says(me, "rueda_init: %s", words);
    code = body(me);
    rueda_shutdown(me->ctx);
    return code;
}

static void live(const struct processes *processes, int rank, pid_t parent,
                 processes_way way, rank_fn body, void *arg)
{
    struct test_rank me = {
        .rank = rank,
        .size = processes->size,
        .job = processes->job,
        .arg = arg,
        .board = processes->board,
    };

    /* cmocka catches these, to go on with the next test. */
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    signal(SIGFPE, SIG_DFL);
    signal(SIGILL, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    _exit(way == processes_join ? join_and_run(&me, body) : body(&me));
}

void processes_start(struct processes *processes, int size, processes_way way,
                     rank_fn body, void *arg)
{
    pid_t parent = getpid();

    rank_skip_without_fork();
    memset(processes, 0, sizeof(*processes));
    processes->size = size;
    rank_job_name(processes->job, sizeof(processes->job));
    processes->board =
        mmap(NULL, sizeof(*processes->board), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(processes->board, MAP_FAILED);
    for (int i = 0; i < size; i++)
        processes->codes[i] = PROCESS_RUNS;
    for (int i = 0; i < size; i++) {
        processes->pids[i] = fork();
        if (processes->pids[i] == 0)
            live(processes, i, parent, way, body, arg);
        assert_true(processes->pids[i] > 0);
    }
}

/* Has it ended? */
static bool look(struct processes *processes, int rank)
{
    int how;

    if (processes->codes[rank] != PROCESS_RUNS)
        return true;
    if (waitpid(processes->pids[rank], &how, WNOHANG) != processes->pids[rank])
        return false;
    processes->codes[rank] =
        WIFSIGNALED(how) ? PROCESS_SIGNAL - WTERMSIG(how) : WEXITSTATUS(how);
    return true;
}

int processes_wait(struct processes *processes, int rank, int timeout_ms)
{
    int64_t deadline = rank_now_ms() + timeout_ms;

    while (!look(processes, rank) && rank_now_ms() < deadline)
        rank_sleep_ms(1);
    return processes->codes[rank];
}

static void kill_late(struct processes *processes, int rank)
{
    kill(processes->pids[rank], SIGKILL);
    waitpid(processes->pids[rank], NULL, 0);
    processes->codes[rank] = PROCESS_LATE;
}

int processes_end(struct processes *processes, int timeout_ms)
{
    int64_t deadline = rank_now_ms() + timeout_ms;
    int failures = 0;

    for (int i = 0; i < processes->size; i++) {
        int64_t left = deadline - rank_now_ms();
        int code = processes_wait(processes, i, left > 0 ? (int)left : 0);

        if (code == PROCESS_RUNS)
            kill_late(processes, i);
    }
    for (int i = 0; i < processes->size; i++) {
        if (processes->codes[i] == processes->expected[i])
            continue;
        failures++;
        if (processes->board->words[i][0] != '\0')
            print_error("rank %d: %s\n", i, processes->board->words[i]);
        else if (processes->codes[i] == PROCESS_LATE)
            print_error("rank %d was late\n", i);
        else
            print_error("rank %d ended with %d\n", i, processes->codes[i]);
    }
    munmap(processes->board, sizeof(*processes->board));
    processes->board = NULL;
    return failures;
}
