/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where ranks say that they can be reached. The addresses that are found are
 * written as text that gives the same ones; what all ranks say together gives
 * each its own, or nothing at all.
 */
#include "fuzz/fuzz.h"
#include "job/network.h"
#include "transport/tcp/tcp.h"

#define ROOM 8
#define SIZE 3

static void try_text(const char *text)
{
    struct rueda_address found[ROOM];
    struct rueda_address again[ROOM];
    char written[ROOM * RUEDA_ADDRESS_TEXT];
    int count = rueda_network_read(text, found, ROOM);

    must(count >= 0 && count <= ROOM);
    rueda_network_write(found, count, written, sizeof(written));
    must(rueda_network_read(written, again, ROOM) == count);
    for (int i = 0; i < count; i++) {
        must(again[i].len == found[i].len);
        must(memcmp(again[i].bytes, found[i].bytes, found[i].len) == 0);
        must(!rueda_address_is_loopback(&found[i]) ||
             rueda_address_is_near(&found[i]));
    }
}

static void try_all(const uint8_t *data, size_t size)
{
    struct rueda_topology_row rows[SIZE] = {{.host = 0}, {.host = 1}};
    const struct rueda_topology topology = {.size = SIZE, .rows = rows};
    struct rueda_key key = {.bytes = {1}, .present = true};
    const struct rueda_tcp_args args = {
        .size = SIZE, .key = &key, .streams = 1};
    struct rueda_text error = {{0}};
    struct rueda_tcp_hub *hub;
    char *texts = malloc(size + 1); /* a byte, also of nothing */
    rueda_status status;
    int ends = 0;

    must(texts != NULL);
    if (size > 0)
        memcpy(texts, data, size);
    for (size_t i = 0; i < size; i++)
        ends += texts[i] == '\0';
    must(rueda_tcp_hub_open(&args, &hub, &error) == RUEDA_OK);
    status =
        rueda_network_locate(rueda_tcp_hub_super(hub), &topology, texts, size);
    must(status == RUEDA_OK || status == RUEDA_ERR_INVALID);
    must(status != RUEDA_OK || ends >= SIZE);
    rueda_tcp_hub_close(hub);
    free(texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    try_text(text);
    try_all(data, size);
    free(text);
    return 0;
}
