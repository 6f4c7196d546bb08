/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does every member wait for operations that can never become ready? Then that
 * is an error, and no member has to wait for a clock.
 *
 * Only the coordinator begins, when it waits itself and nothing has changed in
 * it for a while. It asks all members by an entry of the log, a wave with a
 * number. A member answers as soon as it waits as well; one that computes does
 * not answer before it waits, however long that takes. Answers are combined on
 * their way up the tree. When all members have answered, the coordinator asks
 * once more. Members that have not changed since their previous answer report
 * that.
 *
 * All members waited at the moment at which the first wave was complete, if
 * none has changed by the second. Nothing of this set was on its way then: what
 * a member had submitted travelled up before its answer, and what was decided
 * came down before the second wave. Of other sets members count messages sent
 * and received: if the sums are equal, none of these was on its way either. So
 * no member could ever go on, since each of them goes on only by a message.
 * (This is how F. Mattern detects the end of distributed computations by
 * counting twice, 1987.) tests/model/standstill.py has these rules as a model.
 *
 * Members that wait for an operation that is running also answer, but their
 * answers prove nothing. In this case the coordinator ends the job only if
 * nothing at all has changed for as long as the settings say.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "negotiate/state.h"

/* How often to check, how long the coordinator has waited when it asks, and the
 * time between two waves. */
#define CHECK_NS RUEDA_MS(50)
#define QUIET_NS RUEDA_MS(250)
#define APART_NS RUEDA_MS(200)

/* Waves whose answers prove nothing: this many in the time until the end, and
 * no further apart than a minute. */
#define WAVES         8
#define APART_MOST_NS RUEDA_S(60)

/* A member that knows of the standstill leaves the others time to read it,
 * because the end of one member ends all. */
#define LEAVE_NS RUEDA_MS(100)

/* ---- What members wait for ---------------------------------------------- */

/* The lowest ranks are kept, in their order. */
static void add_rank(struct rueda_wants *group, int rank)
{
    int at = group->rank_count;

    if (at == RUEDA_WANTS_RANKS && group->ranks[--at] < rank)
        return;
    for (; at > 0 && group->ranks[at - 1] > rank; at--)
        group->ranks[at] = group->ranks[at - 1];
    group->ranks[at] = rank;
    if (group->rank_count < RUEDA_WANTS_RANKS)
        group->rank_count++;
}

static void add_group(struct rueda_answer *answer,
                      const struct rueda_wants *wants)
{
    for (int i = 0; i < answer->group_count; i++) {
        struct rueda_wants *group = &answer->groups[i];

        if (strcmp(group->what, wants->what) != 0)
            continue;
        for (int j = 0; j < wants->rank_count; j++)
            add_rank(group, wants->ranks[j]);
        group->count += wants->count;
        return;
    }
    if (answer->group_count < RUEDA_ANSWER_GROUPS)
        answer->groups[answer->group_count++] = *wants;
    else
        answer->others += wants->count;
}

static void add_answer(struct rueda_answer *sum,
                       const struct rueda_answer *answer)
{
    if (answer->level < sum->level)
        sum->level = answer->level;
    sum->is_same = sum->is_same && answer->is_same;
    sum->sent += answer->sent;
    sum->received += answer->received;
    sum->others += answer->others;
    for (int i = 0; i < answer->group_count; i++)
        add_group(sum, &answer->groups[i]);
}

/* ---- Messages ------------------------------------------------------------ */

static void write_answer(struct rueda_negotiator *self,
                         const struct rueda_answer *answer)
{
    struct rueda_out *out = &rueda_up_talk(self)->out;

    rueda_out_u8(out, RUEDA_UP_STILL);
    rueda_out_u64(out, self->wave.asked);
    rueda_out_u8(out, (uint8_t)answer->level);
    rueda_out_u8(out, answer->is_same);
    rueda_out_u64(out, answer->sent);
    rueda_out_u64(out, answer->received);
    rueda_out_u32(out, (uint32_t)answer->others);
    rueda_out_u32(out, (uint32_t)answer->group_count);
    for (int i = 0; i < answer->group_count; i++) {
        const struct rueda_wants *group = &answer->groups[i];

        rueda_out_text(out, group->what);
        rueda_out_u32(out, (uint32_t)group->count);
        rueda_out_u32(out, (uint32_t)group->rank_count);
        for (int j = 0; j < group->rank_count; j++)
            rueda_out_u32(out, (uint32_t)group->ranks[j]);
    }
}

static void read_group(const struct rueda_negotiator *self, struct rueda_in *in,
                       struct rueda_wants *out)
{
    char *what = rueda_in_text(in);
    uint32_t ranks;

    memset(out, 0, sizeof(*out));
    if (what != NULL)
        snprintf(out->what, sizeof(out->what), "%s", what);
    free(what);
    out->count = (int)rueda_in_u32(in);
    ranks = rueda_in_u32(in);
    if (out->count < 1 || out->count > self->size ||
        ranks > RUEDA_WANTS_RANKS || (int)ranks > out->count)
        in->has_failed = true;
    for (uint32_t i = 0; i < ranks && !in->has_failed; i++)
        out->ranks[out->rank_count++] = (int)rueda_in_u32(in);
}

static void read_answer(const struct rueda_negotiator *self,
                        struct rueda_in *in, struct rueda_answer *out)
{
    uint32_t groups;

    out->level = (rueda_still_level)rueda_in_u8(in);
    out->is_same = rueda_in_u8(in) == 1;
    out->sent = rueda_in_u64(in);
    out->received = rueda_in_u64(in);
    out->others = (int)rueda_in_u32(in);
    groups = rueda_in_u32(in);
    if (groups > RUEDA_ANSWER_GROUPS || out->others < 0 ||
        out->others > self->size || out->level < RUEDA_STILL_WAITS ||
        out->level > RUEDA_STILL_STUCK)
        in->has_failed = true;
    for (uint32_t i = 0; i < groups && !in->has_failed; i++)
        read_group(self, in, &out->groups[out->group_count++]);
}

rueda_status rueda_still_hear(struct rueda_negotiator *self, int index,
                              struct rueda_in *in)
{
    struct rueda_wave *wave = &self->wave;
    struct rueda_answer answer = {0};
    const uint64_t number = rueda_in_u64(in);
    const uint32_t bit = (uint32_t)1 << index;

    read_answer(self, in, &answer);
    if (in->has_failed || number != wave->asked || number == 0 ||
        (wave->heard & bit) != 0 || wave->answered == number)
        return RUEDA_ERR_IO;
    wave->heard |= bit;
    add_answer(wave->below, &answer);
    return RUEDA_OK;
}

rueda_status rueda_still_follow_ask(struct rueda_negotiator *self,
                                    struct rueda_in *in)
{
    struct rueda_wave *wave = &self->wave;
    const uint64_t number = rueda_in_u64(in);

    if (in->has_failed || number != wave->asked + 1 ||
        wave->answered != wave->asked)
        return RUEDA_ERR_IO;
    wave->asked = number;
    wave->heard = 0;
    if (wave->below == NULL)
        wave->below = calloc(1, sizeof(*wave->below));
    if (wave->below == NULL)
        return RUEDA_ERR_NOMEM;
    memset(wave->below, 0, sizeof(*wave->below));
    wave->below->level = RUEDA_STILL_STUCK;
    wave->below->is_same = true;
    return RUEDA_OK;
}

rueda_status rueda_still_follow_standstill(struct rueda_negotiator *self,
                                           struct rueda_in *in)
{
    struct rueda_wave *wave = &self->wave;
    const bool is_deadlock = rueda_in_u8(in) == 1;
    char *words = rueda_in_text(in);

    if (in->has_failed || wave->standstill != NULL) {
        free(words);
        return RUEDA_ERR_IO;
    }
    wave->standstill = words;
    wave->standstill_status =
        is_deadlock ? RUEDA_ERR_MISMATCH : RUEDA_ERR_STALLED;
    wave->leave_ns = self->now_ns + LEAVE_NS;
    return RUEDA_OK;
}

/* ---- The coordinator -------------------------------------------------- */

/* "ranks 1, 2 and 5 others wait for" */
static void tell_group(const struct rueda_wants *group, bool is_first,
                       struct rueda_text *out)
{
    rueda_text_add(out, "%srank%s", is_first ? "" : ", ",
                   group->count > 1 ? "s" : "");
    for (int i = 0; i < group->rank_count; i++)
        rueda_text_add(out, "%s %d", i > 0 ? "," : "", group->ranks[i]);
    if (group->count > group->rank_count)
        rueda_text_add(out, " and %d more", group->count - group->rank_count);
    if (is_first)
        rueda_text_add(out, group->count > 1 ? " wait" : " waits");
    rueda_text_add(out, " for %s", group->what);
}

static int by_rank(const void *a, const void *b)
{
    return ((const struct rueda_wants *)a)->ranks[0] -
           ((const struct rueda_wants *)b)->ranks[0];
}

static void tell_groups(struct rueda_answer *answer, struct rueda_text *out)
{
    qsort(answer->groups, (size_t)answer->group_count,
          sizeof(answer->groups[0]), by_rank);
    for (int i = 0; i < answer->group_count; i++)
        tell_group(&answer->groups[i], i == 0, out);
    if (answer->others > 0)
        rueda_text_add(out, ", and %d ranks for something else",
                       answer->others);
}

static rueda_status write_standstill(struct rueda_negotiator *self,
                                     struct rueda_answer *answer,
                                     bool is_deadlock)
{
    struct rueda_text words = {{0}};
    struct rueda_out *log = &self->root.log;

    if (is_deadlock)
        rueda_text_set(&words, "deadlock: ");
    else
        rueda_text_set(&words,
                       "every rank waits, and nothing has moved for more than "
                       "%g seconds, so the job ends (RUEDA_STALL_GIVE_UP): ",
                       (double)self->args.give_up_ns / 1e9);
    tell_groups(answer, &words);
    if (is_deadlock)
        rueda_text_add(&words, "; the ranks must call the same operation");
    rueda_out_u8(log, RUEDA_DOWN_STANDSTILL);
    rueda_out_u8(log, is_deadlock);
    rueda_out_text(log, words.chars);
    return rueda_coordinator_append(self);
}

/* Is nothing left that could be decided without another message? */
static bool is_quiet(const struct rueda_negotiator *self)
{
    const struct rueda_coordinator *root = &self->root;

    return root->complete == NULL && root->ready == NULL &&
           !root->has_mismatch && root->call_ns == INT64_MAX &&
           root->running == 0;
}

static rueda_status ask(struct rueda_negotiator *self)
{
    struct rueda_out *log = &self->root.log;

    rueda_out_u8(log, RUEDA_DOWN_ASK);
    rueda_out_u64(log, self->wave.asked + 1);
    return rueda_coordinator_append(self);
}

/* All have answered. */
static rueda_status conclude(struct rueda_negotiator *self,
                             struct rueda_answer *answer)
{
    struct rueda_wave *wave = &self->wave;
    const int64_t give_up_ns = self->args.give_up_ns;
    int64_t apart_ns = APART_NS;

    if (!answer->is_same)
        wave->same_ns = self->now_ns;
    else if (answer->level == RUEDA_STILL_STUCK &&
             answer->sent == answer->received && is_quiet(self))
        return write_standstill(self, answer, true);
    else if (give_up_ns > 0 && self->now_ns - wave->same_ns >= give_up_ns)
        return write_standstill(self, answer, false);
    else
        apart_ns = give_up_ns > 0 && give_up_ns / WAVES < APART_MOST_NS
                       ? give_up_ns / WAVES
                       : APART_MOST_NS;
    wave->ask_ns = self->now_ns + (apart_ns > APART_NS ? apart_ns : APART_NS);
    return RUEDA_OK;
}

/* ---- Every member ----------------------------------------------------- */

/* All members below me have answered, and I have not. */
static bool is_my_turn(const struct rueda_negotiator *self)
{
    const uint32_t all = ((uint32_t)1 << self->tree.child_count) - 1;

    return self->wave.answered < self->wave.asked && self->wave.heard == all;
}

/* The coordinator may ask. */
static bool may_ask(const struct rueda_negotiator *self)
{
    return rueda_is_coordinator(self) &&
           self->wave.answered == self->wave.asked;
}

static rueda_status answer(struct rueda_negotiator *self)
{
    struct rueda_wave *wave = &self->wave;
    struct rueda_wants mine = {.count = 1, .rank_count = 1};
    struct rueda_still still = {.what = mine.what,
                                .what_bytes = sizeof(mine.what)};
    struct rueda_answer *sum = wave->below;

    self->args.look(self->args.look_arg, &still);
    mine.ranks[0] = self->args.ranks[self->me];
    if (still.level < sum->level)
        sum->level = still.level;
    sum->is_same = sum->is_same && wave->answered > 0 &&
                   wave->answered_level == still.level &&
                   wave->answered_version == still.version;
    sum->sent += still.sent;
    sum->received += still.received;
    add_group(sum, &mine);
    wave->answered = wave->asked;
    wave->answered_version = still.version;
    wave->answered_level = still.level;
    if (rueda_is_coordinator(self))
        return conclude(self, sum);
    write_answer(self, sum);
    return RUEDA_OK;
}

static rueda_status look(struct rueda_negotiator *self)
{
    struct rueda_wave *wave = &self->wave;
    struct rueda_still still = {0};

    self->args.look(self->args.look_arg, &still);
    if (still.level != wave->level || still.version != wave->version) {
        wave->level = still.level;
        wave->version = still.version;
        wave->since_ns = self->now_ns;
    }
    if (still.level == RUEDA_STILL_NOT)
        return RUEDA_IN_PROGRESS;
    if (is_my_turn(self) && self->now_ns - wave->since_ns >= CHECK_NS)
        return answer(self);
    if (may_ask(self) && self->now_ns >= wave->ask_ns &&
        self->now_ns - wave->since_ns >= QUIET_NS)
        return ask(self);
    return RUEDA_IN_PROGRESS;
}

rueda_status rueda_still_check(struct rueda_negotiator *self,
                               struct rueda_text *error)
{
    struct rueda_wave *wave = &self->wave;

    if (self->args.look == NULL || self->size == 1)
        return RUEDA_IN_PROGRESS;
    if (wave->standstill != NULL) {
        if (self->now_ns < wave->leave_ns)
            return RUEDA_IN_PROGRESS;
        rueda_text_set(error, "%s", wave->standstill);
        return wave->standstill_status;
    }
    if (self->now_ns < wave->look_ns || (!is_my_turn(self) && !may_ask(self)))
        return RUEDA_IN_PROGRESS;
    wave->look_ns = self->now_ns + CHECK_NS;
    return look(self);
}

int64_t rueda_negotiator_look_ns(const struct rueda_negotiator *self)
{
    const struct rueda_wave *wave = &self->wave;

    if (self->args.look == NULL || self->size == 1 || self->is_ending)
        return INT64_MAX;
    if (wave->standstill != NULL)
        return wave->leave_ns;
    if (is_my_turn(self))
        return wave->look_ns;
    if (!may_ask(self))
        return INT64_MAX;
    return wave->ask_ns > wave->look_ns ? wave->ask_ns : wave->look_ns;
}

rueda_status rueda_negotiator_standstill(const struct rueda_negotiator *self,
                                         struct rueda_text *error)
{
    if (self->wave.standstill == NULL)
        return RUEDA_OK;
    rueda_text_set(error, "%s", self->wave.standstill);
    return self->wave.standstill_status;
}

void rueda_still_fini(struct rueda_negotiator *self)
{
    free(self->wave.below);
    free(self->wave.standstill);
}
