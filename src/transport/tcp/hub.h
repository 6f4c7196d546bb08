/* SPDX-License-Identifier: Apache-2.0 */
/* What endpoints ask of their hub. */
#ifndef RUEDA_TRANSPORT_TCP_HUB_H
#define RUEDA_TRANSPORT_TCP_HUB_H

#include "transport/tcp/ep.h"

/* Begin to dial, or look for connections that have come for it already. */
void rueda_tcp_hub_join(struct rueda_tcp_hub *hub, struct rueda_tcp_ep *ep);

/* Take connections in the making further. An endpoint that cannot be reached
 * fails. */
void rueda_tcp_hub_progress(struct rueda_tcp_hub *hub);

/* The endpoint is being closed: forget it. */
void rueda_tcp_hub_leave(struct rueda_tcp_hub *hub, struct rueda_tcp_ep *ep);

/* How often all streams were to be looked at so far. */
unsigned rueda_tcp_hub_looks(const struct rueda_tcp_hub *hub);

/* How many streams an endpoint should have. */
int rueda_tcp_hub_streams(const struct rueda_tcp_hub *hub);

#endif /* RUEDA_TRANSPORT_TCP_HUB_H */
