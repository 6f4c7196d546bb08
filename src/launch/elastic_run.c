/* SPDX-License-Identifier: Apache-2.0 */
/* Events of agents, discovery and workers go to the membership; its actions
 * start and stop workers and write their places into the store. */
#include "launch/elastic_run.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "job/rendezvous.h"
#include "launch/elastic.h"
#include "launch/elastic_state.h"
#include "launch/locality.h"
#include "launch/variables.h"
#include "os/clock.h"

#define SECOND ((int64_t)1000000000)

/* The loop waits for the resolver only for a host that is new. */
#define LOCALITY_MS 1000

#define PATIENCE_S 600

/* ---- Time ------------------------------------------------------------- */

static void on_time(uv_timer_t *timer);

/* The timer for what comes next. */
void rueda_elastic_set_timer(struct rueda_elastic *elastic)
{
    int64_t next = rueda_membership_next_ns(elastic->members);
    int64_t left;

    for (int h = 0; h < elastic->host_room; h++)
        if (elastic->until_ns[h] < next)
            next = elastic->until_ns[h];
    if (next == INT64_MAX || elastic->launch->is_ending) {
        uv_timer_stop(&elastic->timer);
        return;
    }
    left = next - rueda_clock_ns();
    uv_timer_start(&elastic->timer, on_time,
                   left > 0 ? (uint64_t)(left / 1000000) + 1 : 1, 0);
}

/* An agent has not come in time. */
static void give_up_late(struct rueda_elastic *elastic)
{
    struct rueda_launch *launch = elastic->launch;
    struct rueda_text words = {{0}};

    for (int h = 0; h < elastic->host_room; h++) {
        struct rueda_node *node = &launch->nodes[elastic->nodes[h]];

        if (rueda_clock_ns() < elastic->until_ns[h])
            continue;
        words.chars[0] = '\0';
        rueda_text_set(&words,
                       "%s: did not come within %d seconds; more time is "
                       "given by --start-timeout",
                       node->name, launch->start_timeout_s);
        node->state = RUEDA_NODE_GONE;
        rueda_node_fini(node);
        rueda_elastic_node_lost(node, words.chars);
    }
}

static void on_time(uv_timer_t *timer)
{
    struct rueda_elastic *elastic = timer->data;

    give_up_late(elastic);
    rueda_membership_tick(elastic->members, rueda_clock_ns());
    rueda_elastic_set_timer(elastic);
}

/* ---- Questions of processes ------------------------------------------- */

void rueda_elastic_on_key(void *arg, const char *key, size_t key_bytes,
                          const void *value, size_t bytes)
{
    struct rueda_elastic *elastic = arg;
    const size_t prefix = strlen(RUEDA_RENDEZVOUS_READY);
    struct rueda_question *question;
    char number[32];
    char *rest;
    bool is_leaving;
    int worker;

    snprintf(number, sizeof(number), "%.*s", (int)(key_bytes - prefix),
             key + prefix);
    rest = strstr(number, RUEDA_RENDEZVOUS_LEAVE);
    is_leaving = rest != NULL && strcmp(rest, RUEDA_RENDEZVOUS_LEAVE) == 0;
    if (is_leaving)
        *rest = '\0';
    if ((bytes != 8 && !is_leaving) || !rueda_parse_int(number, &worker))
        return;
    question = malloc(sizeof(*question));
    if (question == NULL)
        return;
    question->worker = worker;
    question->is_leaving = is_leaving;
    question->progress = is_leaving ? 0 : rueda_get_u64(value);
    pthread_mutex_lock(&elastic->lock);
    question->next = elastic->questions;
    elastic->questions = question;
    pthread_mutex_unlock(&elastic->lock);
    uv_async_send(&elastic->asked);
}

/* The oldest first. */
static struct rueda_question *take_questions(struct rueda_elastic *elastic)
{
    struct rueda_question *newest;
    struct rueda_question *oldest = NULL;

    pthread_mutex_lock(&elastic->lock);
    newest = elastic->questions;
    elastic->questions = NULL;
    pthread_mutex_unlock(&elastic->lock);
    while (newest != NULL) {
        struct rueda_question *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void drain_worker(struct rueda_elastic *elastic, int worker)
{
    struct rueda_text words = {{0}};

    if (worker < 0 || worker >= elastic->worker_room)
        return;
    rueda_elastic_title(elastic->launch, worker, &words);
    rueda_text_add(&words,
                   " on %s was told to end (SIGTERM); it leaves at the next "
                   "commit",
                   elastic->launch->nodes[elastic->worker_nodes[worker]].name);
    rueda_membership_drain(elastic->members, worker, words.chars,
                           rueda_clock_ns());
}

static void on_asked(uv_async_t *async)
{
    struct rueda_elastic *elastic = async->data;
    struct rueda_question *question = take_questions(elastic);

    while (question != NULL) {
        struct rueda_question *next = question->next;

        if (question->is_leaving)
            drain_worker(elastic, question->worker);
        else
            rueda_membership_ready(elastic->members, question->worker,
                                   question->progress, rueda_clock_ns());
        free(question);
        question = next;
    }
    rueda_elastic_set_timer(elastic);
}

/* ---- Actions: hosts --------------------------------------------------- */

static bool make_room(struct rueda_elastic *elastic, int host)
{
    int *nodes;
    int64_t *until;

    if (host < elastic->host_room)
        return true;
    nodes = reallocarray(elastic->nodes, (size_t)host + 1, sizeof(*nodes));
    if (nodes == NULL)
        return false;
    elastic->nodes = nodes;
    until = reallocarray(elastic->until_ns, (size_t)host + 1, sizeof(*until));
    if (until == NULL)
        return false;
    elastic->until_ns = until;
    for (; elastic->host_room <= host; elastic->host_room++) {
        nodes[elastic->host_room] = -1;
        until[elastic->host_room] = INT64_MAX;
    }
    return true;
}

static bool is_local(const char *name)
{
    struct rueda_hosts hosts = {.list = NULL};
    struct rueda_text ignored = {{0}};
    bool is_here = false;

    if (rueda_hosts_add(&hosts, name, "1", &ignored))
        rueda_locality_find(&hosts, 1, LOCALITY_MS, &is_here);
    rueda_hosts_fini(&hosts);
    return is_here;
}

/* The membership's callback cannot call it, so a host that cannot be reached at
 * all is found late at once. */
static void reach(struct rueda_elastic *elastic, int host)
{
    struct rueda_launch *launch = elastic->launch;
    const char *name = rueda_membership_host_name(elastic->members, host);
    struct rueda_node *node = rueda_elastic_find_joined(elastic, name);
    rueda_status status;

    if (!make_room(elastic, host) ||
        launch->node_count == RUEDA_ELASTIC_MOST_NODES) {
        rueda_output_say(launch->output, "%s: too many hosts", name);
        rueda_launch_end(launch, 1, SIGTERM);
        return;
    }
    if (node != NULL) {
        node->host = host;
        node->count = rueda_membership_host_slots(elastic->members, host);
        elastic->nodes[host] = (int)(node - launch->nodes);
        rueda_elastic_node_ready(node);
        return;
    }
    node = &launch->nodes[launch->node_count];
    *node = (struct rueda_node){
        .launch = launch,
        .name = strdup(name),
        .is_local = is_local(name),
        .count = rueda_membership_host_slots(elastic->members, host),
        .host = host,
        .errors = -1};
    elastic->nodes[host] = launch->node_count++;
    elastic->until_ns[host] =
        rueda_clock_ns() + launch->start_timeout_s * SECOND;
    /* Its agent comes by itself, whenever that is. */
    if (launch->door != NULL && !node->is_local) {
        elastic->until_ns[host] = INT64_MAX;
        return;
    }
    status = rueda_node_start_there(node);
    if (status != RUEDA_OK)
        elastic->until_ns[host] = rueda_clock_ns();
}

static void send_to_worker(struct rueda_elastic *elastic, int worker,
                           rueda_frame_kind kind, uint32_t number)
{
    struct rueda_node *node =
        &elastic->launch->nodes[elastic->worker_nodes[worker]];
    struct rueda_packer packer;

    if (node->state != RUEDA_NODE_RUNNING)
        return;
    rueda_packer_begin(&packer, kind);
    rueda_frame_pack_number(&packer, (uint32_t)worker);
    rueda_frame_pack_number(&packer, number);
    rueda_link_send(&node->link, &packer);
}

static void leave(struct rueda_elastic *elastic, int host)
{
    struct rueda_node *node = &elastic->launch->nodes[elastic->nodes[host]];
    struct rueda_packer packer;

    elastic->until_ns[host] = INT64_MAX;
    if (node->state == RUEDA_NODE_RUNNING) {
        rueda_packer_begin(&packer, RUEDA_FRAME_SIGNAL);
        rueda_frame_pack_number(&packer, SIGTERM);
        rueda_link_send(&node->link, &packer);
    } else if (node->state != RUEDA_NODE_GONE) {
        node->state = RUEDA_NODE_GONE;
        rueda_node_fini(node);
    }
    elastic->nodes[host] = -1;
}

/* ---- Actions: processes ----------------------------------------------- */

static bool note_worker(struct rueda_elastic *elastic, int worker, int node)
{
    int *grown = elastic->worker_nodes;

    if (worker >= elastic->worker_room) {
        grown = reallocarray(grown, (size_t)worker + 1, sizeof(*grown));
        if (grown == NULL)
            return false;
        elastic->worker_nodes = grown;
        elastic->worker_room = worker + 1;
    }
    grown[worker] = node;
    return rueda_output_grow(elastic->launch->output, worker + 1);
}

static void start(struct rueda_elastic *elastic,
                  const struct rueda_action *action)
{
    struct rueda_launch *launch = elastic->launch;
    struct rueda_node *node = &launch->nodes[elastic->nodes[action->host]];
    const struct rueda_placed_rank placed = {
        .rank = action->ranks.rank,
        .local_rank = action->ranks.local_rank,
        .local_size = action->ranks.local_size,
        .cross_rank = action->ranks.cross_rank,
        .cross_size = action->ranks.cross_size};
    struct rueda_strings variables = {.list = NULL};
    struct rueda_packer packer;

    if (!note_worker(elastic, action->worker, elastic->nodes[action->host])) {
        rueda_output_say(launch->output, "no memory for another process");
        rueda_launch_end(launch, 1, SIGTERM);
        return;
    }
    rueda_output_name(launch->output, action->worker, action->ranks.rank);
    rueda_variables_rank(&placed, action->ranks.size, node->name, &variables);
    rueda_strings_set_number(&variables, "RUEDA_ELASTIC_WORKER",
                             action->worker);
    rueda_strings_set(&variables, "HOROVOD_ELASTIC", "1");
    rueda_packer_begin(&packer, RUEDA_FRAME_WORKER);
    rueda_frame_pack_number(&packer, (uint32_t)action->worker);
    rueda_frame_pack_number(&packer, (uint32_t)action->slot);
    rueda_frame_pack_list(&packer, &variables);
    rueda_link_send(&node->link, &packer);
    rueda_strings_fini(&variables);
}

static void answer(struct rueda_elastic *elastic, int worker,
                   const unsigned char *bytes, size_t len)
{
    char key[48];

    snprintf(key, sizeof(key), RUEDA_RENDEZVOUS_RANKS "%d", worker);
    rueda_keeper_set(elastic->launch->keeper, key, bytes, len);
}

static void place(struct rueda_elastic *elastic,
                  const struct rueda_action *action)
{
    unsigned char bytes[RUEDA_RENDEZVOUS_BYTES];

    rueda_rendezvous_write(&action->ranks, bytes);
    rueda_output_name(elastic->launch->output, action->worker,
                      action->ranks.rank);
    answer(elastic, action->worker, bytes, sizeof(bytes));
    if (action->ranks.term > 1 && action->ranks.rank == 0)
        rueda_output_say(elastic->launch->output,
                         "the job goes on with %d rank%s (term %u)",
                         action->ranks.size, action->ranks.size == 1 ? "" : "s",
                         action->ranks.term);
}

static void refuse(struct rueda_elastic *elastic, int worker, const char *words)
{
    unsigned char bytes[1 + RUEDA_TEXT_BYTES];
    const size_t len = rueda_rendezvous_write_refusal(words, bytes);

    answer(elastic, worker, bytes, len);
}

static void publish(struct rueda_elastic *elastic,
                    const struct rueda_action *action)
{
    const struct rueda_rendezvous_change change = {.term = action->term,
                                                   .flags = action->flags};
    unsigned char bytes[RUEDA_RENDEZVOUS_CHANGE_BYTES];
    char key[32];

    if (action->kind == RUEDA_ACTION_OVER) {
        snprintf(key, sizeof(key), "%u/over", action->term);
        rueda_keeper_set(elastic->launch->keeper, key, action->words,
                         strlen(action->words));
        return;
    }
    rueda_rendezvous_change_write(&change, bytes);
    rueda_keeper_set(elastic->launch->keeper, RUEDA_RENDEZVOUS_CHANGES, bytes,
                     sizeof(bytes));
}

static void act(void *arg, const struct rueda_action *action)
{
    struct rueda_elastic *elastic = arg;
    struct rueda_launch *launch = elastic->launch;

    if (launch->is_ending)
        return;
    switch (action->kind) {
    case RUEDA_ACTION_REACH:
        reach(elastic, action->host);
        break;
    case RUEDA_ACTION_LEAVE:
        leave(elastic, action->host);
        break;
    case RUEDA_ACTION_START:
        start(elastic, action);
        break;
    case RUEDA_ACTION_RANKS:
        place(elastic, action);
        break;
    case RUEDA_ACTION_REFUSE:
        refuse(elastic, action->worker, action->words);
        break;
    case RUEDA_ACTION_KILL:
        send_to_worker(elastic, action->worker, RUEDA_FRAME_STOP,
                       (uint32_t)action->code);
        break;
    case RUEDA_ACTION_OVER:
    case RUEDA_ACTION_CHANGE:
        publish(elastic, action);
        break;
    case RUEDA_ACTION_SAY:
        rueda_output_say(launch->output, "%s", action->words);
        break;
    case RUEDA_ACTION_END:
        if (action->words[0] != '\0')
            rueda_output_say(launch->output, "%s", action->words);
        rueda_launch_end(launch, action->code, SIGTERM);
        break;
    }
}

/* ---- What agents tell ------------------------------------------------- */

void rueda_elastic_node_ready(struct rueda_node *node)
{
    struct rueda_launch *launch = node->launch;

    if (node->state != RUEDA_NODE_READY || node->host < 0)
        return;
    node->state = RUEDA_NODE_RUNNING;
    if (!rueda_launch_send_assignment(node)) {
        rueda_output_say(launch->output, "no memory for the assignment");
        rueda_launch_end(launch, 1, SIGTERM);
    }
}

/* Is this node the one that its host has now? */
static bool is_present(const struct rueda_node *node)
{
    const struct rueda_elastic *elastic = node->launch->elastic;

    return node->host >= 0 && node->host < elastic->host_room &&
           elastic->nodes[node->host] == node - node->launch->nodes;
}

void rueda_elastic_node_prepared(struct rueda_node *node)
{
    struct rueda_elastic *elastic = node->launch->elastic;

    if (!is_present(node))
        return;
    elastic->until_ns[node->host] = INT64_MAX;
    rueda_membership_reached(elastic->members, node->host, rueda_clock_ns());
    rueda_elastic_set_timer(elastic);
}

void rueda_elastic_node_lost(struct rueda_node *node, const char *why)
{
    struct rueda_elastic *elastic = node->launch->elastic;

    if (is_present(node)) {
        elastic->nodes[node->host] = -1;
        elastic->until_ns[node->host] = INT64_MAX;
        rueda_membership_lost(elastic->members, node->host, why,
                              rueda_clock_ns());
    }
    rueda_elastic_forget_joined(elastic, node);
    rueda_elastic_set_timer(elastic);
}

void rueda_elastic_drain(struct rueda_node *node)
{
    struct rueda_elastic *elastic = node->launch->elastic;
    struct rueda_text words = {{0}};

    if (!is_present(node))
        return;
    rueda_text_set(&words,
                   "the agent of %s was told to end (SIGTERM); its ranks leave "
                   "at the next commit",
                   node->name);
    rueda_membership_drain_host(elastic->members, node->host, words.chars,
                                rueda_clock_ns());
    rueda_elastic_set_timer(elastic);
}

bool rueda_elastic_owns(const struct rueda_node *node, uint32_t worker)
{
    const struct rueda_elastic *elastic = node->launch->elastic;

    return worker < (uint32_t)elastic->worker_room &&
           elastic->worker_nodes[worker] == node - node->launch->nodes;
}

void rueda_elastic_title(const struct rueda_launch *launch, int worker,
                         struct rueda_text *out)
{
    const int rank = rueda_membership_rank(launch->elastic->members, worker);

    if (rank >= 0)
        rueda_text_add(out, "rank %d", rank);
    else
        rueda_text_add(out, "process %d", worker);
}

void rueda_elastic_ended(struct rueda_node *node,
                         const struct rueda_ending *ending)
{
    struct rueda_elastic *elastic = node->launch->elastic;
    struct rueda_text words = {{0}};

    rueda_elastic_title(node->launch, ending->rank, &words);
    rueda_ending_how(ending, node->name, &words);
    rueda_membership_ended(elastic->members, ending->rank,
                           rueda_ending_code(ending), words.chars,
                           rueda_clock_ns());
    rueda_elastic_set_timer(elastic);
}

/* ---- Hosts ------------------------------------------------------------ */

static void on_found(void *arg, const struct rueda_hosts *hosts)
{
    struct rueda_elastic *elastic = arg;

    rueda_hosts_fini(&elastic->listed);
    if (!rueda_hosts_copy(hosts, &elastic->listed))
        rueda_output_say(elastic->launch->output, "no memory for the hosts");
    else
        rueda_elastic_list_hosts(elastic);
}

static void on_failed(void *arg, const char *words, bool is_fatal)
{
    struct rueda_elastic *elastic = arg;
    struct rueda_launch *launch = elastic->launch;

    rueda_output_say(launch->output, "%s%s", words,
                     is_fatal ? "; the job is ended"
                              : "; its last good answer still counts");
    if (is_fatal)
        rueda_launch_end(launch, 1, SIGTERM);
}

static bool find_hosts(struct rueda_elastic *elastic, struct rueda_text *words)
{
    const struct rueda_options *options = elastic->launch->options;
    const struct rueda_discovery_args args = {
        .loop = &elastic->launch->loop,
        .program = options->program,
        .script = options->values[RUEDA_OPTION_DISCOVERY],
        .file = options->values[RUEDA_OPTION_HOSTFILE],
        .default_slots = rueda_options_whole(options, RUEDA_OPTION_SLOTS, 0),
        .found = on_found,
        .failed = on_failed,
        .arg = elastic};

    if (args.script == NULL && args.file == NULL) {
        /* Only those that come by themselves, or else this one. */
        if (!rueda_elastic_is_joined(options) &&
            !rueda_hosts_find(
                options->values[RUEDA_OPTION_HOSTS], NULL,
                rueda_options_whole(
                    options, RUEDA_OPTION_MAX_NP,
                    rueda_options_whole(options, RUEDA_OPTION_NP, 1)),
                &elastic->listed, words))
            return false;
        rueda_elastic_list_hosts(elastic);
        return true;
    }
    elastic->discovery = rueda_discovery_open(&args);
    if (elastic->discovery == NULL)
        rueda_text_set(words, "no memory");
    return elastic->discovery != NULL;
}

/* ---- Life ------------------------------------------------------------- */

static struct rueda_membership_args
membership_args(const struct rueda_launch *launch)
{
    const struct rueda_options *options = launch->options;
    const int size = rueda_options_whole(options, RUEDA_OPTION_NP, 1);
    const char *cooldown = options->values[RUEDA_OPTION_COOLDOWN];
    struct rueda_membership_args args = {
        .size = size,
        .least = rueda_options_whole(options, RUEDA_OPTION_MIN_NP, size),
        .most = rueda_options_whole(options, RUEDA_OPTION_MAX_NP, INT_MAX),
        .reset_limit =
            rueda_options_whole(options, RUEDA_OPTION_RESET_LIMIT, -1),
        .patience_ns =
            SECOND * rueda_options_whole(options, RUEDA_OPTION_ELASTIC_TIMEOUT,
                                         PATIENCE_S),
        .bars_hosts = options->is_horovodrun,
        .tells_early = options->is_horovodrun,
        .seed = (uint64_t)rueda_clock_ns()};
    char *rest;

    if (cooldown != NULL) {
        args.cooldown_low_s = (int)strtol(cooldown, &rest, 10);
        args.cooldown_high_s = (int)strtol(rest, NULL, 10);
    }
    return args;
}

bool rueda_elastic_open(struct rueda_launch *launch, struct rueda_text *words)
{
    struct rueda_elastic *elastic = calloc(1, sizeof(*elastic));
    const struct rueda_membership_args args = membership_args(launch);

    launch->nodes = calloc(RUEDA_ELASTIC_MOST_NODES, sizeof(*launch->nodes));
    if (elastic != NULL)
        elastic->members = rueda_membership_new(&args, act, elastic);
    if (elastic == NULL || elastic->members == NULL || launch->nodes == NULL) {
        free(elastic);
        rueda_text_set(words, "no memory");
        return false;
    }
    elastic->launch = launch;
    pthread_mutex_init(&elastic->lock, NULL);
    launch->elastic = elastic;
    launch->is_started = true;
    launch->is_going = true;
    return true;
}

bool rueda_elastic_begin(struct rueda_launch *launch, struct rueda_text *words)
{
    return find_hosts(launch->elastic, words);
}

/* Before the store is opened, whose thread wakes the loop. */
void rueda_elastic_listen(struct rueda_launch *launch)
{
    struct rueda_elastic *elastic = launch->elastic;

    uv_timer_init(&launch->loop, &elastic->timer);
    uv_async_init(&launch->loop, &elastic->asked, on_asked);
    elastic->timer.data = elastic;
    elastic->asked.data = elastic;
}

void rueda_elastic_close(struct rueda_elastic *elastic)
{
    if (elastic != NULL)
        rueda_discovery_close(elastic->discovery);
}

void rueda_elastic_free(struct rueda_elastic *elastic)
{
    struct rueda_question *question;

    if (elastic == NULL)
        return;
    question = take_questions(elastic);
    while (question != NULL) {
        struct rueda_question *next = question->next;

        free(question);
        question = next;
    }
    for (int i = 0; i < elastic->launch->node_count; i++)
        free((char *)elastic->launch->nodes[i].name);
    rueda_discovery_free(elastic->discovery);
    rueda_membership_free(elastic->members);
    rueda_hosts_fini(&elastic->listed);
    rueda_hosts_fini(&elastic->joined);
    pthread_mutex_destroy(&elastic->lock);
    free(elastic->nodes);
    free(elastic->until_ns);
    free(elastic->worker_nodes);
    free(elastic);
}
