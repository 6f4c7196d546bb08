/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"
#include "unit/unit.h"

static void numbers_are_digits_and_nothing_else(void **state)
{
    static const char *const none[] = {
        NULL, "",           " 1", "1 ",  "-1", "+1",
        "0x", "2147483648", "1/", "1e3", "1:", "99999999999999999999999"};
    int number = -7;

    (void)state;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(rueda_parse_int(none[i], &number));
    assert_int_equal(number, -7);
    assert_true(rueda_parse_int("0", &number));
    assert_int_equal(number, 0);
    assert_true(rueda_parse_int("2147483647", &number));
    assert_int_equal(number, 2147483647);
    assert_true(rueda_parse_int("000012", &number));
    assert_int_equal(number, 12);
}

static void a_number_goes_up_to_its_limit(void **state)
{
    uint64_t number = 7;

    (void)state;
    assert_false(rueda_parse_whole("66", 65, &number));
    assert_false(rueda_parse_whole("9", 8, &number));
    assert_false(rueda_parse_whole("1", 0, &number));
    assert_false(
        rueda_parse_whole("18446744073709551616", UINT64_MAX, &number));
    assert_int_equal(number, 7);
    assert_true(rueda_parse_whole("65", 65, &number));
    assert_int_equal(number, 65);
    assert_true(rueda_parse_whole("18446744073709551615", UINT64_MAX, &number));
    assert_true(number == UINT64_MAX);
    assert_true(rueda_parse_whole("0", 0, &number));
    assert_int_equal(number, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_digits_and_nothing_else),
        cmocka_unit_test(a_number_goes_up_to_its_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
