/* SPDX-License-Identifier: Apache-2.0 */
#include "os/library.h"
#include "unit/unit.h"

/* The C library, which is always there. */
#define PRESENT "libc.so.6"

static void a_function_is_found_and_works(void **state)
{
    int (*absolute)(int number) = NULL;
    void *library = rueda_library_open(PRESENT);

    (void)state;
    assert_non_null(library);
    assert_int_equal(rueda_library_function(library, "abs", &absolute),
                     RUEDA_OK);
    assert_int_equal(absolute(-5), 5);
    rueda_library_close(library);
}

static void a_function_that_is_not_there_leaves_the_pointer(void **state)
{
    int (*absolute)(int number) = abs;
    void *library = rueda_library_open(PRESENT);

    (void)state;
    assert_int_equal(
        rueda_library_function(library, "rueda_no_such_thing", &absolute),
        RUEDA_ERR_UNSUPPORTED);
    assert_ptr_equal(absolute, abs);
    rueda_library_close(library);
}

static void a_library_that_is_not_there_has_a_reason(void **state)
{
    (void)state;
    assert_null(rueda_library_open("librueda-nowhere.so.9"));
    assert_non_null(strstr(rueda_library_error(), "librueda-nowhere.so.9"));
    assert_non_null(rueda_library_error());
    rueda_library_close(NULL);
}

static void only_what_is_loaded_is_found(void **state)
{
    void *library = rueda_library_find(PRESENT);

    (void)state;
    assert_non_null(library);
    rueda_library_close(library);
    assert_null(rueda_library_find("librueda-nowhere.so.9"));
}

static void a_library_can_be_known_by_symbol_or_by_file(void **state)
{
    void *library;

    (void)state;
    assert_true(rueda_library_has_symbol("abs"));
    assert_false(rueda_library_has_symbol("fake_pmix_sessions"));
    assert_true(rueda_library_is_mapped("libc.so"));
    assert_false(rueda_library_is_mapped("ibc.so"));
    assert_false(rueda_library_is_mapped("libpmix.so"));

    library = rueda_library_open(FAKE_PMIX_PREFIX "/lib/libpmix.so.2");
    assert_non_null(library);
    assert_true(rueda_library_is_mapped("libpmix.so"));
    assert_false(
        rueda_library_has_symbol("fake_pmix_sessions")); /* not for others */
    rueda_library_close(library);
    assert_false(rueda_library_is_mapped("libpmix.so"));
}

/* The program is in build/.../tests. One that is loaded goes first, and one
 * that is in no folder above is looked for by its name. */
static void a_library_is_found_in_a_folder_above_the_program(void **state)
{
    char path[512];
    void *library = rueda_library_open_beside("fake/lib", "libpmix.so.2", path,
                                              sizeof(path));
    void *again;

    (void)state;
    assert_non_null(library);
    assert_string_equal(path, FAKE_PMIX_PREFIX "/lib/libpmix.so.2");
    again = rueda_library_open_beside("no/folder", "libpmix.so.2", path,
                                      sizeof(path));
    assert_ptr_equal(again, library);
    assert_string_equal(path, "libpmix.so.2");
    rueda_library_close(again);
    rueda_library_close(library);
    assert_null(rueda_library_open_beside("fake/lib", "librueda-nowhere.so.9",
                                          NULL, 0));
    library = rueda_library_open_beside("fake/lib", PRESENT, NULL, 0);
    assert_non_null(library);
    rueda_library_close(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_is_found_and_works),
        cmocka_unit_test(a_function_that_is_not_there_leaves_the_pointer),
        cmocka_unit_test(a_library_that_is_not_there_has_a_reason),
        cmocka_unit_test(only_what_is_loaded_is_found),
        cmocka_unit_test(a_library_can_be_known_by_symbol_or_by_file),
        cmocka_unit_test(a_library_is_found_in_a_folder_above_the_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
