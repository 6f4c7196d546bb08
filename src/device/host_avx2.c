/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels for CPUs with AVX2 and F16C.
 */
#include <immintrin.h>

#define VECTOR_BYTES 32
#include "device/host_vectors.h"

INLINED vf32 f16_load(const unsigned char *p)
{
    return (vf32)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

INLINED void f16_store(unsigned char *p, vf32 v)
{
    _mm_storeu_si128((__m128i *)p,
                     _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
}

INLINED vf32 bf16_load_in_order(const unsigned char *p)
{
    const __m128i half = _mm_loadu_si128((const __m128i *)p);

    return (vf32)_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16);
}

/* Packing works in each 128-bit half for itself: the wanted quarters are the
 * first and the third. */
INLINED void bf16_store_in_order(unsigned char *p, vf32 v)
{
    const __m256i wide = (__m256i)(f32_round_to_bf16(v) >> 16);
    const __m256i packed = _mm256_packus_epi32(wide, wide);

    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(
                                       _mm256_permute4x64_epi64(packed, 0x08)));
}

INLINED void f32_widen(vf32 v, vf64 out[2])
{
    out[0] = (vf64)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v));
    out[1] = (vf64)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
}

#define KERNELS      rueda_kernels_avx2
#define KERNELS_NAME "avx2"
#include "device/host_template.h"
