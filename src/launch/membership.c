/* SPDX-License-Identifier: Apache-2.0 */
/* The events: what they change, and what follows from it. */
#include "launch/membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/membership_state.h"

#define SECOND ((int64_t)1000000000)

/* Newcomers that start together enter together, but not later than this after
 * the first of them is there. */
#define BATCH_NS (3 * SECOND)

/* ---- What follows -------------------------------------------------------- */

/* Nothing interrupts members; the others go at once. */
static void refuse_strays(struct rueda_membership *members, int64_t now_ns)
{
    static const char finished[] =
        "the training is done, so this process is not needed any more";
    static const char unlisted[] =
        "the host of this process is not used any more";

    for (int i = 0; i < members->worker_count; i++) {
        const rueda_worker_state state = members->workers[i].state;
        const bool is_outside =
            state == RUEDA_WORKER_STARTING || state == RUEDA_WORKER_WAITING;

        if (is_outside && members->is_finishing)
            rueda_membership_refuse(members, i, finished, now_ns);
        else if (is_outside && !rueda_membership_may_stay(members, i, now_ns))
            rueda_membership_refuse(members, i, unlisted, now_ns);
    }
}

/* Agents without processes on hosts that are not listed any more. */
static void leave_hosts(struct rueda_membership *members)
{
    for (int h = 0; h < members->host_count; h++) {
        struct rueda_membership_host *host = &members->hosts[h];
        bool is_used = host->listed > 0 && !host->is_drained;

        for (int i = 0; i < members->worker_count && !is_used; i++)
            is_used = members->workers[i].host == h &&
                      members->workers[i].state != RUEDA_WORKER_ENDED;
        if (is_used || host->agent == RUEDA_AGENT_NONE)
            continue;
        host->agent = RUEDA_AGENT_NONE;
        rueda_membership_act(
            members,
            (struct rueda_action){.kind = RUEDA_ACTION_LEAVE, .host = h});
    }
}

/* Members that have to go, and newcomers that wait or, if they are told of
 * early, start. */
static unsigned find_change(struct rueda_membership *members, int64_t now_ns)
{
    unsigned flags = members->told;
    bool is_waited_for = false;

    for (int i = 0; i < members->worker_count; i++) {
        const rueda_worker_state state = members->workers[i].state;

        if (state == RUEDA_WORKER_MEMBER &&
            !rueda_membership_may_stay(members, i, now_ns))
            flags |= RUEDA_RENDEZVOUS_REMOVED;
        is_waited_for = is_waited_for || state == RUEDA_WORKER_WAITING;
        if (state == RUEDA_WORKER_STARTING && members->args.tells_early)
            flags |= RUEDA_RENDEZVOUS_ADDED;
    }
    if (!is_waited_for)
        members->newcomer_ns = INT64_MAX;
    else if (members->newcomer_ns == INT64_MAX)
        members->newcomer_ns = now_ns;
    if (is_waited_for &&
        (rueda_membership_count(members, RUEDA_WORKER_STARTING) == 0 ||
         now_ns - members->newcomer_ns >= BATCH_NS))
        flags |= RUEDA_RENDEZVOUS_ADDED;
    return flags;
}

static void tell_change(struct rueda_membership *members, int64_t now_ns)
{
    const unsigned flags = find_change(members, now_ns);

    if (flags == members->told)
        return;
    members->told = flags;
    rueda_membership_act(members,
                         (struct rueda_action){.kind = RUEDA_ACTION_CHANGE,
                                               .term = members->term,
                                               .flags = flags});
}

/* Has the job come to its end? */
static bool is_at_end(struct rueda_membership *members, int64_t now_ns)
{
    const char *words = "";

    if (rueda_membership_living(members) > 0)
        return false;
    if (members->is_finishing) {
        rueda_membership_end(members, members->code, "");
        return true;
    }
    if (members->term > 0)
        words = "no rank is left; the job is ended";
    else if (rueda_membership_is_hopeless(members, now_ns))
        words = "no host is left that could be used; the job is ended";
    if (words[0] == '\0')
        return false;
    rueda_membership_end(members, members->code != 0 ? members->code : 1,
                         words);
    return true;
}

static void kill_late(struct rueda_membership *members, int64_t now_ns)
{
    for (int i = 0; i < members->worker_count; i++)
        if (members->workers[i].state == RUEDA_WORKER_LEAVING &&
            now_ns >= members->workers[i].kill_ns)
            rueda_membership_kill(members, i, now_ns);
}

static void sooner(struct rueda_membership *members, int64_t then_ns,
                   int64_t now_ns)
{
    if (then_ns > now_ns && then_ns < members->next_ns)
        members->next_ns = then_ns;
}

static void set_next(struct rueda_membership *members, int64_t now_ns)
{
    members->next_ns = INT64_MAX;
    for (int h = 0; h < members->host_count; h++) {
        const struct rueda_membership_host *host = &members->hosts[h];

        sooner(members, host->barred_until_ns, now_ns);
        for (int s = 0; s < host->listed; s++)
            sooner(members, host->slots[s].barred_until_ns, now_ns);
    }
    for (int i = 0; i < members->worker_count; i++)
        if (members->workers[i].state == RUEDA_WORKER_LEAVING)
            sooner(members, members->workers[i].kill_ns, now_ns);
    if (members->newcomer_ns != INT64_MAX)
        sooner(members, members->newcomer_ns + BATCH_NS, now_ns);
    if (members->since_ns != INT64_MAX)
        sooner(members, members->limit_ns, now_ns);
}

/* Bring about all that follows from what has happened. */
static void settle(struct rueda_membership *members, int64_t now_ns)
{
    int present;

    if (members->is_over || !members->has_hosts)
        return;
    kill_late(members, now_ns);
    refuse_strays(members, now_ns);
    leave_hosts(members);
    if (!members->is_finishing)
        rueda_membership_fill(members, now_ns);
    present = rueda_membership_count(members, RUEDA_WORKER_MEMBER);
    if (!is_at_end(members, now_ns) && !members->is_finishing) {
        if (present == 0)
            rueda_membership_form(members, now_ns);
        present = rueda_membership_count(members, RUEDA_WORKER_MEMBER);
        if (present > 0 && present == members->size)
            tell_change(members, now_ns);
        else
            rueda_membership_wait(members, now_ns);
    }
    set_next(members, now_ns);
}

/* ---- Hosts --------------------------------------------------------------- */

static int find_host(const struct rueda_membership *members, const char *name)
{
    for (int h = 0; h < members->host_count; h++)
        if (strcmp(members->hosts[h].name, name) == 0)
            return h;
    return -1;
}

static int add_host(struct rueda_membership *members, const char *name)
{
    struct rueda_membership_host *grown =
        reallocarray(members->hosts, (size_t)members->host_count + 1,
                     sizeof(*members->hosts));

    if (grown == NULL)
        return -1;
    members->hosts = grown;
    grown[members->host_count] = (struct rueda_membership_host){.listed = 0};
    snprintf(grown[members->host_count].name, RUEDA_LAUNCH_HOST_BYTES, "%s",
             name);
    return members->host_count++;
}

static bool list_host(struct rueda_membership *members,
                      const struct rueda_hosts_entry *listed)
{
    int h = find_host(members, listed->name);
    struct rueda_membership_host *host;
    struct rueda_slot *slots;

    if (h < 0)
        h = add_host(members, listed->name);
    if (h < 0)
        return false;
    host = &members->hosts[h];
    if (listed->slots > host->room) {
        slots =
            reallocarray(host->slots, (size_t)listed->slots, sizeof(*slots));
        if (slots == NULL)
            return false;
        host->slots = slots;
        for (; host->room < listed->slots; host->room++)
            slots[host->room] = (struct rueda_slot){.worker = -1};
    }
    host->listed = listed->slots;
    return true;
}

void rueda_membership_hosts(struct rueda_membership *members,
                            const struct rueda_hosts *hosts, int64_t now_ns)
{
    members->has_hosts = true;
    for (int h = 0; h < members->host_count; h++)
        members->hosts[h].listed = 0;
    for (int i = 0; i < hosts->count; i++)
        if (!list_host(members, &hosts->list[i])) {
            rueda_membership_end(members, 1, "no memory for the hosts");
            return;
        }
    settle(members, now_ns);
}

void rueda_membership_reached(struct rueda_membership *members, int host,
                              int64_t now_ns)
{
    if (host < 0 || host >= members->host_count ||
        members->hosts[host].agent != RUEDA_AGENT_ASKED)
        return;
    members->hosts[host].agent = RUEDA_AGENT_THERE;
    settle(members, now_ns);
}

/* ---- Workers ------------------------------------------------------------- */

/* A host as Horovod bars it: its other processes end too. */
static void bar_host(struct rueda_membership *members, int host,
                     const char *why, int64_t now_ns)
{
    rueda_membership_bar(members, host, -1, why, now_ns);
    for (int i = 0; i < members->worker_count; i++)
        if (members->workers[i].host == host &&
            members->workers[i].state <= RUEDA_WORKER_MEMBER)
            rueda_membership_kill(members, i, now_ns);
}

/* Those who wait for the term to begin need not any more. */
static void break_term(struct rueda_membership *members, const char *words)
{
    rueda_membership_act(members,
                         (struct rueda_action){.kind = RUEDA_ACTION_OVER,
                                               .term = members->term,
                                               .words = words});
}

/* What is left after a failure, in words; there is nothing to add if the job is
 * about to end. */
static void say_failed(struct rueda_membership *members, const char *words)
{
    struct rueda_text line = {{0}};
    const int left = rueda_membership_living(members);

    rueda_text_set(&line, "%.400s", words);
    if (left > 0 && !members->is_finishing)
        rueda_text_add(&line, "; %d rank%s left", left,
                       left == 1 ? " is" : "s are");
    rueda_membership_say(members, line.chars);
}

/* The first failure of a term counts. That of a newcomer takes nothing from the
 * ranks that work, unless there have been none yet. */
static void note_code(struct rueda_membership *members, bool was_member,
                      int code)
{
    if (members->code == 0 && (was_member || members->term == 0))
        members->code = code;
}

static void fail(struct rueda_membership *members, int worker, int code,
                 const char *words, int64_t now_ns)
{
    struct rueda_membership_worker *at = &members->workers[worker];
    const bool was_member = at->state == RUEDA_WORKER_MEMBER;

    at->state = RUEDA_WORKER_ENDED;
    note_code(members, was_member, code);
    if (members->args.bars_hosts)
        bar_host(members, at->host, words, now_ns);
    else
        rueda_membership_bar(members, at->host, at->slot, words, now_ns);
    say_failed(members, words);
    if (was_member)
        break_term(members, words);
    /* Another rank has finished: there is no term for the rest. */
    if (was_member && members->is_finishing)
        rueda_membership_end(members, code, "the job is ended");
}

void rueda_membership_ended(struct rueda_membership *members, int worker,
                            int code, const char *words, int64_t now_ns)
{
    struct rueda_membership_worker *at;

    if (worker < 0 || worker >= members->worker_count ||
        members->workers[worker].state == RUEDA_WORKER_ENDED)
        return;
    at = &members->workers[worker];
    members->hosts[at->host].slots[at->slot].worker = -1;
    if (at->state == RUEDA_WORKER_LEAVING) {
        at->state = RUEDA_WORKER_ENDED;
    } else if (code == 0) {
        at->state = RUEDA_WORKER_ENDED;
        members->is_finishing = true;
    } else {
        fail(members, worker, code, words, now_ns);
    }
    settle(members, now_ns);
}

void rueda_membership_lost(struct rueda_membership *members, int host,
                           const char *why, int64_t now_ns)
{
    struct rueda_membership_host *at;
    bool had_member = false;

    if (host < 0 || host >= members->host_count ||
        members->hosts[host].agent == RUEDA_AGENT_NONE)
        return;
    at = &members->hosts[host];
    at->agent = RUEDA_AGENT_NONE;
    for (int i = 0; i < members->worker_count; i++) {
        struct rueda_membership_worker *worker = &members->workers[i];

        if (worker->host != host || worker->state == RUEDA_WORKER_ENDED)
            continue;
        had_member = had_member || worker->state == RUEDA_WORKER_MEMBER;
        worker->state = RUEDA_WORKER_ENDED;
        at->slots[worker->slot].worker = -1;
    }
    note_code(members, had_member, 1);
    rueda_membership_bar(members, host, -1, why, now_ns);
    say_failed(members, why);
    if (had_member)
        break_term(members, why);
    if (had_member && members->is_finishing)
        rueda_membership_end(members, 1, "the job is ended");
    settle(members, now_ns);
}

void rueda_membership_ready(struct rueda_membership *members, int worker,
                            uint64_t progress, int64_t now_ns)
{
    struct rueda_membership_worker *at;

    if (worker < 0 || worker >= members->worker_count)
        return;
    at = &members->workers[worker];
    if (at->state > RUEDA_WORKER_MEMBER)
        return;
    at->state = RUEDA_WORKER_WAITING;
    at->progress = progress;
    members->has_trained = members->has_trained || progress > 0;
    settle(members, now_ns);
}

/* ---- Leaving with notice ------------------------------------------------- */

static bool drain(struct rueda_membership *members, int worker)
{
    struct rueda_membership_worker *at = &members->workers[worker];

    if (at->state > RUEDA_WORKER_MEMBER || at->is_drained)
        return false;
    at->is_drained = true;
    return true;
}

void rueda_membership_drain(struct rueda_membership *members, int worker,
                            const char *words, int64_t now_ns)
{
    if (worker < 0 || worker >= members->worker_count ||
        !drain(members, worker))
        return;
    rueda_membership_bar(members, members->workers[worker].host,
                         members->workers[worker].slot, words, now_ns);
    rueda_membership_say(members, words);
    settle(members, now_ns);
}

void rueda_membership_drain_host(struct rueda_membership *members, int host,
                                 const char *words, int64_t now_ns)
{
    if (host < 0 || host >= members->host_count ||
        members->hosts[host].is_drained)
        return;
    members->hosts[host].is_drained = true;
    for (int i = 0; i < members->worker_count; i++)
        if (members->workers[i].host == host)
            drain(members, i);
    rueda_membership_bar(members, host, -1, words, now_ns);
    rueda_membership_say(members, words);
    settle(members, now_ns);
}

void rueda_membership_welcome(struct rueda_membership *members,
                              const char *name)
{
    const int h = find_host(members, name);

    if (h < 0)
        return;
    members->hosts[h].barred_until_ns = 0;
    members->hosts[h].strikes = 0;
    for (int s = 0; s < members->hosts[h].room; s++)
        members->hosts[h].slots[s].barred_until_ns = 0;
}

/* ---- Time ---------------------------------------------------------------- */

void rueda_membership_tick(struct rueda_membership *members, int64_t now_ns)
{
    settle(members, now_ns);
}

int64_t rueda_membership_next_ns(const struct rueda_membership *members)
{
    return members->is_over ? INT64_MAX : members->next_ns;
}

/* ---- Life and questions -------------------------------------------------- */

struct rueda_membership *
rueda_membership_new(const struct rueda_membership_args *args,
                     void (*act)(void *arg, const struct rueda_action *action),
                     void *arg)
{
    struct rueda_membership *members = calloc(1, sizeof(*members));

    if (members == NULL)
        return NULL;
    members->args = *args;
    members->act = act;
    members->arg = arg;
    members->random = args->seed | 1;
    members->next_ns = INT64_MAX;
    members->newcomer_ns = INT64_MAX;
    members->since_ns = INT64_MAX;
    return members;
}

void rueda_membership_free(struct rueda_membership *members)
{
    if (members == NULL)
        return;
    for (int h = 0; h < members->host_count; h++)
        free(members->hosts[h].slots);
    free(members->hosts);
    free(members->workers);
    free(members);
}

const char *rueda_membership_host_name(const struct rueda_membership *members,
                                       int host)
{
    return members->hosts[host].name;
}

int rueda_membership_host_slots(const struct rueda_membership *members,
                                int host)
{
    return members->hosts[host].listed;
}

int rueda_membership_rank(const struct rueda_membership *members, int worker)
{
    return worker < members->worker_count ? members->workers[worker].rank : -1;
}
