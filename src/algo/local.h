/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rank does with its own data, without any message: calls of the device
 * in the task's row of work, whose status says whether they are done.
 */
#ifndef RUEDA_ALGO_LOCAL_H
#define RUEDA_ALGO_LOCAL_H

#include "algo/algo.h"

/* The whole operation for a process set of one rank. */
void rueda_local_alone(struct rueda_task *task);

/* recv = prescale * send; a copy if prescale is 1, nothing if they are one. */
void rueda_local_take(struct rueda_task *task, size_t count);

/* Multiply `count` elements of recv from `at` on by postscale. */
void rueda_local_postscale(struct rueda_task *task, size_t at, size_t count);

/* dst = own (+) arrived, in the task's arithmetic without its prescale;
 * postscale instead of the task's. dst may be either of the two. */
void rueda_local_add(struct rueda_task *task, void *dst, const void *own,
                     const void *arrived, size_t count, double postscale);

/* memmove() for which NULL is allowed where there is nothing to move. */
static inline void rueda_local_move(struct rueda_task *task, void *dst,
                                    const void *src, size_t bytes)
{
    rueda_device_copy(task->place->device, &task->work, dst, src, bytes);
}

/* Pointers to element `at` of a buffer. */
static inline char *rueda_local_at(void *buf, const struct rueda_task *task,
                                   size_t at)
{
    return at == 0 ? (char *)buf : (char *)buf + at * task->coll.elem_bytes;
}

static inline const char *
rueda_local_const_at(const void *buf, const struct rueda_task *task, size_t at)
{
    return at == 0 ? (const char *)buf
                   : (const char *)buf + at * task->coll.elem_bytes;
}

#endif /* RUEDA_ALGO_LOCAL_H */
