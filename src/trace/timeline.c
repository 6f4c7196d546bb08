/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording events in the rank's buffer, and exchanging blocks of them with
 * rank 0.
 */
#include "trace/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "os/clock.h"
#include "trace/timeline_names.h"
#include "trace/timeline_ring.h"
#include "trace/timeline_wire.h"
#include "trace/timeline_writer.h"

#define BUFFER_MIN  ((size_t)65536)
#define DUE_BYTES   16384
#define DUE_NS      RUEDA_MS(100)
#define UNNAMED     "unnamed"
#define DEPTH_MAX   32
#define OFFSET_MAX  (INT64_MAX / 2)
#define ENTRY_BYTES (RUEDA_TIMELINE_ENTRY_HEAD + RUEDA_TIMELINE_HEAD_BYTES)

/* What is kept free in rank 0's buffer when a block of another rank's is added:
 * for names of blocks that do not fit. */
#define KEPT_FOR_NAMES(size) ((size) / 8)

/* Of each of my names. */
struct track {
    uint32_t noted; /* of what has begun: is it in the buffer? Newest lowest */
    uint8_t depth;
    bool is_told; /* the name is in the buffer */
};

struct rueda_timeline {
    int rank;
    int ranks;
    bool marks_cycles;
    int64_t (*now_ns)(void *arg);
    void *now_arg;
    int64_t offset_ns;
    int64_t last_ns;  /* of my notes */
    int64_t moved_ns; /* of those that were taken */
    int64_t taken_ns;

    struct rueda_timeline_names names;
    struct track *tracks; /* [track_room] by number less 1 */
    uint32_t track_room;
    uint64_t open; /* begun and noted; room for their ends is kept */
    uint64_t lost;
    uint64_t lost_told;

    struct rueda_timeline_ring ring;
    struct rueda_timeline_writer *writer; /* rank 0 only */
};

/* ---- Names of activities ------------------------------------------------ */

const char *rueda_timeline_activity_str(rueda_timeline_activity activity)
{
    static const char *const texts[] = {
#define X(name) #name,
        RUEDA_TIMELINE_MAP(X)
#undef X
    };

    return (unsigned)activity < RUEDA_TIMELINE_ACTIVITIES ? texts[activity]
                                                          : "?";
}

/* Negotiations, operations and collectives stand in the same order. */
static int place_of(int kind, rueda_reduction reduction)
{
    if (kind == RUEDA_ALLREDUCE && reduction == RUEDA_ADASUM)
        return RUEDA_TIMELINE_NEGOTIATE_ADASUM;
    return kind >= 0 && kind <= RUEDA_JOIN
               ? kind
               : RUEDA_TIMELINE_NEGOTIATE_PROCESS_SET;
}

rueda_timeline_activity rueda_timeline_negotiation(int kind,
                                                   rueda_reduction reduction)
{
    return (rueda_timeline_activity)place_of(kind, reduction);
}

rueda_timeline_activity rueda_timeline_operation(int kind,
                                                 rueda_reduction reduction)
{
    return (rueda_timeline_activity)(RUEDA_TIMELINE_ALLREDUCE +
                                     place_of(kind, reduction));
}

rueda_timeline_activity rueda_timeline_collective(int kind,
                                                  rueda_reduction reduction)
{
    return (rueda_timeline_activity)(RUEDA_TIMELINE_RUEDA_ALLREDUCE +
                                     place_of(kind, reduction));
}

/* ---- Records into the buffer -------------------------------------------- */

static int64_t clock_ns(void *arg)
{
    (void)arg;
    return rueda_clock_ns();
}

/* The later of the two, which is kept. */
static int64_t later(int64_t *last_ns, int64_t time_ns)
{
    if (time_ns > *last_ns)
        *last_ns = time_ns;
    return *last_ns;
}

/* On my own clock; never back. */
static int64_t now(struct rueda_timeline *self)
{
    return later(&self->last_ns, self->now_ns(self->now_arg));
}

/* Ends of what is open fit always. */
static size_t room(struct rueda_timeline *self)
{
    const size_t empty = rueda_timeline_ring_free(&self->ring);
    const size_t kept = self->open * ENTRY_BYTES;

    return empty > kept ? empty - kept : 0;
}

static void put(struct rueda_timeline *self, const unsigned char *bytes,
                size_t len)
{
    rueda_timeline_ring_put(&self->ring, self->rank, bytes, len);
    if (self->writer != NULL &&
        rueda_timeline_ring_used(&self->ring) > self->ring.size / 4)
        rueda_timeline_writer_hurry(self->writer);
}

/* False: it does not fit, with `more` bytes to be left free behind it. */
static bool note(struct rueda_timeline *self,
                 const struct rueda_timeline_record *record, size_t more)
{
    unsigned char bytes[RUEDA_TIMELINE_RECORD_MAX];
    const size_t len = rueda_timeline_write(record, bytes);

    if (len + RUEDA_TIMELINE_ENTRY_HEAD + more > room(self))
        return false;
    put(self, bytes, len);
    return true;
}

/* ---- Tensors ------------------------------------------------------------ */

/* A text for the file: a name that is too long is cut, and gets a number to
 * distinguish it from others with the same beginning. Returns its bytes. */
static size_t shorten(const char *name, size_t len,
                      char out[RUEDA_TIMELINE_NAME_MAX + 1])
{
    char end[24];
    const int ending =
        snprintf(end, sizeof(end), "...%016llx",
                 (unsigned long long)rueda_timeline_hash(name, len));
    const size_t kept = RUEDA_TIMELINE_NAME_MAX - (size_t)ending;

    memcpy(out, name, kept);
    memcpy(out + kept, end, (size_t)ending);
    return RUEDA_TIMELINE_NAME_MAX;
}

static bool make_tracks(struct rueda_timeline *self)
{
    struct track *tracks;

    if (self->names.count <= self->track_room)
        return true;
    tracks = realloc(self->tracks, self->names.room * sizeof(*tracks));
    if (tracks == NULL)
        return false;
    memset(tracks + self->track_room, 0,
           (self->names.room - self->track_room) * sizeof(*tracks));
    self->tracks = tracks;
    self->track_room = self->names.room;
    return true;
}

static bool tell_name(struct rueda_timeline *self, uint32_t id)
{
    const struct rueda_timeline_record record = {
        .what = RUEDA_TIMELINE_NAME,
        .id = id,
        .time_ns = self->last_ns,
        .name = self->names.names[id - 1].text,
        .name_len = self->names.names[id - 1].len,
    };

    return note(self, &record, 0);
}

/* The track of a tensor, or NULL: there is no room for one. Its name need not
 * be in the buffer. */
static struct track *track_of(struct rueda_timeline *self, const char *name,
                              uint32_t *out_id)
{
    char shortened[RUEDA_TIMELINE_NAME_MAX + 1];
    size_t len;
    uint32_t id;

    if (name == NULL || name[0] == '\0')
        name = UNNAMED;
    len = strlen(name);
    if (len > RUEDA_TIMELINE_NAME_MAX) {
        len = shorten(name, len, shortened);
        name = shortened;
    }
    id = rueda_timeline_names_get(&self->names, name, len);
    if (id == 0 || !make_tracks(self))
        return NULL;
    *out_id = id;
    return &self->tracks[id - 1];
}

/* Is its name in the buffer? It is put there, if it fits. */
static bool is_told(struct rueda_timeline *self, struct track *track,
                    uint32_t id)
{
    if (!track->is_told)
        track->is_told = tell_name(self, id);
    return track->is_told;
}

static void end_track(struct rueda_timeline *self, struct track *track,
                      struct rueda_timeline_record *end)
{
    const bool is_noted = (track->noted & 1) != 0;

    if (track->depth == 0)
        return;
    track->depth--;
    track->noted >>= 1;
    if (!is_noted) {
        self->lost++;
        return;
    }
    self->open--;
    /* The room that was kept is for an end without a shape. */
    if (!note(self, end, 0)) {
        end->dims = -1;
        note(self, end, 0);
    }
}

void rueda_timeline_note_begin(struct rueda_timeline *self, const char *name,
                               rueda_timeline_activity activity)
{
    struct rueda_timeline_record begin = {
        .what = RUEDA_TIMELINE_BEGIN,
        .activity = activity,
        .time_ns = now(self),
    };
    struct track *track = track_of(self, name, &begin.id);
    bool is_noted;

    if (track == NULL) {
        self->lost++;
        return;
    }
    if (activity > RUEDA_TIMELINE_PROCESS_SET && track->depth == 0)
        return; /* inside of one that began before the timeline did */
    while (activity <= RUEDA_TIMELINE_PROCESS_SET && track->depth > 0) {
        struct rueda_timeline_record end = {.what = RUEDA_TIMELINE_END,
                                            .id = begin.id,
                                            .time_ns = begin.time_ns,
                                            .dims = -1};

        end_track(self, track, &end);
    }
    if (track->depth == DEPTH_MAX) {
        self->lost++;
        return;
    }
    is_noted =
        is_told(self, track, begin.id) && note(self, &begin, ENTRY_BYTES);
    if (is_noted)
        self->open++;
    else
        self->lost++;
    track->depth++;
    track->noted = track->noted << 1 | (is_noted ? 1 : 0);
}

void rueda_timeline_note_end(struct rueda_timeline *self, const char *name,
                             rueda_dtype dtype, int dims, const uint64_t *shape)
{
    struct rueda_timeline_record end = {
        .what = RUEDA_TIMELINE_END,
        .time_ns = now(self),
        .dtype = dtype,
        .dims = dims <= RUEDA_MAX_DIMS ? dims : -1,
    };
    struct track *track = track_of(self, name, &end.id);

    for (int i = 0; i < end.dims; i++)
        end.shape[i] = shape[i];
    if (track != NULL)
        end_track(self, track, &end);
}

void rueda_timeline_note_arrival(struct rueda_timeline *self, const char *name,
                                 int rank)
{
    struct rueda_timeline_record record = {
        .what = RUEDA_TIMELINE_ARRIVAL, .time_ns = now(self), .rank = rank};
    struct track *track = track_of(self, name, &record.id);

    if (track == NULL || !is_told(self, track, record.id) ||
        !note(self, &record, 0))
        self->lost++;
}

void rueda_timeline_note_cycle(struct rueda_timeline *self)
{
    const struct rueda_timeline_record record = {.what = RUEDA_TIMELINE_CYCLE,
                                                 .time_ns = now(self)};

    if (self->marks_cycles && !note(self, &record, 0))
        self->lost++;
}

/* ---- On the way to rank 0 ----------------------------------------------- */

/* The number of lost events is sent with the next ones, as soon as there is
 * room. */
static void tell_lost(struct rueda_timeline *self)
{
    const struct rueda_timeline_record record = {.what = RUEDA_TIMELINE_LOST,
                                                 .time_ns = self->last_ns,
                                                 .lost = self->lost};

    if (self->lost > self->lost_told && note(self, &record, 0))
        self->lost_told = self->lost;
}

/* To rank 0's clock; never back, never negative. */
static void move(struct rueda_timeline *self, unsigned char *record)
{
    const int64_t time_ns = rueda_timeline_time(record) + self->offset_ns;

    rueda_timeline_set_time(record, later(&self->moved_ns, time_ns));
}

/* Each entry is a record of mine. */
static size_t drain(struct rueda_timeline *self, unsigned char *out,
                    size_t space)
{
    size_t taken = 0;
    size_t len;
    int rank;

    while (rueda_timeline_ring_peek(&self->ring, &rank, &len) &&
           len <= space - taken) {
        rueda_timeline_ring_take(&self->ring, out + taken, len);
        move(self, out + taken);
        taken += len;
    }
    return taken;
}

size_t rueda_timeline_take(struct rueda_timeline *self, void *out, size_t space)
{
    size_t taken = drain(self, out, space);

    tell_lost(self);
    taken += drain(self, (unsigned char *)out + taken, space - taken);
    self->taken_ns = self->now_ns(self->now_arg);
    return taken;
}

bool rueda_timeline_is_due(struct rueda_timeline *self)
{
    const size_t used = rueda_timeline_ring_used(&self->ring);

    return used >= DUE_BYTES ||
           (used > 0 && self->now_ns(self->now_arg) - self->taken_ns >= DUE_NS);
}

int64_t rueda_timeline_due_ns(struct rueda_timeline *self)
{
    return rueda_timeline_ring_used(&self->ring) > 0 ? self->taken_ns + DUE_NS
                                                     : INT64_MAX;
}

/* How many records a block has; -1: it is none. */
static int64_t count_records(const char *block, size_t len)
{
    struct rueda_timeline_record record;
    int64_t count = 0;

    for (size_t at = 0; at < len; count++) {
        const size_t took = rueda_timeline_read(block + at, len - at, &record);

        if (took == 0)
            return -1;
        at += took;
    }
    return count;
}

/* Later blocks speak of these names. */
static void keep_names(struct rueda_timeline *self, int rank, const char *block,
                       size_t len)
{
    struct rueda_timeline_record record;

    for (size_t at = 0; at < len;) {
        const size_t took = rueda_timeline_read(block + at, len - at, &record);

        if (record.what == RUEDA_TIMELINE_NAME &&
            took + RUEDA_TIMELINE_ENTRY_HEAD <= room(self)) {
            rueda_timeline_ring_put(&self->ring, rank, block + at, took);
            self->lost--;
        }
        at += took;
    }
}

rueda_status rueda_timeline_add(struct rueda_timeline *self, int rank,
                                const void *block, size_t len)
{
    int64_t count;

    if (self->writer == NULL || rank < 1 || rank >= self->ranks ||
        len > RUEDA_TIMELINE_BLOCK_MAX)
        return RUEDA_ERR_INVALID;
    count = count_records(block, len);
    if (count < 0)
        return RUEDA_ERR_INVALID;
    if (len + RUEDA_TIMELINE_ENTRY_HEAD + KEPT_FOR_NAMES(self->ring.size) <=
        room(self)) {
        rueda_timeline_ring_put(&self->ring, rank, block, len);
    } else {
        self->lost += (uint64_t)count;
        keep_names(self, rank, block, len);
    }
    if (rueda_timeline_ring_used(&self->ring) > self->ring.size / 4)
        rueda_timeline_writer_hurry(self->writer);
    return RUEDA_OK;
}

void rueda_timeline_set_offset(struct rueda_timeline *self, int64_t offset_ns)
{
    if (offset_ns > -OFFSET_MAX && offset_ns < OFFSET_MAX)
        self->offset_ns = offset_ns;
}

/* ---- Opening and closing ------------------------------------------------ */

static size_t buffer_bytes(const struct rueda_timeline_args *args)
{
    const size_t asked =
        args->buffer_bytes > 0 ? args->buffer_bytes : RUEDA_TIMELINE_BUFFER;

    return asked > BUFFER_MIN ? asked : BUFFER_MIN;
}

rueda_status rueda_timeline_open(const struct rueda_timeline_args *args,
                                 struct rueda_timeline **out,
                                 struct rueda_text *error)
{
    struct rueda_timeline *self =
        aligned_alloc(_Alignof(struct rueda_timeline), sizeof(*self));
    rueda_status status = RUEDA_ERR_NOMEM;

    if (self == NULL)
        goto err;
    memset(self, 0, sizeof(*self));
    self->rank = args->rank;
    self->ranks = args->ranks;
    self->marks_cycles = args->marks_cycles;
    self->now_ns = args->now_ns != NULL ? args->now_ns : clock_ns;
    self->now_arg = args->now_arg;
    if (!rueda_timeline_ring_init(&self->ring, buffer_bytes(args)))
        goto err_free;
    self->taken_ns = self->now_ns(self->now_arg);
    if (args->rank == 0) {
        status =
            rueda_timeline_writer_open(&self->ring, args->path, args->ranks,
                                       self->taken_ns, &self->writer, error);
        if (status != RUEDA_OK)
            goto err_ring;
    }
    *out = self;
    return RUEDA_OK;

err_ring:
    rueda_timeline_ring_fini(&self->ring);
err_free:
    free(self);
err:
    rueda_text_set(error, "no memory for a timeline");
    return status;
}

void rueda_timeline_close(struct rueda_timeline *self)
{
    if (self == NULL)
        return;
    if (self->writer != NULL)
        rueda_timeline_writer_close(self->writer, self->lost);
    rueda_timeline_ring_fini(&self->ring);
    rueda_timeline_names_fini(&self->names);
    free(self->tracks);
    free(self);
}

void rueda_timeline_leave(struct rueda_timeline *self)
{
    if (self != NULL && self->writer != NULL)
        rueda_timeline_writer_leave(self->writer);
}
