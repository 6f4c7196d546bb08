/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segment from inside: the mapping and the views of ranks that share one
 * process, doorbells and sleep, presence and blame, and memory. What one member
 * shows the others is in its line (struct rueda_member); a member writes only
 * its own.
 */
#define RUEDA_LOG_TAG "segment"

#include "segment/segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fence.h"
#include "base/log.h"
#include "os/event.h"
#include "os/memory.h"
#include "os/process.h"
#include "os/random.h"
#include "segment/heap.h"
#include "segment/mapping.h"

static int *fd_list_new(int size)
{
    int *list = malloc((size_t)size * sizeof(int));

    if (list != NULL)
        memset(list, 0xff, (size_t)size * sizeof(int)); /* -1 each */
    return list;
}

static void view_free(struct rueda_segment *segment)
{
    rueda_fd_close(segment->poller);
    rueda_heap_free(segment->heap);
    pthread_mutex_destroy(&segment->heap_lock);
    free(segment->doorbells);
    free(segment->pidfds);
    free(segment->dead);
    free(segment->is_dismissed);
    free(segment);
}

/* A view of a mapping by one member, without descriptors as yet. */
static struct rueda_segment *view_new(struct rueda_mapping *mapping, int me,
                                      int size, struct rueda_text *error)
{
    struct rueda_segment *segment = calloc(1, sizeof(*segment));
    struct segment_head *head = mapping->base;

    if (segment == NULL) {
        rueda_text_set(error, "no memory for a view of the segment");
        return NULL;
    }
    pthread_mutex_init(&segment->heap_lock, NULL);
    segment->me = me;
    segment->size = size;
    segment->mapping = mapping;
    segment->base = mapping->base;
    segment->bytes = mapping->bytes;
    segment->common = &head->common;
    segment->members = rueda_mapping_members(mapping);
    segment->flights = segment->base + rueda_mapping_flights(size);
    segment->poller = -1;
    segment->life = -1;
    segment->claim = -1;
    segment->doorbells = fd_list_new(size);
    segment->pidfds = fd_list_new(size);
    segment->dead = calloc((size_t)size, sizeof(bool));
    segment->is_dismissed = calloc((size_t)size, sizeof(bool));
    segment->heap = rueda_heap_new(rueda_mapping_ranges(size) +
                                       (uint64_t)me * head->range_bytes,
                                   head->range_bytes);
    if (segment->doorbells == NULL || segment->pidfds == NULL ||
        segment->dead == NULL || segment->is_dismissed == NULL ||
        segment->heap == NULL) {
        rueda_text_set(error, "no memory for a view of the segment");
        view_free(segment);
        return NULL;
    }
    return segment;
}

rueda_status rueda_segment_make(int size, int inherited,
                                struct rueda_segment **out,
                                struct rueda_text *error)
{
    struct rueda_mapping *mapping;
    rueda_status status = rueda_mapping_make(size, inherited, &mapping, error);

    if (status != RUEDA_OK)
        return status;
    *out = view_new(mapping, 0, size, error);
    if (*out == NULL) {
        rueda_mapping_release(mapping);
        return RUEDA_ERR_NOMEM;
    }
    return RUEDA_OK;
}

rueda_status rueda_segment_attach(int rank, int size, int memfd,
                                  struct rueda_segment **out,
                                  struct rueda_text *error)
{
    struct rueda_mapping *mapping;
    struct rueda_segment *segment;
    rueda_status status;

    status = rueda_mapping_attach(size, memfd, &mapping, error);
    if (status != RUEDA_OK)
        return status;
    segment = view_new(mapping, rank, size, error);
    if (segment == NULL) {
        rueda_mapping_release(mapping);
        return RUEDA_ERR_NOMEM;
    }
    *out = segment;
    return RUEDA_OK;
}

int rueda_segment_fd(const struct rueda_segment *segment)
{
    return segment->mapping->fd;
}

rueda_status rueda_segment_enter(struct rueda_segment *segment,
                                 const int *doorbells, const int *pidfds,
                                 struct rueda_text *error)
{
    struct rueda_member *me = &segment->members[segment->me];
    rueda_status status;

    memcpy(segment->doorbells, doorbells, (size_t)segment->size * sizeof(int));
    memcpy(segment->pidfds, pidfds, (size_t)segment->size * sizeof(int));
    status = rueda_poller_open(&segment->poller);
    for (int i = 0; i < segment->size && status == RUEDA_OK; i++) {
        if (i == segment->me)
            status =
                rueda_poller_add(segment->poller, doorbells[i], (uint32_t)i);
        else if (pidfds[i] >= 0)
            status = rueda_poller_add(segment->poller, pidfds[i], (uint32_t)i);
    }
    if (status != RUEDA_OK) {
        rueda_text_set(error, "cannot watch the other ranks: %s",
                       strerror(errno));
        return status;
    }
    me->pid = rueda_process_id();
    rueda_process_host(me->host, sizeof(me->host));
    rueda_machine_cpus(&me->cpus);
    atomic_store_explicit(&me->presence, RUEDA_PRESENT, memory_order_release);
    return RUEDA_OK;
}

rueda_status rueda_segment_threads(int size, struct rueda_segment **out,
                                   struct rueda_text *error)
{
    struct rueda_mapping *mapping = NULL;
    rueda_status status = rueda_mapping_make(size, -1, &mapping, error);
    int *doorbells = NULL;
    int *none = NULL;
    int made = 0;

    if (status != RUEDA_OK)
        return status;
    doorbells = fd_list_new(size);
    none = fd_list_new(size);
    if (doorbells == NULL || none == NULL)
        status = RUEDA_ERR_NOMEM;
    mapping->doorbells = doorbells;
    mapping->doorbell_count = doorbells != NULL ? size : 0;
    for (int i = 0; i < size && status == RUEDA_OK; i++)
        status = rueda_doorbell_open(&doorbells[i]);
    if (status != RUEDA_OK)
        rueda_text_set(error, "no doorbells for %d ranks: %s", size,
                       strerror(errno));
    while (made < size && status == RUEDA_OK) {
        out[made] = view_new(mapping, made, size, error);
        if (out[made] == NULL) {
            status = RUEDA_ERR_NOMEM;
            break;
        }
        if (made > 0)
            atomic_fetch_add(&mapping->users, 1);
        status = rueda_segment_enter(out[made], doorbells, none, error);
        made++;
    }
    if (status != RUEDA_OK) {
        for (int i = 0; i < made; i++)
            view_free(out[i]);
        atomic_store(&mapping->users, 1);
        rueda_mapping_release(mapping);
    }
    free(none);
    return status;
}

/* Doorbells of ranks that are threads belong to the mapping. */
static void close_descriptors(struct rueda_segment *segment)
{
    bool are_mine = segment->mapping->doorbells == NULL;

    for (int i = 0; i < segment->size; i++) {
        if (are_mine)
            rueda_fd_close(segment->doorbells[i]);
        rueda_fd_close(segment->pidfds[i]);
        segment->doorbells[i] = -1;
        segment->pidfds[i] = -1;
    }
    rueda_fd_close(segment->poller);
    segment->poller = -1;
    rueda_fd_close(segment->life);
    segment->life = -1;
    rueda_fd_close(segment->claim);
    segment->claim = -1;
}

/* Say that I am gone in this way, and in which order I went. */
static void depart(struct rueda_segment *segment, enum rueda_presence how)
{
    struct rueda_member *me = &segment->members[segment->me];
    struct segment_head *head = (struct segment_head *)segment->base;
    unsigned order;

    if (atomic_load_explicit(&me->departure, memory_order_relaxed) == 0) {
        order = atomic_fetch_add(&head->departures, 1) + 1;
        atomic_store_explicit(&me->departure, order, memory_order_relaxed);
    }
    /* A rank that failed before it leaves is remembered for the failure. */
    if (atomic_load_explicit(&me->presence, memory_order_relaxed) ==
        RUEDA_FAILED)
        return;
    /* Release: a member that sees it sees all that I have written before. */
    atomic_store_explicit(&me->presence, how, memory_order_release);
}

void rueda_segment_fail(struct rueda_segment *segment, const char *why)
{
    struct rueda_text *failure = &segment->members[segment->me].failure;

    rueda_text_set(failure, "%s", why);
    depart(segment, RUEDA_FAILED);
    rueda_segment_notify_all(segment);
}

void rueda_segment_leave(struct rueda_segment *segment)
{
    depart(segment, RUEDA_LEFT);
}

void rueda_segment_close(struct rueda_segment *segment)
{
    if (segment == NULL)
        return;
    rueda_segment_leave(segment);
    rueda_segment_notify_all(segment);
    close_descriptors(segment);
    rueda_mapping_release(segment->mapping);
    view_free(segment);
}

void rueda_segment_forked(struct rueda_segment *segment)
{
    close_descriptors(segment);
    rueda_mapping_close_descriptors(segment->mapping);
}

/* ---- News ------------------------------------------------------------ */

/*
 * The sleeper stores its flag and then looks for news; we store our news and
 * then look at its flag. With a full fence between the two on both sides at
 * least one of us sees the other (tests/model/fences.py).
 */
static void ring_if_asleep(struct rueda_segment *segment, int member)
{
    atomic_uint *sleeping = &segment->members[member].sleeping;

    if (atomic_load_explicit(sleeping, memory_order_relaxed) == 0)
        return;
    if (atomic_exchange_explicit(sleeping, 0, memory_order_relaxed) != 0)
        rueda_doorbell_ring(segment->doorbells[member]);
}

bool rueda_segment_is_asleep(const struct rueda_segment *segment)
{
    return atomic_load(&segment->members[segment->me].sleeping) != 0;
}

void rueda_segment_notify(struct rueda_segment *segment, int member)
{
    rueda_fence();
    ring_if_asleep(segment, member);
}

void rueda_segment_notify_all(struct rueda_segment *segment)
{
    rueda_fence();
    for (int i = 0; i < segment->size; i++)
        if (i != segment->me)
            ring_if_asleep(segment, i);
}

void rueda_segment_notify_some(struct rueda_segment *segment,
                               const int *members, int count)
{
    rueda_fence();
    for (int i = 0; i < count; i++)
        if (members[i] != segment->me)
            ring_if_asleep(segment, members[i]);
}

void rueda_segment_arm(struct rueda_segment *segment)
{
    atomic_store_explicit(&segment->members[segment->me].sleeping, 1,
                          memory_order_relaxed);
    rueda_fence();
}

void rueda_segment_disarm(struct rueda_segment *segment)
{
    atomic_store_explicit(&segment->members[segment->me].sleeping, 0,
                          memory_order_relaxed);
}

static void poll_now(struct rueda_segment *segment, int64_t timeout_ns)
{
    uint32_t numbers[32];
    int found = rueda_poller_wait(segment->poller, timeout_ns, numbers, 32);

    for (int i = 0; i < found; i++) {
        int member = (int)numbers[i];

        if (member >= segment->size)
            continue; /* a descriptor of the caller's: being awake is enough */
        if (member == segment->me) {
            rueda_doorbell_clear(segment->doorbells[member]);
        } else {
            segment->dead[member] = true;
            rueda_poller_remove(segment->poller, segment->pidfds[member]);
        }
    }
}

void rueda_segment_wait(struct rueda_segment *segment, int64_t timeout_ns)
{
    poll_now(segment, timeout_ns);
    rueda_segment_disarm(segment);
}

rueda_status rueda_segment_watch_fd(struct rueda_segment *segment, int fd)
{
    return rueda_poller_add_edges(segment->poller, fd, (uint32_t)segment->size);
}

void rueda_segment_watch(struct rueda_segment *segment)
{
    poll_now(segment, 0);
}

/* Acquire: what it has written before it went is there. */
static unsigned presence_of(const struct rueda_segment *segment, int member)
{
    return atomic_load_explicit(&segment->members[member].presence,
                                memory_order_acquire);
}

bool rueda_segment_is_gone(const struct rueda_segment *segment, int member)
{
    return segment->dead[member] ||
           presence_of(segment, member) >= RUEDA_FAILED;
}

void rueda_segment_dismiss(struct rueda_segment *segment, int member)
{
    segment->is_dismissed[member] = true;
}

/* Is a member gone that the job counts on? */
static bool is_missed(const struct rueda_segment *segment, int member)
{
    return member != segment->me && !segment->is_dismissed[member] &&
           rueda_segment_is_gone(segment, member);
}

bool rueda_segment_has_gone(const struct rueda_segment *segment,
                            bool counts_left)
{
    for (int i = 0; i < segment->size; i++)
        if (is_missed(segment, i) &&
            (counts_left || presence_of(segment, i) != RUEDA_LEFT))
            return true;
    return false;
}

/* In which order members went; 0: it has not, or died before it could. */
static unsigned departure_of(const struct rueda_segment *segment, int member)
{
    return atomic_load_explicit(&segment->members[member].departure,
                                memory_order_relaxed);
}

/* Was `a` gone before `b`? A rank that died is blamed before all others. */
static bool is_before(const struct rueda_segment *segment, int a, int b)
{
    return departure_of(segment, a) < departure_of(segment, b);
}

int rueda_segment_first_gone(const struct rueda_segment *segment,
                             struct rueda_text *out_words)
{
    const struct rueda_member *member;
    unsigned presence;
    int first = -1;

    for (int i = 0; i < segment->size; i++)
        if (is_missed(segment, i) &&
            (first < 0 || is_before(segment, i, first)))
            first = i;
    if (first < 0)
        return -1;
    member = &segment->members[first];
    presence = presence_of(segment, first);
    rueda_text_set(out_words, "rank %d (pid %d on host %.*s) %s",
                   (int)member->rank, (int)member->pid,
                   RUEDA_SEGMENT_HOST_BYTES, member->host,
                   presence == RUEDA_LEFT     ? "shut down"
                   : presence == RUEDA_FAILED ? "failed: "
                                              : "died");
    if (presence == RUEDA_FAILED)
        rueda_text_add(out_words, "%.*s", RUEDA_TEXT_BYTES / 2,
                       member->failure.chars);
    return first;
}

/* ---- Memory ---------------------------------------------------------- */

static int rank_of(const struct rueda_segment *segment)
{
    return segment->members[segment->me].rank;
}

/* Pages that other ranks have allocated and not yet touched count as free, so a
 * margin is left for them. */
#define MARGIN_BYTES ((size_t)64 << 20)

rueda_status rueda_segment_alloc(struct rueda_segment *segment, size_t bytes,
                                 void **out, struct rueda_text *error)
{
    size_t available = rueda_memory_available();
    rueda_status status;
    uint64_t offset;

    if (available < MARGIN_BYTES || available - MARGIN_BYTES < bytes) {
        rueda_text_set(error,
                       "rank %d asks for %zu MiB of shared memory and %zu MiB "
                       "are left in this machine or its cgroup; ask for less, "
                       "or raise the limit",
                       rank_of(segment), bytes >> 20, available >> 20);
        return RUEDA_ERR_LIMIT;
    }
    status = rueda_segment_reserve(segment, bytes, &offset, error);
    if (status == RUEDA_OK)
        *out = rueda_segment_at(segment, offset);
    return status;
}

rueda_status rueda_segment_reserve(struct rueda_segment *segment, size_t bytes,
                                   uint64_t *out_offset,
                                   struct rueda_text *error)
{
    rueda_status status;

    pthread_mutex_lock(&segment->heap_lock);
    status = rueda_heap_take(segment->heap, bytes > 0 ? bytes : 1, out_offset);
    pthread_mutex_unlock(&segment->heap_lock);
    if (status != RUEDA_OK)
        rueda_text_set(error,
                       "rank %d asks for %zu MiB of shared memory, more than "
                       "its part of the segment has left",
                       rank_of(segment), bytes >> 20);
    return status;
}

int rueda_segment_cpus(const struct rueda_segment *segment)
{
    struct rueda_cpus all = {{0}};

    for (int i = 0; i < segment->size; i++)
        for (size_t word = 0; word < RUEDA_MACHINE_MOST_CPUS / 64; word++)
            all.bits[word] |= segment->members[i].cpus.bits[word];
    return rueda_cpus_count(&all);
}

void rueda_segment_free(struct rueda_segment *segment, void *ptr)
{
    uint64_t offset;
    uint64_t bytes;

    if (ptr == NULL)
        return;
    offset = rueda_segment_offset(segment, ptr);
    pthread_mutex_lock(&segment->heap_lock);
    bytes = rueda_heap_give(segment->heap, offset);
    /* Before the pages are given to another caller. */
    if (bytes > 0)
        rueda_memory_punch(segment->mapping->fd, offset, bytes);
    pthread_mutex_unlock(&segment->heap_lock);
    if (bytes == 0)
        log_warn("%p was not allocated here; nothing freed", ptr);
}
