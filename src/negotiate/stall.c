/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that some members have and others do not. Every inner node of the
 * tree checks periodically. For operations that have waited for half of the
 * time until a warning it reports the missing members to its parent, so that
 * the coordinator knows them when the warning is due. A subtree that reports
 * nothing is missing as a whole.
 */
#define RUEDA_LOG_TAG "negotiate"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/least.h"
#include "base/log.h"
#include "negotiate/state.h"

/* Checks in the time until a warning, or until the end where there is none; and
 * how late one may be, at least, until it is clear that this rank did not run.
 */
#define CHECKS        4
#define LATE_LEAST_NS ((int64_t)200000000)

/* Operations that are reported at once, and names of them for each rank. */
#define MOST_ENTRIES 256
#define MOST_NAMES   6

/* Beyond this a list names ranks only, and so do the words of the end. */
#define MOST_LIST_BYTES ((size_t)16 << 10)
#define MOST_END_BYTES  512

/* Nothing waits for longer than a hundred years. */
#define MOST_AGE_NS ((uint64_t)3153600000u * 1000000000u)

/* How long an operation may wait until it causes a warning, or an end without
 * one; 0: for ever. */
static int64_t patience_ns(const struct rueda_negotiator *self)
{
    return self->args.stall_warn_ns > 0 ? self->args.stall_warn_ns
                                        : self->args.stall_end_ns;
}

void rueda_stall_begin(struct rueda_negotiator *self)
{
    if (patience_ns(self) > 0 && self->tree.child_count > 0)
        self->next_check_ns =
            rueda_negotiator_now(self) + patience_ns(self) / CHECKS;
}

/* ---- Missing members ---------------------------------------------------- */

struct missing {
    int *members; /* [size] */
    int count;
};

static const struct rueda_absent *told_by(const struct rueda_entry *entry,
                                          int child)
{
    const struct rueda_absent *absent = entry->absent;

    while (absent != NULL && absent->child != child)
        absent = absent->next;
    return absent;
}

static int member_of(const struct rueda_negotiator *self, int rank)
{
    for (int i = 0; i < self->size; i++)
        if (self->args.ranks[i] == rank)
            return i;
    return -1;
}

static bool has_joined(const struct rueda_negotiator *self, int member)
{
    return self->is_joined != NULL && self->is_joined[member];
}

/* Those with and below a child. */
static void add_child(const struct rueda_negotiator *self,
                      const struct rueda_entry *entry, int child,
                      struct missing *out)
{
    const struct rueda_absent *absent = told_by(entry, child);
    int *below = out->members + out->count;
    int count;

    if (absent != NULL) {
        for (int i = 0; i < absent->count && out->count < self->size; i++) {
            int member = member_of(self, absent->ranks[i]);

            if (member >= 0 && !has_joined(self, member))
                out->members[out->count++] = member;
        }
        return;
    }
    count = rueda_tree_below(self->tree.children[child], self->size,
                             self->args.hosts, below);
    for (int i = 0; i < count; i++)
        if (!has_joined(self, below[i]))
            out->members[out->count++] = below[i];
}

static void find_missing(const struct rueda_negotiator *self,
                         const struct rueda_entry *entry, struct missing *out)
{
    const uint64_t there = entry->from | self->settled;

    out->count = 0;
    if ((there & RUEDA_FROM_SELF) == 0)
        out->members[out->count++] = self->me;
    for (int i = 0; i < self->tree.child_count; i++)
        if ((there & (uint64_t)1 << i) == 0)
            add_child(self, entry, i, out);
}

/* ---- Reporting to my parent --------------------------------------------- */

/* Its kind, as a member that has it says, or -1. */
static int kind_of(const struct rueda_entry *entry)
{
    if (entry->first.said.request != NULL)
        return entry->first.said.request->kind;
    return entry->absent != NULL ? entry->absent->kind : -1;
}

static void tell_parent(struct rueda_negotiator *self,
                        const struct rueda_entry *entry,
                        const struct missing *missing, int64_t now_ns)
{
    struct rueda_out *out = &rueda_up_talk(self)->out;

    rueda_out_u8(out, RUEDA_UP_STALLED);
    rueda_out_label(out, entry->label.name, entry->label.number);
    rueda_out_u32(out, (uint32_t)kind_of(entry));
    rueda_out_u64(out, (uint64_t)(now_ns - entry->since_ns));
    rueda_out_u32(out, (uint32_t)missing->count);
    for (int i = 0; i < missing->count; i++)
        rueda_out_u32(out, (uint32_t)self->args.ranks[missing->members[i]]);
}

/* Replace what the child has reported before. */
static rueda_status keep(struct rueda_entry *entry, int child, int kind,
                         struct rueda_in *in, uint32_t count)
{
    struct rueda_absent *absent =
        malloc(sizeof(*absent) + count * sizeof(absent->ranks[0]));
    struct rueda_absent **at = &entry->absent;

    if (absent == NULL)
        return RUEDA_ERR_NOMEM;
    absent->child = child;
    absent->kind = kind;
    absent->count = (int)count;
    for (uint32_t i = 0; i < count; i++)
        absent->ranks[i] = (int)rueda_in_u32(in);
    while (*at != NULL && (*at)->child != child)
        at = &(*at)->next;
    absent->next = *at != NULL ? (*at)->next : NULL;
    free(*at);
    *at = absent;
    return RUEDA_OK;
}

rueda_status rueda_stall_hear(struct rueda_negotiator *self, int index,
                              struct rueda_in *in)
{
    const int64_t now_ns = self->now_ns;
    struct rueda_request label;
    struct rueda_entry *entry;
    rueda_status status;
    uint32_t count;
    uint64_t age;
    int kind;

    rueda_in_label(in, &label);
    kind = (int)rueda_in_u32(in);
    age = rueda_in_u64(in);
    count = rueda_in_u32(in);
    if (in->has_failed || age > MOST_AGE_NS || kind < -1 || kind > UINT8_MAX ||
        count > (uint32_t)self->tree.sizes[index] ||
        count * sizeof(uint32_t) > (size_t)(in->end - in->at)) {
        free((char *)label.name);
        return RUEDA_ERR_IO;
    }
    /* Others may have it where I have not heard of it yet. */
    entry = rueda_entry_get(&self->entries, &label);
    free((char *)label.name);
    if (entry == NULL)
        return RUEDA_ERR_NOMEM;
    status = keep(entry, index, kind, in, count);
    rueda_entry_begin(&self->entries, entry);
    if (entry->since_ns < 0 || entry->since_ns > now_ns - (int64_t)age)
        entry->since_ns = now_ns - (int64_t)age;
    return status;
}

/* ---- Warning ------------------------------------------------------------ */

/* The operations that one member lacks. */
struct lack {
    int count;
    const struct rueda_entry *entries[MOST_NAMES];
    bool is_over; /* for longer than is allowed */
};

static void write_name(struct rueda_out *text, const struct rueda_entry *entry)
{
    const int kind = kind_of(entry);
    char words[300];
    int len;

    if (entry->label.name != NULL)
        len = snprintf(words, sizeof(words), "%.256s", entry->label.name);
    else
        len = snprintf(words, sizeof(words),
                       "%s%snumber %" PRIu64 " without a name",
                       kind >= 0 ? rueda_kind_str((rueda_kind)kind) : "",
                       kind >= 0 ? " " : "", entry->label.number);
    rueda_out_bytes(text, words, (size_t)len);
}

/* What the process of a rank does, where that can be seen. */
static void write_state(const struct rueda_negotiator *self,
                        struct rueda_out *text, int rank)
{
    struct rueda_text words = {{0}};

    if (self->args.tell_rank == NULL)
        return;
    self->args.tell_rank(self->args.look_arg, rank, &words);
    if (!rueda_text_is_empty(&words)) {
        rueda_out_bytes(text, " ", 1);
        rueda_out_bytes(text, words.chars, strlen(words.chars));
    }
}

/* "3: [grad.1, grad.2 ...]", or, after very many of those, "3: [2 tensors]" */
static void write_lack(const struct rueda_negotiator *self,
                       struct rueda_out *text, int rank,
                       const struct lack *lack)
{
    char words[48];
    int len = snprintf(words, sizeof(words), "\n%d%s: [", rank,
                       lack->is_over ? "!" : "");

    rueda_out_bytes(text, words, (size_t)len);
    if (text->len > MOST_LIST_BYTES) {
        len = snprintf(words, sizeof(words), "%d tensors]", lack->count);
        rueda_out_bytes(text, words, (size_t)len);
        return;
    }
    for (int i = 0; i < lack->count && i < MOST_NAMES; i++) {
        if (i > 0)
            rueda_out_bytes(text, ", ", 2);
        write_name(text, lack->entries[i]);
    }
    if (lack->count > MOST_NAMES)
        rueda_out_bytes(text, " ...", 4);
    rueda_out_bytes(text, "]", 1);
    write_state(self, text, rank);
}

static void add_lack(struct lack *lacks, const struct missing *missing,
                     const struct rueda_entry *entry, bool is_over)
{
    for (int i = 0; i < missing->count; i++) {
        struct lack *lack = &lacks[missing->members[i]];

        if (lack->count < MOST_NAMES)
            lack->entries[lack->count] = entry;
        lack->count++;
        lack->is_over = lack->is_over || is_over;
    }
}

/* What shows the first line of an error shows all ranks then. */
static void add_in_one_line(struct rueda_text *error,
                            const struct rueda_out *names)
{
    for (size_t i = 0; i < names->len; i++) {
        if (names->bytes[i] != '\n')
            rueda_text_add(error, "%c", names->bytes[i]);
        else
            rueda_text_add(error, i > 0 ? ", " : " ");
    }
}

/* Write why the job ends, with the names of operations where they fit, because
 * the message goes to all ranks; else all names are in the log. */
static void say_end(const struct rueda_negotiator *self,
                    const struct lack *lacks, const struct rueda_out *names,
                    struct rueda_text *error)
{
    rueda_text_set(error,
                   "tensors have waited for more than %g seconds for ranks "
                   "that did not submit them, so the job ends "
                   "(RUEDA_STALL_SHUTDOWN). Missing ranks:",
                   (double)self->args.stall_end_ns / 1e9);
    if (names->len <= MOST_END_BYTES) {
        add_in_one_line(error, names);
        return;
    }
    log_warn("ranks, and tensors that they have not submitted:%.*s",
             (int)names->len, (const char *)names->bytes);
    for (int i = 0; i < self->size; i++)
        if (lacks[i].count > 0)
            rueda_text_add(error, " %d", self->args.ranks[i]);
}

static rueda_status say(struct rueda_negotiator *self, const struct lack *lacks,
                        bool is_over, struct rueda_text *error)
{
    const double seconds = (double)self->args.stall_warn_ns / 1e9;
    struct rueda_out text = {0};

    for (int i = 0; i < self->size; i++)
        if (lacks[i].count > 0)
            write_lack(self, &text, self->args.ranks[i], &lacks[i]);
    if (text.has_failed) {
        rueda_out_fini(&text);
        return RUEDA_ERR_NOMEM;
    }
    if (is_over) {
        say_end(self, lacks, &text, error);
    } else {
        log_warn("one or more tensors were submitted to be reduced, gathered "
                 "or broadcast by some ranks and wait for the others for more "
                 "than %g seconds. Either ranks submit different tensors, or "
                 "some compute for long or hang (RUEDA_STALL_WARN).\nMissing "
                 "ranks:%.*s",
                 seconds, (int)text.len, (const char *)text.bytes);
    }
    rueda_out_fini(&text);
    return is_over ? RUEDA_ERR_STALLED : RUEDA_OK;
}

/* ---- Checking ----------------------------------------------------------- */

/* The clock is read at checks only, so time counts from the first one. */
static bool is_due(struct rueda_entry *entry, int64_t now_ns, int64_t limit_ns)
{
    if (entry->since_ns < 0)
        entry->since_ns = now_ns;
    return limit_ns > 0 && now_ns - entry->since_ns >= limit_ns;
}

static rueda_status report(struct rueda_negotiator *self,
                           struct missing *missing, int64_t now_ns)
{
    rueda_status status = RUEDA_IN_PROGRESS;
    int count = 0;

    for (struct rueda_entry *entry = self->entries.first;
         entry != NULL && count < MOST_ENTRIES; entry = entry->next) {
        if (entry->is_told || !is_due(entry, now_ns, patience_ns(self) / 2))
            continue;
        find_missing(self, entry, missing);
        tell_parent(self, entry, missing, now_ns);
        status = RUEDA_OK;
        count++;
    }
    return status;
}

/* Is there a stall that was not reported before, or is it time to repeat? */
static bool is_time_to_warn(const struct rueda_negotiator *self, int64_t now_ns,
                            bool is_new)
{
    const int64_t since = now_ns - self->warned_ns;

    return since >= self->args.stall_warn_ns &&
           (is_new || since >= self->args.stall_repeat_ns);
}

static void mark_warned(struct rueda_negotiator *self)
{
    for (struct rueda_entry *at = self->entries.first; at; at = at->next)
        at->is_warned =
            at->is_warned || is_due(at, self->now_ns, patience_ns(self));
}

static rueda_status warn(struct rueda_negotiator *self, struct missing *missing,
                         int64_t now_ns, struct rueda_text *error)
{
    struct lack *lacks = calloc((size_t)self->size, sizeof(*lacks));
    rueda_status status = RUEDA_IN_PROGRESS;
    bool is_over = false;
    bool is_new = false;
    int count = 0;

    if (lacks == NULL)
        return RUEDA_ERR_NOMEM;
    for (struct rueda_entry *entry = self->entries.first;
         entry != NULL && count < MOST_ENTRIES; entry = entry->next) {
        bool is_old = is_due(entry, now_ns, self->args.stall_end_ns);

        if (entry->is_told || !is_due(entry, now_ns, patience_ns(self)))
            continue;
        find_missing(self, entry, missing);
        add_lack(lacks, missing, entry, is_old);
        is_over = is_over || is_old;
        is_new = is_new || !entry->is_warned;
        count++;
    }
    if (count > 0 && (is_over || is_time_to_warn(self, now_ns, is_new))) {
        self->warned_ns = now_ns;
        mark_warned(self);
        status = say(self, lacks, is_over, error);
    }
    free(lacks);
    return status;
}

/* While this rank did not run, because it was stopped itself or the machine
 * was, it heard from no member: that time does not count. */
static void leave_out_absence(struct rueda_negotiator *self, int64_t now_ns)
{
    const int64_t late_ns = now_ns - self->next_check_ns;

    if (late_ns < LATE_LEAST_NS || late_ns < patience_ns(self) / CHECKS)
        return;
    for (struct rueda_entry *at = self->entries.first; at; at = at->next)
        if (at->since_ns >= 0)
            at->since_ns = rueda_sooner(now_ns, at->since_ns + late_ns);
}

rueda_status rueda_stall_check(struct rueda_negotiator *self,
                               struct rueda_text *error)
{
    struct missing missing;
    rueda_status status;
    int64_t now_ns;

    if (self->next_check_ns == INT64_MAX)
        return RUEDA_IN_PROGRESS;
    now_ns = self->now_ns;
    if (now_ns < self->next_check_ns)
        return RUEDA_IN_PROGRESS;
    leave_out_absence(self, now_ns);
    self->next_check_ns = now_ns + patience_ns(self) / CHECKS;
    missing.members = malloc((size_t)self->size * 2 * sizeof(int));
    if (missing.members == NULL)
        return RUEDA_ERR_NOMEM;
    status = rueda_is_coordinator(self) ? warn(self, &missing, now_ns, error)
                                        : report(self, &missing, now_ns);
    free(missing.members);
    return status;
}
