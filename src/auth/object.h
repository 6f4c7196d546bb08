/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seal of an object that ranks send each other: bytes which the receiver
 * will unpickle, so that they run code there. Data of a collective may travel
 * over streams without authentication, and through ranks in between; so an
 * object carries a proof of its own, from the rank that made it to the rank
 * that reads it.
 *
 * The sender sends a head of fixed length first, then the bytes:
 *
 *      at   bytes
 *       0       8   length of the object, little-endian
 *       8      32   MAC of the bytes
 *      40      32   MAC of the 40 bytes before
 *
 * Both MACs are BLAKE2b under the key of the job's objects, over a label, all
 * fields of struct rueda_object_id and the bytes. So an object is good for
 * one purpose, one sender, one process set, one name and one call only: it can
 * be neither changed, nor repeated, nor moved. The receiver knows the id of
 * the object that it waits for, and takes no other.
 *
 * Pure but for libsodium. Any thread.
 */
#ifndef RUEDA_AUTH_OBJECT_H
#define RUEDA_AUTH_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#include <rueda/rueda.h>

#include "auth/key.h"

#define RUEDA_OBJECT_HEAD_BYTES 72

/* Which object it is. */
struct rueda_object_id {
    uint32_t purpose;  /* a number for each kind of call */
    int32_t sender;    /* its rank in the job */
    int32_t set;       /* the process set */
    uint64_t sequence; /* of the call under this name, in this set */
    const char *name;
};

/*
 * The key for the objects of a job, from a secret that its ranks share and from
 * bytes that are new in each job. RUEDA_ERR_AUTH if secret is not present.
 */
rueda_status rueda_object_key(const struct rueda_key *secret, const void *fresh,
                              size_t fresh_bytes, struct rueda_key *out_key);

/* Write the head of these bytes. RUEDA_ERR_AUTH if there is no key. */
rueda_status rueda_object_seal(const struct rueda_key *key,
                               const struct rueda_object_id *id,
                               const void *bytes, size_t len,
                               unsigned char out_head[RUEDA_OBJECT_HEAD_BYTES]);

/* Read how long the object of this head is. RUEDA_ERR_AUTH if it is not the
 * head that the sender has made for this id. */
rueda_status rueda_object_length(
    const struct rueda_key *key, const struct rueda_object_id *id,
    const unsigned char head[RUEDA_OBJECT_HEAD_BYTES], uint64_t *out_len);

/* Are these the bytes of the head? RUEDA_OK, or RUEDA_ERR_AUTH: do not look at
 * them. */
rueda_status
rueda_object_check(const struct rueda_key *key,
                   const struct rueda_object_id *id,
                   const unsigned char head[RUEDA_OBJECT_HEAD_BYTES],
                   const void *bytes, size_t len);

#endif /* RUEDA_AUTH_OBJECT_H */
