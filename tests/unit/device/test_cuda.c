/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every function of a GPU as a device, over the stand-in for its driver, which
 * runs the kernels' own source: the results are compared with those of the
 * host's kernels, bit by bit.
 */
#include "device/cuda/cuda.h"
#include "device/cuda/kernel_args.h"
#include "os/library.h"
#include "support/fake_cuda.h"
#include "unit/host_numbers.h"

enum {
    COUNT = 1003, /* no multiple of what a thread takes at once */
    SOURCES = 4,
};

static const rueda_reduction reductions[] = {RUEDA_SUM, RUEDA_MIN, RUEDA_MAX,
                                             RUEDA_PRODUCT};
static struct fake_cuda fake;
static const struct rueda_device *gpu;
static const struct rueda_kernels *host;
static char *there[SOURCES]; /* on the GPU */
static char *result_there;

static int open_gpu(void **state)
{
    struct rueda_text error = {{0}};

    (void)state;
    fake_cuda_open(&fake, FAKE_CUDA_FOLDER "libcuda.so.1");
    host = rueda_host_kernels("c");
    if (rueda_cuda_open(FAKE_CUDA_FOLDER "libcuda.so.1", 0, &gpu, &error) !=
        RUEDA_OK)
        fail_msg("%s", error.chars);
    for (int k = 0; k < SOURCES; k++)
        there[k] = gpu->ops->alloc(gpu, ROOM);
    result_there = gpu->ops->alloc(gpu, ROOM);
    return result_there == NULL;
}

static int close_gpu(void **state)
{
    (void)state;
    for (int k = 0; k < SOURCES; k++)
        gpu->ops->free(gpu, there[k]);
    gpu->ops->free(gpu, result_there);
    rueda_cuda_close(gpu);
    /* Nothing is left, and the thread's own context is what it was. */
    assert_int_equal(fake.blocks(), 0);
    assert_int_equal(fake.retained(), 0);
    assert_int_equal(fake.depth(), 0);
    fake_cuda_close(&fake);
    return 0;
}

static void up(void *dst, const void *src, size_t bytes)
{
    assert_true(fake_cuda_copy(gpu, dst, src, bytes));
}

static void down(void *dst, const void *src, size_t bytes)
{
    assert_true(fake_cuda_copy(gpu, dst, src, bytes));
}

static void await(struct rueda_work *work)
{
    assert_int_equal(work->status, RUEDA_IN_PROGRESS);
    assert_int_equal(fake_cuda_await(gpu, work), RUEDA_OK);
}

/* Reduce on both, `shift` bytes behind where memory begins. */
static void compare(const struct rueda_arith *arith, int n, size_t shift)
{
    const size_t bytes = COUNT * rueda_dtype_size(arith->dtype);
    struct rueda_work work = {RUEDA_OK, {NULL}};
    const void *near[SOURCES];
    const void *far[SOURCES];

    for (int k = 0; k < n; k++) {
        near[k] = sources[k];
        far[k] = there[k] + shift;
        up(there[k] + shift, sources[k], bytes);
    }
    memset(wanted, 0xa5, sizeof(wanted));
    memset(result, 0xa5, sizeof(result));
    up(result_there, result, ROOM);
    rueda_host_reduce(host, arith, wanted, near, n, COUNT);
    rueda_device_reduce(gpu, &work, arith, result_there + shift, far, n, COUNT);
    await(&work);
    down(result, result_there + shift, bytes + GUARD);
    assert_same(arith->dtype, result, wanted, COUNT);
}

static void reductions_are_those_of_the_host(void **state)
{
    static const double scales[][2] = {
        {1, 1}, {1, 0.25}, {0.125, 1}, {3, 1.0 / 7}, {-1.5, 2}, {0, 1},
    };

    (void)state;
    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++)
        for (size_t r = 0; r < LENGTH_OF(reductions); r++)
            for (size_t s = 0; s < LENGTH_OF(scales); s++) {
                const struct rueda_arith arith = {dtype, reductions[r],
                                                  scales[s][0], scales[s][1]};

                for (int k = 0; k < SOURCES; k++)
                    fill_with_anything(dtype, sources[k], COUNT);
                compare(&arith, 1 + (int)((r + s) % SOURCES), 0);
                if (s < 2)
                    compare(&arith, SOURCES, 8);
            }
}

static void a_result_may_be_a_source(void **state)
{
    const struct rueda_arith arith = {RUEDA_FLOAT32, RUEDA_SUM, 1, 1};
    const void *src[2] = {there[0], there[1]};
    struct rueda_work work = {RUEDA_OK, {NULL}};
    float numbers[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)i;
    up(there[0], numbers, sizeof(numbers));
    up(there[1], numbers, sizeof(numbers));
    rueda_device_reduce(gpu, &work, &arith, there[0], src, 2, COUNT);
    rueda_device_reduce(gpu, &work, &arith, there[0], src, 2, COUNT);
    await(&work);
    down(numbers, there[0], sizeof(numbers));
    for (int i = 0; i < COUNT; i++)
        assert_float_equal(numbers[i], 3 * (float)i, 0);
}

static void too_many_sources_are_refused_with_words(void **state)
{
    const struct rueda_arith arith = {RUEDA_FLOAT32, RUEDA_SUM, 1, 1};
    const void *src[RUEDA_CUDA_SOURCES + 1] = {NULL};
    struct rueda_work work = {RUEDA_OK, {NULL}};
    struct rueda_text words = {{0}};

    (void)state;
    assert_int_equal(rueda_device_reduce(gpu, &work, &arith, result_there, src,
                                         RUEDA_CUDA_SOURCES + 1, COUNT),
                     RUEDA_ERR_LIMIT);
    gpu->ops->tell(gpu, &words);
    assert_non_null(strstr(words.chars, "at most 128"));
}

static void scales_are_those_of_the_host(void **state)
{
    static const double factors[] = {1, 0.5, 1.0 / 49, -2.5, 1e300, 0};

    (void)state;
    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++)
        for (size_t f = 0; f < LENGTH_OF(factors); f++) {
            const size_t bytes = COUNT * rueda_dtype_size(dtype);
            struct rueda_work work = {RUEDA_OK, {NULL}};

            fill_with_anything(dtype, sources[0], COUNT);
            memset(wanted, 0xa5, sizeof(wanted));
            memset(result, 0xa5, sizeof(result));
            up(result_there, result, ROOM);
            up(there[0], sources[0], bytes);
            rueda_host_scale(host, dtype, wanted, sources[0], COUNT,
                             factors[f]);
            rueda_device_scale(gpu, &work, dtype, result_there, there[0], COUNT,
                               factors[f]);
            await(&work);
            down(result, result_there, bytes + GUARD);
            assert_same(dtype, result, wanted, COUNT);
        }
}

static void conversions_are_those_of_the_host(void **state)
{
    (void)state;
    for (size_t f = 0; f < LENGTH_OF(floats); f++)
        for (size_t t = 0; t < LENGTH_OF(floats); t++) {
            const rueda_dtype from = floats[f];
            const rueda_dtype to = floats[t];
            struct rueda_work work = {RUEDA_OK, {NULL}};

            if (rueda_dtype_size(from) == rueda_dtype_size(to))
                continue;
            fill_with_anything(from, sources[0], MAX_COUNT);
            memset(wanted, 0xa5, sizeof(wanted));
            memset(result, 0xa5, sizeof(result));
            up(result_there, result, ROOM);
            up(there[0], sources[0], MAX_COUNT * rueda_dtype_size(from));
            rueda_host_convert(host, to, wanted, from, sources[0], MAX_COUNT);
            rueda_device_convert(gpu, &work, to, result_there, from, there[0],
                                 MAX_COUNT);
            await(&work);
            down(result, result_there, ROOM);
            assert_same(to, result, wanted, MAX_COUNT);
        }
}

/* All 65,536 bit patterns of a half, to fp32 and back. */
static void every_half_survives(void **state)
{
    static const rueda_dtype halves[] = {RUEDA_FLOAT16, RUEDA_BFLOAT16};
    static uint16_t all[1 << 16];
    static float wide[1 << 16];
    static float wide_wanted[1 << 16];
    const size_t count = LENGTH_OF(all);
    char *from = gpu->ops->alloc(gpu, sizeof(all));
    char *to = gpu->ops->alloc(gpu, sizeof(wide));

    (void)state;
    for (size_t i = 0; i < count; i++)
        all[i] = (uint16_t)i;
    for (size_t h = 0; h < LENGTH_OF(halves); h++) {
        struct rueda_work work = {RUEDA_OK, {NULL}};

        up(from, all, sizeof(all));
        rueda_device_convert(gpu, &work, RUEDA_FLOAT32, to, halves[h], from,
                             count);
        rueda_device_convert(gpu, &work, halves[h], from, RUEDA_FLOAT32, to,
                             count);
        await(&work);
        down(wide, to, sizeof(wide));
        rueda_host_convert(host, RUEDA_FLOAT32, wide_wanted, halves[h], all,
                           count);
        assert_memory_equal(wide, wide_wanted, sizeof(wide));
    }
    gpu->ops->free(gpu, from);
    gpu->ops->free(gpu, to);
}

static void what_is_neutral_is_that_of_the_host(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < RUEDA_DTYPE_COUNT; dtype++)
        for (size_t r = 0; r < LENGTH_OF(reductions); r++) {
            const struct rueda_arith arith = {dtype, reductions[r], 1, 1};
            struct rueda_work work = {RUEDA_OK, {NULL}};

            memset(wanted, 0xa5, sizeof(wanted));
            memset(result, 0xa5, sizeof(result));
            up(result_there, result, ROOM);
            rueda_host_neutral(&arith, wanted, COUNT);
            rueda_device_neutral(gpu, &work, &arith, result_there, COUNT);
            await(&work);
            down(result, result_there, ROOM);
            assert_same(dtype, result, wanted, COUNT);
        }
}

static void dot_products_are_right_and_repeatable(void **state)
{
    static const size_t counts[] = {0, 1, 17, MAX_COUNT};

    (void)state;
    for (size_t f = 0; f < LENGTH_OF(floats); f++)
        for (size_t c = 0; c < LENGTH_OF(counts); c++) {
            struct rueda_work work = {RUEDA_OK, {NULL}};
            double near[3];
            double far[2][3];

            for (int k = 0; k < 2; k++) {
                for (size_t i = 0; i < counts[c]; i++)
                    numbers_store(floats[f], sources[k], i,
                                  small_number(floats[f], k, i));
                up(there[k], sources[k], ROOM);
            }
            rueda_host_dots(host, floats[f], sources[0], sources[1], counts[c],
                            near);
            for (int i = 0; i < 2; i++)
                rueda_device_dots(gpu, &work, floats[f], there[0], there[1],
                                  counts[c], far[i]);
            await(&work);
            /* Whole numbers: every order of additions gives the same. */
            assert_memory_equal(far[0], near, sizeof(near));
            assert_memory_equal(far[1], near, sizeof(near));
        }
}

static void combinations_are_those_of_the_host(void **state)
{
    const double by[2] = {0.7, -1.3};

    (void)state;
    for (size_t f = 0; f < LENGTH_OF(floats); f++) {
        const void *src[2] = {there[0], there[1]};
        struct rueda_work work = {RUEDA_OK, {NULL}};

        for (int k = 0; k < 2; k++) {
            fill_with_anything(floats[f], sources[k], COUNT);
            up(there[k], sources[k], ROOM);
        }
        memset(wanted, 0xa5, sizeof(wanted));
        memset(result, 0xa5, sizeof(result));
        up(result_there, result, ROOM);
        rueda_host_combine(host, floats[f], wanted, sources[0], sources[1], by,
                           COUNT);
        rueda_device_combine(gpu, &work, floats[f], result_there, src, by,
                             COUNT);
        await(&work);
        down(result, result_there, ROOM);
        assert_same(floats[f], result, wanted, COUNT);
    }
}

/* ---- Packing ------------------------------------------------------------- */

enum {
    PARTS = 40
};

/* Of all sizes; one of zeros, one without a destination. */
static size_t make_parts(struct rueda_part *parts, char *in, char *out)
{
    size_t at = 0;
    size_t place = 0;

    for (int i = 0; i < PARTS; i++) {
        const size_t bytes = i == 7 ? 100000 : (size_t)i * 37 % 1000;

        parts[i] = (struct rueda_part){.send = i == 5 ? NULL : in + place,
                                       .recv = i == 9 ? NULL : out + place,
                                       .at = at,
                                       .bytes = bytes};
        at = (at + bytes + 63) / 64 * 64;
        place += bytes + (size_t)i % 5;
    }
    return at;
}

static void packing_is_that_of_the_host(void **state)
{
    enum {
        BYTES = 160000
    };
    const struct rueda_device *near = rueda_device_default("c");
    char *const in = gpu->ops->alloc(gpu, BYTES);
    char *const out = gpu->ops->alloc(gpu, BYTES);
    char *const slab = gpu->ops->alloc(gpu, BYTES);
    static char memory[4][BYTES];
    struct rueda_work none = {RUEDA_OK, {NULL}};
    struct rueda_part far_parts[PARTS];
    struct rueda_part near_parts[PARTS];
    const size_t end = make_parts(far_parts, in, out);

    (void)state;
    make_parts(near_parts, memory[0], memory[2]);
    assert_true(end <= BYTES);
    for (int round = 0; round < 3; round++) {
        struct rueda_work work = {RUEDA_OK, {NULL}};
        const int before = fake.launches();

        for (size_t i = 0; i < BYTES; i++)
            memory[0][i] = (char)(i * 7 + (size_t)round);
        memset(memory[1], 0x11, BYTES);
        memset(memory[2], 0x22, BYTES);
        up(in, memory[0], BYTES);
        up(slab, memory[1], BYTES);
        up(out, memory[2], BYTES);
        rueda_device_gather(near, &none, memory[1], near_parts, PARTS);
        rueda_device_scatter(near, &none, memory[1], near_parts, PARTS);
        rueda_device_gather(gpu, &work, slab, far_parts, PARTS);
        rueda_device_scatter(gpu, &work, slab, far_parts, PARTS);
        await(&work);
        assert_int_equal(fake.launches() - before, 2);
        down(memory[3], slab, BYTES);
        assert_memory_equal(memory[3], memory[1], end);
        down(memory[3], out, BYTES);
        assert_memory_equal(memory[3], memory[2], BYTES);
    }
    gpu->ops->free(gpu, in);
    gpu->ops->free(gpu, out);
    gpu->ops->free(gpu, slab);
}

/* More lists than are kept, in several rows at the same time. */
static void lists_of_parts_may_change_at_any_time(void **state)
{
    enum {
        LISTS = 150,
        ROWS = 3
    };
    struct rueda_work rows[ROWS] = {{RUEDA_OK, {NULL}}};
    struct rueda_part part = {.bytes = 64};
    char numbers[64];

    (void)state;
    for (int list = 0; list < LISTS; list++) {
        struct rueda_work *row = &rows[list % ROWS];

        memset(numbers, list, sizeof(numbers));
        fake_cuda_await(gpu, row);
        up(there[0] + 64 * (size_t)(list % 100), numbers, sizeof(numbers));
        part.send = there[0] + 64 * (size_t)(list % 100);
        rueda_device_gather(gpu, row, result_there + 64 * (size_t)(list % 100),
                            &part, 1);
    }
    for (int row = 0; row < ROWS; row++)
        assert_int_equal(fake_cuda_await(gpu, &rows[row]), RUEDA_OK);
    for (int list = LISTS - 100; list < LISTS; list++) {
        down(numbers, result_there + 64 * (size_t)(list % 100),
             sizeof(numbers));
        assert_int_equal((unsigned char)numbers[63], list);
    }
}

/* ---- Streams, events, failures ---------------------------------------- */

static void a_row_waits_for_a_stream_of_the_application(void **state)
{
    struct rueda_event event = {{NULL}};
    struct rueda_work work = {RUEDA_OK, {NULL}};
    int (*copy)(void *, const void *, size_t, void *) = NULL;
    void *context;
    void *stream;

    (void)state;
    assert_int_equal(
        rueda_library_function(fake.library, "cuMemcpyAsync", &copy), RUEDA_OK);
    assert_int_equal(fake.retain(&context, 0), 0);
    assert_int_equal(fake.push(context), 0);
    assert_int_equal(fake.stream_create(&stream, 0), 0);
    /* Of an idle stream there is nothing to wait for. */
    assert_int_equal(gpu->ops->record(gpu, stream, &event), RUEDA_OK);
    assert_null(event.state[0]);
    assert_int_equal(gpu->ops->is_done(gpu, &event), RUEDA_OK);
    setenv("FAKE_CUDA_DELAY_US", "20000", 1);
    assert_int_equal(copy(there[0], there[1], 8, stream), 0);
    assert_int_equal(gpu->ops->record(gpu, stream, &event), RUEDA_OK);
    assert_int_equal(gpu->ops->is_done(gpu, &event), RUEDA_IN_PROGRESS);
    rueda_device_after(gpu, &work, &event);
    assert_int_equal(rueda_device_poll(gpu, &work), RUEDA_IN_PROGRESS);
    await(&work);
    unsetenv("FAKE_CUDA_DELAY_US");
    assert_int_equal(gpu->ops->is_done(gpu, &event), RUEDA_OK);
    assert_int_equal(gpu->ops->wait(gpu, stream, &event), RUEDA_OK);
    gpu->ops->forget(gpu, &event);
    assert_null(event.state[0]);
    /* The application's context is still current, and it alone. */
    assert_int_equal(fake.depth(), 1);
    assert_int_equal(fake.stream_destroy(stream), 0);
    assert_int_equal(fake.pop(&context), 0);
    assert_int_equal(fake.release(0), 0);
}

static void an_event_lasts_until_its_last_holder_lets_go(void **state)
{
    struct rueda_event first = {{NULL}};
    struct rueda_event second = {{NULL}};
    struct rueda_event other = {{NULL}};
    int (*copy)(void *, const void *, size_t, void *) = NULL;
    int (*synchronize)(void *) = NULL;
    void *context;
    void *at;

    (void)state;
    /* The stream is busy, else there would be no event. */
    assert_int_equal(
        rueda_library_function(fake.library, "cuMemcpyAsync", &copy), RUEDA_OK);
    assert_int_equal(rueda_library_function(fake.library, "cuStreamSynchronize",
                                            &synchronize),
                     RUEDA_OK);
    assert_int_equal(fake.retain(&context, 0), 0);
    assert_int_equal(fake.push(context), 0);
    setenv("FAKE_CUDA_DELAY_US", "100000", 1);
    assert_int_equal(copy(there[0], there[1], 8, NULL), 0);
    assert_int_equal(gpu->ops->record(gpu, NULL, &first), RUEDA_OK);
    at = first.state[0];
    gpu->ops->hold(gpu, &first, &second);
    assert_ptr_equal(second.state[0], at);
    gpu->ops->forget(gpu, &first);
    assert_int_equal(gpu->ops->record(gpu, NULL, &other), RUEDA_OK);
    assert_ptr_not_equal(other.state[0], at);
    gpu->ops->forget(gpu, &second);
    gpu->ops->forget(gpu, &other);
    /* An event without holders is used again. */
    assert_int_equal(gpu->ops->record(gpu, NULL, &first), RUEDA_OK);
    assert_int_equal(gpu->ops->record(gpu, NULL, &second), RUEDA_OK);
    assert_true(first.state[0] == at || second.state[0] == at);
    gpu->ops->forget(gpu, &first);
    gpu->ops->forget(gpu, &second);
    /* The stand-in does not keep events that are destroyed too early. */
    assert_int_equal(synchronize(NULL), 0);
    unsetenv("FAKE_CUDA_DELAY_US");
    assert_int_equal(fake.pop(&context), 0);
    assert_int_equal(fake.release(0), 0);
}

static void a_stream_that_is_captured_is_refused(void **state)
{
    struct rueda_event event = {{NULL}};
    struct rueda_text words = {{0}};
    void *context;
    void *stream;

    (void)state;
    assert_int_equal(fake.retain(&context, 0), 0);
    assert_int_equal(fake.push(context), 0);
    assert_int_equal(fake.stream_create(&stream, 0), 0);
    fake.capture(stream, 1);
    assert_int_equal(gpu->ops->record(gpu, stream, &event),
                     RUEDA_ERR_UNSUPPORTED);
    gpu->ops->tell(gpu, &words);
    assert_non_null(strstr(words.chars, "outside the capture"));
    assert_null(event.state[0]);
    assert_int_equal(fake.stream_destroy(stream), 0);
    assert_int_equal(fake.pop(&context), 0);
    assert_int_equal(fake.release(0), 0);
}

static void memory_is_recognised(void **state)
{
    const struct rueda_device *other;
    struct rueda_text words = {{0}};
    char here = 0;
    void *pinned = gpu->ops->alloc_host(gpu, 100);
    void *far;

    (void)state;
    assert_int_equal(
        rueda_cuda_open(FAKE_CUDA_FOLDER "libcuda.so.1", 1, &other, &words),
        RUEDA_OK);
    far = other->ops->alloc(other, 100);
    assert_int_equal(gpu->ops->owns(gpu, there[0] + 5), RUEDA_OK);
    assert_int_equal(gpu->ops->owns(gpu, NULL), RUEDA_OK);
    assert_int_equal(gpu->ops->owns(gpu, &here), RUEDA_ERR_INVALID);
    assert_int_equal(gpu->ops->owns(gpu, pinned), RUEDA_ERR_INVALID);
    gpu->ops->tell(gpu, &words);
    assert_non_null(strstr(words.chars, "memory of the host"));
    assert_int_equal(gpu->ops->owns(gpu, far), RUEDA_ERR_INVALID);
    words.chars[0] = '\0';
    gpu->ops->tell(gpu, &words);
    assert_non_null(strstr(words.chars, "GPU 1 and not to GPU 0"));
    gpu->ops->free_host(gpu, pinned);
    other->ops->free(other, far);
    rueda_cuda_close(other);
}

static void expect_failure(const char *told, rueda_status status,
                           const char *what)
{
    const struct rueda_arith arith = {RUEDA_FLOAT32, RUEDA_SUM, 1, 1};
    const void *src[2] = {there[0], there[1]};
    struct rueda_work work = {RUEDA_OK, {NULL}};
    struct rueda_text words = {{0}};

    setenv("FAKE_CUDA_FAIL", told, 1);
    rueda_device_reduce(gpu, &work, &arith, result_there, src, 2, COUNT);
    assert_int_equal(fake_cuda_await(gpu, &work), status);
    unsetenv("FAKE_CUDA_FAIL");
    gpu->ops->tell(gpu, &words);
    assert_non_null(strstr(words.chars, "GPU 0"));
    assert_non_null(strstr(words.chars, what));
    assert_int_equal(fake.depth(), 0);
}

static void no_memory_is_null_with_words(void **state)
{
    struct rueda_text words = {{0}};

    (void)state;
    assert_null(gpu->ops->alloc(gpu, (size_t)1 << 40));
    gpu->ops->tell(gpu, &words);
    assert_non_null(strstr(words.chars, "out of memory"));
    assert_non_null(strstr(words.chars, "RUEDA_FUSION_BYTES"));
    assert_int_equal(fake.depth(), 0);
}

static void a_launch_that_fails_is_told_in_words(void **state)
{
    (void)state;
    expect_failure("cuLaunchKernel=1", RUEDA_ERR_IO, "cuLaunchKernel");
    expect_failure("cuCtxPushCurrent_v2=4", RUEDA_ERR_IO, "cuLaunchKernel");
}

/* Last: the stream stays broken. */
static void a_kernel_that_fails_is_told_in_words(void **state)
{
    (void)state;
    expect_failure("kernel=700", RUEDA_ERR_IO, "illegal memory access");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_are_those_of_the_host),
        cmocka_unit_test(a_result_may_be_a_source),
        cmocka_unit_test(too_many_sources_are_refused_with_words),
        cmocka_unit_test(scales_are_those_of_the_host),
        cmocka_unit_test(conversions_are_those_of_the_host),
        cmocka_unit_test(every_half_survives),
        cmocka_unit_test(what_is_neutral_is_that_of_the_host),
        cmocka_unit_test(dot_products_are_right_and_repeatable),
        cmocka_unit_test(combinations_are_those_of_the_host),
        cmocka_unit_test(packing_is_that_of_the_host),
        cmocka_unit_test(lists_of_parts_may_change_at_any_time),
        cmocka_unit_test(a_row_waits_for_a_stream_of_the_application),
        cmocka_unit_test(an_event_lasts_until_its_last_holder_lets_go),
        cmocka_unit_test(a_stream_that_is_captured_is_refused),
        cmocka_unit_test(memory_is_recognised),
        cmocka_unit_test(no_memory_is_null_with_words),
        cmocka_unit_test(a_launch_that_fails_is_told_in_words),
        cmocka_unit_test(a_kernel_that_fails_is_told_in_words),
    };

    return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}
