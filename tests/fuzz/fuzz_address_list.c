/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of interfaces and networks, as RUEDA_NETWORK has them. A list names
 * what one of its entries does, and nothing else.
 */
#include "fuzz/fuzz.h"
#include "os/tcp.h"

static const char *const hosts[] = {"10.1.2.3:1", "127.0.0.1:1",
                                    "[2001:db8::1]:1", "[::1]:1"};

/* Entry by entry, each in memory of its own. */
static bool has_entry(const struct rueda_address *address, const char *list)
{
    bool is_listed = false;
    char *copy = fuzz_text((const uint8_t *)list, strlen(list));
    char *rest = copy;
    char *one;

    while ((one = strtok_r(rest, ", ", &rest)) != NULL) {
        char *entry = fuzz_text((const uint8_t *)one, strlen(one));

        if (rueda_address_is_listed(address, "eth0", entry)) {
            is_listed = true;
            must(strcmp(entry, "eth0") == 0 || strchr(entry, '/') != NULL);
        }
        free(entry);
    }
    free(copy);
    return is_listed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *list = fuzz_text(data, size);
    struct rueda_address address;

    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        must(rueda_address_read(hosts[i], &address));
        must(rueda_address_is_listed(&address, "eth0", list) ==
             has_entry(&address, list));
    }
    free(list);
    return 0;
}
