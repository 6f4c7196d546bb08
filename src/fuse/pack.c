/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/pack.h"

#include <string.h>

size_t rueda_pack(char *slab, size_t room, struct rueda_layout *layout,
                  const void *tensor, size_t bytes)
{
    size_t end = layout->end;
    size_t offset = end;

    rueda_layout_add(layout, room, bytes, &offset);
    memset(slab + end, 0, offset - end);
    if (tensor == NULL)
        memset(slab + offset, 0, bytes);
    else if (bytes > 0)
        memcpy(slab + offset, tensor, bytes);
    return offset;
}

size_t rueda_unpack(const char *slab, size_t room, struct rueda_layout *layout,
                    void *tensor, size_t bytes)
{
    size_t offset = layout->end;

    rueda_layout_add(layout, room, bytes, &offset);
    if (tensor != NULL && bytes > 0)
        memcpy(tensor, slab + offset, bytes);
    return offset;
}
