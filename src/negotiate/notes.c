/* SPDX-License-Identifier: Apache-2.0 */
/* What a member has for the coordinator's caller travels up with what it has
 * for the coordinator, in the same order. */
#include "negotiate/state.h"

static void pass_up(struct rueda_negotiator *self, int rank, const void *bytes,
                    size_t len)
{
    struct rueda_out *out = &rueda_up_talk(self)->out;

    rueda_out_u8(out, RUEDA_UP_NOTES);
    rueda_out_u32(out, (uint32_t)rank);
    rueda_out_u32(out, (uint32_t)len);
    rueda_out_bytes(out, bytes, len);
}

static void take_in(struct rueda_negotiator *self, int rank, const void *bytes,
                    size_t len)
{
    if (!rueda_is_coordinator(self))
        pass_up(self, rank, bytes, len);
    else if (self->args.heard_notes != NULL)
        self->args.heard_notes(self->args.notes_arg, rank, bytes, len);
}

rueda_status rueda_notes_hear(struct rueda_negotiator *self, int index,
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

void rueda_negotiator_send_notes(struct rueda_negotiator *self,
                                 const void *bytes, size_t len)
{
    take_in(self, self->args.ranks[self->me], bytes, len);
}

/* The clock of a host is one, so only between hosts there is a difference. */
int64_t rueda_negotiator_shift_ns(const struct rueda_negotiator *self)
{
    const int *hosts = self->args.hosts;
    const struct rueda_talk *up = &self->talks[self->tree.child_count];

    if (rueda_is_coordinator(self))
        return 0;
    if (hosts == NULL || hosts[self->me] == hosts[self->tree.parent])
        return up->peer_shift_ns;
    return (int64_t)((uint64_t)up->peer_shift_ns + (uint64_t)up->ahead_ns);
}
