/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hands of a simulated rank: they ask the engine's policy what submit.c,
 * wait.c and background.c ask it, and do what it says in virtual time. A seed
 * fails if the policy would leave an operation without a turn for longer than
 * the longest grace, and if it leaves one for ever, as the program does not end
 * then.
 */
#include "sim/program_drive.h"

#include "sim/program_rank.h"

/* Of a processor of 3 GHz. */
#define TICKS_A_NS 3

static int64_t now_ns(const struct scenario *scenario)
{
    return (int64_t)rueda_sim_now(scenario->sim);
}

void program_drive_open(struct scenario *scenario, int index)
{
    struct program_drive *drive = &scenario->rank[index].drive;
    const int ranks = scenario->settings.net.ranks_per_host;
    const struct rueda_policy_host host = {
        .cpus = 1 + below(&scenario->check, 2 * ranks + 1),
        .ranks = ranks,
        .quota = below(&scenario->check, 4) == 0 ? 0.5 : 0,
        .has_network = scenario->settings.net.hosts > 1,
        .spin_us = -1,
        .yield_us = -1,
    };

    *drive = (struct program_drive){.is_told = false};
    rueda_policy_set_patience(&drive->policy, &host);
}

void program_drive_submit(struct scenario *scenario, int index, size_t bytes)
{
    struct program_drive *drive = &scenario->rank[index].drive;
    struct rueda_policy *policy = &drive->policy;
    const int64_t now = now_ns(scenario);

    rueda_policy_weigh(policy, bytes);
    rueda_policy_be_used(policy);
    if (!drive->is_told)
        drive->told_ns = now;
    drive->is_told = true;
    if (!drive->is_untaken)
        drive->untaken_ns = now;
    drive->is_untaken = true;
    if (rueda_policy_may_help(policy) &&
        !rueda_policy_is_rush(policy, (uint64_t)now * TICKS_A_NS) &&
        rueda_policy_should_help(policy, now))
        drive->is_helping = true;
}

/* Until when the background thread leaves the work to others. */
static int64_t left_until_ns(const struct program_drive *drive)
{
    const int64_t grace =
        rueda_policy_grace_until_ns(&drive->policy, drive->told_ns);
    const int64_t help = rueda_policy_help_until_ns(&drive->policy);

    return help > grace ? help : grace;
}

/* Does the background thread drive, or take over? */
static bool is_backgrounds(struct scenario *scenario, int index)
{
    struct program_drive *drive = &scenario->rank[index].drive;
    const int64_t now = now_ns(scenario);
    const int64_t until = left_until_ns(drive);

    if (drive->is_background &&
        rueda_policy_help_until_ns(&drive->policy) <= now)
        return true;
    drive->is_background = false;
    if (now >= until) {
        rueda_policy_be_patient(&drive->policy, false);
        drive->is_background = true;
        return true;
    }
    if (drive->is_untaken &&
        until - drive->untaken_ns > RUEDA_POLICY_GRACE_ALONE_NS)
        complain(&scenario->check,
                 "rank %d: an operation has no turn for %lld us", index,
                 (long long)(until - drive->untaken_ns) / 1000);
    scenario->tally.left++;
    rueda_sim_spend(scenario->sim, index, (uint64_t)(until - now));
    return false;
}

bool program_drive_begin(struct scenario *scenario, int index, bool is_awaited)
{
    struct program_drive *drive = &scenario->rank[index].drive;

    scenario->tally.helped += drive->is_helping;
    if (!is_awaited && !drive->is_helping && drive->is_told &&
        !is_backgrounds(scenario, index))
        return false;
    drive->is_helping = false;
    drive->is_untaken = false;
    return true;
}

void program_drive_end(struct scenario *scenario, int index, bool is_idle)
{
    struct program_drive *drive = &scenario->rank[index].drive;

    if (is_idle) {
        rueda_policy_be_light(&drive->policy);
        /* It was told, and finds that others have done all. */
        if (drive->is_told && !drive->is_background)
            rueda_policy_be_patient(&drive->policy, true);
        drive->is_background = false;
    } else if (!drive->is_told) {
        drive->told_ns = now_ns(scenario);
    }
    drive->is_told = !is_idle;
}
