/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/program_judge.h"

/* All ranks are told the same. */
static bool agree(struct scenario *scenario, int index, struct program_op *op)
{
    const struct rueda_ticket *ticket = op->ticket;
    struct script_op *script = op->script;
    const int told = script->request.kind == RUEDA_JOIN ? ticket->last_rank
                     : script_is_change(script)         ? ticket->made_set
                                                        : 0;

    if (script_is_message(script))
        return true;
    if (script->has_ended &&
        (script->outcome != ticket->op.outcome || script->told != told))
        return complain(&scenario->check,
                        "rank %d: %s \"%s\" of round %d ends with %s (%d), and "
                        "elsewhere with %s (%d)",
                        index, rueda_kind_str((rueda_kind)script->request.kind),
                        script->name, scenario->rank[index].round,
                        rueda_status_str(ticket->op.outcome), told,
                        rueda_status_str(script->outcome), script->told);
    script->has_ended = true;
    script->outcome = ticket->op.outcome;
    script->told = told;
    if (script->request.kind == RUEDA_SET_ADD && ticket->op.outcome == RUEDA_OK)
        scenario->script.sets[script->changed].id = ticket->made_set;
    if (script->request.kind == RUEDA_JOIN &&
        script_index(&scenario->script.sets[script->set], told) < 0)
        return complain(&scenario->check, "rank %d: %d joined last", index,
                        told);
    return true;
}

bool program_judge(struct scenario *scenario, int index, struct program_op *op)
{
    const struct script_op *script = op->script;
    const rueda_status outcome = op->ticket->op.outcome;
    const char *words = op->ticket->error;
    const char *fault;
    rueda_status expected = script->expected;

    if (op->ticket->request.kind == RUEDA_SEND)
        expected = RUEDA_OK;
    if (outcome == RUEDA_ERR_CANCELLED && script->may_end_early) {
        scenario->tally.cancelled++;
        return agree(scenario, index, op);
    }
    if (outcome != expected)
        return complain(&scenario->check,
                        "rank %d: %s \"%s\" of set %d, round %d: %s: %s", index,
                        rueda_kind_str((rueda_kind)script->request.kind),
                        script->name, script->set, scenario->rank[index].round,
                        rueda_status_str(outcome), words != NULL ? words : "");
    scenario->tally.refused += outcome != RUEDA_OK;
    if (outcome != RUEDA_OK)
        return program_op_is_explained(op)
                   ? agree(scenario, index, op)
                   : complain(&scenario->check,
                              "rank %d: \"%s\" is refused with the wrong "
                              "words: %s",
                              index, script->name, words != NULL ? words : "");
    fault = program_op_fault(&scenario->script, op, index);
    if (fault != NULL)
        return complain(
            &scenario->check, "rank %d: %s \"%s\" of set %d, round %d: %s",
            index, rueda_kind_str((rueda_kind)script->request.kind),
            script->name, script->set, scenario->rank[index].round, fault);
    scenario->tally.right++;
    return agree(scenario, index, op);
}
