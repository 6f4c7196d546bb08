/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of ranks: the variables of ours that go to another host,
 * those of all ranks of a job, and those of each rank. Pure; any thread.
 */
#ifndef RUEDA_LAUNCH_VARIABLES_H
#define RUEDA_LAUNCH_VARIABLES_H

#include "launch/options.h"
#include "launch/placement.h"
#include "launch/strings.h"

/* Variables of `environment` that ranks on other hosts are to have as well:
 * all but those that are about this host, this session or a key. */
void rueda_variables_forward(char *const *environment,
                             struct rueda_strings *out);

/* The variables of the options, and those that are the same for all ranks. */
void rueda_variables_common(const struct rueda_options *options,
                            struct rueda_strings *out);

/* Does a value of RUEDA_NETWORK name some and not all? NULL: it has none. */
bool rueda_variables_is_network(const char *network);

/*
 * HOROVOD_GLOO_IFACE and NCCL_SOCKET_IFNAME of the ranks of a host, which has
 * these interfaces, "eth0,eth1", for the job; what users have set stays. Our
 * library takes the first for a limit unless RUEDA_NETWORK is set: between
 * hosts it is.
 */
void rueda_variables_interfaces(const char *names, bool is_between_hosts,
                                struct rueda_strings *out);

/* The numbers and the host of a rank: RUEDA_* and HOROVOD_*. */
void rueda_variables_rank(const struct rueda_placed_rank *placed, int size,
                          const char *host, struct rueda_strings *out);

/* Variables that torchrun sets for its own ranks. A launcher that is started by
 * a rank of torchrun unsets them, or torch would look for torchrun's store. */
extern const char *const rueda_variables_of_torchrun[]; /* NULL ends them */

/*
 * RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT,
 * as torchrun sets them: scripts for torch.distributed start under us, too. The
 * address is that of rank 0's host, without brackets.
 */
void rueda_variables_torch(const struct rueda_placed_rank *placed, int size,
                           const char *address, int port,
                           struct rueda_strings *out);

/* TF_CONFIG, in which every rank is a worker at port + its local rank. */
void rueda_variables_tf_config(const struct rueda_placement *placement,
                               const struct rueda_hosts *hosts, int rank,
                               int port, struct rueda_strings *out);

/* Where the job's store is, "host:port". */
void rueda_variables_store(const char *store, struct rueda_strings *out);

#endif /* RUEDA_LAUNCH_VARIABLES_H */
