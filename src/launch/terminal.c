/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's terminal. One rank may have it, for a debugger: the keys go to it
 * as they are pressed, as ssh does it, and what it prints is shown as it comes.
 * And Ctrl-Z, which is to stop and continue the ranks too: they are in process
 * groups and on hosts that the terminal does not know.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/duration.h"
#include "launch/launch_state.h"
#include "os/clock.h"

#define CTRL_C '\003'
#define CTRL_Z '\032'

/* This many Ctrl-C in a row, each within a second of the last, end the job. */
#define INTERRUPTS    3
#define INTERRUPTS_NS RUEDA_S(1)

/* For the signals to leave on their way to other hosts. */
#define SEND_MS 50

/* ---- Whose it is -------------------------------------------------------- */

static bool is_terminal(int fd)
{
    return isatty(fd) == 1;
}

/* A job in the background must not read. */
static bool is_in_front(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* One rank alone gets it without being asked for, unless its lines are to look
 * in a certain way. */
static bool is_alone(const struct rueda_launch *launch)
{
    const char *const *values = launch->options->values;

    return launch->placement.size == 1 && is_terminal(STDIN_FILENO) &&
           is_terminal(STDOUT_FILENO) && is_terminal(STDERR_FILENO) &&
           is_in_front() && values[RUEDA_OPTION_PREFIX] == NULL &&
           values[RUEDA_OPTION_RANKS] == NULL &&
           values[RUEDA_OPTION_TIMESTAMP] == NULL;
}

bool rueda_terminal_choose(struct rueda_launch *launch,
                           struct rueda_text *words)
{
    const bool is_wanted = launch->options->values[RUEDA_OPTION_DEBUG] != NULL;
    const int rank =
        rueda_options_whole(launch->options, RUEDA_OPTION_DEBUG, 0);

    if (!is_wanted && !is_alone(launch))
        return true;
    if (!is_terminal(STDIN_FILENO) || !is_in_front()) {
        rueda_text_set(words, "--debug: the standard input is no terminal, or "
                              "this job is in the background");
        return false;
    }
    launch->terminal_rank = rank;
    launch->input_node = launch->placement.ranks[rank].host;
    return true;
}

/* ---- Keys --------------------------------------------------------------- */

/* The state of the process's terminal, which outlives a launch. */
static struct termios before;
static bool is_taken;

/* As for ssh, but that lines of other ranks still begin at the left. */
void rueda_terminal_take(struct rueda_launch *launch)
{
    struct termios now;

    if (launch->terminal_rank < 0 || is_taken ||
        tcgetattr(STDIN_FILENO, &before) < 0)
        return;
    now = before;
    now.c_iflag &= ~(tcflag_t)(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR |
                               IGNCR | ICRNL | IXON);
    now.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    is_taken = tcsetattr(STDIN_FILENO, TCSADRAIN, &now) == 0;
}

void rueda_terminal_give_back(void)
{
    if (is_taken)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    is_taken = false;
}

/* A rank may take a Ctrl-C for what it likes; several in a row end the job. */
static void note_interrupt(struct rueda_launch *launch)
{
    const int64_t now = rueda_clock_ns();

    if (now - launch->interrupted_ns > INTERRUPTS_NS)
        launch->interrupts = 0;
    launch->interrupted_ns = now;
    if (++launch->interrupts >= INTERRUPTS)
        kill(getpid(), SIGINT);
}

size_t rueda_terminal_keys(struct rueda_launch *launch, const char *bytes,
                           size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] == CTRL_C)
            note_interrupt(launch);
    if (len == 1 && bytes[0] == CTRL_Z) {
        kill(getpid(), SIGTSTP);
        return 0;
    }
    return len;
}

/* ---- Ctrl-Z ------------------------------------------------------------- */

static void on_stop(uv_signal_t *handle, int number);

/* Stop as if no handler were there. A shell without job control lets nothing be
 * stopped, and we go on at once. */
static void stop_here(struct rueda_launch *launch)
{
    const bool was_taken = is_taken;

    uv_signal_stop(&launch->stopping);
    rueda_terminal_give_back();
    /* With the process that reads the terminal for us. */
    if (launch->terminal_rank >= 0)
        kill(0, SIGTSTP);
    else
        raise(SIGTSTP);
    uv_signal_start(&launch->stopping, on_stop, SIGTSTP);
    if (was_taken)
        rueda_terminal_take(launch);
    rueda_launch_signal(launch, SIGCONT);
}

static void on_sent(uv_timer_t *timer)
{
    struct rueda_launch *launch = timer->data;

    uv_close((uv_handle_t *)timer, (uv_close_cb)free);
    stop_here(launch);
}

static void on_stop(uv_signal_t *handle, int number)
{
    struct rueda_launch *launch = handle->data;
    uv_timer_t *timer = malloc(sizeof(*timer));

    rueda_launch_signal(launch, number);
    if (timer == NULL) {
        stop_here(launch);
        return;
    }
    uv_timer_init(&launch->loop, timer);
    timer->data = launch;
    uv_timer_start(timer, on_sent, SEND_MS, 0);
}

void rueda_terminal_watch_stops(struct rueda_launch *launch)
{
    uv_signal_init(&launch->loop, &launch->stopping);
    launch->stopping.data = launch;
    uv_signal_start(&launch->stopping, on_stop, SIGTSTP);
}
