/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker of an elastic job asks of the launcher's store beside its
 * place, each over a connection that no other thread uses meanwhile. */
#include "job/rendezvous.h"

#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "os/process.h"

#define ASK_NS ((int64_t)30000000000)

static struct rueda_client *counter; /* under the lock */

/* The connection is the parent's. */
static void forget_in_child(void)
{
    counter = NULL;
}

static struct rueda_fork_lock lock = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                                      .in_child = forget_in_child};

rueda_status rueda_rendezvous_leave(void)
{
    const int worker = rueda_rendezvous_worker();
    struct rueda_store_request request = {.kind = RUEDA_STORE_SET};
    struct rueda_client *client = NULL;
    struct rueda_store_reply reply;
    struct rueda_text words = {{0}};
    rueda_status status;
    char key[48];

    if (rueda_rendezvous_term() == 0)
        return RUEDA_ERR_INVALID;
    request.key = key;
    request.key_bytes = (size_t)snprintf(
        key, sizeof(key), RUEDA_RENDEZVOUS_READY "%d" RUEDA_RENDEZVOUS_LEAVE,
        worker);
    status = rueda_rendezvous_reach(worker, &client, &words);
    if (status == RUEDA_OK)
        status = rueda_client_ask(client, &request, rueda_clock_ns() + ASK_NS,
                                  &reply, &words);
    rueda_client_close(client);
    return status;
}

static rueda_status add(const char *key, int64_t count, int64_t *out_sum)
{
    struct rueda_store_request request = {.kind = RUEDA_STORE_ADD,
                                          .key = key,
                                          .key_bytes = strlen(key),
                                          .count = count};
    struct rueda_text words = {{0}};
    struct rueda_store_reply reply;
    rueda_status status = RUEDA_OK;

    if (counter == NULL)
        status =
            rueda_rendezvous_reach(rueda_rendezvous_worker(), &counter, &words);
    if (status == RUEDA_OK)
        status = rueda_client_ask(counter, &request, rueda_clock_ns() + ASK_NS,
                                  &reply, &words);
    if (status == RUEDA_OK)
        *out_sum = reply.count;
    return status;
}

rueda_status rueda_rendezvous_add(const char *key, int64_t count,
                                  int64_t *out_sum)
{
    const size_t len = strnlen(key, RUEDA_STORE_KEY_BYTES + 1);
    rueda_status status;

    if (rueda_rendezvous_term() == 0 || len == 0 || len > RUEDA_STORE_KEY_BYTES)
        return RUEDA_ERR_INVALID;
    rueda_fork_lock_take(&lock);
    status = add(key, count, out_sum);
    rueda_fork_lock_release(&lock);
    return status;
}
