/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options from a file in YAML, by libyaml:
 *
 *     params:
 *         fusion_threshold_mb: 32
 *     stall_check:
 *         enabled: false
 *
 * The names are the keys of option_table.h. Any thread.
 */
#ifndef RUEDA_LAUNCH_YAML_H
#define RUEDA_LAUNCH_YAML_H

#include <stddef.h>

#include "launch/options.h"

/*
 * Set the options from the text, except those that the command line has given.
 * An unknown name is ignored with a remark. On an error false, and words begins
 * with path and line; some options may then be set.
 */
bool rueda_yaml_parse(const char *path, const char *text, size_t bytes,
                      struct rueda_options *options, struct rueda_text *words);

/* The same for a file; blocks as the file system does. */
bool rueda_yaml_read(const char *path, struct rueda_options *options,
                     struct rueda_text *words);

#endif /* RUEDA_LAUNCH_YAML_H */
