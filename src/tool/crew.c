/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting, commanding and ending the workers of one system under test.
 *
 *     start     spawn.c starts them; gather() waits until all have said hello
 *     command   one packet to each worker, then one reply from each
 *     stop      quit, LEAVE_S to end by themselves, then SIGKILL
 *
 * Three things end a wait before all have replied: a rank that fails in words,
 * a rank that dies, and Ctrl-C. Then drop() kills the whole crew, since the
 * other ranks wait for that one inside a collective and would never answer.
 */
#define _GNU_SOURCE
#include "tool/crew.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/clock.h"
#include "tool/spawn.h"

#define TICK_MS 50
/* After a first failure, other ranks may tell more about it. */
#define GRACE_S 0.3
/* To leave when told to, and when an mpirun is asked to end. */
#define LEAVE_S 3.0
#define ASKED_S 1.0

/* One listener serves all crews. Signals come through a descriptor, so that an
 * interrupted benchmark still ends its workers. */
bool rueda_crew_listener_open(struct rueda_crew_listener *listener,
                              bool has_hosts, struct rueda_text *words)
{
    sigset_t signals;

    listener->signal = 0;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    listener->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (listener->signal_fd < 0) {
        rueda_text_set(words, "signalfd: %s", strerror(errno));
        return false;
    }
    listener->fd = rueda_control_listen(has_hosts, listener->name);
    if (listener->fd < 0) {
        rueda_text_set(words, "cannot make a socket for the ranks: %s",
                       strerror(errno));
        close(listener->signal_fd);
        return false;
    }
    return true;
}

void rueda_crew_listener_close(struct rueda_crew_listener *listener)
{
    close(listener->fd);
    if (listener->name[0] == '/')
        unlink(listener->name);
    close(listener->signal_fd);
}

/* Has the user pressed Ctrl-C? */
static bool is_signalled(struct rueda_crew_listener *listener)
{
    struct signalfd_siginfo info;

    if (listener->signal == 0 &&
        read(listener->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        listener->signal = (int)info.ssi_signo;
    return listener->signal != 0;
}

/* Reap children that have ended. The message of the first that failed
 * is kept. */
static bool any_child_ended(struct rueda_crew *crew)
{
    bool has_ended = false;
    char words[128];
    int status;

    for (int i = 0; i < crew->child_count; i++) {
        if (crew->children[i] == 0 ||
            waitpid(crew->children[i], &status, WNOHANG) <= 0)
            continue;
        crew->children[i] = 0;
        has_ended = true;
        rueda_bench_spawn_epitaph(status, words, sizeof(words));
        if (crew->kind == RUEDA_CREW_PROCESSES || crew->kind == RUEDA_CREW_RAW)
            rueda_text_set(&crew->words, "rank %d %s", i, words);
        else
            rueda_text_set(&crew->words, "%s %s", crew->name, words);
    }
    return has_ended;
}

/* Wait for children to leave by themselves. */
static void await_children(struct rueda_crew *crew, double seconds)
{
    const double deadline = rueda_tool_clock() + seconds;

    for (;;) {
        int left = 0;

        any_child_ended(crew);
        for (int i = 0; i < crew->child_count; i++)
            left += crew->children[i] != 0;
        if (left == 0 || rueda_tool_clock() > deadline)
            return;
        poll(NULL, 0, 5);
    }
}

/* An mpirun is asked first: it has files to remove. Its ranks are not our
 * children, so they are killed by their pidfds, which cannot mean another
 * process meanwhile. */
static void kill_all(struct rueda_crew *crew)
{
    const bool is_mpi =
        crew->kind == RUEDA_CREW_OPENMPI || crew->kind == RUEDA_CREW_MPICH;

    for (int rank = 0; rank < crew->size; rank++)
        if (crew->pidfds[rank] >= 0)
            syscall(SYS_pidfd_send_signal, crew->pidfds[rank], SIGKILL, NULL,
                    0);
    if (is_mpi && crew->child_count == 1 && crew->children[0] != 0) {
        kill(crew->children[0], SIGTERM);
        await_children(crew, ASKED_S);
    }
    for (int i = 0; i < crew->child_count; i++) {
        if (crew->children[i] == 0)
            continue;
        kill(crew->children[i], SIGKILL);
        waitpid(crew->children[i], NULL, 0);
        crew->children[i] = 0;
    }
}

static void close_all(struct rueda_crew *crew)
{
    for (int rank = 0; rank < crew->size; rank++) {
        if (crew->fds[rank] >= 0)
            close(crew->fds[rank]);
        if (crew->pidfds[rank] >= 0)
            close(crew->pidfds[rank]);
        crew->fds[rank] = -1;
        crew->pidfds[rank] = -1;
    }
    if (crew->log_fd >= 0)
        close(crew->log_fd);
    crew->log_fd = -1;
}

/* End it now, with what an mpirun had to say. */
static void drop(struct rueda_crew *crew)
{
    char words[384];

    rueda_bench_spawn_last_words(crew, words, sizeof(words));
    if (words[0] != '\0')
        rueda_text_add(
            &crew->words, "%s%s",
            rueda_text_is_empty(&crew->words) ? "" : "; it said: ", words);
    kill_all(crew);
    close_all(crew);
    crew->is_up = false;
}

/* A worker has connected to the listener. One that is not of this crew, or a
 * second one of a rank, is hung up on; any process of this user could connect.
 */
static void admit(struct rueda_crew *crew, struct rueda_crew_listener *listener,
                  int *in_out_missing)
{
    struct rueda_hello hello;
    struct pollfd ready;
    pid_t pid;
    const int fd = rueda_control_accept(listener->fd, &pid);

    if (fd < 0)
        return;
    /* A worker of ours sends its first message at once. */
    ready = (struct pollfd){.fd = fd, .events = POLLIN};
    if (poll(&ready, 1, 1000) != 1 ||
        !rueda_control_recv(fd, &hello, sizeof(hello)) ||
        hello.crew != crew->number || hello.rank < 0 ||
        hello.rank >= crew->size || crew->fds[hello.rank] >= 0) {
        close(fd);
        return;
    }
    hello.words[sizeof(hello.words) - 1] = '\0';
    hello.transport[sizeof(hello.transport) - 1] = '\0';
    if (!hello.is_ok) {
        rueda_text_set(&crew->words, "rank %d: %s", hello.rank, hello.words);
        close(fd);
        return;
    }
    if (crew->used[0] == '\0') {
        memcpy(crew->used, hello.transport, sizeof(crew->used));
    } else if (strcmp(crew->used, hello.transport) != 0) {
        rueda_text_set(&crew->words,
                       "rank %d says that it uses %s, others use %s",
                       hello.rank, hello.transport, crew->used);
        close(fd);
        return;
    }
    memcpy(crew->version, hello.words, sizeof(crew->version));
    crew->fds[hello.rank] = fd;
    crew->pidfds[hello.rank] = (int)syscall(SYS_pidfd_open, pid, 0);
    (*in_out_missing)--;
}

/* Wait until all workers have come, one has died, or the time is over. */
static bool gather(struct rueda_crew *crew,
                   struct rueda_crew_listener *listener, double timeout_s)
{
    const double deadline = rueda_tool_clock() + timeout_s;
    int missing = crew->size;

    while (missing > 0) {
        struct pollfd polled[2] = {
            {.fd = listener->fd, .events = POLLIN},
            {.fd = listener->signal_fd, .events = POLLIN},
        };

        poll(polled, 2, TICK_MS);
        if (polled[0].revents != 0)
            admit(crew, listener, &missing);
        if (is_signalled(listener))
            rueda_text_set(&crew->words, "interrupted");
        if (!rueda_text_is_empty(&crew->words))
            return false;
        /* A worker that could not start may have said why on the way out. */
        if (polled[0].revents == 0 && any_child_ended(crew))
            return false;
        if (rueda_tool_clock() > deadline) {
            rueda_text_set(&crew->words,
                           "%d of %d ranks did not start in "
                           "%.0f s",
                           missing, crew->size, timeout_s);
            return false;
        }
    }
    return true;
}

bool rueda_crew_start(struct rueda_crew *crew,
                      struct rueda_crew_listener *listener, double timeout_s)
{
    crew->is_up = false;
    for (int rank = 0; rank < RUEDA_NP_MAX; rank++) {
        crew->fds[rank] = -1;
        crew->pidfds[rank] = -1;
    }
    if (!rueda_bench_spawn(crew, listener) ||
        !gather(crew, listener, timeout_s)) {
        drop(crew);
        return false;
    }
    crew->is_up = true;
    return true;
}

/* The state of one command in flight. */
struct wait {
    bool has_replied[RUEDA_NP_MAX];
    int missing;
    double deadline;
    bool has_failed;
    char words[384]; /* of the first rank that failed in words */
};

/* The first failure decides; the other ranks get GRACE_S more to answer. */
static void fail(struct wait *wait, const char *words)
{
    const double grace = rueda_tool_clock() + GRACE_S;

    if (wait->has_failed)
        return;
    wait->has_failed = true;
    snprintf(wait->words, sizeof(wait->words), "%s", words);
    if (grace < wait->deadline)
        wait->deadline = grace;
}

/* A socket that closes without a reply is a worker that died. */
static void take_reply(struct rueda_crew *crew, int rank, struct wait *wait,
                       struct rueda_reply *reply)
{
    char words[384];

    if (rueda_control_recv(crew->fds[rank], reply, sizeof(*reply))) {
        reply->words[sizeof(reply->words) - 1] = '\0';
        if (!reply->is_ok)
            fail(wait, reply->words);
    } else {
        snprintf(words, sizeof(words), "rank %d died", rank);
        fail(wait, words);
    }
    wait->has_replied[rank] = true;
    wait->missing--;
}

/* One look at all workers that have not replied, and at the signals. */
static void wait_once(struct rueda_crew *crew,
                      struct rueda_crew_listener *listener, struct wait *wait,
                      struct rueda_reply *replies)
{
    struct pollfd polled[RUEDA_NP_MAX + 1];

    for (int rank = 0; rank < crew->size; rank++)
        polled[rank] = (struct pollfd){
            .fd = wait->has_replied[rank] ? -1 : crew->fds[rank],
            .events = POLLIN,
        };
    polled[crew->size] =
        (struct pollfd){.fd = listener->signal_fd, .events = POLLIN};
    poll(polled, (nfds_t)crew->size + 1, TICK_MS);
    for (int rank = 0; rank < crew->size; rank++)
        if (polled[rank].fd >= 0 && polled[rank].revents != 0)
            take_reply(crew, rank, wait, &replies[rank]);
}

static void explain(struct rueda_crew *crew,
                    struct rueda_crew_listener *listener, struct wait *wait,
                    double timeout_s)
{
    if (listener->signal != 0) {
        rueda_text_set(&crew->words, "interrupted");
    } else if (wait->has_failed) {
        /* How a rank died is the cause of what the others say; its socket may
         * be closed a moment before it can be reaped. */
        for (int i = 0; i < 100 && !any_child_ended(crew); i++)
            poll(NULL, 0, 5);
        rueda_text_set(&crew->words, "%s", wait->words);
    } else {
        rueda_text_set(&crew->words, "%d of %d ranks did not answer in %.0f s",
                       wait->missing, crew->size, timeout_s);
    }
}

/* Send a command to all workers and collect their replies. False with a message
 * if one fails; the crew is then stopped by the caller. */
bool rueda_crew_command(struct rueda_crew *crew,
                        struct rueda_crew_listener *listener,
                        const struct rueda_control_command *command,
                        struct rueda_reply *out_replies, double timeout_s)
{
    struct wait wait = {
        .missing = crew->size,
        .deadline = rueda_tool_clock() + timeout_s,
    };

    if (!crew->is_up)
        return false;
    if (crew->exchange != NULL)
        return crew->exchange(crew, command, out_replies);
    for (int rank = 0; rank < crew->size; rank++)
        if (!rueda_control_send(crew->fds[rank], command, sizeof(*command)))
            fail(&wait, "a rank died");
    while (wait.missing > 0 && rueda_tool_clock() < wait.deadline &&
           !is_signalled(listener))
        wait_once(crew, listener, &wait, out_replies);
    if (wait.missing == 0 && !wait.has_failed && listener->signal == 0)
        return true;
    explain(crew, listener, &wait, timeout_s);
    drop(crew);
    return false;
}

/* Ask the workers to leave, and kill those that do not. */
void rueda_crew_stop(struct rueda_crew *crew)
{
    const struct rueda_control_command quit = {.kind = RUEDA_CONTROL_QUIT};

    if (!crew->is_up)
        return;
    if (crew->exchange != NULL) {
        crew->exchange(crew, &quit, NULL);
        crew->is_up = false;
        return;
    }
    for (int rank = 0; rank < crew->size; rank++)
        rueda_control_send(crew->fds[rank], &quit, sizeof(quit));
    await_children(crew, LEAVE_S);
    kill_all(crew);
    close_all(crew);
    crew->is_up = false;
}
