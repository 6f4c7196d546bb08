/* SPDX-License-Identifier: Apache-2.0 */
/* This host's own addresses, and the interfaces that have them. Any thread. */
#ifndef RUEDA_OS_INTERFACE_H
#define RUEDA_OS_INTERFACE_H

#include <stddef.h>

#include "os/address.h"

/*
 * The addresses of this host's interfaces that are up, except loopback and
 * link-local ones, with port 0, those of IPv4 first; returns how many. allowed:
 * names of interfaces or networks, such as "eth0,10.1.0.0/16"; loopback ones
 * count if they are named (os/address.h). NULL or "": all.
 */
int rueda_address_own(const char *allowed, struct rueda_address *out, int room);

/*
 * The names of the interfaces of such addresses, "eth0,eth1", as many as there
 * is room for; returns whether there is one.
 */
bool rueda_interfaces_own(const char *allowed, char *out, size_t bytes);

/* The name of the interface by which we would reach that address, or that has
 * it if it is our own. Nothing is sent. False: there is no way, or none with a
 * name. */
bool rueda_interface_towards(const struct rueda_address *to, char *out,
                             size_t bytes);

#endif /* RUEDA_OS_INTERFACE_H */
