/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is where: my place in the job, the segment that I share with the others
 * of my host, and how messages reach them.
 *
 * Opening blocks until all ranks are there or the deadline has passed. After
 * that a job belongs to the holder of the engine's token.
 */
#ifndef RUEDA_JOB_JOB_H
#define RUEDA_JOB_JOB_H

#include <rueda/rueda.h>

#include "base/config.h"
#include "base/text.h"
#include "segment/segment.h"
#include "segment/slab.h"
#include "transport/transport.h"

struct rueda_loop_hub;

struct rueda_job {
    struct rueda_config config;
    int rank;
    int size;
    struct rueda_segment *segment;
    struct rueda_slab slab;
    bool has_slab; /* false where settings ask for messages only */
    struct rueda_mesh mesh;
    struct rueda_loop_hub *hub; /* ranks are threads: how messages go */
};

/*
 * Join the job that config describes (rank and size included). On failure
 * error has the words and nothing is left.
 */
rueda_status rueda_job_open(const struct rueda_config *config,
                            struct rueda_job **out, struct rueda_text *error);

/* All ranks of a job as threads: out[size]. */
rueda_status rueda_job_open_threads(const struct rueda_config *config, int size,
                                    struct rueda_job **out,
                                    struct rueda_text *error);

void rueda_job_close(struct rueda_job *job);

/* The name of the transport that messages take. */
const char *rueda_job_transport(const struct rueda_job *job);

#endif /* RUEDA_JOB_JOB_H */
