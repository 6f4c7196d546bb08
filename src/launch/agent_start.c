/* SPDX-License-Identifier: Apache-2.0 */
/* How an agent starts its ranks. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "base/duration.h"
#include "job/store/client.h"
#include "launch/agent_state.h"
#include "launch/cpus.h"
#include "launch/family.h"
#include "launch/limit.h"
#include "launch/pty.h"
#include "launch/variables.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/interface.h"

/* For one way to the store. */
#define WAY_NS RUEDA_MS(1500)

/* What the ranks of a host have in common, while they are started. */
struct rueda_ground {
    struct rueda_agent *agent;
    struct rueda_strings variables;
    struct rueda_cpus cpus;
    struct rueda_cores cores; /* of them, where ranks are bound */
    char program[RUEDA_FOLDER_BYTES];
    int key; /* a descriptor; -1: none */
};

/* ---- The key ------------------------------------------------------------ */

/* The key as a file without a name that ranks inherit. */
static bool leave_key_open(struct rueda_ground *ground,
                           struct rueda_text *words)
{
    const struct rueda_key *key = &ground->agent->key;
    char text[2 * RUEDA_KEY_BYTES + 1];
    const size_t last = sizeof(text) - 1;
    bool is_written;

    if (!key->present)
        return true;
    for (size_t i = 0; i < RUEDA_KEY_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", key->bytes[i]);
    text[last] = '\n';
    ground->key = memfd_create("rueda-key", MFD_CLOEXEC);
    is_written = ground->key >= 0 &&
                 write(ground->key, text, sizeof(text)) == sizeof(text);
    explicit_bzero(text, sizeof(text));
    if (is_written)
        rueda_strings_set_number(&ground->variables, "RUEDA_KEY_FD",
                                 ground->key);
    else
        rueda_text_set(words, "no file for the key: %s", strerror(errno));
    return is_written;
}

/* ---- The store ---------------------------------------------------------- */

/* Is the job's store there, and is it that of this job? */
static bool reaches(const struct rueda_agent *agent, const char *store)
{
    struct rueda_text why = {{0}};
    struct rueda_address address;
    struct rueda_client_args args = {
        .rank = agent->assignment.first_rank,
        .size = agent->assignment.size,
        .addresses = &address,
        .address_count = rueda_address_find(store, &address, 1, &why),
        .key = &agent->key,
    };
    struct rueda_client *client = NULL;

    if (args.address_count == 0 ||
        rueda_client_open(&args, rueda_clock_ns() + WAY_NS, &client, &why) !=
            RUEDA_OK)
        return false;
    rueda_client_close(client);
    return true;
}

/* The launcher has put the likely ones first. */
static const char *choose_store(const struct rueda_agent *agent)
{
    const struct rueda_strings *stores = &agent->assignment.stores;

    if (stores->count == 1)
        return stores->list[0];
    for (int i = 0; i < stores->count; i++)
        if (reaches(agent, stores->list[i]))
            return stores->list[i];
    return NULL;
}

/* The interfaces for Horovod and NCCL: those of the network that the user has
 * named, else the one that leads to the launcher. The library keeps using all
 * of them: it would mistake the name for the user's choice. */
static void name_interfaces(struct rueda_ground *ground, const char *store)
{
    const char *network =
        rueda_strings_get(&ground->variables, "RUEDA_NETWORK");
    struct rueda_address address;
    char names[256];

    if (rueda_variables_is_network(network)) {
        if (rueda_interfaces_own(network, names, sizeof(names)))
            rueda_variables_interfaces(names, false, &ground->variables);
    } else if (rueda_address_read(store, &address) &&
               rueda_interface_towards(&address, names, sizeof(names))) {
        rueda_variables_interfaces(names, !rueda_address_is_loopback(&address),
                                   &ground->variables);
    }
}

/* Choose the address of the store that this host can reach, from those that the
 * launcher offers, and put it into the variables of the ranks. */
static bool find_store(struct rueda_ground *ground, struct rueda_text *words)
{
    const struct rueda_strings *stores = &ground->agent->assignment.stores;
    const char *store;

    if (stores->count == 0)
        return true;
    store = choose_store(ground->agent);
    if (store != NULL) {
        rueda_variables_store(store, &ground->variables);
        name_interfaces(ground, store);
        return true;
    }
    rueda_text_set(words, "cannot reach the launcher at");
    for (int i = 0; i < stores->count; i++)
        rueda_text_add(words, "%s %s", i == 0 ? "" : ",", stores->list[i]);
    rueda_text_add(words, "; is there a firewall? Name the right network with "
                          "--network-interfaces");
    return false;
}

/* ---- Variables ---------------------------------------------------------- */

/* Numerical libraries use all cores in each process unless this is set. */
static void share_threads(struct rueda_ground *ground)
{
    const int cores = rueda_cpus_count(&ground->cpus);
    const int ranks = ground->agent->assignment.count;
    const int threads = cores > ranks ? cores / ranks : 1;
    char words[160];

    if (rueda_strings_get(&ground->variables, "OMP_NUM_THREADS") != NULL)
        return;
    rueda_strings_set_number(&ground->variables, "OMP_NUM_THREADS", threads);
    snprintf(words, sizeof(words),
             "OMP_NUM_THREADS is set to %d, %d core%s for %d rank%s; set it "
             "yourself for another number",
             threads, cores, cores == 1 ? "" : "s", ranks,
             ranks == 1 ? "" : "s");
    rueda_agent_note(ground->agent, words);
}

static void gather_variables(struct rueda_ground *ground)
{
    struct rueda_strings *variables = &ground->variables;

    rueda_strings_add_all(variables, environ);
    rueda_strings_unset(variables, "RUEDA_KEY_FILE");
    rueda_strings_unset(variables, "RUEDA_KEY_FD");
    rueda_strings_unset(variables, "RUEDA_SEGMENT_FD");
    for (int i = 0; rueda_variables_of_torchrun[i] != NULL; i++)
        rueda_strings_unset(variables, rueda_variables_of_torchrun[i]);
    rueda_strings_set_all(variables, ground->agent->assignment.variables.list);
    rueda_strings_set(variables, "PWD", ground->agent->assignment.folder);
}

/* ---- One rank ----------------------------------------------------------- */

/* Our end of what the rank prints to, which is taken; it will be watched. */
static bool add_outlet(struct rueda_worker *worker, int which, int fd)
{
    struct rueda_outlet *outlet = &worker->outlets[which];

    *outlet =
        (struct rueda_outlet){.worker = worker, .stream = which + 1, .fd = -1};
    if (uv_poll_init(&worker->agent->loop, &outlet->poll, fd) != 0) {
        close(fd);
        return false;
    }
    outlet->poll.data = outlet;
    outlet->fd = fd;
    return true;
}

static bool open_outlet(struct rueda_worker *worker, int which, int *out_theirs)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    *out_theirs = ends[1];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return add_outlet(worker, which, ends[0]);
}

/* One terminal for all three streams. Our end is there twice: each descriptor
 * is watched for one thing. */
static bool open_terminal(struct rueda_worker *worker,
                          struct rueda_spawn *spawn)
{
    struct rueda_agent *agent = worker->agent;
    int ours = -1;

    if (!rueda_pty_open(agent->assignment.columns, agent->assignment.rows,
                        &ours, &spawn->output))
        return false;
    worker->has_terminal = true;
    spawn->has_terminal = true;
    spawn->input = spawn->output;
    spawn->error = fcntl(spawn->output, F_DUPFD_CLOEXEC, 3);
    return rueda_feed_open_to(agent, fcntl(ours, F_DUPFD_CLOEXEC, 3)) &&
           add_outlet(worker, 0, ours) && spawn->error >= 0;
}

static bool open_streams(struct rueda_worker *worker, int local_rank,
                         struct rueda_spawn *spawn)
{
    if (worker->agent->assignment.terminal == local_rank + 1)
        return open_terminal(worker, spawn);
    return open_outlet(worker, 0, &spawn->output) &&
           open_outlet(worker, 1, &spawn->error);
}

static void on_death(uv_poll_t *poll, int status, int events)
{
    struct rueda_worker *worker = poll->data;
    int how;

    (void)status;
    (void)events;
    if (!worker->has_ended &&
        waitpid(worker->process, &how, WNOHANG) == worker->process)
        rueda_agent_worker_ended(worker, how);
}

/* Where the kernel has no such descriptors SIGCHLD will do. */
static void watch_process(struct rueda_worker *worker)
{
    worker->death = (int)syscall(SYS_pidfd_open, worker->process, 0);
    if (worker->death < 0)
        return;
    if (uv_poll_init(&worker->agent->loop, &worker->death_poll,
                     worker->death) != 0) {
        close(worker->death);
        worker->death = -1;
        return;
    }
    worker->death_poll.data = worker;
    uv_poll_start(&worker->death_poll, UV_READABLE, on_death);
}

/* As it is, or by way of the launcher; -1: none. *is_ours: it is a copy, to be
 * closed once the rank has it. */
static int find_input(struct rueda_agent *agent, int local_rank, bool *is_ours)
{
    int input = agent->input;

    *is_ours = false;
    if (local_rank != 0 || !agent->assignment.has_input)
        return -1;
    if (input < 0)
        *is_ours = rueda_feed_open(agent, &input);
    return input;
}

/* One more, at the end of the list. NULL: no memory. */
static struct rueda_worker *add_worker(struct rueda_agent *agent, int rank)
{
    const int room = agent->worker_room > 0 ? 2 * agent->worker_room : 8;
    struct rueda_worker **grown = agent->workers;
    struct rueda_worker *worker = malloc(sizeof(*worker));

    if (worker != NULL && agent->worker_count == agent->worker_room) {
        grown =
            reallocarray(grown, (size_t)room, sizeof(struct rueda_worker *));
        if (grown != NULL) {
            agent->workers = grown;
            agent->worker_room = room;
        }
    }
    if (worker == NULL || grown == NULL) {
        free(worker);
        return NULL;
    }
    *worker = (struct rueda_worker){.agent = agent,
                                    .rank = rank,
                                    .process = -1,
                                    .outlets = {{.fd = -1}, {.fd = -1}},
                                    .death = -1};
    agent->workers[agent->worker_count++] = worker;
    return worker;
}

/* of_rank: variables of this one. False with errno. */
static bool start_rank(struct rueda_ground *ground, int rank, int local_rank,
                       const struct rueda_strings *of_rank)
{
    struct rueda_agent *agent = ground->agent;
    struct rueda_worker *worker = add_worker(agent, rank);
    struct rueda_strings variables = {.list = NULL};
    struct rueda_cpus cpus;
    bool is_ours;
    int cause;
    struct rueda_spawn spawn = {.program = ground->program,
                                .command = agent->assignment.command.list,
                                .folder = agent->assignment.folder,
                                .input = -1,
                                .output = -1,
                                .error = -1,
                                .inherited = ground->key};

    if (worker == NULL)
        return false;
    rueda_strings_add_all(&variables, ground->variables.list);
    rueda_strings_set_all(&variables, of_rank->list);
    /* Its SIGTERM means the end, that of others is a notice. */
    if (agent->assignment.is_elastic)
        rueda_strings_set_number(&variables, "RUEDA_ELASTIC_AGENT", getpid());
    spawn.variables = variables.list;
    spawn.input = find_input(agent, local_rank, &is_ours);
    if (rueda_cores_share(&ground->cores, agent->assignment.bind, local_rank,
                          agent->assignment.count, &cpus))
        spawn.cpus = &cpus;
    if (open_streams(worker, local_rank, &spawn) && !variables.is_short)
        worker->process = rueda_spawn(&spawn);
    cause = errno;
    if (is_ours)
        rueda_fd_close(spawn.input);
    rueda_fd_close(spawn.output);
    rueda_fd_close(spawn.error);
    rueda_strings_fini(&variables);
    if (worker->process > 0)
        watch_process(worker);
    errno = cause;
    return worker->process > 0;
}

/* ---- All of them -------------------------------------------------------- */

/* Everything that can fail on this host before a rank is started: folder,
 * program, key, store. *out_code is the exit code if it does. */
static bool prepare(struct rueda_ground *ground, struct rueda_text *words,
                    int *out_code)
{
    struct rueda_agent *agent = ground->agent;

    rueda_machine_cpus(&ground->cpus);
    if (agent->assignment.bind != RUEDA_BIND_NONE)
        rueda_cores_find(&ground->cpus, &ground->cores);
    gather_variables(ground);
    *out_code = 2;
    if (chdir(agent->assignment.folder) < 0) {
        rueda_text_set(words, "cannot go to %.300s: %s",
                       agent->assignment.folder, strerror(errno));
        return false;
    }
    if (!rueda_spawn_find(agent->assignment.command.list[0],
                          rueda_strings_get(&ground->variables, "PATH"),
                          ground->program, sizeof(ground->program), words))
        return false;
    *out_code = 1;
    if (ground->variables.is_short) {
        rueda_text_set(words, "no memory");
        return false;
    }
    return leave_key_open(ground, words) && find_store(ground, words);
}

/* The launcher starts ranks only after all agents have prepared, so a mistake
 * on one host is reported before any rank runs. */
bool rueda_agent_prepare(struct rueda_agent *agent, struct rueda_text *words,
                         int *out_code)
{
    *out_code = 1;
    agent->ground = calloc(1, sizeof(*agent->ground));
    if (agent->ground == NULL) {
        rueda_text_set(words, "no memory");
        return false;
    }
    agent->ground->agent = agent;
    agent->ground->key = -1;
    agent->ground->cores.per_core = 1;
    if (prepare(agent->ground, words, out_code))
        return true;
    rueda_agent_clear_ground(agent);
    return false;
}

void rueda_agent_clear_ground(struct rueda_agent *agent)
{
    if (agent->ground == NULL)
        return;
    rueda_fd_close(agent->ground->key);
    rueda_fd_close(agent->input);
    agent->input = -1;
    rueda_strings_fini(&agent->ground->variables);
    free(agent->ground);
    agent->ground = NULL;
}

/* Start all ranks of this host. Where one cannot be started, words say why. */
bool rueda_agent_start_all(struct rueda_agent *agent, struct rueda_text *words)
{
    bool is_good = true;

    share_threads(agent->ground);
    rueda_oom_count(&agent->oom);
    rueda_limit_need(5 * agent->assignment.count);
    if (agent->assignment.is_elastic)
        return true;
    for (int i = 0; is_good && i < agent->assignment.count; i++) {
        const int rank = agent->assignment.first_rank + i;

        is_good =
            start_rank(agent->ground, rank, i, &agent->assignment.ranks[i]);
        if (!is_good)
            rueda_text_set(words,
                           "cannot start rank %d: %s; see ulimit -u and -n",
                           rank, strerror(errno));
    }
    for (int i = 0; i < agent->worker_count; i++) {
        if (is_good)
            rueda_outlets_watch(agent->workers[i], true);
        else
            rueda_outlets_close(agent->workers[i]);
    }
    if (!is_good) {
        rueda_family_end(WAY_NS);
        agent->worker_count = 0;
    }
    rueda_agent_clear_ground(agent);
    return is_good;
}

bool rueda_agent_start_one(struct rueda_agent *agent, int number, int slot,
                           struct rueda_strings *variables,
                           struct rueda_text *words)
{
    const int count = agent->worker_count;
    bool is_good = agent->ground != NULL && !variables->is_short;

    if (is_good)
        is_good = start_rank(agent->ground, number, slot, variables);
    rueda_strings_fini(variables);
    if (is_good) {
        rueda_outlets_watch(agent->workers[count], true);
        return true;
    }
    rueda_text_set(words, "cannot start a process: %s; see ulimit -u and -n",
                   strerror(errno));
    if (agent->worker_count > count) {
        rueda_outlets_close(agent->workers[count]);
        agent->workers[count]->has_ended = true;
        agent->workers[count]->is_told = true;
    }
    return false;
}
