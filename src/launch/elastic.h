/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of elastic jobs, whose number of ranks changes while they run.
 * They are checked in full. A job of fixed size is an ordinary job; all others
 * are rejected.
 */
#ifndef RUEDA_LAUNCH_ELASTIC_H
#define RUEDA_LAUNCH_ELASTIC_H

#include "launch/options.h"

/*
 * Do these options describe a job with a fixed number of ranks? That is so if
 * neither --min-np nor --host-discovery-script is given, or if the least and
 * the greatest number both equal -np. False with a message otherwise, about a
 * mistake if there is one. Options without an effect are noted. Reads the
 * hostfile, if one is given.
 */
bool rueda_elastic_check(struct rueda_options *options,
                         struct rueda_text *words);

#endif /* RUEDA_LAUNCH_ELASTIC_H */
