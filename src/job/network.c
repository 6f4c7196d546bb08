/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening the network of a job: where this rank listens, how addresses travel
 * as text through the roll call, and how the hub learns where the peers are.
 * The one file of job/ that knows which transport joins hosts.
 */
#include "job/network.h"

#include <stdio.h>
#include <string.h>

#include "job/encryption.h"
#include "os/interface.h"
#include "os/process.h"
#include "transport/tcp/tcp.h"

_Static_assert(RUEDA_NETWORK_ADDRESSES <= RUEDA_TCP_MOST_ADDRESSES,
               "the hub takes all that a rank publishes");

void rueda_network_write(const struct rueda_address *addresses, int count,
                         char *out, size_t bytes)
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < count; i++) {
        char text[RUEDA_ADDRESS_TEXT];
        int len;

        rueda_address_text(&addresses[i], text, sizeof(text));
        len =
            snprintf(out + used, bytes - used, "%s%s", i > 0 ? " " : "", text);
        if (len < 0 || used + (size_t)len >= bytes) {
            out[used] = '\0';
            return;
        }
        used += (size_t)len;
    }
}

int rueda_network_read(const char *text, struct rueda_address *out, int room)
{
    int count = 0;

    while (count < room) {
        char one[RUEDA_ADDRESS_TEXT];
        size_t length;

        text += strspn(text, " ");
        length = strcspn(text, " ");
        if (length == 0)
            break;
        if (length < sizeof(one)) {
            memcpy(one, text, length);
            one[length] = '\0';
            count += rueda_address_read(one, &out[count]) ? 1 : 0;
        }
        text += length;
    }
    return count;
}

int rueda_network_questions(const struct rueda_config *config)
{
    return (int)(config->host_timeout_ms / 1000) + 2;
}

/* ---- Other hosts -------------------------------------------------------- */

/* What both kinds of network take from the settings; without the number of
 * addresses. */
static struct rueda_tcp_args args_of(const struct rueda_config *config,
                                     int rank, int size,
                                     const struct rueda_key *key,
                                     struct rueda_address *addresses)
{
    return (struct rueda_tcp_args){.rank = rank,
                                   .size = size,
                                   .key = key,
                                   .addresses = addresses,
                                   .streams = config->tcp_streams,
                                   .encrypt = config->encrypt,
                                   .give_up_ms = config->start_timeout_ms,
                                   .silence_ms = config->host_timeout_ms};
}

rueda_status rueda_network_open(const struct rueda_config *config, int rank,
                                int size, const struct rueda_key *key,
                                struct rueda_hub **out,
                                char text[RUEDA_NETWORK_TEXT],
                                struct rueda_text *error)
{
    struct rueda_address addresses[RUEDA_NETWORK_ADDRESSES];
    struct rueda_tcp_args args = args_of(config, rank, size, key, addresses);
    const struct rueda_address *bound;
    struct rueda_tcp_hub *hub;
    rueda_status status;
    int count;

    args.address_count =
        rueda_address_own(config->network, addresses, RUEDA_NETWORK_ADDRESSES);
    if (args.address_count == 0 && config->network[0] != '\0') {
        rueda_text_set(error,
                       "RUEDA_NETWORK is \"%s\", and rank %d has no address "
                       "there",
                       config->network, rank);
        return RUEDA_ERR_INVALID;
    }
    status = rueda_tcp_hub_open(&args, &hub, error);
    if (status != RUEDA_OK)
        return status;
    *out = rueda_tcp_hub_super(hub);
    bound = rueda_tcp_hub_addresses(hub, &count);
    rueda_network_write(bound, count, text, RUEDA_NETWORK_TEXT);
    return RUEDA_OK;
}

rueda_status rueda_network_locate(struct rueda_hub *hub,
                                  const struct rueda_topology *topology,
                                  const char *texts, size_t bytes)
{
    const char *end = texts + bytes;

    for (int rank = 0; rank < topology->size; rank++) {
        struct rueda_address addresses[RUEDA_NETWORK_ADDRESSES];
        size_t len = strnlen(texts, (size_t)(end - texts));
        rueda_status status;

        if (texts + len >= end || len >= RUEDA_NETWORK_TEXT)
            return RUEDA_ERR_INVALID;
        status = rueda_tcp_hub_locate(
            rueda_tcp_hub_of(hub), rank, topology->rows[rank].host, addresses,
            rueda_network_read(texts, addresses, RUEDA_NETWORK_ADDRESSES));
        if (status != RUEDA_OK)
            return status;
        texts += len + 1;
    }
    return RUEDA_OK;
}

void rueda_network_set_job(struct rueda_hub *hub, uint64_t job,
                           rueda_config_encrypt encrypt)
{
    rueda_tcp_hub_set_job(rueda_tcp_hub_of(hub), job);
    rueda_tcp_hub_set_encrypt(rueda_tcp_hub_of(hub), encrypt);
}

void rueda_network_tell_protection(const struct rueda_config *config, int rank,
                                   struct rueda_text *out)
{
    struct rueda_address addresses[RUEDA_TCP_MOST_ADDRESSES];
    struct rueda_encrypt_vote vote = {.far = ""};
    rueda_config_encrypt decision;
    struct rueda_text why = {{0}};
    const int count =
        rueda_address_own(config->network, addresses, RUEDA_TCP_MOST_ADDRESSES);

    rueda_encrypt_hear(&vote, rank, config->encrypt, addresses, count);
    if (rueda_encrypt_decide(&vote, &decision, &why) == RUEDA_OK)
        rueda_encrypt_explain(decision, why.chars, out);
    else
        *out = why;
}

void rueda_network_mark_inside(struct rueda_hub *hub,
                               const struct rueda_topology *topology, int rank)
{
    const struct rueda_topology_host *own =
        &topology->hosts[topology->rows[rank].host];

    for (int peer = 0; peer < topology->size; peer++) {
        const struct rueda_topology_host *host =
            &topology->hosts[topology->rows[peer].host];

        if (memcmp(host->id, own->id, RUEDA_PROCESS_BOOT_ID) == 0)
            rueda_tcp_hub_set_inside(rueda_tcp_hub_of(hub), peer);
    }
}

/* ---- This host ---------------------------------------------------------- */

static void loopback(struct rueda_address *out, int port)
{
    struct rueda_text ignored = {{0}};

    rueda_address_find("127.0.0.1:0", out, 1, &ignored);
    rueda_address_set_port(out, port);
}

rueda_status rueda_network_open_local(const struct rueda_config *config,
                                      struct rueda_segment *segment,
                                      struct rueda_hub **out,
                                      struct rueda_text *error)
{
    struct rueda_address address;
    struct rueda_tcp_args args = args_of(config, segment->me, segment->size,
                                         &segment->common->key, &address);
    const struct rueda_address *bound;
    struct rueda_tcp_hub *hub;
    rueda_status status;
    int count;

    loopback(&address, 0);
    args.address_count = 1;
    status = rueda_tcp_hub_open(&args, &hub, error);
    if (status != RUEDA_OK)
        return status;
    *out = rueda_tcp_hub_super(hub);
    bound = rueda_tcp_hub_addresses(hub, &count);
    segment->members[segment->me].port = (uint16_t)rueda_address_port(bound);
    return RUEDA_OK;
}

rueda_status rueda_network_locate_local(struct rueda_hub *hub,
                                        const struct rueda_segment *segment)
{
    rueda_status status = RUEDA_OK;

    for (int i = 0; i < segment->size && status == RUEDA_OK; i++) {
        struct rueda_address address;

        loopback(&address, segment->members[i].port);
        status = rueda_tcp_hub_locate(rueda_tcp_hub_of(hub), i, 0, &address, 1);
    }
    return status;
}
