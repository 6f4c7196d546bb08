/* SPDX-License-Identifier: Apache-2.0 */
/* What ruedarun prints about itself. */
#ifndef RUEDA_LAUNCH_HELP_H
#define RUEDA_LAUNCH_HELP_H

#include <stdio.h>

#include "launch/options.h"

/* The common options; or those of one group; or "all". False with a message:
 * there is no such group. */
bool rueda_launch_help(const struct rueda_options *options, FILE *out,
                       struct rueda_text *words);

void rueda_launch_version(const struct rueda_options *options, FILE *out);
void rueda_launch_check_build(const struct rueda_options *options, FILE *out);

#endif /* RUEDA_LAUNCH_HELP_H */
