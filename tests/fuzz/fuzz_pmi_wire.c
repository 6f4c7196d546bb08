/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launcher that answers anything over PMI, in lines or counted, to one
 * question after the other. Values that are found have an end and no separator.
 */
#include "fuzz/fuzz.h"
#include "job/pmi_wire.h"
#include "os/clock.h"

#define SECOND ((int64_t)1000000000)

static void read_values(const struct rueda_pmi_wire *wire)
{
    static const char *const keys[] = {"cmd", "rc", "value", "", "rank"};
    const char separator = wire->is_counted ? ';' : ' ';
    unsigned char bytes[4];

    must(strlen(wire->answer) < sizeof(wire->answer));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char value[12];
        int number = -1;

        if (!rueda_pmi_value(wire, keys[i], value, sizeof(value)))
            continue;
        must(strnlen(value, sizeof(value)) < sizeof(value));
        must(strchr(value, separator) == NULL);
        must(rueda_pmi_number(wire, keys[i], &number) == (number >= 0));
        if (rueda_pmi_hex_read(value, bytes, sizeof(bytes))) {
            char again[2 * sizeof(bytes) + 1];

            rueda_pmi_hex_write(bytes, sizeof(bytes), again);
            must(strcmp(again, value) == 0);
        }
    }
}

/* The first choice is 1 for counted messages. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const bool is_counted = fuzz_choice(&input) & 1;
    struct rueda_text error = {{0}};
    rueda_status status = RUEDA_OK;
    struct rueda_pmi_wire wire;
    struct fuzz_stream stream;

    fuzz_stream_open(&stream, input.data, input.size);
    rueda_pmi_wire_init(&wire, stream.ours, rueda_clock_ns() + SECOND, &error);
    wire.is_counted = is_counted;
    while (status == RUEDA_OK) {
        status = rueda_pmi_ask(&wire, "x", "cmd=y key=%d", 1);
        must(wire.held <= sizeof(wire.inbox));
        read_values(&wire);
    }
    must(status == RUEDA_ERR_INVALID || status == RUEDA_ERR_PEER_LOST);
    must(!rueda_text_is_empty(&error));
    fuzz_stream_close(&stream);
    return 0;
}
