/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that were started from one snapshot of a machine's memory. They have
 * one boot id, and the numbers of their network namespaces are the same, so
 * they have one id too; yet they share no memory and no sockets. To be in one
 * job they need different addresses, and by these they are told apart.
 */
#ifndef RUEDA_JOB_CLONES_H
#define RUEDA_JOB_CLONES_H

#include "job/topology.h"

/*
 * Give each of several hosts with one id an id of its own. Two ranks with
 * the same id are of one host if one of them listens at all addresses of the
 * other, as it does if that listens nowhere. Clones may share some, such as
 * that of a bridge for containers. contacts has the addresses of all ranks, as
 * rueda_network_write() has them, one rank after another, each with its zero.
 * RUEDA_ERR_NOMEM changes nothing.
 */
rueda_status rueda_clones_part(struct rueda_topology_record *records, int size,
                               const char *contacts);

#endif /* RUEDA_JOB_CLONES_H */
