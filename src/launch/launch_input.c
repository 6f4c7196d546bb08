/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard input for a rank 0 that is on another host. It may be anything,
 * and reading it may block, so a process of its own reads it and writes it to a
 * socket. What is in flight to the rank never exceeds a window, so that a rank
 * that does not read holds up nothing but its input.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/launch_state.h"
#include "os/process.h"

#define READ_BYTES ((size_t)1 << 16)

/* ---- The process -------------------------------------------------------- */

/* Does not keep our output open, so that its reader sees the end. */
static void pump(int to)
{
    static char bytes[READ_BYTES];
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    ssize_t got;

    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    while ((got = read(STDIN_FILENO, bytes, sizeof(bytes))) != 0) {
        if (got < 0 && errno != EINTR)
            break;
        for (ssize_t at = 0; at < got;) {
            const ssize_t put = write(to, bytes + at, (size_t)(got - at));

            if (put < 0 && errno != EINTR)
                _exit(1);
            at += put > 0 ? put : 0;
        }
    }
    _exit(0);
}

/* Read standard input in a child process, because reading it may block. */
rueda_status rueda_launch_read_input(struct rueda_launch *launch)
{
    const int parent = rueda_process_id();
    int ends[2];
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return RUEDA_ERR_IO;
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        close(ends[0]);
        pump(ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return RUEDA_ERR_IO;
    }
    launch->input = ends[0];
    return RUEDA_OK;
}

/* ---- On the loop -------------------------------------------------------- */

/* Empty: this was all. */
static void send_input(struct rueda_launch *launch, const char *bytes,
                       size_t len)
{
    struct rueda_packer packer;

    rueda_packer_begin(&packer, RUEDA_FRAME_INPUT);
    rueda_frame_pack_bytes(&packer, bytes, len);
    rueda_link_send(&launch->nodes[launch->input_node].link, &packer);
    launch->input_flying += len;
}

/* Pass input on to rank 0, never more than its agent has room for. */
static void on_input(uv_poll_t *poll, int status, int events)
{
    struct rueda_launch *launch = poll->data;
    const size_t room = RUEDA_INPUT_WINDOW - launch->input_flying;
    char bytes[READ_BYTES];
    ssize_t got;

    (void)status;
    (void)events;
    if (launch->input < 0 || room == 0)
        return;
    got =
        read(launch->input, bytes, room < sizeof(bytes) ? room : sizeof(bytes));
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0 && launch->terminal_rank >= 0) {
        const size_t len = rueda_terminal_keys(launch, bytes, (size_t)got);

        if (len > 0)
            send_input(launch, bytes, len);
        return;
    }
    send_input(launch, bytes, got > 0 ? (size_t)got : 0);
    if (got <= 0)
        rueda_launch_close_input(launch);
    else if (launch->input_flying >= RUEDA_INPUT_WINDOW)
        uv_poll_stop(&launch->input_poll);
}

void rueda_launch_pass_input(struct rueda_launch *launch)
{
    if (launch->input < 0)
        return;
    if (uv_poll_init(&launch->loop, &launch->input_poll, launch->input) != 0) {
        close(launch->input);
        launch->input = -1;
        return;
    }
    launch->is_passing_input = true;
    launch->input_poll.data = launch;
    uv_poll_start(&launch->input_poll, UV_READABLE, on_input);
}

/* An agent that says more than it was sent gains nothing. */
void rueda_launch_input_taken(struct rueda_launch *launch, uint32_t count)
{
    const bool was_full = launch->input_flying >= RUEDA_INPUT_WINDOW;

    launch->input_flying -=
        count < launch->input_flying ? count : launch->input_flying;
    if (was_full && launch->input >= 0 && count > 0)
        uv_poll_start(&launch->input_poll, UV_READABLE, on_input);
}

void rueda_launch_close_input(struct rueda_launch *launch)
{
    if (launch->input < 0)
        return;
    if (launch->is_passing_input)
        uv_close((uv_handle_t *)&launch->input_poll, NULL);
    close(launch->input);
    launch->input = -1;
}
