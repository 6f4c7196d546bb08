/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver is found, or the message says what is missing and what helps.
 */
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "support/fake_cuda.h"
#include "unit/unit.h"

#define WHOLE FAKE_CUDA_FOLDER "libcuda.so.1"
#define OLD   FAKE_CUDA_FOLDER "libcuda_old.so.1"

static void refuse(const char *library, const char *fail, rueda_status wanted,
                   const char *what, const char *help)
{
    const struct rueda_device *device = NULL;
    struct rueda_text error = {{0}};

    if (fail != NULL)
        setenv("FAKE_CUDA_FAIL", fail, 1);
    assert_int_equal(rueda_cuda_open(library, 0, &device, &error), wanted);
    unsetenv("FAKE_CUDA_FAIL");
    assert_null(device);
    if (strstr(error.chars, what) == NULL || strstr(error.chars, help) == NULL)
        fail_msg("\"%s\" has no \"%s\" or no \"%s\"", error.chars, what, help);
}

static void a_missing_library_is_named_with_what_helps(void **state)
{
    (void)state;
    refuse("libcuda_that_is_not_there.so.1", NULL, RUEDA_ERR_UNSUPPORTED,
           "libcuda_that_is_not_there.so.1", "RUEDA_CUDA_LIB");
}

static void a_missing_function_is_named_with_what_helps(void **state)
{
    (void)state;
    refuse(OLD, NULL, RUEDA_ERR_UNSUPPORTED, "cuDriverGetVersion",
           "update the NVIDIA driver");
}

static void a_driver_that_does_not_start_says_so(void **state)
{
    (void)state;
    refuse(WHOLE, "cuInit=100", RUEDA_ERR_INVALID, "does not start",
           "nvidia-smi");
}

static void no_gpu_is_an_error_with_what_helps(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_GPUS", "0", 1);
    refuse(WHOLE, NULL, RUEDA_ERR_UNSUPPORTED, "finds no GPU",
           "CUDA_VISIBLE_DEVICES");
    unsetenv("FAKE_CUDA_GPUS");
}

static void kernels_that_do_not_load_name_the_gpu_that_is_needed(void **state)
{
    (void)state;
    refuse(WHOLE, "cuModuleLoadData=222", RUEDA_ERR_UNSUPPORTED, "kernels",
           "capability 7.0");
    refuse(WHOLE, "cuModuleGetFunction=500", RUEDA_ERR_IO, "kernels", "GPU 0");
}

static void a_failed_opening_leaves_nothing(void **state)
{
    struct fake_cuda fake;

    (void)state;
    fake_cuda_open(&fake, WHOLE);
    refuse(WHOLE, "cuDevicePrimaryCtxRetain=2", RUEDA_ERR_NOMEM, "GPU 0",
           "RUEDA_FUSION_BYTES");
    refuse(WHOLE, "cuModuleLoadData=218", RUEDA_ERR_UNSUPPORTED, "kernels",
           "CUDA 11.1");
    assert_int_equal(fake.depth(), 0);
    assert_int_equal(fake.retained(), 0);
    fake_cuda_close(&fake);
}

static void a_gpu_that_is_not_there_is_refused(void **state)
{
    const struct rueda_device *device = NULL;
    struct rueda_text error = {{0}};

    (void)state;
    assert_int_equal(rueda_cuda_open(WHOLE, 7, &device, &error),
                     RUEDA_ERR_INVALID);
    assert_non_null(strstr(error.chars, "GPU 7"));
    assert_non_null(strstr(error.chars, "CUDA_VISIBLE_DEVICES"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_library_is_named_with_what_helps),
        cmocka_unit_test(a_missing_function_is_named_with_what_helps),
        cmocka_unit_test(a_driver_that_does_not_start_says_so),
        cmocka_unit_test(no_gpu_is_an_error_with_what_helps),
        cmocka_unit_test(kernels_that_do_not_load_name_the_gpu_that_is_needed),
        cmocka_unit_test(a_failed_opening_leaves_nothing),
        cmocka_unit_test(a_gpu_that_is_not_there_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
