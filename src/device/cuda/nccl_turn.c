/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which this rank launches. A launch of NCCL occupies the GPU
 * until all members of its set have launched as well. If one rank launched for
 * set A and then for set B, and another one for B and then for A, then both
 * could wait for ever. So all ranks launch in one order, though no rank knows
 * all sets.
 *
 * A launch gets a stamp, and each rank launches by ascending stamps:
 *
 * The common place has every rank of the job as a member, and its tasks run in
 * the same order everywhere, as the log says. Its k-th launch has the stamp
 * (k, 0), without a message.
 *
 * Other places agree on a stamp (Skeen's algorithm, in Birman and Joseph,
 * 1987). Each member proposes one that is later than all that it knows, and the
 * latest proposal is the stamp. From its proposal on a member holds back
 * launches of later stamps, because the agreed stamp may be earlier than
 * theirs. That no rank waits for ever for a proposal needs a round before it,
 * in which the members tell each other that they have come: what they came to
 * by their programs may be long in coming, and nothing is held back meanwhile.
 *
 * Launches that have the same stamp are ordered by the tags of their sets. All
 * go to one stream, so the GPU keeps the order.
 *
 * Making a communicator has a place in the order like a launch. NCCL allocates
 * memory then, which waits for what runs on the GPU, and so perhaps for a
 * launch of another rank that waits for this communicator.
 */
#include "device/cuda/nccl_state.h"

static bool is_before(struct rueda_nccl_stamp a, struct rueda_nccl_stamp b)
{
    return a.common != b.common ? a.common < b.common : a.other < b.other;
}

/* Is this place to launch before the other one? */
static bool goes_first(const struct rueda_nccl_comm *a,
                       const struct rueda_nccl_comm *b)
{
    if (is_before(a->turn.stamp, b->turn.stamp))
        return true;
    return !is_before(b->turn.stamp, a->turn.stamp) && a->tag_set < b->tag_set;
}

static struct rueda_nccl *nccl_of(const struct rueda_nccl_comm *self)
{
    return rueda_nccl_cuda(self)->nccl;
}

/* Has it a stamp, or a proposal that its stamp is not earlier than? */
static bool has_stamp(const struct rueda_nccl_comm *self)
{
    return self->turn.step == RUEDA_NCCL_PROPOSE ||
           self->turn.step == RUEDA_NCCL_QUEUE;
}

/* From the beginning of a turn on, and not only from its end, all that this
 * rank proposes is later. */
static void take_turn(struct rueda_nccl_comm *self)
{
    struct rueda_nccl *nccl = nccl_of(self);

    if (is_before(nccl->clock, self->turn.stamp))
        nccl->clock = self->turn.stamp;
    self->turn.step = RUEDA_NCCL_TAKEN;
}

void rueda_nccl_turn_begin(struct rueda_nccl_comm *self)
{
    static const struct rueda_nccl_stamp nothing;

    if (self->place->is_common) {
        self->turn.stamp.common++;
        self->turn.stamp.other = 0;
        self->turn.step = RUEDA_NCCL_QUEUE;
        return;
    }
    self->turn.step = RUEDA_NCCL_GATHER;
    rueda_nccl_talk_begin(&self->talk, &nothing, sizeof(nothing));
}

static void propose(struct rueda_nccl_comm *self)
{
    struct rueda_nccl *nccl = nccl_of(self);

    nccl->clock.other++;
    self->turn.stamp = nccl->clock;
    self->turn.step = RUEDA_NCCL_PROPOSE;
    rueda_nccl_talk_begin(&self->talk, &nccl->clock, sizeof(nccl->clock));
}

/* All proposals are there. */
static void agree(struct rueda_nccl_comm *self)
{
    const struct rueda_mesh *mesh = self->place->mesh;

    for (int i = 0; i < mesh->size; i++) {
        const struct rueda_nccl_stamp *stamp =
            rueda_nccl_talk_entry(&self->talk, mesh, i);

        if (is_before(self->turn.stamp, *stamp))
            self->turn.stamp = *stamp;
    }
    self->turn.step = RUEDA_NCCL_QUEUE;
}

/* The stamp of another place may lie behind launches of the common one that
 * this rank has yet to make: those that have the members in common have begun
 * on another rank, and so will begin here. */
static bool is_next(const struct rueda_nccl_comm *self)
{
    const struct rueda_nccl *nccl = nccl_of(self);

    if (!self->place->is_common && nccl->clock.common < self->turn.stamp.common)
        return false;
    for (const struct rueda_nccl_comm *other = nccl->comms; other != NULL;
         other = other->next)
        if (other != self && (other->turn.step == RUEDA_NCCL_TAKEN ||
                              (has_stamp(other) && goes_first(other, self))))
            return false;
    return true;
}

rueda_status rueda_nccl_turn_wait(struct rueda_nccl_comm *self,
                                  struct rueda_task *task)
{
    rueda_status status = RUEDA_OK;

    if (self->turn.step == RUEDA_NCCL_GATHER) {
        status = rueda_nccl_talk_turn(&self->talk, task);
        if (status != RUEDA_OK)
            return status;
        propose(self);
    }
    if (self->turn.step == RUEDA_NCCL_PROPOSE) {
        status = rueda_nccl_talk_turn(&self->talk, task);
        if (status != RUEDA_OK)
            return status;
        agree(self);
    }
    if (self->turn.step == RUEDA_NCCL_QUEUE && is_next(self))
        take_turn(self);
    return self->turn.step == RUEDA_NCCL_TAKEN ? RUEDA_OK : RUEDA_IN_PROGRESS;
}

void rueda_nccl_turn_end(struct rueda_nccl_comm *self)
{
    self->turn.step = RUEDA_NCCL_OUT;
}
