/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the agent of a host: by fork on this one, by ssh on others. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "launch/agent.h"
#include "launch/launch_state.h"
#include "launch/spawn.h"
#include "launch/ssh.h"
#include "os/event.h"

/* ---- The stream --------------------------------------------------------- */

static void on_frame(struct rueda_link *link, const struct rueda_frame *frame)
{
    rueda_launch_frame(link->owner, frame);
}

static void on_end(struct rueda_link *link, const char *why)
{
    rueda_launch_lost(link->owner, why);
}

static const struct rueda_link_ops ops = {.frame = on_frame, .end = on_end};

rueda_status rueda_node_link(struct rueda_node *node, int fd, const char *mark)
{
    node->is_linked = true;
    return rueda_link_open(&node->link, &node->launch->loop, fd, fd, mark, &ops,
                           node);
}

/* ---- On this host ------------------------------------------------------- */

/* The agent of this host is a copy of us, in a session of its own, so that the
 * terminal's signals do not reach it. It prints nothing itself, so it closes
 * our output: a reader of that must not wait for the agent. */
static void be_agent(int fd, int input)
{
    struct rueda_agent_args args = {
        .in = fd, .out = fd, .input = input, .words = STDERR_FILENO};
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    for (int i = 0; i < 3; i++)
        dup2(null, i);
    exit(rueda_agent_run(&args));
}

/* Start the agent of this machine by fork(), joined by a socket pair. */
rueda_status rueda_node_start_here(struct rueda_node *node, int input)
{
    int ends[2];
    pid_t agent;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return RUEDA_ERR_IO;
    agent = fork();
    if (agent == 0) {
        /* Those of the agents before us: they are to see us all end. */
        for (struct rueda_node *other = node->launch->nodes; other < node;
             other++)
            if (other->is_linked)
                close(other->link.in);
        close(ends[0]);
        be_agent(ends[1], input);
    }
    close(ends[1]);
    if (agent > 0 && rueda_node_link(node, ends[0], NULL) == RUEDA_OK)
        return RUEDA_OK;
    close(ends[0]);
    return RUEDA_ERR_IO;
}

/* ---- By ssh ------------------------------------------------------------- */

static void on_error_line(void *arg, const char *bytes, size_t len,
                          bool is_begin)
{
    struct rueda_node *node = arg;

    while (len > 0 && (bytes[len - 1] == '\n' || bytes[len - 1] == '\r'))
        len--;
    if (len == 0 || !is_begin)
        return;
    snprintf(node->words, sizeof(node->words), "%.*s", (int)len, bytes);
    if (node->state == RUEDA_NODE_RUNNING)
        rueda_output_say(node->launch->output, "%s: %s", node->name,
                         node->words);
}

static void close_errors(struct rueda_node *node)
{
    if (node->errors < 0)
        return;
    uv_close((uv_handle_t *)&node->errors_poll, NULL);
    close(node->errors);
    node->errors = -1;
    rueda_lines_end(&node->error_lines, on_error_line, node);
}

/* What ssh prints is shown line by line, with the name of the host. */
static void on_errors(uv_poll_t *poll, int status, int events)
{
    struct rueda_node *node = poll->data;
    char bytes[4096];
    ssize_t got;

    (void)status;
    (void)events;
    if (node->errors < 0)
        return;
    got = read(node->errors, bytes, sizeof(bytes));
    if (got > 0)
        rueda_lines_feed(&node->error_lines, bytes, (size_t)got, on_error_line,
                         node);
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        close_errors(node);
}

const char *rueda_node_words(struct rueda_node *node)
{
    char bytes[4096];
    ssize_t got;

    while (node->errors >= 0 &&
           (got = read(node->errors, bytes, sizeof(bytes))) > 0)
        rueda_lines_feed(&node->error_lines, bytes, (size_t)got, on_error_line,
                         node);
    close_errors(node);
    return node->words;
}

/* words_fd: where an agent on this host says that we are gone. */
static void add_ssh_words(const struct rueda_node *node, int words_fd,
                          struct rueda_strings *words)
{
    const struct rueda_options *options = node->launch->options;
    const struct rueda_ssh ssh = {
        .port = options->values[RUEDA_OPTION_SSH_PORT],
        .identity = options->values[RUEDA_OPTION_SSH_IDENTITY]};
    char path[RUEDA_SSH_PATH_BYTES];
    char number[16];

    rueda_ssh_own_path(path, sizeof(path));
    if (node->is_local) {
        rueda_strings_add(words, path);
        rueda_strings_add(words, "agent");
        rueda_strings_add(words, "--here");
        snprintf(number, sizeof(number), "%d", words_fd);
        rueda_strings_add(words, number);
        return;
    }
    rueda_ssh_words(&ssh, node->name, path, "ruedarun", "agent --stdio", words);
}

static void say_command(const struct rueda_node *node,
                        const struct rueda_strings *words)
{
    struct rueda_text line = {{0}};

    for (int i = 0; i < words->count; i++)
        rueda_text_add(&line, "%s%s", i == 0 ? "" : " ", words->list[i]);
    rueda_output_say(node->launch->output, "%s: %s", node->name, line.chars);
}

/* Start ssh with the agent's command. Its standard streams are the link; errors
 * come separately. */
static bool spawn_ssh(struct rueda_node *node, int stream, int errors)
{
    struct rueda_strings words = {.list = NULL};
    struct rueda_text why = {{0}};
    char program[4096];
    struct rueda_spawn spawn = {.program = program,
                                .variables = environ,
                                .input = stream,
                                .output = stream,
                                .error = errors,
                                .inherited = -1};
    bool is_good = false;

    if (node->is_local)
        spawn.inherited = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    add_ssh_words(node, spawn.inherited, &words);
    if (rueda_options_is_on(node->launch->options, RUEDA_OPTION_VERBOSE))
        say_command(node, &words);
    if (!words.is_short &&
        rueda_spawn_find(words.list[0], rueda_environment("PATH"), program,
                         sizeof(program), &why)) {
        spawn.command = words.list;
        is_good = rueda_spawn(&spawn) > 0;
    }
    if (!is_good)
        snprintf(node->words, sizeof(node->words), "%.200s",
                 rueda_text_is_empty(&why) ? strerror(errno) : why.chars);
    rueda_strings_fini(&words);
    rueda_fd_close(spawn.inherited);
    return is_good;
}

void rueda_node_hello(struct rueda_node *node)
{
    struct rueda_packer packer;

    rueda_packer_begin(&packer, RUEDA_FRAME_HELLO);
    rueda_frame_pack_bytes(&packer, node->launch->key.bytes, RUEDA_KEY_BYTES);
    rueda_link_send(&node->link, &packer);
}

/* Start the agent of another host by ssh. */
rueda_status rueda_node_start_there(struct rueda_node *node)
{
    int stream[2];
    int errors[2];
    bool is_good;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream) < 0)
        return RUEDA_ERR_IO;
    if (pipe2(errors, O_CLOEXEC) < 0) {
        close(stream[0]);
        close(stream[1]);
        return RUEDA_ERR_IO;
    }
    fcntl(errors[0], F_SETFL, O_NONBLOCK);
    is_good = spawn_ssh(node, stream[1], errors[1]);
    close(stream[1]);
    close(errors[1]);
    if (!is_good ||
        uv_poll_init(&node->launch->loop, &node->errors_poll, errors[0]) != 0) {
        close(stream[0]);
        close(errors[0]);
        return RUEDA_ERR_IO;
    }
    node->errors = errors[0];
    node->errors_poll.data = node;
    uv_poll_start(&node->errors_poll, UV_READABLE, on_errors);
    if (rueda_node_link(node, stream[0], RUEDA_AGENT_MARK) != RUEDA_OK)
        return RUEDA_ERR_IO;
    rueda_node_hello(node);
    return RUEDA_OK;
}

void rueda_node_fini(struct rueda_node *node)
{
    close_errors(node);
    if (!node->is_linked)
        return;
    rueda_link_close(&node->link);
}
