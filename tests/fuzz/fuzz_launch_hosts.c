/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and files of hosts, and what LSF and discovery scripts say of them.
 * What is accepted says the same when it is written and read again. */
#include "fuzz/fuzz.h"
#include "launch/discovery_parse.h"
#include "launch/lsf.h"

static bool parse(unsigned form, const char *text, struct rueda_hosts *out,
                  struct rueda_text *words)
{
    switch (form) {
    case 0:
        return rueda_hosts_parse(text, out, words);
    case 1:
        return rueda_hosts_parse_file("f", text, out, words);
    case 2:
        return rueda_lsf_parse_counted(text, out, words);
    case 3:
        return rueda_lsf_parse_names(text, out, words);
    default:
        return rueda_discovery_parse(text, form == 4 ? 0 : 2, out, words);
    }
}

static void check(const struct rueda_hosts *hosts)
{
    must(hosts->count > 0);
    for (int i = 0; i < hosts->count; i++) {
        must(hosts->list[i].name[0] != '-' && hosts->list[i].name[0] != '\0');
        must(hosts->list[i].slots > 0);
    }
}

/* The choice: which form it has. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const unsigned form = fuzz_choice(&input) % 6;
    char *text = fuzz_text(input.data, input.size);
    struct rueda_text words = {{0}};
    struct rueda_hosts hosts = {NULL, 0};
    struct rueda_hosts again = {NULL, 0};
    char *copy = NULL;

    if (parse(form, text, &hosts, &words)) {
        must(rueda_text_is_empty(&words));
        check(&hosts);
        copy = rueda_hosts_text(&hosts, true);
        must(copy != NULL && rueda_hosts_parse(copy, &again, &words));
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
