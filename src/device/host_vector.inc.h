/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of one element, a template: host_template.h includes it for each,
 * with these names defined, which it takes away again.
 *
 * - VEC: the element's name, prefix of its functions in host_vectors.h
 * - VEC_KEPT: the element that loads and stores a register unchanged
 * - VEC_VECTOR: the type of its registers
 * - VEC_NUMBER: the type of a number in a register
 * - VEC_BYTES: the size of a number in memory; halves are 2 bytes there, and
 *   fp32 in the register
 * - VEC_FLOAT: 1 for floats: they have scales, dots and combine
 *
 * All numbers of a block are read before the first is written, which is why
 * dst may be one of the sources.
 */
#define PASTE_NAMES(a, b) a##b
#define PASTE(a, b)       PASTE_NAMES(a, b)
#define FN(suffix)        PASTE(VEC, suffix)
#define KEPT(suffix)      PASTE(VEC_KEPT, suffix)
#define VECS              (sizeof(VEC_VECTOR) / sizeof(VEC_NUMBER))
#define STEP              (VECS * VEC_BYTES) /* bytes of a vector in memory */

INLINED VEC_VECTOR FN(_scaled)(VEC_VECTOR v, bool is_scaled, double factor)
{
#if VEC_FLOAT
    if (is_scaled)
        return FN(_times)(v, (VEC_NUMBER)factor);
#else
    (void)is_scaled;
    (void)factor;
#endif
    return v;
}

/* Fill v with a block of a source, at p. */
INLINED void FN(_take)(VEC_VECTOR v[BLOCK_VECTORS], const unsigned char *p,
                       const struct rueda_pass *pass, enum scales scales)
{
    for (int j = 0; j < BLOCK_VECTORS; j++)
        v[j] = FN(_scaled)(FN(_load)(p + j * STEP), scales == SCALE_ALL,
                           pass->prescale);
}

/* Reduce the block that begins with number i of the pass. */
INLINED void FN(_block)(const struct rueda_pass *pass, rueda_reduction r,
                        enum scales scales, size_t i)
{
    const size_t at = pass->offset + i * VEC_BYTES;
    const size_t acc_at = i * sizeof(VEC_NUMBER);
    VEC_VECTOR v[BLOCK_VECTORS];
    VEC_VECTOR next[BLOCK_VECTORS];
    int k = 0;

    if (pass->acc_in != NULL) {
        const unsigned char *acc = pass->acc_in + acc_at;

        for (int j = 0; j < BLOCK_VECTORS; j++)
            v[j] = KEPT(_load)(acc + j * sizeof(VEC_VECTOR));
    } else {
        FN(_take)(v, pass->src[0] + at, pass, scales);
        k = 1;
    }
    for (; k < pass->n; k++) {
        FN(_take)(next, pass->src[k] + at, pass, scales);
        for (int j = 0; j < BLOCK_VECTORS; j++)
            v[j] = FN(_join)(r, v[j], next[j]);
    }
    if (pass->acc_out != NULL) {
        unsigned char *acc = pass->acc_out + acc_at;

        for (int j = 0; j < BLOCK_VECTORS; j++)
            KEPT(_store)(acc + j * sizeof(VEC_VECTOR), v[j]);
        return;
    }
    for (int j = 0; j < BLOCK_VECTORS; j++) {
        v[j] = FN(_scaled)(v[j], scales != SCALE_NONE, pass->postscale);
        FN(_store)(pass->dst + at + j * STEP, v[j]);
    }
}

INLINED void FN(_reduce_by)(const struct rueda_pass *given, rueda_reduction r,
                            enum scales scales)
{
    const struct rueda_pass pass = *given; /* nothing written can change it */

    for (size_t i = 0; i < pass.count; i += BLOCK_VECTORS * VECS)
        FN(_block)(&pass, r, scales, i);
}

INLINED void FN(_reduce_with)(const struct rueda_pass *pass, enum scales scales)
{
    switch (pass->reduction) {
    case RUEDA_MIN:
        FN(_reduce_by)(pass, RUEDA_MIN, scales);
        break;
    case RUEDA_MAX:
        FN(_reduce_by)(pass, RUEDA_MAX, scales);
        break;
    case RUEDA_PRODUCT:
        FN(_reduce_by)(pass, RUEDA_PRODUCT, scales);
        break;
    default:
        FN(_reduce_by)(pass, RUEDA_SUM, scales);
        break;
    }
}

static void FN(_reduce)(const struct rueda_pass *pass)
{
#if VEC_FLOAT
    if (pass->prescale != 1.0) {
        FN(_reduce_with)(pass, SCALE_ALL);
        return;
    }
    if (pass->postscale != 1.0) {
        FN(_reduce_with)(pass, SCALE_RESULT);
        return;
    }
#endif
    FN(_reduce_with)(pass, SCALE_NONE);
}

#if VEC_FLOAT
/* Add the products of DOT_SUMS numbers to their partial sums. */
INLINED void FN(_dots_step)(const unsigned char *a, const unsigned char *b,
                            vf64 sums[3][DOT_VECTORS])
{
    const int wide = 8 / sizeof(VEC_NUMBER); /* vectors of fp64 */
    const size_t step = VECTOR_BYTES / sizeof(VEC_NUMBER) * VEC_BYTES;

    for (int j = 0; j < DOT_VECTORS; j += wide) {
        vf64 x[2];
        vf64 y[2];

        FN(_spread)(a + j / wide * step, x);
        FN(_spread)(b + j / wide * step, y);
        for (int m = 0; m < wide; m++) {
            sums[0][j + m] += x[m] * y[m];
            sums[1][j + m] += x[m] * x[m];
            sums[2][j + m] += y[m] * y[m];
        }
    }
}

static void FN(_dots)(const unsigned char *a, const unsigned char *b,
                      size_t count, double out_dots[3])
{
    vf64 sums[3][DOT_VECTORS] = {{{0}}};
    unsigned char rest[2][DOT_SUMS * VEC_BYTES] = {{0}};
    size_t i = 0;

    for (; i + DOT_SUMS <= count; i += DOT_SUMS)
        FN(_dots_step)(a + i * VEC_BYTES, b + i * VEC_BYTES, sums);
    if (i < count) {
        memcpy(rest[0], a + i * VEC_BYTES, (count - i) * VEC_BYTES);
        memcpy(rest[1], b + i * VEC_BYTES, (count - i) * VEC_BYTES);
        FN(_dots_step)(rest[0], rest[1], sums);
    }
    for (int s = 0; s < 3; s++)
        out_dots[s] = sum_of_sums(sums[s]);
}

INLINED void FN(_combine_step)(unsigned char *dst, const unsigned char *a,
                               const unsigned char *b, VEC_NUMBER by_a,
                               VEC_NUMBER by_b)
{
    const VEC_VECTOR x = FN(_times)(FN(_load)(a), by_a);
    const VEC_VECTOR y = FN(_times)(FN(_load)(b), by_b);

    FN(_store)(dst, FN(_join)(RUEDA_SUM, x, y));
}

static void FN(_combine)(unsigned char *dst, const unsigned char *a,
                         const unsigned char *b, const double by[2],
                         size_t count)
{
    const VEC_NUMBER by_a = (VEC_NUMBER)by[0];
    const VEC_NUMBER by_b = (VEC_NUMBER)by[1];
    const size_t bytes = count * VEC_BYTES;
    unsigned char rest[2][STEP] = {{0}};
    size_t at = 0;

    for (; at + STEP <= bytes; at += STEP)
        FN(_combine_step)(dst + at, a + at, b + at, by_a, by_b);
    if (at < bytes) {
        memcpy(rest[0], a + at, bytes - at);
        memcpy(rest[1], b + at, bytes - at);
        FN(_combine_step)(rest[0], rest[0], rest[1], by_a, by_b);
        memcpy(dst + at, rest[0], bytes - at);
    }
}
#endif /* VEC_FLOAT */

#undef PASTE_NAMES
#undef PASTE
#undef FN
#undef KEPT
#undef VECS
#undef STEP
#undef VEC
#undef VEC_KEPT
#undef VEC_VECTOR
#undef VEC_NUMBER
#undef VEC_BYTES
#undef VEC_FLOAT
