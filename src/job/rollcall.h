/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All ranks publish in the store where they are, and learn where all others
 * are. Keys:
 *
 *      rank/<r>   where rank r can be reached, after its length in two bytes,
 *                 the process sets that it starts with (set_text.h), after
 *                 their length in one byte, its RUEDA_ENCRYPT in one byte, and
 *                 what it says of itself (topology.h); gone with its session
 *
 *      job        from rank 0: a nonce, settings that are to be the same on
 *                 all hosts, the table, what it decides for all, and where all
 *                 can be reached; or why there is no job
 *
 *      heard      how many have read that
 *
 * Once "job" is there the store takes no more ranks: a rank that comes then has
 * found the store of an earlier job and waits for the next.
 */
#ifndef RUEDA_JOB_ROLLCALL_H
#define RUEDA_JOB_ROLLCALL_H

#include <rueda/rueda.h>

#include "base/text.h"
#include "job/business_card.h"
#include "job/encryption.h"
#include "job/seat.h"
#include "job/set_text.h"
#include "job/store/client.h"
#include "job/topology.h"

/* How a rank can be reached, in words of its own, with their end. */
#define RUEDA_CONTACT_BYTES 512

/* What rank 0 decides for all, as text, with its end. */
#define RUEDA_ROLLCALL_DECISION_BYTES 1040

/* Settings by which ranks of all hosts work together: rank 0's. */
struct rueda_rollcall_settings {
    uint64_t fusion_bytes;
    uint32_t cache_capacity;
};

struct rueda_rollcall_args {
    const struct rueda_seat *seat;
    struct rueda_rollcall_settings settings; /* they count in rank 0 */
    unsigned life;       /* before all keys, "<life>/", unless it is 0 */
    const char *contact; /* at most RUEDA_CONTACT_BYTES; "": not at all */
    const char *sets;    /* rueda_set_word(): the same on all ranks, or there is
                            no job */
    rueda_config_encrypt encrypt; /* this rank's setting */
    int64_t deadline_ns;

    /* Rank 0: write what it decides for all, once all have reported their
     * setting of encryption. If it fails, all ranks get its message and there
     * is no job. NULL: nothing. */
    rueda_status (*decide)(void *arg, const struct rueda_encrypt_vote *vote,
                           char out[RUEDA_ROLLCALL_DECISION_BYTES],
                           struct rueda_text *error);
    void *arg;
};

struct rueda_rollcall {
    unsigned char nonce[RUEDA_NONCE_BYTES];  /* the same in all ranks */
    struct rueda_rollcall_settings settings; /* the same */
    struct rueda_topology *topology;
    char decision[RUEDA_ROLLCALL_DECISION_BYTES]; /* of rank 0 */
    char *contacts; /* of all ranks, one after another, each with its end */
    size_t contacts_bytes;
};

/* Blocks until all ranks have come, at most until the deadline. On failure
 * error names the missing ranks. Undo with rueda_rollcall_fini(). */
rueda_status rueda_rollcall(struct rueda_client *client,
                            const struct rueda_rollcall_args *args,
                            struct rueda_rollcall *out,
                            struct rueda_text *error);

/* What a rank says of itself at the store. */
struct rueda_self {
    struct rueda_topology_record record;
    const char *contact; /* lies in what was read, and has no end there */
    size_t contact_bytes;
    char sets[RUEDA_SET_WORD_BYTES];
    rueda_config_encrypt encrypt;
};

/* The most bytes that this can take. */
#define RUEDA_SELF_BYTES                                                       \
    (2 + RUEDA_CONTACT_BYTES + 1 + RUEDA_SET_WORD_BYTES + 1 +                  \
     RUEDA_TOPOLOGY_RECORD_BYTES)

/* As bytes; returns how many of out are used. Pure. */
size_t rueda_rollcall_write_rank(const struct rueda_self *self,
                                 unsigned char out[RUEDA_SELF_BYTES]);

/* The reverse. RUEDA_ERR_INVALID if it makes no sense. Pure. */
rueda_status rueda_rollcall_read_rank(const void *said, size_t bytes,
                                      struct rueda_self *out);

/*
 * What rank 0 has announced, as the others read it; size is the number of ranks
 * that there must be. Words in place of a table are rank 0's reason: its status
 * is returned, which need not be one that we know. RUEDA_ERR_INVALID if it
 * makes no sense. Pure.
 */
rueda_status rueda_rollcall_read(const void *announced, size_t bytes, int size,
                                 struct rueda_rollcall *out,
                                 struct rueda_text *error);

void rueda_rollcall_fini(struct rueda_rollcall *call);

#endif /* RUEDA_JOB_ROLLCALL_H */
