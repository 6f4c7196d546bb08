/* SPDX-License-Identifier: Apache-2.0 */
#define RUEDA_LOG_TAG "job"

#include "job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/key.h"
#include "base/log.h"
#include "job/agreement.h"
#include "job/rollcall.h"
#include "os/clock.h"
#include "segment/meet.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"

/* ---- Messages ---------------------------------------------------------- */

/* A rank's place in the segment; -1: it is on another host. */
static int member_of(const struct rueda_job *job, int rank)
{
    const struct rueda_topology *topology = job->topology;

    if (topology == NULL)
        return rank;
    if (topology->places[rank].host != topology->places[job->rank].host)
        return -1;
    return topology->places[rank].index;
}

/* The channels of two ranks lie in the range of the lower one. */
static rueda_status connect_shm(struct rueda_mesh *mesh, int peer,
                                struct rueda_ep **out_ep)
{
    struct rueda_job *job = mesh->owner;
    int me = job->segment->me;
    int member = member_of(job, peer);
    int low = member < me ? member : me;
    int high = member < me ? me : member;
    uint64_t offset;

    if (member < 0)
        return RUEDA_ERR_UNSUPPORTED;
    offset = job->segment->members[low].pairs_offset +
             (uint64_t)(high - low - 1) * rueda_shm_pair_bytes();
    if (offset > job->segment->bytes - rueda_shm_pair_bytes())
        return RUEDA_ERR_MISMATCH;
    return rueda_shm_ep_open(job->segment,
                             rueda_segment_at(job->segment, offset),
                             me == low ? 0 : 1, peer, member, out_ep);
}

static rueda_status open_messages(struct rueda_job *job)
{
    const struct rueda_agreement *agreement = job->segment->agreement;
    bool is_loop =
        job->hub != NULL && agreement->transport != RUEDA_TRANSPORT_SHM;

    job->has_slab = agreement->transport == RUEDA_TRANSPORT_AUTO &&
                    job->segment->size == job->size;
    rueda_slab_init(&job->slab, job->segment,
                    rueda_segment_at(job->segment, agreement->slab_offset),
                    agreement->cell_bytes);
    if (is_loop)
        return rueda_mesh_init(&job->mesh, job->rank, job->size,
                               rueda_loop_connect, job->hub);
    return rueda_mesh_init(&job->mesh, job->rank, job->size, connect_shm, job);
}

const char *rueda_job_transport(const struct rueda_job *job)
{
    return job->mesh.connect == connect_shm ? "shm" : "loop";
}

/* ---- Who is where ------------------------------------------------------- */

/* All are here, by the launcher's word or by the way in which they meet. */
static void place_here(struct rueda_job *job, const struct rueda_seat *seat)
{
    job->place = (struct rueda_topology_place){
        .index = seat->rank,
        .local_rank = seat->local_rank >= 0 ? seat->local_rank : seat->rank,
        .local_size = seat->local_size >= 0 ? seat->local_size : seat->size,
        .cross_size = 1,
    };
}

/* What a launcher says of cross ranks is not in the table. */
static void place_cross(struct rueda_job *job, const struct rueda_seat *seat)
{
    if (seat->cross_rank >= 0)
        job->place.cross_rank = seat->cross_rank;
    if (seat->cross_size >= 0)
        job->place.cross_size = seat->cross_size;
}

static void bar_collectives(struct rueda_job *job)
{
    const struct rueda_topology *topology = job->topology;

    rueda_text_set(&job->barred,
                   "this job has %d hosts (rank %d is on %s, rank %d on %s), "
                   "and operations between hosts are not there yet",
                   topology->host_count, topology->hosts[0].first,
                   topology->hosts[0].name, topology->hosts[1].first,
                   topology->hosts[1].name);
}

/* Find the store, and through it all ranks. Writes how the ranks of this host
 * meet: meeting->job, held in `name`. */
static rueda_status find_all(struct rueda_job *job,
                             const struct rueda_introduce_args *args,
                             struct rueda_meeting *meeting,
                             char name[RUEDA_NAME_BYTES],
                             struct rueda_text *error)
{
    const struct rueda_seat *seat = args->seat;
    struct rueda_client_args client = {.rank = seat->rank, .size = seat->size};
    char nonce[RUEDA_NONCE_TEXT];
    struct rueda_rollcall call;
    rueda_status status;

    status = rueda_introduce(args, &job->contact, error);
    if (status != RUEDA_OK)
        return status;
    client.socket = job->contact.socket[0] != '\0' ? job->contact.socket : NULL;
    client.addresses = job->contact.addresses;
    client.address_count = job->contact.address_count;
    client.key = &job->contact.key;
    status = rueda_client_open(&client, args->deadline_ns, &job->client, error);
    if (status == RUEDA_OK)
        status =
            rueda_rollcall(job->client, seat, args->deadline_ns, &call, error);
    if (status != RUEDA_OK)
        return status;
    job->topology = call.topology;
    job->place = call.topology->places[seat->rank];
    rueda_nonce_text(call.nonce, nonce);
    snprintf(name, RUEDA_NAME_BYTES, "%s-%d", nonce, job->place.host);
    meeting->job = name;
    meeting->key = &job->contact.key;
    meeting->rank = job->place.index;
    meeting->size = call.topology->hosts[job->place.host].size;
    return RUEDA_OK;
}

/* The store has done its duty where all ranks share a segment, which knows who
 * dies. All have heard the roll, or they would not have met. */
static void leave_store(struct rueda_job *job)
{
    rueda_client_close(job->client);
    job->client = NULL;
    rueda_contact_fini(&job->contact);
}

/* ---- Opening ------------------------------------------------------------ */

static struct rueda_job *job_new(const struct rueda_config *config)
{
    struct rueda_job *job = calloc(1, sizeof(*job));

    if (job != NULL)
        job->config = *config;
    return job;
}

static void job_free(struct rueda_job *job)
{
    leave_store(job);
    rueda_topology_free(job->topology);
    free(job);
}

/* Called in every rank before others see its line. */
static rueda_status prepare(void *arg, struct rueda_segment *segment,
                            struct rueda_text *error)
{
    struct rueda_job *job = arg;

    segment->members[segment->me].rank = job->rank;
    return rueda_agreement_prepare(&job->config, segment, error);
}

static rueda_status check_host(const struct rueda_job *job,
                               const struct rueda_meeting *meeting,
                               struct rueda_text *error)
{
    if (meeting->size > RUEDA_SEGMENT_MAX) {
        rueda_text_set(error, "a job of %d ranks; up to %d can share a host",
                       meeting->size, RUEDA_SEGMENT_MAX);
        return RUEDA_ERR_LIMIT;
    }
    if (job->config.transport == RUEDA_TRANSPORT_LOOP) {
        rueda_text_set(error,
                       "RUEDA_TRANSPORT is \"loop\", which joins threads "
                       "of one process; take shm or auto");
        return RUEDA_ERR_INVALID;
    }
    return RUEDA_OK;
}

static bool needs_store(const struct rueda_seat *seat)
{
    return seat->introduction != RUEDA_INTRODUCE_NOBODY &&
           seat->introduction != RUEDA_INTRODUCE_SOCKET;
}

/* Find the others, meet those of this host. */
static rueda_status assemble(struct rueda_job *job,
                             const struct rueda_introduce_args *args,
                             struct rueda_text *error)
{
    const struct rueda_seat *seat = args->seat;
    char name[RUEDA_NAME_BYTES];
    struct rueda_meeting meeting = {
        .rank = seat->rank,
        .size = seat->size,
        .job = seat->job,
        .key = args->key,
        .deadline_ns = args->deadline_ns,
        .inherited = job->config.segment_fd,
        .prepare = prepare,
        .arg = job,
    };
    rueda_status status = RUEDA_OK;

    place_here(job, seat);
    if (needs_store(seat))
        status = find_all(job, args, &meeting, name, error);
    place_cross(job, seat);
    if (status == RUEDA_OK)
        status = check_host(job, &meeting, error);
    if (status == RUEDA_OK)
        status = rueda_segment_meet(&meeting, &job->segment, error);
    if (status != RUEDA_OK)
        return status;
    if (job->topology == NULL || job->topology->host_count == 1)
        leave_store(job);
    else
        bar_collectives(job);
    status = open_messages(job);
    if (status != RUEDA_OK)
        rueda_segment_close(job->segment);
    return status;
}

rueda_status rueda_job_open(const struct rueda_config *config,
                            const struct rueda_job_args *args,
                            struct rueda_job **out, struct rueda_text *error)
{
    struct rueda_key key = {.present = false};
    struct rueda_seat seat;
    struct rueda_introduce_args introduction = {
        .seat = &seat,
        .key = &key,
        .exchange = args->exchange,
        .exchange_arg = args->exchange_arg,
        .deadline_ns = rueda_clock_ns() + config->start_timeout_ms * 1000000,
    };
    struct rueda_job *job;
    rueda_status status;

    status = rueda_seat_find(&args->query, &seat, error);
    if (status != RUEDA_OK)
        return status;
    rueda_log_set_rank(seat.rank);
    log_info("%s", seat.why.chars);
    if (config->key_file[0] != '\0')
        status = rueda_key_read_file(config->key_file, error, &key);
    if (status != RUEDA_OK)
        return status;
    job = job_new(config);
    status = RUEDA_ERR_NOMEM;
    if (job != NULL) {
        job->rank = seat.rank;
        job->size = seat.size;
        status = assemble(job, &introduction, error);
    }
    rueda_key_wipe(&key);
    if (status != RUEDA_OK) {
        if (job != NULL)
            job_free(job);
        return status;
    }
    log_info("joined job \"%s\" as rank %d of %d", seat.job, job->rank,
             job->size);
    *out = job;
    return RUEDA_OK;
}

rueda_status rueda_job_open_threads(const struct rueda_config *config, int size,
                                    struct rueda_job **out,
                                    struct rueda_text *error)
{
    struct rueda_segment **segments;
    struct rueda_loop_hub *hub = NULL;
    rueda_status status = RUEDA_ERR_NOMEM;
    int made = 0;

    if (size < 1 || size > RUEDA_SEGMENT_MAX) {
        rueda_text_set(error, "%d ranks as threads; 1 to %d can share memory",
                       size, RUEDA_SEGMENT_MAX);
        return RUEDA_ERR_LIMIT;
    }
    segments = calloc((size_t)size, sizeof(struct rueda_segment *));
    if (segments == NULL)
        return RUEDA_ERR_NOMEM;
    status = rueda_segment_threads(size, segments, error);
    if (status != RUEDA_OK)
        goto out_free;
    for (int i = 0; i < size && status == RUEDA_OK; i++)
        status = rueda_agreement_prepare(config, segments[i], error);
    if (status == RUEDA_OK)
        status = rueda_loop_hub_open(size, &hub);
    if (status != RUEDA_OK)
        goto err_close;
    for (made = 0; made < size; made++) {
        out[made] = job_new(config);
        if (out[made] == NULL)
            goto err_undo;
        out[made]->rank = made;
        out[made]->size = size;
        out[made]->place = (struct rueda_topology_place){.index = made,
                                                         .local_rank = made,
                                                         .local_size = size,
                                                         .cross_size = 1};
        out[made]->segment = segments[made];
        out[made]->hub = hub;
        status = open_messages(out[made]);
        if (status != RUEDA_OK) {
            free(out[made]);
            goto err_undo;
        }
    }
    free(segments);
    return RUEDA_OK;

err_undo:
    status = RUEDA_ERR_NOMEM;
    for (int i = 0; i < made; i++) {
        rueda_mesh_fini(&out[i]->mesh);
        free(out[i]);
    }
    for (int i = 0; i < size; i++)
        rueda_loop_hub_release(hub);
err_close:
    for (int i = 0; i < size; i++)
        rueda_segment_close(segments[i]);
out_free:
    free(segments);
    return status;
}

void rueda_job_close(struct rueda_job *job)
{
    /* First, so that who misses an endpoint finds out why. */
    rueda_segment_leave(job->segment);
    rueda_mesh_fini(&job->mesh);
    if (job->hub != NULL)
        rueda_loop_hub_leave(job->hub, job->rank);
    /* Wakes the others, who then find everything closed. */
    rueda_segment_close(job->segment);
    if (job->hub != NULL)
        rueda_loop_hub_release(job->hub);
    job_free(job);
}

void rueda_job_forked(struct rueda_job *job)
{
    rueda_segment_forked(job->segment);
    if (job->client != NULL)
        rueda_client_forked(job->client);
}
