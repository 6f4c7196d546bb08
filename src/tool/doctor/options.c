/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the command line of `rueda doctor`; most options are ruedarun's. */
#include "tool/doctor/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "base/number.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- Words -------------------------------------------------------------- */

/* The names for people; the first is how the option is called in words. */
static const char *const names[][2] = {
    {"-H", "--hosts"},
    {"--hostfile", "-hostfile"},
    {"-p", "--ssh-port"},
    {"-i", "--ssh-identity-file"},
    {"--network-interfaces", "--network-interface"},
    {"--json", "--json"},
    {"--timeout", "--timeout"},
};

/* How many of these words are an option and its value; 0: it is none of them,
 * or a mistake with a message. */
static int read_option(int argc, char **argv, const char **values,
                       struct rueda_text *words)
{
    const size_t len = strcspn(argv[0], "=");

    for (size_t i = 0; i < COUNT(names); i++) {
        for (int k = 0; k < 2; k++) {
            if (strlen(names[i][k]) != len ||
                strncmp(argv[0], names[i][k], len) != 0)
                continue;
            if (argv[0][len] == '=') {
                values[i] = argv[0] + len + 1;
                return 1;
            }
            if (argc < 2) {
                rueda_text_set(words, "%s needs a value", names[i][k]);
                return 0;
            }
            values[i] = argv[1];
            return 2;
        }
    }
    return 0;
}

static void unknown_word(const char *word, struct rueda_text *words)
{
    const char *known[2 * COUNT(names) + 2];
    size_t count = 0;

    for (size_t i = 0; i < COUNT(names); i++)
        for (int k = 0; k < 2; k++)
            known[count++] = names[i][k];
    known[count++] = "--help";
    known[count] = NULL;
    rueda_text_set(words, "unknown %s '%.64s'",
                   word[0] == '-' ? "option" : "word", word);
    rueda_near_suggest(word, known, words);
}

/* How our own helpers are called; not for people. */
static bool read_role(int argc, char **argv, struct rueda_doctor_options *out)
{
    if (argc == 1 && strcmp(argv[0], "--meet") == 0) {
        out->role = RUEDA_DOCTOR_MEETS;
        return true;
    }
    if (argc != 3 || strcmp(argv[0], "--facts") != 0 ||
        !rueda_parse_int(argv[1], &out->job.local_ranks) ||
        !rueda_parse_int(argv[2], &out->job.ranks) ||
        out->job.local_ranks < 1 || out->job.local_ranks > out->job.ranks)
        return false;
    out->role = RUEDA_DOCTOR_FACTS;
    return true;
}

/* Check the values of options and hand them out. */
static bool take(const char *const *values, struct rueda_doctor_options *out,
                 struct rueda_text *words)
{
    int port;

    out->list = values[0];
    out->file = values[1];
    out->ssh = (struct rueda_ssh){.port = values[2], .identity = values[3]};
    out->network = values[4];
    out->json = values[5];
    if (out->list != NULL && out->file != NULL)
        rueda_text_set(words, "-H and --hostfile do not go together");
    else if (values[2] != NULL &&
             (!rueda_parse_int(values[2], &port) || port < 1 || port > 65535))
        rueda_text_set(words, "-p takes a port from 1 to 65535, not '%.64s'",
                       values[2]);
    else if (values[6] != NULL &&
             (!rueda_parse_int(values[6], &out->timeout_s) ||
              out->timeout_s < 1 || out->timeout_s > 3600))
        rueda_text_set(words,
                       "--timeout takes seconds from 1 to 3600, not '%.64s'",
                       values[6]);
    return rueda_text_is_empty(words);
}

/* Options of users, or the words of a role, which the doctor itself passes to
 * other hosts. */
bool rueda_doctor_options_parse(int argc, char **argv,
                                struct rueda_doctor_options *out,
                                struct rueda_text *words)
{
    const char *values[COUNT(names)] = {NULL};
    struct rueda_doctor_options options = {.timeout_s = 15};

    if (read_role(argc, argv, &options)) {
        *out = options;
        return true;
    }
    for (int i = 0; i < argc;) {
        int used;

        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            out->role = RUEDA_DOCTOR_HELPS;
            return true;
        }
        used = read_option(argc - i, argv + i, values, words);
        if (used == 0) {
            if (rueda_text_is_empty(words))
                unknown_word(argv[i], words);
            return false;
        }
        i += used;
    }
    if (!take(values, &options, words))
        return false;
    *out = options;
    return true;
}

/* ---- Hosts -------------------------------------------------------------- */

/* The list with ":1" for hosts without slots. NULL: no memory. */
static char *with_slots(const char *list)
{
    char *text = malloc(3 * strlen(list) + 3);
    size_t len = 0;

    while (text != NULL) {
        const size_t item = strcspn(list, ",");
        const bool has_slots = item > 0 && list[item - 1] != ']' &&
                               memchr(list, ':', item) != NULL;

        memcpy(text + len, list, item);
        len += item;
        if (!has_slots && item > 0) {
            text[len++] = ':';
            text[len++] = '1';
        }
        text[len++] = list[item];
        if (list[item] == '\0')
            break;
        list += item + 1;
    }
    return text;
}

bool rueda_doctor_hosts(const struct rueda_doctor_options *options, int slots,
                        struct rueda_hosts *out, struct rueda_text *words)
{
    char *list = options->list != NULL ? with_slots(options->list) : NULL;
    bool is_good = rueda_hosts_find(list, options->file, slots, out, words);

    free(list);
    if (is_good && out->count > RUEDA_DOCTOR_HOSTS_MAX) {
        rueda_text_set(words, "at most %d hosts at a time, not %d",
                       RUEDA_DOCTOR_HOSTS_MAX, out->count);
        rueda_hosts_fini(out);
        is_good = false;
    }
    return is_good;
}
