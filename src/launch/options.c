/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading ruedarun's command line by the table of option_table.c, with
 * suggestions for mistyped words. options_check.c checks how options go
 * together.
 */
#include "launch/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/near.h"

#define NAMES 4 /* a row's own name and its others */

/* ---- Values ------------------------------------------------------------- */

static bool is_number(const struct rueda_option *option, const char *value,
                      double *out)
{
    static const char *const letters[] = {[RUEDA_TAKES_WHOLE] = "+0123456789",
                                          [RUEDA_TAKES_DECIMAL] =
                                              "+.eE-0123456789"};
    char *end;

    if (value[0] == '\0' ||
        strspn(value, letters[option->kind]) != strlen(value))
        return false;
    *out = strtod(value, &end);
    return *end == '\0' && *out >= option->low && *out <= option->high;
}

static bool check_number(const struct rueda_option *option, const char *name,
                         const char *value, struct rueda_text *words)
{
    const bool is_whole = option->kind == RUEDA_TAKES_WHOLE;
    double number;

    if (is_number(option, value, &number))
        return true;
    rueda_text_set(words, "%s takes a %snumber", name,
                   is_whole ? "whole " : "");
    if (option->high < 1e9)
        rueda_text_add(words, " from %g to %.0f", option->low, option->high);
    else
        rueda_text_add(words, " from %g up", option->low);
    rueda_text_add(words, ", not '%.64s'", value);
    return false;
}

static bool check_choice(const struct rueda_option *option, const char *name,
                         const char **value, struct rueda_text *words)
{
    const char *near;

    for (int i = 0; option->choices[i] != NULL; i++) {
        if (strcasecmp(*value, option->choices[i]) == 0) {
            *value = option->choices[i];
            return true;
        }
    }
    near = rueda_near_match(*value, option->choices);
    rueda_text_set(words, "%s takes", name);
    for (int i = 0; option->choices[i] != NULL; i++)
        rueda_text_add(words, "%s %s", i == 0 ? "" : ",", option->choices[i]);
    rueda_text_add(words, "; not '%.64s'", *value);
    if (near != NULL)
        rueda_text_add(words, "; did you mean '%s'?", near);
    return false;
}

static bool check_switch(const char *name, const char **value,
                         struct rueda_text *words)
{
    static const char *const on[] = {"1", "true", "yes", "on", "y"};
    static const char *const off[] = {"0", "false", "no", "off", "n"};

    for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++) {
        if (strcasecmp(*value, on[i]) == 0)
            *value = "1";
        else if (strcasecmp(*value, off[i]) == 0)
            *value = "0";
        else
            continue;
        return true;
    }
    rueda_text_set(words, "%s is true or false, not '%.64s'", name, *value);
    return false;
}

static bool check_value(rueda_option_id id, const char *name,
                        const char **value, struct rueda_text *words)
{
    const struct rueda_option *option = &rueda_options_table[id];

    switch (option->kind) {
    case RUEDA_TAKES_NOTHING:
        return check_switch(name, value, words);
    case RUEDA_TAKES_WHOLE:
    case RUEDA_TAKES_DECIMAL:
        return check_number(option, name, *value, words);
    case RUEDA_TAKES_CHOICE:
        return check_choice(option, name, value, words);
    case RUEDA_TAKES_TEXT:
        break;
    }
    if ((*value)[0] != '\0')
        return true;
    rueda_text_set(words, "%s needs a value", name);
    return false;
}

/* Keep what does not live as long as we do. */
static bool own(struct rueda_options *options, rueda_option_id id, char *text,
                struct rueda_text *words)
{
    if (text == NULL) {
        rueda_text_set(words, "no memory");
        return false;
    }
    free(options->owned[id]);
    options->owned[id] = text;
    options->values[id] = text;
    return true;
}

bool rueda_options_set(struct rueda_options *options, rueda_option_id id,
                       char *text)
{
    struct rueda_text words = {{0}};

    return own(options, id, text, &words);
}

static bool add_to(struct rueda_options *options, rueda_option_id id, char mark,
                   const char *value, struct rueda_text *words)
{
    char *both = NULL;

    if (asprintf(&both, "%s%c%s", options->values[id], mark, value) < 0)
        both = NULL;
    return own(options, id, both, words);
}

bool rueda_options_give(struct rueda_options *options, rueda_option_id id,
                        const char *name, const char *value,
                        struct rueda_text *words)
{
    if (!check_value(id, name, &value, words))
        return false;
    if (options->values[id] != NULL && !options->is_from_file[id])
        return true;
    options->is_from_file[id] = true;
    return own(options, id, strdup(value), words);
}

bool rueda_options_is_on(const struct rueda_options *options,
                         rueda_option_id id)
{
    const char *value = options->values[id];

    return value != NULL &&
           (rueda_options_table[id].kind != RUEDA_TAKES_NOTHING ||
            strcmp(value, "1") == 0);
}

int rueda_options_whole(const struct rueda_options *options, rueda_option_id id,
                        int fallback)
{
    return (int)rueda_options_decimal(options, id, fallback);
}

double rueda_options_decimal(const struct rueda_options *options,
                             rueda_option_id id, double fallback)
{
    const char *value = options->values[id];

    return value != NULL ? strtod(value, NULL) : fallback;
}

void rueda_options_fini(struct rueda_options *options)
{
    rueda_strings_fini(&options->own_command);
    for (int i = 0; i < RUEDA_OPTION_COUNT; i++)
        free(options->owned[i]);
    memset(options, 0, sizeof(*options));
}

/* ---- Names -------------------------------------------------------------- */

/* A name in the table: the row, and whether it turns a switch off. */
struct meaning {
    int id; /* -1: none */
    bool is_negation;
};

/* The names of a row, one after another; NULL after the last. */
static const char *name_of(int id, int which, bool *out_is_negation)
{
    const struct rueda_option *option = &rueda_options_table[id];

    *out_is_negation = which >= NAMES;
    if (which == 0)
        return option->name;
    if (which < NAMES)
        return option->others[which - 1];
    return which < NAMES + 2 ? option->negation[which - NAMES] : NULL;
}

/* The row whose name is the first len letters of word, or begins with them if
 * is_prefix. id is -2 where several are meant. */
static struct meaning find(const char *word, size_t len, bool is_prefix)
{
    struct meaning found = {.id = -1};

    for (int id = 0; id < RUEDA_OPTION_COUNT; id++) {
        for (int which = 0; which < NAMES + 2; which++) {
            bool is_negation;
            const char *name = name_of(id, which, &is_negation);

            if (name == NULL || strncmp(name, word, len) != 0 ||
                (!is_prefix && name[len] != '\0'))
                continue;
            if (found.id != -1 &&
                (found.id != id || found.is_negation != is_negation))
                return (struct meaning){.id = -2};
            found = (struct meaning){.id = id, .is_negation = is_negation};
        }
    }
    return found;
}

static void say_ambiguous(const char *word, size_t len,
                          struct rueda_text *words)
{
    const char *comma = "";
    bool is_negation;

    rueda_text_set(words, "'%.*s' may be", (int)len, word);
    for (int id = 0; id < RUEDA_OPTION_COUNT; id++) {
        for (int which = 0; which < NAMES + 2; which++) {
            const char *name = name_of(id, which, &is_negation);

            if (name == NULL || strncmp(name, word, len) != 0)
                continue;
            rueda_text_add(words, "%s %s", comma, name);
            comma = ",";
        }
    }
    rueda_text_add(words, "; write more of it");
}

static void say_unknown(const struct rueda_options *options, const char *word,
                        size_t len, struct rueda_text *words)
{
    const char *known[RUEDA_OPTION_COUNT * (NAMES + 2) + 1];
    char name[64];
    const char *near;
    int count = 0;
    bool is_negation;

    for (int id = 0; id < RUEDA_OPTION_COUNT; id++)
        for (int which = 0; which < NAMES + 2; which++)
            if (name_of(id, which, &is_negation) != NULL)
                known[count++] = name_of(id, which, &is_negation);
    known[count] = NULL;
    snprintf(name, sizeof(name), "%.*s", (int)len, word);
    /* Every letter is near every other. */
    near = len > 2 ? rueda_near_match(name, known) : NULL;
    rueda_text_set(words, "unknown option '%s'", name);
    if (near != NULL)
        rueda_text_add(words, "; did you mean '%s'?", near);
    else
        rueda_text_add(words, "; '%s --help all' lists them", options->program);
}

/* ---- The command line --------------------------------------------------- */

/* A word that begins with a dash: its option and, if it is in the same word,
 * its value. False: an error. */
static bool understand(const struct rueda_options *options, const char *word,
                       struct meaning *out, const char **out_value,
                       struct rueda_text *words)
{
    const size_t len = strcspn(word, "=");
    struct meaning found = find(word, len, false);

    *out_value = word[len] == '=' ? word + len + 1 : NULL;
    if (found.id == -1 && word[1] == '-')
        found = find(word, len, true);
    if (found.id == -1 && strchr("Hpi", word[1]) != NULL) {
        found = find(word, 2, false);
        *out_value = word + 2;
    }
    if (found.id == -2)
        say_ambiguous(word, len, words);
    else if (found.id == -1)
        say_unknown(options, word, len, words);
    *out = found;
    return found.id >= 0;
}

/* The last one wins, except among options that exclude each other: with Horovod
 * such an option also excludes its own opposite. */
static bool set_switch(struct rueda_options *options, struct meaning meaning,
                       const char *value, struct rueda_text *words)
{
    const struct rueda_option *option = &rueda_options_table[meaning.id];
    const char *given = options->values[meaning.id];
    const char *word = meaning.is_negation ? "0" : "1";

    if (value != NULL) {
        rueda_text_set(words, "%s takes no value", option->name);
        return false;
    }
    if (given != NULL && option->rivals != RUEDA_RIVALS_NONE &&
        strcmp(given, word) != 0) {
        rueda_text_set(words, "%s and %s exclude each other", option->name,
                       option->negation[0]);
        return false;
    }
    options->values[meaning.id] = word;
    return true;
}

/* The option's name as the user has written it, if it is there as a whole. */
static void copy_name(rueda_option_id id, const char *word, char *out,
                      size_t bytes)
{
    const size_t len = strcspn(word, "=");

    if (find(word, len, false).id == (int)id)
        snprintf(out, bytes, "%.*s", (int)len, word);
    else
        snprintf(out, bytes, "%s", rueda_options_table[id].name);
}

/* Take the value or values of an option. Returns how many words of argv it
 * used in all, 0 for a mistake. */
static int take_values(struct rueda_options *options, rueda_option_id id,
                       int argc, char **argv, const char *value,
                       struct rueda_text *words)
{
    const struct rueda_option *option = &rueda_options_table[id];
    const int wanted = option->values > 1 ? option->values : 1;
    char name[64];
    int used = 1;

    copy_name(id, argv[0], name, sizeof(name));
    for (int i = 0; i < wanted; i++) {
        if (i > 0 || value == NULL) {
            if (used >= argc) {
                rueda_text_set(words, "%s needs a value", name);
                return 0;
            }
            value = argv[used++];
        }
        if (!check_value(id, name, &value, words))
            return 0;
        if (i > 0 || (option->is_list && options->values[id] != NULL)) {
            if (!add_to(options, id, i > 0 ? ' ' : ',', value, words))
                return 0;
        } else {
            options->values[id] = value;
        }
    }
    return used;
}

static int parse_option(struct rueda_options *options, int argc, char **argv,
                        struct rueda_text *words)
{
    struct meaning meaning;
    const char *value;

    if (!understand(options, argv[0], &meaning, &value, words))
        return 0;
    if (rueda_options_table[meaning.id].kind != RUEDA_TAKES_NOTHING)
        return take_values(options, (rueda_option_id)meaning.id, argc, argv,
                           value, words);
    if (!set_switch(options, meaning, value, words))
        return 0;
    if (meaning.id != RUEDA_OPTION_HELP || argc < 2 || argv[1][0] == '-')
        return 1;
    options->help_group = argv[1];
    return 2;
}

static const char *name_of_program(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

bool rueda_options_parse(int argc, char **argv, struct rueda_options *out,
                         struct rueda_text *words)
{
    int i = 1;

    memset(out, 0, sizeof(*out));
    out->program = argc > 0 ? name_of_program(argv[0]) : "ruedarun";
    out->is_horovodrun = strcmp(out->program, "horovodrun") == 0;
    while (i < argc && argv[i][0] == '-' && argv[i][1] != '\0') {
        int used;

        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        used = parse_option(out, argc - i, argv + i, words);
        if (used == 0)
            return false;
        i += used;
    }
    out->given = argv + 1;
    out->command = argv + i;
    return true;
}
