/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/policy.h"

#include "base/least.h"

/* Spinning does not help where ranks share cores or pay for their time; nor
 * where each poll of a socket takes as long as giving way does. */
void rueda_policy_set_patience(struct rueda_policy *policy,
                               const struct rueda_policy_host *host)
{
    const bool is_crowded = host->cpus < host->ranks;
    const bool is_tight = host->quota > 0 && host->quota < host->ranks;

    policy->has_room = host->cpus >= 2 * host->ranks;
    policy->grace_least_ns = policy->has_room    ? RUEDA_POLICY_GRACE_NS
                             : host->has_network ? RUEDA_POLICY_GRACE_CROWDED_NS
                                                 : RUEDA_POLICY_GRACE_ALONE_NS;
    policy->grace_ns = policy->grace_least_ns;
    policy->light_bytes = host->has_network ? RUEDA_POLICY_LIGHT_BYTES
                                            : RUEDA_POLICY_LIGHT_ALONE_BYTES;
    policy->spin_ns =
        is_crowded || is_tight || host->has_network ? 0 : RUEDA_POLICY_SPIN_NS;
    policy->yield_ns = is_tight     ? 0
                       : is_crowded ? RUEDA_POLICY_YIELD_CROWDED_NS
                                    : RUEDA_POLICY_YIELD_NS;
    if (host->spin_us >= 0)
        policy->spin_ns = RUEDA_US(host->spin_us);
    if (host->yield_us >= 0)
        policy->yield_ns = RUEDA_US(host->yield_us);
}

static void plan_next_check(struct rueda_policy *policy, int64_t now_ns)
{
    atomic_store_explicit(&policy->check_ns, now_ns + policy->check_period_ns,
                          memory_order_relaxed);
}

void rueda_policy_set_checks(struct rueda_policy *policy, int64_t stall_ns,
                             int64_t now_ns)
{
    int64_t period = stall_ns / RUEDA_POLICY_CHECKS_A_STALL;

    if (period == 0 || period > RUEDA_POLICY_CHECK_MOST_NS)
        period = RUEDA_POLICY_CHECK_MOST_NS;
    if (period < RUEDA_POLICY_CHECK_LEAST_NS)
        period = RUEDA_POLICY_CHECK_LEAST_NS;
    policy->check_period_ns = period;
    plan_next_check(policy, now_ns);
}

void rueda_policy_stand_back(struct rueda_policy *policy, int64_t now_ns)
{
    policy->back_ns = now_ns + policy->check_period_ns;
}

void rueda_policy_has_checked(struct rueda_policy *policy, int64_t now_ns)
{
    policy->last_check_ns = now_ns;
    plan_next_check(policy, now_ns);
}

int64_t rueda_policy_sleep_ns(const struct rueda_policy *policy, int64_t now_ns,
                              int64_t deadline_ns, int64_t network_ns,
                              bool is_silent)
{
    int64_t until = rueda_policy_check_ns(policy);
    int64_t left;

    if (deadline_ns >= 0)
        until = rueda_sooner(until, deadline_ns);
    left = until > now_ns ? until - now_ns : 0;
    if (is_silent)
        left = rueda_sooner(left, RUEDA_POLICY_SILENT_NS);
    return network_ns >= 0 ? rueda_sooner(network_ns, left) : left;
}

int64_t rueda_policy_awake_ns(struct rueda_policy *policy, bool is_waited_for,
                              int64_t now_ns)
{
    if (policy->busy_until_ns > 0 && now_ns < policy->busy_until_ns)
        return 0;
    policy->busy_until_ns = 0;
    return is_waited_for || policy->yield_ns < RUEDA_POLICY_YIELD_UNASKED_NS
               ? policy->yield_ns
               : RUEDA_POLICY_YIELD_UNASKED_NS;
}

void rueda_policy_be_patient(struct rueda_policy *policy, bool have_driven)
{
    if (!have_driven)
        policy->grace_ns = policy->grace_least_ns;
    else if (policy->grace_ns < RUEDA_POLICY_GRACE_MOST_NS)
        policy->grace_ns *= 2;
}

bool rueda_policy_stays_awake(struct rueda_policy *policy, int64_t now_ns)
{
    if (atomic_exchange_explicit(&policy->is_used, false, memory_order_relaxed))
        policy->used_ns = now_ns;
    return policy->grace_ns >= RUEDA_POLICY_GRACE_MOST_NS &&
           now_ns - policy->used_ns < RUEDA_POLICY_AWAKE_NS;
}
