/* SPDX-License-Identifier: Apache-2.0 */
#include "os/capped.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static bool maps_fail;

void *__real_mmap(void *at, size_t len, int prot, int flags, int fd,
                  off_t offset);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd,
                  off_t offset);

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd,
                  off_t offset)
{
    if (maps_fail && fd >= 0) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return __real_mmap(at, len, prot, flags, fd, offset);
}

struct fixture {
    struct rueda_capped file;
    char path[64];
    char *text;
    size_t len;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    int fd;

    strcpy(fixture.path, "/tmp/rueda_capped_XXXXXX");
    fd = mkstemp(fixture.path);
    if (fd < 0)
        return -1;
    close(fd);
    fixture.text = NULL;
    maps_fail = false;
    *state = &fixture;
    return rueda_capped_open(&fixture.file, fixture.path, "[", ']') == RUEDA_OK
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    rueda_capped_close(&fixture->file);
    free(fixture->text);
    return unlink(fixture->path);
}

/* What is in the file, without its blanks. */
static void load(struct fixture *fixture)
{
    FILE *file = fopen(fixture->path, "re");
    int c;

    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    free(fixture->text);
    fixture->text = malloc((size_t)ftell(file) + 1);
    assert_non_null(fixture->text);
    rewind(file);
    fixture->len = 0;
    for (c = getc(file); c != EOF; c = getc(file))
        if (c != ' ')
            fixture->text[fixture->len++] = (char)c;
    fclose(file);
}

/* Items are of one letter each, so that one can see if any is missing. Lengths
 * meet every place in a page. */
static size_t item(int i, char *out)
{
    const size_t len =
        i % 50 == 0 ? RUEDA_CAPPED_ITEM_MAX : 1 + (size_t)(i * 37) % 300;

    memset(out, 'a' + i % 26, len);
    return len;
}

/* That is what is in the file: a head, all of the items, a cap. */
static void check_items(const struct fixture *fixture, int count)
{
    static char expected[RUEDA_CAPPED_ITEM_MAX];
    size_t at = 1;

    assert_int_equal(fixture->text[0], '[');
    for (int i = 0; i < count; i++) {
        const size_t len = item(i, expected);

        assert_true(at + len < fixture->len);
        assert_memory_equal(fixture->text + at, expected, len);
        at += len;
    }
    assert_int_equal(at, fixture->len - 1);
    assert_int_equal(fixture->text[at], ']');
}

static void add_and_check(struct fixture *fixture, int count)
{
    static char text[RUEDA_CAPPED_ITEM_MAX];

    for (int i = 0; i < count; i++) {
        const size_t len = item(i, text);

        assert_int_equal(rueda_capped_add(&fixture->file, text, len), RUEDA_OK);
        if (i % 3 != 0)
            continue;
        assert_int_equal(rueda_capped_flush(&fixture->file), RUEDA_OK);
        load(fixture);
        check_items(fixture, i + 1);
    }
}

static void the_cap_is_last_after_every_flush(void **state)
{
    add_and_check(*state, 400);
}

static void a_file_that_cannot_be_mapped_is_written_all_the_same(void **state)
{
    maps_fail = true;
    add_and_check(*state, 100);
}

static void an_item_longer_than_a_page_is_refused(void **state)
{
    static char text[RUEDA_CAPPED_ITEM_MAX + 1];
    struct fixture *fixture = *state;

    assert_int_equal(rueda_capped_add(&fixture->file, text, sizeof(text)),
                     RUEDA_ERR_INVALID);
    assert_int_equal(rueda_capped_flush(&fixture->file), RUEDA_OK);
    load(fixture);
    check_items(fixture, 0);
}

static void a_write_that_fails_leaves_what_was_there_and_the_cap(void **state)
{
    const struct rlimit little = {10000, RLIM_INFINITY};
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    struct fixture *fixture = *state;
    char text[100];
    rueda_status status = RUEDA_OK;

    memset(text, 'x', sizeof(text));
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    for (int i = 0; i < 1000 && status == RUEDA_OK; i++) {
        status = rueda_capped_add(&fixture->file, text, sizeof(text));
        if (status == RUEDA_OK)
            status = rueda_capped_flush(&fixture->file);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);

    assert_int_equal(status, RUEDA_ERR_IO);
    assert_int_equal(fixture->file.fd, -1);
    assert_int_equal(rueda_capped_add(&fixture->file, text, 1),
                     RUEDA_ERR_CLOSED);
    load(fixture);
    assert_true(fixture->len > 9000);
    assert_int_equal(fixture->text[0], '[');
    for (size_t i = 1; i < fixture->len - 1; i++)
        assert_int_equal(fixture->text[i], 'x');
    assert_int_equal(fixture->text[fixture->len - 1], ']');
}

static void a_missing_folder_is_the_cause(void **state)
{
    struct rueda_capped file;

    (void)state;
    assert_int_equal(
        rueda_capped_open(&file, "/nonexistent/folder/file", "[", ']'),
        RUEDA_ERR_IO);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(file.fd, -1);
}

/* Write as fast as can be, until killed. */
_Noreturn static void write_for_ever(struct rueda_capped *file, int ready_fd)
{
    static char text[RUEDA_CAPPED_ITEM_MAX];

    (void)!write(ready_fd, "!", 1);
    for (int i = 0;; i++)
        if (rueda_capped_add(file, text, item(i, text)) != RUEDA_OK)
            _exit(1);
}

static void a_process_killed_while_writing_leaves_the_cap(void **state)
{
    struct fixture *fixture = *state;

    for (int round = 0; round < 100; round++) {
        int ready[2];
        char byte;
        pid_t pid;
        int code;

        assert_int_equal(
            rueda_capped_open(&fixture->file, fixture->path, "[", ']'),
            RUEDA_OK);
        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            write_for_ever(&fixture->file, ready[1]);
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        usleep((useconds_t)(round * 29 % 1000));
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &code, 0), pid);
        assert_true(WIFSIGNALED(code));
        close(ready[0]);
        rueda_capped_close(&fixture->file);

        load(fixture);
        assert_true(fixture->len >= 2);
        assert_int_equal(fixture->text[fixture->len - 1], ']');
        assert_ptr_equal(memchr(fixture->text, ']', fixture->len),
                         fixture->text + fixture->len - 1);
    }
}

static size_t size_of(const char *path)
{
    struct stat file;

    return stat(path, &file) == 0 ? (size_t)file.st_size : 0;
}

static void a_link_of_another_user_is_not_followed(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_capped other;
    char folder[] = "/tmp/rueda_capped_folder_XXXXXX";
    char link[80];

    if (geteuid() != 0)
        skip(); /* only root can make a link of another user */
    /* Linux itself refuses such links in /tmp, but not in other folders. */
    assert_non_null(mkdtemp(folder));
    snprintf(link, sizeof(link), "%s/link", folder);
    assert_int_equal(symlink(fixture->path, link), 0);
    assert_int_equal(rueda_capped_add(&fixture->file, "abcdef", 6), RUEDA_OK);
    assert_int_equal(rueda_capped_flush(&fixture->file), RUEDA_OK);
    assert_int_equal(lchown(link, 1, 1), 0);
    assert_int_equal(rueda_capped_open(&other, link, "[", ']'), RUEDA_ERR_IO);
    assert_int_equal(errno, ELOOP);
    assert_true(size_of(fixture->path) >= 8);

    assert_int_equal(lchown(link, 0, 0), 0);
    assert_int_equal(rueda_capped_open(&other, link, "[", ']'), RUEDA_OK);
    assert_int_equal(size_of(fixture->path), 2);
    rueda_capped_close(&other);
    unlink(link);
    rmdir(folder);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_cap_is_last_after_every_flush),
        TEST(a_file_that_cannot_be_mapped_is_written_all_the_same),
        TEST(an_item_longer_than_a_page_is_refused),
        TEST(a_write_that_fails_leaves_what_was_there_and_the_cap),
        cmocka_unit_test(a_missing_folder_is_the_cause),
        TEST(a_link_of_another_user_is_not_followed),
        TEST(a_process_killed_while_writing_leaves_the_cap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
