/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/locality.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <uv.h>

#include "os/process.h"

struct cpu_query {
    uv_getaddrinfo_t request;
    bool *is_local;
};

/* ---- By name ------------------------------------------------------------ */

static bool is_plainly_local(const char *name)
{
    char mine[RUEDA_LAUNCH_HOST_BYTES];
    size_t len;

    if (strcasecmp(name, "localhost") == 0 || strncmp(name, "127.", 4) == 0 ||
        strcmp(name, "::1") == 0)
        return true;
    rueda_process_host(mine, sizeof(mine));
    len = strcspn(mine, ".");
    return strcasecmp(name, mine) == 0 ||
           (strlen(name) == len && strncasecmp(name, mine, len) == 0);
}

/* ---- By address --------------------------------------------------------- */

static bool is_same(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a == NULL || b == NULL || a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)b)->sin6_addr,
                  sizeof(struct in6_addr)) == 0;
}

static bool is_own(const struct addrinfo *found)
{
    struct ifaddrs *mine = NULL;
    bool is_local = false;

    if (getifaddrs(&mine) != 0)
        return false;
    for (; found != NULL && !is_local; found = found->ai_next)
        for (const struct ifaddrs *at = mine; at != NULL; at = at->ifa_next)
            is_local = is_local || is_same(found->ai_addr, at->ifa_addr);
    freeifaddrs(mine);
    return is_local;
}

/* An address in digits takes no resolver. False: it is a name. */
static bool look_at_digits(const char *name, bool *out_is_local)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                          .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found;

    if (getaddrinfo(name, NULL, &hints, &found) != 0)
        return false;
    *out_is_local = is_own(found);
    freeaddrinfo(found);
    return true;
}

static void on_found(uv_getaddrinfo_t *request, int status,
                     struct addrinfo *found)
{
    struct cpu_query *query = request->data;

    if (status == 0)
        *query->is_local = is_own(found);
    uv_freeaddrinfo(found);
}

static void on_timeout(uv_timer_t *timer)
{
    struct cpu_query *queries = timer->data;

    for (struct cpu_query *query = queries; query->is_local != NULL; query++)
        uv_cancel((uv_req_t *)&query->request);
}

/* Queries that are in flight at the end cannot be cancelled: we wait for them
 * as long as the resolver takes. */
static void ask_all(const struct rueda_hosts *hosts, struct cpu_query *queries,
                    const int *asked, int count, int timeout_ms)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    uv_timer_t timer;
    uv_loop_t loop;

    if (uv_loop_init(&loop) != 0)
        return;
    uv_timer_init(&loop, &timer);
    timer.data = queries;
    uv_timer_start(&timer, on_timeout, (uint64_t)timeout_ms, 0);
    uv_unref((uv_handle_t *)&timer);
    for (int i = 0; i < count; i++) {
        queries[i].request.data = &queries[i];
        uv_getaddrinfo(&loop, &queries[i].request, on_found,
                       hosts->list[asked[i]].name, NULL, &hints);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
}

/* Which of these hosts are this machine? Names that have to be looked up are
 * asked for in parallel, since a slow name server would hold up the start
 * otherwise. */
void rueda_locality_find(const struct rueda_hosts *hosts, int count,
                         int timeout_ms, bool *is_local)
{
    struct cpu_query *queries = calloc((size_t)count + 1, sizeof(*queries));
    int *asked = calloc((size_t)count + 1, sizeof(*asked));
    int asked_count = 0;

    for (int i = 0; i < count; i++) {
        is_local[i] = is_plainly_local(hosts->list[i].name);
        if (is_local[i] || queries == NULL || asked == NULL ||
            look_at_digits(hosts->list[i].name, &is_local[i]))
            continue;
        queries[asked_count].is_local = &is_local[i];
        asked[asked_count++] = i;
    }
    if (asked_count > 0)
        ask_all(hosts, queries, asked, asked_count, timeout_ms);
    free(queries);
    free(asked);
}
