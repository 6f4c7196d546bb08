/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said while a term cannot be formed: once that ranks are waited for,
 * and when the time is over, which ones are missing and why.
 */
#include "launch/membership_state.h"

#define SECOND ((int64_t)1000000000)

/* For processes to call init(), whatever the patience. */
#define START_NS (60 * SECOND)

/* Slots and hosts that one message names. */
#define MOST_NAMED 6

void rueda_membership_say(struct rueda_membership *members, const char *words)
{
    rueda_membership_act(
        members,
        (struct rueda_action){.kind = RUEDA_ACTION_SAY, .words = words});
}

/* "; rank 1 on host b is still at work and has not come back" */
static void name_busy(const struct rueda_membership *members,
                      struct rueda_text *words)
{
    for (int i = 0; i < members->worker_count; i++) {
        const struct rueda_membership_worker *worker = &members->workers[i];

        if (worker->state == RUEDA_WORKER_MEMBER)
            rueda_text_add(words,
                           "; rank %d on %s has not come back from the last "
                           "term",
                           worker->rank, members->hosts[worker->host].name);
        else if (worker->state == RUEDA_WORKER_STARTING)
            rueda_text_add(words, "; a process on %s has not called init()",
                           members->hosts[worker->host].name);
    }
}

/* "; rank 1 on b was killed by signal 9 (SIGKILL)": why places are empty. */
static void name_barred(const struct rueda_membership *members,
                        struct rueda_text *words, int64_t now_ns)
{
    int named = 0;

    for (int h = 0; h < members->host_count; h++) {
        const struct rueda_membership_host *host = &members->hosts[h];
        const bool is_barred = now_ns < host->barred_until_ns;

        if (host->listed > 0 && is_barred && named++ < MOST_NAMED)
            rueda_text_add(words, "; %s is not used: %s", host->name,
                           host->why);
        for (int s = 0; s < host->listed && !is_barred; s++)
            if (now_ns < host->slots[s].barred_until_ns && named++ < MOST_NAMED)
                rueda_text_add(words, "; %s", host->slots[s].why);
        if (host->listed > 0 && !is_barred && host->agent == RUEDA_AGENT_ASKED)
            rueda_text_add(words, "; no agent has come from %s", host->name);
    }
    if (named > MOST_NAMED)
        rueda_text_add(words, "; and %d more", named - MOST_NAMED);
}

static int needed(const struct rueda_membership *members)
{
    return members->term == 0 && members->code == 0 ? members->args.size
                                                    : members->args.least;
}

static void say_waiting(struct rueda_membership *members, int usable)
{
    const int need = needed(members);
    struct rueda_text words = {{0}};

    if (members->has_said || usable >= need)
        return;
    members->has_said = true;
    rueda_text_set(
        &words,
        "there is room for %d rank%s, and %d %s needed (%s); "
        "waiting up to %.0f s for more hosts",
        usable, usable == 1 ? "" : "s", need, need == 1 ? "is" : "are",
        need == members->args.size && members->term == 0 ? "-np" : "--min-np",
        (double)members->args.patience_ns / (double)SECOND);
    rueda_membership_act(
        members,
        (struct rueda_action){.kind = RUEDA_ACTION_SAY, .words = words.chars});
}

/* Processes that are to be the ranks have not called init() yet, which the user
 * does not mean by --elastic-timeout if it is a short one. */
static int64_t limit_ns(const struct rueda_membership *members, int usable)
{
    const int64_t patience_ns = members->args.patience_ns;
    const bool is_starting =
        usable >= needed(members) &&
        rueda_membership_count(members, RUEDA_WORKER_STARTING) > 0;

    return is_starting && patience_ns < START_NS ? START_NS : patience_ns;
}

void rueda_membership_wait(struct rueda_membership *members, int64_t now_ns)
{
    const int usable = rueda_membership_usable(members, -1, now_ns);
    const int waiting = rueda_membership_count(members, RUEDA_WORKER_WAITING);
    struct rueda_text words = {{0}};
    int64_t limit;

    if (members->since_ns == INT64_MAX)
        members->since_ns = now_ns;
    say_waiting(members, usable);
    limit = limit_ns(members, usable);
    members->limit_ns = members->since_ns + limit;
    if (now_ns < members->limit_ns)
        return;
    rueda_text_set(&words, "after %.0f s %d rank%s there, and %d %s needed",
                   (double)limit / (double)SECOND, waiting,
                   waiting == 1 ? " is" : "s are", needed(members),
                   needed(members) == 1 ? "is" : "are");
    name_busy(members, &words);
    name_barred(members, &words, now_ns);
    rueda_text_add(&words, "; the job is ended");
    rueda_membership_end(members, members->code != 0 ? members->code : 1,
                         words.chars);
}
