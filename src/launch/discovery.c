/* SPDX-License-Identifier: Apache-2.0 */
/* The script of discovery is run, or the file read, once a second; its answer
 * is parsed and compared with the last good one. */
#include "launch/discovery.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/discovery_parse.h"

/* From the end of one question to the next. */
#define PAUSE_MS 1000

/* A script that takes longer hangs. */
#define HANG_MS 10000

#define MOST_BYTES ((size_t)1 << 20)

struct rueda_discovery {
    struct rueda_discovery_args args;
    uv_timer_t timer; /* to the next question, or for the script to end */
    uv_process_t process;
    uv_pipe_t pipe;
    bool is_running; /* the process's handle is open */
    bool is_reading; /* the pipe's is */
    bool is_hanging; /* it was ended by us */
    bool is_closing;
    int64_t code; /* of the script's exit */
    char *text;   /* what it has printed */
    size_t len;
    char *last; /* the last good answer as text, or NULL */
    struct rueda_text complaint;
};

static void ask(struct rueda_discovery *discovery);

/* ---- Answers ---------------------------------------------------------- */

/* Each thing that is wrong is said once, until an answer is good again. */
static void complain(struct rueda_discovery *discovery, const char *words)
{
    const bool is_known = strcmp(discovery->complaint.chars, words) == 0;

    discovery->complaint.chars[0] = '\0';
    rueda_text_set(&discovery->complaint, "%s", words);
    if (!is_known || discovery->last == NULL)
        discovery->args.failed(discovery->args.arg, words,
                               discovery->last == NULL);
}

static void take(struct rueda_discovery *discovery, struct rueda_hosts *hosts)
{
    char *text = rueda_hosts_text(hosts, true);

    discovery->complaint.chars[0] = '\0';
    if (text != NULL &&
        (discovery->last == NULL || strcmp(text, discovery->last) != 0)) {
        free(discovery->last);
        discovery->last = text;
        text = NULL;
        discovery->args.found(discovery->args.arg, hosts);
    }
    free(text);
    rueda_hosts_fini(hosts);
}

static void on_pause_over(uv_timer_t *timer)
{
    ask(timer->data);
}

static void ask_later(struct rueda_discovery *discovery)
{
    if (!discovery->is_closing)
        uv_timer_start(&discovery->timer, on_pause_over, PAUSE_MS, 0);
}

/* ---- The script ------------------------------------------------------- */

static void judge(struct rueda_discovery *discovery)
{
    const char *script = discovery->args.script;
    struct rueda_text words = {{0}};
    struct rueda_text why = {{0}};
    struct rueda_hosts hosts;

    if (discovery->is_hanging)
        rueda_text_set(&words,
                       "the discovery script %.200s has not ended within %d s, "
                       "so it was ended",
                       script, HANG_MS / 1000);
    else if (discovery->code != 0)
        rueda_text_set(&words,
                       "the discovery script %.200s failed with exit code %d",
                       script, (int)discovery->code);
    else if (discovery->len >= MOST_BYTES)
        rueda_text_set(&words,
                       "the discovery script %.200s printed over %zu bytes",
                       script, MOST_BYTES);
    else if (rueda_discovery_parse(discovery->text != NULL ? discovery->text
                                                           : "",
                                   discovery->args.default_slots, &hosts, &why))
        take(discovery, &hosts);
    else
        rueda_text_set(&words, "the discovery script %.200s: %s", script,
                       why.chars);
    if (!rueda_text_is_empty(&words))
        complain(discovery, words.chars);
}

/* The process has ended and its output too. */
static void finish_if_done(struct rueda_discovery *discovery)
{
    if (discovery->is_running || discovery->is_reading || discovery->is_closing)
        return;
    uv_timer_stop(&discovery->timer);
    judge(discovery);
    ask_later(discovery);
}

static void on_process_closed(uv_handle_t *handle)
{
    struct rueda_discovery *discovery = handle->data;

    discovery->is_running = false;
    finish_if_done(discovery);
}

static void on_pipe_closed(uv_handle_t *handle)
{
    struct rueda_discovery *discovery = handle->data;

    discovery->is_reading = false;
    finish_if_done(discovery);
}

/* What it left behind may hold the pipe open. */
static void end_script(struct rueda_discovery *discovery)
{
    if (discovery->is_running)
        kill(-discovery->process.pid, SIGKILL);
    if (discovery->is_reading &&
        !uv_is_closing((uv_handle_t *)&discovery->pipe))
        uv_close((uv_handle_t *)&discovery->pipe, on_pipe_closed);
}

static void on_hang(uv_timer_t *timer)
{
    struct rueda_discovery *discovery = timer->data;

    discovery->is_hanging = true;
    end_script(discovery);
}

static void on_exit_of_script(uv_process_t *process, int64_t code, int signal)
{
    struct rueda_discovery *discovery = process->data;

    discovery->code = signal != 0 ? 128 + signal : code;
    uv_close((uv_handle_t *)process, on_process_closed);
}

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    static char bytes[16384]; /* the loop has one thread */

    (void)handle;
    (void)suggested;
    *out = uv_buf_init(bytes, sizeof(bytes));
}

static void on_output(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct rueda_discovery *discovery = stream->data;
    char *grown;

    if (got < 0) {
        if (!uv_is_closing((uv_handle_t *)stream))
            uv_close((uv_handle_t *)stream, on_pipe_closed);
        return;
    }
    if (discovery->len + (size_t)got > MOST_BYTES)
        got = (ssize_t)(MOST_BYTES - discovery->len);
    grown = realloc(discovery->text, discovery->len + (size_t)got + 1);
    if (grown == NULL)
        return;
    memcpy(grown + discovery->len, buf->base, (size_t)got);
    discovery->text = grown;
    discovery->len += (size_t)got;
    grown[discovery->len] = '\0';
}

static void run_script(struct rueda_discovery *discovery)
{
    char *words[] = {"sh", "-c", (char *)discovery->args.script, NULL};
    uv_stdio_container_t streams[3] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&discovery->pipe},
        {.flags = UV_INHERIT_FD, .data.fd = 2}};
    const uv_process_options_t options = {.exit_cb = on_exit_of_script,
                                          .file = "/bin/sh",
                                          .args = words,
                                          .flags = UV_PROCESS_DETACHED,
                                          .stdio = streams,
                                          .stdio_count = 3};
    struct rueda_text why = {{0}};
    int error;

    discovery->len = 0;
    discovery->code = 0;
    discovery->is_hanging = false;
    if (discovery->text != NULL)
        discovery->text[0] = '\0';
    uv_pipe_init(discovery->args.loop, &discovery->pipe, 0);
    discovery->pipe.data = discovery;
    discovery->process.data = discovery;
    error = uv_spawn(discovery->args.loop, &discovery->process, &options);
    discovery->is_reading = true;
    if (error != 0) {
        rueda_text_set(&why, "the discovery script cannot be run: %s",
                       uv_strerror(error));
        complain(discovery, why.chars);
        discovery->code = 127;
        uv_close((uv_handle_t *)&discovery->pipe, on_pipe_closed);
        return;
    }
    discovery->is_running = true;
    uv_read_start((uv_stream_t *)&discovery->pipe, give_room, on_output);
    uv_timer_start(&discovery->timer, on_hang, HANG_MS, 0);
}

/* ---- Looking ---------------------------------------------------------- */

static void ask(struct rueda_discovery *discovery)
{
    struct rueda_text words = {{0}};
    struct rueda_hosts hosts;

    if (discovery->is_closing)
        return;
    if (discovery->args.script != NULL) {
        run_script(discovery);
        return;
    }
    if (rueda_hosts_read(discovery->args.file, &hosts, &words))
        take(discovery, &hosts);
    else
        complain(discovery, words.chars);
    ask_later(discovery);
}

struct rueda_discovery *
rueda_discovery_open(const struct rueda_discovery_args *args)
{
    struct rueda_discovery *discovery = calloc(1, sizeof(*discovery));

    if (discovery == NULL)
        return NULL;
    discovery->args = *args;
    uv_timer_init(args->loop, &discovery->timer);
    discovery->timer.data = discovery;
    ask(discovery);
    return discovery;
}

void rueda_discovery_close(struct rueda_discovery *discovery)
{
    if (discovery == NULL || discovery->is_closing)
        return;
    discovery->is_closing = true;
    end_script(discovery);
    uv_close((uv_handle_t *)&discovery->timer, NULL);
}

void rueda_discovery_free(struct rueda_discovery *discovery)
{
    if (discovery == NULL)
        return;
    free(discovery->text);
    free(discovery->last);
    free(discovery);
}
