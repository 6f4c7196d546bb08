/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes between two ranks: the contract that every transport keeps and every
 * algorithm is written against.
 *
 * An endpoint, rueda_ep, is one rank's end of its connection with one peer. A
 * request, rueda_req, is one send or receive on it. A mesh is what a rank holds
 * towards all members of a process set: its endpoints, made on first use. A
 * view is a mesh of some members of another one, over the other one's
 * endpoints.
 *
 * Nothing here blocks. All calls on the endpoints of a mesh come from the
 * thread that holds the engine's token, so a transport needs no locks against
 * its own rank.
 */
#ifndef RUEDA_TRANSPORT_TRANSPORT_H
#define RUEDA_TRANSPORT_TRANSPORT_H

#include <rueda/rueda.h>

#include "base/text.h"
#include "device/device.h"

/* What a message belongs to. Messages of one tag on one endpoint are received
 * in the order in which they were sent; different tags do not wait for each
 * other. The term counts the memberships of the job, from 1: a mesh writes its
 * own into every tag, and an endpoint drops messages of terms that are past. */
struct rueda_tag {
    uint32_t term;
    uint32_t set;
    uint64_t sequence;
};

/* In a sequence: the bytes of this message decide what ranks do, or a program
 * may run them as code, as bytes of a pickle. A transport between hosts
 * authenticates them also where those of other tensors are bare. It is the
 * sender's word, and no part of what tells tags apart. */
#define RUEDA_TAG_PROVEN ((uint64_t)1 << 62)

/* The sequence of messages about operations that do not belong to one. They are
 * proven. */
#define RUEDA_TAG_CONTROL UINT64_MAX

static inline bool rueda_tag_is_proven(struct rueda_tag tag)
{
    return (tag.sequence & RUEDA_TAG_PROVEN) != 0;
}

static inline bool rueda_tag_equal(struct rueda_tag a, struct rueda_tag b)
{
    return a.term == b.term && a.set == b.set &&
           ((a.sequence ^ b.sequence) & ~RUEDA_TAG_PROVEN) == 0;
}

/* The caller's memory; the transport fills it in. The caller reads status and
 * done, and nothing else. */
struct rueda_req {
    rueda_status status;
    size_t done; /* bytes moved so far, from the front of the buffer */

    struct rueda_req *next;
    struct rueda_tag tag;
    char *buf;
    size_t len;
    int channel;
};

struct rueda_ep;

/* The term of an endpoint, which never falls, and how many messages of older
 * ones it has dropped. */
struct rueda_term {
    uint32_t current; /* 0: no message is too old */
    uint64_t dropped;
};

static inline bool rueda_term_is_past(const struct rueda_term *term,
                                      struct rueda_tag tag)
{
    return tag.term < term->current;
}

/* Is a message of this tag too old? Then it is counted, and the first one is
 * logged; the transport drops it. */
bool rueda_term_drops(struct rueda_term *term, struct rueda_tag tag);

struct rueda_transport_ops {
    const char *name; /* "shm", "tcp": the config, log and trace name too */
    unsigned memory;  /* bits of the kinds of memory that buffers may be in */

    /*
     * Start moving len bytes under tag; many requests may be in flight on an
     * endpoint, matched by tag. A transport promises at least four unmatched
     * messages of different tags in each direction before one can hold up
     * another. buf and req are borrowed until req->status leaves
     * RUEDA_IN_PROGRESS, which send(), recv(), progress() or cancel() brings
     * about; req->done counts the bytes so far, so that a reduction can follow
     * the data. A message whose length is not that of its receive ends the
     * receive with RUEDA_ERR_MISMATCH and is dropped; the endpoint lives on.
     * A send may end before its receive is posted. len may be 0.
     *
     * A message of a term before the endpoint's own matches no receive: the
     * transport takes it and drops it, and its send ends as if it had been
     * received. One of a later term waits.
     *
     * An endpoint that has failed ends req at once with RUEDA_ERR_PEER_LOST.
     */
    void (*send)(struct rueda_ep *ep, struct rueda_tag tag, const void *buf,
                 size_t len, struct rueda_req *req);
    void (*recv)(struct rueda_ep *ep, struct rueda_tag tag, void *buf,
                 size_t len, struct rueda_req *req);

    /*
     * Look for a message under tag for which no receive is posted, as
     * progress() has found it. RUEDA_OK: *out_len is its length, and the next
     * receive of this tag gets this very message, the oldest one, of which the
     * rest may still be to come. RUEDA_IN_PROGRESS: there is none.
     * RUEDA_ERR_PEER_LOST: none, and the endpoint has failed. Moves nothing.
     */
    rueda_status (*peek)(struct rueda_ep *ep, struct rueda_tag tag,
                         size_t *out_len);

    /*
     * Move what can move without blocking: RUEDA_OK if something moved,
     * RUEDA_IN_PROGRESS if nothing could, RUEDA_ERR_PEER_LOST from an endpoint
     * that has failed, each time; it then has nothing in flight.
     */
    rueda_status (*progress)(struct rueda_ep *ep);

    /* The endpoint's term has risen: drop the messages that have come before
     * and wait for a receive, if they are older now. No receive of an older
     * term is posted: the caller has cancelled those. */
    void (*begin_term)(struct rueda_ep *ep);

    /* End what is in flight with status. Afterwards the transport holds no
     * pointer of the caller's. A message that is half received when its
     * receive is cancelled makes the endpoint fail. */
    void (*cancel)(struct rueda_ep *ep, rueda_status status);

    /* Cancel with RUEDA_ERR_PEER_LOST and release the endpoint. The peer's end
     * fails once it has received what was sent before. */
    void (*close)(struct rueda_ep *ep);
};

/* Every transport's endpoint begins with this. */
struct rueda_ep {
    const struct rueda_transport_ops *ops;
    int peer; /* the peer's rank in the mesh */
    struct rueda_term term;
    bool is_lost; /* the mesh's: progress() has said so */
};

static inline void rueda_ep_send(struct rueda_ep *ep, struct rueda_tag tag,
                                 const void *buf, size_t len,
                                 struct rueda_req *req)
{
    ep->ops->send(ep, tag, buf, len, req);
}

static inline void rueda_ep_recv(struct rueda_ep *ep, struct rueda_tag tag,
                                 void *buf, size_t len, struct rueda_req *req)
{
    ep->ops->recv(ep, tag, buf, len, req);
}

static inline rueda_status rueda_ep_peek(struct rueda_ep *ep,
                                         struct rueda_tag tag, size_t *out_len)
{
    return ep->ops->peek(ep, tag, out_len);
}

static inline rueda_status rueda_ep_progress(struct rueda_ep *ep)
{
    return ep->ops->progress(ep);
}

/* A term that is not later than the endpoint's changes nothing. */
static inline void rueda_ep_begin_term(struct rueda_ep *ep, uint32_t term)
{
    if (term <= ep->term.current)
        return;
    ep->term.current = term;
    ep->ops->begin_term(ep);
}

static inline void rueda_ep_cancel(struct rueda_ep *ep, rueda_status status)
{
    ep->ops->cancel(ep, status);
}

static inline void rueda_ep_close(struct rueda_ep *ep)
{
    ep->ops->close(ep);
}

/* ---- Hub ------------------------------------------------------------- */

/*
 * A hub is a rank's share of one transport: it makes the endpoints with all
 * peers and does the work that belongs to no single endpoint. Every call comes
 * from the holder of the engine's token, and none blocks. A transport fills in
 * every entry.
 */
struct rueda_hub;

struct rueda_hub_ops {
    const char *name; /* as in rueda_transport_ops, like the next */
    unsigned memory;

    /* Make the endpoint with a peer, which connects while it makes progress.
     * The caller closes it before it closes the hub. */
    rueda_status (*connect)(struct rueda_hub *hub, int peer,
                            struct rueda_ep **out_ep);

    /* Call watch with every descriptor that the hub has now or opens later;
     * the caller wakes its sleeping threads when one becomes readable. */
    void (*watch)(struct rueda_hub *hub, void (*watch)(void *arg, int fd),
                  void *arg);

    /* The duties outside of endpoints: new connections, silent hosts, bytes
     * that do not get through. Endpoints may fail by it. */
    void (*tend)(struct rueda_hub *hub);

    /* The same for a caller that never sleeps: does nothing if the hub was
     * tended a short while ago. */
    void (*tend_seldom)(struct rueda_hub *hub);

    /* The caller is about to sleep: the next progress checks every connection,
     * so that bytes which arrive later wake the caller. */
    void (*before_sleep)(struct rueda_hub *hub);

    /* How long the caller may sleep at most until a deadline of the hub. */
    int64_t (*patience_ns)(const struct rueda_hub *hub);

    /* Why the endpoint with a peer failed, if this rank knows, else NULL. The
     * hub owns the text. */
    const char *(*why)(const struct rueda_hub *hub, int peer);

    /* Is the host of this peer silent? */
    bool (*is_silent)(const struct rueda_hub *hub, int peer);

    /* The lowest peer that is lost because its host is silent; -1: none. */
    int (*first_silent)(const struct rueda_hub *hub);

    /* This rank waits for the peer, although it may have no endpoint with it:
     * judge whether its host is silent and its process gone, until the next
     * term begins. */
    void (*await)(struct rueda_hub *hub, int peer);

    /* Has the process of a peer that is awaited ended, as its system says? */
    bool (*is_gone)(const struct rueda_hub *hub, int peer);

    /* Fail all endpoints, and make those of this term from here on; all members
     * of it have done so before the first of them connects. Forgets why peers
     * were lost. */
    void (*begin_term)(struct rueda_hub *hub, uint32_t term);

    /* The first words that a peer sent when it hung up; NULL: none. The hub
     * owns the text. */
    const char *(*last_words)(const struct rueda_hub *hub);

    /* This rank has failed: fail all endpoints and send words to the peers,
     * unless words are empty. */
    void (*hang_up)(struct rueda_hub *hub, const char *words);

    /* In the child of a fork: close descriptors and touch nothing else. */
    void (*after_fork)(struct rueda_hub *hub);

    /* Release the hub, after all its endpoints are closed. */
    void (*close)(struct rueda_hub *hub);
};

/* Every transport's hub begins with this. */
struct rueda_hub {
    const struct rueda_hub_ops *ops;
};

/* ---- Mesh ------------------------------------------------------------ */

struct rueda_mesh;

/* Makes the endpoint towards a peer; must not block. */
typedef rueda_status (*rueda_mesh_connect)(struct rueda_mesh *mesh, int peer,
                                           struct rueda_ep **out_ep);

struct rueda_mesh {
    int rank;
    int size;
    rueda_mesh_connect connect;
    void *owner;           /* for connect() */
    struct rueda_ep **eps; /* [size]; NULL until first used, and for oneself */
    int *open; /* the peers that have an endpoint, in order of use */
    int open_count;
    uint32_t term;   /* of all messages; 0 until the first one begins */
    unsigned memory; /* kinds of memory that every endpoint can reach */
    int next_asked;  /* the member that rueda_mesh_find() asks first */

    /* A view has none of the above but rank, size and the last two: */
    struct rueda_mesh *parent; /* NULL: this is no view */
    int *ranks;                /* [size] the members' ranks in the parent */
};

/* Its endpoints reach the memory of the host; for more, set mesh->memory. */
rueda_status rueda_mesh_init(struct rueda_mesh *mesh, int rank, int size,
                             rueda_mesh_connect connect, void *owner);

/*
 * A view of some members of parent: ranks[size] are their ranks there, each at
 * most once and the parent's own among them; copied. Member i of the view is
 * rank ranks[i] of the parent. The parent may be a view itself.
 *
 * Requests pass through the parent's endpoints, which the parent makes, and
 * alone closes; so the view ends before it. Progress is the parent's: on a view
 * it does nothing, and a lost peer is reported by its rank in the parent.
 *
 * A view changes no tag but for the parent's term. Two rows of messages between
 * the same two ranks are kept apart by their tags, or by their order: under one
 * tag messages match in the order in which they are sent and received, so rows
 * that all members start one after another, in the same order, may share a tag.
 * Views without two ranks in common may always. What runs at the same time as
 * other work of the same ranks, as two process sets do, needs a tag of its own
 * (its set).
 */
rueda_status rueda_mesh_init_view(struct rueda_mesh *view,
                                  struct rueda_mesh *parent, const int *ranks,
                                  int size);

/* Closes every endpoint; of a view, none. */
void rueda_mesh_fini(struct rueda_mesh *mesh);

/* Closes every endpoint, and ends every later request with RUEDA_ERR_CLOSED.
 * What is in flight has been cancelled. Not for a view, which has its parent's.
 */
void rueda_mesh_retire(struct rueda_mesh *mesh);

/* Begin a later term, on all endpoints that there are and will be. What is in
 * flight of an earlier one has been cancelled. Not for a view, which has its
 * parent's. */
void rueda_mesh_begin_term(struct rueda_mesh *mesh, uint32_t term);

/* How many messages of past terms its endpoints have dropped; not for a view.
 */
uint64_t rueda_mesh_dropped(const struct rueda_mesh *mesh);

/*
 * Send to or receive from a member other than oneself, making the endpoint
 * first if there is none; if that fails, req ends with its status. The mesh
 * fills in the tag's term.
 */
void rueda_mesh_send(struct rueda_mesh *mesh, int peer, struct rueda_tag tag,
                     const void *buf, size_t len, struct rueda_req *req);
void rueda_mesh_recv(struct rueda_mesh *mesh, int peer, struct rueda_tag tag,
                     void *buf, size_t len, struct rueda_req *req);

/*
 * Receive from any peer, in two steps: find a message, then receive it with
 * rueda_mesh_recv() from the member that sent it. Between the two nothing is in
 * flight, so that there is nothing to cancel.
 *
 * RUEDA_OK: a message of this tag has come from *out_peer, of *out_len bytes,
 * for which no receive is posted; the next receive of this tag from that member
 * gets it. RUEDA_IN_PROGRESS: none has come so far. RUEDA_ERR_PEER_LOST: none,
 * and none can come, as all other members are lost. Other failures: there is no
 * endpoint with a member, and none can be made.
 *
 * The order: messages of one tag from one member are found in the order in
 * which they were sent. A receive that names the member and was posted before
 * goes first. Members are asked in turns, beginning behind the last one that
 * had a message, so that one with many does not keep out the others. A lost
 * member is passed over once all that came from it whole has been received; a
 * message of which only a part has come may be found, and its receive ends with
 * RUEDA_ERR_PEER_LOST.
 *
 * Makes the endpoints with all members, as messages come only by these. A view
 * asks its own members.
 */
rueda_status rueda_mesh_find(struct rueda_mesh *mesh, struct rueda_tag tag,
                             int *out_peer, size_t *out_len);

/* Is the connection with a member lost, as the last progress found? It may
 * still have sent messages that wait for a receive. */
bool rueda_mesh_is_lost(const struct rueda_mesh *mesh, int peer);

/*
 * Progress on all endpoints, also on those after one that is lost: a peer that
 * has left may have done its part. RUEDA_OK if anything moved; else as
 * rueda_ep_progress(). *out_peer is the first lost peer, if there is one.
 */
rueda_status rueda_mesh_progress(struct rueda_mesh *mesh, int *out_peer);

/* Ends what is in flight on all endpoints; of a view, on those of its members,
 * also what was not started by way of the view. */
void rueda_mesh_cancel(struct rueda_mesh *mesh, rueda_status status);

#endif /* RUEDA_TRANSPORT_TRANSPORT_H */
