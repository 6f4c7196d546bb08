/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the segment: a sparse sealed memfd with a head, a line for each
 * member, their flight recorders, and a range of addresses for each member to
 * allocate from. Ranges are long, since what is not touched costs nothing, and
 * shorter where addresses are short.
 */
#define RUEDA_LOG_TAG "segment"

#include "segment/mapping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "os/event.h"
#include "os/random.h"

/* A member's own range. The thread sanitizer keeps a shadow of all that is
 * mapped, so there it has to be small. */
#if defined(__has_feature)
#define HAS_FEATURE(feature) __has_feature(feature)
#else
#define HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
#define RANGE_BYTES ((uint64_t)512 << 20)
#else
#define RANGE_BYTES ((uint64_t)64 << 30)
#endif
/* Where addresses are short, by `ulimit -v` or the processor: a quarter each
 * time, but no less than this. */
#define LEAST_RANGE_BYTES ((uint64_t)64 << 20)
#define RANGE_STEP        4
/* What an address space holds beside other things. */
#define MOST_BYTES ((uint64_t)32 << 40)

static const char magic_text[8] = "RUEDAseg";

static const char not_a_segment[] =
    "rank 0 passed something that is not the segment of a job of %d ranks";

/* The same in libraries that understand each other's segment: of one release,
 * with the same structs. Pipes and slabs follow from the release. */
static uint64_t layout_hash(void)
{
    const size_t layout[] = {
        sizeof(struct segment_head),
        offsetof(struct segment_head, common),
        sizeof(struct rueda_segment_common),
        sizeof(struct rueda_member),
        offsetof(struct rueda_member, presence),
        offsetof(struct rueda_member, departure),
        offsetof(struct rueda_member, sleeping),
        offsetof(struct rueda_member, failure),
        RUEDA_SEGMENT_FLIGHT_BYTES,
        RUEDA_SEGMENT_MAX,
    };
    const char *release = rueda_version();

    return rueda_hash(layout, sizeof(layout),
                      rueda_hash(release, strlen(release), 1));
}

static uint64_t members_bytes(int size)
{
    uint64_t bytes = (uint64_t)size * sizeof(struct rueda_member);

    return (bytes + RUEDA_PAGE_BYTES - 1) & ~(RUEDA_PAGE_BYTES - 1);
}

static uint64_t range_bytes(int size)
{
    uint64_t share = MOST_BYTES / (uint64_t)size & ~(RUEDA_PAGE_BYTES - 1);

    return share < RANGE_BYTES ? share : RANGE_BYTES;
}

uint64_t rueda_mapping_flights(int size)
{
    return RUEDA_PAGE_BYTES + members_bytes(size);
}

uint64_t rueda_mapping_ranges(int size)
{
    return rueda_mapping_flights(size) +
           (uint64_t)size * RUEDA_SEGMENT_FLIGHT_BYTES;
}

static size_t bytes_of(int size, uint64_t range)
{
    return rueda_mapping_ranges(size) + (uint64_t)size * range;
}

size_t rueda_segment_bytes(int size)
{
    return bytes_of(size, range_bytes(size));
}

/* The range of each member in a segment of that size; 0: it is none. */
static uint64_t range_in(int size, size_t bytes)
{
    const uint64_t begin = rueda_mapping_ranges(size);
    const uint64_t range = bytes > begin ? (bytes - begin) / (uint64_t)size : 0;

    return range <= range_bytes(size) && range % RUEDA_PAGE_BYTES == 0 &&
                   bytes_of(size, range) == bytes
               ? range
               : 0;
}

/* Takes fd in any case. */
static struct rueda_mapping *mapping_new(int fd, size_t bytes,
                                         struct rueda_text *error)
{
    struct rueda_mapping *mapping = calloc(1, sizeof(*mapping));

    if (mapping == NULL) {
        rueda_text_set(error, "no memory for a shared segment");
        goto err_close;
    }
    atomic_init(&mapping->users, 1);
    mapping->fd = fd;
    mapping->bytes = bytes;
    if (rueda_memory_map_shared(fd, bytes, &mapping->base) != RUEDA_OK) {
        rueda_text_set(error,
                       "cannot map a shared segment of %zu GiB of address "
                       "space (%s); is `ulimit -v` set?",
                       bytes >> 30, strerror(errno));
        goto err_free;
    }
    return mapping;

err_free:
    free(mapping);
err_close:
    rueda_fd_close(fd);
    return NULL;
}

void rueda_mapping_close_descriptors(struct rueda_mapping *mapping)
{
    for (int i = 0; i < mapping->doorbell_count; i++) {
        rueda_fd_close(mapping->doorbells[i]);
        mapping->doorbells[i] = -1;
    }
    rueda_fd_close(mapping->fd);
    mapping->fd = -1;
}

void rueda_mapping_release(struct rueda_mapping *mapping)
{
    if (atomic_fetch_sub(&mapping->users, 1) > 1)
        return;
    rueda_memory_unmap(mapping->base, mapping->bytes);
    rueda_mapping_close_descriptors(mapping);
    free(mapping->doorbells);
    free(mapping);
}

/* A memfd of my own, or a copy of one that I inherited, emptied. */
static rueda_status memfd_for(int size, int inherited, int *out_fd,
                              struct rueda_text *error)
{
    if (inherited < 0) {
        if (rueda_memfd_create("rueda", rueda_segment_bytes(size), out_fd) ==
            RUEDA_OK)
            return RUEDA_OK;
        rueda_text_set(error, "cannot make a shared segment: %s",
                       strerror(errno));
        return RUEDA_ERR_IO;
    }
    if (!rueda_memfd_is_sealed(inherited, rueda_segment_bytes(size)) ||
        rueda_fd_copy(inherited, out_fd) != RUEDA_OK) {
        rueda_text_set(error,
                       "RUEDA_SEGMENT_FD is %d, which is not a sealed memfd of "
                       "%zu bytes, the segment of %d ranks",
                       inherited, rueda_segment_bytes(size), size);
        return RUEDA_ERR_MISMATCH;
    }
    rueda_memory_punch(*out_fd, 0, rueda_segment_bytes(size));
    return RUEDA_OK;
}

/* A segment with ranges of this length, or NULL. */
static struct rueda_mapping *map_range(int size, uint64_t range)
{
    struct rueda_text ignored = {{0}};
    int fd;

    if (rueda_memfd_create("rueda", bytes_of(size, range), &fd) != RUEDA_OK)
        return NULL;
    return mapping_new(fd, bytes_of(size, range), &ignored);
}

/* There are not as many addresses as usual: a smaller one. It leaves most of
 * what there is to the rest of the process. NULL: there is no room for any. */
static struct rueda_mapping *map_less(int size, uint64_t *out_range)
{
    uint64_t range = range_bytes(size) / RANGE_STEP & ~(RUEDA_PAGE_BYTES - 1);
    struct rueda_mapping *mapping = NULL;

    while (range >= LEAST_RANGE_BYTES && mapping == NULL) {
        mapping = map_range(size, range);
        if (mapping == NULL)
            range = range / RANGE_STEP & ~(RUEDA_PAGE_BYTES - 1);
    }
    if (mapping == NULL)
        return NULL;
    if (range / RANGE_STEP >= LEAST_RANGE_BYTES) {
        rueda_mapping_release(mapping);
        range = range / RANGE_STEP & ~(RUEDA_PAGE_BYTES - 1);
        mapping = map_range(size, range);
    }
    log_info("addresses are short (is `ulimit -v` set?): each rank has %llu "
             "MiB of the shared segment",
             (unsigned long long)(range >> 20));
    *out_range = range;
    return mapping;
}

rueda_status rueda_mapping_make(int size, int inherited,
                                struct rueda_mapping **out,
                                struct rueda_text *error)
{
    uint64_t range = range_bytes(size > 0 ? size : 1);
    struct rueda_text words = {{0}};
    struct rueda_mapping *mapping;
    rueda_status status;
    struct segment_head *head;
    int fd;

    if (size < 1 || size > RUEDA_SEGMENT_MAX) {
        rueda_text_set(error, "%d ranks in one host; 1 to %d can share memory",
                       size, RUEDA_SEGMENT_MAX);
        return RUEDA_ERR_LIMIT;
    }
    status = memfd_for(size, inherited, &fd, error);
    if (status != RUEDA_OK)
        return status;
    mapping = mapping_new(fd, rueda_segment_bytes(size), &words);
    if (mapping == NULL)
        mapping = map_less(size, &range);
    if (mapping == NULL) {
        rueda_text_set(error, "%s", words.chars);
        return RUEDA_ERR_LIMIT;
    }
    head = mapping->base;
    memcpy(head->magic, magic_text, sizeof(head->magic));
    head->layout = layout_hash();
    head->size = (uint32_t)size;
    head->range_bytes = range;
    for (int i = 0; i < size; i++)
        rueda_mapping_members(mapping)[i].rank = i;
    if (rueda_random_fill(head->nonce, sizeof(head->nonce)) != RUEDA_OK) {
        rueda_text_set(error, "no random numbers: %s", strerror(errno));
        rueda_mapping_release(mapping);
        return RUEDA_ERR_IO;
    }
    *out = mapping;
    return RUEDA_OK;
}

static rueda_status check_head(const struct segment_head *head, int size,
                               uint64_t range, struct rueda_text *error)
{
    if (memcmp(head->magic, magic_text, sizeof(head->magic)) != 0 ||
        head->layout != layout_hash()) {
        rueda_text_set(error, "the segment of rank 0 is of another version; "
                              "install one release of Rueda for all ranks");
        return RUEDA_ERR_VERSION;
    }
    if (head->size == (uint32_t)size && head->range_bytes == range)
        return RUEDA_OK;
    rueda_text_set(error, not_a_segment, size);
    return RUEDA_ERR_MISMATCH;
}

rueda_status rueda_mapping_attach(int size, int memfd,
                                  struct rueda_mapping **out,
                                  struct rueda_text *error)
{
    const size_t bytes = rueda_memfd_sealed_bytes(memfd);
    const uint64_t range = range_in(size, bytes);
    struct rueda_mapping *mapping;
    rueda_status status;

    if (range == 0) {
        rueda_text_set(error, not_a_segment, size);
        rueda_fd_close(memfd);
        return RUEDA_ERR_MISMATCH;
    }
    mapping = mapping_new(memfd, bytes, error);
    if (mapping == NULL)
        return RUEDA_ERR_LIMIT;
    status = check_head(mapping->base, size, range, error);
    if (status != RUEDA_OK) {
        rueda_mapping_release(mapping);
        return status;
    }
    *out = mapping;
    return RUEDA_OK;
}
