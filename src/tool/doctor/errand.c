/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running commands on all hosts at the same time, with a deadline, and
 * collecting what they print.
 */
#include "tool/doctor/errand.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "launch/limit.h"
#include "launch/spawn.h"
#include "tool/clock.h"
#include "tool/doctor/finding.h"

/* How often to check for processes that ended without closing their streams. */
#define CHECK_SECONDS 0.05

/* ---- Starting ----------------------------------------------------------- */

static bool make_pipe(struct rueda_errand_stream *stream, int *out_end)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    stream->fd = ends[0];
    *out_end = ends[1];
    return true;
}

static void refuse(struct rueda_errand *errand, const char *words)
{
    errand->code = 127;
    free(errand->err.text);
    errand->err.text = strdup(words);
    errand->err.len = errand->err.text != NULL ? strlen(words) : 0;
}

/* Start one command with pipes for its output. One that cannot be started ends
 * like a command that failed. */
static void start(struct rueda_errand *errand)
{
    struct rueda_text words = {{0}};
    char program[4096];
    int out = -1;
    int err = -1;

    errand->out.fd = -1;
    errand->err.fd = -1;
    if (!errand->command.is_short &&
        rueda_spawn_find(errand->command.list[0], rueda_environment("PATH"),
                         program, sizeof(program), &words) &&
        make_pipe(&errand->out, &out) && make_pipe(&errand->err, &err)) {
        const struct rueda_spawn spawn = {.program = program,
                                          .command = errand->command.list,
                                          .variables = environ,
                                          .input = -1,
                                          .output = out,
                                          .error = err,
                                          .inherited = -1};

        errand->child = rueda_spawn(&spawn);
        errand->is_started = errand->child > 0;
    }
    if (!errand->is_started)
        refuse(errand,
               rueda_text_is_empty(&words) ? strerror(errno) : words.chars);
    if (out >= 0)
        close(out);
    if (err >= 0)
        close(err);
}

/* ---- Listening ---------------------------------------------------------- */

static void keep(struct rueda_errand_stream *stream, const char *bytes,
                 size_t count)
{
    char *bigger;

    if (count > RUEDA_ERRAND_BYTES - stream->len)
        count = RUEDA_ERRAND_BYTES - stream->len;
    bigger = realloc(stream->text, stream->len + count + 1);
    if (bigger == NULL)
        return;
    memcpy(bigger + stream->len, bytes, count);
    stream->text = bigger;
    stream->len += count;
    bigger[stream->len] = '\0';
}

static void hang_up(struct rueda_errand_stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

/* What is there, a zero byte taken for a newline, since the text ends at a
 * zero. What goes beyond RUEDA_ERRAND_BYTES is read and dropped: a command
 * whose pipe is full would never end. */
static void listen_to(struct rueda_errand_stream *stream)
{
    char bytes[16384];
    ssize_t got;

    while (stream->fd >= 0) {
        got = read(stream->fd, bytes, sizeof(bytes));
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            hang_up(stream);
            return;
        }
        for (ssize_t i = 0; i < got; i++)
            if (bytes[i] == '\0')
                bytes[i] = '\n';
        keep(stream, bytes, (size_t)got);
    }
}

/* Has it ended? Then take what it has printed by now. Processes that it left
 * behind may hold its streams open, and are not waited for. flags as for
 * waitpid(). */
static bool bury(struct rueda_errand *errand, double began, int flags)
{
    int how = 0;

    if (waitpid(errand->child, &how, flags) != errand->child)
        return false;
    errand->code = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
    errand->seconds = rueda_tool_clock() - began;
    errand->child = 0;
    listen_to(&errand->out);
    listen_to(&errand->err);
    hang_up(&errand->out);
    hang_up(&errand->err);
    return true;
}

static int fill_in(struct pollfd *polls, const struct rueda_errand *errands,
                   int count)
{
    int open = 0;

    for (int i = 0; i < count; i++) {
        *polls++ = (struct pollfd){errands[i].out.fd, POLLIN, 0};
        *polls++ = (struct pollfd){errands[i].err.fd, POLLIN, 0};
        open += errands[i].child > 0;
    }
    return open;
}

static void look_at_all(struct rueda_errand *errands, int count, double began)
{
    for (int i = 0; i < count; i++) {
        if (errands[i].child <= 0)
            continue;
        listen_to(&errands[i].out);
        listen_to(&errands[i].err);
        bury(&errands[i], began, WNOHANG);
    }
}

/* Its whole group, as a shell's child may be what hangs. */
static void kill_late(struct rueda_errand *errand, double began)
{
    if (errand->child <= 0)
        return;
    kill(-errand->child, SIGKILL);
    kill(errand->child, SIGKILL);
    errand->is_late = true;
    bury(errand, began, 0);
}

/* Run all commands at the same time, for at most this long, and collect what
 * they print. */
void rueda_errands_run(struct rueda_errand *errands, int count, double seconds)
{
    struct pollfd *polls = calloc(2 * (size_t)count + 1, sizeof(*polls));
    const double began = rueda_tool_clock();

    rueda_limit_need(2 * count);
    for (int i = 0; i < count; i++)
        start(&errands[i]);
    while (polls != NULL && fill_in(polls, errands, count) > 0) {
        const double left = began + seconds - rueda_tool_clock();

        if (left <= 0)
            break;
        poll(polls, 2 * (nfds_t)count,
             left < CHECK_SECONDS ? (int)(left * 1000) + 1
                                  : (int)(CHECK_SECONDS * 1000));
        look_at_all(errands, count, began);
    }
    for (int i = 0; i < count; i++) {
        kill_late(&errands[i], began);
        hang_up(&errands[i].out);
        hang_up(&errands[i].err);
    }
    free(polls);
}

/* ---- What they said ----------------------------------------------------- */

const char *rueda_errand_text(const struct rueda_errand_stream *stream)
{
    return stream->text != NULL ? stream->text : "";
}

void rueda_errand_last_line(const struct rueda_errand_stream *stream, char *out,
                            size_t room)
{
    const char *text = rueda_errand_text(stream);
    size_t end = strlen(text);
    size_t begin;
    char line[1024];

    while (end > 0 && strchr("\r\n ", text[end - 1]) != NULL)
        end--;
    begin = end;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    snprintf(line, sizeof(line), "%.*s", (int)(end - begin), text + begin);
    rueda_finding_copy(out, room, line);
}

void rueda_errand_fini(struct rueda_errand *errand)
{
    rueda_strings_fini(&errand->command);
    free(errand->out.text);
    free(errand->err.text);
}
