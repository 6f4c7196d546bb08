/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/plan.h"

#include <stdlib.h>
#include <string.h>

#define MOST_RANKS 65536

void rueda_plan_pack(const struct rueda_plan *plan, struct rueda_packer *packer)
{
    rueda_pack_number(packer, (uint32_t)plan->size);
    rueda_pack_number(packer, (uint32_t)plan->first_rank);
    rueda_pack_number(packer, (uint32_t)plan->count);
    rueda_pack_number(packer, plan->has_input);
    rueda_pack_number(packer, plan->bind);
    rueda_pack_number(packer, (uint32_t)plan->grace_ms);
    rueda_pack_text(packer, plan->folder);
    rueda_pack_list(packer, &plan->command);
    rueda_pack_list(packer, &plan->stores);
    rueda_pack_list(packer, &plan->variables);
    for (int i = 0; i < plan->count; i++)
        rueda_pack_list(packer, &plan->ranks[i]);
}

static bool is_sound(const struct rueda_plan *plan)
{
    if (plan->size < 1 || plan->size > MOST_RANKS || plan->first_rank < 0 ||
        plan->count < 1 || plan->count > plan->size ||
        plan->first_rank > plan->size - plan->count ||
        plan->bind > RUEDA_BIND_CORE || plan->grace_ms < 0 ||
        plan->folder[0] != '/' || plan->command.count < 1)
        return false;
    for (int i = 0; i < plan->stores.count; i++)
        if (strchr(plan->stores.list[i], ':') == NULL)
            return false;
    return true;
}

static bool are_variables(const struct rueda_strings *list)
{
    for (int i = 0; i < list->count; i++)
        if (strchr(list->list[i], '=') == NULL)
            return false;
    return !list->is_short;
}

static bool unpack_ranks(struct rueda_unpacker *unpacker,
                         struct rueda_plan *plan)
{
    plan->ranks = calloc((size_t)plan->count, sizeof(*plan->ranks));
    if (plan->ranks == NULL)
        return false;
    for (int i = 0; i < plan->count; i++) {
        rueda_unpack_list(unpacker, &plan->ranks[i]);
        if (unpacker->is_bad || !are_variables(&plan->ranks[i]))
            return false;
    }
    return true;
}

/* A folder that does not fit is none. */
static void unpack_folder(struct rueda_unpacker *unpacker, char *out)
{
    size_t len;
    const char *folder = rueda_unpack_bytes(unpacker, &len);

    if (len < RUEDA_FOLDER_BYTES && memchr(folder, '\0', len) == NULL)
        memcpy(out, folder, len);
}

bool rueda_plan_unpack(const struct rueda_frame *frame, struct rueda_plan *out)
{
    struct rueda_unpacker unpacker;
    struct rueda_plan plan = {.ranks = NULL};
    uint32_t has_input;

    rueda_unpacker_begin(&unpacker, frame);
    plan.size = (int)rueda_unpack_number(&unpacker);
    plan.first_rank = (int)rueda_unpack_number(&unpacker);
    plan.count = (int)rueda_unpack_number(&unpacker);
    has_input = rueda_unpack_number(&unpacker);
    plan.has_input = has_input == 1;
    plan.bind = rueda_unpack_number(&unpacker);
    plan.grace_ms = (int)rueda_unpack_number(&unpacker);
    unpack_folder(&unpacker, plan.folder);
    rueda_unpack_list(&unpacker, &plan.command);
    rueda_unpack_list(&unpacker, &plan.stores);
    rueda_unpack_list(&unpacker, &plan.variables);
    if (!unpacker.is_bad && has_input <= 1 && is_sound(&plan) &&
        are_variables(&plan.variables) && !plan.command.is_short &&
        !plan.stores.is_short && unpack_ranks(&unpacker, &plan) &&
        rueda_unpacker_is_done(&unpacker)) {
        *out = plan;
        return true;
    }
    rueda_plan_fini(&plan);
    return false;
}

void rueda_plan_fini(struct rueda_plan *plan)
{
    rueda_strings_fini(&plan->command);
    rueda_strings_fini(&plan->stores);
    rueda_strings_fini(&plan->variables);
    for (int i = 0; plan->ranks != NULL && i < plan->count; i++)
        rueda_strings_fini(&plan->ranks[i]);
    free(plan->ranks);
    memset(plan, 0, sizeof(*plan));
}
