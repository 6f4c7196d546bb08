/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of GPUs, by the stand-in for NVML (support/fake/nvml.c). */
#include <string.h>

#include "os/library.h"
#include "support/test_rank.h"

#define NVML FAKE_CUDA_FOLDER "libnvml.so.1"
#define CUDA FAKE_CUDA_FOLDER "libcuda.so.1"

static int read_both(struct test_rank *me)
{
    struct rueda_gpu_metrics gpu = RUEDA_GPU_METRICS_INIT;
    int count = 0;

    if (rank_expect(me, rueda_gpu_count(me->ctx, &count), RUEDA_OK, "count") !=
            0 ||
        rank_expect(me, rueda_gpu_read(me->ctx, 0, &gpu), RUEDA_OK, "read") !=
            0)
        return 1;
    if (count != 2 || strcmp(gpu.name, "stand-in 0") != 0 ||
        strcmp(gpu.uuid, "GPU-0") != 0 || gpu.busy_percent != 87 ||
        gpu.memory_busy_percent != 31 ||
        gpu.memory_used_bytes != (int64_t)20 << 30 ||
        gpu.memory_total_bytes != (int64_t)80 << 30 ||
        gpu.power_watts != 123.5 || gpu.power_limit_watts != 700 ||
        gpu.celsius != 39)
        return rank_says(me, "%d GPUs, \"%s\", %d %%, %g W", count, gpu.name,
                         gpu.busy_percent, gpu.power_watts);
    if (rueda_gpu_read(me->ctx, 1, &gpu) != RUEDA_OK ||
        gpu.busy_percent != -1 || gpu.power_watts != -1 || gpu.celsius != 39)
        return rank_says(me, "GPU 1 tells what it does not know");
    return 0;
}

static void the_metrics_of_each_gpu_are_those_of_its_driver(void **state)
{
    rank_run(*state, 2, read_both, NULL);
}

static int ask_wrongly(struct test_rank *me)
{
    struct rueda_gpu_metrics gpu = RUEDA_GPU_METRICS_INIT;

    if (rank_expect(me, rueda_gpu_read(me->ctx, 2, &gpu), RUEDA_ERR_INVALID,
                    "GPU 2") != 0 ||
        rank_expect(me, rueda_gpu_read(me->ctx, -1, &gpu), RUEDA_ERR_INVALID,
                    "GPU -1") != 0)
        return 1;
    if (strstr(rueda_last_error(), "this host has 2") == NULL)
        return rank_says(me, "\"%s\"", rueda_last_error());
    gpu.struct_size = 8;
    return rank_expect(me, rueda_gpu_read(me->ctx, 0, &gpu), RUEDA_ERR_INVALID,
                       "a struct that is too small");
}

static void a_gpu_that_is_not_there_is_refused(void **state)
{
    rank_run(*state, 1, ask_wrongly, NULL);
}

static int ask_in_vain(struct test_rank *me)
{
    int count = -7;

    if (rank_expect(me, rueda_gpu_count(me->ctx, &count), RUEDA_ERR_UNSUPPORTED,
                    "count") != 0)
        return 1;
    if (strstr(rueda_last_error(), me->arg) == NULL || count != -7)
        return rank_says(me, "\"%s\"", rueda_last_error());
    return 0;
}

static void without_a_library_the_answer_says_what_helps(void **state)
{
    setenv("RUEDA_NVML_LIB", "/there/is/no/libnvidia-ml.so.1", 1);
    rank_run(*state, 1, ask_in_vain, "set RUEDA_NVML_LIB");
    setenv("RUEDA_NVML_LIB", CUDA, 1);
    rank_run(*state, 1, ask_in_vain, "nvmlInit_v2");
    setenv("RUEDA_NVML_LIB", NVML, 1);
    setenv("FAKE_NVML_INIT", "9", 1);
    rank_run(*state, 1, ask_in_vain, "Driver Not Loaded");
    unsetenv("FAKE_NVML_INIT");
}

static int shut_down(struct test_rank *me)
{
    void *library = rueda_library_open(NVML);
    int (*opened)(void) = NULL;
    int before;

    if (read_both(me) != 0 ||
        rueda_library_function(library, "fake_nvml_opened", &opened) !=
            RUEDA_OK)
        return 1;
    before = opened();
    rueda_shutdown(me->ctx);
    me->ctx = NULL;
    return before == 1 && opened() == 0
               ? 0
               : rank_says(me, "%d, then %d times open", before, opened());
}

static void the_library_is_closed_with_the_context(void **state)
{
    rank_run(*state, 1, shut_down, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_TEST(the_metrics_of_each_gpu_are_those_of_its_driver, processes),
        RANK_TEST(the_metrics_of_each_gpu_are_those_of_its_driver, threads),
        RANK_TEST(a_gpu_that_is_not_there_is_refused, processes),
        RANK_TEST(without_a_library_the_answer_says_what_helps, processes),
        RANK_TEST(the_library_is_closed_with_the_context, processes),
    };

    setenv("RUEDA_NVML_LIB", NVML, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
