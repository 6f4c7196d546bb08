/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The algorithms by their C names. A new one is declared here and listed in
 * registry.c; the settings, the choice (select.c) and the conformance tests
 * then know it.
 */
#ifndef RUEDA_ALGO_REGISTRY_H
#define RUEDA_ALGO_REGISTRY_H

#include "algo/algo.h"

extern const struct rueda_algo rueda_algo_adasum;
extern const struct rueda_algo rueda_algo_direct;
extern const struct rueda_algo rueda_algo_dissemination;
extern const struct rueda_algo rueda_algo_doubling;
extern const struct rueda_algo rueda_algo_halving_doubling;
extern const struct rueda_algo rueda_algo_hier;
extern const struct rueda_algo rueda_algo_pairwise;
extern const struct rueda_algo rueda_algo_ring;
extern const struct rueda_algo rueda_algo_tree;

#endif /* RUEDA_ALGO_REGISTRY_H */
