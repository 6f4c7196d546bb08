/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGTERM as a doorbell. The handler runs at any point of the program, so it
 * calls nothing but what signal-safety(7) allows: getpid(), write(), signal(),
 * raise().
 *
 *     first SIGTERM               rings the bell; the process goes on
 *     a second one                ends the process, as without a handler
 *     one that `ender` sends      ends it too: the agent means it
 *     one in a child after fork   ends the child
 */
#include "os/sigterm.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "os/event.h"

/* Written before the handler is installed; it reads them. */
static pid_t owner;
static pid_t end_sender;
static int bell = -1;
static volatile sig_atomic_t has_rung;

/* As if there were no handler. */
static void end_by(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

static void on_notice(int number, siginfo_t *info, void *context)
{
    const int cause = errno;

    (void)context;
    if (getpid() != owner || info->si_pid == end_sender || has_rung != 0) {
        end_by(number);
    } else {
        has_rung = 1;
        rueda_doorbell_ring(bell);
    }
    errno = cause;
}

rueda_status rueda_sigterm_open(int ender, int *out_fd)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction before;

    if (sigaction(SIGTERM, NULL, &before) != 0)
        return RUEDA_ERR_IO;
    if (bell >= 0 || (before.sa_flags & SA_SIGINFO) != 0 ||
        before.sa_handler != SIG_DFL)
        return RUEDA_ERR_INVALID;
    if (rueda_doorbell_open(&bell) != RUEDA_OK)
        return RUEDA_ERR_IO;
    owner = getpid();
    end_sender = ender;
    action.sa_sigaction = on_notice;
    sigaction(SIGTERM, &action, NULL);
    *out_fd = bell;
    return RUEDA_OK;
}
