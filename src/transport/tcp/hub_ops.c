/* SPDX-License-Identifier: Apache-2.0 */
/* TCP's implementation of the table of a hub (transport.h): each entry leads
 * to the function of tcp.h that does the work. */
#include "transport/tcp/hub.h"

struct rueda_hub *rueda_tcp_hub_super(struct rueda_tcp_hub *hub)
{
    return hub != NULL ? &hub->super : NULL;
}

struct rueda_tcp_hub *rueda_tcp_hub_of(struct rueda_hub *hub)
{
    return (struct rueda_tcp_hub *)hub;
}

static rueda_status tcp_connect(struct rueda_hub *hub, int peer,
                                struct rueda_ep **out_ep)
{
    return rueda_tcp_ep_open((struct rueda_tcp_hub *)hub, peer, out_ep);
}

static void tcp_watch(struct rueda_hub *hub, void (*watch)(void *arg, int fd),
                      void *arg)
{
    rueda_tcp_hub_watch((struct rueda_tcp_hub *)hub, watch, arg);
}

static void tcp_tend(struct rueda_hub *hub)
{
    rueda_tcp_hub_tend((struct rueda_tcp_hub *)hub);
}

static void tcp_tend_seldom(struct rueda_hub *hub)
{
    rueda_tcp_hub_glance((struct rueda_tcp_hub *)hub);
}

static void tcp_before_sleep(struct rueda_hub *hub)
{
    rueda_tcp_hub_check_all((struct rueda_tcp_hub *)hub);
}

static int64_t tcp_patience_ns(const struct rueda_hub *hub)
{
    return rueda_tcp_hub_patience_ns((const struct rueda_tcp_hub *)hub);
}

static const char *tcp_why(const struct rueda_hub *hub, int peer)
{
    return rueda_tcp_hub_why((const struct rueda_tcp_hub *)hub, peer);
}

static bool tcp_is_silent(const struct rueda_hub *hub, int peer)
{
    return rueda_tcp_hub_is_silent((const struct rueda_tcp_hub *)hub, peer);
}

static int tcp_first_silent(const struct rueda_hub *hub)
{
    return rueda_tcp_hub_first_silent((const struct rueda_tcp_hub *)hub);
}

static void tcp_await(struct rueda_hub *hub, int peer)
{
    rueda_tcp_hub_await((struct rueda_tcp_hub *)hub, peer);
}

static bool tcp_is_gone(const struct rueda_hub *hub, int peer)
{
    return rueda_tcp_hub_is_gone((const struct rueda_tcp_hub *)hub, peer);
}

static void tcp_begin_term(struct rueda_hub *hub, uint32_t term)
{
    rueda_tcp_hub_begin_term((struct rueda_tcp_hub *)hub, term);
}

static const char *tcp_last_words(const struct rueda_hub *hub)
{
    return rueda_tcp_hub_last_words((const struct rueda_tcp_hub *)hub);
}

static void tcp_hang_up(struct rueda_hub *hub, const char *words)
{
    rueda_tcp_hub_hang_up((struct rueda_tcp_hub *)hub, words);
}

static void tcp_after_fork(struct rueda_hub *hub)
{
    rueda_tcp_hub_forked((struct rueda_tcp_hub *)hub);
}

static void tcp_close(struct rueda_hub *hub)
{
    rueda_tcp_hub_close((struct rueda_tcp_hub *)hub);
}

const struct rueda_hub_ops rueda_tcp_hub_ops = {
    .name = "tcp",
    .memory = RUEDA_MEMKIND_HOST,
    .connect = tcp_connect,
    .watch = tcp_watch,
    .tend = tcp_tend,
    .tend_seldom = tcp_tend_seldom,
    .before_sleep = tcp_before_sleep,
    .patience_ns = tcp_patience_ns,
    .why = tcp_why,
    .is_silent = tcp_is_silent,
    .first_silent = tcp_first_silent,
    .await = tcp_await,
    .is_gone = tcp_is_gone,
    .begin_term = tcp_begin_term,
    .last_words = tcp_last_words,
    .hang_up = tcp_hang_up,
    .after_fork = tcp_after_fork,
    .close = tcp_close,
};
