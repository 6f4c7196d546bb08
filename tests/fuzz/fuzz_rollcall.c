/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks say of themselves, read by rank 0, and what rank 0 announces of
 * all of them, read by the others: the table and where each rank is, or words
 * that say why there is no job.
 */
#include "base/bytes.h"
#include "fuzz/fuzz.h"
#include "job/agreement.h"
#include "job/rollcall.h"

/* What is accepted is written in no other way. */
static void try_rank(const uint8_t *data, size_t size)
{
    unsigned char again[RUEDA_SELF_BYTES];
    struct rueda_self self;
    rueda_status status = rueda_rollcall_read_rank(data, size, &self);

    if (status != RUEDA_OK) {
        must(status == RUEDA_ERR_INVALID);
        return;
    }
    must(self.contact_bytes < RUEDA_CONTACT_BYTES &&
         memchr(self.contact, 0, self.contact_bytes) == NULL);
    must(rueda_rollcall_write_rank(&self, again) == size);
    must(memcmp(again, data, size) == 0);
}

/* Rank 0's own settings, once heeded, are decided again in the same words. */
static void try_decision(const char *decision)
{
    struct rueda_config config = {.rank = 0};
    char again[RUEDA_ROLLCALL_DECISION_BYTES];
    struct rueda_text error = {{0}};

    if (rueda_agreement_heed(decision, &config) == RUEDA_OK) {
        must(rueda_agreement_decide(&config, again, &error) == RUEDA_OK);
        must(strcmp(again, decision) == 0);
    }
}

/* The choice is how many ranks the reader expects. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const int ranks = (int)fuzz_choice(&input);
    struct rueda_rollcall call = {.topology = NULL};
    struct rueda_text error = {{0}};
    rueda_status status =
        rueda_rollcall_read(input.data, input.size, ranks, &call, &error);

    try_rank(data, size);
    must(rueda_text_is_empty(&error) == (status == RUEDA_OK));
    must(status <= 0);
    if (status != RUEDA_OK) {
        must(call.topology == NULL && call.contacts == NULL);
        return 0;
    }
    must(call.topology->size == ranks);
    must(strlen(call.decision) + call.contacts_bytes < input.size);
    must(memcmp(call.contacts, input.data + input.size - call.contacts_bytes,
                call.contacts_bytes) == 0);
    try_decision(call.decision);
    rueda_rollcall_fini(&call);
    return 0;
}
