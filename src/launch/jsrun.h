/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --jsrun: the ranks are started by IBM's jsrun, which takes our place. Only
 * inside a job of LSF, and only where it is installed.
 */
#ifndef RUEDA_LAUNCH_JSRUN_H
#define RUEDA_LAUNCH_JSRUN_H

#include "launch/options.h"
#include "launch/strings.h"

/* Is it on the PATH? */
bool rueda_jsrun_is_installed(void);

/* The words of the command. erf: the file that says where ranks go; not used
 * where the user has given options for that. Pure. */
void rueda_jsrun_words(const struct rueda_options *options, const char *erf,
                       struct rueda_strings *out);

/* Replace this process by jsrun. Returns only on failure, with the exit code
 * and a message. */
int rueda_jsrun_run(const struct rueda_options *options,
                    struct rueda_text *words);

#endif /* RUEDA_LAUNCH_JSRUN_H */
