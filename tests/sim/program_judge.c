/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/program_judge.h"

/* All ranks are told the same. */
static bool agree(struct scenario *scenario, int index, struct program_op *op)
{
    const struct rueda_ticket *ticket = op->ticket;
    struct plan_op *plan = op->plan;
    const int told = plan->request.kind == RUEDA_JOIN ? ticket->last_rank
                     : plan_is_change(plan)           ? ticket->made_set
                                                      : 0;

    if (plan_is_message(plan))
        return true;
    if (plan->has_ended &&
        (plan->outcome != ticket->op.outcome || plan->told != told))
        return complain(&scenario->check,
                        "rank %d: %s \"%s\" of round %d ends with %s (%d), and "
                        "elsewhere with %s (%d)",
                        index, rueda_kind_str((rueda_kind)plan->request.kind),
                        plan->name, scenario->rank[index].round,
                        rueda_status_str(ticket->op.outcome), told,
                        rueda_status_str(plan->outcome), plan->told);
    plan->has_ended = true;
    plan->outcome = ticket->op.outcome;
    plan->told = told;
    if (plan->request.kind == RUEDA_SET_ADD && ticket->op.outcome == RUEDA_OK)
        scenario->plan.sets[plan->changed].id = ticket->made_set;
    if (plan->request.kind == RUEDA_JOIN &&
        plan_index(&scenario->plan.sets[plan->set], told) < 0)
        return complain(&scenario->check, "rank %d: %d joined last", index,
                        told);
    return true;
}

bool program_judge(struct scenario *scenario, int index, struct program_op *op)
{
    const struct plan_op *plan = op->plan;
    const rueda_status outcome = op->ticket->op.outcome;
    const char *words = op->ticket->error;
    const char *fault;
    rueda_status expected = plan->expected;

    if (op->ticket->request.kind == RUEDA_SEND)
        expected = RUEDA_OK;
    if (outcome == RUEDA_ERR_CANCELLED && plan->may_end_early) {
        scenario->tally.cancelled++;
        return agree(scenario, index, op);
    }
    if (outcome != expected)
        return complain(&scenario->check,
                        "rank %d: %s \"%s\" of set %d, round %d: %s: %s", index,
                        rueda_kind_str((rueda_kind)plan->request.kind),
                        plan->name, plan->set, scenario->rank[index].round,
                        rueda_status_str(outcome), words != NULL ? words : "");
    scenario->tally.refused += outcome != RUEDA_OK;
    if (outcome != RUEDA_OK)
        return program_op_is_explained(op)
                   ? agree(scenario, index, op)
                   : complain(&scenario->check,
                              "rank %d: \"%s\" is refused with the wrong "
                              "words: %s",
                              index, plan->name, words != NULL ? words : "");
    fault = program_op_fault(&scenario->plan, op, index);
    if (fault != NULL)
        return complain(
            &scenario->check, "rank %d: %s \"%s\" of set %d, round %d: %s",
            index, rueda_kind_str((rueda_kind)plan->request.kind), plan->name,
            plan->set, scenario->rank[index].round, fault);
    scenario->tally.right++;
    return agree(scenario, index, op);
}
