/* SPDX-License-Identifier: Apache-2.0 */
/* Handing the job over to another launcher, mpirun or jsrun. */
#ifndef RUEDA_LAUNCH_TAKEOVER_H
#define RUEDA_LAUNCH_TAKEOVER_H

#include "launch/options.h"
#include "launch/strings.h"

/* Our own environment, and what options add to it for the ranks. */
void rueda_takeover_variables(const struct rueda_options *options,
                              struct rueda_strings *out);

/* Replace this process by the program. Returns only on failure, with the exit
 * code and a message; --verbose shows the command. Refuses to hand over a key
 * in the environment. */
int rueda_takeover(const struct rueda_options *options, const char *program,
                   const struct rueda_strings *command,
                   const struct rueda_strings *variables,
                   struct rueda_text *words);

#endif /* RUEDA_LAUNCH_TAKEOVER_H */
