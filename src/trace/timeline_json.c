/* SPDX-License-Identifier: Apache-2.0 */
/* Turning the records of all ranks into events of a Chrome trace. */
#include "trace/timeline_json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No rank nests deeper; records that do are ignored. */
#define DEPTH_MAX 32

/* ---- The text of one event ---------------------------------------------- */

struct event {
    size_t len;
    char text[RUEDA_TIMELINE_EVENT_MAX];
};

static void put(struct event *event, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Too long an event cannot be: names and shapes are bounded. It would be cut
 * short of the last byte, and not emitted. */
static void put(struct event *event, const char *format, ...)
{
    const size_t room = sizeof(event->text) - event->len;
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(event->text + event->len, room, format, args);
    va_end(args);
    if (len > 0)
        event->len += (size_t)len < room ? (size_t)len : room - 1;
}

/* Bytes of the UTF-8 character that a text begins with; 0: it is none. */
static size_t character(const unsigned char *text, size_t len)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t bytes = text[0] < 0x80   ? 1
                         : text[0] < 0xc0 ? 0
                         : text[0] < 0xe0 ? 2
                         : text[0] < 0xf0 ? 3
                         : text[0] < 0xf8 ? 4
                                          : 0;
    unsigned value;

    if (bytes < 2 || bytes > len)
        return bytes == 1 ? 1 : 0;
    value = text[0] & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (text[i] & 0x3fu);
    }
    /* Longer than need be, half of a pair, or beyond the last. */
    if (value < least[bytes] || (value >= 0xd800 && value < 0xe000) ||
        value > 0x10ffff)
        return 0;
    return bytes;
}

/* A string in quotes. What is no UTF-8 becomes the replacement character. */
static void put_string(struct event *event, const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = at + len;

    put(event, "\"");
    while (at < end) {
        const size_t bytes = character(at, (size_t)(end - at));

        if (bytes == 0)
            put(event, "\\ufffd");
        else if (*at < 0x20 || *at == 0x7f)
            put(event, "\\u%04x", (unsigned)*at);
        else if (*at == '"' || *at == '\\')
            put(event, "\\%c", *at);
        else
            put(event, "%.*s", (int)bytes, (const char *)at);
        at += bytes > 0 ? bytes : 1;
    }
    put(event, "\"");
}

static void start_event(const struct rueda_timeline_json *self,
                        struct event *event, const char *phase)
{
    event->len = 0;
    put(event, "%s{\"ph\": \"%s\"", self->count > 0 ? ",\n" : "\n", phase);
}

static void emit(struct rueda_timeline_json *self, struct event *event)
{
    put(event, "}");
    if (event->len >= sizeof(event->text) - 1)
        return;
    self->count++;
    self->emit(self->arg, event->text, event->len);
}

static void put_time(struct rueda_timeline_json *self, struct event *event,
                     int64_t time_ns)
{
    const int64_t since =
        time_ns > self->start_ns ? time_ns - self->start_ns : 0;

    if (time_ns > self->last_ns)
        self->last_ns = time_ns;
    put(event, ", \"ts\": %" PRId64 ".%03d", since / 1000, (int)(since % 1000));
}

static void put_ids(struct event *event, uint32_t pid, int rank)
{
    put(event, ", \"pid\": %" PRIu32, pid);
    if (rank > 0)
        put(event, ", \"tid\": %d", rank);
}

/* ---- Names -------------------------------------------------------------- */

static void introduce(struct rueda_timeline_json *self, uint32_t pid,
                      const char *name, size_t len)
{
    struct event event;

    start_event(self, &event, "M");
    put(&event, ", \"name\": \"process_name\"");
    put_ids(&event, pid, 0);
    put(&event, ", \"args\": {\"name\": ");
    put_string(&event, name, len);
    put(&event, "}");
    emit(self, &event);

    start_event(self, &event, "M");
    put(&event, ", \"name\": \"process_sort_index\"");
    put_ids(&event, pid, 0);
    put(&event, ", \"args\": {\"sort_index\": %" PRIu32 "}", pid);
    emit(self, &event);
}

static void introduce_rank(struct rueda_timeline_json *self, uint32_t pid,
                           int rank)
{
    struct event event;

    start_event(self, &event, "M");
    put(&event, ", \"name\": \"thread_name\"");
    put_ids(&event, pid, rank);
    put(&event, ", \"args\": {\"name\": \"rank %d\"}", rank);
    emit(self, &event);
}

static bool make_room(struct rueda_timeline_speaker *speaker, uint32_t id)
{
    uint32_t count = speaker->count > 0 ? speaker->count : 64;
    struct rueda_timeline_line *lines;

    if (id < speaker->count)
        return true;
    while (count <= id)
        count *= 2;
    lines = realloc(speaker->lines, count * sizeof(*lines));
    if (lines == NULL)
        return false;
    memset(lines + speaker->count, 0,
           (count - speaker->count) * sizeof(*lines));
    speaker->lines = lines;
    speaker->count = count;
    return true;
}

static void add_name(struct rueda_timeline_json *self, int rank,
                     const struct rueda_timeline_record *record)
{
    struct rueda_timeline_speaker *speaker = &self->speakers[rank];
    const uint32_t known = self->names.count;
    uint32_t pid;

    if (!make_room(speaker, record->id))
        return;
    pid =
        rueda_timeline_names_get(&self->names, record->name, record->name_len);
    speaker->lines[record->id] = (struct rueda_timeline_line){.pid = pid};
    if (self->names.count > known)
        introduce(self, pid, record->name, record->name_len);
    if (pid > 0 && self->ranks > 1)
        introduce_rank(self, pid, rank);
}

/* ---- Events ------------------------------------------------------------- */

static void add_end(struct rueda_timeline_json *self, int rank,
                    struct rueda_timeline_line *line,
                    const struct rueda_timeline_record *record)
{
    const bool has_shape =
        record->what == RUEDA_TIMELINE_END && record->dims >= 0;
    struct event event;

    if (line->depth == 0)
        return;
    line->depth--;
    start_event(self, &event, "E");
    put_time(self, &event, record->time_ns);
    put_ids(&event, line->pid, rank);
    if (has_shape) {
        put(&event, ", \"args\": {\"dtype\": \"%s\", \"shape\": \"[",
            rueda_dtype_str(record->dtype));
        for (int i = 0; i < record->dims; i++)
            put(&event, "%s%" PRIu64, i > 0 ? ", " : "", record->shape[i]);
        put(&event, "]\"}");
    }
    emit(self, &event);
}

static void add_begin(struct rueda_timeline_json *self, int rank,
                      struct rueda_timeline_line *line,
                      const struct rueda_timeline_record *record)
{
    struct event event;

    /* Ends that were lost on the way. */
    while (record->activity <= RUEDA_TIMELINE_PROCESS_SET && line->depth > 0)
        add_end(self, rank, line, record);
    if (line->depth == DEPTH_MAX) {
        self->lost++;
        return;
    }
    line->depth++;
    start_event(self, &event, "B");
    put(&event, ", \"name\": \"%s\"",
        rueda_timeline_activity_str(record->activity));
    put_time(self, &event, record->time_ns);
    put_ids(&event, line->pid, rank);
    emit(self, &event);
}

static void add_arrival(struct rueda_timeline_json *self, int rank,
                        const struct rueda_timeline_line *line,
                        const struct rueda_timeline_record *record)
{
    struct event event;

    start_event(self, &event, "X");
    put(&event, ", \"name\": \"%d\"", record->rank);
    put_time(self, &event, record->time_ns);
    put_ids(&event, line->pid, rank);
    put(&event, ", \"dur\": 0");
    emit(self, &event);
}

static void add_cycle(struct rueda_timeline_json *self, int rank,
                      const struct rueda_timeline_record *record)
{
    struct event event;

    start_event(self, &event, "i");
    put(&event, ", \"name\": \"CYCLE_START\"");
    put_time(self, &event, record->time_ns);
    if (rank > 0)
        put_ids(&event, 0, rank);
    put(&event, ", \"s\": \"g\"");
    emit(self, &event);
}

static void add_record(struct rueda_timeline_json *self, int rank,
                       const struct rueda_timeline_record *record)
{
    struct rueda_timeline_speaker *speaker = &self->speakers[rank];
    struct rueda_timeline_line *line = NULL;

    if (record->what == RUEDA_TIMELINE_NAME) {
        add_name(self, rank, record);
        return;
    }
    if (record->what == RUEDA_TIMELINE_CYCLE) {
        add_cycle(self, rank, record);
        return;
    }
    if (record->what == RUEDA_TIMELINE_LOST) {
        if (record->lost > speaker->lost)
            speaker->lost = record->lost;
        return;
    }
    if (record->id < speaker->count)
        line = &speaker->lines[record->id];
    if (line == NULL || line->pid == 0)
        self->lost++;
    else if (record->what == RUEDA_TIMELINE_BEGIN)
        add_begin(self, rank, line, record);
    else if (record->what == RUEDA_TIMELINE_END)
        add_end(self, rank, line, record);
    else
        add_arrival(self, rank, line, record);
}

bool rueda_timeline_json_add(struct rueda_timeline_json *self, int rank,
                             const void *bytes, size_t len)
{
    struct rueda_timeline_record record;

    while (len > 0) {
        const size_t took = rueda_timeline_read(bytes, len, &record);

        if (took == 0)
            return false;
        add_record(self, rank, &record);
        bytes = (const char *)bytes + took;
        len -= took;
    }
    return true;
}

void rueda_timeline_json_end(struct rueda_timeline_json *self, uint64_t lost)
{
    self->speakers[0].lost = lost + self->lost;
    for (int rank = 0; rank < self->ranks; rank++) {
        struct event event;

        if (self->speakers[rank].lost == 0)
            continue;
        start_event(self, &event, "i");
        put(&event, ", \"name\": \"LOST_EVENTS\"");
        put_time(self, &event, self->last_ns);
        put_ids(&event, 0, rank);
        put(&event, ", \"s\": \"g\", \"args\": {\"count\": %" PRIu64 "}",
            self->speakers[rank].lost);
        emit(self, &event);
    }
}

bool rueda_timeline_json_init(struct rueda_timeline_json *self, int ranks,
                              int64_t start_ns, int64_t epoch_us,
                              rueda_timeline_emit emit_fn, void *arg)
{
    struct event event;

    *self = (struct rueda_timeline_json){.ranks = ranks,
                                         .start_ns = start_ns,
                                         .last_ns = start_ns,
                                         .emit = emit_fn,
                                         .arg = arg};
    self->speakers = calloc((size_t)ranks, sizeof(*self->speakers));
    if (self->speakers == NULL)
        return false;

    start_event(self, &event, "M");
    put(&event,
        ", \"name\": \"process_name\", \"pid\": 0, \"args\": {\"name\": "
        "\"job of %d ranks\", \"start_time_since_epoch_in_micros\": %" PRId64
        "}",
        ranks, epoch_us);
    emit(self, &event);
    start_event(self, &event, "M");
    put(&event, ", \"name\": \"process_sort_index\", \"pid\": 0, \"args\": "
                "{\"sort_index\": 0}");
    emit(self, &event);
    return true;
}

void rueda_timeline_json_fini(struct rueda_timeline_json *self)
{
    for (int rank = 0; rank < self->ranks; rank++)
        free(self->speakers[rank].lines);
    free(self->speakers);
    rueda_timeline_names_fini(&self->names);
}
