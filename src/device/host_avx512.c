/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels for CPUs with AVX-512 F, BW, DQ and VL. The extensions for bf16
 * and fp16 are left alone: they flush denormals or round each step.
 */
#include <immintrin.h>

#define VECTOR_BYTES 64
#include "device/host_vectors.h"

INLINED vf32 f16_load(const unsigned char *p)
{
    return (vf32)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

INLINED void f16_store(unsigned char *p, vf32 v)
{
    _mm256_storeu_si256((__m256i *)p,
                        _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
}

INLINED vf32 bf16_load_in_order(const unsigned char *p)
{
    const __m256i half = _mm256_loadu_si256((const __m256i *)p);

    return (vf32)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
}

INLINED void bf16_store_in_order(unsigned char *p, vf32 v)
{
    const __m512i wide = (__m512i)(f32_round_to_bf16(v) >> 16);

    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(wide));
}

INLINED void f32_widen(vf32 v, vf64 out[2])
{
    out[0] = (vf64)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v));
    out[1] = (vf64)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1));
}

#define KERNELS      rueda_kernels_avx512
#define KERNELS_NAME "avx512"
#include "device/host_template.h"
