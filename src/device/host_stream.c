/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies past the caches. A plain store first fetches its line from memory and
 * leaves it in a cache; a streaming store does neither, which pays where the
 * writer does not read the bytes again. Whole lines only: what is before the
 * first of dst and after the last is copied as usual.
 */
#include <string.h>

#include "device/host.h"

#ifdef __SSE2__

#include <emmintrin.h>

void rueda_host_stream_piece(void *dst, const void *src, size_t bytes)
{
    const size_t line = 4 * sizeof(__m128i);
    size_t head = -(uintptr_t)dst % line;
    size_t at;

    if (head > bytes)
        head = bytes;
    memcpy(dst, src, head);
    for (at = head; at + line <= bytes; at += line) {
        const __m128i *from =
            (const __m128i *)(const void *)((const char *)src + at);
        __m128i *to = (__m128i *)(void *)((char *)dst + at);

        _mm_stream_si128(to, _mm_loadu_si128(from));
        _mm_stream_si128(to + 1, _mm_loadu_si128(from + 1));
        _mm_stream_si128(to + 2, _mm_loadu_si128(from + 2));
        _mm_stream_si128(to + 3, _mm_loadu_si128(from + 3));
    }
    memcpy((char *)dst + at, (const char *)src + at, bytes - at);
}

/* Streamed bytes are not held back by a release. */
void rueda_host_stream_end(void)
{
    _mm_sfence();
}

#else

void rueda_host_stream_piece(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

void rueda_host_stream_end(void)
{
}

#endif

void rueda_host_stream(void *dst, const void *src, size_t bytes)
{
    rueda_host_stream_piece(dst, src, bytes);
    rueda_host_stream_end();
}
