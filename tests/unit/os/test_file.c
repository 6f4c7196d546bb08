/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "os/file.h"
#include "os/random.h"
#include "unit/unit.h"

static void a_file_is_read_whole(void **state)
{
    const char *path = folder_write(*state, "file", "two\nlines\n");
    char text[32];

    memset(text, 'x', sizeof(text));
    assert_int_equal(rueda_file_read(path, text, sizeof(text)), RUEDA_OK);
    assert_string_equal(text, "two\nlines\n");
}

static void an_empty_file_is_an_empty_text(void **state)
{
    const char *path = folder_write(*state, "file", "");
    char text[4] = "xxx";

    assert_int_equal(rueda_file_read(path, text, sizeof(text)), RUEDA_OK);
    assert_string_equal(text, "");
}

static void a_file_and_its_final_zero_must_fit(void **state)
{
    const char *path = folder_write(*state, "file", "12345");
    char text[8] = "";

    assert_int_equal(rueda_file_read(path, text, 6), RUEDA_OK);
    assert_string_equal(text, "12345");
    assert_int_equal(rueda_file_read(path, text, 5), RUEDA_ERR_LIMIT);
    assert_int_equal(rueda_file_read(path, text, 1), RUEDA_ERR_LIMIT);
}

static void what_cannot_be_read_leaves_the_cause(void **state)
{
    struct folder *folder = *state;
    char text[8];

    assert_int_equal(rueda_file_read("/tmp/rueda_no_such_file", text, 8),
                     RUEDA_ERR_IO);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(rueda_file_read(folder->name, text, 8), RUEDA_ERR_IO);
    assert_int_equal(errno, EISDIR);
}

static void random_bytes_fill_all_and_differ(void **state)
{
    unsigned char a[1000] = {0};
    unsigned char b[1000] = {0};
    int zeros = 0;

    (void)state;
    assert_int_equal(rueda_random_fill(a, sizeof(a)), RUEDA_OK);
    assert_int_equal(rueda_random_fill(b, sizeof(b)), RUEDA_OK);
    for (size_t i = 0; i < sizeof(a); i++)
        zeros += a[i] == 0;
    assert_memory_not_equal(a, b, sizeof(a));
    assert_true(zeros < 100);
}

#define IN_FOLDER(test)                                                        \
    cmocka_unit_test_setup_teardown(test, folder_make, folder_drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_file_is_read_whole),
        IN_FOLDER(an_empty_file_is_an_empty_text),
        IN_FOLDER(a_file_and_its_final_zero_must_fit),
        IN_FOLDER(what_cannot_be_read_leaves_the_cause),
        cmocka_unit_test(random_bytes_fill_all_and_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
