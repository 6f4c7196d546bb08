/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts by which bash, zsh and fish complete ruedarun's options: names,
 * values where the table lists them, files and folders where an option takes
 * one. From the first word that is no option on, the command is completed as
 * on a line of its own.
 */
#include "launch/completion.h"

#include <stdbool.h>
#include <string.h>

#include "launch/option_table.h"

#define NAMES 6 /* own, others, negations */

/* The i-th name of an option, NULL: none there. */
static const char *name_of(const struct rueda_option *option, int i)
{
    if (i == 0)
        return option->name;
    return i < 4 ? option->others[i - 1] : option->negation[i - 4];
}

static bool is_shown(const struct rueda_option *option)
{
    return option->group != RUEDA_GROUP_HIDDEN;
}

static bool is_negation(int i)
{
    return i >= 4;
}

static bool takes_value(const struct rueda_option *option)
{
    return option->kind != RUEDA_TAKES_NOTHING;
}

static bool takes(const struct rueda_option *option, const char *what)
{
    return option->value != NULL && strcmp(option->value, what) == 0;
}

/* All names of the options for which is_wanted(), with a mark between. */
static void print_names(FILE *out, const char *mark,
                        bool (*is_wanted)(const struct rueda_option *option))
{
    const char *before = "";

    for (int id = 0; id < RUEDA_OPTION_COUNT; id++) {
        const struct rueda_option *option = &rueda_options_table[id];

        for (int i = 0; i < NAMES; i++) {
            const char *name = name_of(option, i);

            if (name == NULL || !is_shown(option) || !is_wanted(option))
                continue;
            fprintf(out, "%s%s", before, name);
            before = mark;
        }
    }
}

static bool is_any(const struct rueda_option *option)
{
    (void)option;
    return true;
}

static bool takes_file(const struct rueda_option *option)
{
    return takes(option, "FILE");
}

static bool takes_folder(const struct rueda_option *option)
{
    return takes(option, "FOLDER");
}

static bool takes_other(const struct rueda_option *option)
{
    return takes_value(option) && option->kind != RUEDA_TAKES_CHOICE &&
           !takes_file(option) && !takes_folder(option);
}

static bool takes_one(const struct rueda_option *option)
{
    return takes_value(option) && option->values <= 1;
}

static bool takes_two(const struct rueda_option *option)
{
    return option->values > 1;
}

static void print_choices(FILE *out, const struct rueda_option *option)
{
    for (int i = 0; option->choices[i] != NULL; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", option->choices[i]);
}

/* ---- bash --------------------------------------------------------------- */

static void print_bash_choices(FILE *out)
{
    for (int id = 0; id < RUEDA_OPTION_COUNT; id++) {
        const struct rueda_option *option = &rueda_options_table[id];

        if (option->kind != RUEDA_TAKES_CHOICE || !is_shown(option))
            continue;
        fprintf(out, "    %s) COMPREPLY=($(compgen -W '", option->name);
        print_choices(out, option);
        fputs("' -- \"$word\")); return ;;\n", out);
    }
}

/* bash takes "=" for a word of its own. */
static void print_bash(FILE *out)
{
    fputs("# Completion for ruedarun: eval \"$(ruedarun --completion "
          "bash)\"\n"
          "_ruedarun() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} at=1\n"
          "    local before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    COMPREPLY=()\n"
          "    [[ $before == = && $COMP_CWORD -gt 2 ]] &&"
          " before=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    [[ $word == = ]] && word=\n"
          "    while ((at < COMP_CWORD)); do\n"
          "        case ${COMP_WORDS[at]} in\n"
          "        ",
          out);
    print_names(out, "|", takes_two);
    fputs(") ((at += 3)) ;;\n        ", out);
    print_names(out, "|", takes_one);
    fputs(")\n"
          "            [[ ${COMP_WORDS[at + 1]} == = ]] && ((at += 1))\n"
          "            ((at += 2)) ;;\n"
          "        --) ((at += 1)); break ;;\n"
          "        -*) ((at += 1)) ;;\n"
          "        *) break ;;\n"
          "        esac\n"
          "    done\n"
          "    if ((at < COMP_CWORD)); then\n"
          "        COMPREPLY=($(compgen -f -- \"$word\")); return\n"
          "    fi\n"
          "    case $before in\n",
          out);
    print_bash_choices(out);
    fputs("    ", out);
    print_names(out, "|", takes_file);
    fputs(") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n    ", out);
    print_names(out, "|", takes_folder);
    fputs(") COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n    ", out);
    print_names(out, "|", takes_other);
    fputs(") return ;;\n"
          "    esac\n"
          "    if [[ $word == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W '",
          out);
    print_names(out, " ", is_any);
    fputs("' -- \"$word\"))\n"
          "    else\n"
          "        COMPREPLY=($(compgen -c -- \"$word\")"
          " $(compgen -f -- \"$word\"))\n"
          "    fi\n"
          "}\n"
          "complete -o filenames -F _ruedarun ruedarun horovodrun\n",
          out);
}

/* ---- zsh and fish ------------------------------------------------------- */

/* Text inside single quotes, for _arguments without what it would read. */
static void print_text(FILE *out, const char *text, const char *special)
{
    for (; text != NULL && *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\'", out);
        else if (strchr(special, *text) != NULL)
            fputc('\\', out);
        fputc(*text, out);
    }
}

static const char *help_of(const struct rueda_option *option)
{
    if (option->help != NULL)
        return option->help;
    return option->variable != NULL ? option->variable : option->name;
}

static void print_zsh_value(FILE *out, const struct rueda_option *option)
{
    for (int i = 0; i < (option->values > 1 ? option->values : 1); i++) {
        fputc(':', out);
        print_text(out, option->value, ":[]\\");
        fputc(':', out);
        if (option->kind == RUEDA_TAKES_CHOICE) {
            fputc('(', out);
            print_choices(out, option);
            fputc(')', out);
        } else if (takes_file(option)) {
            fputs("_files", out);
        } else if (takes_folder(option)) {
            fputs("_files -/", out);
        }
    }
}

static void print_zsh(FILE *out)
{
    fputs("#compdef ruedarun horovodrun\n"
          "# Completion for ruedarun, as the file _ruedarun on the fpath, or:\n"
          "# eval \"$(ruedarun --completion zsh)\"\n"
          "_ruedarun() {\n"
          "    _arguments -S",
          out);
    for (int id = 0; id < RUEDA_OPTION_COUNT; id++) {
        const struct rueda_option *option = &rueda_options_table[id];

        for (int i = 0; is_shown(option) && i < NAMES; i++) {
            const char *name = name_of(option, i);

            if (name == NULL)
                continue;
            fprintf(out, " \\\n        '*%s%s[", name,
                    takes_value(option) && name[1] == '-' ? "=" : "");
            print_text(out, help_of(option), ":[]\\");
            fputc(']', out);
            if (takes_value(option))
                print_zsh_value(out, option);
            fputc('\'', out);
        }
    }
    fputs(" \\\n        '*::command:_normal'\n"
          "}\n"
          "compdef _ruedarun ruedarun horovodrun\n",
          out);
}

/* "-np" is an old-style option for fish, "-n" a short one. */
static const char *fish_kind(const char *name)
{
    if (name[1] == '-')
        return "-l";
    return strlen(name) == 2 ? "-s" : "-o";
}

static void print_fish_option(FILE *out, const struct rueda_option *option,
                              const char *program, int i)
{
    const char *name = name_of(option, i);

    fprintf(out, "complete -c %s %s %s", program, fish_kind(name),
            name + strspn(name, "-"));
    if (takes_value(option) && !is_negation(i))
        fputs(takes_file(option) || takes_folder(option) ? " -r" : " -x", out);
    if (option->kind == RUEDA_TAKES_CHOICE) {
        fputs(" -a '", out);
        print_choices(out, option);
        fputc('\'', out);
    }
    fputs(" -d '", out);
    print_text(out, help_of(option), "\\");
    fputs("'\n", out);
}

static void print_fish(FILE *out)
{
    static const char *const programs[] = {"ruedarun", "horovodrun"};

    fputs("# Completion for ruedarun: ruedarun --completion fish | source\n",
          out);
    for (int p = 0; p < 2; p++)
        for (int id = 0; id < RUEDA_OPTION_COUNT; id++)
            for (int i = 0; is_shown(&rueda_options_table[id]) && i < NAMES;
                 i++)
                if (name_of(&rueda_options_table[id], i) != NULL)
                    print_fish_option(out, &rueda_options_table[id],
                                      programs[p], i);
}

void rueda_launch_completion(const char *shell, FILE *out)
{
    if (strcmp(shell, "bash") == 0)
        print_bash(out);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(out);
    else
        print_fish(out);
}
