/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealed records in the hands of an attacker who carries them: as they are,
 * with bits flipped, cut, again, in another order, made up. What opens is what
 * was sealed, in its place; whatever else comes ends it for good.
 */
#include "auth/seal.h"
#include "fuzz/fuzz.h"

#define TAG     RUEDA_SEAL_TAG_BYTES
#define RECORDS 8
#define MOST    300

/* What the sender has sealed. */
struct record {
    size_t bytes;
    unsigned char plain[MOST];
    unsigned char sealed[MOST];
    unsigned char tag[TAG];
};

static void seal_all(struct rueda_seal *seal, struct record *records)
{
    for (int i = 0; i < RECORDS; i++) {
        struct record *record = &records[i];

        record->bytes = (size_t)(i * 37 % MOST);
        memset(record->plain, i, sizeof(record->plain));
        must(rueda_seal_close(seal, record->plain, record->bytes,
                              record->sealed, record->tag) == RUEDA_OK);
    }
}

/* What the carrier brings: a record, its length, which may differ, and what to
 * flip where. */
struct parcel {
    unsigned which;
    size_t bytes;
    unsigned place;
    unsigned flip;
};

static struct parcel next_parcel(struct fuzz_input *input,
                                 const struct record *records)
{
    struct parcel parcel;

    parcel.which = fuzz_choice(input) % RECORDS;
    parcel.bytes = records[parcel.which].bytes;
    switch (fuzz_choice(input)) {
    case 1:
        parcel.bytes = fuzz_choice(input);
        break;
    case 2:
        parcel.bytes++;
        break;
    default:
        break;
    }
    parcel.flip = fuzz_choice(input);
    parcel.place = parcel.flip != 0 ? fuzz_choice(input) : 0;
    return parcel;
}

/* In memory of exactly its length. Returns whether it has opened. */
static bool deliver(struct rueda_seal *seal, const struct parcel *parcel,
                    const struct record *record, bool is_right)
{
    unsigned char *bytes = malloc(parcel->bytes + TAG);
    rueda_status status;

    must(bytes != NULL && parcel->bytes <= MOST);
    memcpy(bytes, record->sealed, parcel->bytes);
    memcpy(bytes + parcel->bytes, record->tag, TAG);
    bytes[parcel->place % (parcel->bytes + TAG)] ^= (unsigned char)parcel->flip;
    status = rueda_seal_open(seal, bytes, parcel->bytes, bytes + parcel->bytes,
                             bytes);
    must(status == (is_right ? RUEDA_OK : RUEDA_ERR_AUTH));
    for (size_t i = 0; i < parcel->bytes; i++)
        must(bytes[i] == (is_right ? record->plain[i] : 0));
    free(bytes);
    return is_right;
}

/* Bytes that an attacker has made up. */
static void forge(struct rueda_seal *seal, struct fuzz_input *input)
{
    unsigned char plain[MOST];
    const uint8_t *bytes;
    const uint8_t *tag;
    size_t count = fuzz_take(input, MOST, &bytes);

    if (fuzz_take(input, TAG, &tag) == TAG)
        must(rueda_seal_open(seal, bytes, count, tag, plain) == RUEDA_ERR_AUTH);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct rueda_key session = {.bytes = {1, 2, 3}, .present = true};
    struct fuzz_input input = {data, size};
    static struct record records[RECORDS];
    struct rueda_seal send;
    struct rueda_seal receive;
    struct rueda_seal unused;
    struct rueda_seal stranger;
    bool is_open = true;
    unsigned next = 0;

    rueda_seal_pair(&session, RUEDA_INITIATOR, &send, &unused);
    rueda_seal_pair(&session, RUEDA_ACCEPTOR, &unused, &receive);
    stranger = receive;
    seal_all(&send, records);
    while (is_open && input.size > 0) {
        const struct parcel parcel = next_parcel(&input, records);
        const struct record *record = &records[parcel.which];
        bool is_right = parcel.which == next && parcel.flip == 0 &&
                        parcel.bytes == record->bytes;

        is_open = deliver(&receive, &parcel, record, is_right);
        next++;
    }
    if (!is_open)
        must(rueda_seal_skip(&receive) == RUEDA_ERR_CLOSED);
    input = (struct fuzz_input){data, size};
    forge(&stranger, &input);
    return 0;
}
