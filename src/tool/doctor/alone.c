/* SPDX-License-Identifier: Apache-2.0 */
/* Each host by itself: this one directly, the others by ssh, all at a time. */
#include <rueda/rueda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/doctor/doctor.h"
#include "tool/doctor/errand.h"
#include "tool/doctor/judge.h"

static struct rueda_doctor_job job_of(const struct rueda_doctor *doctor,
                                      const struct rueda_doctor_host *host)
{
    return (struct rueda_doctor_job){
        .local_ranks = host->slots, .ranks = rueda_hosts_slots(&doctor->names)};
}

static void look_here(const struct rueda_doctor *doctor,
                      struct rueda_doctor_host *host)
{
    const struct rueda_doctor_job job = job_of(doctor, host);

    rueda_facts_find(&job, &host->facts);
    host->is_reached = true;
}

static void compose(const struct rueda_doctor *doctor,
                    const struct rueda_doctor_host *host,
                    struct rueda_strings *out)
{
    const struct rueda_doctor_job job = job_of(doctor, host);
    char arguments[64];
    char path[RUEDA_SSH_PATH_BYTES];

    rueda_ssh_own_path(path, sizeof(path));
    snprintf(arguments, sizeof(arguments), "doctor --facts %d %d",
             job.local_ranks, job.ranks);
    rueda_ssh_words(&doctor->options.ssh, host->name, path, "rueda", arguments,
                    out);
}

/* ---- What they say ------------------------------------------------------ */

/* Lines come from another machine, so their number is limited too. */
static void take_line(void *arg, const struct rueda_line *line)
{
    struct rueda_doctor_host *host = arg;
    struct rueda_facts *facts = &host->facts;

    if (line->kind == RUEDA_LINE_FINDING && facts->findings.count < 32)
        rueda_findings_add(&facts->findings, &line->finding);
    else if (line->kind == RUEDA_LINE_NET && facts->net_count < RUEDA_NETS_MAX)
        facts->nets[facts->net_count++] = line->net;
    else if (line->kind == RUEDA_LINE_END)
        host->is_reached = true;
}

/* ssh comes first in the report of a host, since without it the rest is
 * missing. */
static void add_front(struct rueda_findings *findings,
                      const struct rueda_finding *finding)
{
    rueda_findings_add(findings, finding);
    for (int i = findings->count - 1; i > 0; i--) {
        const struct rueda_finding later = findings->list[i];

        findings->list[i] = findings->list[i - 1];
        findings->list[i - 1] = later;
    }
}

/* Turn the answer of a host into findings. A host that gave none gets one
 * finding about ssh. */
static void take_answer(struct rueda_doctor_host *host,
                        const struct rueda_errand *errand)
{
    struct rueda_finding finding = {.verdict = RUEDA_FINDING_OK};
    char words[RUEDA_FINDING_WORDS];
    const struct rueda_reach reach = {.is_late = errand->is_late,
                                      .code = errand->code,
                                      .seconds = errand->seconds,
                                      .words = words};

    rueda_errand_last_line(&errand->err, words, sizeof(words));
    if (words[0] == '\0')
        rueda_errand_last_line(&errand->out, words, sizeof(words));
    rueda_line_each(rueda_errand_text(&errand->out), take_line, host);
    if (host->is_reached) {
        rueda_finding_name(&finding, "ssh");
        rueda_finding_value(&finding, "answered in %.2f s", errand->seconds);
    } else {
        rueda_judge_ssh(&finding, host->name, &reach);
    }
    add_front(&host->facts.findings, &finding);
}

/* ---- All ---------------------------------------------------------------- */

/* Ask all other hosts at the same time, with one limit for all. */
static void ask_others(struct rueda_doctor *doctor)
{
    struct rueda_errand *errands =
        calloc((size_t)doctor->host_count, sizeof(*errands));
    int count = 0;

    if (errands == NULL)
        return;
    for (int i = 0; i < doctor->host_count; i++)
        if (!doctor->hosts[i].is_local)
            compose(doctor, &doctor->hosts[i], &errands[count++].command);
    rueda_errands_run(errands, count, doctor->options.timeout_s);
    count = 0;
    for (int i = 0; i < doctor->host_count; i++) {
        if (doctor->hosts[i].is_local)
            continue;
        take_answer(&doctor->hosts[i], &errands[count]);
        rueda_errand_fini(&errands[count++]);
    }
    free(errands);
}

/* A host with another version answers, but no ranks are started there
 * (together.c). */
static void compare_versions(struct rueda_doctor *doctor)
{
    for (int i = 0; i < doctor->host_count; i++) {
        struct rueda_findings *findings = &doctor->hosts[i].facts.findings;

        for (int k = 0; k < findings->count; k++)
            if (strcmp(findings->list[k].name, "version") == 0) {
                char theirs[RUEDA_FINDING_WORDS];

                memcpy(theirs, findings->list[k].value, sizeof(theirs));
                rueda_judge_version(&findings->list[k], theirs,
                                    rueda_version());
            }
    }
}

/* The first host before this one that has an interface in the same network
 * with another longest packet. */
static bool find_other_mtu(const struct rueda_doctor *doctor, int i,
                           const struct rueda_net *mine,
                           struct rueda_finding *out)
{
    for (int k = 0; k < i; k++) {
        const struct rueda_facts *other = &doctor->hosts[k].facts;

        for (int n = 0; n < other->net_count; n++) {
            if (strcmp(other->nets[n].network, mine->network) != 0 ||
                other->nets[n].mtu == mine->mtu)
                continue;
            rueda_judge_mtu(out, mine, doctor->hosts[k].name, &other->nets[n]);
            return true;
        }
    }
    return false;
}

/* An interface with two networks is named once. */
static void compare_mtus(struct rueda_doctor *doctor)
{
    for (int i = 1; i < doctor->host_count; i++) {
        struct rueda_facts *facts = &doctor->hosts[i].facts;
        const char *named = "";

        for (int n = 0; n < facts->net_count; n++) {
            struct rueda_finding finding = {.verdict = RUEDA_FINDING_OK};

            if (strcmp(named, facts->nets[n].interface) == 0 ||
                !find_other_mtu(doctor, i, &facts->nets[n], &finding))
                continue;
            named = facts->nets[n].interface;
            rueda_findings_add(&facts->findings, &finding);
        }
    }
}

void rueda_doctor_alone(struct rueda_doctor *doctor)
{
    for (int i = 0; i < doctor->host_count; i++)
        if (doctor->hosts[i].is_local)
            look_here(doctor, &doctor->hosts[i]);
    ask_others(doctor);
    compare_versions(doctor);
    compare_mtus(doctor);
}
