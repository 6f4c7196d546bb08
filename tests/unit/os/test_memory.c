/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "os/event.h"
#include "os/memory.h"
#include "unit/unit.h"

#define BYTES (16 * RUEDA_PAGE_BYTES)

static int new_memfd(void)
{
    int fd;

    assert_int_equal(rueda_memfd_create("test", BYTES, &fd), RUEDA_OK);
    return fd;
}

static void a_memfd_keeps_its_size(void **state)
{
    int fd = new_memfd();
    struct stat about;

    (void)state;
    assert_int_equal(ftruncate(fd, BYTES / 2), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(fd, 2 * BYTES), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);

    assert_int_equal(fstat(fd, &about), 0);
    assert_int_equal(about.st_size, BYTES);
    assert_int_equal(about.st_blocks, 0);
    assert_true(rueda_memfd_is_sealed(fd, BYTES));
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    close(fd);
}

static void a_memfd_that_cannot_be_leaves_the_cause(void **state)
{
    int fd = -7;

    (void)state;
    errno = 0;
    assert_int_equal(rueda_memfd_create("test", SIZE_MAX, &fd), RUEDA_ERR_IO);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(fd, -7);
}

static void a_memfd_of_another_size_is_not_the_one(void **state)
{
    int fd = new_memfd();

    (void)state;
    assert_false(rueda_memfd_is_sealed(fd, BYTES - 1));
    assert_false(rueda_memfd_is_sealed(fd, 2 * BYTES));
    close(fd);
}

static void a_memfd_without_all_seals_is_not_the_one(void **state)
{
    static const int some[] = {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW};

    (void)state;
    for (int i = 0; i < 3; i++) {
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        assert_int_equal(ftruncate(fd, BYTES), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, some[i]), 0);
        assert_false(rueda_memfd_is_sealed(fd, BYTES));
        close(fd);
    }
}

static void an_ordinary_file_is_not_a_sealed_memfd(void **state)
{
    const char *path = folder_write(*state, "file", "four");
    int fd = open(path, O_RDWR | O_CLOEXEC);
    int ends[2];

    assert_true(fd >= 0);
    assert_false(rueda_memfd_is_sealed(fd, 4));
    close(fd);
    assert_int_equal(pipe(ends), 0);
    assert_false(rueda_memfd_is_sealed(ends[0], 0));
    close(ends[0]);
    close(ends[1]);
    assert_false(rueda_memfd_is_sealed(-1, 0));
}

static void two_mappings_of_a_memfd_show_the_same(void **state)
{
    int fd = new_memfd();
    void *a;
    void *b;

    (void)state;
    assert_int_equal(rueda_memory_map_shared(fd, BYTES, &a), RUEDA_OK);
    assert_int_equal(rueda_memory_map_shared(fd, BYTES, &b), RUEDA_OK);
    assert_ptr_not_equal(a, b);

    memcpy((char *)a + 5000, "shared", 7);

    assert_string_equal((char *)b + 5000, "shared");
    rueda_memory_unmap(a, BYTES);
    rueda_memory_unmap(b, BYTES);
    close(fd);
}

static void what_cannot_be_mapped_leaves_the_cause(void **state)
{
    void *at = state;

    errno = 0;
    assert_int_equal(rueda_memory_map_shared(-1, BYTES, &at), RUEDA_ERR_IO);
    assert_int_equal(errno, EBADF);
    assert_ptr_equal(at, state);
    assert_null(rueda_memory_map_private(SIZE_MAX / 2));
}

static void private_pages_are_zero(void **state)
{
    char *at = rueda_memory_map_private(BYTES);

    (void)state;
    assert_non_null(at);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(at[i], 0);
    rueda_memory_unmap(at, BYTES);
}

static void a_punch_gives_the_pages_back(void **state)
{
    int fd = new_memfd();
    struct stat about;
    char *at;

    (void)state;
    assert_int_equal(rueda_memory_map_shared(fd, BYTES, (void **)&at),
                     RUEDA_OK);
    memset(at, 7, BYTES);
    assert_int_equal(fstat(fd, &about), 0);
    assert_int_equal(about.st_blocks * 512, BYTES);

    rueda_memory_punch(fd, 4 * RUEDA_PAGE_BYTES, 8 * RUEDA_PAGE_BYTES);

    assert_int_equal(fstat(fd, &about), 0);
    assert_int_equal(about.st_blocks * 512, 8 * RUEDA_PAGE_BYTES);
    assert_int_equal(about.st_size, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(at[i], i / RUEDA_PAGE_BYTES / 4 % 3 != 0 ? 0 : 7);
    rueda_memory_unmap(at, BYTES);
    close(fd);
}

/* ---- How much there is ------------------------------------------------- */

static void the_machine_has_what_meminfo_says(void **state)
{
    struct folder *folder = *state;

    assert_int_equal(
        rueda_memory_of_machine(folder_write(folder, "meminfo",
                                             "MemTotal:     10000 kB\n"
                                             "MemFree:        100 kB\n"
                                             "MemAvailable:   300 kB\n"
                                             "Buffers:          1 kB\n")),
        300 << 10);
}

static void a_meminfo_that_does_not_tell_is_no_limit(void **state)
{
    struct folder *folder = *state;

    assert_int_equal(rueda_memory_of_machine(folder_write(
                         folder, "meminfo", "MemTotal:  10000 kB\n")),
                     SIZE_MAX);
    assert_int_equal(rueda_memory_of_machine(folder_write(folder, "empty", "")),
                     SIZE_MAX);
    assert_int_equal(rueda_memory_of_machine("/tmp/rueda_no_such_file"),
                     SIZE_MAX);
}

/* What a cgroup leaves whose two files of these names say this. */
static size_t left_of(struct folder *folder, const char *names[2],
                      const char *limit, const char *used)
{
    folder_empty(folder);
    if (limit != NULL)
        folder_write(folder, names[0], limit);
    if (used != NULL)
        folder_write(folder, names[1], used);
    return rueda_memory_of_cgroup(folder->name);
}

static const char *const v2[] = {"memory.max", "memory.current"};
static const char *const v1[] = {"memory.limit_in_bytes",
                                 "memory.usage_in_bytes"};

static void a_cgroup_leaves_its_limit_less_its_use(void **state)
{
    assert_int_equal(left_of(*state, (const char **)v2, "5000\n", "1200\n"),
                     3800);
    assert_int_equal(left_of(*state, (const char **)v1, "5000\n", "1200\n"),
                     3800);
    assert_int_equal(left_of(*state, (const char **)v2, "5000\n", "5001\n"), 0);
    assert_int_equal(
        left_of(*state, (const char **)v2, "9223372036854771712\n", "4096\n"),
        9223372036854771712u - 4096);
}

static void pages_of_files_do_not_fill_a_cgroup(void **state)
{
    struct folder *folder = *state;

    left_of(folder, (const char **)v2, "5000\n", "4900\n");
    folder_write(folder, "memory.stat",
                 "anon 900\nfile 4000\nshmem 1000\ninactive_file 2000\n"
                 "active_file 1000\nworkingset_refault_file 7\n");
    assert_int_equal(rueda_memory_of_cgroup(folder->name), 3100);

    left_of(folder, (const char **)v1, "5000\n", "4900\n");
    folder_write(folder, "memory.stat",
                 "inactive_file 1\nactive_file 1\ntotal_inactive_file 2000\n"
                 "total_active_file 1000\n");
    assert_int_equal(rueda_memory_of_cgroup(folder->name), 3100);

    left_of(folder, (const char **)v2, "5000\n", "4900\n");
    folder_write(folder, "memory.stat", "inactive_file 6000\n");
    assert_int_equal(rueda_memory_of_cgroup(folder->name), 5000);
}

static void a_cgroup_without_a_limit_leaves_everything(void **state)
{
    assert_int_equal(left_of(*state, (const char **)v2, "max\n", "1200\n"),
                     SIZE_MAX);
    assert_int_equal(left_of(*state, (const char **)v2, "5000\n", NULL),
                     SIZE_MAX);
    assert_int_equal(left_of(*state, (const char **)v2, NULL, "5000\n"),
                     SIZE_MAX);
    assert_int_equal(left_of(*state, (const char **)v1, "", "5000\n"),
                     SIZE_MAX);
    assert_int_equal(left_of(*state, (const char **)v1, NULL, NULL), SIZE_MAX);
}

static void no_more_is_available_than_the_machine_has(void **state)
{
    const size_t slack = (size_t)256 << 20; /* others run meanwhile */
    size_t available = rueda_memory_available();

    (void)state;
    assert_true(available > 0);
    assert_true(available <= rueda_memory_of_machine("/proc/meminfo") + slack);
}

#define IN_FOLDER(test)                                                        \
    cmocka_unit_test_setup_teardown(test, folder_make, folder_drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_memfd_keeps_its_size),
        cmocka_unit_test(a_memfd_that_cannot_be_leaves_the_cause),
        cmocka_unit_test(a_memfd_of_another_size_is_not_the_one),
        cmocka_unit_test(a_memfd_without_all_seals_is_not_the_one),
        IN_FOLDER(an_ordinary_file_is_not_a_sealed_memfd),
        cmocka_unit_test(two_mappings_of_a_memfd_show_the_same),
        cmocka_unit_test(what_cannot_be_mapped_leaves_the_cause),
        cmocka_unit_test(private_pages_are_zero),
        cmocka_unit_test(a_punch_gives_the_pages_back),
        IN_FOLDER(the_machine_has_what_meminfo_says),
        IN_FOLDER(a_meminfo_that_does_not_tell_is_no_limit),
        IN_FOLDER(a_cgroup_leaves_its_limit_less_its_use),
        IN_FOLDER(pages_of_files_do_not_fill_a_cgroup),
        IN_FOLDER(a_cgroup_without_a_limit_leaves_everything),
        cmocka_unit_test(no_more_is_available_than_the_machine_has),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
