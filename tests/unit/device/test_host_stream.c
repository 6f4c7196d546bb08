/* SPDX-License-Identifier: Apache-2.0 */
/* Copies past the caches, against memcpy. */
#include "device/host.h"
#include "unit/unit.h"

#define ALIGN 64  /* of what is stored at once */
#define MOST  300 /* several of these, and what is left at both ends */
#define GUARD 64
#define ROOM  (GUARD + ALIGN + MOST + GUARD)

struct buffers {
    _Alignas(ALIGN) unsigned char src[ROOM];
    _Alignas(ALIGN) unsigned char dst[ROOM];
    _Alignas(ALIGN) unsigned char expected[ROOM];
};

/* A copy between these places leaves what memcpy() leaves, also around it. */
static void check_copy(struct buffers *buffers, size_t to, size_t from,
                       size_t bytes)
{
    const unsigned char *src = buffers->src + GUARD + from;

    memset(buffers->dst, 0xa5, ROOM);
    memset(buffers->expected, 0xa5, ROOM);
    memcpy(buffers->expected + GUARD + to, src, bytes);
    rueda_host_stream(buffers->dst + GUARD + to, src, bytes);
    if (memcmp(buffers->dst, buffers->expected, ROOM) != 0)
        fail_msg("%zu bytes to %zu from %zu", bytes, to, from);
}

static void a_streamed_copy_equals_memcpy_at_every_alignment(void **state)
{
    static struct buffers buffers;

    (void)state;
    for (size_t i = 0; i < ROOM; i++)
        buffers.src[i] = (unsigned char)(i * 7 + i / 256);
    /* Where the source lies does not change the path: every seventh is enough,
     * and 64 of them would take a while under a sanitizer. */
    for (size_t to = 0; to < ALIGN; to++)
        for (size_t from = 0; from < ALIGN; from += 7)
            for (size_t bytes = 0; bytes <= MOST; bytes++)
                check_copy(&buffers, to, from, bytes);
}

static void the_source_is_left_as_it_was(void **state)
{
    static struct buffers buffers;

    (void)state;
    memset(buffers.src, 3, ROOM);
    memset(buffers.expected, 3, ROOM);
    rueda_host_stream(buffers.dst, buffers.src, ROOM);
    assert_memory_equal(buffers.src, buffers.expected, ROOM);
    assert_memory_equal(buffers.dst, buffers.expected, ROOM);
}

static void a_long_copy_is_right(void **state)
{
    const size_t bytes = ((size_t)1 << 20) + 5;
    unsigned char *src = malloc(bytes);
    unsigned char *dst = calloc(1, bytes + 3);

    (void)state;
    assert_non_null(src);
    assert_non_null(dst);
    for (size_t i = 0; i < bytes; i++)
        src[i] = (unsigned char)(i ^ i >> 8 ^ i >> 16);
    rueda_host_stream(dst + 1, src, bytes);
    assert_int_equal(memcmp(dst + 1, src, bytes), 0);
    assert_int_equal(dst[0], 0);
    assert_int_equal(dst[bytes + 1], 0);
    free(src);
    free(dst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_streamed_copy_equals_memcpy_at_every_alignment),
        cmocka_unit_test(the_source_is_left_as_it_was),
        cmocka_unit_test(a_long_copy_is_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
