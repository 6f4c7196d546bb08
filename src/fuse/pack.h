/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors into the slab that they share, and out of it. A slab that others
 * read too is published by being packed. Any thread that owns the slab.
 */
#ifndef RUEDA_FUSE_PACK_H
#define RUEDA_FUSE_PACK_H

#include <rueda/rueda.h>

#include "fuse/layout.h"

/*
 * Put a tensor behind those of layout, for which there is room; NULL: zeros.
 * What lies between two tensors takes part in the arithmetic, so it is zero
 * too. Returns where it begins.
 */
size_t rueda_pack(char *slab, size_t room, struct rueda_layout *layout,
                  const void *tensor, size_t bytes);

/* The same way out again, from an empty layout on; NULL: nobody wants it. */
size_t rueda_unpack(const char *slab, size_t room, struct rueda_layout *layout,
                    void *tensor, size_t bytes);

#endif /* RUEDA_FUSE_PACK_H */
