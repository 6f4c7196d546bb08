/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings that must be the same on all ranks. Rank 0 decides them from its
 * own; in a job of several hosts it announces them in the roll call. The first
 * rank of a host then writes them into the segment.
 */
#ifndef RUEDA_JOB_AGREEMENT_H
#define RUEDA_JOB_AGREEMENT_H

#include <rueda/rueda.h>

#include "base/config.h"
#include "base/text.h"
#include "job/rollcall.h"
#include "segment/segment.h"

/* Rank 0: its settings as text. RUEDA_ERR_IO, RUEDA_ERR_LIMIT: RUEDA_TUNE_FILE
 * cannot be read, or is too long. */
rueda_status rueda_agreement_decide(const struct rueda_config *config,
                                    char out[RUEDA_ROLLCALL_DECISION_BYTES],
                                    struct rueda_text *error);

/* Does rank 0 decide that the ranks repair their job? For the launcher. */
bool rueda_agreement_decides_repair(const char *decision);

/* Every rank: take them in place of one's own. RUEDA_ERR_INVALID if they make
 * no sense; config is then as it was. */
rueda_status rueda_agreement_heed(const char *decision,
                                  struct rueda_config *config);

/* Called in every rank before others see its line: reserves what is its own in
 * the segment; the first fills in segment->common. */
rueda_status rueda_agreement_prepare(const struct rueda_config *config,
                                     struct rueda_segment *segment,
                                     struct rueda_text *error);

/* Find room in this rank's range for two slabs of `size` members: that of
 * ordered operations, and that of named tensors. */
rueda_status rueda_agreement_slabs(struct rueda_segment *segment, int size,
                                   uint64_t *out_slab, uint64_t *out_named,
                                   struct rueda_text *error);

#endif /* RUEDA_JOB_AGREEMENT_H */
