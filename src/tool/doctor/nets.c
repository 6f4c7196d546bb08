/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of this host: the addresses of interfaces that are up, without
 * loopback and link-local ones, by which no other host is reached. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tool/doctor/facts.h"

struct bytes {
    const unsigned char *at;
    int count;
};

static struct bytes bytes_of(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return (struct bytes){
            (const unsigned char *)&((const struct sockaddr_in *)address)
                ->sin_addr,
            4};
    return (struct bytes){
        (const unsigned char *)&((const struct sockaddr_in6 *)address)
            ->sin6_addr,
        16};
}

static bool is_of_interest(const struct ifaddrs *at)
{
    const struct sockaddr *address = at->ifa_addr;

    if (address == NULL || at->ifa_netmask == NULL ||
        (at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_LOOPBACK) != 0)
        return false;
    if (address->sa_family == AF_INET)
        return true;
    return address->sa_family == AF_INET6 &&
           !IN6_IS_ADDR_LINKLOCAL(
               &((const struct sockaddr_in6 *)address)->sin6_addr);
}

/* "10.77.0.0/24". */
static void write_network(const struct ifaddrs *at, char *out, size_t room)
{
    const struct bytes address = bytes_of(at->ifa_addr);
    const struct bytes mask = bytes_of(at->ifa_netmask);
    char text[INET6_ADDRSTRLEN] = "?";
    unsigned char network[16];
    int bits = 0;

    for (int i = 0; i < address.count; i++) {
        network[i] = address.at[i] & mask.at[i];
        bits += __builtin_popcount(mask.at[i]);
    }
    inet_ntop(at->ifa_addr->sa_family, network, text, sizeof(text));
    snprintf(out, room, "%s/%d", text, bits);
}

static int mtu_of(int fd, const char *interface)
{
    struct ifreq request = {.ifr_mtu = 0};

    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
    return ioctl(fd, SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

/* The networks that this host is in, with their MTUs. Returns how many. */
int rueda_facts_nets(struct rueda_net *out, int room)
{
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifaddrs *all = NULL;
    int count = 0;

    if (fd < 0)
        return 0;
    if (getifaddrs(&all) != 0)
        all = NULL;
    for (const struct ifaddrs *at = all; at != NULL && count < room;
         at = at->ifa_next) {
        struct rueda_net *net = &out[count];

        if (!is_of_interest(at))
            continue;
        rueda_finding_copy(net->interface, sizeof(net->interface),
                           at->ifa_name);
        write_network(at, net->network, sizeof(net->network));
        net->mtu = mtu_of(fd, at->ifa_name);
        count++;
    }
    freeifaddrs(all);
    close(fd);
    return count;
}
