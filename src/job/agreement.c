/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How rank 0 decides the settings that must be the same on all ranks, and how
 * the others take them over: the size of a ring from the caches, the algorithms
 * as one text, the transport, the ring and slab of the segment. A wrong setting
 * is found here, on rank 0, before any rank waits for it.
 */
#include "job/agreement.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "job/links.h"
#include "os/file.h"
#include "os/machine.h"
#include "os/memory.h"
#include "segment/slab.h"

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

/* A row of algo/select.h, and what ends it. */
static const char *stages_row(rueda_config_stages choice, const char *always,
                              const char *never)
{
    switch (choice) {
    case RUEDA_STAGES_ALWAYS:
        return always;
    case RUEDA_STAGES_NEVER:
        return never;
    case RUEDA_STAGES_AUTO:
        break;
    }
    return "";
}

/* RUEDA_ALGO last, after RUEDA_TUNE_FILE, so that it wins. */
static rueda_status algo_text(const struct rueda_config *config, char *out,
                              size_t bytes, struct rueda_text *error)
{
    rueda_status status = RUEDA_OK;
    size_t used =
        (size_t)snprintf(out, bytes, "%s%s",
                         stages_row(config->staged_allreduce, "allreduce:hier;",
                                    "allreduce:flat;"),
                         stages_row(config->staged_allgather, "allgather:hier;",
                                    "allgather:flat;"));

    if (config->tune_file[0] != '\0')
        status = rueda_file_read(config->tune_file, out + used, bytes - used);
    used = strlen(out);
    if (status == RUEDA_OK &&
        (size_t)snprintf(out + used, bytes - used, "%s%s", used > 0 ? ";" : "",
                         config->algo) >= bytes - used)
        status = RUEDA_ERR_LIMIT;
    if (status != RUEDA_OK)
        rueda_text_set(error, "RUEDA_TUNE_FILE \"%s\": %s", config->tune_file,
                       status == RUEDA_ERR_IO ? strerror(errno)
                                              : "too long a table");
    return status;
}

rueda_status rueda_agreement_decide(const struct rueda_config *config,
                                    char out[RUEDA_ROLLCALL_DECISION_BYTES],
                                    struct rueda_text *error)
{
    char algo[RUEDA_PATH_BYTES];
    rueda_status status = algo_text(config, algo, sizeof(algo), error);

    _Static_assert(RUEDA_TRANSPORT_MESSAGES < 10 &&
                       RUEDA_ENCRYPT_AUTHENTICATE < 10 &&
                       RUEDA_ROLLCALL_DECISION_BYTES >= 3 + RUEDA_PATH_BYTES,
                   "three digits, then rows");
    if (status == RUEDA_OK)
        snprintf(out, RUEDA_ROLLCALL_DECISION_BYTES, "%d%d%d%s",
                 (int)config->transport, (int)config->encrypt,
                 (int)config->repair, algo);
    return status;
}

bool rueda_agreement_decides_repair(const char *decision)
{
    return strnlen(decision, 3) == 3 && decision[2] == '1';
}

rueda_status rueda_agreement_heed(const char *decision,
                                  struct rueda_config *config)
{
    const int transport = decision[0] - '0';
    const char *rows;
    int encrypt;

    if (transport < 0 || transport > RUEDA_TRANSPORT_MESSAGES)
        return RUEDA_ERR_INVALID;
    encrypt = decision[1] - '0';
    if (encrypt < 0 || encrypt > RUEDA_ENCRYPT_AUTHENTICATE ||
        (decision[2] != '0' && decision[2] != '1'))
        return RUEDA_ERR_INVALID;
    rows = decision + 3;
    if (strlen(rows) >= sizeof(config->algo))
        return RUEDA_ERR_INVALID;
    config->repair = decision[2] == '1';
    config->transport = (rueda_config_transport)transport;
    config->encrypt = (rueda_config_encrypt)encrypt;
    config->tune_file[0] = '\0';
    config->staged_allreduce = RUEDA_STAGES_AUTO;
    config->staged_allgather = RUEDA_STAGES_AUTO;
    memcpy(config->algo, rows, strlen(rows) + 1);
    return RUEDA_OK;
}

rueda_status rueda_agreement_slabs(struct rueda_segment *segment, int size,
                                   uint64_t *out_slab, uint64_t *out_named,
                                   struct rueda_text *error)
{
    const size_t bytes = rueda_slab_bytes(size, segment->common->cell_bytes);
    rueda_status status;
    void *slab;

    status = rueda_segment_alloc(segment, bytes, &slab, error);
    if (status != RUEDA_OK)
        return status;
    *out_slab = rueda_segment_offset(segment, slab);
    /* Many programs never touch it. */
    return rueda_segment_reserve(segment, bytes, out_named, error);
}

/* Rank 0 decides for the ranks of this host and lays out the slab. */
static rueda_status agree(const struct rueda_config *config,
                          struct rueda_segment *segment,
                          struct rueda_text *error)
{
    struct rueda_segment_common *common = segment->common;
    rueda_status status;

    status = algo_text(config, common->algo, sizeof(common->algo), error);
    if (status != RUEDA_OK)
        return status;
    common->transport = config->transport;
    if (rueda_key_create(&common->key) != RUEDA_OK) {
        rueda_text_set(error, "no random numbers: %s", strerror(errno));
        return RUEDA_ERR_IO;
    }
    common->cell_bytes = ring_bytes(config, segment->size) / RUEDA_CELLS;
    common->fusion_bytes = config->fusion_bytes;
    common->repairs = config->repair;
    common->cache_capacity = (uint32_t)config->cache_capacity;
    return rueda_agreement_slabs(segment, segment->size, &common->slab_offset,
                                 &common->named_offset, error);
}

rueda_status rueda_agreement_prepare(const struct rueda_config *config,
                                     struct rueda_segment *segment,
                                     struct rueda_text *error)
{
    struct rueda_member *me = &segment->members[segment->me];
    rueda_status status = RUEDA_OK;

    if (segment->me == 0)
        status = agree(config, segment, error);
    if (status == RUEDA_OK)
        status = rueda_links_reserve(segment, &me->pairs_offset, error);
    return status;
}
