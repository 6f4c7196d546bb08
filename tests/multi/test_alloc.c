/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that all ranks can reach, and inputs that are kept. */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/coll_check.h"
#include "support/processes.h"

#define MIB ((size_t)1 << 20)

static bool is_zero(const char *bytes, size_t len)
{
    return len == 0 ||
           (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

/* ---- What one gets ------------------------------------------------------ */

static int zeroed(struct test_rank *me)
{
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 3 * MIB + 5};

    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            void *memory;

            if (rank_expect(me, rueda_alloc(me->ctx, sizes[i], &memory),
                            RUEDA_OK, "alloc") != 0)
                return 1;
            if ((uintptr_t)memory % 4096 != 0)
                return rank_says(me, "%p is not page aligned", memory);
            if (!is_zero(memory, sizes[i]))
                return rank_says(me, "%zu bytes are not zero", sizes[i]);
            memset(memory, 0xff, sizes[i]);
            rueda_free(me->ctx, memory);
        }
    return 0;
}

static void memory_is_zeroed_and_page_aligned_also_when_reused(void **state)
{
    rank_run(*state, 2, zeroed, NULL);
}

static int apart(struct test_rank *me)
{
    char *parts[50];

    for (int i = 0; i < 50; i++) {
        void *memory;

        if (rank_expect(me, rueda_alloc(me->ctx, 5000, &memory), RUEDA_OK,
                        "alloc") != 0)
            return 1;
        parts[i] = memory;
        memset(parts[i], i, 5000);
    }
    for (int i = 0; i < 50; i += 2)
        rueda_free(me->ctx, parts[i]);
    for (int i = 1; i < 50; i += 2) {
        if (parts[i][0] != i || parts[i][4999] != i)
            return rank_says(me, "part %d was overwritten", i);
        rueda_free(me->ctx, parts[i]);
    }
    return 0;
}

static void pieces_of_memory_do_not_overlap(void **state)
{
    rank_run(*state, 3, apart, NULL);
}

/* ---- Collectives on it --------------------------------------------------- */

/* All ranks shared, none, and every mixture. */
static int mixtures(struct test_rank *me)
{
    static const size_t counts[] = {3, 5000, 9001, 300007};

    for (unsigned shared = 0; shared < 1u << me->size; shared++)
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
            for (int in_place = 0; in_place < 2; in_place++) {
                const struct coll_what what = {
                    .kind = RUEDA_ALLREDUCE,
                    .dtype = RUEDA_FLOAT32,
                    .count = counts[i],
                    .is_in_place = in_place != 0,
                    .shared = shared,
                    .salt = shared,
                };

                if (coll_check(me, &what) != 0)
                    return 1;
            }
    return 0;
}

static void
an_allreduce_takes_shared_and_private_memory_in_any_mixture(void **state)
{
    rank_run(*state, 2, mixtures, NULL);
    rank_run(*state, 3, mixtures, NULL);
}

static int other_kinds(struct test_rank *me)
{
    const unsigned mixtures_count = 1u << me->size;

    for (int kind = 0; kind < RUEDA_BARRIER; kind++)
        for (unsigned i = 0; i < 2 * mixtures_count; i++) {
            const struct coll_what what = {
                .kind = (rueda_kind)kind,
                .dtype = RUEDA_INT64,
                .count = 20001,
                .root = i % 2 == 0 ? 0 : me->size - 1,
                .is_uneven = i >= mixtures_count,
                .shared = i & (mixtures_count - 1),
                .salt = i,
            };

            if (coll_check(me, &what) != 0)
                return 1;
        }
    return 0;
}

static void every_kind_takes_shared_and_private_memory(void **state)
{
    rank_run(*state, 2, other_kinds, NULL);
    rank_run(*state, 3, other_kinds, NULL);
}

/* The ranks' parts begin at different places of their allocations. */
static int sub_ranges(struct test_rank *me)
{
    const size_t count = 50001;
    size_t begin = 1000 + 17 * (size_t)me->rank;
    float *all;
    void *memory;

    if (rank_expect(me, rueda_alloc(me->ctx, 480000, &memory), RUEDA_OK,
                    "alloc") != 0)
        return 1;
    all = memory;
    for (size_t i = 0; i < count; i++)
        all[begin + i] = (float)((i + (size_t)me->rank) % 16);
    if (rank_expect(me,
                    rueda_allreduce(me->ctx, all + begin, all + begin, count,
                                    RUEDA_FLOAT32, RUEDA_SUM),
                    RUEDA_OK, "allreduce") != 0)
        return 1;
    for (size_t i = 0; i < count; i++) {
        float wanted = 0;

        for (size_t r = 0; r < (size_t)me->size; r++)
            wanted += (float)((i + r) % 16);
        if (all[begin + i] != wanted)
            return rank_says(me, "wrong at %zu", i);
    }
    if (!is_zero((char *)all, begin * 4) ||
        !is_zero((char *)(all + begin + count), (120000 - begin - count) * 4))
        return rank_says(me, "wrote outside of the range");
    rueda_free(me->ctx, memory);
    return 0;
}

static void parts_of_an_allocation_can_be_used(void **state)
{
    rank_run(*state, 3, sub_ranges, NULL);
}

/* ---- What it costs --------------------------------------------------- */

/* Bytes that the segment holds, by its memfd; -1: not found. */
static int64_t segment_bytes(void)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    int64_t bytes = -1;

    if (folder == NULL)
        return -1;
    for (entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char target[PATH_MAX] = "";
        struct stat about;

        if (readlinkat(dirfd(folder), entry->d_name, target,
                       sizeof(target) - 1) < 0)
            continue;
        if (strncmp(target, "/memfd:rueda", 12) == 0 &&
            fstat(atoi(entry->d_name), &about) == 0)
            bytes = (int64_t)about.st_blocks * 512;
    }
    closedir(folder);
    return bytes;
}

static int returned(struct test_rank *me)
{
    int64_t before = segment_bytes();
    void *memory;
    int64_t during;
    int64_t after;

    if (before < 0)
        return rank_says(me, "found no memfd");
    for (int round = 0; round < 5; round++) {
        if (rank_expect(me, rueda_alloc(me->ctx, 32 * MIB, &memory), RUEDA_OK,
                        "alloc") != 0)
            return 1;
        memset(memory, 1, 32 * MIB);
        during = segment_bytes();
        rueda_free(me->ctx, memory);
        after = segment_bytes();
        if (during - before < (int64_t)(32 * MIB))
            return rank_says(me, "%d MiB in use", (int)(during >> 20));
        if (after != before)
            return rank_says(me, "%d KiB were not returned",
                             (int)((after - before) >> 10));
    }
    return 0;
}

static void freed_memory_goes_back_to_the_machine(void **state)
{
    rank_run(*state, 1, returned, NULL);
}

static int absurd(struct test_rank *me)
{
    static const size_t sizes[] = {(size_t)1 << 43, (size_t)1 << 50, SIZE_MAX,
                                   SIZE_MAX - 4095, SIZE_MAX / 2};
    void *const untouched = me;
    int64_t before = segment_bytes();
    void *memory = untouched;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (rank_expect(me, rueda_alloc(me->ctx, sizes[i], &memory),
                        RUEDA_ERR_LIMIT, "absurd alloc") != 0)
            return 1;
    if (memory != untouched)
        return rank_says(me, "the result was written on failure");
    if (strstr(rueda_last_error(), "of shared memory") == NULL)
        return rank_says(me, "said \"%s\"", rueda_last_error());
    if (segment_bytes() != before)
        return rank_says(me, "pages were touched");
    if (rueda_error(me->ctx)[0] != '\0')
        return rank_says(me, "failed for good: %s", rueda_error(me->ctx));
    return rank_expect(me, rueda_barrier(me->ctx), RUEDA_OK, "barrier");
}

static void an_absurd_size_is_refused_and_nothing_is_touched(void **state)
{
    rank_run(*state, 1, absurd, NULL);
}

static int foreign(struct test_rank *me)
{
    const struct coll_what what = {
        .kind = RUEDA_ALLREDUCE, .dtype = RUEDA_FLOAT32, .count = 100000};
    char *heap = malloc(100);
    char on_stack[16] = "stack";
    void *memory;

    if (heap == NULL || rank_expect(me, rueda_alloc(me->ctx, 20000, &memory),
                                    RUEDA_OK, "alloc") != 0) {
        free(heap);
        return 1;
    }
    memset(memory, 3, 20000);
    memset(heap, 4, 100);
    rueda_free(me->ctx, NULL);
    rueda_free(me->ctx, heap);
    rueda_free(me->ctx, on_stack);
    rueda_free(me->ctx, (char *)memory + 4096);
    if (((char *)memory)[4096] != 3 || heap[50] != 4 ||
        strcmp(on_stack, "stack") != 0)
        return rank_says(me, "foreign memory was freed");
    rueda_free(me->ctx, memory);
    rueda_free(me->ctx, memory); /* twice */
    free(heap);
    return coll_check(me, &what);
}

static void a_pointer_that_was_not_allocated_here_is_left_alone(void **state)
{
    rank_run(*state, 2, foreign, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(memory_is_zeroed_and_page_aligned_also_when_reused),
        RANK_EVERYWHERE(pieces_of_memory_do_not_overlap),
        RANK_EVERYWHERE(
            an_allreduce_takes_shared_and_private_memory_in_any_mixture),
        RANK_EVERYWHERE(every_kind_takes_shared_and_private_memory),
        RANK_EVERYWHERE(parts_of_an_allocation_can_be_used),
        RANK_TEST(freed_memory_goes_back_to_the_machine, processes),
        RANK_TEST(an_absurd_size_is_refused_and_nothing_is_touched, processes),
        RANK_EVERYWHERE(a_pointer_that_was_not_allocated_here_is_left_alone),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
