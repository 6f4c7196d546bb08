/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of this host's interfaces, and which of them others can reach.
 */
#include "os/interface.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct sockaddr *sockaddr_of(const struct rueda_address *address)
{
    return (const struct sockaddr *)address->bytes;
}

static void address_set(struct rueda_address *address,
                        const struct sockaddr *from, size_t len)
{
    memset(address, 0, sizeof(*address));
    memcpy(address->bytes, from, len);
    address->len = (unsigned)len;
}

/* Can other hosts reach it, as far as this host can tell? */
static bool is_usable(const struct ifaddrs *interface,
                      const struct rueda_address *address, const char *allowed)
{
    if (sockaddr_of(address)->sa_family == AF_INET6) {
        struct sockaddr_in6 six;

        memcpy(&six, address->bytes, sizeof(six));
        if (IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr))
            return false;
    }
    if (allowed != NULL && allowed[0] != '\0')
        return rueda_address_is_listed(address, interface->ifa_name, allowed);
    return (interface->ifa_flags & IFF_LOOPBACK) == 0;
}

/* False: it has none that TCP could use, or is down. */
static bool address_of(const struct ifaddrs *interface,
                       struct rueda_address *out)
{
    const struct sockaddr *address = interface->ifa_addr;

    if (address == NULL || (interface->ifa_flags & IFF_UP) == 0)
        return false;
    if (address->sa_family == AF_INET)
        address_set(out, address, sizeof(struct sockaddr_in));
    else if (address->sa_family == AF_INET6)
        address_set(out, address, sizeof(struct sockaddr_in6));
    else
        return false;
    return true;
}

/* Two passes, so that addresses of IPv4 come first whatever the order of the
 * interfaces: not every host that has one of IPv6 has a route for it. */
int rueda_address_own(const char *allowed, struct rueda_address *out, int room)
{
    struct ifaddrs *list;
    int count = 0;

    if (getifaddrs(&list) < 0)
        return 0;
    for (int pass = 0; pass < 2; pass++) {
        for (const struct ifaddrs *at = list; at != NULL && count < room;
             at = at->ifa_next) {
            struct rueda_address address;

            if (address_of(at, &address) &&
                rueda_address_is_ipv4(&address) == (pass == 0) &&
                is_usable(at, &address, allowed))
                out[count++] = address;
        }
    }
    freeifaddrs(list);
    return count;
}

/* Is it one of the names of the list, which commas separate? */
static bool has_name(const char *list, const char *name)
{
    const size_t len = strlen(name);

    for (;; list++) {
        const size_t next = strcspn(list, ",");

        if (next == len && memcmp(list, name, len) == 0)
            return true;
        list += next;
        if (*list == '\0')
            return false;
    }
}

bool rueda_interfaces_own(const char *allowed, char *out, size_t bytes)
{
    struct ifaddrs *list;
    size_t used = 0;

    out[0] = '\0';
    if (getifaddrs(&list) < 0)
        return false;
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        struct rueda_address address;
        int len;

        if (!address_of(at, &address) || !is_usable(at, &address, allowed) ||
            has_name(out, at->ifa_name))
            continue;
        len = snprintf(out + used, bytes - used, "%s%s", used > 0 ? "," : "",
                       at->ifa_name);
        if (len < 0 || used + (size_t)len >= bytes)
            break;
        used += (size_t)len;
    }
    out[used] = '\0';
    freeifaddrs(list);
    return used > 0;
}

/* The source address for this destination: connecting a UDP socket assigns it
 * without sending anything. */
static bool address_towards(const struct rueda_address *to,
                            struct rueda_address *out)
{
    const int fd =
        socket(sockaddr_of(to)->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct rueda_address own = {.len = 0};
    socklen_t len = sizeof(own.bytes);
    bool is_good;

    if (fd < 0)
        return false;
    is_good = connect(fd, sockaddr_of(to), to->len) == 0 &&
              getsockname(fd, (struct sockaddr *)own.bytes, &len) == 0;
    close(fd);
    own.len = len;
    *out = own;
    return is_good;
}

/* The interface that has the source address which the system would choose. */
bool rueda_interface_towards(const struct rueda_address *to, char *out,
                             size_t bytes)
{
    struct rueda_address own;
    struct ifaddrs *list;

    out[0] = '\0';
    if (!address_towards(to, &own) || getifaddrs(&list) < 0)
        return false;
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        struct rueda_address address;

        if (address_of(at, &address) &&
            rueda_address_is_same_host(&address, &own)) {
            snprintf(out, bytes, "%s", at->ifa_name);
            break;
        }
    }
    freeifaddrs(list);
    return out[0] != '\0';
}
