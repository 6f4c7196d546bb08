/* SPDX-License-Identifier: Apache-2.0 */
/* What a discovery script prints. */
#ifndef RUEDA_LAUNCH_DISCOVERY_PARSE_H
#define RUEDA_LAUNCH_DISCOVERY_PARSE_H

#include "launch/hosts.h"

/*
 * Lines "host" or "host:slots"; hosts without a number get default_slots, if
 * that is not 0. Empty lines do not count, "#" begins a remark. False with a
 * message: a line is neither, or there is no host. Pure.
 */
bool rueda_discovery_parse(const char *text, int default_slots,
                           struct rueda_hosts *out, struct rueda_text *words);

#endif /* RUEDA_LAUNCH_DISCOVERY_PARSE_H */
