/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the membership share; not for other files. */
#ifndef RUEDA_LAUNCH_MEMBERSHIP_STATE_H
#define RUEDA_LAUNCH_MEMBERSHIP_STATE_H

#include "launch/membership.h"

#define RUEDA_WHY_BYTES 128

struct rueda_slot {
    int worker; /* -1: none */
    int64_t barred_until_ns;
    int strikes;
    char why[RUEDA_WHY_BYTES]; /* it is barred */
};

typedef enum rueda_agent_state {
    RUEDA_AGENT_NONE,
    RUEDA_AGENT_ASKED,
    RUEDA_AGENT_THERE,
} rueda_agent_state;

struct rueda_membership_host {
    char name[RUEDA_LAUNCH_HOST_BYTES];
    int listed; /* slots that may be used; 0: the host is not listed */
    rueda_agent_state agent;
    int64_t barred_until_ns;
    int strikes;
    char why[RUEDA_WHY_BYTES]; /* it is barred */
    bool is_drained;           /* its agent goes with its last process */
    struct rueda_slot *slots;  /* [room] */
    int room;
};

typedef enum rueda_worker_state {
    RUEDA_WORKER_STARTING,
    RUEDA_WORKER_WAITING,
    RUEDA_WORKER_MEMBER,
    RUEDA_WORKER_LEAVING, /* how it ends does not matter */
    RUEDA_WORKER_ENDED,
} rueda_worker_state;

struct rueda_membership_worker {
    int host;
    int slot;
    rueda_worker_state state;
    int rank;          /* in the last term in which it was a member; -1: none */
    int guess;         /* its rank in the variables that it was started with */
    uint64_t progress; /* of the training, as it has said */
    int64_t kill_ns;   /* leaving: when it is signalled next */
    bool is_warned;    /* by SIGTERM */
    bool is_drained;   /* was told to leave */
};

struct rueda_membership {
    struct rueda_membership_args args;
    void (*act)(void *arg, const struct rueda_action *action);
    void *arg;
    struct rueda_membership_host *hosts;
    int host_count;
    struct rueda_membership_worker *workers;
    int worker_count;
    uint32_t term;
    int size; /* of the term */
    int resets;
    bool has_hosts;    /* the first list has come */
    bool has_trained;  /* a worker has had the training's state */
    bool is_finishing; /* a member has ended well: no more terms */
    bool is_over;
    int code;            /* of the first failure since the term was formed */
    unsigned told;       /* flags of the term's changes */
    int64_t newcomer_ns; /* since when a newcomer waits; INT64_MAX: none does */
    int64_t since_ns;    /* there are not enough ranks; INT64_MAX: there are */
    int64_t limit_ns;    /* when that ends the job, if since_ns is set */
    bool has_said;       /* that we wait for more */
    uint64_t random;
    int64_t next_ns;
};

/* ---- membership_slots.c -------------------------------------------------- */

void rueda_membership_act(struct rueda_membership *members,
                          struct rueda_action action);

/* The job ends. */
void rueda_membership_end(struct rueda_membership *members, int code,
                          const char *words);

bool rueda_membership_is_usable(const struct rueda_membership *members,
                                int host, int slot, int64_t now_ns);
/* Slots that may be used; of one host, or of all (-1). */
int rueda_membership_usable(const struct rueda_membership *members, int host,
                            int64_t now_ns);

/* Will none of the listed slots ever be usable again? */
bool rueda_membership_is_hopeless(const struct rueda_membership *members,
                                  int64_t now_ns);

int rueda_membership_count(const struct rueda_membership *members,
                           rueda_worker_state state);
/* Workers that start, wait or are members. */
int rueda_membership_living(const struct rueda_membership *members);

/* May a worker be in the next term? */
bool rueda_membership_may_stay(const struct rueda_membership *members,
                               int worker, int64_t now_ns);

/* Bar a slot, or a host (slot -1), for the cooldown. */
void rueda_membership_bar(struct rueda_membership *members, int host, int slot,
                          const char *why, int64_t now_ns);

/* Tell a worker that it has no place. */
void rueda_membership_refuse(struct rueda_membership *members, int worker,
                             const char *words, int64_t now_ns);
/* End it by a signal. */
void rueda_membership_kill(struct rueda_membership *members, int worker,
                           int64_t now_ns);

/* Ask for agents and start processes where there is room. */
void rueda_membership_fill(struct rueda_membership *members, int64_t now_ns);

/* ---- membership_wait.c --------------------------------------------------- */

void rueda_membership_say(struct rueda_membership *members, const char *words);

/* Between two terms: wait for what the next one takes, but not for ever. */
void rueda_membership_wait(struct rueda_membership *members, int64_t now_ns);

/* ---- membership_term.c --------------------------------------------------- */

/* Form the next term if all is there that it takes. */
void rueda_membership_form(struct rueda_membership *members, int64_t now_ns);

#endif /* RUEDA_LAUNCH_MEMBERSHIP_STATE_H */
