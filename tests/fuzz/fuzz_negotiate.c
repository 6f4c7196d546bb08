/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A member of a negotiation whose neighbours have proved themselves, and then
 * say what they like: children what they have, the parent what is decided.
 *
 * An input is a list of steps: a byte that says who speaks or what the member
 * itself does, a byte for a length, and this many bytes of a message. The first
 * choice is whether it is the coordinator, and how many numbers it knows.
 */
#include "fuzz/fuzz.h"
#include "negotiate/state.h"

#define RANKS 5

enum step {
    CHILD_0,
    CHILD_1,
    PARENT,
    SUBMIT,
    JOIN,
    DONE,
    DECIDE,
    STEPS
};

static const int ranks[RANKS] = {0, 2, 3, 5, 8};
/* 1 is a child of 0 and has 2; 3 is a child of 0 and has 4. */
static const int hosts[RANKS] = {0, 1, 1, 2, 2};

static int64_t no_time(void *arg)
{
    (void)arg;
    return 0;
}

static void ignore(void *arg, uint64_t word)
{
    (void)arg;
    (void)word;
}

static rueda_status no_way(struct rueda_mesh *mesh, int peer,
                           struct rueda_ep **out_ep)
{
    (void)mesh;
    (void)peer;
    (void)out_ep;
    return RUEDA_ERR_PEER_LOST;
}

#define REQUESTS 5

static struct rueda_request requests[REQUESTS] = {
    {.kind = RUEDA_ALLREDUCE, .dims = 1, .shape = {4}, .name = "a"},
    {.kind = RUEDA_ALLGATHER, .dims = 2, .shape = {4, 2}, .name = "b"},
    {.kind = RUEDA_BROADCAST, .dims = 1, .shape = {9}, .number = 7},
    {.kind = RUEDA_ALLREDUCE,
     .dims = 1,
     .shape = {4},
     .name = "c",
     .group = 3,
     .group_count = 2},
    {.kind = RUEDA_ALLREDUCE,
     .dims = 1,
     .shape = {4},
     .name = "d",
     .group = 3,
     .group_count = 2},
};
static const struct rueda_request join = {.kind = RUEDA_JOIN};

static rueda_status take_step(struct rueda_negotiator *self, enum step step,
                              unsigned which, struct rueda_in *in)
{
    const struct rueda_request *mine = &requests[which % REQUESTS];

    switch (step) {
    case CHILD_0:
    case CHILD_1:
        if ((int)step >= self->tree.child_count)
            return RUEDA_OK;
        return rueda_ready_hear(self, (int)step, in);
    case PARENT:
        return rueda_is_coordinator(self)
                   ? RUEDA_OK
                   : rueda_negotiator_log_follow(self, in);
    case SUBMIT:
        (void)rueda_negotiator_submit(self, mine, (void *)mine);
        return RUEDA_OK;
    case JOIN:
        (void)rueda_negotiator_submit(self, &join, (void *)&join);
        return RUEDA_OK;
    case DONE:
        if (rueda_negotiator_next(self) != NULL)
            rueda_negotiator_done(self);
        return RUEDA_OK;
    case DECIDE:
    case STEPS:
        break;
    }
    return rueda_is_coordinator(self) ? rueda_coordinator_decide(self)
                                      : RUEDA_OK;
}

/* What a decision says can be read. */
static void read_decisions(struct rueda_negotiator *self)
{
    const struct rueda_decision *decision = rueda_negotiator_next(self);

    if (decision == NULL)
        return;
    must(decision->count >= 1 && decision->live >= 0);
    must(decision->live <= RANKS);
    for (int i = 0; i < decision->count; i++)
        if (decision->items[i].request != NULL)
            must(decision->items[i].request->dims <= RUEDA_MAX_DIMS);
    if (decision->kind == RUEDA_DECIDED_ERROR)
        must(strlen(decision->words) <= RUEDA_OUT_TEXT_MOST);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    unsigned how = fuzz_choice(&input);
    struct rueda_mesh mesh;
    struct rueda_negotiator_args args = {.mesh = &mesh,
                                         .ranks = ranks,
                                         .hosts = hosts,
                                         .fusion_bytes = 100,
                                         .now_ns = no_time,
                                         .heard_word = ignore};
    struct rueda_negotiator *self;
    rueda_status status = RUEDA_OK;

    args.cache_capacity = (int)(how >> 1) % 4;
    must(rueda_mesh_init(&mesh, (int)(how & 1), RANKS, no_way, NULL) ==
         RUEDA_OK);
    must(rueda_negotiator_new(&args, &self) == RUEDA_OK);
    while (input.size >= 2 && status >= 0) {
        enum step step = (enum step)(input.data[0] % STEPS);
        unsigned which = input.data[1];
        size_t len = which < input.size - 2 ? which : input.size - 2;
        struct rueda_in in = {.at = input.data + 2,
                              .end = input.data + 2 + len};

        if (step > PARENT)
            len = 0;
        input.data += 2 + len;
        input.size -= 2 + len;
        status = take_step(self, step, which, &in);
        if (status >= 0)
            read_decisions(self);
    }
    must(status >= 0 || status == RUEDA_ERR_IO);
    rueda_negotiator_free(self);
    rueda_mesh_fini(&mesh);
    return 0;
}
