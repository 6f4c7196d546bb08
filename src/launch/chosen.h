/* SPDX-License-Identifier: Apache-2.0 */
/* A choice of ranks as users write it: "0,3,8-11". Pure; any thread. */
#ifndef RUEDA_LAUNCH_CHOSEN_H
#define RUEDA_LAUNCH_CHOSEN_H

#include <stdbool.h>

/* Is it such a list, with at least one rank? */
bool rueda_chosen_is_valid(const char *list);

/* Is the rank in the list? NULL is the list of all. */
bool rueda_chosen_has(const char *list, int rank);

#endif /* RUEDA_LAUNCH_CHOSEN_H */
