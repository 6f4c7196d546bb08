/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts and properties of IPv4 and IPv6 addresses: private, link-local, in a
 * network.
 */
#include "os/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/number.h"

/* The address alone, without port: 16 bytes, or 4, also if they are mapped into
 * IPv6. */
struct address_number {
    unsigned char bytes[16];
    int count; /* 0: it is of another kind */
};

static struct address_number number_of(const struct rueda_address *address)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct address_number number = {.count = 0};
    struct sockaddr_storage copy = {.ss_family = AF_UNSPEC};

    memcpy(&copy, address->bytes, sizeof(address->bytes));
    if (copy.ss_family == AF_INET) {
        number.count = 4;
        memcpy(number.bytes, &((struct sockaddr_in *)&copy)->sin_addr, 4);
    } else if (copy.ss_family == AF_INET6) {
        number.count = 16;
        memcpy(number.bytes, &((struct sockaddr_in6 *)&copy)->sin6_addr, 16);
    }
    if (number.count == 16 && memcmp(number.bytes, mapped, 12) == 0) {
        memmove(number.bytes, number.bytes + 12, 4);
        number.count = 4;
    }
    return number;
}

bool rueda_address_is_ipv4(const struct rueda_address *address)
{
    return number_of(address).count == 4;
}

bool rueda_address_is_same_host(const struct rueda_address *a,
                                const struct rueda_address *b)
{
    struct address_number one = number_of(a);
    struct address_number other = number_of(b);

    return one.count > 0 && one.count == other.count &&
           memcmp(one.bytes, other.bytes, (size_t)one.count) == 0;
}

/* ---- Networks ----------------------------------------------------------- */

/* The addresses whose first bits are these. */
struct network {
    struct address_number number;
    int bits;
};

/* Bit by bit: lists are short, and read when a job starts. */
static bool is_within(const struct address_number *number,
                      const struct network *network)
{
    if (number->count == 0 || number->count != network->number.count)
        return false;
    for (int bit = 0; bit < network->bits; bit++) {
        int differs = number->bytes[bit / 8] ^ network->number.bytes[bit / 8];

        if ((differs >> (7 - bit % 8) & 1) != 0)
            return false;
    }
    return true;
}

static bool is_within_any(const struct rueda_address *address,
                          const struct network *networks, size_t count)
{
    struct address_number number = number_of(address);

    for (size_t i = 0; i < count; i++)
        if (is_within(&number, &networks[i]))
            return true;
    return false;
}

static const struct network loopback[] = {
    {{{127}, 4}, 8},
    {{{[15] = 1}, 16}, 128},
};

static const struct network private_or_link_local[] = {
    {{{10}, 4}, 8},        {{{172, 16}, 4}, 12}, {{{192, 168}, 4}, 16},
    {{{169, 254}, 4}, 16}, {{{0xfc}, 16}, 7},    {{{0xfe, 0x80}, 16}, 10},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool rueda_address_is_loopback(const struct rueda_address *address)
{
    return is_within_any(address, loopback, COUNT(loopback));
}

bool rueda_address_is_near(const struct rueda_address *address)
{
    return rueda_address_is_loopback(address) ||
           is_within_any(address, private_or_link_local,
                         COUNT(private_or_link_local));
}

/* ---- Lists -------------------------------------------------------------- */

/* "10.1.0.0/16". */
static bool read_network(const char *text, size_t length, struct network *out)
{
    char copy[INET6_ADDRSTRLEN + sizeof("/128")];
    struct network network = {.number = {.count = 4}};
    char *slash;

    if (length >= sizeof(copy))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    slash = strchr(copy, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    if (inet_pton(AF_INET, copy, network.number.bytes) != 1) {
        if (inet_pton(AF_INET6, copy, network.number.bytes) != 1)
            return false;
        network.number.count = 16;
    }
    if (!rueda_parse_int(slash + 1, &network.bits) ||
        network.bits > 8 * network.number.count)
        return false;
    *out = network;
    return true;
}

bool rueda_address_is_listed(const struct rueda_address *address,
                             const char *interface, const char *list)
{
    static const char between[] = ", ";
    struct address_number number = number_of(address);

    for (;;) {
        struct network network;
        size_t length;

        list += strspn(list, between);
        length = strcspn(list, between);
        if (length == 0)
            return false;
        if (strlen(interface) == length && memcmp(interface, list, length) == 0)
            return true;
        if (read_network(list, length, &network) &&
            is_within(&number, &network))
            return true;
        list += length;
    }
}
