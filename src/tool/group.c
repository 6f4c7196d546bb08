/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tool/group.h"

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
/* After a first failure, others may tell more about it. */
#define GRACE_S 0.3
/* To leave when told to, and when an mpirun is asked to end. */
#define LEAVE_S 3.0
#define ASKED_S 1.0

bool rueda_hub_open(struct rueda_hub *hub, bool has_hosts,
                    struct rueda_text *words)
{
    sigset_t signals;

    hub->signal = 0;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    hub->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (hub->signal_fd < 0) {
        rueda_text_set(words, "signalfd: %s", strerror(errno));
        return false;
    }
    hub->listener = rueda_control_listen(has_hosts, hub->name);
    if (hub->listener < 0) {
        rueda_text_set(words, "cannot make a socket for the ranks: %s",
                       strerror(errno));
        close(hub->signal_fd);
        return false;
    }
    return true;
}

void rueda_hub_close(struct rueda_hub *hub)
{
    close(hub->listener);
    if (hub->name[0] == '/')
        unlink(hub->name);
    close(hub->signal_fd);
}

/* Has somebody pressed Ctrl-C? */
static bool is_signalled(struct rueda_hub *hub)
{
    struct signalfd_siginfo info;

    if (hub->signal == 0 &&
        read(hub->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        hub->signal = (int)info.ssi_signo;
    return hub->signal != 0;
}

/* Reap what has ended. The words of the first that ended badly are kept. */
static bool any_child_ended(struct rueda_group *group)
{
    bool has_ended = false;
    char words[128];
    int status;

    for (int i = 0; i < group->child_count; i++) {
        if (group->children[i] == 0 ||
            waitpid(group->children[i], &status, WNOHANG) <= 0)
            continue;
        group->children[i] = 0;
        has_ended = true;
        rueda_bench_spawn_epitaph(status, words, sizeof(words));
        if (group->launch == RUEDA_LAUNCH_PROCESSES ||
            group->launch == RUEDA_LAUNCH_RAW)
            rueda_text_set(&group->words, "rank %d %s", i, words);
        else
            rueda_text_set(&group->words, "%s %s", group->name, words);
    }
    return has_ended;
}

/* Wait for children to leave by themselves. */
static void await_children(struct rueda_group *group, double seconds)
{
    const double deadline = rueda_clock() + seconds;

    for (;;) {
        int left = 0;

        any_child_ended(group);
        for (int i = 0; i < group->child_count; i++)
            left += group->children[i] != 0;
        if (left == 0 || rueda_clock() > deadline)
            return;
        poll(NULL, 0, 5);
    }
}

/* An mpirun is asked first: it has files to remove. */
static void kill_all(struct rueda_group *group)
{
    const bool is_mpi = group->launch == RUEDA_LAUNCH_OPENMPI ||
                        group->launch == RUEDA_LAUNCH_MPICH;

    for (int rank = 0; rank < group->size; rank++)
        if (group->pidfds[rank] >= 0)
            syscall(SYS_pidfd_send_signal, group->pidfds[rank], SIGKILL, NULL,
                    0);
    if (is_mpi && group->child_count == 1 && group->children[0] != 0) {
        kill(group->children[0], SIGTERM);
        await_children(group, ASKED_S);
    }
    for (int i = 0; i < group->child_count; i++) {
        if (group->children[i] == 0)
            continue;
        kill(group->children[i], SIGKILL);
        waitpid(group->children[i], NULL, 0);
        group->children[i] = 0;
    }
}

static void close_all(struct rueda_group *group)
{
    for (int rank = 0; rank < group->size; rank++) {
        if (group->fds[rank] >= 0)
            close(group->fds[rank]);
        if (group->pidfds[rank] >= 0)
            close(group->pidfds[rank]);
        group->fds[rank] = -1;
        group->pidfds[rank] = -1;
    }
    if (group->log_fd >= 0)
        close(group->log_fd);
    group->log_fd = -1;
}

/* End it now, with what an mpirun had to say. */
static void drop(struct rueda_group *group)
{
    char words[384];

    rueda_bench_spawn_last_words(group, words, sizeof(words));
    if (words[0] != '\0')
        rueda_text_add(
            &group->words, "%s%s",
            rueda_text_is_empty(&group->words) ? "" : "; it said: ", words);
    kill_all(group);
    close_all(group);
    group->is_up = false;
}

/* A worker has come to the listener. */
static void admit(struct rueda_group *group, struct rueda_hub *hub,
                  int *in_out_missing)
{
    struct rueda_hello hello;
    struct pollfd ready;
    pid_t pid;
    const int fd = rueda_control_accept(hub->listener, &pid);

    if (fd < 0)
        return;
    /* It speaks at once, or it is no worker of ours. */
    ready = (struct pollfd){.fd = fd, .events = POLLIN};
    if (poll(&ready, 1, 1000) != 1 ||
        !rueda_control_recv(fd, &hello, sizeof(hello)) ||
        hello.group != group->number || hello.rank < 0 ||
        hello.rank >= group->size || group->fds[hello.rank] >= 0) {
        close(fd);
        return;
    }
    hello.words[sizeof(hello.words) - 1] = '\0';
    hello.transport[sizeof(hello.transport) - 1] = '\0';
    if (!hello.is_ok) {
        rueda_text_set(&group->words, "rank %d: %s", hello.rank, hello.words);
        close(fd);
        return;
    }
    if (group->used[0] == '\0') {
        memcpy(group->used, hello.transport, sizeof(group->used));
    } else if (strcmp(group->used, hello.transport) != 0) {
        rueda_text_set(&group->words,
                       "rank %d says that it uses %s, others use %s",
                       hello.rank, hello.transport, group->used);
        close(fd);
        return;
    }
    memcpy(group->version, hello.words, sizeof(group->version));
    group->fds[hello.rank] = fd;
    group->pidfds[hello.rank] = (int)syscall(SYS_pidfd_open, pid, 0);
    (*in_out_missing)--;
}

static bool gather(struct rueda_group *group, struct rueda_hub *hub,
                   double timeout_s)
{
    const double deadline = rueda_clock() + timeout_s;
    int missing = group->size;

    while (missing > 0) {
        struct pollfd polled[2] = {
            {.fd = hub->listener, .events = POLLIN},
            {.fd = hub->signal_fd, .events = POLLIN},
        };

        poll(polled, 2, TICK_MS);
        if (polled[0].revents != 0)
            admit(group, hub, &missing);
        if (is_signalled(hub))
            rueda_text_set(&group->words, "interrupted");
        if (!rueda_text_is_empty(&group->words))
            return false;
        /* A worker that could not start may have said why on the way out. */
        if (polled[0].revents == 0 && any_child_ended(group))
            return false;
        if (rueda_clock() > deadline) {
            rueda_text_set(&group->words,
                           "%d of %d ranks did not start in "
                           "%.0f s",
                           missing, group->size, timeout_s);
            return false;
        }
    }
    return true;
}

bool rueda_group_start(struct rueda_group *group, struct rueda_hub *hub,
                       double timeout_s)
{
    group->is_up = false;
    for (int rank = 0; rank < RUEDA_NP_MAX; rank++) {
        group->fds[rank] = -1;
        group->pidfds[rank] = -1;
    }
    if (!rueda_bench_spawn(group, hub) || !gather(group, hub, timeout_s)) {
        drop(group);
        return false;
    }
    group->is_up = true;
    return true;
}

/* The state of one command under way. */
struct wait {
    bool has_replied[RUEDA_NP_MAX];
    int missing;
    double deadline;
    bool has_failed;
    char words[384]; /* of the first rank that failed in words */
};

static void fail(struct wait *wait, const char *words)
{
    const double grace = rueda_clock() + GRACE_S;

    if (wait->has_failed)
        return;
    wait->has_failed = true;
    snprintf(wait->words, sizeof(wait->words), "%s", words);
    if (grace < wait->deadline)
        wait->deadline = grace;
}

static void take_reply(struct rueda_group *group, int rank, struct wait *wait,
                       struct rueda_reply *reply)
{
    char words[384];

    if (rueda_control_recv(group->fds[rank], reply, sizeof(*reply))) {
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

static void wait_once(struct rueda_group *group, struct rueda_hub *hub,
                      struct wait *wait, struct rueda_reply *replies)
{
    struct pollfd polled[RUEDA_NP_MAX + 1];

    for (int rank = 0; rank < group->size; rank++)
        polled[rank] = (struct pollfd){
            .fd = wait->has_replied[rank] ? -1 : group->fds[rank],
            .events = POLLIN,
        };
    polled[group->size] =
        (struct pollfd){.fd = hub->signal_fd, .events = POLLIN};
    poll(polled, (nfds_t)group->size + 1, TICK_MS);
    for (int rank = 0; rank < group->size; rank++)
        if (polled[rank].fd >= 0 && polled[rank].revents != 0)
            take_reply(group, rank, wait, &replies[rank]);
}

static void explain(struct rueda_group *group, struct rueda_hub *hub,
                    struct wait *wait, double timeout_s)
{
    if (hub->signal != 0) {
        rueda_text_set(&group->words, "interrupted");
    } else if (wait->has_failed) {
        /* How a rank died is the cause of what the others say; its socket may
         * be closed a moment before it can be reaped. */
        for (int i = 0; i < 100 && !any_child_ended(group); i++)
            poll(NULL, 0, 5);
        rueda_text_set(&group->words, "%s", wait->words);
    } else {
        rueda_text_set(&group->words, "%d of %d ranks did not answer in %.0f s",
                       wait->missing, group->size, timeout_s);
    }
}

bool rueda_group_command(struct rueda_group *group, struct rueda_hub *hub,
                         const struct rueda_command *command,
                         struct rueda_reply *out_replies, double timeout_s)
{
    struct wait wait = {
        .missing = group->size,
        .deadline = rueda_clock() + timeout_s,
    };

    if (!group->is_up)
        return false;
    if (group->exchange != NULL)
        return group->exchange(group, command, out_replies);
    for (int rank = 0; rank < group->size; rank++)
        if (!rueda_control_send(group->fds[rank], command, sizeof(*command)))
            fail(&wait, "a rank died");
    while (wait.missing > 0 && rueda_clock() < wait.deadline &&
           !is_signalled(hub))
        wait_once(group, hub, &wait, out_replies);
    if (wait.missing == 0 && !wait.has_failed && hub->signal == 0)
        return true;
    explain(group, hub, &wait, timeout_s);
    drop(group);
    return false;
}

void rueda_group_stop(struct rueda_group *group)
{
    const struct rueda_command quit = {.kind = RUEDA_COMMAND_QUIT};

    if (!group->is_up)
        return;
    if (group->exchange != NULL) {
        group->exchange(group, &quit, NULL);
        group->is_up = false;
        return;
    }
    for (int rank = 0; rank < group->size; rank++)
        rueda_control_send(group->fds[rank], &quit, sizeof(quit));
    await_children(group, LEAVE_S);
    kill_all(group);
    close_all(group);
    group->is_up = false;
}
