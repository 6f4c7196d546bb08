/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, and which networks they belong to. Pure; any thread. */
#ifndef RUEDA_OS_ADDRESS_H
#define RUEDA_OS_ADDRESS_H

#include <stdbool.h>

/* An address of a host and a port, as the system writes it. */
struct rueda_address {
    _Alignas(8) unsigned char bytes[32];
    unsigned len;
};

/* Here and below an IPv4 address counts as the same when it is mapped into IPv6
 * (::ffff:10.1.2.3). */
bool rueda_address_is_loopback(const struct rueda_address *address);

/* Is it the same host's address, whatever the port? */
bool rueda_address_is_same_host(const struct rueda_address *a,
                                const struct rueda_address *b);

/*
 * Does the route stay within one site? True for loopback, for private (10/8,
 * 172.16/12, 192.168/16, fc00::/7) and for link-local addresses (169.254/16,
 * fe80::/10). False for 100.64/10, which providers share between their
 * customers, and for all others.
 */
bool rueda_address_is_near(const struct rueda_address *address);

bool rueda_address_is_ipv4(const struct rueda_address *address);

/*
 * Does the list name this address, of an interface of that name? A list has
 * names of interfaces and networks, "eth0,10.1.0.0/16", with commas or blanks
 * between them; what is neither names nothing.
 */
bool rueda_address_is_listed(const struct rueda_address *address,
                             const char *interface, const char *list);

#endif /* RUEDA_OS_ADDRESS_H */
