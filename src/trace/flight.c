/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/flight.h"

/*
 * As it lies in the segment. Every field is atomic, since readers do not wait
 * for the writer. The writer stores a field with release, and so after the
 * count that stood before; a reader loads it with acquire, and then the count
 * once more: a reader that has a field of a newer event finds a count by which
 * the older event may be overwritten. On x86 that costs nothing.
 */
struct record {
    _Atomic uint32_t step;
    _Atomic uint32_t kind;
    _Atomic uint64_t number;
    _Atomic uint64_t bytes;
};

#define RECORDS 128

struct flight {
    _Alignas(64) _Atomic uint64_t count;
    struct record records[RECORDS];
};

_Static_assert(sizeof(struct flight) <= RUEDA_SEGMENT_FLIGHT_BYTES,
               "the recorder is too large for its area");

static struct flight *flight_of(const struct rueda_segment *segment, int member)
{
    return (struct flight *)(segment->flights +
                             (size_t)member * RUEDA_SEGMENT_FLIGHT_BYTES);
}

#define STORE(field, value)                                                    \
    atomic_store_explicit(&(field), (value), memory_order_release)
#define LOAD(field) atomic_load_explicit(&(field), memory_order_acquire)

/* Is event i there, and is no event being written in its place? The writer may
 * be at event `count`. */
static bool is_kept(uint64_t i, uint64_t count)
{
    return i < count && count - i < RECORDS;
}

void rueda_flight_note(struct rueda_segment *segment,
                       const struct rueda_flight_event *event)
{
    struct flight *flight = flight_of(segment, segment->me);
    uint64_t count = atomic_load_explicit(&flight->count, memory_order_relaxed);
    struct record *record = &flight->records[count % RECORDS];

    STORE(record->step, event->step);
    STORE(record->kind, event->kind);
    STORE(record->number, event->number);
    STORE(record->bytes, event->bytes);
    /* A reader that sees this count sees the event. */
    STORE(flight->count, count + 1);
}

uint64_t rueda_flight_count(const struct rueda_segment *segment, int member)
{
    return LOAD(flight_of(segment, member)->count);
}

bool rueda_flight_read(const struct rueda_segment *segment, int member,
                       uint64_t i, struct rueda_flight_event *out)
{
    const struct flight *flight = flight_of(segment, member);
    const struct record *record = &flight->records[i % RECORDS];

    if (!is_kept(i, LOAD(flight->count)))
        return false;
    *out = (struct rueda_flight_event){
        .step = (rueda_flight_step)LOAD(record->step),
        .kind = (rueda_kind)LOAD(record->kind),
        .number = LOAD(record->number),
        .bytes = LOAD(record->bytes),
    };
    return is_kept(i, LOAD(flight->count));
}

void rueda_flight_tell(const struct rueda_segment *segment, int member,
                       struct rueda_text *words)
{
    static const char *const did[] = {"was in", "had ended", "had failed in"};
    uint64_t count = rueda_flight_count(segment, member);
    struct rueda_flight_event last;

    if (count == 0 || !rueda_flight_read(segment, member, count - 1, &last) ||
        (unsigned)last.step > RUEDA_FLIGHT_FAILED)
        return;
    rueda_text_add(words, "; it %s %s number %llu of %llu bytes",
                   did[last.step], rueda_kind_str(last.kind),
                   (unsigned long long)last.number,
                   (unsigned long long)last.bytes);
}
