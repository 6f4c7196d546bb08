/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staged through the memory of the host. A vector of an allreduce or a
 * broadcast goes through in chunks, each in three steps that overlap with those
 * of its neighbours:
 *
 *      device to host   0   1   2   3
 *      on the host          0   1   2   3
 *      host to device           0   1   2   3
 *
 * Copies run on rows of work of their own, one for each direction and buffer.
 * Tasks on the host run one after another, in the same order on all ranks, so
 * they share the tag of this one. What has pieces (allgather, alltoall,
 * reduce-scatter) and Adasum, whose factors depend on the whole vector, go
 * through as one chunk.
 *
 * A short vector is not packed on the device, but copied part by part.
 *
 * How a vector is cut depends on its size alone. So a rank whose memory is that
 * of the host, because it has joined, may run this beside others.
 */
#include "algo/staged.h"

#include <stdlib.h>
#include <string.h>

#include "algo/chunk.h"

#define LINE ((size_t)64)

struct staged {
    bool is_whole;
    bool is_in_parts;
    bool is_running; /* the task on the host */
    size_t piece;    /* elements of a chunk */
    size_t chunks;
    size_t begun;      /* chunks whose first copy was started, */
    size_t ran;        /* that were through on the host, */
    size_t done;       /* and are back */
    size_t send_bytes; /* of what is not cut */
    size_t recv_bytes;
    char *recv; /* on the host, of what is not cut */
    struct rueda_work in[RUEDA_STAGED_DEPTH];
    struct rueda_work out[RUEDA_STAGED_DEPTH];
};
_Static_assert(sizeof(struct staged) <= RUEDA_TASK_STATE_BYTES, "state");

static struct staged *state_of(struct rueda_task *task)
{
    return (struct staged *)task->state;
}

/* ---- Memory of the host ----------------------------------------------- */

struct rueda_staging *rueda_staging_new(struct rueda_place *host,
                                        const struct rueda_select *select,
                                        const struct rueda_device *device)
{
    struct rueda_staging *staging =
        aligned_alloc(_Alignof(struct rueda_staging), sizeof(*staging));

    if (staging == NULL)
        return NULL;
    memset(staging, 0, sizeof(*staging));
    staging->host = host;
    staging->select = select;
    staging->device = device;
    return staging;
}

void rueda_staging_free(struct rueda_staging *staging)
{
    if (staging == NULL)
        return;
    rueda_mapped_free(staging->mapped);
    for (int i = 0; i < RUEDA_STAGED_DEPTH; i++)
        staging->device->ops->free_host(staging->device, staging->buffers[i]);
    staging->device->ops->free_host(staging->device, staging->whole);
    free(staging);
}

static char *buffer_of(struct rueda_staging *staging, size_t chunk)
{
    char **buffer = &staging->buffers[chunk % RUEDA_STAGED_DEPTH];

    if (*buffer == NULL)
        *buffer = staging->device->ops->alloc_host(staging->device,
                                                   RUEDA_STAGED_CHUNK);
    return *buffer;
}

static bool need_whole(struct rueda_staging *staging, size_t bytes)
{
    const struct rueda_device *device = staging->device;

    if (bytes <= staging->whole_bytes)
        return true;
    device->ops->free_host(device, staging->whole);
    staging->whole = device->ops->alloc_host(device, bytes);
    staging->whole_bytes = staging->whole != NULL ? bytes : 0;
    return staging->whole != NULL;
}

rueda_status rueda_task_hand_on(struct rueda_task *task)
{
    /* If it was in parts, then it is packed by now. */
    task->coll.parts = NULL;
    task->coll.part_count = 0;
    task->algo = rueda_select_choose(task->place->staging->select, task->place,
                                     &task->coll);
    return task->algo->post(task);
}

/* ---- What goes through ------------------------------------------------ */

static bool is_cut(const struct rueda_coll *coll)
{
    return (coll->kind == RUEDA_ALLREDUCE &&
            coll->arith.reduction != RUEDA_ADASUM) ||
           coll->kind == RUEDA_BROADCAST;
}

static bool gives(const struct rueda_task *task)
{
    return task->coll.kind != RUEDA_BROADCAST ||
           task->coll.root == task->place->mesh->rank;
}

/* The root of a broadcast in place has its result already. */
static bool takes(const struct rueda_task *task)
{
    return task->coll.kind != RUEDA_BROADCAST || !gives(task) ||
           task->coll.send != task->coll.recv;
}

static size_t total(const struct rueda_task *task, const size_t *counts)
{
    return rueda_chunk_total(counts, task->coll.count, task->place->mesh->size);
}

/* Elements that this rank gives and gets, of what is not cut. */
static void measure(const struct rueda_task *task, size_t *out_send,
                    size_t *out_recv)
{
    const struct rueda_coll *coll = &task->coll;
    const int me = task->place->mesh->rank;

    *out_send = coll->count;
    *out_recv = coll->count;
    switch (coll->kind) {
    case RUEDA_ALLGATHER:
        *out_recv = total(task, coll->recv_counts);
        break;
    case RUEDA_ALLTOALL:
        *out_send = total(task, coll->send_counts);
        *out_recv = total(task, coll->recv_counts);
        break;
    case RUEDA_REDUCE_SCATTER:
        *out_send = total(task, coll->recv_counts);
        if (coll->recv_counts != NULL)
            *out_recv = coll->recv_counts[me];
        break;
    default:
        break;
    }
}

/* In place on the host, if it is a vector. */
static rueda_status plan_whole(struct rueda_task *task)
{
    struct rueda_staging *staging = task->place->staging;
    struct staged *self = state_of(task);
    const bool is_vector = task->coll.kind == RUEDA_ALLREDUCE;
    size_t room;

    measure(task, &self->send_bytes, &self->recv_bytes);
    self->send_bytes *= task->coll.elem_bytes;
    self->recv_bytes *= task->coll.elem_bytes;
    room = (self->send_bytes + LINE - 1) / LINE * LINE;
    if (!need_whole(staging, (is_vector ? 0 : self->recv_bytes) + room + 1))
        return RUEDA_ERR_NOMEM;
    self->is_whole = true;
    self->chunks = 1;
    self->recv = is_vector ? staging->whole : staging->whole + room;
    return RUEDA_OK;
}

static void plan_chunks(struct rueda_task *task)
{
    struct staged *self = state_of(task);

    self->piece = RUEDA_STAGED_CHUNK / task->coll.elem_bytes;
    self->chunks = rueda_chunk_pieces(task->coll.count, self->piece);
}

static struct rueda_range chunk_of(const struct rueda_task *task,
                                   const struct staged *self, size_t chunk)
{
    const struct rueda_range all = {0, task->coll.count};

    return rueda_chunk_piece(all, self->piece, chunk);
}

/* ---- Parts ------------------------------------------------------------ */

static bool takes_parts(const struct rueda_place *place,
                        const struct rueda_coll *coll)
{
    (void)place;
    return rueda_staged_is_short(coll);
}

/* Bytes that are in no part take part in the arithmetic, too. */
static void fetch_parts(struct rueda_task *task, struct rueda_work *work,
                        char *buffer)
{
    const struct rueda_device *device = task->place->staging->device;
    const struct rueda_device *host = task->place->staging->host->device;
    const struct rueda_coll *coll = &task->coll;
    const struct rueda_part zeros = {.bytes = coll->count * coll->elem_bytes};
    struct rueda_work now = {.status = RUEDA_OK}; /* the host's own is done */

    rueda_device_gather(host, &now, buffer, &zeros, 1);
    for (int i = 0; i < coll->part_count; i++)
        if (coll->parts[i].send != NULL)
            rueda_device_copy(device, work, buffer + coll->parts[i].at,
                              coll->parts[i].send, coll->parts[i].bytes);
}

static void write_parts_back(struct rueda_task *task, struct rueda_work *work,
                             const char *buffer)
{
    const struct rueda_device *device = task->place->staging->device;
    const struct rueda_coll *coll = &task->coll;

    for (int i = 0; i < coll->part_count; i++)
        if (coll->parts[i].recv != NULL)
            rueda_device_copy(device, work, coll->parts[i].recv,
                              buffer + coll->parts[i].at, coll->parts[i].bytes);
    task->coll.part_count = 0; /* they have their results */
}

/* ---- Steps ------------------------------------------------------------ */

static rueda_status fetch(struct rueda_task *task)
{
    struct rueda_staging *staging = task->place->staging;
    struct staged *self = state_of(task);
    const size_t elem_bytes = task->coll.elem_bytes;
    struct rueda_work *work = &self->in[self->begun % RUEDA_STAGED_DEPTH];
    const char *send = task->coll.send;
    struct rueda_range range;
    char *buffer;

    *work = (struct rueda_work){.status = RUEDA_OK};
    if (self->is_whole) {
        rueda_device_copy(staging->device, work, staging->whole, send,
                          self->send_bytes);
    } else {
        buffer = buffer_of(staging, self->begun);
        if (buffer == NULL)
            return RUEDA_ERR_NOMEM;
        range = chunk_of(task, self, self->begun);
        if (self->is_in_parts)
            fetch_parts(task, work, buffer);
        else if (gives(task))
            rueda_device_copy(staging->device, work, buffer,
                              send + range.at * elem_bytes,
                              range.count * elem_bytes);
    }
    self->begun++;
    return work->status < 0 ? work->status : RUEDA_OK;
}

static rueda_status write_back(struct rueda_task *task)
{
    struct rueda_staging *staging = task->place->staging;
    struct staged *self = state_of(task);
    const size_t elem_bytes = task->coll.elem_bytes;
    struct rueda_work *work = &self->out[self->ran % RUEDA_STAGED_DEPTH];
    struct rueda_range range;

    *work = (struct rueda_work){.status = RUEDA_OK};
    if (self->is_whole) {
        rueda_device_copy(staging->device, work, task->coll.recv, self->recv,
                          self->recv_bytes);
    } else if (self->is_in_parts) {
        write_parts_back(task, work, buffer_of(staging, self->ran));
    } else if (takes(task)) {
        range = chunk_of(task, self, self->ran);
        rueda_device_copy(staging->device, work,
                          (char *)task->coll.recv + range.at * elem_bytes,
                          buffer_of(staging, self->ran),
                          range.count * elem_bytes);
    }
    self->ran++;
    return work->status < 0 ? work->status : RUEDA_OK;
}

static rueda_status start_inner(struct rueda_task *task)
{
    struct rueda_staging *staging = task->place->staging;
    struct staged *self = state_of(task);
    struct rueda_task *inner = &staging->task;

    inner->place = staging->host;
    inner->tag = task->tag;
    inner->moves = 0;
    inner->coll = task->coll;
    inner->coll.parts = NULL;
    inner->coll.part_count = 0;
    if (self->is_whole) {
        inner->coll.send = staging->whole;
        inner->coll.recv = self->recv;
    } else {
        inner->coll.recv = buffer_of(staging, self->ran);
        inner->coll.send = inner->coll.recv;
        inner->coll.count = chunk_of(task, self, self->ran).count;
    }
    inner->algo =
        rueda_select_choose(staging->select, staging->host, &inner->coll);
    self->is_running = true;
    return rueda_task_post(inner);
}

static void finish_inner(struct rueda_task *task)
{
    struct rueda_task *inner = &task->place->staging->task;

    if (state_of(task)->is_running && inner->algo->finish != NULL)
        inner->algo->finish(inner);
    state_of(task)->is_running = false;
}

/* The task on the host, if there is one or can be. RUEDA_OK: a chunk is
 * through. */
static rueda_status run(struct rueda_task *task)
{
    struct rueda_staging *staging = task->place->staging;
    struct staged *self = state_of(task);
    const uint64_t moves = staging->task.moves;
    rueda_status status;

    if (self->is_running) {
        status = rueda_task_progress(&staging->task);
        task->moves += staging->task.moves - moves;
    } else {
        if (self->ran == self->begun)
            return RUEDA_IN_PROGRESS;
        status = rueda_device_poll(staging->device,
                                   &self->in[self->ran % RUEDA_STAGED_DEPTH]);
        if (status == RUEDA_OK)
            status = start_inner(task);
    }
    if (status != RUEDA_OK)
        return status;
    finish_inner(task);
    return write_back(task);
}

/* The oldest chunk that is on its way back. RUEDA_OK: it is there. */
static rueda_status settle(struct rueda_task *task)
{
    struct staged *self = state_of(task);
    rueda_status status;

    if (self->done == self->ran)
        return RUEDA_IN_PROGRESS;
    status = rueda_device_poll(task->place->staging->device,
                               &self->out[self->done % RUEDA_STAGED_DEPTH]);
    if (status == RUEDA_OK)
        self->done++;
    return status;
}

/* Does the device still work for this task? It rings no bell when it is done.
 */
static bool is_copying(const struct staged *self)
{
    for (int i = 0; i < RUEDA_STAGED_DEPTH; i++)
        if (self->in[i].status == RUEDA_IN_PROGRESS ||
            self->out[i].status == RUEDA_IN_PROGRESS)
            return true;
    return false;
}

static rueda_status staged_progress(struct rueda_task *task)
{
    struct staged *self = state_of(task);
    bool has_moved = true;

    while (has_moved && self->done < self->chunks) {
        rueda_status status = RUEDA_OK;

        has_moved = false;
        while (self->begun < self->chunks &&
               self->begun < self->done + RUEDA_STAGED_DEPTH &&
               status == RUEDA_OK) {
            status = fetch(task);
            has_moved = true;
        }
        if (status == RUEDA_OK) {
            status = run(task);
            has_moved = has_moved || status == RUEDA_OK;
        }
        if (status >= 0) {
            status = settle(task);
            has_moved = has_moved || status == RUEDA_OK;
        }
        if (status < 0)
            return status;
        task->moves += has_moved;
    }
    task->moves += is_copying(self);
    return self->done == self->chunks ? RUEDA_OK : RUEDA_IN_PROGRESS;
}

static rueda_status staged_post(struct rueda_task *task)
{
    rueda_status status = RUEDA_OK;

    memset(state_of(task), 0, sizeof(struct staged));
    state_of(task)->is_in_parts =
        task->coll.parts != NULL && takes_parts(task->place, &task->coll);
    if (is_cut(&task->coll))
        plan_chunks(task);
    else
        status = plan_whole(task);
    return status == RUEDA_OK ? staged_progress(task) : status;
}

/* After a failure, the device may still be at work on memory that is going to
 * be freed. */
static void staged_finish(struct rueda_task *task)
{
    struct staged *self = state_of(task);

    finish_inner(task);
    for (int i = 0; i < RUEDA_STAGED_DEPTH; i++) {
        rueda_device_settle(task->place->staging->device, &self->in[i]);
        rueda_device_settle(task->place->staging->device, &self->out[i]);
    }
}

const struct rueda_algo rueda_algo_staged = {
    .name = "staged",
    .about = "by way of the host's memory, in chunks that overlap",
    .kinds = 1u << RUEDA_ALLREDUCE | 1u << RUEDA_ALLGATHER |
             1u << RUEDA_BROADCAST | 1u << RUEDA_ALLTOALL |
             1u << RUEDA_REDUCE_SCATTER | 1u << RUEDA_BARRIER,
    .memory = RUEDA_MEMKIND_ANY,
    .takes_parts = takes_parts,
    .post = staged_post,
    .progress = staged_progress,
    .finish = staged_finish,
};
