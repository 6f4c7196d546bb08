/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the agent share; not for other files. */
#ifndef RUEDA_LAUNCH_AGENT_STATE_H
#define RUEDA_LAUNCH_AGENT_STATE_H

#include <sys/types.h>
#include <uv.h>

#include "job/store/keeper.h"
#include "launch/assignment.h"
#include "launch/link.h"
#include "launch/spawn.h"

struct rueda_agent;
struct rueda_ground;

/* What comes from a rank by one of its two pipes. */
struct rueda_outlet {
    struct rueda_worker *worker;
    int stream; /* 1 or 2 */
    int fd;     /* -1: closed */
    uv_poll_t poll;
};

struct rueda_worker {
    struct rueda_agent *agent;
    int rank;
    pid_t process;
    int death; /* a descriptor that reports its end (pidfd); -1: none */
    uv_poll_t death_poll;
    bool has_ended;
    bool is_told; /* the launcher knows that it has ended */
    bool has_terminal;
    int how; /* it ended, as waitpid() says it */
    struct rueda_outlet outlets[2];
};

/* What the launcher sends for the standard input of rank 0. */
struct rueda_feed {
    int fd; /* our end of a pipe; -1: none, or closed */
    uv_poll_t poll;
    struct rueda_buffer bytes; /* not written yet */
    bool is_ended;             /* the input has ended */
};

struct rueda_agent {
    uv_loop_t loop;
    struct rueda_link link;
    uv_signal_t on_child;
    uv_signal_t on_term;
    uv_signal_t on_hangup;
    uv_timer_t killer;  /* from SIGTERM to SIGKILL */
    uv_timer_t looking; /* at a launcher that we came to by TCP */
    int input; /* for rank 0, as it is; -1: the launcher sends it, if any */
    int words; /* a descriptor for those about a launcher that is gone */
    struct rueda_feed feed;
    struct rueda_key key;
    bool has_assignment;
    struct rueda_assignment assignment;
    struct rueda_ground *ground; /* while ranks are to be started; or NULL */
    struct rueda_worker **workers;
    int worker_count; /* those that were started */
    int worker_room;
    pid_t parent;               /* the guardian */
    bool is_closing;            /* elastic: no more processes */
    bool is_draining;           /* elastic: the launcher knows that we go */
    bool is_full;               /* the launcher does not keep up */
    bool is_killing;            /* SIGKILL was ours */
    bool is_lost;               /* the launcher is gone */
    bool is_finishing;          /* only the queue is left */
    struct rueda_oom_count oom; /* when the ranks were started */
};

/* Find what the ranks of the assignment need: folder, command, a way to the
 * store. False with a message: nothing is there, and *out_code is what the
 * launcher is to exit with. */
bool rueda_agent_prepare(struct rueda_agent *agent, struct rueda_text *words,
                         int *out_code);

/* Start all ranks, once they are prepared. False with a message: nothing runs.
 */
bool rueda_agent_start_all(struct rueda_agent *agent, struct rueda_text *words);

/* Start one more process, of an elastic job; takes its variables. False with a
 * message. */
bool rueda_agent_start_one(struct rueda_agent *agent, int number, int slot,
                           struct rueda_strings *variables,
                           struct rueda_text *words);

/* Forget what was prepared, if anything. */
void rueda_agent_clear_ground(struct rueda_agent *agent);

/* Read what is there from a worker's pipes, and send it. False: the link is
 * full, and there may be more. */
bool rueda_outlets_drain(struct rueda_worker *worker);

/* Begin to watch, or not for a while. */
void rueda_outlets_watch(struct rueda_worker *worker, bool is_wanted);
void rueda_outlets_close(struct rueda_worker *worker);

/* Make a pipe for the launcher's input; false with errno. */
bool rueda_feed_open(struct rueda_agent *agent, int *out_theirs);
/* The input goes to this descriptor, which is taken. False: no memory. */
bool rueda_feed_open_to(struct rueda_agent *agent, int fd);
/* Input has arrived; no bytes mean its end. */
void rueda_feed_add(struct rueda_agent *agent, const void *bytes, size_t len);
void rueda_feed_close(struct rueda_agent *agent);

/* The process of a worker has ended. */
void rueda_agent_worker_ended(struct rueda_worker *worker, int how);

/* A message for the user. */
void rueda_agent_note(struct rueda_agent *agent, const char *words);

/* A pipe has been read to its end, or to where it is now. */
void rueda_agent_check(struct rueda_worker *worker);

#endif /* RUEDA_LAUNCH_AGENT_STATE_H */
