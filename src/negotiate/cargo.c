/* SPDX-License-Identifier: Apache-2.0 */
/* Application bytes, such as timeline records, travel up the tree together with
 * negotiation messages, in the same order; a word of the coordinator's caller
 * to all members comes down in the log. */
#include "negotiate/state.h"

static void pass_up(struct rueda_negotiator *self, int rank, const void *bytes,
                    size_t len)
{
    struct rueda_out *out = &rueda_up_talk(self)->out;

    rueda_out_u8(out, RUEDA_UP_CARGO);
    rueda_out_u32(out, (uint32_t)rank);
    rueda_out_u32(out, (uint32_t)len);
    rueda_out_bytes(out, bytes, len);
}

static void take_in(struct rueda_negotiator *self, int rank, const void *bytes,
                    size_t len)
{
    if (!rueda_is_coordinator(self))
        pass_up(self, rank, bytes, len);
    else if (self->args.heard_cargo != NULL)
        self->args.heard_cargo(self->args.cargo_arg, rank, bytes, len);
}

rueda_status rueda_cargo_hear(struct rueda_negotiator *self, int index,
                              struct rueda_in *in)
{
    const int rank = (int)rueda_in_u32(in);
    const size_t len = rueda_in_u32(in);
    const unsigned char *bytes = rueda_in_bytes(in, len);

    (void)index;
    if (bytes == NULL)
        return RUEDA_ERR_IO;
    take_in(self, rank, bytes, len);
    return RUEDA_OK;
}

void rueda_negotiator_send_cargo(struct rueda_negotiator *self,
                                 const void *bytes, size_t len)
{
    take_in(self, self->args.ranks[self->me], bytes, len);
}

/* ---- To all members ------------------------------------------------------ */

rueda_status rueda_negotiator_tell(struct rueda_negotiator *self, uint64_t word)
{
    struct rueda_out *log = &self->root.log;

    rueda_out_u8(log, RUEDA_DOWN_WORD);
    rueda_out_u64(log, word);
    return rueda_coordinator_append(self);
}

rueda_status rueda_word_follow(struct rueda_negotiator *self,
                               struct rueda_in *in)
{
    const uint64_t word = rueda_in_u64(in);

    if (in->has_failed || self->args.heard_word == NULL)
        return RUEDA_ERR_IO;
    self->args.heard_word(self->args.cargo_arg, word);
    return RUEDA_OK;
}

uint64_t rueda_negotiator_latest(const struct rueda_negotiator *self)
{
    return self->last != NULL ? self->last->decision.index : 0;
}

/* ---- Clocks -------------------------------------------------------------- */

/* All ranks of a host use one clock, so only clocks of different hosts differ.
 * The coordinator is member 0. */
bool rueda_negotiator_find_shift(const struct rueda_negotiator *self,
                                 int64_t *out_ns)
{
    const int *hosts = self->args.hosts;
    const struct rueda_talk *up = &self->talks[self->tree.child_count];
    uint64_t ahead = 0;

    if (hosts == NULL || hosts[self->me] == hosts[0]) {
        *out_ns = 0;
        return true;
    }
    if (!up->peer_has_shift)
        return false;
    if (hosts[self->me] != hosts[self->tree.parent]) {
        if (up->best_way_ns == 0)
            return false;
        ahead = (uint64_t)up->ahead_ns;
    }
    *out_ns = (int64_t)((uint64_t)up->peer_shift_ns + ahead);
    return true;
}
