/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seals for objects that bindings send from rank to rank and unpickle there
 * (auth/object.h). Exported for the modules beside the library, as default.h.
 *
 * Each rank of a set counts its calls under a name, and as all ranks of the set
 * make the same calls under that name, all come to the same sequence. Any
 * thread.
 */
#ifndef RUEDA_API_PICKLE_H
#define RUEDA_API_PICKLE_H

#include <rueda/rueda.h>

#include "auth/object.h"

/* The number of the next call: the id's sender and sequence play no part. */
RUEDA_API uint64_t rueda_pickle_count(rueda_ctx *ctx,
                                      const struct rueda_object_id *id);

/* As in auth/object.h, under the key of the context's job. What is refused is
 * put into words for rueda_last_error(). */
RUEDA_API rueda_status rueda_pickle_make_head(
    const rueda_ctx *ctx, const struct rueda_object_id *id, const void *bytes,
    size_t len, unsigned char out_head[RUEDA_OBJECT_HEAD_BYTES]);
RUEDA_API rueda_status rueda_pickle_read_head(
    const rueda_ctx *ctx, const struct rueda_object_id *id,
    const unsigned char head[RUEDA_OBJECT_HEAD_BYTES], uint64_t *out_len);
RUEDA_API rueda_status
rueda_pickle_accept(const rueda_ctx *ctx, const struct rueda_object_id *id,
                    const unsigned char head[RUEDA_OBJECT_HEAD_BYTES],
                    const void *bytes, size_t len);

#endif /* RUEDA_API_PICKLE_H */
