/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a rank gets from its seat to an address of the store and a key: from
 * settings, from a file or descriptor of the launcher, or from the business
 * card that rank 0 sends through the launcher's exchange or the caller's.
 * Failures name the variable or the launcher to look at.
 */
#define RUEDA_LOG_TAG "job"

#include "job/introduce.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "job/business_card.h"
#include "job/exchange.h"
#include "job/network.h"
#include "os/interface.h"
#include "os/process.h"
#include "os/random.h"

_Static_assert(RUEDA_BUSINESS_CARD_PACKED <= RUEDA_BUSINESS_CARD_BYTES,
               "the card is too large");

/* ---- What the launcher said --------------------------------------------- */

/* Only one thread at a time speaks with the launcher, and what it says is
 * remembered before the next asks. */
static struct rueda_fork_lock memory_lock = RUEDA_FORK_LOCK_INIT;
static struct rueda_business_card memory; /* under memory_lock */
static bool has_memory;

static atomic_uint lives; /* at a store that the launcher keeps */

/* A caller's own exchange works every time, and may have moved since. */
static bool recall(const struct rueda_seat *seat,
                   struct rueda_business_card *out)
{
    if (!has_memory || seat->introduction == RUEDA_INTRODUCE_CALLER)
        return false;
    *out = memory;
    return true;
}

static void remember(const struct rueda_seat *seat,
                     const struct rueda_business_card *card)
{
    if (seat->introduction == RUEDA_INTRODUCE_CALLER)
        return;
    memory = *card;
    has_memory = true;
}

/* ---- Cards -------------------------------------------------------------- */

/* Pass rank 0's bytes to all. */
static rueda_status pass_on(const struct rueda_introduce_args *args,
                            unsigned char *bytes, struct rueda_text *error)
{
    const struct rueda_business_card_exchange exchange = {
        .rank = args->seat->rank,
        .size = args->seat->size,
        .secret_at = RUEDA_BUSINESS_CARD_KEY_AT,
        .secret_bytes = RUEDA_KEY_BYTES,
        .environment = rueda_seat_environment,
        .deadline_ns = args->deadline_ns,
    };

    switch (args->seat->introduction) {
    case RUEDA_INTRODUCE_PMIX:
        return rueda_launcher_exchange_pmix(&exchange, bytes,
                                            RUEDA_BUSINESS_CARD_PACKED, error);
    case RUEDA_INTRODUCE_PMI1:
        return rueda_launcher_exchange_pmi1(&exchange, bytes,
                                            RUEDA_BUSINESS_CARD_PACKED, error);
    case RUEDA_INTRODUCE_PMI2:
        return rueda_launcher_exchange_pmi2(&exchange, bytes,
                                            RUEDA_BUSINESS_CARD_PACKED, error);
    default:
        break;
    }
    if (args->exchange(args->exchange_arg, bytes, RUEDA_BUSINESS_CARD_PACKED) ==
        0)
        return RUEDA_OK;
    rueda_text_set(error, "the exchange that the caller of rueda_init() gave "
                          "has failed");
    return RUEDA_ERR_IO;
}

/* Rank 0 gives its card, the others take it. */
static rueda_status exchange_card(const struct rueda_introduce_args *args,
                                  struct rueda_business_card *card,
                                  struct rueda_text *error)
{
    unsigned char bytes[RUEDA_BUSINESS_CARD_PACKED] = {0};
    rueda_status status;

    if (args->seat->rank == 0)
        rueda_business_card_pack(card, bytes);
    status = pass_on(args, bytes, error);
    if (status == RUEDA_OK && !rueda_business_card_unpack(bytes, card)) {
        rueda_text_set(error, "what rank 0 sent through the launcher is not "
                              "from a Rueda of this version");
        status = RUEDA_ERR_VERSION;
    }
    rueda_secret_wipe(bytes, sizeof(bytes));
    return status;
}

/* Rank 0 fills in what only it knows. */
static rueda_status make_card(const struct rueda_introduce_args *args,
                              struct rueda_business_card *card,
                              struct rueda_text *error)
{
    rueda_status status = rueda_random_fill(card->nonce, RUEDA_NONCE_BYTES);

    if (status == RUEDA_OK && !args->key->present)
        status = rueda_key_create(&card->key);
    if (status != RUEDA_OK)
        rueda_text_set(error, "no random numbers: %s", strerror(errno));
    return status;
}

/* ---- The store ---------------------------------------------------------- */

/* On rank 0: serve the store here. */
static rueda_status open_store(const struct rueda_introduce_args *args,
                               struct rueda_contact *contact,
                               struct rueda_text *error)
{
    const struct rueda_keeper_args keeper = {
        .size = args->seat->size,
        .socket = contact->socket[0] != '\0' ? contact->socket : NULL,
        .key = &contact->key,
        .addresses = contact->addresses,
        .address_count = contact->address_count,
        .questions = args->questions,
    };
    rueda_status status = rueda_keeper_open(&keeper, &contact->keeper, error);
    const struct rueda_address *bound;
    int count;

    if (status != RUEDA_OK)
        return status;
    bound = rueda_keeper_addresses(contact->keeper, &count);
    memcpy(contact->addresses, bound,
           (size_t)count * sizeof(struct rueda_address));
    contact->address_count = count;
    return RUEDA_OK;
}

static void name_socket(const struct rueda_business_card *card,
                        struct rueda_contact *contact)
{
    char nonce[RUEDA_NONCE_TEXT];

    rueda_nonce_text(card->nonce, nonce);
    snprintf(contact->socket, sizeof(contact->socket), "rueda-%u-store-%s",
             rueda_process_user(), nonce);
}

/* Rank 0 of a launcher with an exchange. TCP only where the launcher does not
 * say that all are here. */
static rueda_status receive_all(const struct rueda_introduce_args *args,
                                struct rueda_business_card *card,
                                struct rueda_contact *contact,
                                struct rueda_text *error)
{
    const struct rueda_seat *seat = args->seat;
    bool is_known = recall(seat, card);
    rueda_status status = RUEDA_OK;

    if (!is_known)
        status = make_card(args, card, error);
    if (status != RUEDA_OK)
        return status;
    contact->key = args->key->present ? *args->key : card->key;
    name_socket(card, contact);
    if (is_known)
        contact->address_count = rueda_network_read(
            card->addresses, contact->addresses, RUEDA_KEEPER_MOST_ADDRESSES);
    else if (seat->local_size != seat->size)
        contact->address_count = rueda_address_own(NULL, contact->addresses,
                                                   RUEDA_KEEPER_MOST_ADDRESSES);
    status = open_store(args, contact, error);
    if (status != RUEDA_OK || is_known)
        return status;
    rueda_network_write(contact->addresses, contact->address_count,
                        card->addresses, sizeof(card->addresses));
    return exchange_card(args, card, error);
}

/* The card of rank 0 goes through the launcher once in a process; a second
 * context of this process remembers it. */
static rueda_status introduce_by_card(const struct rueda_introduce_args *args,
                                      struct rueda_contact *contact,
                                      struct rueda_text *error)
{
    struct rueda_business_card card = {.key = {.present = false}};
    rueda_status status = RUEDA_OK;

    rueda_fork_lock_take(&memory_lock);
    if (args->seat->rank == 0)
        status = receive_all(args, &card, contact, error);
    else if (!recall(args->seat, &card))
        status = exchange_card(args, &card, error);
    if (status == RUEDA_OK)
        remember(args->seat, &card);
    rueda_fork_lock_release(&memory_lock);
    if (status == RUEDA_OK && args->seat->rank > 0) {
        contact->key = args->key->present ? *args->key : card.key;
        name_socket(&card, contact);
        contact->address_count = rueda_network_read(
            card.addresses, contact->addresses, RUEDA_KEEPER_MOST_ADDRESSES);
    }
    rueda_business_card_wipe(&card);
    return status;
}

/* Many hosts find their own name at loopback, where others do not: then rank 0
 * listens at all its addresses. */
static void listen_widely(const char *store, struct rueda_contact *contact)
{
    int port = rueda_address_port(&contact->addresses[0]);
    int found = contact->address_count;

    if (strncmp(store, "localhost:", 10) == 0 || store[0] == '[' ||
        (store[0] >= '0' && store[0] <= '9'))
        return;
    for (int i = 0; i < found; i++)
        if (!rueda_address_is_loopback(&contact->addresses[i]))
            return;
    contact->address_count += rueda_address_own(
        NULL, contact->addresses + found, RUEDA_KEEPER_MOST_ADDRESSES - found);
    for (int i = found; i < contact->address_count; i++)
        rueda_address_set_port(&contact->addresses[i], port);
}

/* The user has said where the store is, so a key is needed that the user has
 * distributed. */
static rueda_status introduce_by_store(const struct rueda_introduce_args *args,
                                       struct rueda_contact *contact,
                                       struct rueda_text *error)
{
    if (!args->key->present) {
        rueda_text_set(
            error,
            "the ranks meet at the store %s, and there is no key to prove that "
            "they belong together. Make one with \"rueda key FILE\", put the "
            "same file on every host, readable by its owner only, and set "
            "RUEDA_KEY_FILE to it on every rank",
            args->seat->store);
        return RUEDA_ERR_AUTH;
    }
    contact->key = *args->key;
    contact->address_count =
        rueda_address_find(args->seat->store, contact->addresses,
                           RUEDA_KEEPER_MOST_ADDRESSES, error);
    if (contact->address_count == 0)
        return RUEDA_ERR_INVALID;
    if (args->keeper == RUEDA_STORE_BY_LAUNCHER) {
        contact->life = args->seat->term > 0 ? args->seat->term
                                             : atomic_fetch_add(&lives, 1) + 1;
        return RUEDA_OK;
    }
    if (args->seat->rank > 0)
        return RUEDA_OK;
    listen_widely(args->seat->store, contact);
    return open_store(args, contact, error);
}

rueda_status rueda_introduce(const struct rueda_introduce_args *args,
                             struct rueda_contact *out,
                             struct rueda_text *error)
{
    struct rueda_contact contact = {.address_count = 0};
    rueda_status status = args->seat->introduction == RUEDA_INTRODUCE_STORE
                              ? introduce_by_store(args, &contact, error)
                              : introduce_by_card(args, &contact, error);

    if (status != RUEDA_OK) {
        rueda_contact_fini(&contact);
        return status;
    }
    *out = contact;
    rueda_key_wipe(&contact.key);
    return RUEDA_OK;
}

void rueda_contact_fini(struct rueda_contact *contact)
{
    rueda_keeper_close(contact->keeper);
    contact->keeper = NULL;
    rueda_key_wipe(&contact->key);
}

rueda_status rueda_introduce_new_key(const char *path, struct rueda_text *error)
{
    struct rueda_key key;
    rueda_status status = rueda_key_create(&key);

    if (status != RUEDA_OK) {
        rueda_text_set(error, "no random numbers: %s", strerror(errno));
        return status;
    }
    status = rueda_key_write_file(path, &key, error);
    rueda_key_wipe(&key);
    return status;
}
