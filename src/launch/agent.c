/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's life: it receives the assignment, starts the ranks, forwards
 * output and signals, and ends everything when a rank fails or the launcher is
 * gone. agent_start.c, agent_input.c and agent_output.c have the parts.
 */
#include "launch/agent.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "base/duration.h"
#include "launch/agent_state.h"
#include "launch/family.h"
#include "os/process.h"

/* For processes that hang in the kernel. */
#define END_NS RUEDA_S(3)

#define CHECK_MS 1000

/* ---- Telling the launcher ----------------------------------------------- */

void rueda_agent_note(struct rueda_agent *agent, const char *words)
{
    struct rueda_packer packer;

    rueda_packer_begin(&packer, RUEDA_FRAME_NOTE);
    rueda_frame_pack_text(&packer, words);
    rueda_link_send(&agent->link, &packer);
}

/* The launcher's address as it is seen from here, "10.1.2.3:4000"; empty if it
 * is not known. sshd puts it into the first word. */
static void find_launcher(const struct rueda_agent_args *args, char *out,
                          size_t bytes)
{
    const char *ssh = rueda_environment("SSH_CONNECTION");
    struct rueda_address peer;

    out[0] = '\0';
    if (args->session != NULL &&
        rueda_socket_peer(args->in, &peer) == RUEDA_OK) {
        rueda_address_text(&peer, out, bytes);
    } else if (args->is_by_ssh && ssh != NULL) {
        const int len = (int)strcspn(ssh, " ");
        const bool is_ipv6 = memchr(ssh, ':', (size_t)len) != NULL;

        snprintf(out, bytes, "%s%.*s%s:0", is_ipv6 ? "[" : "", len, ssh,
                 is_ipv6 ? "]" : "");
    }
}

/* Tell the launcher that this agent is up: its version, the name of its host,
 * the release of the library, and by which of the launcher's addresses it came.
 */
static void say_ready(struct rueda_agent *agent,
                      const struct rueda_agent_args *args)
{
    struct rueda_packer packer;
    char launcher[RUEDA_ADDRESS_TEXT];
    char host[256];

    rueda_process_host(host, sizeof(host));
    find_launcher(args, launcher, sizeof(launcher));
    rueda_packer_begin(&packer, RUEDA_FRAME_READY);
    rueda_frame_pack_number(&packer, RUEDA_AGENT_VERSION);
    rueda_frame_pack_text(&packer, host);
    rueda_frame_pack_text(&packer, rueda_version());
    rueda_frame_pack_text(&packer, launcher);
    rueda_frame_pack_number(&packer, (uint32_t)args->slots);
    rueda_link_send(&agent->link, &packer);
}

static void say_started(struct rueda_agent *agent)
{
    struct rueda_packer packer;

    rueda_packer_begin(&packer, RUEDA_FRAME_STARTED);
    for (int i = 0; i < agent->worker_count; i++)
        rueda_frame_pack_number(&packer, (uint32_t)agent->workers[i]->process);
    rueda_link_send(&agent->link, &packer);
}

static void say_refused(struct rueda_agent *agent, int code, const char *words)
{
    struct rueda_packer packer;

    rueda_packer_begin(&packer, RUEDA_FRAME_REFUSED);
    rueda_frame_pack_number(&packer, (uint32_t)code);
    rueda_frame_pack_text(&packer, words);
    rueda_link_send(&agent->link, &packer);
}

/* The reason of a SIGKILL that we did not send: 0 unknown, 1 the cgroup was out
 * of memory, 2 the machine was. */
static unsigned look_for_oom(const struct rueda_worker *worker)
{
    const struct rueda_oom_count *before = &worker->agent->oom;
    struct rueda_oom_count now;

    if (worker->agent->is_killing || !WIFSIGNALED(worker->how) ||
        WTERMSIG(worker->how) != SIGKILL)
        return 0;
    rueda_oom_count(&now);
    if (before->cgroup >= 0 && now.cgroup > before->cgroup)
        return 1;
    return before->machine >= 0 && now.machine > before->machine ? 2 : 0;
}

static void say_ended(struct rueda_worker *worker)
{
    const bool is_signal = WIFSIGNALED(worker->how);
    struct rueda_packer packer;

    rueda_packer_begin(&packer, RUEDA_FRAME_EXIT);
    rueda_frame_pack_number(&packer, (uint32_t)worker->rank);
    rueda_frame_pack_number(&packer, is_signal ? 0 : WEXITSTATUS(worker->how));
    rueda_frame_pack_number(&packer, is_signal ? WTERMSIG(worker->how) : 0);
    rueda_frame_pack_number(&packer, look_for_oom(worker));
    rueda_link_send(&worker->agent->link, &packer);
}

/* ---- The end ------------------------------------------------------------ */

static void stop_if_sent(struct rueda_agent *agent)
{
    if (agent->is_finishing &&
        (agent->is_lost || rueda_link_queued(&agent->link) == 0))
        uv_stop(&agent->loop);
}

/* All ranks have ended. The processes that they left behind end too, and their
 * output is sent on. */
static void finish(struct rueda_agent *agent)
{
    if (agent->is_finishing)
        return;
    agent->is_finishing = true;
    rueda_family_end(END_NS);
    for (int i = 0; i < agent->worker_count; i++) {
        rueda_outlets_drain(agent->workers[i]);
        rueda_outlets_close(agent->workers[i]);
    }
    stop_if_sent(agent);
}

static void finish_if_over(struct rueda_agent *agent)
{
    for (int i = 0; i < agent->worker_count; i++)
        if (!agent->workers[i]->is_told)
            return;
    if (agent->assignment.is_elastic && !agent->is_closing && !agent->is_lost)
        return;
    if (agent->has_assignment || agent->is_lost)
        finish(agent);
}

/* The launcher hears of a rank's end after all that the rank has printed. */
void rueda_agent_check(struct rueda_worker *worker)
{
    if (!worker->has_ended || worker->is_told)
        return;
    if (!rueda_outlets_drain(worker) && !worker->agent->is_lost)
        return;
    worker->is_told = true;
    /* The others go on, so what it has left behind ends now. */
    if (worker->agent->assignment.is_elastic) {
        kill(-worker->process, SIGKILL);
        rueda_outlets_close(worker);
    }
    say_ended(worker);
    if (worker->agent->assignment.is_elastic)
        rueda_oom_count(&worker->agent->oom);
    finish_if_over(worker->agent);
}

/* Signal the process group of every rank that still runs. SIGKILL goes to all
 * descendants, also to those that left their group. */
static void signal_all(struct rueda_agent *agent, int signal)
{
    if (signal == SIGKILL) {
        agent->is_killing = true;
        rueda_family_signal(SIGKILL);
        return;
    }
    for (int i = 0; i < agent->worker_count; i++) {
        if (agent->workers[i]->has_ended)
            continue;
        /* A session of its own ignores what a terminal would stop it by. */
        if (signal == SIGTSTP && agent->workers[i]->has_terminal)
            kill(-agent->workers[i]->process, SIGSTOP);
        kill(-agent->workers[i]->process, signal);
        /* A stopped process does not receive it. */
        if (signal == SIGTERM)
            kill(-agent->workers[i]->process, SIGCONT);
    }
}

static void on_killer(uv_timer_t *timer)
{
    signal_all(timer->data, SIGKILL);
}

/* The launcher is gone, or a signal asks us to end. */
static void end_all(struct rueda_agent *agent)
{
    agent->is_killing = true;
    signal_all(agent, SIGTERM);
    uv_timer_start(&agent->killer, on_killer,
                   (uint64_t)agent->assignment.grace_ms, 0);
    finish_if_over(agent);
}

/* ---- What happens ------------------------------------------------------- */

void rueda_agent_worker_ended(struct rueda_worker *worker, int how)
{
    worker->has_ended = true;
    worker->how = how;
    if (worker->death >= 0) {
        uv_close((uv_handle_t *)&worker->death_poll, NULL);
        close(worker->death);
        worker->death = -1;
    }
    rueda_agent_check(worker);
}

/* Ends of ranks, if their own descriptors do not report them first, and of
 * orphans that we have adopted. */
static void on_child(uv_signal_t *handle, int number)
{
    struct rueda_agent *agent = handle->data;
    pid_t process;
    int how;

    (void)number;
    while ((process = waitpid(-1, &how, WNOHANG)) > 0) {
        for (int i = 0; i < agent->worker_count; i++) {
            struct rueda_worker *worker = agent->workers[i];

            if (worker->process == process && !worker->has_ended)
                rueda_agent_worker_ended(worker, how);
        }
    }
}

static void say_draining(struct rueda_agent *agent)
{
    struct rueda_packer packer;

    rueda_packer_begin(&packer, RUEDA_FRAME_DRAIN);
    rueda_link_send(&agent->link, &packer);
}

/* A user or another program ends us, or the guardian is gone. In an elastic job
 * a first SIGTERM is a notice: the ranks of this host leave at the next commit,
 * and the launcher sends us away then. */
static void on_term(uv_signal_t *handle, int number)
{
    struct rueda_agent *agent = handle->data;

    if (number == SIGTERM && agent->assignment.is_elastic &&
        !agent->is_closing && !agent->is_lost && !agent->is_draining &&
        getppid() == agent->parent) {
        agent->is_draining = true;
        say_draining(agent);
        return;
    }
    say_refused(handle->data, 1, "its agent was told to end");
    end_all(handle->data);
}

static void say_prepared(struct rueda_agent *agent)
{
    struct rueda_packer packer;

    rueda_packer_begin(&packer, RUEDA_FRAME_PREPARED);
    rueda_link_send(&agent->link, &packer);
}

/* All hosts are prepared, as we are. */
static void go(struct rueda_agent *agent)
{
    struct rueda_text words = {{0}};

    if (agent->ground == NULL || agent->is_finishing)
        return;
    if (rueda_agent_start_all(agent, &words)) {
        say_started(agent);
        return;
    }
    say_refused(agent, 1, words.chars);
    finish(agent);
}

/* Nothing runs anywhere before it can run everywhere. */
static void prepare(struct rueda_agent *agent, const struct rueda_frame *frame)
{
    struct rueda_text words = {{0}};
    int code = 1;

    if (agent->has_assignment ||
        !rueda_assignment_unpack(frame, &agent->assignment)) {
        say_refused(agent, 1, "the launcher's assignment is not understood");
        finish(agent);
        return;
    }
    agent->has_assignment = true;
    if (!rueda_agent_prepare(agent, &words, &code)) {
        say_refused(agent, code, words.chars);
        finish(agent);
    } else if (agent->assignment.is_elastic) {
        rueda_agent_start_all(agent, &words);
        say_prepared(agent);
    } else if (agent->assignment.count == agent->assignment.size) {
        go(agent);
    } else {
        say_prepared(agent);
    }
}

/* One more process of an elastic job. */
static void start_worker(struct rueda_agent *agent,
                         struct rueda_unpacker *unpacker)
{
    const int number = (int)rueda_frame_unpack_number(unpacker);
    const int slot = (int)rueda_frame_unpack_number(unpacker);
    struct rueda_strings variables = {.list = NULL};
    struct rueda_text words = {{0}};
    struct rueda_packer packer;

    rueda_frame_unpack_list(unpacker, &variables);
    if (unpacker->is_bad || agent->is_closing) {
        rueda_strings_fini(&variables);
        return;
    }
    if (rueda_agent_start_one(agent, number, slot, &variables, &words))
        return;
    rueda_agent_note(agent, words.chars);
    rueda_packer_begin(&packer, RUEDA_FRAME_EXIT);
    rueda_frame_pack_number(&packer, (uint32_t)number);
    rueda_frame_pack_number(&packer, 1);
    rueda_frame_pack_number(&packer, 0);
    rueda_frame_pack_number(&packer, 0);
    rueda_link_send(&agent->link, &packer);
}

/* A signal for one process. */
static void stop_worker(struct rueda_agent *agent,
                        struct rueda_unpacker *unpacker)
{
    const int number = (int)rueda_frame_unpack_number(unpacker);
    const uint32_t signal = rueda_frame_unpack_number(unpacker);

    for (int i = 0; i < agent->worker_count; i++) {
        const struct rueda_worker *worker = agent->workers[i];

        if (worker->rank != number || worker->has_ended || signal == 0 ||
            signal >= NSIG)
            continue;
        kill(-worker->process, (int)signal);
        if (signal == SIGTERM)
            kill(-worker->process, SIGCONT);
    }
}

/* A frame of the launcher has come. Kinds that an agent does not know are
 * ignored. */
static void on_frame(struct rueda_link *link, const struct rueda_frame *frame)
{
    struct rueda_agent *agent = link->owner;
    struct rueda_unpacker unpacker;
    const void *bytes;
    char words[RUEDA_TEXT_BYTES];
    size_t len;
    uint32_t number;

    rueda_unpacker_begin(&unpacker, frame);
    switch (frame->kind) {
    case RUEDA_FRAME_HELLO:
        bytes = rueda_frame_unpack_bytes(&unpacker, &len);
        if (len == RUEDA_KEY_BYTES) {
            memcpy(agent->key.bytes, bytes, len);
            agent->key.present = true;
        }
        break;
    case RUEDA_FRAME_START:
        prepare(agent, frame);
        break;
    case RUEDA_FRAME_GO:
        go(agent);
        break;
    case RUEDA_FRAME_SIGNAL:
        number = rueda_frame_unpack_number(&unpacker);
        if (number > 0 && number < NSIG)
            signal_all(agent, (int)number);
        if (number == SIGTSTP || number == SIGCONT)
            break;
        agent->is_closing = true;
        if (agent->assignment.is_elastic)
            finish_if_over(agent);
        else if (agent->ground != NULL) /* not expected to happen */
            finish(agent);
        break;
    case RUEDA_FRAME_WORKER:
        start_worker(agent, &unpacker);
        break;
    case RUEDA_FRAME_STOP:
        stop_worker(agent, &unpacker);
        break;
    case RUEDA_FRAME_INPUT:
        bytes = rueda_frame_unpack_bytes(&unpacker, &len);
        rueda_feed_add(agent, bytes, len);
        break;
    case RUEDA_FRAME_NOTE: /* it does not want us */
        rueda_frame_unpack_text(&unpacker, words, sizeof(words));
        fprintf(stderr, "ruedarun agent: %s\n", words);
        break;
    default:
        break;
    }
}

/* The launcher keeps up again. */
static void resume(struct rueda_agent *agent)
{
    agent->is_full = false;
    for (int i = 0; i < agent->worker_count; i++)
        rueda_outlets_watch(agent->workers[i], true);
    /* Pipes that have ended will not call. */
    for (int i = 0; i < agent->worker_count && !agent->is_full; i++)
        rueda_agent_check(agent->workers[i]);
}

/* Nothing that is sent reaches a user any more, so this goes to standard error:
 * that of the launcher, if this is its host. */
static void say_lost(const struct rueda_agent *agent, const char *why)
{
    int left = 0;

    for (int i = 0; i < agent->worker_count; i++)
        left += !agent->workers[i]->has_ended;
    if (left > 0 && !agent->is_closing)
        dprintf(agent->words,
                "ruedarun: the launcher is gone (%s), and the store of the job "
                "with it; its agent ends %d rank%s on this host\n",
                why, left, left == 1 ? "" : "s");
}

static void on_end(struct rueda_link *link, const char *why)
{
    struct rueda_agent *agent = link->owner;

    agent->is_lost = true;
    if (agent->is_finishing) {
        uv_stop(&agent->loop);
        return;
    }
    say_lost(agent, why);
    resume(agent);
    end_all(agent);
}

static void on_drained(struct rueda_link *link)
{
    struct rueda_agent *agent = link->owner;

    if (agent->is_full && rueda_link_queued(link) < RUEDA_LINK_FULL / 2)
        resume(agent);
    stop_if_sent(agent);
}

static void on_check(uv_timer_t *timer)
{
    struct rueda_agent *agent = timer->data;

    rueda_link_check(&agent->link);
}

/* ---- Life --------------------------------------------------------------- */

static const struct rueda_link_ops ops = {
    .frame = on_frame, .end = on_end, .drained = on_drained};

static void catch_signal(struct rueda_agent *agent, uv_signal_t *handle,
                         uv_signal_cb call, int number)
{
    uv_signal_init(&agent->loop, handle);
    handle->data = agent;
    uv_signal_start(handle, call, number);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* The agent's loop: it ends when all ranks have ended and their output is sent,
 * or when the launcher is gone and all ranks are killed. */
int rueda_agent_run(const struct rueda_agent_args *args)
{
    struct rueda_agent *agent = calloc(1, sizeof(*agent));
    int code;

    if (agent == NULL || uv_loop_init(&agent->loop) != 0) {
        free(agent);
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    rueda_family_adopt();
    agent->parent = getppid();
    agent->input = args->input;
    agent->words = args->words;
    agent->feed.fd = -1;
    agent->assignment.grace_ms = 0;
    if (args->key != NULL)
        agent->key = *args->key;
    uv_timer_init(&agent->loop, &agent->killer);
    agent->killer.data = agent;
    uv_timer_init(&agent->loop, &agent->looking);
    agent->looking.data = agent;
    if (args->session != NULL)
        uv_timer_start(&agent->looking, on_check, CHECK_MS, CHECK_MS);
    catch_signal(agent, &agent->on_child, on_child, SIGCHLD);
    catch_signal(agent, &agent->on_term, on_term, SIGTERM);
    catch_signal(agent, &agent->on_hangup, on_term, SIGHUP);
    if (rueda_link_open(&agent->link, &agent->loop, args->in, args->out, NULL,
                        &ops, agent) == RUEDA_OK &&
        (args->session == NULL ||
         rueda_link_seal(&agent->link, args->session, RUEDA_INITIATOR) ==
             RUEDA_OK)) {
        say_ready(agent, args);
        uv_run(&agent->loop, UV_RUN_DEFAULT);
    }
    rueda_family_end(END_NS);
    code = agent->is_lost ? 1 : 0;
    rueda_link_close(&agent->link);
    rueda_agent_clear_ground(agent);
    rueda_feed_close(agent);
    uv_walk(&agent->loop, close_handle, NULL);
    uv_run(&agent->loop, UV_RUN_DEFAULT);
    uv_loop_close(&agent->loop);
    rueda_link_fini(&agent->link);
    rueda_assignment_fini(&agent->assignment);
    rueda_key_wipe(&agent->key);
    for (int i = 0; i < agent->worker_count; i++)
        free(agent->workers[i]);
    free(agent->workers);
    free(agent);
    return code;
}
