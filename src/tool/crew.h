/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A crew: the worker processes of one system under test, as the coordinator
 * sees them. It starts them, commands them all at once and sees to it that none
 * is left behind: they die with the coordinator (PR_SET_PDEATHSIG), leave when
 * their socket closes, and are killed by rueda_crew_stop() at the latest.
 *
 * For the one thread of the coordinator.
 */
#ifndef RUEDA_TOOL_CREW_H
#define RUEDA_TOOL_CREW_H

#include "base/text.h"
#include "tool/control.h"
#include "tool/options.h"

/* Where workers arrive, and where Ctrl-C is seen. */
struct rueda_crew_listener {
    int fd; /* a listening socket */
    char name[RUEDA_CONTROL_NAME];
    int signal_fd;
    int signal; /* the one that came, or 0 */
};

/* Blocks SIGINT, SIGTERM and SIGHUP for this process and its workers' parents
 * to be, and reads them instead. Workers on hosts come from other network
 * namespaces. */
bool rueda_crew_listener_open(struct rueda_crew_listener *listener,
                              bool has_hosts, struct rueda_text *words);
void rueda_crew_listener_close(struct rueda_crew_listener *listener);

typedef enum rueda_crew_kind {
    RUEDA_CREW_PROCESSES,
    RUEDA_CREW_THREADS,
    RUEDA_CREW_OPENMPI,
    RUEDA_CREW_MPICH,
    RUEDA_CREW_RAW, /* two processes and a connection */
} rueda_crew_kind;

struct rueda_crew;

/* As rueda_crew_command(); replies is NULL for "quit". */
typedef bool (*rueda_crew_exchange)(struct rueda_crew *crew,
                                    const struct rueda_control_command *command,
                                    struct rueda_reply *out_replies);

struct rueda_crew {
    /* Set by the caller before the start. */
    const char *name; /* in the table; borrowed */
    int number;       /* differs between crews */
    int size;         /* ranks */
    rueda_crew_kind kind;
    const char *transport; /* RUEDA_TRANSPORT of the workers, or NULL */
    char algo[96];         /* RUEDA_ALGO of the workers; empty: not set */
    bool is_crowded;       /* more ranks than cores */
    rueda_placing placing;
    const struct rueda_bench_options *hosts; /* where they are, or NULL: here */

    /* Where ranks were started by another launcher: how to reach them instead;
     * nothing below but is_up and words is then in use. */
    rueda_crew_exchange exchange;
    void *exchange_arg;

    bool is_up;
    char version[256];
    char used[16]; /* the transport that all ranks say they use, or empty */
    struct rueda_text words; /* why it is not up */

    int child_count;
    pid_t children[RUEDA_NP_MAX]; /* 0: gone. Ranks, or one mpirun */
    int log_fd;                   /* what an mpirun printed */
    int fds[RUEDA_NP_MAX];        /* by rank; -1: not there */
    int pidfds[RUEDA_NP_MAX];     /* by rank; -1: not there */
};

/*
 * Start the workers and wait for all of them, at most timeout_s. On failure
 * nothing of them is left and crew->words says why. Either way
 * rueda_crew_stop() may be called.
 */
bool rueda_crew_start(struct rueda_crew *crew,
                      struct rueda_crew_listener *listener, double timeout_s);

/*
 * Give all workers a command and wait for all replies, replies[0 .. size-1].
 * False if a worker fails, dies or does not answer in time, or if a signal
 * came: the crew is then stopped and crew->words says why.
 */
bool rueda_crew_command(struct rueda_crew *crew,
                        struct rueda_crew_listener *listener,
                        const struct rueda_control_command *command,
                        struct rueda_reply *out_replies, double timeout_s);

/* Let the workers leave, or kill them. */
void rueda_crew_stop(struct rueda_crew *crew);

#endif /* RUEDA_TOOL_CREW_H */
