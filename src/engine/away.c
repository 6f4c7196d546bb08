/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/away.h"

#include <string.h>

#include "algo/staged.h"
#include "device/accelerator.h"
#include "engine/lane.h"
#include "engine/lanes.h"

void rueda_away_fini(struct rueda_away *away)
{
    const struct rueda_device *device = away->place.device;
    const struct rueda_algo *const *own;

    if (device == NULL)
        return;
    for (own = device->algos; own != NULL && *own != NULL; own++)
        if ((*own)->leave != NULL)
            (*own)->leave(&away->place);
    rueda_staging_free(away->place.staging);
    device->ops->free(device, away->fusion);
    memset(away, 0, sizeof(*away));
}

static rueda_status make(struct rueda_lane *lane,
                         const struct rueda_device *device)
{
    struct rueda_away *away = &lane->away;

    away->place.mesh = lane->mesh;
    away->place.device = device;
    away->place.is_on_hosts = lane->track.place.is_on_hosts;
    away->place.is_common =
        !lane->is_ordered && lane->set->id == RUEDA_SET_GLOBAL;
    away->place.staging =
        rueda_staging_new(&lane->track.place, lane->lanes->select, device);
    if (away->place.staging == NULL)
        return RUEDA_ERR_NOMEM;
    away->place.staging->is_private = !lane->formation->job->config.cuda_ipc;
    if (lane->fusion == NULL)
        return RUEDA_OK;
    away->fusion = device->ops->alloc(device, lane->fusion_bytes);
    return away->fusion != NULL ? RUEDA_OK : RUEDA_ERR_NOMEM;
}

rueda_status rueda_away_enter(struct rueda_lane *lane, struct rueda_text *error)
{
    const struct rueda_accelerator *accelerator = lane->lanes->accelerator;
    const struct rueda_device *device =
        accelerator != NULL ? rueda_accelerator_of(accelerator) : NULL;
    rueda_status status;

    if (device == NULL)
        device = lane->lanes->device;
    if (lane->away.place.device == device)
        return RUEDA_OK;
    rueda_away_fini(&lane->away);
    status = make(lane, device);
    if (status == RUEDA_OK)
        return RUEDA_OK;
    rueda_text_set(error, "no memory to pack tensors of an accelerator: ");
    device->ops->tell(device, error);
    rueda_away_fini(&lane->away);
    return status;
}
