/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job's key and its file. Each test has a folder of its own under /tmp.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>

#include "auth/key.h"

struct folder {
    char name[64];
    char path[96];
    struct rueda_text why;
    struct rueda_key key;
};

static int make_folder(void **state)
{
    static struct folder folder;

    memset(&folder, 0, sizeof(folder));
    snprintf(folder.name, sizeof(folder.name), "/tmp/rueda_auth_XXXXXX");
    if (mkdtemp(folder.name) == NULL)
        return -1;
    snprintf(folder.path, sizeof(folder.path), "%s/key", folder.name);
    *state = &folder;
    return 0;
}

static int drop_folder(void **state)
{
    struct folder *folder = *state;

    remove(folder->path);
    return rmdir(folder->name);
}

static void write_text(const struct folder *folder, const char *text)
{
    FILE *file = fopen(folder->path, "w");

    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Reading fails with this status and these words, and writes no key. */
static void check_refused(struct folder *folder, rueda_status status,
                          const char *words)
{
    memset(&folder->why, 0, sizeof(folder->why));
    assert_int_equal(
        rueda_key_read_file(folder->path, &folder->why, &folder->key), status);
    assert_non_null(strstr(folder->why.chars, words));
    assert_non_null(strstr(folder->why.chars, folder->path));
    assert_false(folder->key.present);
}

#define DIGITS "00112233445566778899aabbccddeeffFFEEDDCCBBAA9988776655443322110"

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static void a_key_that_is_written_can_be_read(void **state)
{
    struct folder *folder = *state;
    struct rueda_key key;
    struct stat st;
    mode_t mask = umask(0277);
    rueda_status status;

    assert_int_equal(rueda_key_create(&key), RUEDA_OK);
    status = rueda_key_write_file(folder->path, &key, &folder->why);
    umask(mask);
    assert_int_equal(status, RUEDA_OK);
    assert_int_equal(stat(folder->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, 65);
    assert_int_equal(
        rueda_key_read_file(folder->path, &folder->why, &folder->key),
        RUEDA_OK);

    assert_memory_equal(&folder->key, &key, sizeof(key));
    assert_true(rueda_text_is_empty(&folder->why));
}

static void a_file_that_is_there_is_not_overwritten(void **state)
{
    struct folder *folder = *state;
    struct rueda_key key;

    rueda_key_create(&key);
    write_text(folder, DIGITS "1\n");
    assert_int_equal(rueda_key_write_file(folder->path, &key, &folder->why),
                     RUEDA_ERR_IO);

    assert_non_null(strstr(folder->why.chars, strerror(EEXIST)));
    assert_int_equal(
        rueda_key_read_file(folder->path, &folder->why, &folder->key),
        RUEDA_OK);
    assert_int_equal(folder->key.bytes[31], 1);
}

static void a_key_cannot_be_written_where_there_is_no_folder(void **state)
{
    struct folder *folder = *state;
    struct rueda_key key;
    char path[128];

    rueda_key_create(&key);
    snprintf(path, sizeof(path), "%s/none/key", folder->name);
    assert_int_equal(rueda_key_write_file(path, &key, &folder->why),
                     RUEDA_ERR_IO);

    assert_non_null(strstr(folder->why.chars, "check the folder"));
}

static void a_write_that_fails_leaves_no_file(void **state)
{
    struct folder *folder = *state;
    struct rlimit limit;
    struct rlimit none;
    rueda_status status;

    rueda_key_create(&folder->key);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    status = rueda_key_write_file(folder->path, &folder->key, &folder->why);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_DFL);

    assert_int_equal(status, RUEDA_ERR_IO);
    assert_non_null(strstr(folder->why.chars, strerror(EFBIG)));
    assert_int_equal(access(folder->path, F_OK), -1);
}

static void no_key_cannot_be_written(void **state)
{
    struct folder *folder = *state;

    assert_int_equal(
        rueda_key_write_file(folder->path, &folder->key, &folder->why),
        RUEDA_ERR_INVALID);

    assert_int_equal(access(folder->path, F_OK), -1);
}

static void the_newline_may_be_missing(void **state)
{
    struct folder *folder = *state;

    write_text(folder, DIGITS "1");

    assert_int_equal(
        rueda_key_read_file(folder->path, &folder->why, &folder->key),
        RUEDA_OK);
    assert_true(folder->key.present);
    assert_int_equal(folder->key.bytes[1], 0x11);
    assert_int_equal(folder->key.bytes[16], 0xff);
}

static void a_file_that_holds_no_key_is_refused(void **state)
{
    static const char *const texts[] = {
        "",           "\n",          DIGITS,         DIGITS "\n",
        DIGITS "g\n", DIGITS "12\n", DIGITS "1\n\n", DIGITS "1\n" DIGITS "1\n",
        ZEROS "\n",
    };
    struct folder *folder = *state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        write_text(folder, texts[i]);
        check_refused(folder, RUEDA_ERR_INVALID, "openssl rand -hex 32");
        assert_null(strstr(folder->why.chars, "00112233"));
    }
}

static void a_file_open_to_others_is_refused(void **state)
{
    static const mode_t modes[] = {0640, 0604, 0620, 0602, 0610, 0601, 0644};
    struct folder *folder = *state;

    write_text(folder, DIGITS "1\n");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        assert_int_equal(chmod(folder->path, modes[i]), 0);
        check_refused(folder, RUEDA_ERR_AUTH, "chmod 600 ");
    }
    assert_int_equal(chmod(folder->path, 0400), 0);
    assert_int_equal(
        rueda_key_read_file(folder->path, &folder->why, &folder->key),
        RUEDA_OK);
}

static void a_file_of_another_user_is_refused(void **state)
{
    struct folder *folder = *state;

    if (geteuid() != 0)
        skip(); /* Only root can give files away. */
    write_text(folder, DIGITS "1\n");
    assert_int_equal(chown(folder->path, 65534, (gid_t)-1), 0);

    check_refused(folder, RUEDA_ERR_AUTH, "chown");
}

static void a_link_is_not_followed(void **state)
{
    struct folder *folder = *state;

    assert_int_equal(symlink("/dev/null", folder->path), 0);

    check_refused(folder, RUEDA_ERR_IO, "links are not followed");
}

static void a_fifo_is_refused_without_waiting(void **state)
{
    struct folder *folder = *state;

    assert_int_equal(mkfifo(folder->path, 0600), 0);

    check_refused(folder, RUEDA_ERR_AUTH, "not a regular file");
}

static void a_missing_file_is_named(void **state)
{
    check_refused(*state, RUEDA_ERR_IO, strerror(ENOENT));
}

/* ---- A key that a launcher left open ------------------------------------ */

/* A memfd with this text, its position at the end of it. */
static int memfd_with(const char *text)
{
    int fd = memfd_create("key", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

/* Reading fails with this status and these words, and writes no key. */
static void check_fd_refused(int fd, rueda_status status, const char *words)
{
    struct rueda_key key = {.present = false};
    struct rueda_text why = {{0}};
    char name[32];

    snprintf(name, sizeof(name), "%d", fd);
    assert_int_equal(rueda_key_read_fd(fd, &why, &key), status);
    assert_non_null(strstr(why.chars, words));
    assert_non_null(strstr(why.chars, name));
    assert_non_null(strstr(why.chars, "RUEDA_KEY_FD"));
    assert_false(key.present);
}

static void a_memfd_can_be_read_again_and_again(void **state)
{
    int fd = memfd_with(DIGITS "1\n");
    struct rueda_text why = {{0}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rueda_key key = {.present = false};

        assert_int_equal(rueda_key_read_fd(fd, &why, &key), RUEDA_OK);
        assert_true(key.present);
        assert_int_equal(key.bytes[1], 0x11);
        assert_int_equal(key.bytes[31], 1);
    }
    assert_true(rueda_text_is_empty(&why));
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 65);
    close(fd);
}

static void an_open_file_is_as_good_as_a_memfd(void **state)
{
    struct folder *folder = *state;
    int fd;

    write_text(folder, DIGITS "1");
    fd = open(folder->path, O_RDONLY);
    assert_int_equal(rueda_key_read_fd(fd, &folder->why, &folder->key),
                     RUEDA_OK);
    assert_int_equal(folder->key.bytes[16], 0xff);
    close(fd);
}

static void an_open_file_that_others_can_open_is_refused(void **state)
{
    struct folder *folder = *state;
    int fd;

    write_text(folder, DIGITS "1\n");
    fd = open(folder->path, O_RDONLY);
    assert_int_equal(chmod(folder->path, 0604), 0);
    check_fd_refused(fd, RUEDA_ERR_AUTH, "mode 0604");

    /* Without a name none can. */
    assert_int_equal(unlink(folder->path), 0);
    assert_int_equal(rueda_key_read_fd(fd, &folder->why, &folder->key),
                     RUEDA_OK);
    close(fd);
}

static void a_descriptor_that_holds_no_key_is_refused(void **state)
{
    static const char *const texts[] = {"", DIGITS "\n", DIGITS "1\n\n",
                                        DIGITS "g\n", ZEROS "\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int fd = memfd_with(texts[i]);

        check_fd_refused(fd, RUEDA_ERR_INVALID, "64 hexadecimal digits");
        close(fd);
    }
}

static void
a_descriptor_that_is_no_file_is_refused_without_waiting(void **state)
{
    int ends[2];
    int folder = open("/tmp", O_RDONLY);
    int null = open("/dev/null", O_RDONLY);

    (void)state;
    assert_int_equal(pipe(ends), 0);
    check_fd_refused(ends[0], RUEDA_ERR_AUTH, "neither a file nor a memfd");
    check_fd_refused(folder, RUEDA_ERR_AUTH, "neither a file nor a memfd");
    check_fd_refused(null, RUEDA_ERR_AUTH, "neither a file nor a memfd");
    close(ends[0]);
    close(ends[1]);
    close(folder);
    close(null);
}

static void a_descriptor_that_cannot_be_read_is_named(void **state)
{
    struct folder *folder = *state;
    int fd;

    check_fd_refused(7777, RUEDA_ERR_IO, strerror(EBADF));
    write_text(folder, DIGITS "1\n");
    fd = open(folder->path, O_WRONLY);
    check_fd_refused(fd, RUEDA_ERR_IO, "open for reading");
    close(fd);
}

static void a_wiped_key_is_zero(void **state)
{
    struct rueda_key key;

    (void)state;
    assert_int_equal(rueda_key_create(&key), RUEDA_OK);
    assert_true(key.present);
    assert_false(sodium_is_zero(key.bytes, sizeof(key.bytes)));
    rueda_key_wipe(&key);

    assert_true(sodium_is_zero(key.bytes, sizeof(key.bytes)));
    assert_false(key.present);
}

#define FOLDER(test)                                                           \
    cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wiped_key_is_zero),
        FOLDER(a_key_that_is_written_can_be_read),
        FOLDER(a_file_that_is_there_is_not_overwritten),
        FOLDER(a_key_cannot_be_written_where_there_is_no_folder),
        FOLDER(a_write_that_fails_leaves_no_file),
        FOLDER(no_key_cannot_be_written),
        FOLDER(the_newline_may_be_missing),
        FOLDER(a_file_that_holds_no_key_is_refused),
        FOLDER(a_file_open_to_others_is_refused),
        FOLDER(a_file_of_another_user_is_refused),
        FOLDER(a_link_is_not_followed),
        FOLDER(a_fifo_is_refused_without_waiting),
        FOLDER(a_missing_file_is_named),
        cmocka_unit_test(a_memfd_can_be_read_again_and_again),
        FOLDER(an_open_file_is_as_good_as_a_memfd),
        FOLDER(an_open_file_that_others_can_open_is_refused),
        cmocka_unit_test(a_descriptor_that_holds_no_key_is_refused),
        cmocka_unit_test(
            a_descriptor_that_is_no_file_is_refused_without_waiting),
        FOLDER(a_descriptor_that_cannot_be_read_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
