/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks' output: lines get their prefix and go to the consoles and files;
 * our own messages go between them. Remembers the last lines of each rank for
 * the verdict.
 */
#include "launch/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "launch/lines.h"
#include "os/event.h"

/* One of the two places that lines go to. */
struct output_place {
    struct rueda_console *console;
    bool is_terminal;
    bool has_colours;
    int owner;        /* whose line was not ended: 2 * rank + stream - 1 */
    bool is_mid_line; /* the last byte did not end a line */
    bool has_progress;
};

/* One of the two streams of a rank. */
struct source {
    struct rueda_output *output;
    int rank;
    int name; /* its rank for people */
    int stream;
    struct rueda_lines lines;
    int file; /* -1: none */
};

struct rueda_output {
    struct rueda_output_args args;
    struct output_place places[2];
    struct output_place
        *by_stream[2];        /* both the same where they are one file */
    struct source *sources;   /* [2 * size] */
    struct rueda_tail *tails; /* [size] */
    int first_exception;
    bool has_file_error;
    bool has_stdout_error;
};

static const char *const stream_names[] = {"stdout", "stderr"};

/* ---- Lines -------------------------------------------------------------- */

static void put(struct output_place *place, const char *bytes, size_t len)
{
    rueda_console_put(place->console, bytes, len);
}

static void clear_progress(struct output_place *place)
{
    if (place->has_progress)
        put(place, "\r\033[K", 4);
    place->has_progress = false;
}

/* Begin a line of `owner`, whatever was there. */
static void begin_line(struct output_place *place, int owner)
{
    clear_progress(place);
    if (place->is_mid_line && place->owner != owner)
        put(place, "\n", 1);
    place->owner = owner;
    place->is_mid_line = false;
}

/* "Mon Jan  1 00:00:00 2024[3]<stdout>:" */
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
    return (size_t)snprintf(out, bytes, "%s[%d]<%s>:", when, source->name,
                            stream_names[source->stream - 1]);
}

static void show(struct source *source, const char *prefix, size_t prefix_len,
                 const char *bytes, size_t len)
{
    static const char *const colours[] = {"\033[36m", "\033[33m", "\033[32m",
                                          "\033[35m", "\033[34m", "\033[31m"};
    struct output_place *place = source->output->by_stream[source->stream - 1];
    const int owner = 2 * source->rank + source->stream - 1;

    if (prefix_len > 0) {
        begin_line(place, owner);
        if (place->has_colours)
            put(place, colours[source->name % 6], 5);
        put(place, prefix, prefix_len);
        if (place->has_colours)
            put(place, "\033[0m", 4);
    }
    put(place, bytes, len);
    place->is_mid_line = bytes[len - 1] != '\n' && bytes[len - 1] != '\r';
}

static void write_file(struct source *source, const char *bytes, size_t len)
{
    struct rueda_output *output = source->output;

    while (source->file >= 0 && len > 0) {
        const ssize_t written = write(source->file, bytes, len);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            rueda_fd_close(source->file);
            source->file = -1;
            if (!output->has_file_error)
                rueda_output_say(output,
                                 "cannot write to the files in %s any more: %s",
                                 output->args.folder, strerror(errno));
            output->has_file_error = true;
            return;
        }
        bytes += written;
        len -= (size_t)written;
    }
}

static void on_line(void *arg, const char *bytes, size_t len, bool is_begin)
{
    struct source *source = arg;
    struct rueda_output *output = source->output;
    char prefix[96];
    size_t prefix_len = 0;

    if (is_begin)
        prefix_len = make_prefix(source, prefix, sizeof(prefix));
    show(source, prefix, prefix_len, bytes, len);
    write_file(source, prefix, prefix_len);
    write_file(source, bytes, len);
    if (source->stream == 2 && is_begin &&
        rueda_tail_add(&output->tails[source->rank], bytes, len) &&
        output->first_exception < 0)
        output->first_exception = source->rank;
}

void rueda_output_feed(struct rueda_output *output, int rank, int stream,
                       const char *bytes, size_t len)
{
    struct source *source = &output->sources[2 * rank + stream - 1];

    rueda_lines_feed(&source->lines, bytes, len, on_line, source);
}

void rueda_output_end(struct rueda_output *output, int rank)
{
    for (int i = 0; i < 2; i++) {
        struct source *source = &output->sources[2 * rank + i];

        rueda_lines_end(&source->lines, on_line, source);
    }
}

/* ---- Our own words ------------------------------------------------------ */

static void say(struct rueda_output *output, const char *name,
                const char *format, va_list list)
{
    struct output_place *place = output->by_stream[1];
    char *words = NULL;

    if (vasprintf(&words, format, list) < 0)
        return;
    begin_line(place, -1);
    if (name != NULL) {
        put(place, name, strlen(name));
        put(place, ": ", 2);
    }
    put(place, words, strlen(words));
    put(place, "\n", 1);
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
    struct output_place *place = output->by_stream[1];

    if (!place->is_terminal)
        return;
    begin_line(place, -1);
    if (words[0] == '\0')
        return;
    put(place, output->args.program, strlen(output->args.program));
    put(place, ": ", 2);
    put(place, words, strlen(words));
    place->has_progress = true;
}

/* ---- Readers ------------------------------------------------------------ */

bool rueda_output_is_full(struct rueda_output *output)
{
    return rueda_console_is_full(output->by_stream[0]->console) ||
           rueda_console_is_full(output->by_stream[1]->console);
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

        if (output->places[i].console == NULL)
            continue;
        left_out = look(output->places[i].console);
        if (left_out > 0)
            rueda_output_say(output,
                             "%llu bytes of the ranks' output were left out, "
                             "because it was not read",
                             (unsigned long long)left_out);
    }
}

void rueda_output_check(struct rueda_output *output)
{
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

/* ---- Files -------------------------------------------------------------- */

/* Make a folder, and those above it. */
static bool make_folder(const char *path)
{
    char *copy = strdup(path);
    bool is_made = copy != NULL;

    for (char *at = copy; is_made && at != NULL;) {
        at = strchr(at + 1, '/');
        if (at != NULL)
            *at = '\0';
        is_made = mkdir(copy, 0777) == 0 || errno == EEXIST;
        if (at != NULL)
            *at = '/';
    }
    free(copy);
    return is_made;
}

/* FOLDER/rank.N/stdout or stderr; -1 with errno. */
static int open_file(const char *folder, int rank, int digits, int stream)
{
    char *path = NULL;
    char *slash;
    int fd = -1;

    if (asprintf(&path, "%s/rank.%0*d/%s", folder, digits, rank,
                 stream_names[stream - 1]) < 0)
        return -1;
    slash = strrchr(path, '/');
    *slash = '\0';
    if (make_folder(path)) {
        *slash = '/';
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                  0666);
    }
    free(path);
    return fd;
}

/* Of processes from `first` on. */
static bool open_files(struct rueda_output *output, int first,
                       struct rueda_text *words)
{
    const char *folder = output->args.folder;
    char last[16];
    const int digits =
        snprintf(last, sizeof(last), "%d", output->args.size - 1);

    for (int i = 2 * first; i < 2 * output->args.size; i++) {
        const int fd = open_file(folder, i / 2, digits, i % 2 + 1);

        if (fd < 0) {
            rueda_text_set(words,
                           "cannot make the files of --output-filename in "
                           "%.300s: %s",
                           folder, strerror(errno));
            return false;
        }
        output->sources[i].file = fd;
    }
    return true;
}

/* ---- Life --------------------------------------------------------------- */

static bool are_one(int a, int b)
{
    struct stat one;
    struct stat other;

    return fstat(a, &one) == 0 && fstat(b, &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static bool open_place(struct rueda_output *output, int which)
{
    struct output_place *place = &output->places[which];
    const char *terminal = rueda_environment("TERM");

    output->by_stream[which] = place;
    place->owner = -1;
    place->is_terminal = isatty(which + 1) == 1 && terminal != NULL &&
                         strcmp(terminal, "dumb") != 0;
    place->has_colours =
        place->is_terminal && rueda_environment("NO_COLOR") == NULL;
    return rueda_console_open(which + 1, output->args.changed, output->args.arg,
                              &place->console) == RUEDA_OK;
}

static bool open_places(struct rueda_output *output, struct rueda_text *words)
{
    bool is_good = open_place(output, 0);

    if (is_good && are_one(1, 2))
        output->by_stream[1] = output->by_stream[0];
    else if (is_good)
        is_good = open_place(output, 1);
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
                                     .stream = i % 2 + 1,
                                     .file = -1};
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
    if (output->args.folder != NULL && !open_files(output, before, &words)) {
        rueda_output_say(output, "%s", words.chars);
        return false;
    }
    return true;
}

void rueda_output_name(struct rueda_output *output, int rank, int name)
{
    struct source *source = &output->sources[2 * (size_t)rank];

    source[0].name = name;
    source[1].name = name;
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
    if (!make_room(output, args->size))
        rueda_text_set(words, "no memory for %d ranks", args->size);
    else if ((args->folder == NULL || open_files(output, 0, words)) &&
             open_places(output, words)) {
        *out = output;
        return RUEDA_OK;
    }
    rueda_output_close(output);
    return RUEDA_ERR_IO;
}

void rueda_output_close(struct rueda_output *output)
{
    int error;

    if (output == NULL)
        return;
    for (int i = 0; output->sources != NULL && i < 2 * output->args.size; i++) {
        struct source *source = &output->sources[i];

        if (output->places[0].console != NULL)
            rueda_lines_end(&source->lines, on_line, source);
        rueda_fd_close(source->file);
    }
    if (output->places[0].console != NULL)
        say_left_out(output, rueda_console_last_check);
    error = rueda_console_close(output->places[0].console);
    if (output->places[1].console != NULL)
        say_stdout_error(output, error);
    rueda_console_close(output->places[1].console);
    free(output->sources);
    free(output->tails);
    free(output);
}
