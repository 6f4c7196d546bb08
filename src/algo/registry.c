/* SPDX-License-Identifier: Apache-2.0 */
#include "algo/registry.h"

#include <string.h>

const struct rueda_algo *const rueda_algos[] = {
    &rueda_algo_direct,
    &rueda_algo_hier,
    &rueda_algo_ring,
    &rueda_algo_doubling,
    &rueda_algo_halving_doubling,
    &rueda_algo_tree,
    &rueda_algo_adasum,
    &rueda_algo_pairwise,
    &rueda_algo_dissemination,
    NULL,
};

/* Over only when the device has done what it was given. */
static rueda_status settle(struct rueda_task *task, rueda_status status)
{
    if (status != RUEDA_OK || task->work.status == RUEDA_OK)
        return status;
    task->is_over = true;
    return task->work.status;
}

rueda_status rueda_task_post(struct rueda_task *task)
{
    task->work = (struct rueda_work){.status = RUEDA_OK};
    task->is_over = false;
    task->is_silent = false;
    return settle(task, task->algo->post(task));
}

rueda_status rueda_task_progress(struct rueda_task *task)
{
    if (task->work.status != RUEDA_OK) {
        const rueda_status status =
            rueda_device_poll(task->place->device, &task->work);

        if (status != RUEDA_OK || task->is_over)
            return status;
        task->moves++;
    }
    return settle(task, task->algo->progress(task));
}

const struct rueda_algo *rueda_algo_find(const char *name)
{
    for (int i = 0; rueda_algos[i] != NULL; i++)
        if (strcmp(rueda_algos[i]->name, name) == 0)
            return rueda_algos[i];
    return NULL;
}
