/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of elastic jobs, whose number of ranks changes while they run.
 * They are checked in full; a job that needs none of it is an ordinary one, all
 * others are refused.
 */
#ifndef RUEDA_LAUNCH_ELASTIC_H
#define RUEDA_LAUNCH_ELASTIC_H

#include "launch/options.h"

/*
 * May these options be run, as a job of a fixed number of ranks? So it is where
 * neither --min-np nor --host-discovery-script is given, or where the least and
 * the greatest number are both that of -np. False with words otherwise, about a
 * mistake if there is one. Options without an effect are noted. Reads the
 * hostfile, if one is given.
 */
bool rueda_elastic_check(struct rueda_options *options,
                         struct rueda_text *words);

#endif /* RUEDA_LAUNCH_ELASTIC_H */
