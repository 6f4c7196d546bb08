/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, slots and the workers in them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "launch/membership_state.h"

#define SECOND ((int64_t)1000000000)

/* For a worker that has no place any more, to end by itself. */
#define LEAVE_NS (10 * SECOND)
/* From SIGTERM to SIGKILL. */
#define GRACE_NS (5 * SECOND)

/* ---- Actions ------------------------------------------------------------- */

void rueda_membership_act(struct rueda_membership *members,
                          struct rueda_action action)
{
    if (action.words == NULL)
        action.words = "";
    if (!members->is_over)
        members->act(members->arg, &action);
}

void rueda_membership_end(struct rueda_membership *members, int code,
                          const char *words)
{
    rueda_membership_act(
        members, (struct rueda_action){
                     .kind = RUEDA_ACTION_END, .code = code, .words = words});
    members->is_over = true;
}

/* ---- Slots --------------------------------------------------------------- */

bool rueda_membership_is_usable(const struct rueda_membership *members,
                                int host, int slot, int64_t now_ns)
{
    const struct rueda_membership_host *at = &members->hosts[host];

    /* The agent of a drained host goes first; another one may come. */
    if (at->is_drained && at->agent != RUEDA_AGENT_NONE)
        return false;
    return slot < at->listed && now_ns >= at->barred_until_ns &&
           now_ns >= at->slots[slot].barred_until_ns;
}

int rueda_membership_usable(const struct rueda_membership *members, int host,
                            int64_t now_ns)
{
    const int first = host >= 0 ? host : 0;
    const int last = host >= 0 ? host : members->host_count - 1;
    int count = 0;

    for (int h = first; h <= last; h++)
        for (int slot = 0; slot < members->hosts[h].listed; slot++)
            count += rueda_membership_is_usable(members, h, slot, now_ns);
    return count;
}

bool rueda_membership_is_hopeless(const struct rueda_membership *members,
                                  int64_t now_ns)
{
    bool is_listed = false;

    for (int h = 0; h < members->host_count; h++) {
        const struct rueda_membership_host *host = &members->hosts[h];

        for (int slot = 0; slot < host->listed; slot++) {
            is_listed = true;
            if (host->barred_until_ns != INT64_MAX &&
                host->slots[slot].barred_until_ns != INT64_MAX)
                return false;
        }
    }
    (void)now_ns;
    return is_listed;
}

/* xorshift, from 0 to 1. */
static double random_part(struct rueda_membership *members)
{
    members->random ^= members->random << 13;
    members->random ^= members->random >> 7;
    members->random ^= members->random << 17;
    return (double)(members->random >> 11) / (double)(1ull << 53);
}

/* The k-th time lasts min(high, low * 2^k + low * random) seconds. */
static int64_t cooldown_end(struct rueda_membership *members, int strikes,
                            int64_t now_ns)
{
    const double low = members->args.cooldown_low_s;
    const double high = members->args.cooldown_high_s;
    double seconds = low * (1 + random_part(members));

    if (low <= 0)
        return INT64_MAX;
    for (int i = 0; i < strikes && seconds < high; i++)
        seconds += low * (double)(1ull << (i < 40 ? i : 40));
    if (seconds > high)
        seconds = high;
    return now_ns + (int64_t)(seconds * (double)SECOND);
}

void rueda_membership_bar(struct rueda_membership *members, int host, int slot,
                          const char *why, int64_t now_ns)
{
    struct rueda_membership_host *at = &members->hosts[host];

    snprintf(slot >= 0 ? at->slots[slot].why : at->why, RUEDA_WHY_BYTES, "%s",
             why);
    if (slot >= 0)
        at->slots[slot].barred_until_ns =
            cooldown_end(members, ++at->slots[slot].strikes, now_ns);
    else if (now_ns >= at->barred_until_ns)
        at->barred_until_ns = cooldown_end(members, ++at->strikes, now_ns);
}

bool rueda_membership_may_stay(const struct rueda_membership *members,
                               int worker, int64_t now_ns)
{
    const struct rueda_membership_worker *at = &members->workers[worker];

    return !at->is_drained &&
           rueda_membership_is_usable(members, at->host, at->slot, now_ns);
}

/* ---- Workers ------------------------------------------------------------- */

int rueda_membership_count(const struct rueda_membership *members,
                           rueda_worker_state state)
{
    int count = 0;

    for (int i = 0; i < members->worker_count; i++)
        count += members->workers[i].state == state;
    return count;
}

int rueda_membership_living(const struct rueda_membership *members)
{
    return rueda_membership_count(members, RUEDA_WORKER_STARTING) +
           rueda_membership_count(members, RUEDA_WORKER_WAITING) +
           rueda_membership_count(members, RUEDA_WORKER_MEMBER);
}

void rueda_membership_refuse(struct rueda_membership *members, int worker,
                             const char *words, int64_t now_ns)
{
    struct rueda_membership_worker *at = &members->workers[worker];

    at->state = RUEDA_WORKER_LEAVING;
    at->kill_ns = now_ns + LEAVE_NS;
    rueda_membership_act(members,
                         (struct rueda_action){.kind = RUEDA_ACTION_REFUSE,
                                               .worker = worker,
                                               .host = at->host,
                                               .words = words});
}

void rueda_membership_kill(struct rueda_membership *members, int worker,
                           int64_t now_ns)
{
    struct rueda_membership_worker *at = &members->workers[worker];

    at->state = RUEDA_WORKER_LEAVING;
    at->kill_ns = at->is_warned ? INT64_MAX : now_ns + GRACE_NS;
    rueda_membership_act(
        members,
        (struct rueda_action){.kind = RUEDA_ACTION_KILL,
                              .worker = worker,
                              .host = at->host,
                              .code = at->is_warned ? SIGKILL : SIGTERM});
    at->is_warned = true;
}

/* ---- New ones ------------------------------------------------------------ */

/* The place of a slot among all that may be used, or the lowest rank that no
 * worker has. */
static int guess_rank(const struct rueda_membership *members, int host,
                      int slot, int64_t now_ns)
{
    int rank = 0;

    if (members->term == 0) {
        for (int h = 0; h < host; h++)
            rank += rueda_membership_usable(members, h, now_ns);
        for (int s = 0; s < slot; s++)
            rank += rueda_membership_is_usable(members, host, s, now_ns);
        return rank;
    }
    for (int i = 0; i < members->worker_count; i++) {
        const struct rueda_membership_worker *worker = &members->workers[i];
        const bool is_there = worker->state <= RUEDA_WORKER_MEMBER;

        if (!is_there ||
            rank != (worker->rank >= 0 ? worker->rank : worker->guess))
            continue;
        rank++;
        i = -1; /* look at all again */
    }
    return rank;
}

static int add_worker(struct rueda_membership *members, int host, int slot,
                      int guess)
{
    struct rueda_membership_worker *grown =
        reallocarray(members->workers, (size_t)members->worker_count + 1,
                     sizeof(*members->workers));

    if (grown == NULL)
        return -1;
    members->workers = grown;
    grown[members->worker_count] =
        (struct rueda_membership_worker){.host = host,
                                         .slot = slot,
                                         .rank = -1,
                                         .guess = guess,
                                         .kill_ns = INT64_MAX};
    members->hosts[host].slots[slot].worker = members->worker_count;
    return members->worker_count++;
}

/* The place that a new process probably gets, for its variables. */
static struct rueda_rendezvous_ranks
guess(const struct rueda_membership *members, int host, int slot, int wanted,
      int64_t now_ns)
{
    const int usable = rueda_membership_usable(members, host, now_ns);
    struct rueda_rendezvous_ranks place = {
        .rank = guess_rank(members, host, slot, now_ns)};

    place.size = wanted > place.rank ? wanted : place.rank + 1;
    for (int i = 0; i < members->worker_count; i++)
        place.local_rank += members->workers[i].host == host &&
                            members->workers[i].slot < slot &&
                            members->workers[i].state <= RUEDA_WORKER_MEMBER;
    place.local_size = usable < place.size ? usable : place.size;
    if (place.local_size <= place.local_rank)
        place.local_size = place.local_rank + 1;
    for (int h = 0; h < members->host_count; h++) {
        const bool is_used =
            rueda_membership_usable(members, h, now_ns) > place.local_rank;

        place.cross_rank += is_used && h < host;
        place.cross_size += is_used || h == host;
    }
    if (place.cross_size > place.size)
        place.cross_size = place.size;
    if (place.cross_rank >= place.cross_size)
        place.cross_rank = place.cross_size - 1;
    return place;
}

static void start(struct rueda_membership *members, int host, int slot,
                  int wanted, int64_t now_ns)
{
    const struct rueda_rendezvous_ranks place =
        guess(members, host, slot, wanted, now_ns);
    const int worker = add_worker(members, host, slot, place.rank);

    if (worker < 0) {
        rueda_membership_end(members, 1, "no memory for another process");
        return;
    }
    rueda_membership_act(members,
                         (struct rueda_action){.kind = RUEDA_ACTION_START,
                                               .worker = worker,
                                               .host = host,
                                               .slot = slot,
                                               .ranks = place});
}

/* Use a slot. True: it takes one of those that are wanted. */
static bool use(struct rueda_membership *members, int host, int slot,
                int wanted, int64_t now_ns)
{
    struct rueda_membership_host *at = &members->hosts[host];

    if (at->slots[slot].worker >= 0 ||
        !rueda_membership_is_usable(members, host, slot, now_ns))
        return false;
    if (at->agent == RUEDA_AGENT_THERE) {
        start(members, host, slot, wanted, now_ns);
    } else if (at->agent == RUEDA_AGENT_NONE) {
        at->agent = RUEDA_AGENT_ASKED;
        at->is_drained = false;
        rueda_membership_act(
            members,
            (struct rueda_action){.kind = RUEDA_ACTION_REACH, .host = host});
    }
    return true;
}

void rueda_membership_fill(struct rueda_membership *members, int64_t now_ns)
{
    const int usable = rueda_membership_usable(members, -1, now_ns);
    const int wanted =
        usable < members->args.most ? usable : members->args.most;
    int missing = wanted - rueda_membership_living(members);

    /* Nothing starts before all of the first term can. */
    if (members->worker_count == 0 && usable < members->args.size)
        return;
    for (int h = 0; h < members->host_count; h++)
        for (int s = 0; s < members->hosts[h].listed && missing > 0; s++)
            missing -= use(members, h, s, wanted, now_ns);
}
