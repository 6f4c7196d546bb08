/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks' output: lines get their prefix and go to the consoles and files;
 * our own messages go between them. Remembers the last lines of each rank for
 * how the job ended.
 */
#include "launch/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "launch/chosen.h"
#include "launch/lines.h"
#include "launch/output_files.h"
#include "launch/repeats.h"
#include "os/clock.h"

#define PREFIX_BYTES  160
#define LEAST_COLUMNS 20

/* One of the two targets that lines go to. */
struct output_target {
    struct rueda_console *console;
    bool is_terminal;
    bool has_colours;
    int owner;        /* whose line was not ended: 2 * rank + stream - 1 */
    bool is_mid_line; /* the last byte did not end a line */
    bool is_bar;      /* a line ended with "\r": the next one covers it */
    bool has_progress;
};

/* One of the two streams of a rank. */
struct source {
    struct rueda_output *output;
    int rank;
    int name; /* its rank for people */
    int stream;
    const char *host;
    bool is_terminal; /* its bytes are shown as they come */
    struct rueda_lines lines;
};

struct rueda_output {
    struct rueda_output_args args;
    struct output_target targets[2];
    struct output_target
        *by_stream[2];        /* both the same where they are one file */
    struct source *sources;   /* [2 * size] */
    struct rueda_tail *tails; /* [size] */
    struct rueda_output_files *files; /* NULL: none are wanted */
    struct rueda_repeats *repeats;
    int first_exception;
    bool has_stdout_error;
};

static const char *const stream_names[] = {"stdout", "stderr"};

/* ---- Lines -------------------------------------------------------------- */

static void put(struct output_target *target, const char *bytes, size_t len)
{
    rueda_console_put(target->console, bytes, len);
}

static void clear_progress(struct output_target *target)
{
    if (target->has_progress)
        put(target, "\r\033[K", 4);
    target->has_progress = false;
}

/* Begin a line of `owner`, whatever was there. */
static void begin_line(struct output_target *target, int owner)
{
    clear_progress(target);
    if (target->is_mid_line && target->owner != owner)
        put(target, "\n", 1);
    else if (target->is_bar && target->is_terminal)
        put(target, "\033[K", 3); /* a longer bar leaves no end behind */
    target->owner = owner;
    target->is_mid_line = false;
    target->is_bar = false;
}

/* "Mon Jan  1 00:00:00 2024[3]<stdout>:", or with "@host" behind the rank, or
 * without any of it but the time. */
static size_t make_prefix(const struct source *source, char *out, size_t bytes)
{
    char when[32] = "";
    struct tm parts;
    time_t now;

    if (source->output->args.has_timestamps) {
        now = time(NULL);
        strftime(when, sizeof(when), "%a %b %e %H:%M:%S %Y",
                 localtime_r(&now, &parts));
    }
    if (source->output->args.prefix == RUEDA_PREFIX_NONE)
        return (size_t)snprintf(out, bytes, "%s%s", when,
                                when[0] != '\0' ? " " : "");
    return (size_t)snprintf(out, bytes, "%s[%d%s%.64s]<%s>:", when,
                            source->name, source->host != NULL ? "@" : "",
                            source->host != NULL ? source->host : "",
                            stream_names[source->stream - 1]);
}

static void show(struct source *source, bool is_begin, const char *bytes,
                 size_t len)
{
    static const char *const colours[] = {"\033[36m", "\033[33m", "\033[32m",
                                          "\033[35m", "\033[34m", "\033[31m"};
    struct output_target *target =
        source->output->by_stream[source->stream - 1];
    const int owner = 2 * source->rank + source->stream - 1;
    char prefix[PREFIX_BYTES];
    size_t prefix_len;

    if (is_begin) {
        prefix_len = make_prefix(source, prefix, sizeof(prefix));
        begin_line(target, owner);
        if (target->has_colours && prefix_len > 0)
            put(target, colours[source->name % 6], 5);
        put(target, prefix, prefix_len);
        if (target->has_colours && prefix_len > 0)
            put(target, "\033[0m", 4);
    }
    put(target, bytes, len);
    target->is_mid_line = bytes[len - 1] != '\n' && bytes[len - 1] != '\r';
    target->is_bar = bytes[len - 1] == '\r';
}

static void show_error(void *arg, int rank, const char *bytes, size_t len,
                       bool is_begin)
{
    struct rueda_output *output = arg;

    show(&output->sources[2 * rank + 1], is_begin, bytes, len);
}

/* A terminal's rank writes what the terminal shows, without our prefix. */
static void write_files(struct source *source, bool is_begin, const char *bytes,
                        size_t len)
{
    struct rueda_output_files *files = source->output->files;
    const int index = 2 * source->rank + source->stream - 1;
    char prefix[PREFIX_BYTES];
    size_t prefix_len = 0;

    if (files == NULL)
        return;
    if (is_begin)
        prefix_len = make_prefix(source, prefix, sizeof(prefix));
    rueda_output_files_put(files, index, prefix, prefix_len);
    rueda_output_files_put(files, index, bytes, len);
    rueda_output_files_put(files, RUEDA_OUTPUT_TEE, prefix, prefix_len);
    rueda_output_files_put(files, RUEDA_OUTPUT_TEE, bytes, len);
}

static void on_line(void *arg, const char *bytes, size_t len, bool is_begin)
{
    struct source *source = arg;
    struct rueda_output *output = source->output;

    write_files(source, is_begin, bytes, len);
    if (source->stream == 2 && is_begin &&
        rueda_tail_add(&output->tails[source->rank], bytes, len)) {
        output->tails[source->rank].exception_ns = rueda_clock_ns();
        if (output->first_exception < 0)
            output->first_exception = source->rank;
    }
    if (source->is_terminal ||
        !rueda_chosen_has(output->args.ranks, source->name))
        return;
    if (source->stream == 2)
        rueda_repeats_line(output->repeats, source->rank, bytes, len, is_begin,
                           rueda_clock_ns());
    else
        show(source, is_begin, bytes, len);
}

void rueda_output_feed(struct rueda_output *output, int rank, int stream,
                       const char *bytes, size_t len)
{
    struct source *source = &output->sources[2 * rank + stream - 1];

    if (source->is_terminal && len > 0) {
        struct output_target *target = output->by_stream[0];

        clear_progress(target);
        put(target, bytes, len);
        target->is_mid_line = bytes[len - 1] != '\n';
        target->owner = 2 * rank;
    }
    rueda_lines_feed(&source->lines, bytes, len, on_line, source);
}

void rueda_output_end(struct rueda_output *output, int rank)
{
    for (int i = 0; i < 2; i++) {
        struct source *source = &output->sources[2 * rank + i];

        rueda_lines_end(&source->lines, on_line, source);
    }
    rueda_repeats_end(output->repeats, rank);
    output->tails[rank].is_over = true;
}

/* ---- Our own words ------------------------------------------------------ */

static void say(struct rueda_output *output, const char *name,
                const char *format, va_list list)
{
    struct output_target *target = output->by_stream[1];
    char *words = NULL;

    if (vasprintf(&words, format, list) < 0)
        return;
    begin_line(target, -1);
    if (name != NULL) {
        put(target, name, strlen(name));
        put(target, ": ", 2);
    }
    put(target, words, strlen(words));
    put(target, "\n", 1);
    free(words);
}

void rueda_output_say(struct rueda_output *output, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    say(output, output->args.program, format, list);
    va_end(list);
}

void rueda_output_say_plainly(struct rueda_output *output, const char *format,
                              ...)
{
    va_list list;

    va_start(list, format);
    say(output, NULL, format, list);
    va_end(list);
}

void rueda_output_progress(struct rueda_output *output, const char *words)
{
    struct output_target *target = output->by_stream[1];

    if (!target->is_terminal)
        return;
    begin_line(target, -1);
    if (words[0] == '\0')
        return;
    put(target, output->args.program, strlen(output->args.program));
    put(target, ": ", 2);
    put(target, words, strlen(words));
    target->has_progress = true;
}

/* ---- Readers ------------------------------------------------------------ */

bool rueda_output_is_full(struct rueda_output *output)
{
    return rueda_console_is_full(output->by_stream[0]->console) ||
           rueda_console_is_full(output->by_stream[1]->console) ||
           (output->files != NULL && rueda_output_files_is_full(output->files));
}

/* For example, the disk is full. A reader that exits is handled elsewhere. */
static void say_stdout_error(struct rueda_output *output, int error)
{
    if (error == 0 || error == EPIPE || output->has_stdout_error)
        return;
    output->has_stdout_error = true;
    rueda_output_say(output, "cannot write to the standard output any more: %s",
                     strerror(error));
}

/* look: one of the two of console.h. */
static void say_left_out(struct rueda_output *output,
                         uint64_t (*look)(struct rueda_console *console))
{
    for (int i = 0; i < 2; i++) {
        uint64_t left_out;

        if (output->targets[i].console == NULL)
            continue;
        left_out = look(output->targets[i].console);
        if (left_out > 0)
            rueda_output_say(output,
                             "%llu bytes of the ranks' output were left out, "
                             "because it was not read",
                             (unsigned long long)left_out);
    }
}

static void say_of_files(struct rueda_output *output, bool is_last)
{
    const char *folder = output->args.folder;
    uint64_t left_out;
    int error;

    if (output->files == NULL)
        return;
    error = rueda_output_files_check(output->files, is_last, &left_out);
    if (folder == NULL)
        folder = output->args.tee;
    if (error != 0)
        rueda_output_say(output, "cannot write to the files in %s any more: %s",
                         folder, strerror(error));
    if (left_out > 0)
        rueda_output_say(output,
                         "%llu bytes of the ranks' output are not in the files "
                         "in %s, because they could not be written in time",
                         (unsigned long long)left_out, folder);
}

static void say_repeat(void *arg, const char *words)
{
    rueda_output_say(arg, "%s", words);
}

void rueda_output_check(struct rueda_output *output)
{
    rueda_repeats_check(output->repeats, rueda_clock_ns(), say_repeat, output);
    say_of_files(output, false);
    say_stdout_error(output, rueda_output_error(output));
    say_left_out(output, rueda_console_check);
}

int rueda_output_error(struct rueda_output *output)
{
    return rueda_console_error(output->by_stream[0]->console);
}

const struct rueda_tail *rueda_output_tail(const struct rueda_output *output,
                                           int rank)
{
    return &output->tails[rank];
}

int rueda_output_first_exception(const struct rueda_output *output)
{
    return output->first_exception;
}

/* ---- Life --------------------------------------------------------------- */

static bool are_one(int a, int b)
{
    struct stat one;
    struct stat other;

    return fstat(a, &one) == 0 && fstat(b, &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static bool open_target(struct rueda_output *output, int which)
{
    struct output_target *target = &output->targets[which];
    const char *terminal = rueda_environment("TERM");

    output->by_stream[which] = target;
    target->owner = -1;
    target->is_terminal = isatty(which + 1) == 1 && terminal != NULL &&
                          strcmp(terminal, "dumb") != 0;
    target->has_colours =
        target->is_terminal && rueda_environment("NO_COLOR") == NULL;
    return rueda_console_open(which + 1, output->args.changed, output->args.arg,
                              &target->console) == RUEDA_OK;
}

static bool open_targets(struct rueda_output *output, struct rueda_text *words)
{
    bool is_good = open_target(output, 0);

    if (is_good && are_one(1, 2))
        output->by_stream[1] = output->by_stream[0];
    else if (is_good)
        is_good = open_target(output, 1);
    if (!is_good)
        rueda_text_set(words, "no thread for the output");
    return is_good;
}

/* For more processes than there were. */
static bool make_room(struct rueda_output *output, int size)
{
    const int before = output->args.size;
    struct source *sources =
        reallocarray(output->sources, 2 * (size_t)size, sizeof(*sources));
    struct rueda_tail *tails = NULL;

    if (sources != NULL) {
        output->sources = sources;
        tails = reallocarray(output->tails, (size_t)size, sizeof(*tails));
    }
    if (tails == NULL)
        return false;
    output->tails = tails;
    memset(tails + before, 0, (size_t)(size - before) * sizeof(*tails));
    for (int i = 2 * before; i < 2 * size; i++)
        sources[i] = (struct source){.output = output,
                                     .rank = i / 2,
                                     .name = i / 2,
                                     .stream = i % 2 + 1};
    output->args.size = size;
    return true;
}

bool rueda_output_grow(struct rueda_output *output, int size)
{
    const int before = output->args.size;
    struct rueda_text words = {{0}};

    if (size <= before)
        return true;
    if (!make_room(output, size))
        return false;
    if (output->files != NULL &&
        !rueda_output_files_grow(output->files, size, &words)) {
        rueda_output_say(output, "%s", words.chars);
        return false;
    }
    return true;
}

void rueda_output_host(struct rueda_output *output, int rank, const char *host)
{
    struct source *source = &output->sources[2 * (size_t)rank];

    if (output->args.prefix == RUEDA_PREFIX_HOST) {
        source[0].host = host;
        source[1].host = host;
    }
}

void rueda_output_give_terminal(struct rueda_output *output, int rank)
{
    struct source *source = &output->sources[2 * (size_t)rank];

    source[0].is_terminal = true;
    source[1].is_terminal = true;
}

void rueda_output_room(const struct rueda_output *output, int *out_columns,
                       int *out_rows)
{
    const struct output_target *target = output->by_stream[1];
    struct winsize size = {.ws_col = 0};
    struct source last = {.output = (struct rueda_output *)output,
                          .name = output->args.size - 1,
                          .stream = 1};
    char prefix[PREFIX_BYTES];
    int left;

    *out_columns = 0;
    *out_rows = 0;
    if (!target->is_terminal ||
        ioctl(target == &output->targets[0] ? STDOUT_FILENO : STDERR_FILENO,
              TIOCGWINSZ, &size) < 0 ||
        size.ws_col == 0)
        return;
    for (int i = 0; i < 2 * output->args.size; i++)
        if (output->sources[i].host != NULL &&
            (last.host == NULL ||
             strlen(output->sources[i].host) > strlen(last.host)))
            last.host = output->sources[i].host;
    left = size.ws_col - (int)make_prefix(&last, prefix, sizeof(prefix));
    *out_columns = left > LEAST_COLUMNS ? left : LEAST_COLUMNS;
    *out_rows = size.ws_row > 0 ? size.ws_row : LEAST_COLUMNS;
}

void rueda_output_name(struct rueda_output *output, int rank, int name)
{
    struct source *source = &output->sources[2 * (size_t)rank];

    source[0].name = name;
    source[1].name = name;
}

/* Files are written where they are asked for. */
static bool open_files(struct rueda_output *output, struct rueda_text *words)
{
    const struct rueda_output_files_args args = {
        .folder = output->args.folder,
        .tee = output->args.tee,
        .is_going_on = output->args.is_going_on,
        .changed = output->args.changed,
        .arg = output->args.arg,
    };

    if (args.folder == NULL && args.tee == NULL)
        return true;
    return rueda_output_files_open(&args, output->args.size, &output->files,
                                   words) == RUEDA_OK;
}

rueda_status rueda_output_open(const struct rueda_output_args *args,
                               struct rueda_output **out,
                               struct rueda_text *words)
{
    struct rueda_output *output = calloc(1, sizeof(*output));

    if (output == NULL)
        return RUEDA_ERR_NOMEM;
    output->args = *args;
    output->first_exception = -1;
    output->args.size = 0;
    output->repeats = rueda_repeats_new(show_error, output);
    if (output->repeats == NULL || !make_room(output, args->size))
        rueda_text_set(words, "no memory for %d ranks", args->size);
    else if (open_files(output, words) && open_targets(output, words)) {
        if (output->files != NULL &&
            rueda_output_files_were_there(output->files))
            rueda_output_say(output,
                             "%s has the output of an older job, which is "
                             "overwritten",
                             args->folder);
        *out = output;
        return RUEDA_OK;
    }
    rueda_output_close(output);
    return RUEDA_ERR_IO;
}

/* What waits in the lines, the blocks and the files. */
static void finish(struct rueda_output *output)
{
    for (int i = 0; i < 2 * output->args.size; i++)
        rueda_lines_end(&output->sources[i].lines, on_line,
                        &output->sources[i]);
    rueda_repeats_check(output->repeats, INT64_MAX, say_repeat, output);
    if (output->files != NULL)
        rueda_output_files_finish(output->files);
    say_of_files(output, true);
    say_left_out(output, rueda_console_last_check);
}

void rueda_output_close(struct rueda_output *output)
{
    int error;

    if (output == NULL)
        return;
    if (output->targets[0].console != NULL)
        finish(output);
    error = rueda_console_close(output->targets[0].console);
    if (output->targets[1].console != NULL)
        say_stdout_error(output, error);
    rueda_console_close(output->targets[1].console);
    rueda_output_files_close(output->files);
    rueda_repeats_free(output->repeats);
    free(output->sources);
    free(output->tails);
    free(output);
}
