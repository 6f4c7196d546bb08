/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two messages of the handshake and the checks on them. A check that fails
 * ends the handshake with a message that names the remedy, and wipes the
 * secrets. The order of the checks matters: version before the fields that
 * depend on it, proof before anything that the peer says about itself is
 * believed.
 */
#include "auth/handshake.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/bytes.h"
#include "base/least.h"
#include "os/random.h"

/* Where the fields of a HELLO are. */
#define AT_MAGIC     0
#define AT_VERSION   8
#define AT_OLDEST    12
#define AT_FLAGS     16
#define AT_PURPOSE   17
#define AT_ZERO      18
#define AT_NONCE     20
#define AT_ABOUT_LEN 52
#define AT_ABOUT     54

#define MAGIC_BYTES 8
#define ZERO_BYTES  2
#define NONCE_BYTES 32

#define FLAG_KEY       1u
#define FLAG_INITIATOR 2u

#define HELLO_BYTES RUEDA_HANDSHAKE_HELLO_BYTES
#define PROOF_BYTES RUEDA_HANDSHAKE_PROOF_BYTES

_Static_assert(AT_ABOUT + RUEDA_HANDSHAKE_ABOUT_MAX == HELLO_BYTES,
               "the fields fill the HELLO");

static const unsigned char magic[MAGIC_BYTES] = {'R', 'U', 'E', 'D',
                                                 'A', 0,   0,   1};

/* One label for each use of the key, the closing zero included, so that no
 * output for one use is ever an output for another. */
static const char proof_labels[2][sizeof("rueda handshake 2: initiator")] = {
    [RUEDA_INITIATOR] = "rueda handshake 2: initiator",
    [RUEDA_ACCEPTOR] = "rueda handshake 2: acceptor",
};
static const char session_label[] = "rueda handshake 2: session";

/* The status, except that memory which is all zero, because it was never begun
 * or has been wiped, must not pass for a success. */
static rueda_status status_of(const struct rueda_handshake *hs)
{
    if (hs->status == RUEDA_OK && hs->in_len != RUEDA_HANDSHAKE_BYTES)
        return RUEDA_ERR_CLOSED;
    return hs->status;
}

/* End with a failure; the words are in hs->why already. No byte leaves any
 * more, and no secret stays. */
static rueda_status fail(struct rueda_handshake *hs, rueda_status status)
{
    hs->status = status;
    rueda_key_wipe(&hs->key);
    sodium_memzero(hs->in, sizeof(hs->in));
    sodium_memzero(hs->out, sizeof(hs->out));
    hs->out_len = 0;
    hs->out_sent = 0;
    return status;
}

/* BLAKE2b under the job's key over a label and both HELLOs, the initiator's
 * first. A job without a key has zeros there. */
static void mac(const struct rueda_handshake *hs, const char *label,
                unsigned char out_mac[PROOF_BYTES])
{
    bool is_initiator = hs->role == RUEDA_INITIATOR;
    crypto_generichash_state state;

    crypto_generichash_init(&state, hs->key.bytes, sizeof(hs->key.bytes),
                            PROOF_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)label,
                              strlen(label) + 1);
    crypto_generichash_update(&state, is_initiator ? hs->out : hs->in,
                              HELLO_BYTES);
    crypto_generichash_update(&state, is_initiator ? hs->in : hs->out,
                              HELLO_BYTES);
    crypto_generichash_final(&state, out_mac, PROOF_BYTES);
    sodium_memzero(&state, sizeof(state));
}

static rueda_handshake_role role_of_peer(const struct rueda_handshake *hs)
{
    return hs->role == RUEDA_INITIATOR ? RUEDA_ACCEPTOR : RUEDA_INITIATOR;
}

/* Write our HELLO, but for the nonce, which is there. */
static void write_hello(struct rueda_handshake *hs, unsigned purpose,
                        const void *about, size_t about_bytes)
{
    unsigned flags = 0;

    if (hs->key.present)
        flags |= FLAG_KEY;
    if (hs->role == RUEDA_INITIATOR)
        flags |= FLAG_INITIATOR;
    memcpy(hs->out + AT_MAGIC, magic, MAGIC_BYTES);
    rueda_put_u32(hs->out + AT_VERSION, RUEDA_PROTOCOL_VERSION);
    rueda_put_u32(hs->out + AT_OLDEST, RUEDA_PROTOCOL_OLDEST);
    hs->out[AT_FLAGS] = (unsigned char)flags;
    hs->out[AT_PURPOSE] = (unsigned char)purpose;
    rueda_put_u16(hs->out + AT_ABOUT_LEN, (uint16_t)about_bytes);
    if (about_bytes > 0)
        memcpy(hs->out + AT_ABOUT, about, about_bytes);
    hs->out_len = HELLO_BYTES;
}

rueda_status rueda_handshake_init(struct rueda_handshake *hs,
                                  rueda_handshake_role role, unsigned purpose,
                                  const struct rueda_key *key,
                                  const void *about, size_t about_bytes)
{
    memset(hs, 0, sizeof(*hs));
    hs->role = role;
    hs->status = RUEDA_IN_PROGRESS;
    if (about_bytes > RUEDA_HANDSHAKE_ABOUT_MAX) {
        rueda_text_set(&hs->why,
                       "a rank may say %d bytes about itself in a handshake, "
                       "not %zu",
                       RUEDA_HANDSHAKE_ABOUT_MAX, about_bytes);
        return fail(hs, RUEDA_ERR_INVALID);
    }
    /* In this order: sodium_init() aborts where there are no random bytes. */
    if (rueda_random_fill(hs->out + AT_NONCE, NONCE_BYTES) != RUEDA_OK) {
        rueda_text_set(&hs->why, "the system gives no random bytes: %s",
                       strerror(errno));
        return fail(hs, RUEDA_ERR_IO);
    }
    if (sodium_init() < 0) {
        rueda_text_set(&hs->why, "libsodium does not start");
        return fail(hs, RUEDA_ERR_UNSUPPORTED);
    }
    if (key != NULL && key->present)
        hs->key = *key;
    write_hello(hs, purpose, about, about_bytes);
    return RUEDA_OK;
}

void rueda_handshake_fini(struct rueda_handshake *hs)
{
    sodium_memzero(hs, sizeof(*hs));
}

size_t rueda_handshake_output(const struct rueda_handshake *hs,
                              const void **out_bytes)
{
    *out_bytes = hs->out + hs->out_sent;
    return hs->out_len - hs->out_sent;
}

/* The count is bounded because a failure may have emptied the output since
 * the caller began to send it. */
void rueda_handshake_sent(struct rueda_handshake *hs, size_t count)
{
    hs->out_sent += rueda_least(count, hs->out_len - hs->out_sent);
}

/* Add our PROOF to what waits to be sent. */
static void prove(struct rueda_handshake *hs)
{
    mac(hs, proof_labels[hs->role], hs->out + HELLO_BYTES);
    hs->out_len = RUEDA_HANDSHAKE_BYTES;
}

static rueda_status check_magic(struct rueda_handshake *hs)
{
    if (memcmp(hs->in, magic, rueda_least(hs->in_len, MAGIC_BYTES)) == 0)
        return RUEDA_OK;
    rueda_text_set(&hs->why, "the peer does not speak the protocol of rueda; "
                             "check that address and port are those of a rank");
    return fail(hs, RUEDA_ERR_AUTH);
}

/* Each end uses the lower of the two versions; the other must still speak it.
 * Comes before the fields whose meaning may depend on the version. */
static rueda_status check_version(struct rueda_handshake *hs)
{
    uint32_t version = rueda_get_u32(hs->in + AT_VERSION);
    uint32_t oldest = rueda_get_u32(hs->in + AT_OLDEST);

    hs->version = version;
    if (hs->version > RUEDA_PROTOCOL_VERSION)
        hs->version = RUEDA_PROTOCOL_VERSION;
    if (hs->version >= oldest && hs->version >= RUEDA_PROTOCOL_OLDEST)
        return RUEDA_OK;
    rueda_text_set(&hs->why,
                   "the peer speaks versions %u to %u of the protocol, this "
                   "side speaks %u to %u; install the same release of rueda "
                   "on both",
                   oldest, version, RUEDA_PROTOCOL_OLDEST,
                   RUEDA_PROTOCOL_VERSION);
    return fail(hs, RUEDA_ERR_VERSION);
}

static rueda_status check_form(struct rueda_handshake *hs)
{
    size_t about_bytes = rueda_get_u16(hs->in + AT_ABOUT_LEN);
    unsigned flags = hs->in[AT_FLAGS];

    if ((flags & ~(FLAG_KEY | FLAG_INITIATOR)) == 0 &&
        (hs->in[AT_PURPOSE] & ~RUEDA_ALL_PURPOSES) == 0 &&
        sodium_is_zero(hs->in + AT_ZERO, ZERO_BYTES) &&
        about_bytes <= RUEDA_HANDSHAKE_ABOUT_MAX &&
        sodium_is_zero(hs->in + AT_ABOUT + about_bytes,
                       RUEDA_HANDSHAKE_ABOUT_MAX - about_bytes))
        return RUEDA_OK;
    rueda_text_set(&hs->why, "the peer's hello is malformed; it is not a rank "
                             "of rueda, or its bytes were changed on the way");
    return fail(hs, RUEDA_ERR_AUTH);
}

static rueda_status check_flags(struct rueda_handshake *hs)
{
    bool peer_has_key = (hs->in[AT_FLAGS] & FLAG_KEY) != 0;
    bool peer_initiates = (hs->in[AT_FLAGS] & FLAG_INITIATOR) != 0;

    if (peer_initiates != (role_of_peer(hs) == RUEDA_INITIATOR)) {
        rueda_text_set(&hs->why,
                       "both ends claim to be the %s; the hello "
                       "was sent back, or the connection is crossed",
                       peer_initiates ? "initiator" : "acceptor");
        return fail(hs, RUEDA_ERR_AUTH);
    }
    if (peer_has_key && !hs->key.present) {
        rueda_text_set(&hs->why, "the peer has a key, this side has none; set "
                                 "RUEDA_KEY_FILE on this side to the job's "
                                 "key file");
        return fail(hs, RUEDA_ERR_AUTH);
    }
    if (!peer_has_key && hs->key.present) {
        rueda_text_set(&hs->why, "this side has a key, the peer has none; set "
                                 "RUEDA_KEY_FILE on the peer's side to the "
                                 "job's key file");
        return fail(hs, RUEDA_ERR_AUTH);
    }
    return RUEDA_OK;
}

/* In words; of several the first, which is enough to find a crossed address. */
static const char *purpose_text(unsigned purpose)
{
    static const struct {
        unsigned purpose;
        const char *text;
    } rows[] = {
        {RUEDA_FOR_STORE, "the store"},
        {RUEDA_FOR_SEGMENT, "the meeting of the ranks of a host"},
        {RUEDA_FOR_STREAM, "messages between ranks"},
        {RUEDA_FOR_PULSE, "signs of life between ranks"},
        {RUEDA_FOR_LAUNCHER, "the launcher and its agents"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if ((purpose & rows[i].purpose) != 0)
            return rows[i].text;
    return "something else";
}

/* The initiator's must be one of the acceptor's. */
static rueda_status check_purpose(struct rueda_handshake *hs)
{
    const unsigned ours = hs->out[AT_PURPOSE];
    const unsigned theirs = hs->in[AT_PURPOSE];
    const bool is_initiator = hs->role == RUEDA_INITIATOR;
    const unsigned wanted = is_initiator ? ours : theirs;
    const unsigned served = is_initiator ? theirs : ours;

    if (wanted != 0 && (wanted & (wanted - 1)) == 0 && (wanted & served) != 0)
        return RUEDA_OK;
    rueda_text_set(&hs->why,
                   "the peer's end of the connection is for %s, this side's "
                   "is for %s; check that address and port are the right ones",
                   purpose_text(theirs), purpose_text(ours));
    return fail(hs, RUEDA_ERR_AUTH);
}

static rueda_status take_hello(struct rueda_handshake *hs)
{
    rueda_status status;

    status = check_version(hs);
    if (status == RUEDA_OK)
        status = check_form(hs);
    if (status == RUEDA_OK)
        status = check_flags(hs);
    if (status == RUEDA_OK)
        status = check_purpose(hs);
    if (status != RUEDA_OK)
        return status;
    if (hs->role == RUEDA_INITIATOR)
        prove(hs);
    return RUEDA_IN_PROGRESS;
}

static rueda_status take_proof(struct rueda_handshake *hs)
{
    unsigned char expected[PROOF_BYTES];
    int differs;

    mac(hs, proof_labels[role_of_peer(hs)], expected);
    differs = sodium_memcmp(expected, hs->in + HELLO_BYTES, PROOF_BYTES);
    sodium_memzero(expected, sizeof(expected));
    if (differs != 0) {
        rueda_text_set(&hs->why,
                       hs->key.present
                           ? "the peer's proof is wrong: its key is not ours; "
                             "give both sides the same RUEDA_KEY_FILE"
                           : "the peer's proof is wrong: bytes were changed "
                             "on the way");
        return fail(hs, RUEDA_ERR_AUTH);
    }
    if (hs->role == RUEDA_ACCEPTOR)
        prove(hs);
    if (hs->key.present) {
        mac(hs, session_label, hs->session.bytes);
        hs->session.present = true;
    }
    rueda_key_wipe(&hs->key);
    hs->status = RUEDA_OK;
    return RUEDA_OK;
}

rueda_status rueda_handshake_input(struct rueda_handshake *hs,
                                   const void *bytes, size_t len,
                                   size_t *out_used)
{
    rueda_status status = status_of(hs);
    size_t used = 0;

    while (status == RUEDA_IN_PROGRESS && used < len) {
        bool is_hello = hs->in_len < HELLO_BYTES;
        size_t end = is_hello ? HELLO_BYTES : RUEDA_HANDSHAKE_BYTES;
        size_t count = rueda_least(end - hs->in_len, len - used);

        memcpy(hs->in + hs->in_len, (const unsigned char *)bytes + used, count);
        hs->in_len += count;
        used += count;
        if (is_hello && check_magic(hs) != RUEDA_OK)
            return hs->status;
        if (hs->in_len == end)
            status = is_hello ? take_hello(hs) : take_proof(hs);
    }
    if (status >= RUEDA_OK)
        *out_used = used;
    return status;
}

rueda_status rueda_handshake_closed(struct rueda_handshake *hs)
{
    rueda_status status = status_of(hs);

    if (status != RUEDA_IN_PROGRESS)
        return status;
    if (hs->in_len < HELLO_BYTES) {
        rueda_text_set(&hs->why,
                       "the peer closed the connection %zu bytes into its "
                       "hello; its log says why",
                       hs->in_len);
        return fail(hs, RUEDA_ERR_PEER_LOST);
    }
    rueda_text_set(&hs->why, "the peer closed the connection and did not prove "
                             "that it knows the key; its log says why, compare "
                             "RUEDA_KEY_FILE on both sides");
    return fail(hs, RUEDA_ERR_AUTH);
}

bool rueda_handshake_done(const struct rueda_handshake *hs)
{
    return status_of(hs) == RUEDA_OK && hs->out_sent == hs->out_len;
}

const char *rueda_handshake_error(const struct rueda_handshake *hs)
{
    return hs->why.chars;
}

const void *rueda_handshake_peer_about(const struct rueda_handshake *hs,
                                       size_t *out_bytes)
{
    if (status_of(hs) != RUEDA_OK)
        return NULL;
    *out_bytes = rueda_get_u16(hs->in + AT_ABOUT_LEN);
    return hs->in + AT_ABOUT;
}

unsigned rueda_handshake_purpose(const struct rueda_handshake *hs)
{
    if (status_of(hs) != RUEDA_OK)
        return 0;
    return hs->role == RUEDA_INITIATOR ? hs->out[AT_PURPOSE]
                                       : hs->in[AT_PURPOSE];
}

uint32_t rueda_handshake_version(const struct rueda_handshake *hs)
{
    return status_of(hs) == RUEDA_OK ? hs->version : 0;
}

const struct rueda_key *
rueda_handshake_session_key(const struct rueda_handshake *hs)
{
    return status_of(hs) == RUEDA_OK ? &hs->session : NULL;
}
