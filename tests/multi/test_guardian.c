/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent's guardian that is killed at the worst of moments: when it has just
 * forked the agent, which has not yet asked to be told of its death. ptrace()
 * holds the agent there.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/frame.h"
#include "support/test_rank.h"
#include "unit/unit.h"

#define RUEDARUN RUEDA_TEST_BIN_DIR "/ruedarun"

#define NO_TRACING 77

/* A guardian, and the ends of its standard input and output that are ours. */
struct guardian {
    pid_t pid;
    int in;
    int out;
};

/* The next thing that happens to the process; false: nothing does. */
static bool await(pid_t pid, int *how)
{
    const int64_t deadline = rank_now_ms() + RANK_DEADLINE_MS;

    while (waitpid(pid, how, WNOHANG | __WALL) != pid) {
        if (rank_now_ms() > deadline)
            return false;
        rank_sleep_ms(1);
    }
    return true;
}

static void start(struct guardian *guardian)
{
    int in[2];
    int out[2];
    int how;

    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    guardian->pid = fork();
    if (guardian->pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        for (int i = 0; i < 2; i++) {
            close(in[i]);
            close(out[i]);
        }
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(NO_TRACING);
        execl(RUEDARUN, RUEDARUN, "agent", "--stdio", (char *)NULL);
        _exit(127);
    }
    assert_true(guardian->pid > 0);
    close(in[0]);
    close(out[1]);
    guardian->in = in[1];
    guardian->out = out[0];
    assert_true(await(guardian->pid, &how));
    if (WIFEXITED(how) && WEXITSTATUS(how) == NO_TRACING)
        skip();
    assert_true(WIFSTOPPED(how));
}

/* Let it run until it forks. Returns the child, which has not begun. */
static pid_t run_to_fork(const struct guardian *guardian)
{
    const int forked = SIGTRAP | PTRACE_EVENT_FORK << 8;
    unsigned long child = 0;
    int signal = 0;
    int how;

    assert_int_equal(ptrace(PTRACE_SETOPTIONS, guardian->pid, NULL,
                            PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL),
                     0);
    for (;;) {
        assert_int_equal(ptrace(PTRACE_CONT, guardian->pid, NULL, signal), 0);
        assert_true(await(guardian->pid, &how));
        assert_true(WIFSTOPPED(how));
        if (how >> 8 == forked)
            break;
        signal = WSTOPSIG(how);
    }
    assert_int_equal(ptrace(PTRACE_GETEVENTMSG, guardian->pid, NULL, &child),
                     0);
    assert_true(await((pid_t)child, &how));
    assert_true(WIFSTOPPED(how));
    return (pid_t)child;
}

/* All that comes until the end; false: there is none. */
static bool read_to_end(int fd, char *out, size_t bytes, size_t *out_len)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    size_t len = 0;

    while (len < bytes && poll(&poll_fd, 1, RANK_DEADLINE_MS) == 1) {
        const ssize_t got = read(fd, out + len, bytes - len);

        *out_len = len;
        if (got <= 0)
            return got == 0;
        len += (size_t)got;
    }
    return false;
}

static void an_agent_whose_guardian_is_gone_does_not_begin(void **state)
{
    static const char mark[] = RUEDA_AGENT_MARK;
    struct guardian guardian;
    char text[256];
    size_t len = 0;
    pid_t agent;
    bool has_ended;
    int how;

    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    start(&guardian);
    agent = run_to_fork(&guardian);
    assert_int_equal(kill(guardian.pid, SIGKILL), 0);
    assert_true(await(guardian.pid, &how));
    assert_true(WIFSIGNALED(how));
    assert_int_equal(ptrace(PTRACE_DETACH, agent, NULL, NULL), 0);

    /* An agent that begins says so, and waits for the launcher. */
    has_ended = await(agent, &how);
    kill(agent, SIGKILL);
    assert_true(has_ended);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 1);
    assert_true(read_to_end(guardian.out, text, sizeof(text), &len));
    assert_int_equal(len, strlen(mark));
    assert_memory_equal(text, mark, len);
    close(guardian.in);
    close(guardian.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_whose_guardian_is_gone_does_not_begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
