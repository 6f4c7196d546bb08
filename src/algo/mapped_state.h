/* SPDX-License-Identifier: Apache-2.0 */
/* What mapped.c and mapped_work.c share. */
#ifndef RUEDA_ALGO_MAPPED_STATE_H
#define RUEDA_ALGO_MAPPED_STATE_H

#include "algo/mapped.h"

typedef enum rueda_mapped_answer {
    RUEDA_MAPPED_CAN,
    RUEDA_MAPPED_WHOLE,    /* but not in parts */
    RUEDA_MAPPED_NOT_THIS, /* these buffers cannot be mapped */
    RUEDA_MAPPED_NEVER,
} rueda_mapped_answer;

/* Where a part of a vector is, or the whole. */
struct rueda_mapped_part {
    struct rueda_mapped_buffer send;
    struct rueda_mapped_buffer recv;
};

/* What a rank tells the others of a task; those of parts follow. */
struct rueda_mapped_notice {
    uint64_t answer;
    uint64_t ready_ns;  /* when its device had written the buffers */
    uint64_t device[2]; /* where they are */
    struct rueda_mapped_part whole;
    struct rueda_mapped_changes changes;
    struct rueda_mapped_part parts[];
};

/* What a place keeps from one task to the next. */
struct rueda_mapped {
    bool is_off;      /* on all ranks, like the next */
    bool is_together; /* all are on one accelerator */
    struct rueda_mapped_table table;
    const void **src;        /* [size] */
    void **dst;              /* [size] */
    size_t part_room;        /* of the following: */
    struct rueda_part *list; /* [size * part_room], at least size */
    struct rueda_mapped_notice *mine;
    char *all;    /* [size] notices */
    int64_t vote; /* 1: I have mapped all, 0: I could not */
};

/* The state of a task. */
struct rueda_mapped_task {
    enum {
        RUEDA_MAPPED_TELL,
        RUEDA_MAPPED_VOTE,
        RUEDA_MAPPED_PACK,
        RUEDA_MAPPED_PACKED,
        RUEDA_MAPPED_WORK,
        RUEDA_MAPPED_MIDDLE,
        RUEDA_MAPPED_GIVE,
        RUEDA_MAPPED_END,
    } stage;
    bool is_running;   /* a task on the host, */
    rueda_status host; /* and how far it is */
    bool is_in_parts;
    bool is_staged; /* handed over once it is packed */
    int server;     /* the rank that does the work of all, or -1 */
    size_t stride;  /* of notices */
};

static inline struct rueda_mapped_task *
rueda_mapped_task_of(struct rueda_task *task)
{
    return (struct rueda_mapped_task *)task->state;
}

static inline const struct rueda_mapped_notice *
rueda_mapped_notice_of(const struct rueda_mapped *kept, size_t stride,
                       int member)
{
    return (const struct rueda_mapped_notice *)(kept->all +
                                                (size_t)member * stride);
}

/* Bytes of a member's buffer that others read. */
size_t rueda_mapped_bytes(const struct rueda_task *task, int member);

/* Start the work of this rank, which may be none; and, of a vector in parts,
 * bring the result to them. False: a rank names a buffer that it has not shown.
 */
bool rueda_mapped_work(struct rueda_task *task, struct rueda_mapped *kept);
bool rueda_mapped_give(struct rueda_task *task, struct rueda_mapped *kept);

#endif /* RUEDA_ALGO_MAPPED_STATE_H */
