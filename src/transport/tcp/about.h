/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two ends of a connection say about themselves inside the handshake,
 * which authenticates it, and what they agree on. Numbers are little-endian:
 *
 *      at   bytes
 *       0       4   rank
 *       4       4   number of ranks
 *       8       8   job: a random number that its ranks share
 *      16       1   what the connection is for
 *      17       1   wish for encryption
 *      18       4   what each cipher costs this end, 0: it has none
 *      22       2   zero
 *
 * An address may lead to a rank of another job that has the same key; the
 * number of the job tells them apart.
 *
 * Each end wishes by its own setting and by the address that it sees the other
 * at. They may differ in both: addresses are translated on the way, and
 * settings belong to a host. So both say what they wish, and both come to the
 * same end:
 *
 *                 FORBID    ALLOW    WANT     INSIST   PROVE
 *      FORBID     plain     plain    plain    refused  refused
 *      ALLOW      plain     plain    sealed   sealed   refused
 *      WANT       plain     sealed   sealed   sealed   refused
 *      INSIST     refused   sealed   sealed   sealed   refused
 *      PROVE      refused   refused  refused  refused  proven
 *
 * Where rank 0 has decided for the job (job/encryption.h) all ranks wish the
 * same: FORBID, INSIST or PROVE; so a stream that differs is refused.
 *
 * Both also say how fast their ciphers are (auth/cipher.h), and take the one
 * that costs the slower end least.
 *
 * Pure; any thread.
 */
#ifndef RUEDA_TRANSPORT_TCP_ABOUT_H
#define RUEDA_TRANSPORT_TCP_ABOUT_H

#include <rueda/rueda.h>

#include "auth/cipher.h"
#include "auth/handshake.h"
#include "base/config.h"
#include "base/text.h"

#define RUEDA_TCP_ABOUT_BYTES 24

typedef enum rueda_tcp_purpose {
    RUEDA_TCP_FOR_STREAM = 1, /* frames between two ranks */
    RUEDA_TCP_FOR_PULSE = 2,  /* idle: tells whether the host is there */
} rueda_tcp_purpose;

typedef enum rueda_tcp_wish {
    RUEDA_TCP_FORBID = 1, /* RUEDA_ENCRYPT=never */
    RUEDA_TCP_ALLOW = 2,  /* auto, and the peer is near */
    RUEDA_TCP_WANT = 3,   /* auto, and the peer is not */
    RUEDA_TCP_INSIST = 4, /* always */
    RUEDA_TCP_PROVE = 5,  /* authenticate */
} rueda_tcp_wish;

/* How the frames of a stream are protected (sealing.h). */
typedef enum rueda_tcp_shield {
    RUEDA_TCP_PLAIN,
    RUEDA_TCP_PROVEN,
    RUEDA_TCP_SEALED,
} rueda_tcp_shield;

/* "plain", "proven" or "sealed" */
const char *rueda_tcp_shield_str(rueda_tcp_shield shield);

struct rueda_tcp_protection {
    rueda_tcp_shield shield;
    rueda_cipher_kind cipher;
};

struct rueda_tcp_about {
    int rank;
    int size;
    uint64_t job;
    rueda_tcp_purpose purpose;
    rueda_tcp_wish wish;
    uint16_t costs[RUEDA_CIPHER_KINDS];
};

/* What a connection is for, in the words of the handshake: ranks listen for
 * both purposes at once. */
unsigned rueda_tcp_purpose_of(rueda_handshake_role role,
                              rueda_tcp_purpose purpose);

/* What an end with this setting wishes of a peer that is near (os/address.h),
 * or not. */
rueda_tcp_wish rueda_tcp_wish_of(rueda_config_encrypt setting, bool is_near);

void rueda_tcp_about_encode(const struct rueda_tcp_about *about,
                            unsigned char out[RUEDA_TCP_ABOUT_BYTES]);

/* False: no rank says such a thing; out is not written. bytes may be NULL. */
bool rueda_tcp_about_decode(const void *bytes, size_t len,
                            struct rueda_tcp_about *out);

/* Are they two ranks of one job? */
bool rueda_tcp_about_fits(const struct rueda_tcp_about *ours,
                          const struct rueda_tcp_about *theirs);

/*
 * How is what follows the handshake protected? RUEDA_ERR_MISMATCH if the ends
 * cannot agree; error then names both ranks, what they have set, and what to
 * do. The two ends come to the same result.
 */
rueda_status rueda_tcp_agree(const struct rueda_tcp_about *ours,
                             const struct rueda_tcp_about *theirs,
                             struct rueda_tcp_protection *out,
                             struct rueda_text *error);

#endif /* RUEDA_TRANSPORT_TCP_ABOUT_H */
