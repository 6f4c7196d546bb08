/* SPDX-License-Identifier: Apache-2.0 */
#define RUEDA_LOG_TAG "transport"

#include "base/log.h"
#include "transport/transport.h"

bool rueda_term_drops(struct rueda_term *term, struct rueda_tag tag)
{
    if (!rueda_term_is_past(term, tag))
        return false;
    if (term->dropped++ == 0)
        log_info("a message of term %u came in term %u and was dropped; more "
                 "from this peer are dropped without a word",
                 tag.term, term->current);
    return true;
}
