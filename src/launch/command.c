/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completing the command line. torchrun and others take a script, so people
 * write "ruedarun -np 2 train.py"; the interpreter is then the one that Rueda
 * is installed with.
 */
#include "launch/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "launch/hosts.h"
#include "launch/spawn.h"
#include "launch/ssh.h"

#define PATH_BYTES RUEDA_SSH_PATH_BYTES

/* ---- A line to type ----------------------------------------------------- */

/* As a shell takes it for one word. */
static void add_word(struct rueda_text *words, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=./:,@%";

    if (word[0] != '\0' && strspn(word, plain) == strlen(word)) {
        rueda_text_add(words, " %s", word);
        return;
    }
    rueda_text_add(words, " '");
    for (; *word != '\0'; word++)
        rueda_text_add(words, *word == '\'' ? "'\\''" : "%c", *word);
    rueda_text_add(words, "'");
}

static bool is_number_option(const char *word)
{
    static const char *const names[] = {"-np", "--np", "--num-proc",
                                        "--nproc-per-node", "--nproc_per_node"};
    const size_t len = strcspn(word, "=");

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == len && strncmp(word, names[i], len) == 0)
            return true;
    return false;
}

/* Where the number stands among the words of the command; -1: nowhere. */
static int find_number(char *const *command)
{
    for (int i = 1; command[i] != NULL; i++)
        if (is_number_option(command[i]) &&
            (strchr(command[i], '=') != NULL || command[i + 1] != NULL))
            return i;
    return -1;
}

void rueda_command_say_number(const struct rueda_options *options,
                              struct rueda_text *words)
{
    const char *program =
        options->program != NULL ? options->program : "ruedarun";
    const int at = find_number(options->command);
    const int used =
        at < 0 ? 0 : 1 + (strchr(options->command[at], '=') == NULL);

    if (at >= 0)
        rueda_text_set(words, "say how many ranks before the command: %s",
                       program);
    else
        rueda_text_set(words, "say how many ranks, for example: %s -np 2",
                       program);
    for (int i = at; i >= 0 && i < at + used; i++)
        add_word(words, options->command[i]);
    for (char **word = options->given; word != NULL && word < options->command;
         word++)
        add_word(words, *word);
    for (int i = 0; options->command[i] != NULL; i++)
        if (at < 0 || i < at || i >= at + used)
            add_word(words, options->command[i]);
}

/* ---- Ranks for each host ------------------------------------------------ */

char *rueda_command_hosts(const char *list, int slots, int *out_count)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    int count = 0;

    if (file == NULL)
        return NULL;
    while (*list != '\0') {
        const size_t len = strcspn(list, ",");
        const char *bracket = memchr(list, ']', len);
        const size_t head = bracket != NULL ? (size_t)(bracket - list) : 0;
        const char *colon = memchr(list + head, ':', len - head);
        const int name = (int)(colon != NULL ? colon - list : (ptrdiff_t)len);

        fprintf(file, "%s%.*s:%d", count > 0 ? "," : "", name, list, slots);
        count++;
        list += len + (list[len] == ',');
    }
    *out_count = count;
    if (fclose(file) == 0)
        return text;
    free(text);
    return NULL;
}

/* The hosts of the options without their slots, to be freed; NULL: this host,
 * or a message. */
static char *list_hosts(const struct rueda_options *options,
                        struct rueda_text *words)
{
    const char *list = options->values[RUEDA_OPTION_HOSTS];
    const char *file = options->values[RUEDA_OPTION_HOSTFILE];
    struct rueda_hosts hosts = {.list = NULL};
    char *text = NULL;

    if (list != NULL)
        return strdup(list);
    if (file == NULL || !rueda_hosts_read(file, &hosts, words))
        return NULL;
    text = rueda_hosts_text(&hosts, true);
    rueda_hosts_fini(&hosts);
    return text;
}

static bool count_ranks(struct rueda_options *options, struct rueda_text *words)
{
    const int each = rueda_options_whole(options, RUEDA_OPTION_PER_NODE, 1);
    char *list = list_hosts(options, words);
    char *number = NULL;
    int count = 1;

    if (!rueda_text_is_empty(words)) {
        free(list);
        return false;
    }
    if (list != NULL) {
        char *hosts = rueda_command_hosts(list, each, &count);

        free(list);
        options->values[RUEDA_OPTION_HOSTFILE] = NULL;
        if (hosts == NULL || count == 0 ||
            !rueda_options_set(options, RUEDA_OPTION_HOSTS, hosts))
            return false;
    }
    if (asprintf(&number, "%lld", (long long)each * count) < 0)
        number = NULL;
    return rueda_options_set(options, RUEDA_OPTION_NP, number);
}

/* ---- Python ------------------------------------------------------------- */

/* The interpreter beside this program, else that of the PATH. */
static bool find_python(char *out, size_t bytes)
{
    struct rueda_text why = {{0}};
    char own[PATH_BYTES];
    char *slash;

    rueda_ssh_own_path(own, sizeof(own));
    slash = strrchr(own, '/');
    if (slash != NULL && (size_t)(slash - own) + sizeof("/python") < bytes) {
        snprintf(out, bytes, "%.*s/python", (int)(slash - own), own);
        if (access(out, X_OK) == 0)
            return true;
    }
    return rueda_spawn_find("python3", rueda_environment("PATH"), out, bytes,
                            &why);
}

/* A file that ends with ".py", and that is not a program by itself. */
static bool is_script(const char *word)
{
    const size_t len = strlen(word);
    struct rueda_text why = {{0}};
    char found[PATH_BYTES];
    struct stat what;

    return len > 3 && strcmp(word + len - 3, ".py") == 0 &&
           stat(word, &what) == 0 && S_ISREG(what.st_mode) &&
           !rueda_spawn_find(word, rueda_environment("PATH"), found,
                             sizeof(found), &why);
}

static bool add_python(struct rueda_options *options, bool is_module,
                       struct rueda_text *words)
{
    struct rueda_strings *own = &options->own_command;
    char python[PATH_BYTES];

    if (!find_python(python, sizeof(python))) {
        rueda_text_set(words,
                       "%.200s needs Python, and there is no python3 on the "
                       "PATH",
                       options->command[0]);
        return false;
    }
    rueda_strings_add(own, python);
    if (is_module)
        rueda_strings_add(own, "-m");
    rueda_strings_add_all(own, options->command);
    if (own->is_short) {
        rueda_text_set(words, "no memory");
        return false;
    }
    options->command = own->list;
    return true;
}

bool rueda_command_complete(struct rueda_options *options,
                            struct rueda_text *words)
{
    const bool is_module = rueda_options_is_on(options, RUEDA_OPTION_MODULE);

    if (options->values[RUEDA_OPTION_PER_NODE] != NULL &&
        options->values[RUEDA_OPTION_NP] == NULL &&
        !count_ranks(options, words)) {
        rueda_text_set(words, "no memory");
        return false;
    }
    if (!is_module && !is_script(options->command[0]))
        return true;
    return add_python(options, is_module, words);
}
