/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task of NCCL: inputs are scaled, if need be; the task waits for its turn
 * (nccl_turn.c); NCCL is given the work, in one launch; the event behind it
 * comes; results are scaled. NCCL's calls return before the work is done, and
 * its communicators do not block.
 */
#define RUEDA_LOG_TAG "device"

#include "device/cuda/nccl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/cuda/nccl_state.h"
#include "os/clock.h"

/* How long after the loss of a peer, or an error that may come from it, the
 * engine has to find out which rank is gone, and the work to end all the same:
 * the peer may have done its part before. */
#define GRACE_NS ((int64_t)3000000000)

/* When the log says that work does not end. */
#define SLOW_NS ((int64_t)60000000000)

/* How long a launch is watched without a pause. Later a rank may sleep up to a
 * millisecond between two looks, which is little then. */
#define AWAKE_NS ((int64_t)50000000)

/* In how many turns the peers' connections are looked at. */
#define LOOK_EVERY 256

struct nccl_task {
    struct rueda_nccl_place *place;
    enum {
        JOIN,
        PRESCALE,
        TURN,
        LAUNCH,
        ENQUEUE,
        RUN,
        POSTSCALE,
        DONE,
    } step;
    int64_t launched_ns;
    int64_t trouble_ns; /* 0: there is none */
    unsigned turns;
    bool is_told;    /* that it is slow */
    bool is_running; /* and counted as such */
};
_Static_assert(sizeof(struct nccl_task) <= RUEDA_TASK_STATE_BYTES, "state");

static struct nccl_task *state_of(struct rueda_task *task)
{
    return (struct nccl_task *)task->state;
}

/* ---- What it can do --------------------------------------------------- */

static bool has_arithmetic(const struct rueda_arith *arith)
{
    return rueda_nccl_dtype(arith->dtype) >= 0 &&
           rueda_nccl_op(arith->reduction) >= 0;
}

/* NCCL's connections between hosts are neither encrypted nor authenticated: it
 * carries what the job's decision would leave bare, too (SECURITY.md). */
static bool may_be_bare(const struct rueda_place *place,
                        const struct rueda_coll *coll)
{
    const struct rueda_config *config =
        rueda_cuda_of(place->device)->nccl->config;

    return !place->is_on_hosts || (config->encrypt == RUEDA_ENCRYPT_NEVER &&
                                   rueda_dtype_is_float(coll->arith.dtype));
}

static bool nccl_can_run(const struct rueda_place *place,
                         const struct rueda_coll *coll)
{
    const struct rueda_nccl_place *self;

    if (place->mesh->size < 2 || place->staging == NULL ||
        coll->is_short_handed || !may_be_bare(place, coll))
        return false;
    if ((coll->kind == RUEDA_ALLREDUCE || coll->kind == RUEDA_REDUCE_SCATTER) &&
        !has_arithmetic(&coll->arith))
        return false;
    /* Inputs are larger than any memory that may be written. */
    if (coll->kind == RUEDA_REDUCE_SCATTER && coll->arith.prescale != 1.0)
        return false;
    self = rueda_nccl_find(place);
    return self == NULL || self->step != RUEDA_NCCL_REFUSED;
}

/* One tensor alone needs no packing: what it held is lost if NCCL fails. */
static bool nccl_takes_parts(const struct rueda_place *place,
                             const struct rueda_coll *coll)
{
    const struct rueda_nccl_place *self = rueda_nccl_find(place);

    return coll->part_count == 1 && self != NULL &&
           self->step == RUEDA_NCCL_READY;
}

static void take_part(struct rueda_coll *coll)
{
    const struct rueda_part *part = coll->parts;

    if (part->send != NULL)
        coll->send = part->send;
    if (part->recv != NULL)
        coll->recv = part->recv;
    coll->count = part->bytes / coll->elem_bytes;
    coll->part_count = 0;
}

/* ---- The launch ------------------------------------------------------- */

struct launch {
    const struct rueda_nccl_lib *lib;
    const struct rueda_coll *coll;
    int size;
    int me;
    void *comm;
    void *stream;
    rueda_nccl_result result; /* the first that is bad */
};

static void note(struct launch *launch, rueda_nccl_result result)
{
    if (launch->result == RUEDA_NCCL_SUCCESS ||
        launch->result == RUEDA_NCCL_IN_PROGRESS)
        launch->result = result;
}

/* Elements of a member's piece. */
static size_t piece(const struct launch *launch, const size_t *counts,
                    int member)
{
    return counts != NULL ? counts[member] : launch->coll->count;
}

static bool are_equal(const struct launch *launch, const size_t *counts)
{
    for (int i = 1; i < launch->size; i++)
        if (piece(launch, counts, i) != piece(launch, counts, 0))
            return false;
    return true;
}

static void launch_allgather(struct launch *launch)
{
    const struct rueda_coll *coll = launch->coll;
    char *recv = coll->recv;

    if (are_equal(launch, coll->recv_counts)) {
        note(launch, launch->lib->allgather(
                         coll->send, recv,
                         piece(launch, coll->recv_counts, 0) * coll->elem_bytes,
                         RUEDA_NCCL_BYTE, launch->comm, launch->stream));
        return;
    }
    for (int i = 0; i < launch->size; i++) {
        const size_t bytes =
            piece(launch, coll->recv_counts, i) * coll->elem_bytes;

        if (bytes > 0)
            note(launch, launch->lib->broadcast(
                             i == launch->me ? coll->send : recv, recv, bytes,
                             RUEDA_NCCL_BYTE, i, launch->comm, launch->stream));
        recv += bytes;
    }
}

static void launch_alltoall(struct launch *launch)
{
    const struct rueda_coll *coll = launch->coll;
    const char *send = coll->send;
    char *recv = coll->recv;

    for (int i = 0; i < launch->size; i++) {
        const size_t out =
            piece(launch, coll->send_counts, i) * coll->elem_bytes;
        const size_t in =
            piece(launch, coll->recv_counts, i) * coll->elem_bytes;

        if (out > 0)
            note(launch, launch->lib->send(send, out, RUEDA_NCCL_BYTE, i,
                                           launch->comm, launch->stream));
        if (in > 0)
            note(launch, launch->lib->recv(recv, in, RUEDA_NCCL_BYTE, i,
                                           launch->comm, launch->stream));
        send += out;
        recv += in;
    }
}

static void launch_reduce_scatter(struct launch *launch)
{
    const struct rueda_coll *coll = launch->coll;
    const int dtype = rueda_nccl_dtype(coll->arith.dtype);
    const int op = rueda_nccl_op(coll->arith.reduction);
    const char *send = coll->send;

    if (are_equal(launch, coll->recv_counts)) {
        note(launch, launch->lib->reduce_scatter(
                         send, coll->recv, piece(launch, coll->recv_counts, 0),
                         dtype, op, launch->comm, launch->stream));
        return;
    }
    for (int i = 0; i < launch->size; i++) {
        const size_t count = piece(launch, coll->recv_counts, i);

        if (count > 0)
            note(launch, launch->lib->reduce(send, coll->recv, count, dtype, op,
                                             i, launch->comm, launch->stream));
        send += count * coll->elem_bytes;
    }
}

static void launch_kind(struct launch *launch, const void *send)
{
    const struct rueda_coll *coll = launch->coll;

    switch (coll->kind) {
    case RUEDA_ALLREDUCE:
        note(launch,
             launch->lib->allreduce(send, coll->recv, coll->count,
                                    rueda_nccl_dtype(coll->arith.dtype),
                                    rueda_nccl_op(coll->arith.reduction),
                                    launch->comm, launch->stream));
        break;
    case RUEDA_BROADCAST:
        note(launch,
             launch->lib->broadcast(
                 coll->root == launch->me ? coll->send : coll->recv, coll->recv,
                 coll->count * coll->elem_bytes, RUEDA_NCCL_BYTE, coll->root,
                 launch->comm, launch->stream));
        break;
    case RUEDA_ALLGATHER:
        launch_allgather(launch);
        break;
    case RUEDA_ALLTOALL:
        launch_alltoall(launch);
        break;
    case RUEDA_REDUCE_SCATTER:
        launch_reduce_scatter(launch);
        break;
    default:
        assert(!"a kind that it does not have");
    }
}

static bool is_bad(rueda_nccl_result result)
{
    return result != RUEDA_NCCL_SUCCESS && result != RUEDA_NCCL_IN_PROGRESS;
}

static rueda_status fail(struct rueda_task *task, rueda_nccl_result result,
                         const char *what)
{
    struct rueda_nccl_place *self = state_of(task)->place;

    self->words = (struct rueda_text){{0}};
    rueda_nccl_explain(&rueda_nccl_cuda(self)->nccl->lib, self->comm, result,
                       what, &self->words);
    return rueda_nccl_fail(self);
}

/* All in one group, so that NCCL makes one launch of it. */
static rueda_status begin_launch(struct rueda_task *task)
{
    const struct rueda_device *device = task->place->device;
    struct nccl_task *self = state_of(task);
    struct rueda_nccl *nccl = rueda_nccl_cuda(self->place)->nccl;
    const bool is_scaled = task->coll.arith.prescale != 1.0;
    struct launch launch = {
        .lib = &nccl->lib,
        .coll = &task->coll,
        .size = task->place->mesh->size,
        .me = task->place->mesh->rank,
        .comm = self->place->comm,
    };
    struct rueda_cuda_call call;
    rueda_status status;

    rueda_cuda_begin(device, NULL, &call);
    if (call.result == RUEDA_CUDA_SUCCESS && nccl->stream == NULL)
        call.result = call.cuda->driver.stream_create(&nccl->stream,
                                                      RUEDA_CUDA_NON_BLOCKING);
    if (call.result == RUEDA_CUDA_SUCCESS) {
        launch.stream = nccl->stream;
        note(&launch, nccl->lib.group_start());
        launch_kind(&launch, is_scaled ? task->coll.recv : task->coll.send);
        note(&launch, nccl->lib.group_end());
    }
    status = rueda_cuda_end(&call, call.result, "cuStreamCreate");
    self->is_running = true;
    nccl->running++;
    if (status == RUEDA_OK && is_bad(launch.result))
        status = fail(task, launch.result, rueda_kind_str(task->coll.kind));
    self->launched_ns = rueda_clock_ns();
    return status;
}

/* ---- While it runs ---------------------------------------------------- */

static bool has_lost_peer(const struct rueda_task *task)
{
    for (int i = 0; i < task->place->mesh->size; i++)
        if (i != task->place->mesh->rank &&
            rueda_mesh_is_lost(task->place->mesh, i))
            return true;
    return false;
}

static void tell_if_slow(struct rueda_task *task, int64_t now_ns)
{
    struct nccl_task *self = state_of(task);

    if (self->is_told || now_ns - self->launched_ns < SLOW_NS)
        return;
    self->is_told = true;
    log_warn("NCCL has been at one %s of %zu bytes for %lld s; a rank may hang "
             "in its program, and NCCL_DEBUG=INFO tells what NCCL does",
             rueda_kind_str(task->coll.kind),
             task->coll.count * task->coll.elem_bytes,
             (long long)(SLOW_NS / 1000000000));
}

/* RUEDA_IN_PROGRESS: all is well, or that is not known yet. *out_result is
 * NCCL's state. */
static rueda_status look_for_trouble(struct rueda_task *task,
                                     rueda_nccl_result *out_result)
{
    struct nccl_task *self = state_of(task);
    const struct rueda_nccl_lib *lib = &rueda_nccl_cuda(self->place)->nccl->lib;
    rueda_nccl_result result = RUEDA_NCCL_SUCCESS;
    int64_t now_ns;

    if (lib->comm_error(self->place->comm, &result) != RUEDA_NCCL_SUCCESS)
        result = RUEDA_NCCL_INTERNAL_ERROR;
    *out_result = result;
    if (!is_bad(result) && self->trouble_ns == 0 &&
        self->turns++ % LOOK_EVERY != LOOK_EVERY - 1)
        return RUEDA_IN_PROGRESS;
    now_ns = rueda_clock_ns();
    tell_if_slow(task, now_ns);
    if (is_bad(result) && result != RUEDA_NCCL_REMOTE_ERROR &&
        result != RUEDA_NCCL_SYSTEM_ERROR)
        return fail(task, result, rueda_kind_str(task->coll.kind));
    if (!is_bad(result) && !has_lost_peer(task))
        return RUEDA_IN_PROGRESS;
    if (self->trouble_ns == 0)
        self->trouble_ns = now_ns;
    if (now_ns - self->trouble_ns < GRACE_NS)
        return RUEDA_IN_PROGRESS;
    return has_lost_peer(task)
               ? RUEDA_ERR_PEER_LOST
               : fail(task, result, rueda_kind_str(task->coll.kind));
}

/* Until NCCL has put the launch on the stream, which it may do by a thread of
 * its own when a connection is new. Then others may launch. */
static rueda_status enqueue(struct rueda_task *task)
{
    struct nccl_task *self = state_of(task);
    rueda_nccl_result result;
    rueda_status status = look_for_trouble(task, &result);
    struct rueda_cuda_call call;

    if (status < 0 || result != RUEDA_NCCL_SUCCESS)
        return status;
    rueda_cuda_begin(task->place->device, NULL, &call);
    if (call.result == RUEDA_CUDA_SUCCESS && self->place->event == NULL)
        call.result = call.cuda->driver.event_create(&self->place->event,
                                                     RUEDA_CUDA_NO_TIMING);
    if (call.result == RUEDA_CUDA_SUCCESS)
        call.result = call.cuda->driver.event_record(self->place->event,
                                                     call.cuda->nccl->stream);
    status = rueda_cuda_end(&call, call.result, "cuEventRecord");
    if (status == RUEDA_OK)
        rueda_nccl_turn_end(self->place);
    return status;
}

static void count_out(struct nccl_task *self)
{
    rueda_nccl_cuda(self->place)->nccl->running -= self->is_running;
    self->is_running = false;
}

static bool has_trouble(const struct nccl_task *self)
{
    rueda_nccl_result result = RUEDA_NCCL_SUCCESS;

    return rueda_nccl_cuda(self->place)
                   ->nccl->lib.comm_error(self->place->comm, &result) !=
               RUEDA_NCCL_SUCCESS ||
           is_bad(result);
}

static rueda_status run(struct rueda_task *task)
{
    struct nccl_task *self = state_of(task);
    rueda_nccl_result result;
    struct rueda_cuda_call call;
    rueda_status status;

    rueda_cuda_begin(task->place->device, NULL, &call);
    if (call.result == RUEDA_CUDA_SUCCESS)
        call.result = call.cuda->driver.event_query(self->place->event);
    status = rueda_cuda_end(&call, call.result, "a kernel of NCCL");
    if (status < 0)
        return status;
    /* A kernel that an error ended has ended, too. */
    if (status == RUEDA_OK && !has_trouble(self)) {
        count_out(self);
        return RUEDA_OK;
    }
    return look_for_trouble(task, &result);
}

/* ---- Steps ------------------------------------------------------------ */

static void prescale(struct rueda_task *task)
{
    const struct rueda_coll *coll = &task->coll;

    if (coll->kind == RUEDA_ALLREDUCE && coll->arith.prescale != 1.0)
        rueda_device_scale(task->place->device, &task->work, coll->arith.dtype,
                           coll->recv, coll->send, coll->count,
                           coll->arith.prescale);
}

static void postscale(struct rueda_task *task)
{
    const struct rueda_coll *coll = &task->coll;
    const size_t count =
        coll->kind == RUEDA_REDUCE_SCATTER && coll->recv_counts != NULL
            ? coll->recv_counts[task->place->mesh->rank]
            : coll->count;

    if ((coll->kind == RUEDA_ALLREDUCE || coll->kind == RUEDA_REDUCE_SCATTER) &&
        coll->arith.postscale != 1.0 && count > 0)
        rueda_device_scale(task->place->device, &task->work, coll->arith.dtype,
                           coll->recv, coll->recv, count,
                           coll->arith.postscale);
}

static rueda_status take_step(struct rueda_task *task)
{
    struct nccl_task *self = state_of(task);

    switch (self->step) {
    case JOIN:
        return rueda_nccl_comm_turn(self->place, task);
    case PRESCALE:
        prescale(task);
        return task->work.status;
    case TURN:
        if (self->place->turn.step == RUEDA_NCCL_OUT)
            rueda_nccl_turn_begin(self->place);
        return rueda_nccl_turn_wait(self->place, task);
    case LAUNCH:
        return begin_launch(task);
    case ENQUEUE:
        return enqueue(task);
    case RUN:
        return run(task);
    case POSTSCALE:
        postscale(task);
        break;
    case DONE:
        break;
    }
    return RUEDA_OK;
}

/* A GPU rings no bell when it is done. The next turn comes at once, or, for
 * what takes long, soon. */
static void stay_awake(struct rueda_task *task)
{
    task->is_silent = true;
    if (rueda_clock_ns() - state_of(task)->launched_ns < AWAKE_NS)
        task->moves++;
}

static rueda_status nccl_progress(struct rueda_task *task)
{
    struct nccl_task *self = state_of(task);
    rueda_status status = RUEDA_OK;

    while (status == RUEDA_OK && self->step != DONE) {
        status = take_step(task);
        if (self->step == JOIN && self->place->step == RUEDA_NCCL_REFUSED &&
            status == RUEDA_OK)
            return rueda_task_hand_on(task);
        /* What the device has accepted is done when we are called again. */
        if (status == RUEDA_OK ||
            (status == RUEDA_IN_PROGRESS && self->step == PRESCALE)) {
            self->step++;
            task->moves++;
        }
    }
    if (self->step > TURN)
        stay_awake(task);
    return status;
}

static rueda_status nccl_post(struct rueda_task *task)
{
    struct nccl_task *self = state_of(task);

    memset(self, 0, sizeof(*self));
    self->place = rueda_nccl_need(task);
    if (self->place == NULL)
        return RUEDA_ERR_NOMEM;
    if (task->coll.parts != NULL && nccl_takes_parts(task->place, &task->coll))
        take_part(&task->coll);
    return nccl_progress(task);
}

/* What has not ended well is ended now, before memory is freed that the GPU
 * would write to. */
static void nccl_finish(struct rueda_task *task)
{
    struct nccl_task *self = state_of(task);

    if (self->place == NULL)
        return;
    if ((self->step == JOIN && self->place->step < RUEDA_NCCL_READY) ||
        (self->step > TURN && self->step < POSTSCALE))
        rueda_nccl_stop(self->place, false);
    self->place->turn.step = RUEDA_NCCL_OUT;
    count_out(self);
    rueda_device_settle(task->place->device, &task->work);
}

static void destroy_event(const struct rueda_device *device, void *event)
{
    struct rueda_cuda_call call;

    rueda_cuda_begin(device, NULL, &call);
    if (call.result == RUEDA_CUDA_SUCCESS)
        call.result = call.cuda->driver.event_destroy(event);
    rueda_cuda_end(&call, call.result, "cuEventDestroy");
}

static void nccl_leave(const struct rueda_place *place)
{
    struct rueda_nccl *nccl = rueda_cuda_of(place->device)->nccl;
    struct rueda_nccl_place **at = &nccl->places;
    struct rueda_nccl_place *self;

    while (*at != NULL && (*at)->place != place)
        at = &(*at)->next;
    self = *at;
    if (self == NULL)
        return;
    rueda_nccl_stop(self, true);
    *at = self->next;
    if (self->event != NULL)
        destroy_event(place->device, self->event);
    free(self->talk.entries);
    free(self);
}

const struct rueda_algo rueda_cuda_nccl = {
    .name = "nccl",
    .about = "NCCL, from where tensors are",
    .kinds = 1u << RUEDA_ALLREDUCE | 1u << RUEDA_ALLGATHER |
             1u << RUEDA_BROADCAST | 1u << RUEDA_ALLTOALL |
             1u << RUEDA_REDUCE_SCATTER,
    .memory = RUEDA_MEMORY_CUDA,
    .can_run = nccl_can_run,
    .leave = nccl_leave,
    .takes_parts = nccl_takes_parts,
    .post = nccl_post,
    .progress = nccl_progress,
    .finish = nccl_finish,
};
