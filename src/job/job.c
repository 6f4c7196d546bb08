/* SPDX-License-Identifier: Apache-2.0 */
#define RUEDA_LOG_TAG "job"

#include "job/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/key.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/machine.h"
#include "os/memory.h"
#include "segment/meet.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"

/* ---- What rank 0 decides for all --------------------------------------- */

#define LEAST_RING ((size_t)1 << 20)
#define MOST_RING  ((size_t)2 << 20)

/*
 * A ring should be about twice as large as a core's own cache (segment/slab.h
 * says why), and all rings together should leave half of the shared cache to
 * what passes through them.
 */
static size_t ring_bytes(const struct rueda_config *config, int size)
{
    struct rueda_caches caches;
    size_t ring = LEAST_RING;

    if (config->ring_bytes > 0)
        return config->ring_bytes;
    rueda_machine_caches(&caches);
    while (ring < MOST_RING && ring < 2 * caches.l2_bytes &&
           ring * 4 * (size_t)size <= caches.l3_bytes)
        ring *= 2;
    return ring;
}

/* RUEDA_TUNE_FILE first, RUEDA_ALGO after it, so that the latter wins. */
static rueda_status algo_text(const struct rueda_config *config, char *out,
                              size_t bytes, struct rueda_text *error)
{
    rueda_status status = RUEDA_OK;
    size_t used;

    out[0] = '\0';
    if (config->tune_file[0] != '\0')
        status = rueda_file_read(config->tune_file, out, bytes);
    used = strlen(out);
    if (status == RUEDA_OK && (size_t)snprintf(out + used, bytes - used, ";%s",
                                               config->algo) >= bytes - used)
        status = RUEDA_ERR_LIMIT;
    if (status != RUEDA_OK)
        rueda_text_set(error, "RUEDA_TUNE_FILE \"%s\": %s", config->tune_file,
                       status == RUEDA_ERR_IO ? strerror(errno)
                                              : "too long a table");
    return status;
}

static rueda_status agree(const struct rueda_config *config,
                          struct rueda_segment *segment,
                          struct rueda_text *error)
{
    struct rueda_agreement *agreement = segment->agreement;
    rueda_status status;
    void *slab;

    status = algo_text(config, agreement->algo, sizeof(agreement->algo), error);
    if (status != RUEDA_OK)
        return status;
    agreement->transport = config->transport;
    agreement->cell_bytes = ring_bytes(config, segment->size) / RUEDA_CELLS;
    status = rueda_segment_alloc(
        segment, rueda_slab_bytes(segment->size, agreement->cell_bytes), &slab,
        error);
    if (status == RUEDA_OK)
        agreement->slab_offset = rueda_segment_offset(segment, slab);
    return status;
}

/* Called in every rank before others see its line. */
static rueda_status prepare(void *arg, struct rueda_segment *segment,
                            struct rueda_text *error)
{
    struct rueda_member *me = &segment->members[segment->me];
    size_t after = (size_t)(segment->size - segment->me - 1);
    rueda_status status = RUEDA_OK;

    if (segment->me == 0)
        status = agree(arg, segment, error);
    if (status == RUEDA_OK)
        status = rueda_segment_reserve(segment, after * rueda_shm_pair_bytes(),
                                       &me->pairs_offset, error);
    return status;
}

/* ---- Messages ---------------------------------------------------------- */

/* The channels of two ranks lie in the range of the lower one. */
static rueda_status connect_shm(struct rueda_mesh *mesh, int peer,
                                struct rueda_ep **out_ep)
{
    struct rueda_job *job = mesh->owner;
    int low = peer < mesh->rank ? peer : mesh->rank;
    int high = peer < mesh->rank ? mesh->rank : peer;
    uint64_t offset = job->segment->members[low].pairs_offset +
                      (uint64_t)(high - low - 1) * rueda_shm_pair_bytes();

    if (offset > job->segment->bytes - rueda_shm_pair_bytes())
        return RUEDA_ERR_MISMATCH;
    return rueda_shm_ep_open(job->segment,
                             rueda_segment_at(job->segment, offset),
                             mesh->rank == low ? 0 : 1, peer, peer, out_ep);
}

static rueda_status open_messages(struct rueda_job *job)
{
    const struct rueda_agreement *agreement = job->segment->agreement;
    bool is_loop =
        job->hub != NULL && agreement->transport != RUEDA_TRANSPORT_SHM;

    job->has_slab = agreement->transport == RUEDA_TRANSPORT_AUTO;
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

/* ---- Opening ------------------------------------------------------------ */

static struct rueda_job *job_new(const struct rueda_config *config, int rank,
                                 int size)
{
    struct rueda_job *job = calloc(1, sizeof(*job));

    if (job == NULL)
        return NULL;
    job->config = *config;
    job->rank = rank;
    job->size = size;
    return job;
}

static rueda_status check_place(const struct rueda_config *config,
                                struct rueda_text *error)
{
    if (config->size == 0) {
        rueda_text_set(error, "a job of 0 ranks; RUEDA_SIZE is at least 1");
        return RUEDA_ERR_INVALID;
    }
    if (config->rank < 0 || config->size < 0) {
        rueda_text_set(error,
                       "%s is set and %s is not; a rank needs both, or neither "
                       "for a job of one",
                       config->rank < 0 ? "RUEDA_SIZE" : "RUEDA_RANK",
                       config->rank < 0 ? "RUEDA_RANK" : "RUEDA_SIZE");
        return RUEDA_ERR_INVALID;
    }
    if (config->size > RUEDA_SEGMENT_MAX) {
        rueda_text_set(error, "a job of %d ranks; up to %d can share a host",
                       config->size, RUEDA_SEGMENT_MAX);
        return RUEDA_ERR_LIMIT;
    }
    if (config->rank >= config->size) {
        rueda_text_set(error, "rank %d in a job of %d; ranks go from 0 to %d",
                       config->rank, config->size, config->size - 1);
        return RUEDA_ERR_INVALID;
    }
    if (config->transport == RUEDA_TRANSPORT_LOOP) {
        rueda_text_set(error,
                       "RUEDA_TRANSPORT is \"loop\", which joins threads "
                       "of one process; take shm or auto");
        return RUEDA_ERR_INVALID;
    }
    return RUEDA_OK;
}

rueda_status rueda_job_open(const struct rueda_config *config,
                            struct rueda_job **out, struct rueda_text *error)
{
    struct rueda_key key = {.present = false};
    struct rueda_meeting meeting = {
        .rank = config->rank,
        .size = config->size,
        .job = config->job,
        .key = &key,
        .deadline_ns = rueda_clock_ns() + config->start_timeout_ms * 1000000,
        .inherited = config->segment_fd,
        .prepare = prepare,
        .arg = (void *)config,
    };
    struct rueda_job *job;
    rueda_status status;

    status = check_place(config, error);
    if (status == RUEDA_OK && config->key_file[0] != '\0')
        status = rueda_key_read_file(config->key_file, error, &key);
    if (status != RUEDA_OK)
        return status;
    job = job_new(config, config->rank, config->size);
    status = RUEDA_ERR_NOMEM;
    if (job != NULL)
        status = rueda_segment_meet(&meeting, &job->segment, error);
    rueda_key_wipe(&key);
    if (status != RUEDA_OK)
        goto err_free;
    status = open_messages(job);
    if (status != RUEDA_OK)
        goto err_leave;
    log_info("joined job \"%s\" as rank %d of %d", config->job, job->rank,
             job->size);
    *out = job;
    return RUEDA_OK;

err_leave:
    rueda_segment_close(job->segment);
err_free:
    free(job);
    return status;
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
        status = prepare((void *)config, segments[i], error);
    if (status == RUEDA_OK)
        status = rueda_loop_hub_open(size, &hub);
    if (status != RUEDA_OK)
        goto err_close;
    for (made = 0; made < size; made++) {
        out[made] = job_new(config, made, size);
        if (out[made] == NULL)
            goto err_undo;
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
    free(job);
}
