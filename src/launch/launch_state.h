/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the launcher's main part share; not for other files. */
#ifndef RUEDA_LAUNCH_LAUNCH_STATE_H
#define RUEDA_LAUNCH_LAUNCH_STATE_H

#include <sys/types.h>
#include <uv.h>

#include "job/store/keeper.h"
#include "launch/assignment.h"
#include "launch/ending.h"
#include "launch/lines.h"
#include "launch/link.h"
#include "launch/options.h"
#include "launch/output.h"
#include "launch/placement.h"

struct rueda_launch;
struct rueda_door;
struct rueda_elastic;

typedef enum rueda_node_state {
    RUEDA_NODE_WAITING, /* for its agent */
    RUEDA_NODE_READY,   /* the agent is there */
    RUEDA_NODE_RUNNING, /* it has its assignment */
    RUEDA_NODE_GONE,
} rueda_node_state;

/* A host of the job and its agent. */
struct rueda_node {
    struct rueda_launch *launch;
    const char *name; /* as the user wrote it */
    bool is_local;
    bool is_joined; /* of an elastic job: no list names it */
    rueda_node_state state;
    bool is_prepared; /* its agent can start the ranks */
    bool is_linked;
    struct rueda_link link;
    int host; /* of an elastic job: its number there; -1: none yet */
    int first_rank;
    int count;
    int ended;                    /* ranks that have */
    char way[RUEDA_ADDRESS_TEXT]; /* our address as its agent sees it, or "" */

    /* What ssh says on its standard error, before the agent answers only its
     * last lines, later all of it as it arrives. */
    int errors; /* -1: none */
    uv_poll_t errors_poll;
    struct rueda_lines error_lines;
    char words[256];
};

struct rueda_launch {
    struct rueda_options *options;
    struct rueda_hosts hosts;
    struct rueda_placement placement;
    struct rueda_node *nodes; /* [placement.host_count] */
    int node_count;
    struct rueda_key key;
    struct rueda_keeper *keeper;
    struct rueda_elastic *elastic; /* a job whose ranks change, or NULL */
    struct rueda_repair *repair;   /* of the others, or NULL */
    struct rueda_door *door;       /* for agents that connect by themselves */
    struct rueda_output *output;
    bool has_input; /* there is a standard input for rank 0 */
    char job[64];
    int master_port; /* where rank 0 of torch.distributed may listen */
    bool was_used;   /* something has listened or connected there */
    unsigned probes; /* of whether one does */
    char folder[RUEDA_FOLDER_BYTES];
    char last_note[RUEDA_TEXT_BYTES];

    /* Where rank 0 is on another host, its input on its way there. */
    int input; /* -1: none, or no more */
    int input_node;
    bool is_passing_input;
    uv_poll_t input_poll;
    size_t input_flying; /* bytes sent, and not taken yet */

    uv_loop_t loop;
    bool has_loop;
    uv_async_t changed; /* the consoles' */
    uv_timer_t starting;
    uv_timer_t ending;
    uv_timer_t looking; /* at consoles that do not move */
    uv_signal_t signals[4];
    uv_signal_t stopping; /* Ctrl-Z */
    uv_timer_t lingering;

    int terminal_rank; /* the rank that has our terminal; -1: none */
    int interrupts;    /* Ctrl-C that it was sent, one after another */
    int64_t interrupted_ns;

    int start_timeout_s;
    int start_code;    /* with which hosts have failed to start; 0: none has */
    bool is_started;   /* the assignments are sent */
    bool is_going;     /* ranks may run */
    bool is_lingering; /* a rank has failed, and others may say why */
    int64_t failed_ns;
    bool is_ending;
    bool is_killing;
    bool is_paused;
    bool has_lost; /* a rank or host that ran: the job may be started again */
    int restarts;  /* so far */
    int signal;    /* that ends us; 0: none */
    int code;      /* of the exit */
};

/* ---- Nodes: node.c ------------------------------------------------------ */

/* Fork the agent of this host. Before any thread is started. */
rueda_status rueda_node_start_here(struct rueda_node *node, int input);

/* Start ssh, which starts the agent; or the agent itself, as a program of its
 * own, if the node is local. */
rueda_status rueda_node_start_there(struct rueda_node *node);

/* Take an agent's stream. mark: as rueda_link_open(). */
rueda_status rueda_node_link(struct rueda_node *node, int fd, const char *mark);

/* Send the key to an agent that we started ourselves. */
void rueda_node_hello(struct rueda_node *node);

/* ssh's last lines, read to the end. */
const char *rueda_node_words(struct rueda_node *node);

void rueda_node_fini(struct rueda_node *node);

/* ---- What nodes tell: launch_events.c ----------------------------------- */

void rueda_launch_frame(struct rueda_node *node,
                        const struct rueda_frame *frame);
void rueda_launch_lost(struct rueda_node *node, const char *why);

/* ---- The course of the job: launch_course.c ----------------------------- */

/* Once every host has answered, one way or the other: go, or give up. */
void rueda_launch_start_if_ready(struct rueda_launch *launch);

/* Once every host is prepared: ranks may run. */
void rueda_launch_go_if_prepared(struct rueda_launch *launch);

/* A host cannot be had. It is the user's mistake (2) only if all that fail
 * are. */
void rueda_launch_fail_host(struct rueda_node *node, int code);

/* End all ranks by a signal, and by SIGKILL after the grace. The first call
 * decides the code of the exit. */
void rueda_launch_end(struct rueda_launch *launch, int code, int signal);

/* Send all ranks a signal that ends nothing. */
void rueda_launch_signal(struct rueda_launch *launch, int signal);

/* The first rank has failed: end the job with this code once the others have
 * said what they have to say, at the latest after --linger. */
void rueda_launch_linger(struct rueda_launch *launch, int code);

/* One of them has said something, or has ended. */
void rueda_launch_heard(struct rueda_launch *launch);

/* At once. */
void rueda_launch_kill(struct rueda_launch *launch);

/* Leave the loop if no agent is left. */
void rueda_launch_stop_if_over(struct rueda_launch *launch);

/* How long hosts may take to connect, by the option or a variable. False with a
 * message: the variable is no such number. */
bool rueda_launch_find_timeout(struct rueda_launch *launch,
                               struct rueda_text *words);
void rueda_launch_on_start_timeout(uv_timer_t *timer);

/* ---- torch.distributed: master.c -------------------------------------- */

/* Once the nodes and the name of the job are there. */
void rueda_launch_choose_master_port(struct rueda_launch *launch);

/* See whether something uses that port; to be called now and then, and at the
 * end. */
void rueda_launch_probe_master_port(struct rueda_launch *launch);

/* At the end: say so if the ranks have joined no job at all, neither by our
 * store nor by torch.distributed. */
void rueda_launch_tell_lone_ranks(struct rueda_launch *launch);

#define RUEDA_MASTER_BYTES 256

/* Where rank 0 is reached by the ranks of a node that reaches the store at
 * `store`, "host:port", or NULL. */
void rueda_launch_master_address(const struct rueda_launch *launch,
                                 const char *store,
                                 char out[RUEDA_MASTER_BYTES]);

/* ---- Assignments: launch_assignment.c --------------------------------- */

/* The folder in which the ranks run: ours. False with a message. */
bool rueda_launch_find_folder(struct rueda_launch *launch,
                              struct rueda_text *words);

/* Send the assignment to a node. False: no memory. */
bool rueda_launch_send_assignment(struct rueda_node *node);

/* Open the store; words on failure. RUEDA_ERR_INVALID: --network-interfaces
 * names none of this host's. */
rueda_status rueda_launch_open_store(struct rueda_launch *launch,
                                     struct rueda_text *words);

/* ---- The terminal: terminal.c ----------------------------------------- */

/* Which rank gets it, if any. False with a message. */
bool rueda_terminal_choose(struct rueda_launch *launch,
                           struct rueda_text *words);

/* Each key goes to that rank from now on, until the second call. */
void rueda_terminal_take(struct rueda_launch *launch);
void rueda_terminal_give_back(void);

/* Keys were pressed: some of them are for us. Returns how many of the bytes are
 * for the rank. */
size_t rueda_terminal_keys(struct rueda_launch *launch, const char *bytes,
                           size_t len);

/* Ctrl-Z: stop the ranks, then this process; continue the ranks after it. */
void rueda_terminal_watch_stops(struct rueda_launch *launch);

/* ---- The standard input: launch_input.c --------------------------------- */

/* Begin to read, in a process of its own. Before any thread is started. */
rueda_status rueda_launch_read_input(struct rueda_launch *launch);

/* Begin to send what is read to the first host. */
void rueda_launch_pass_input(struct rueda_launch *launch);
void rueda_launch_input_taken(struct rueda_launch *launch, uint32_t count);
void rueda_launch_close_input(struct rueda_launch *launch);

/* ---- The door for agents: door.c ---------------------------------------- */

rueda_status rueda_door_open(struct rueda_launch *launch, const char *at,
                             struct rueda_text *words);
void rueda_door_close(struct rueda_door *door);
/* After the loop has run dry. */
void rueda_door_free(struct rueda_door *door);

#endif /* RUEDA_LAUNCH_LAUNCH_STATE_H */
