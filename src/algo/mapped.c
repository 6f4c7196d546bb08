/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks of one host that map each other's tensors on an accelerator. Nothing is
 * copied but by the kernels that compute:
 *
 *      TELL    each rank says where its buffers are (an allgather on the host)
 *      VOTE    only if one of them is new: all map it, and agree that they have
 *      WORK    rank r reduces slice r of the buffers of all ranks, and writes
 *              the result into all of them
 *      END     all wait for each other (a barrier on the host)
 *
 * What is ordered between ranks is ordered by the host alone. A rank tells
 * where its buffers are when its own device has written them, and it goes to
 * the barrier when its kernel is over, which it has found by asking. So no
 * stream ever waits for an event of another process, which that process may not
 * live to record, and no kernel waits for another one. After the barrier no
 * rank touches the buffers of another one, so there is nothing to count from
 * one operation to the next.
 *
 * Ranks on one accelerator take turns there, and a turn costs as much as adding
 * many megabytes. So one rank, the server, works for all: the one whose buffers
 * were written last, whose turn it is likely to be still. It needs no other
 * rank to pack, either, as it reaches their tensors:
 *
 *      WORK    the server packs the parts of each rank into that rank's slab,
 *              and reduces the slabs into its own
 *      MIDDLE  all wait: the result exists, and no tensor has been written
 *      GIVE    the server unpacks the result into the tensors of all
 *      END     all wait
 *
 * Each rank packs its own parts if one of them cannot be mapped, or not yet;
 * then all wait for each other before the work.
 *
 * If a rank says that others cannot map its memory, all of them have read it
 * and hand this task to `staged`; after a failed vote, and where a rank never
 * can, all later ones too.
 *
 * Cost, on several accelerators: each rank reads (size-1)/size of the vector
 * from the others and writes as much, and 1/size of its own. Short vectors are
 * the first ranks' work, as a kernel takes longer to start than to add so few
 * numbers.
 */
#define RUEDA_LOG_TAG "algo"

#include "algo/mapped.h"

#include <stdlib.h>
#include <string.h>

#include "algo/mapped_state.h"
#include "algo/staged.h"
#include "base/log.h"
#include "os/clock.h"

_Static_assert(sizeof(struct rueda_mapped_task) <= RUEDA_TASK_STATE_BYTES,
               "state");
_Static_assert(sizeof(struct rueda_mapped_notice) % sizeof(uint64_t) == 0 &&
                   sizeof(struct rueda_mapped_part) % sizeof(uint64_t) == 0,
               "notices are sent as words");

static struct rueda_mapped *kept_of(const struct rueda_task *task)
{
    return task->place->staging->mapped;
}

/* ---- Life ------------------------------------------------------------- */

void rueda_mapped_free(struct rueda_mapped *self)
{
    if (self == NULL)
        return;
    rueda_mapped_table_fini(&self->table);
    free(self->src);
    free(self->dst);
    free(self->list);
    free(self->mine);
    free(self->all);
    free(self);
}

static size_t stride_of(size_t parts)
{
    return sizeof(struct rueda_mapped_notice) +
           parts * sizeof(struct rueda_mapped_part);
}

/* For notices with this number of parts. */
static rueda_status make_room(struct rueda_mapped *self, size_t parts)
{
    const size_t size = (size_t)self->table.size;

    if (self->mine != NULL && parts <= self->part_room)
        return RUEDA_OK;
    free(self->list);
    free(self->mine);
    free(self->all);
    self->list = calloc(size * (parts + 1), sizeof(struct rueda_part));
    self->mine = calloc(1, stride_of(parts));
    self->all = calloc(size, stride_of(parts));
    self->part_room = parts;
    return self->list != NULL && self->mine != NULL && self->all != NULL
               ? RUEDA_OK
               : RUEDA_ERR_NOMEM;
}

static struct rueda_mapped *mapped_new(const struct rueda_place *place)
{
    const int size = place->mesh->size;
    struct rueda_mapped *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return NULL;
    self->src = calloc((size_t)size, sizeof(void *));
    self->dst = calloc((size_t)size, sizeof(void *));
    if (self->src != NULL && self->dst != NULL &&
        rueda_mapped_table_init(&self->table, place->device, size,
                                place->mesh->rank) == RUEDA_OK)
        return self;
    rueda_mapped_free(self);
    return NULL;
}

bool rueda_mapped_fits(const struct rueda_place *place,
                       const struct rueda_coll *coll)
{
    const struct rueda_staging *staging = place->staging;

    return (rueda_algo_mapped.kinds >> coll->kind & 1u) != 0 &&
           coll->arith.reduction != RUEDA_ADASUM && !coll->is_short_handed &&
           staging->host->slab != NULL && place->mesh->size > 1 &&
           place->mesh->size <= RUEDA_REDUCE_ALL &&
           place->device->ops->share != NULL &&
           place->device->ops->reduce_all != NULL;
}

/* The first task finds out whether all are on one accelerator. */
static bool takes_parts(const struct rueda_place *place,
                        const struct rueda_coll *coll)
{
    const struct rueda_mapped *kept = place->staging->mapped;

    return coll->kind == RUEDA_ALLREDUCE && kept != NULL && !kept->is_off &&
           kept->is_together;
}

/* ---- On the host ------------------------------------------------------ */

static void start_on_host(struct rueda_task *task,
                          const struct rueda_coll *coll)
{
    struct rueda_staging *staging = task->place->staging;
    struct rueda_task *inner = &staging->task;

    inner->place = staging->host;
    inner->tag = task->tag;
    inner->moves = 0;
    inner->coll = *coll;
    inner->algo = rueda_select_choose(staging->select, staging->host, coll);
    rueda_mapped_task_of(task)->is_running = true;
    rueda_mapped_task_of(task)->host = rueda_task_post(inner);
}

static void finish_on_host(struct rueda_task *task)
{
    struct rueda_task *inner = &task->place->staging->task;
    struct rueda_mapped_task *self = rueda_mapped_task_of(task);

    if (self->is_running && inner->algo->finish != NULL)
        inner->algo->finish(inner);
    self->is_running = false;
}

/* RUEDA_OK: it is over, or there is none. */
static rueda_status go_on_on_host(struct rueda_task *task)
{
    struct rueda_task *inner = &task->place->staging->task;
    struct rueda_mapped_task *self = rueda_mapped_task_of(task);
    const uint64_t moves = inner->moves;

    if (!self->is_running)
        return RUEDA_OK;
    if (self->host == RUEDA_IN_PROGRESS)
        self->host = rueda_task_progress(inner);
    task->moves += inner->moves - moves;
    if (self->host == RUEDA_OK)
        finish_on_host(task);
    return self->host;
}

/* Of 64-bit words. */
static struct rueda_coll words(rueda_kind kind)
{
    return (struct rueda_coll){
        .kind = kind,
        .root = -1,
        .arith = {.dtype = RUEDA_INT64,
                  .reduction = RUEDA_MIN,
                  .prescale = 1,
                  .postscale = 1},
        .elem_bytes = sizeof(uint64_t),
    };
}

static void start_vote(struct rueda_task *task)
{
    struct rueda_mapped *kept = kept_of(task);
    struct rueda_coll coll = words(RUEDA_ALLREDUCE);

    coll.send = &kept->vote;
    coll.recv = &kept->vote;
    coll.count = 1;
    rueda_mapped_task_of(task)->stage = RUEDA_MAPPED_VOTE;
    start_on_host(task, &coll);
}

static rueda_status start_barrier(struct rueda_task *task)
{
    const struct rueda_coll coll = words(RUEDA_BARRIER);

    start_on_host(task, &coll);
    return RUEDA_OK;
}

/* ---- Tell ------------------------------------------------------------- */

/* Offer what others read or write. */
static rueda_status offer(struct rueda_mapped *kept, const void *buffer,
                          struct rueda_mapped_buffer *out,
                          struct rueda_text *why)
{
    return rueda_mapped_offer(&kept->table, buffer, out, &kept->mine->changes,
                              why);
}

static rueda_status offer_whole(struct rueda_task *task, struct rueda_text *why)
{
    struct rueda_mapped *kept = kept_of(task);
    const struct rueda_coll *coll = &task->coll;
    const int me = kept->table.me;
    rueda_status status;

    if (rueda_mapped_bytes(task, me) == 0 ||
        (coll->kind == RUEDA_BROADCAST && coll->root != me))
        return RUEDA_OK;
    status = offer(kept, coll->send, &kept->mine->whole.send, why);
    if (status == RUEDA_OK && coll->kind == RUEDA_ALLREDUCE)
        status = offer(kept, coll->recv, &kept->mine->whole.recv, why);
    return status;
}

static rueda_status offer_parts(struct rueda_task *task)
{
    struct rueda_mapped *kept = kept_of(task);
    const struct rueda_coll *coll = &task->coll;
    struct rueda_text ignored = {{0}};
    rueda_status status = RUEDA_OK;

    for (int i = 0; i < coll->part_count && status == RUEDA_OK; i++) {
        const struct rueda_part *part = &coll->parts[i];
        struct rueda_mapped_part *mapped = &kept->mine->parts[i];

        if (part->send == NULL || part->recv == NULL)
            return RUEDA_ERR_UNSUPPORTED;
        status = offer(kept, part->send, &mapped->send, &ignored);
        if (status == RUEDA_OK && part->recv != part->send)
            status = offer(kept, part->recv, &mapped->recv, &ignored);
        else
            mapped->recv = mapped->send;
    }
    return status;
}

static void fill_in(struct rueda_task *task, struct rueda_text *why)
{
    struct rueda_mapped *kept = kept_of(task);
    struct rueda_mapped_notice *mine = kept->mine;

    if (task->place->device->private_by != NULL) {
        mine->answer = RUEDA_MAPPED_NEVER;
        rueda_text_add(why, "%s", task->place->device->private_by);
    } else if (offer_whole(task, why) != RUEDA_OK) {
        mine->answer = RUEDA_MAPPED_NOT_THIS;
    } else if (rueda_mapped_task_of(task)->is_in_parts &&
               offer_parts(task) != RUEDA_OK) {
        mine->answer = RUEDA_MAPPED_WHOLE;
    }
}

static rueda_status start_tell(struct rueda_task *task)
{
    struct rueda_mapped *kept = kept_of(task);
    struct rueda_mapped_task *self = rueda_mapped_task_of(task);
    const size_t parts = self->is_in_parts ? (size_t)task->coll.part_count : 0;
    struct rueda_coll coll = words(RUEDA_ALLGATHER);
    struct rueda_text why = {{0}};
    rueda_status status = make_room(kept, parts);

    if (status != RUEDA_OK)
        return status;
    self->stride = stride_of(parts);
    memset(kept->mine, 0, self->stride);
    kept->table.task++;
    kept->mine->ready_ns = (uint64_t)rueda_clock_ns();
    task->place->device->ops->identity(task->place->device, kept->mine->device);
    fill_in(task, &why);
    if (!rueda_text_is_empty(&why))
        log_debug("no other rank reaches the tensors of this one, which go by "
                  "way of the host: %s",
                  why.chars);
    coll.send = kept->mine;
    coll.recv = kept->all;
    coll.count = self->stride / sizeof(uint64_t);
    self->stage = RUEDA_MAPPED_TELL;
    start_on_host(task, &coll);
    return RUEDA_OK;
}

/* ---- After that ------------------------------------------------------- */

static const struct rueda_mapped_notice *notice_of(struct rueda_task *task,
                                                   int member)
{
    return rueda_mapped_notice_of(kept_of(task),
                                  rueda_mapped_task_of(task)->stride, member);
}

static rueda_status start_pack(struct rueda_task *task)
{
    struct rueda_mapped_task *self = rueda_mapped_task_of(task);
    const struct rueda_coll *coll = &task->coll;

    self->is_in_parts = false;
    self->stage = RUEDA_MAPPED_PACK;
    return rueda_device_gather(task->place->device, &task->work, coll->recv,
                               coll->parts, coll->part_count);
}

static rueda_status hand_over(struct rueda_task *task)
{
    struct rueda_mapped_task *self = rueda_mapped_task_of(task);

    if (self->is_in_parts) {
        self->is_staged = true;
        return start_pack(task);
    }
    task->algo = &rueda_algo_staged;
    return task->algo->post(task);
}

static void switch_off(struct rueda_mapped *kept)
{
    kept->is_off = true;
    rueda_mapped_table_fini(&kept->table);
}

/* The worst of all answers. */
static uint64_t judge(struct rueda_task *task, int *out_member)
{
    uint64_t worst = RUEDA_MAPPED_CAN;

    for (int i = 0; i < task->place->mesh->size; i++)
        if (notice_of(task, i)->answer > worst) {
            worst = notice_of(task, i)->answer;
            *out_member = i;
        }
    return worst;
}

/* The rank that works for all, if one does: it was ready last. */
static void choose_server(struct rueda_task *task)
{
    struct rueda_mapped *kept = kept_of(task);
    struct rueda_mapped_task *self = rueda_mapped_task_of(task);
    int last = 0;

    kept->is_together = true;
    for (int i = 1; i < kept->table.size; i++) {
        const struct rueda_mapped_notice *notice = notice_of(task, i);

        kept->is_together = kept->is_together &&
                            memcmp(notice->device, notice_of(task, 0)->device,
                                   sizeof(notice->device)) == 0;
        if (notice->ready_ns > notice_of(task, last)->ready_ns)
            last = i;
    }
    self->server = kept->is_together ? last : -1;
}

/* Map what is new. True: something is. */
static bool take_all(struct rueda_task *task)
{
    struct rueda_mapped *kept = kept_of(task);
    struct rueda_text why = {{0}};
    bool is_new = false;

    kept->vote = 1;
    for (int i = 0; i < kept->table.size; i++) {
        const struct rueda_mapped_changes *changes =
            &notice_of(task, i)->changes;

        is_new = is_new || changes->count > 0;
        if (kept->vote == 1 &&
            rueda_mapped_take(&kept->table, i, changes, &why) != RUEDA_OK)
            kept->vote = 0;
    }
    if (kept->vote == 0)
        log_debug("this rank does not reach the tensors of others, which go by "
                  "way of the host from now on: %s",
                  why.chars);
    return is_new;
}

static rueda_status start_work(struct rueda_task *task, bool is_found,
                               int stage)
{
    rueda_mapped_task_of(task)->stage = stage;
    if (is_found)
        return task->work.status;
    log_error("a rank names a buffer that it has not shown, or a shorter one");
    return RUEDA_ERR_MISMATCH;
}

/* All is mapped. */
static rueda_status go_to_work(struct rueda_task *task)
{
    int ignored;

    if (rueda_mapped_task_of(task)->is_in_parts &&
        judge(task, &ignored) == RUEDA_MAPPED_WHOLE)
        return start_pack(task);
    return start_work(task, rueda_mapped_work(task, kept_of(task)),
                      RUEDA_MAPPED_WORK);
}

static rueda_status decide(struct rueda_task *task)
{
    struct rueda_mapped *kept = kept_of(task);
    int member = 0;
    const uint64_t worst = judge(task, &member);

    for (int i = 0; i < kept->table.size; i++)
        rueda_mapped_drop(&kept->table, i, notice_of(task, i)->changes.dropped);
    if (worst >= RUEDA_MAPPED_NOT_THIS) {
        log_debug("member %d has tensors that others do not reach; %s by way "
                  "of the host",
                  member,
                  worst == RUEDA_MAPPED_NOT_THIS ? "this one goes"
                                                 : "all go from now on");
        if (worst != RUEDA_MAPPED_NOT_THIS)
            switch_off(kept);
        return hand_over(task);
    }
    choose_server(task);
    if (!take_all(task))
        return go_to_work(task);
    start_vote(task);
    return RUEDA_OK;
}

static rueda_status count_votes(struct rueda_task *task)
{
    struct rueda_mapped *kept = kept_of(task);

    if (kept->vote == 1) {
        rueda_mapped_taken(&kept->table, &kept->mine->changes);
        return go_to_work(task);
    }
    log_debug("the ranks of this set do not all reach each other's tensors");
    switch_off(kept);
    return hand_over(task);
}

/* ---- The task --------------------------------------------------------- */

/* The next step, after one that is over. Answers as progress() does, but
 * RUEDA_OK where the task is not over yet. */
static rueda_status go_on(struct rueda_task *task)
{
    struct rueda_mapped_task *self = rueda_mapped_task_of(task);

    switch (self->stage) {
    case RUEDA_MAPPED_TELL:
        return decide(task);
    case RUEDA_MAPPED_VOTE:
        return count_votes(task);
    case RUEDA_MAPPED_PACK:
        if (self->is_staged)
            return hand_over(task);
        self->stage = RUEDA_MAPPED_PACKED;
        return start_barrier(task);
    case RUEDA_MAPPED_PACKED:
        return go_to_work(task);
    case RUEDA_MAPPED_WORK:
        self->stage =
            self->is_in_parts ? RUEDA_MAPPED_MIDDLE : RUEDA_MAPPED_END;
        return start_barrier(task);
    case RUEDA_MAPPED_MIDDLE:
        return start_work(task, rueda_mapped_give(task, kept_of(task)),
                          RUEDA_MAPPED_GIVE);
    default:
        self->stage = RUEDA_MAPPED_END;
        task->coll.part_count = 0; /* they have their results */
        return start_barrier(task);
    }
}

static rueda_status mapped_progress(struct rueda_task *task)
{
    rueda_status status = RUEDA_OK;

    while (status == RUEDA_OK) {
        status = go_on_on_host(task);
        if (status != RUEDA_OK ||
            rueda_mapped_task_of(task)->stage == RUEDA_MAPPED_END)
            return status;
        task->moves++;
        status = go_on(task);
        if (task->algo != &rueda_algo_mapped)
            return status;
    }
    return status;
}

static rueda_status mapped_post(struct rueda_task *task)
{
    struct rueda_staging *staging = task->place->staging;
    rueda_status status;

    if (staging->mapped == NULL)
        staging->mapped = mapped_new(task->place);
    if (staging->mapped == NULL)
        return RUEDA_ERR_NOMEM;
    *rueda_mapped_task_of(task) = (struct rueda_mapped_task){
        .server = -1,
        .is_in_parts =
            task->coll.parts != NULL && takes_parts(task->place, &task->coll),
    };
    if (staging->mapped->is_off)
        return hand_over(task);
    status = start_tell(task);
    return status == RUEDA_OK ? mapped_progress(task) : status;
}

/* A kernel that still runs is waited for here: it uses the callers' memory. */
static void mapped_finish(struct rueda_task *task)
{
    finish_on_host(task);
    rueda_device_settle(task->place->device, &task->work);
}

const struct rueda_algo rueda_algo_mapped = {
    .name = "mapped",
    .about = "each rank works on the mapped memory of all ranks of the host",
    .kinds = 1u << RUEDA_ALLREDUCE | 1u << RUEDA_ALLGATHER |
             1u << RUEDA_BROADCAST | 1u << RUEDA_REDUCE_SCATTER,
    .memory = RUEDA_MEMKIND_ANY,
    .takes_parts = takes_parts,
    .post = mapped_post,
    .progress = mapped_progress,
    .finish = mapped_finish,
};
