/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and files of hosts. What is accepted says the same when it is written
 * and read again. */
#include "fuzz/fuzz.h"
#include "launch/hosts.h"

static void write_again(const struct rueda_hosts *hosts, char **out)
{
    size_t bytes;
    FILE *file = open_memstream(out, &bytes);

    must(file != NULL);
    for (int i = 0; i < hosts->count; i++) {
        const char *name = hosts->list[i].name;
        const bool is_ipv6 = strchr(name, ':') != NULL;

        must(name[0] != '-' && name[0] != '\0');
        must(hosts->list[i].slots > 0);
        fprintf(file, "%s%s%s%s:%d", i == 0 ? "" : ",", is_ipv6 ? "[" : "",
                name, is_ipv6 ? "]" : "", hosts->list[i].slots);
    }
    must(fclose(file) == 0);
}

/* The choice: is it a file? */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const bool is_file = fuzz_choice(&input) % 2 == 1;
    char *text = fuzz_text(input.data, input.size);
    struct rueda_text words = {{0}};
    struct rueda_hosts hosts = {NULL, 0};
    struct rueda_hosts again = {NULL, 0};
    char *copy = NULL;

    if (is_file ? rueda_hosts_parse_file("f", text, &hosts, &words)
                : rueda_hosts_parse(text, &hosts, &words)) {
        must(hosts.count > 0 && rueda_text_is_empty(&words));
        write_again(&hosts, &copy);
        must(rueda_hosts_parse(copy, &again, &words));
        must(again.count == hosts.count);
        must(rueda_hosts_slots(&again) == rueda_hosts_slots(&hosts));
    } else {
        must(hosts.list == NULL && !rueda_text_is_empty(&words));
    }
    rueda_hosts_fini(&hosts);
    rueda_hosts_fini(&again);
    free(copy);
    free(text);
    return 0;
}
