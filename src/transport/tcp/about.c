/* SPDX-License-Identifier: Apache-2.0 */
/* What two ends of a stream say about themselves in the handshake, in bytes,
 * and how they settle its protection. */
#include "transport/tcp/about.h"

#include <limits.h>

#include "base/bytes.h"

#define AT_RANK    0
#define AT_SIZE    4
#define AT_JOB     8
#define AT_PURPOSE 16
#define AT_WISH    17
#define AT_COSTS   18
#define AT_ZERO    22

unsigned rueda_tcp_purpose_of(rueda_handshake_role role,
                              rueda_tcp_purpose purpose)
{
    if (role == RUEDA_ACCEPTOR)
        return (unsigned)RUEDA_FOR_STREAM | (unsigned)RUEDA_FOR_PULSE;
    return purpose == RUEDA_TCP_FOR_PULSE ? RUEDA_FOR_PULSE : RUEDA_FOR_STREAM;
}

rueda_tcp_wish rueda_tcp_wish_of(rueda_config_encrypt setting, bool is_near)
{
    switch (setting) {
    case RUEDA_ENCRYPT_NEVER:
        return RUEDA_TCP_FORBID;
    case RUEDA_ENCRYPT_ALWAYS:
        return RUEDA_TCP_INSIST;
    case RUEDA_ENCRYPT_AUTHENTICATE:
        return RUEDA_TCP_PROVE;
    case RUEDA_ENCRYPT_AUTO:
        break;
    }
    return is_near ? RUEDA_TCP_ALLOW : RUEDA_TCP_WANT;
}

const char *rueda_tcp_shield_str(rueda_tcp_shield shield)
{
    switch (shield) {
    case RUEDA_TCP_SEALED:
        return "sealed";
    case RUEDA_TCP_PROVEN:
        return "proven";
    case RUEDA_TCP_PLAIN:
        break;
    }
    return "plain";
}

void rueda_tcp_about_encode(const struct rueda_tcp_about *about,
                            unsigned char out[RUEDA_TCP_ABOUT_BYTES])
{
    rueda_put_u32(out + AT_RANK, (uint32_t)about->rank);
    rueda_put_u32(out + AT_SIZE, (uint32_t)about->size);
    rueda_put_u64(out + AT_JOB, about->job);
    out[AT_PURPOSE] = (unsigned char)about->purpose;
    out[AT_WISH] = (unsigned char)about->wish;
    for (size_t i = 0; i < RUEDA_CIPHER_KINDS; i++)
        rueda_put_u16(out + AT_COSTS + 2 * i, about->costs[i]);
    rueda_put_u16(out + AT_ZERO, 0);
}

bool rueda_tcp_about_decode(const void *bytes, size_t len,
                            struct rueda_tcp_about *out)
{
    const unsigned char *in = bytes;
    uint32_t rank;
    uint32_t size;

    if (in == NULL || len != RUEDA_TCP_ABOUT_BYTES)
        return false;
    rank = rueda_get_u32(in + AT_RANK);
    size = rueda_get_u32(in + AT_SIZE);
    if (size > INT_MAX || rank >= size ||
        (in[AT_PURPOSE] != RUEDA_TCP_FOR_STREAM &&
         in[AT_PURPOSE] != RUEDA_TCP_FOR_PULSE) ||
        in[AT_WISH] < RUEDA_TCP_FORBID || in[AT_WISH] > RUEDA_TCP_PROVE ||
        rueda_get_u16(in + AT_ZERO) != 0)
        return false;
    /* Every end has the first cipher. */
    if (rueda_get_u16(in + AT_COSTS) == 0)
        return false;
    *out = (struct rueda_tcp_about){
        .rank = (int)rank,
        .size = (int)size,
        .job = rueda_get_u64(in + AT_JOB),
        .purpose = (rueda_tcp_purpose)in[AT_PURPOSE],
        .wish = (rueda_tcp_wish)in[AT_WISH],
    };
    for (size_t i = 0; i < RUEDA_CIPHER_KINDS; i++)
        out->costs[i] = rueda_get_u16(in + AT_COSTS + 2 * i);
    return true;
}

bool rueda_tcp_about_fits(const struct rueda_tcp_about *ours,
                          const struct rueda_tcp_about *theirs)
{
    return ours->size == theirs->size && ours->job == theirs->job &&
           ours->rank != theirs->rank;
}

/* As it is set. */
static const char *wish_text(rueda_tcp_wish wish)
{
    switch (wish) {
    case RUEDA_TCP_FORBID:
        return "never";
    case RUEDA_TCP_INSIST:
        return "always";
    case RUEDA_TCP_PROVE:
        return "authenticate";
    case RUEDA_TCP_ALLOW:
    case RUEDA_TCP_WANT:
        break;
    }
    return "auto";
}

rueda_status rueda_tcp_agree(const struct rueda_tcp_about *ours,
                             const struct rueda_tcp_about *theirs,
                             struct rueda_tcp_protection *out,
                             struct rueda_text *error)
{
    const struct rueda_tcp_about *low = ours;
    const struct rueda_tcp_about *high = theirs;

    if (ours->wish > theirs->wish) {
        low = theirs;
        high = ours;
    }
    if ((low->wish == RUEDA_TCP_FORBID && high->wish == RUEDA_TCP_INSIST) ||
        (high->wish == RUEDA_TCP_PROVE && low->wish != RUEDA_TCP_PROVE)) {
        rueda_text_set(error,
                       "rank %d has RUEDA_ENCRYPT=%s and rank %d has "
                       "RUEDA_ENCRYPT=%s, so they cannot talk; give both "
                       "the same, or leave it at auto",
                       high->rank, wish_text(high->wish), low->rank,
                       wish_text(low->wish));
        return RUEDA_ERR_MISMATCH;
    }
    if (low->wish == RUEDA_TCP_FORBID || high->wish < RUEDA_TCP_WANT)
        out->shield = RUEDA_TCP_PLAIN;
    else if (high->wish == RUEDA_TCP_PROVE)
        out->shield = RUEDA_TCP_PROVEN;
    else
        out->shield = RUEDA_TCP_SEALED;
    out->cipher = rueda_cipher_choose(ours->costs, theirs->costs);
    return RUEDA_OK;
}
