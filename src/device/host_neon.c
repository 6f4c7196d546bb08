/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels for aarch64, where every CPU has NEON with conversions of fp16.
 */
#include <arm_neon.h>

#define VECTOR_BYTES 16
#include "device/host_vectors.h"

INLINED vf32 f16_load(const unsigned char *p)
{
    return (vf32)vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

INLINED void f16_store(unsigned char *p, vf32 v)
{
    vst1_u8(p, vreinterpret_u8_f16(vcvt_f16_f32((float32x4_t)v)));
}

INLINED vf32 bf16_load_in_order(const unsigned char *p)
{
    return (vf32)vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16);
}

INLINED void bf16_store_in_order(unsigned char *p, vf32 v)
{
    const uint32x4_t wide = (uint32x4_t)f32_round_to_bf16(v);

    vst1_u8(p, vreinterpret_u8_u16(vshrn_n_u32(wide, 16)));
}

INLINED void f32_widen(vf32 v, vf64 out[2])
{
    out[0] = (vf64)vcvt_f64_f32(vget_low_f32((float32x4_t)v));
    out[1] = (vf64)vcvt_high_f64_f32((float32x4_t)v);
}

#define KERNELS      rueda_kernels_neon
#define KERNELS_NAME "neon"
#include "device/host_template.h"
