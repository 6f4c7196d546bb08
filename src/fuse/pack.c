/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/pack.h"

void rueda_pack_flush(struct rueda_pack *pack)
{
    if (pack->count == 0)
        return;
    if (pack->is_out)
        rueda_device_scatter(pack->device, pack->work, pack->slab, pack->parts,
                             pack->count);
    else
        rueda_device_gather(pack->device, pack->work, pack->slab, pack->parts,
                            pack->count);
    pack->count = 0;
}
