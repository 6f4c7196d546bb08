/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsrun's explicit resource file: a line for each rank that says its host and
 * its CPUs. The cores of a host are split among its ranks; all ranks share
 * graphics cards and memory. Pure; any thread.
 */
#ifndef RUEDA_LAUNCH_ERF_H
#define RUEDA_LAUNCH_ERF_H

#include "launch/placement.h"

/*
 * The text, to be freed. hosts: those of the placement; cores: those of the LSF
 * job, whose slots are cores. NULL with a message: a host of the placement is
 * not in the job, or there is no memory.
 */
char *rueda_erf_text(const struct rueda_placement *placement,
                     const struct rueda_hosts *hosts,
                     const struct rueda_hosts *cores, struct rueda_text *words);

#endif /* RUEDA_LAUNCH_ERF_H */
