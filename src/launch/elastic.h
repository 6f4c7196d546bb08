/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of elastic jobs, whose ranks change while they run
 * (elastic_run.h).
 */
#ifndef RUEDA_LAUNCH_ELASTIC_H
#define RUEDA_LAUNCH_ELASTIC_H

#include "launch/options.h"

/*
 * Do these options fit together? False with a message about a mistake. Options
 * without an effect are noted. Reads the hostfile, if one is given.
 */
bool rueda_elastic_check(struct rueda_options *options,
                         struct rueda_text *words);

/* Do they describe an elastic job? One whose least and greatest number are both
 * -np, and whose hosts do not change, is an ordinary job. */
bool rueda_elastic_is_wanted(const struct rueda_options *options);

/* Are its hosts only those whose agents connect by themselves? */
bool rueda_elastic_is_joined(const struct rueda_options *options);

#endif /* RUEDA_LAUNCH_ELASTIC_H */
