/* SPDX-License-Identifier: Apache-2.0 */
#include "api/pickle.h"

#include <string.h>

#include "api/ctx.h"
#include "base/hash.h"

/* Names that share a counter are counted together, on all ranks alike, so the
 * sequences still agree; a table that never grows needs no lock. */
static atomic_uint_least64_t *counter_of(rueda_ctx *ctx,
                                         const struct rueda_object_id *id)
{
    const uint64_t seed =
        rueda_hash_mix((uint64_t)id->purpose << 32 | (uint32_t)id->set);

    return &ctx->pickle_counts[rueda_hash(id->name, strlen(id->name), seed) %
                               RUEDA_PICKLE_COUNTERS];
}

uint64_t rueda_pickle_count(rueda_ctx *ctx, const struct rueda_object_id *id)
{
    return atomic_fetch_add(counter_of(ctx, id), 1);
}

/* Keep words for what rueda_object_*() has answered. */
static rueda_status answer(const rueda_ctx *ctx,
                           const struct rueda_object_id *id,
                           rueda_status status)
{
    struct rueda_text error = {{0}};

    if (status == RUEDA_OK)
        return RUEDA_OK;
    rueda_text_set(&error,
                   "rank %d refuses the object of rank %d: it is not what that "
                   "rank has sealed for this call (number %llu in process set "
                   "%d). It was changed on the way, or the ranks do not call "
                   "the same functions in the same order. It was not "
                   "unpickled. Name: \"%s\"",
                   rueda_ctx_formation(ctx)->rank, id->sender,
                   (unsigned long long)id->sequence, id->set, id->name);
    return rueda_fault(status, error.chars);
}

rueda_status
rueda_pickle_make_head(const rueda_ctx *ctx, const struct rueda_object_id *id,
                       const void *bytes, size_t len,
                       unsigned char out_head[RUEDA_OBJECT_HEAD_BYTES])
{
    return answer(
        ctx, id,
        rueda_object_seal(&ctx->job->object_key, id, bytes, len, out_head));
}

rueda_status
rueda_pickle_read_head(const rueda_ctx *ctx, const struct rueda_object_id *id,
                       const unsigned char head[RUEDA_OBJECT_HEAD_BYTES],
                       uint64_t *out_len)
{
    return answer(
        ctx, id, rueda_object_length(&ctx->job->object_key, id, head, out_len));
}

rueda_status
rueda_pickle_accept(const rueda_ctx *ctx, const struct rueda_object_id *id,
                    const unsigned char head[RUEDA_OBJECT_HEAD_BYTES],
                    const void *bytes, size_t len)
{
    return answer(
        ctx, id,
        rueda_object_check(&ctx->job->object_key, id, head, bytes, len));
}
