/* SPDX-License-Identifier: Apache-2.0 */
/* Names and sizes: what people and bindings read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <rueda/rueda.h>

#include "op/request.h"

static void the_version_is_the_one_of_the_header(void **state)
{
    char wanted[64];

    (void)state;
    snprintf(wanted, sizeof(wanted), "%d.%d.%d", RUEDA_VERSION_MAJOR,
             RUEDA_VERSION_MINOR, RUEDA_VERSION_PATCH);

    assert_string_equal(rueda_version(), wanted);
    assert_int_equal(rueda_abi(), RUEDA_ABI);
}

static void every_status_has_its_own_words(void **state)
{
    static const rueda_status all[] = {
#define X(name, value, text) RUEDA_##name,
        RUEDA_STATUS_MAP(X)
#undef X
    };
    const size_t count = sizeof(all) / sizeof(all[0]);

    (void)state;
    assert_string_equal(rueda_status_str(RUEDA_OK), "success");
    assert_string_equal(rueda_status_str(RUEDA_ERR_PEER_LOST),
                        "a peer left the job");
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(rueda_status_str(all[i]),
                                    rueda_status_str(all[k]));
}

static void only_errors_are_negative(void **state)
{
    (void)state;
    assert_int_equal(RUEDA_OK, 0);
    assert_true(RUEDA_IN_PROGRESS > 0);
#define X(name, value, text)                                                   \
    if (strncmp(#name, "ERR_", 4) == 0)                                        \
        assert_true(RUEDA_##name < 0);
    RUEDA_STATUS_MAP(X)
#undef X
}

static void every_dtype_has_the_size_of_its_c_type(void **state)
{
    static const struct {
        rueda_dtype dtype;
        size_t bytes;
        const char *name;
    } all[RUEDA_DTYPE_COUNT] = {
        {RUEDA_UINT8, sizeof(uint8_t), "uint8"},
        {RUEDA_INT8, sizeof(int8_t), "int8"},
        {RUEDA_UINT16, sizeof(uint16_t), "uint16"},
        {RUEDA_INT16, sizeof(int16_t), "int16"},
        {RUEDA_INT32, sizeof(int32_t), "int32"},
        {RUEDA_INT64, sizeof(int64_t), "int64"},
        {RUEDA_FLOAT16, 2, "float16"},
        {RUEDA_FLOAT32, sizeof(float), "float32"},
        {RUEDA_FLOAT64, sizeof(double), "float64"},
        {RUEDA_BOOL, sizeof(bool), "bool"},
        {RUEDA_BFLOAT16, 2, "bfloat16"},
    };

    (void)state;
    for (size_t i = 0; i < RUEDA_DTYPE_COUNT; i++) {
        assert_int_equal(all[i].dtype, i);
        assert_int_equal(rueda_dtype_size(all[i].dtype), all[i].bytes);
        assert_string_equal(rueda_dtype_str(all[i].dtype), all[i].name);
    }
}

static void every_reduction_has_a_name(void **state)
{
    static const char *const names[RUEDA_REDUCTION_COUNT] = {
        "sum", "average", "min", "max", "product", "adasum"};

    (void)state;
    for (int i = 0; i < RUEDA_REDUCTION_COUNT; i++)
        assert_string_equal(rueda_reduction_str((rueda_reduction)i), names[i]);
}

static void every_kind_has_a_name(void **state)
{
    static const char *const names[] = {"allreduce",
                                        "allgather",
                                        "broadcast",
                                        "alltoall",
                                        "reducescatter",
                                        "barrier",
                                        "join",
                                        "send",
                                        "recv",
                                        "process set add",
                                        "process set drop",
                                        "process set close"};

    (void)state;
    for (int i = 0; i <= RUEDA_SET_CLOSE; i++)
        assert_string_equal(rueda_kind_str((rueda_kind)i), names[i]);
}

static void every_compression_has_a_name(void **state)
{
    static const char *const names[RUEDA_COMPRESSION_COUNT] = {"none", "fp16",
                                                               "bf16"};

    (void)state;
    for (int i = 0; i < RUEDA_COMPRESSION_COUNT; i++)
        assert_string_equal(rueda_compression_str((rueda_compression)i),
                            names[i]);
}

static void what_is_unknown_is_called_so(void **state)
{
    (void)state;
    assert_string_equal(rueda_status_str((rueda_status)-99), "unknown status");
    assert_string_equal(rueda_dtype_str((rueda_dtype)RUEDA_DTYPE_COUNT),
                        "unknown dtype");
    assert_int_equal(rueda_dtype_size((rueda_dtype)RUEDA_DTYPE_COUNT), 0);
    assert_string_equal(
        rueda_reduction_str((rueda_reduction)RUEDA_REDUCTION_COUNT),
        "unknown reduction");
    assert_string_equal(rueda_kind_str((rueda_kind)(RUEDA_SET_CLOSE + 1)),
                        "unknown kind");
    assert_string_equal(
        rueda_compression_str((rueda_compression)RUEDA_COMPRESSION_COUNT),
        "unknown compression");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_the_one_of_the_header),
        cmocka_unit_test(every_status_has_its_own_words),
        cmocka_unit_test(only_errors_are_negative),
        cmocka_unit_test(every_dtype_has_the_size_of_its_c_type),
        cmocka_unit_test(every_reduction_has_a_name),
        cmocka_unit_test(every_kind_has_a_name),
        cmocka_unit_test(every_compression_has_a_name),
        cmocka_unit_test(what_is_unknown_is_called_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
