/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meshes and views. A mesh makes its endpoints when they are first used, and
 * keeps a list of those that it has made, so that progress costs nothing for
 * ranks with which this one never talks. A view has a table from its members to
 * the ranks of the mesh that owns the endpoints, also over views of views.
 */
#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

rueda_status rueda_mesh_init(struct rueda_mesh *mesh, int rank, int size,
                             rueda_mesh_connect connect, void *owner)
{
    mesh->rank = rank;
    mesh->size = size;
    mesh->connect = connect;
    mesh->owner = owner;
    mesh->open_count = 0;
    mesh->term = 0;
    mesh->memory = RUEDA_MEMKIND_HOST;
    mesh->next_asked = 0;
    mesh->parent = NULL;
    mesh->ranks = NULL;
    mesh->eps = calloc((size_t)size, sizeof(struct rueda_ep *));
    if (mesh->eps == NULL)
        return RUEDA_ERR_NOMEM;
    mesh->open = calloc((size_t)size, sizeof(int));
    if (mesh->open == NULL) {
        free(mesh->eps);
        mesh->eps = NULL;
        return RUEDA_ERR_NOMEM;
    }
    return RUEDA_OK;
}

/* The table leads to where the endpoints are, over views of views too. */
rueda_status rueda_mesh_init_view(struct rueda_mesh *view,
                                  struct rueda_mesh *parent, const int *ranks,
                                  int size)
{
    memset(view, 0, sizeof(*view));
    view->ranks = calloc((size_t)size, sizeof(int));
    if (view->ranks == NULL)
        return RUEDA_ERR_NOMEM;
    view->size = size;
    view->memory = parent->memory;
    view->parent = parent->parent != NULL ? parent->parent : parent;
    for (int i = 0; i < size; i++) {
        if (ranks[i] == parent->rank)
            view->rank = i;
        view->ranks[i] =
            parent->parent != NULL ? parent->ranks[ranks[i]] : ranks[i];
    }
    return RUEDA_OK;
}

static void close_all(struct rueda_mesh *mesh)
{
    for (int i = 0; i < mesh->open_count; i++) {
        rueda_ep_close(mesh->eps[mesh->open[i]]);
        mesh->eps[mesh->open[i]] = NULL;
    }
    mesh->open_count = 0;
}

static rueda_status connect_never(struct rueda_mesh *mesh, int peer,
                                  struct rueda_ep **out_ep)
{
    (void)mesh;
    (void)peer;
    (void)out_ep;
    return RUEDA_ERR_CLOSED;
}

void rueda_mesh_retire(struct rueda_mesh *mesh)
{
    close_all(mesh);
    mesh->connect = connect_never;
}

void rueda_mesh_fini(struct rueda_mesh *mesh)
{
    close_all(mesh);
    free(mesh->open);
    free(mesh->eps);
    free(mesh->ranks);
}

/* The endpoint with a member, made if there is none. */
static rueda_status need_endpoint(struct rueda_mesh *mesh, int peer,
                                  struct rueda_ep **out_ep)
{
    rueda_status status = RUEDA_OK;
    struct rueda_ep *ep;

    if (mesh->parent != NULL) {
        peer = mesh->ranks[peer];
        mesh = mesh->parent;
    }
    ep = mesh->eps[peer];
    if (ep == NULL) {
        status = mesh->connect(mesh, peer, &ep);
        if (status != RUEDA_OK)
            return status;
        rueda_ep_begin_term(ep, mesh->term);
        mesh->eps[peer] = ep;
        mesh->open[mesh->open_count++] = peer;
    }
    *out_ep = ep;
    return RUEDA_OK;
}

static struct rueda_ep *endpoint(struct rueda_mesh *mesh, int peer,
                                 struct rueda_req *req)
{
    struct rueda_ep *ep;
    rueda_status status = need_endpoint(mesh, peer, &ep);

    if (status == RUEDA_OK)
        return ep;
    req->done = 0;
    req->status = status;
    return NULL;
}

/* Every message passes here, so that none is without its term. */
static struct rueda_tag in_term(const struct rueda_mesh *mesh,
                                struct rueda_tag tag)
{
    tag.term = mesh->parent != NULL ? mesh->parent->term : mesh->term;
    return tag;
}

void rueda_mesh_begin_term(struct rueda_mesh *mesh, uint32_t term)
{
    if (term <= mesh->term)
        return;
    mesh->term = term;
    for (int i = 0; i < mesh->open_count; i++)
        rueda_ep_begin_term(mesh->eps[mesh->open[i]], term);
}

uint64_t rueda_mesh_dropped(const struct rueda_mesh *mesh)
{
    uint64_t dropped = 0;

    for (int i = 0; i < mesh->open_count; i++)
        dropped += mesh->eps[mesh->open[i]]->term.dropped;
    return dropped;
}

void rueda_mesh_send(struct rueda_mesh *mesh, int peer, struct rueda_tag tag,
                     const void *buf, size_t len, struct rueda_req *req)
{
    struct rueda_ep *ep = endpoint(mesh, peer, req);

    if (ep != NULL)
        rueda_ep_send(ep, in_term(mesh, tag), buf, len, req);
}

void rueda_mesh_recv(struct rueda_mesh *mesh, int peer, struct rueda_tag tag,
                     void *buf, size_t len, struct rueda_req *req)
{
    struct rueda_ep *ep = endpoint(mesh, peer, req);

    if (ep != NULL)
        rueda_ep_recv(ep, in_term(mesh, tag), buf, len, req);
}

rueda_status rueda_mesh_find(struct rueda_mesh *mesh, struct rueda_tag tag,
                             int *out_peer, size_t *out_len)
{
    rueda_status found = RUEDA_ERR_PEER_LOST;

    tag = in_term(mesh, tag);
    for (int i = 0; i < mesh->size; i++) {
        const int peer = (mesh->next_asked + i) % mesh->size;
        struct rueda_ep *ep;
        rueda_status status;

        if (peer == mesh->rank)
            continue;
        status = need_endpoint(mesh, peer, &ep);
        if (status == RUEDA_OK)
            status = rueda_ep_peek(ep, tag, out_len);
        if (status == RUEDA_OK) {
            mesh->next_asked = (peer + 1) % mesh->size;
            *out_peer = peer;
        }
        if (status != RUEDA_ERR_PEER_LOST && status != RUEDA_IN_PROGRESS)
            return status;
        if (status == RUEDA_IN_PROGRESS)
            found = status;
    }
    return found;
}

bool rueda_mesh_is_lost(const struct rueda_mesh *mesh, int peer)
{
    const struct rueda_ep *ep;

    if (mesh->parent != NULL)
        return rueda_mesh_is_lost(mesh->parent, mesh->ranks[peer]);
    ep = mesh->eps[peer];
    return ep != NULL && ep->is_lost;
}

rueda_status rueda_mesh_progress(struct rueda_mesh *mesh, int *out_peer)
{
    rueda_status lost = RUEDA_IN_PROGRESS;
    bool has_moved = false;

    for (int i = 0; i < mesh->open_count; i++) {
        struct rueda_ep *ep = mesh->eps[mesh->open[i]];
        rueda_status status = rueda_ep_progress(ep);

        if (status < 0)
            ep->is_lost = true;
        if (status < 0 && lost == RUEDA_IN_PROGRESS) {
            *out_peer = mesh->open[i];
            lost = status;
        }
        if (status == RUEDA_OK)
            has_moved = true;
    }
    return has_moved ? RUEDA_OK : lost;
}

void rueda_mesh_cancel(struct rueda_mesh *mesh, rueda_status status)
{
    for (int i = 0; i < mesh->open_count; i++)
        rueda_ep_cancel(mesh->eps[mesh->open[i]], status);
    if (mesh->parent == NULL)
        return;
    for (int i = 0; i < mesh->size; i++)
        if (mesh->parent->eps[mesh->ranks[i]] != NULL)
            rueda_ep_cancel(mesh->parent->eps[mesh->ranks[i]], status);
}
