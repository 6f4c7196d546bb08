/* SPDX-License-Identifier: Apache-2.0 */
/* What the first rank of a host decides for all there, from its settings. */
#ifndef RUEDA_JOB_AGREEMENT_H
#define RUEDA_JOB_AGREEMENT_H

#include <rueda/rueda.h>

#include "base/config.h"
#include "base/text.h"
#include "segment/segment.h"

/* Called in every rank before others see its line: reserves what is its own in
 * the segment; the first fills in segment->agreement. */
rueda_status rueda_agreement_prepare(const struct rueda_config *config,
                                     struct rueda_segment *segment,
                                     struct rueda_text *error);

#endif /* RUEDA_JOB_AGREEMENT_H */
