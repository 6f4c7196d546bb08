/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a negotiator; only for src/negotiate. */
#ifndef RUEDA_NEGOTIATE_STATE_H
#define RUEDA_NEGOTIATE_STATE_H

#include "fuse/rounds.h"
#include "negotiate/entry.h"
#include "negotiate/negotiator.h"
#include "negotiate/talk.h"
#include "negotiate/tree.h"
#include "trace/timeline.h"

/* What goes up the tree. */
enum rueda_up {
    RUEDA_UP_READY = 1,  /* id, how many: all members below have these */
    RUEDA_UP_READY_SOME, /* id, members: those that have not joined have it */
    RUEDA_UP_FULL,       /* members, voices (1 or 2), each: rank, request */
    RUEDA_UP_JOINED,     /* rank */
    RUEDA_UP_CARGO,      /* rank, bytes for the coordinator */
    RUEDA_UP_STALLED,    /* label, age, ranks that lack it */
    RUEDA_UP_MISMATCH,   /* label, applied, words: it mismatches */
    RUEDA_UP_BLANK,      /* label, members: they lack what was called */
    RUEDA_UP_STILL,      /* wave, answer of all below (still.c) */
};

/* What comes down: the log. */
enum rueda_down {
    RUEDA_DOWN_RUN = 1,    /* live, items */
    RUEDA_DOWN_ERROR,      /* label, words */
    RUEDA_DOWN_JOINED,     /* the last rank */
    RUEDA_DOWN_RETIRE,     /* id: is not used any more */
    RUEDA_DOWN_CALL,       /* label: members that lack it report that */
    RUEDA_DOWN_WORD,       /* a number for the callers of all members */
    RUEDA_DOWN_ASK,        /* wave: members that wait report that (still.c) */
    RUEDA_DOWN_STANDSTILL, /* is it a deadlock, words: the job ends so */
};

/* Items of one batch: more take as long to pack as several batches. */
#define RUEDA_ITEMS_MOST RUEDA_ROUND_MOST

/* The items of RUEDA_DOWN_RUN. */
enum rueda_item {
    RUEDA_ITEM_ID = 1, /* id, how many */
    RUEDA_ITEM_NEW,    /* id, request: is the id's from now on */
    RUEDA_ITEM_PLAIN,  /* request */
};

/* A decision in the queue, and copies of requests that are not mine. */
struct rueda_decided {
    struct rueda_decision decision; /* first */
    struct rueda_decided *next;
    int room; /* of items */
    struct rueda_request *copies;
    char *words;
};

/* Several tensors that run only together. */
struct rueda_group {
    struct rueda_label label; /* by number */
    uint32_t want;
    uint32_t have;
    struct rueda_entry *held; /* ready, by next_ready, latest first */
};

/* An error of the log, which not all may know of yet. */
struct rueda_refused {
    uint64_t hash; /* of the label */
    uint64_t index;
};

/* What only the coordinator knows. */
struct rueda_coordinator {
    struct rueda_out log;         /* the entry that is being written */
    struct rueda_entry *complete; /* all members have them, by arrival; to be
                                     judged, or of a group */
    struct rueda_entry *last_complete;
    struct rueda_entry *ready; /* to run, by priority, then by arrival */
    struct rueda_entry *last_ready;
    struct rueda_labels groups;
    bool has_mismatch; /* some are to be called, or refused */
    int64_t call_ns;   /* when more are to be called; INT64_MAX: never */
    struct rueda_refused *refusals;
    int refusal_count;
    int running; /* decided and not done */

    /* Ids. */
    int live_count;
    struct rueda_entry *oldest; /* live ones by last use */
    struct rueda_entry *newest;
    int used;       /* ids below this have been given out */
    int *retired;   /* a ring of ids that wait to be used again */
    uint64_t *when; /* [id] the index of the log at which it was retired */
    int retired_first;
    int retired_count;
    int last_joined;
};

/* Members that wait for the same, some of them by their ranks in the job. */
#define RUEDA_WANTS_BYTES 320
#define RUEDA_WANTS_RANKS 8
struct rueda_wants {
    char what[RUEDA_WANTS_BYTES];
    int count;
    int rank_count;
    int ranks[RUEDA_WANTS_RANKS];
};

/* What some members have answered to a wave. */
#define RUEDA_ANSWER_GROUPS 8
struct rueda_answer {
    rueda_still_level level; /* the least */
    bool is_same;            /* none has changed since the wave before */
    uint64_t sent;           /* messages of other sets, the sum */
    uint64_t received;
    int others; /* members that wait for what is in no group */
    int group_count;
    struct rueda_wants groups[RUEDA_ANSWER_GROUPS];
};

/* Waves of questions whether members wait (still.c). */
struct rueda_wave {
    uint64_t asked;    /* the latest that I know; 0: none */
    uint64_t answered; /* the latest that I have answered */
    uint64_t answered_version;
    rueda_still_level answered_level;
    uint32_t heard;             /* bit i: child i has answered `asked` */
    struct rueda_answer *below; /* what children have; NULL before the first */

    /* What I saw of myself, since when, and when I look again. */
    rueda_still_level level;
    uint64_t version;
    int64_t since_ns;
    int64_t look_ns;

    char *standstill; /* words, or NULL */
    rueda_status standstill_status;
    int64_t leave_ns; /* it is carried out then */

    /* The coordinator's: */
    int64_t ask_ns;  /* not before this */
    int64_t same_ns; /* when the first wave was complete of those since which
                        nothing has changed */
};

struct rueda_negotiator {
    struct rueda_negotiator_args args;
    int me;
    int size;
    struct rueda_tree tree;
    bool is_ending;           /* turns only throw away what comes */
    struct rueda_talk *talks; /* [child_count], then my parent */

    struct rueda_entries entries;
    struct rueda_entry *latest; /* that I submitted, or NULL; perhaps it is
                                   spare by now, but never freed */
    struct rueda_entry **ids;   /* [id_count] or NULL */
    int id_count;
    uint64_t applied; /* entries of the log that I know */
    uint64_t child_applied[RUEDA_TREE_CHILDREN]; /* and all below each child */

    /* Members that have joined. */
    void *my_join;   /* NULL: I have not */
    uint64_t number; /* after those of all operations of the log */
    int child_joined[RUEDA_TREE_CHILDREN];
    int joined;       /* below and with me */
    uint64_t settled; /* bits of `from` that need not be waited for */
    bool *is_joined;  /* [size], or NULL as long as none ever has */

    struct rueda_decided *first; /* decided and not done */
    struct rueda_decided *last;
    struct rueda_decided *spare;
    int undecided; /* of mine */

    uint64_t *past; /* numbers that have failed before I came to them */
    int past_count;

    struct rueda_timeline *timeline; /* or NULL */
    int64_t now_ns;                  /* of this turn */
    int64_t next_check_ns; /* INT64_MAX: I have no children, or it is off */
    int64_t warned_ns;
    struct rueda_wave wave;
    struct rueda_coordinator root; /* if I am it */
};

static inline bool rueda_is_coordinator(const struct rueda_negotiator *self)
{
    return self->tree.parent < 0;
}

/* The conversation with my parent, where there is one. */
static inline struct rueda_talk *rueda_up_talk(struct rueda_negotiator *self)
{
    return &self->talks[self->tree.child_count];
}

static inline int64_t rueda_negotiator_now(const struct rueda_negotiator *self)
{
    return self->args.now_ns(self->args.now_arg);
}

/* Send what is written before the turn ends; the end of the turn reports any
 * failure. */
void rueda_negotiator_send(struct rueda_negotiator *self);

/* Up to which index this member and all below it have read the log. */
uint64_t rueda_negotiator_applied(const struct rueda_negotiator *self);

/* Take in one of mine, which counts as undecided already. */
void rueda_negotiator_enter(struct rueda_negotiator *self,
                            struct rueda_entry *entry,
                            const struct rueda_request *request, void *mine);

/* ---- ready.c: what members have, on its way up -------------------------- */

/* A message from child `index`. */
rueda_status rueda_ready_hear(struct rueda_negotiator *self, int index,
                              struct rueda_in *in);

/* A member has joined. */
rueda_status rueda_ready_join(struct rueda_negotiator *self, int child,
                              int rank);

/* Do this member and all below it have the operation? Then report it to the
 * parent; on the coordinator it is complete. */
void rueda_ready_check(struct rueda_negotiator *self,
                       struct rueda_entry *entry);

/* ---- cargo.c: bytes for the coordinator's caller, its word, and clocks ----
 */

rueda_status rueda_cargo_hear(struct rueda_negotiator *self, int index,
                              struct rueda_in *in);

/* RUEDA_DOWN_WORD. */
rueda_status rueda_word_follow(struct rueda_negotiator *self,
                               struct rueda_in *in);

/* ---- log.c: what is decided, on its way down ---------------------------- */

/* Follow entries of the log, to the end. */
rueda_status rueda_negotiator_log_follow(struct rueda_negotiator *self,
                                         struct rueda_in *in);

/* One of mine has failed; queue that as a decision. RUEDA_ERR_NOMEM. */
rueda_status rueda_negotiator_log_fail(struct rueda_negotiator *self,
                                       void *mine,
                                       const struct rueda_request *request,
                                       const char *words);

void rueda_decided_free(struct rueda_decided *decided);

/* ---- coordinator.c ------------------------------------------------------ */

void rueda_coordinator_fini(struct rueda_negotiator *self);

/* Every member has it, or has joined: to be decided in the next turn. */
void rueda_coordinator_ready(struct rueda_negotiator *self,
                             struct rueda_entry *entry);

/* Decide what can be. RUEDA_OK if anything was. */
rueda_status rueda_coordinator_decide(struct rueda_negotiator *self);

/* Write an error of it to the log. The entry is gone then. */
rueda_status rueda_coordinator_refuse(struct rueda_negotiator *self,
                                      struct rueda_entry *entry,
                                      const char *words);

/* Let it wait no longer for others of its group; false: it did not wait. */
bool rueda_coordinator_release(struct rueda_negotiator *self,
                               struct rueda_entry *entry);

/* ---- mismatch.c -------------------------------------------------------- */

/* One of a group of mine has failed with these words, and so do the others. */
rueda_status rueda_mismatch_group(struct rueda_negotiator *self, uint64_t group,
                                  const char *words);

/* RUEDA_UP_MISMATCH, from below. */
rueda_status rueda_mismatch_hear(struct rueda_negotiator *self,
                                 struct rueda_in *in);

/* The coordinator: call or refuse the operations that were reported. */
rueda_status rueda_mismatch_decide(struct rueda_negotiator *self);

/* The coordinator: all members have joined, so none answers any more. */
rueda_status rueda_mismatch_end_round(struct rueda_negotiator *self);

/* The coordinator has written an error of what has this hash. */
rueda_status rueda_mismatch_note_refusal(struct rueda_negotiator *self,
                                         uint64_t hash);

/* RUEDA_DOWN_CALL. */
rueda_status rueda_mismatch_follow(struct rueda_negotiator *self,
                                   struct rueda_in *in);

bool rueda_mismatch_is_called(const struct rueda_entry *entry);

/* An operation without a name has failed that this member has not reached. */
rueda_status rueda_mismatch_note_number(struct rueda_negotiator *self,
                                        uint64_t number);

/* Is it one of those? Then it is forgotten. */
bool rueda_mismatch_is_past(struct rueda_negotiator *self, uint64_t number);

/* It is, and this member has submitted it now. */
rueda_status rueda_mismatch_submit_past(struct rueda_negotiator *self,
                                        struct rueda_entry *entry);

/* An operation of mine that was called before this member had it. */
rueda_status rueda_mismatch_submit(struct rueda_negotiator *self,
                                   struct rueda_entry *entry,
                                   const struct rueda_request *request,
                                   void *mine);

/* What was called has failed with these words: an operation of that name that
 * was submitted since begins now. */
rueda_status rueda_mismatch_submit_late(struct rueda_negotiator *self,
                                        const struct rueda_mismatch *mismatch,
                                        const char *words);

/* ---- ids.c: numbers for names, given out by the coordinator ------------ */

rueda_status rueda_ids_init(struct rueda_negotiator *self);
void rueda_ids_fini(struct rueda_negotiator *self);

/* Write an item of a RUN for this entry, whose first voice is what runs. */
rueda_status rueda_ids_write(struct rueda_negotiator *self,
                             struct rueda_entry *entry, struct rueda_out *items,
                             struct rueda_id_run *run);

/* Finish the entry of the log that is written: send and follow it. */
rueda_status rueda_coordinator_append(struct rueda_negotiator *self);

/* ---- stall.c: operations that have waited for long ---------------------- */

void rueda_stall_begin(struct rueda_negotiator *self);

/* A child reports which members below it are missing. */

rueda_status rueda_stall_hear(struct rueda_negotiator *self, int index,
                              struct rueda_in *in);

/* If it is time, check: report to the parent, or warn; RUEDA_ERR_STALLED with
 * words if it was too long. RUEDA_IN_PROGRESS: there is nothing to report. */
rueda_status rueda_stall_check(struct rueda_negotiator *self,
                               struct rueda_text *error);

/* ---- still.c: members that all wait -------------------------------------- */

/* RUEDA_UP_STILL, RUEDA_DOWN_ASK, RUEDA_DOWN_STANDSTILL. */
rueda_status rueda_still_hear(struct rueda_negotiator *self, int index,
                              struct rueda_in *in);
rueda_status rueda_still_follow_ask(struct rueda_negotiator *self,
                                    struct rueda_in *in);
rueda_status rueda_still_follow_standstill(struct rueda_negotiator *self,
                                           struct rueda_in *in);

/* If it is time, check: answer, or ask. RUEDA_OK if anything was written,
 * RUEDA_IN_PROGRESS if not; the status of a standstill, with its words. */
rueda_status rueda_still_check(struct rueda_negotiator *self,
                               struct rueda_text *error);

void rueda_still_fini(struct rueda_negotiator *self);

#endif /* RUEDA_NEGOTIATE_STATE_H */
