/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of NCCL share: what a GPU keeps for it, and what each place
 * does. A place goes through these steps, in its first tasks:
 *
 *      OPEN     a thread loads the library
 *      REPORTS  the members tell each other what they have, and decide
 *      ID       the first member makes NCCL's id, by a thread
 *      TELL_ID  the members hear it
 *      LINE     until this rank has launched nothing that still runs, and
 *               launches nothing else (nccl_turn.c)
 *      JOIN     NCCL makes the communicator
 *      RESULT   the members tell each other whether they have it
 *      READY    tasks run
 *      REFUSED  for good; tasks are handed on
 */
#ifndef RUEDA_DEVICE_CUDA_NCCL_STATE_H
#define RUEDA_DEVICE_CUDA_NCCL_STATE_H

#include "device/cuda/cuda_state.h"
#include "device/cuda/nccl.h"
#include "device/cuda/nccl_chore.h"
#include "device/cuda/nccl_lib.h"

typedef enum rueda_nccl_step {
    RUEDA_NCCL_OPEN,
    RUEDA_NCCL_REPORTS,
    RUEDA_NCCL_ID,
    RUEDA_NCCL_TELL_ID,
    RUEDA_NCCL_LINE,
    RUEDA_NCCL_JOIN,
    RUEDA_NCCL_RESULT,
    RUEDA_NCCL_READY,
    RUEDA_NCCL_REFUSED,
} rueda_nccl_step;

/* What a member tells of itself, in all three rounds. */
struct rueda_nccl_report {
    int32_t can;    /* 0: it cannot, for the reason in words, */
    int32_t member; /* which is this member's */
    int32_t choice;
    int32_t version;
    unsigned char uuid[16];
    struct rueda_nccl_id id; /* the first member's */
    char words[400];
};

/*
 * All members tell each other something of one size, by messages under a task's
 * tag, in log2(members) rounds (Bruck and others, 1997). Entry i is that of the
 * member i before me; entry 0 is mine.
 */
struct rueda_nccl_talk {
    char *entries; /* [members], room for reports */
    size_t bytes;  /* of an entry */
    int have;
    bool is_listening; /* the receive of the first round is posted */
    bool is_talking;
    struct rueda_req sent;
    struct rueda_req heard;
};

/* A point in the order of launches (nccl_turn.c): launches of the common place
 * up to it, then others since the last of these. */
struct rueda_nccl_stamp {
    uint64_t common;
    uint64_t other;
};

struct rueda_nccl_turn {
    enum {
        RUEDA_NCCL_OUT,     /* nothing is to be launched */
        RUEDA_NCCL_GATHER,  /* until all members have come, */
        RUEDA_NCCL_PROPOSE, /* until all have proposed, */
        RUEDA_NCCL_QUEUE,   /* until it is this one's turn, */
        RUEDA_NCCL_TAKEN,   /* and no other's until that ends */
    } step;
    struct rueda_nccl_stamp stamp;
};

struct rueda_nccl_comm {
    struct rueda_nccl_comm *next;
    const struct rueda_place *place;
    uint32_t tag_set; /* of its tasks */
    rueda_nccl_step step;
    struct rueda_nccl_chore *chore; /* at work, or NULL */
    struct rueda_nccl_talk talk;
    struct rueda_nccl_id id;
    void *comm;       /* NULL: there is none */
    void *event;      /* behind the last launch; NULL until the first */
    int64_t since_ns; /* when NCCL began to make it */
    struct rueda_nccl_turn turn;
    struct rueda_text words; /* why it cannot */
};

struct rueda_nccl {
    const struct rueda_config *config;
    struct rueda_nccl_lib lib;
    bool is_tried; /* loading it; with this result: */
    rueda_status status;
    struct rueda_text words;
    void *stream; /* of all launches, so that they run in the order in which
                     they were made; NULL until the first */
    struct rueda_nccl_comm *comms;
    struct rueda_nccl_stamp clock; /* the last point that is taken */
    int running;                   /* launches that have not ended */
};

static inline struct rueda_cuda *
rueda_nccl_cuda(const struct rueda_nccl_comm *self)
{
    return rueda_cuda_of(self->place->device);
}

/* ---- Telling each other (nccl_talk.c) --------------------------------- */

/* Already listen to the member before me, whose entry is heard when
 * talk->heard.status is RUEDA_OK. talk_begin() follows. */
void rueda_nccl_talk_listen(struct rueda_nccl_talk *talk,
                            struct rueda_task *task, size_t bytes);

/* Begin a round; `mine` is copied. The one before is over. */
void rueda_nccl_talk_begin(struct rueda_nccl_talk *talk, const void *mine,
                           size_t bytes);

/* Get on. RUEDA_OK: all entries are there. */
rueda_status rueda_nccl_talk_turn(struct rueda_nccl_talk *talk,
                                  struct rueda_task *task);

/* What a member has said. */
static inline const void *
rueda_nccl_talk_entry(const struct rueda_nccl_talk *talk,
                      const struct rueda_mesh *mesh, int member)
{
    const int before = (mesh->rank - member + mesh->size) % mesh->size;

    return talk->entries + (size_t)before * talk->bytes;
}

/* ---- The communicator (nccl_comm.c) ----------------------------------- */

/* That of a place; NULL: there is none yet. */
struct rueda_nccl_comm *rueda_nccl_find(const struct rueda_place *place);

/* The same, made if need be. NULL: no memory. */
struct rueda_nccl_comm *rueda_nccl_need(struct rueda_task *task);

/* Get on with making it. RUEDA_OK: the step is READY or REFUSED. */
rueda_status rueda_nccl_comm_turn(struct rueda_nccl_comm *self,
                                  struct rueda_task *task);

/* A failure in self->words: logged, and kept for tell(). */
rueda_status rueda_nccl_fail(struct rueda_nccl_comm *self);

/* End its communicator, and what is at work for it. */
void rueda_nccl_stop(struct rueda_nccl_comm *self, bool is_gentle);

/* ---- The order of launches (nccl_turn.c) ------------------------------ */

/* A task wants to launch, or to make its communicator. */
void rueda_nccl_turn_begin(struct rueda_nccl_comm *self);

/* RUEDA_OK: it may. Every other launch waits until rueda_nccl_turn_end(). */
rueda_status rueda_nccl_turn_wait(struct rueda_nccl_comm *self,
                                  struct rueda_task *task);
void rueda_nccl_turn_end(struct rueda_nccl_comm *self);

#endif /* RUEDA_DEVICE_CUDA_NCCL_STATE_H */
