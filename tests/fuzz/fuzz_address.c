/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses from text; only numbers are found (support.c). One that is found
 * is written as text that gives the same address. */
#include "fuzz/fuzz.h"
#include "os/tcp.h"

#define ROOM 2

static void check_address(const struct rueda_address *address)
{
    struct rueda_text error = {{0}};
    struct rueda_address again[ROOM];
    char text[RUEDA_ADDRESS_TEXT];
    int port = rueda_address_port(address);

    must(address->len > 0 && address->len <= sizeof(address->bytes));
    must(port >= 0 && port <= UINT16_MAX);
    rueda_address_text(address, text, sizeof(text));
    must(strchr(text, ':') != NULL);
    must(rueda_address_find(text, again, ROOM, &error) >= 1);
    must(again[0].len == address->len);
    must(memcmp(again[0].bytes, address->bytes, address->len) == 0);
    rueda_address_set_port(&again[0], 4000);
    must(rueda_address_port(&again[0]) == 4000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct rueda_address found[ROOM];
    struct rueda_text error = {{0}};
    int count = rueda_address_find(text, found, ROOM, &error);

    must(count >= 0 && count <= ROOM);
    must(rueda_text_is_empty(&error) == (count > 0));
    for (int i = 0; i < count; i++)
        check_address(&found[i]);
    free(text);
    return 0;
}
