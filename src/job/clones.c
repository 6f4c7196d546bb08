/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks are sorted by the id of their host. Of each id the first rank of every
 * clone stands for it, and the others are compared with these. */
#include "job/clones.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "job/network.h"

/* What is known of a rank. */
struct caller {
    struct rueda_topology_record *record;
    const char *contact;
    uint32_t clone; /* of those that have its id, from 0 */
};

/* The first rank of a clone. */
struct first {
    const char *contact;
    struct rueda_address addresses[RUEDA_NETWORK_ADDRESSES];
    int count;
};

/* Records lie in the order of ranks, so pointers compare as ranks do. */
static int compare(const void *a, const void *b)
{
    const struct caller *left = a;
    const struct caller *right = b;
    int order = memcmp(left->record->host, right->record->host,
                       sizeof(left->record->host));

    return order != 0 ? order
                      : (left->record > right->record) -
                            (left->record < right->record);
}

/* The text behind the port of an address, or text if none begins here. */
static const char *behind_port(const char *text)
{
    size_t digits = text[0] == ':' ? strspn(text + 1, "0123456789") : 0;
    const char *end = text + 1 + digits;

    return digits > 0 && (*end == '\0' || *end == ' ') ? end : text;
}

/* The same addresses in the same order, with whatever ports? It is the usual
 * case, and needs no address to be read. */
static bool is_same_text(const char *a, const char *b)
{
    for (;;) {
        a = behind_port(a);
        b = behind_port(b);
        if (*a != *b || *a == '\0')
            return *a == *b;
        a++;
        b++;
    }
}

static void read_first(struct first *first, const char *contact)
{
    first->contact = contact;
    first->count =
        rueda_network_read(contact, first->addresses, RUEDA_NETWORK_ADDRESSES);
}

static bool has_address(const struct first *first,
                        const struct rueda_address *address)
{
    for (int i = 0; i < first->count; i++)
        if (rueda_address_is_same_host(&first->addresses[i], address))
            return true;
    return false;
}

static bool has_all_of(const struct first *first, const struct first *other)
{
    for (int i = 0; i < other->count; i++)
        if (!has_address(first, &other->addresses[i]))
            return false;
    return true;
}

/* An interface may have come up between one rank and the next. */
static bool is_one_host(const struct first *a, const struct first *b)
{
    return has_all_of(a, b) || has_all_of(b, a);
}

/* Where the callers end that have the id of callers[begin]. */
static int end_of(const struct caller *callers, int size, int begin)
{
    int end = begin + 1;

    while (end < size &&
           memcmp(callers[end].record->host, callers[begin].record->host,
                  sizeof(callers[end].record->host)) == 0)
        end++;
    return end;
}

static int most_of_an_id(const struct caller *callers, int size)
{
    int most = 1;

    for (int begin = 0; begin < size;) {
        int end = end_of(callers, size, begin);

        if (end - begin > most)
            most = end - begin;
        begin = end;
    }
    return most;
}

/* Number the clones among callers with one id. firsts has room for all. */
static void number(struct caller *callers, int count, struct first *firsts)
{
    int clones = 1;

    read_first(&firsts[0], callers[0].contact);
    for (int i = 1; i < count; i++) {
        int at = 0;

        while (at < clones &&
               !is_same_text(firsts[at].contact, callers[i].contact))
            at++;
        if (at == clones) {
            /* The next place, which is taken only if no other fits. */
            read_first(&firsts[clones], callers[i].contact);
            at = 0;
            while (at < clones && !is_one_host(&firsts[at], &firsts[clones]))
                at++;
            clones += at == clones;
        }
        callers[i].clone = (uint32_t)at;
    }
}

/* In the half of the id that tells the boot: a clone is another machine. */
static void mark(const struct caller *caller)
{
    unsigned char *at = caller->record->host;

    rueda_put_u32(at, rueda_get_u32(at) ^ caller->clone);
}

rueda_status rueda_clones_part(struct rueda_topology_record *records, int size,
                               const char *contacts)
{
    struct caller *callers = calloc((size_t)size, sizeof(*callers));
    struct first *firsts;
    rueda_status status;

    if (callers == NULL)
        return RUEDA_ERR_NOMEM;
    for (int rank = 0; rank < size; rank++) {
        callers[rank] =
            (struct caller){.record = &records[rank], .contact = contacts};
        contacts += strlen(contacts) + 1;
    }
    qsort(callers, (size_t)size, sizeof(*callers), compare);
    firsts = calloc((size_t)most_of_an_id(callers, size), sizeof(*firsts));
    for (int begin = 0; begin < size && firsts != NULL;) {
        int end = end_of(callers, size, begin);

        number(&callers[begin], end - begin, firsts);
        begin = end;
    }
    for (int i = 0; i < size && firsts != NULL; i++)
        mark(&callers[i]);
    status = firsts != NULL ? RUEDA_OK : RUEDA_ERR_NOMEM;
    free(callers);
    free(firsts);
    return status;
}
