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

const struct rueda_algo *rueda_algo_find(const char *name)
{
    for (int i = 0; rueda_algos[i] != NULL; i++)
        if (strcmp(rueda_algos[i]->name, name) == 0)
            return rueda_algos[i];
    return NULL;
}
