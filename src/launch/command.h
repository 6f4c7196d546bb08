/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people write on the command line and what is meant by it: a script or a
 * module of Python without the interpreter, ranks for each host, a number of
 * ranks that is missing or stands behind the command.
 */
#ifndef RUEDA_LAUNCH_COMMAND_H
#define RUEDA_LAUNCH_COMMAND_H

#include "launch/options.h"

/* Put the interpreter before a script or module, and the number of ranks and
 * the hosts in the place of --nproc-per-node. After rueda_options_check().
 * False with a message. */
bool rueda_command_complete(struct rueda_options *options,
                            struct rueda_text *words);

/* The message for a command line without a number of ranks: it ends with the
 * whole line to type. Pure. */
void rueda_command_say_number(const struct rueda_options *options,
                              struct rueda_text *words);

/* The hosts of "a:4,[fd00::1],b" with this many slots each, to be freed; NULL:
 * no memory. *out_count: how many there are. Pure. */
char *rueda_command_hosts(const char *list, int slots, int *out_count);

#endif /* RUEDA_LAUNCH_COMMAND_H */
