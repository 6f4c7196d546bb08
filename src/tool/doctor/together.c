/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts as a job: ruedarun starts two ranks on each, which meet in pairs.
 *
 * First all hosts in one job. If it fails, the first failure ends that job for
 * all hosts, and hides what the others are like; so each pair that has not met
 * is tried in a job of its own, a round of pairs at a time.
 */
#include <math.h>
#include <rueda/rueda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/doctor/doctor.h"
#include "tool/doctor/errand.h"
#include "tool/doctor/judge.h"

/* Starting and ending, and what a round takes at most. */
#define JOB_SECONDS   40
#define ROUND_SECONDS 4

/* Of more hosts, pairs are not tried apart. */
#define APART_MOST 16

/* A job on some of the hosts, and what its ranks have reported. */
struct job {
    struct rueda_doctor *doctor;
    const int *places; /* of its hosts, in doctor->met */
    int host_count;
    struct rueda_errand errand;
    bool *has_joined; /* [ranks] */
    int ranks;
    int joined;
    char failure[RUEDA_FINDING_WORDS]; /* the most telling one */
};

static const char *name_of(const struct job *job, int host)
{
    const struct rueda_doctor *doctor = job->doctor;

    return doctor->hosts[doctor->met[job->places[host]]].name;
}

/* ---- The command -------------------------------------------------------- */

/* The list for -H: each host with the ranks that examine it. */
static void add_hosts(const struct job *job, struct rueda_strings *out)
{
    const size_t room =
        (size_t)job->host_count * (RUEDA_LAUNCH_HOST_BYTES + 8) + 1;
    char *list = calloc(1, room);
    size_t len = 0;

    for (int i = 0; list != NULL && i < job->host_count; i++) {
        const char *name = name_of(job, i);
        const bool is_ipv6 = strchr(name, ':') != NULL;

        len += (size_t)snprintf(list + len, room - len, "%s%s%s%s:%d",
                                i == 0 ? "" : ",", is_ipv6 ? "[" : "", name,
                                is_ipv6 ? "]" : "", RUEDA_DOCTOR_RANKS);
    }
    rueda_strings_add(out, "-H");
    rueda_strings_add(out, list != NULL ? list : "");
    free(list);
}

static void add_pair(struct rueda_strings *out, const char *name,
                     const char *value)
{
    if (value == NULL)
        return;
    rueda_strings_add(out, name);
    rueda_strings_add(out, value);
}

/* Our launcher is beside us; on the hosts we are at the same place or on the
 * PATH. */
static void compose(const struct job *job, struct rueda_strings *out)
{
    const struct rueda_doctor_options *options = &job->doctor->options;
    char path[RUEDA_SSH_PATH_BYTES];
    char text[1100];
    const char *slash;

    rueda_ssh_own_path(path, sizeof(path));
    slash = strrchr(path, '/');
    snprintf(text, sizeof(text), "%.*s/ruedarun",
             slash != NULL ? (int)(slash - path) : 0, path);
    rueda_strings_add(out, text);
    rueda_strings_add(out, "-np");
    snprintf(text, sizeof(text), "%d", job->ranks);
    rueda_strings_add(out, text);
    add_hosts(job, out);
    add_pair(out, "-p", options->ssh.port);
    add_pair(out, "-i", options->ssh.identity);
    add_pair(out, "--network-interfaces", options->network);
    snprintf(text, sizeof(text), "%d", options->timeout_s);
    add_pair(out, "--start-timeout", text);
    rueda_strings_add(out, "/bin/sh");
    rueda_strings_add(out, "-c");
    rueda_strings_add(out, "[ -x \"$0\" ] && exec \"$0\" doctor --meet; "
                           "exec rueda doctor --meet");
    rueda_strings_add(out, path);
}

/* ---- What they say ------------------------------------------------------ */

/* A rank that found the cause reports more than one that only lost
 * its peers. */
static bool is_telling(const char *words)
{
    return strstr(words, "MTU") != NULL || strstr(words, "reach") != NULL;
}

/* Ranks are counted in the doctor's hosts, not in those of one job. */
static void take_half(const struct job *job, struct rueda_half half)
{
    if (half.rank >= job->ranks || half.peer >= job->ranks)
        return;
    half.rank =
        job->places[half.rank / RUEDA_DOCTOR_RANKS] * RUEDA_DOCTOR_RANKS +
        half.rank % RUEDA_DOCTOR_RANKS;
    half.peer =
        job->places[half.peer / RUEDA_DOCTOR_RANKS] * RUEDA_DOCTOR_RANKS +
        half.peer % RUEDA_DOCTOR_RANKS;
    rueda_pairs_take(&job->doctor->pairs, &half, job->doctor->met_count);
}

/* Take in one line that a rank printed: a measurement, that it has joined, or
 * why it failed. */
static void take_line(void *arg, const struct rueda_line *line)
{
    struct job *job = arg;

    if (line->kind == RUEDA_LINE_HALF)
        take_half(job, line->half);
    if (line->kind == RUEDA_LINE_JOINED && line->rank < job->ranks &&
        !job->has_joined[line->rank]) {
        job->has_joined[line->rank] = true;
        job->joined++;
    }
    if (line->kind == RUEDA_LINE_FAILED &&
        (job->failure[0] == '\0' ||
         (is_telling(line->words) && !is_telling(job->failure))))
        memcpy(job->failure, line->words, sizeof(job->failure));
}

/* Collect what the ranks of one trial job printed. Without any message of
 * theirs, what the launcher printed last is the reason. */
static void take_answer(struct job *job)
{
    const struct rueda_errand *errand = &job->errand;

    rueda_line_each(rueda_errand_text(&errand->out), take_line, job);
    if (job->failure[0] != '\0')
        return;
    if (errand->is_late)
        snprintf(job->failure, sizeof(job->failure),
                 "the ranks did not come to an end in %.0f s", errand->seconds);
    else if (errand->code != 0)
        rueda_errand_last_line(&errand->err, job->failure,
                               sizeof(job->failure));
    if (job->failure[0] == '\0' && job->joined < job->ranks)
        snprintf(job->failure, sizeof(job->failure), "not all ranks have come");
}

/* ---- Jobs --------------------------------------------------------------- */

static bool open_job(struct job *job, struct rueda_doctor *doctor,
                     const int *places, int host_count)
{
    *job = (struct job){.doctor = doctor,
                        .places = places,
                        .host_count = host_count,
                        .ranks = RUEDA_DOCTOR_RANKS * host_count};
    job->has_joined = calloc((size_t)job->ranks, sizeof(bool));
    if (job->has_joined == NULL)
        return false;
    compose(job, &job->errand.command);
    return true;
}

static void close_job(struct job *job)
{
    free(job->has_joined);
    rueda_errand_fini(&job->errand);
}

/* All hosts at once. False: it has failed. */
static bool meet_all(struct rueda_doctor *doctor, const int *places)
{
    struct rueda_finding finding = {.verdict = RUEDA_FINDING_OK};
    struct job job;
    bool is_well;

    if (!open_job(&job, doctor, places, doctor->met_count))
        return true;
    rueda_errands_run(&job.errand, 1,
                      JOB_SECONDS + doctor->options.timeout_s +
                          ROUND_SECONDS * rueda_pair_rounds(doctor->met_count));
    take_answer(&job);
    if (job.joined == job.ranks) {
        rueda_finding_name(&finding, "key exchange");
        rueda_finding_value(&finding,
                            "all %d ranks have proved the job's key, made for "
                            "this job and passed on by ruedarun",
                            job.ranks);
        rueda_findings_add(&doctor->together, &finding);
    }
    is_well = job.failure[0] == '\0';
    if (!is_well) {
        rueda_finding_name(&finding,
                           job.joined == job.ranks ? "pairs" : "start");
        rueda_judge_failure(&finding, job.failure);
        rueda_findings_add(&doctor->together, &finding);
    }
    close_job(&job);
    return is_well;
}

/* ---- Pairs apart -------------------------------------------------------- */

/* The pairs of a round that have not met yet. */
static int list_round(const struct rueda_doctor *doctor, int round,
                      int (*out)[2])
{
    int count = 0;

    for (int a = 0; a < doctor->met_count; a++) {
        const int b = rueda_pair_partner(doctor->met_count, round, a);

        if (b < a || rueda_pairs_find(&doctor->pairs, a, b, "tcp") != NULL)
            continue;
        out[count][0] = a;
        out[count][1] = b;
        count++;
    }
    return count;
}

/* One round of a tournament: pairs of hosts that meet at the same time, each in
 * a job of its own. */
static void meet_round(struct rueda_doctor *doctor, int round)
{
    struct rueda_errand errands[APART_MOST / 2];
    struct job jobs[APART_MOST / 2];
    int places[APART_MOST / 2][2];
    const int count = list_round(doctor, round, places);
    int opened = 0;

    while (opened < count &&
           open_job(&jobs[opened], doctor, places[opened], 2)) {
        errands[opened] = jobs[opened].errand;
        opened++;
    }
    rueda_errands_run(errands, opened, JOB_SECONDS + doctor->options.timeout_s);
    for (int i = 0; i < opened; i++) {
        jobs[i].errand = errands[i];
        take_answer(&jobs[i]);
        if (jobs[i].failure[0] != '\0')
            rueda_pairs_fail(&doctor->pairs, places[i][0], places[i][1],
                             jobs[i].failure);
        close_job(&jobs[i]);
    }
}

/* ---- All ---------------------------------------------------------------- */

/* Against the first of them. */
static void judge_clocks(struct rueda_doctor *doctor)
{
    for (int i = 1; i < doctor->met_count; i++) {
        const struct rueda_pair *pair =
            rueda_pairs_find(&doctor->pairs, 0, i, "tcp");
        struct rueda_finding finding = {.verdict = RUEDA_FINDING_OK};

        if (pair == NULL || !pair->has_offset)
            continue;
        rueda_judge_clock(&finding, doctor->hosts[doctor->met[0]].name,
                          pair->offset, pair->error);
        rueda_findings_add(&doctor->hosts[doctor->met[i]].facts.findings,
                           &finding);
    }
}

static bool can_meet(const struct rueda_doctor_host *host)
{
    const struct rueda_findings *findings = &host->facts.findings;

    for (int i = 0; i < findings->count; i++)
        if (strcmp(findings->list[i].name, "version") == 0)
            return host->is_reached &&
                   findings->list[i].verdict == RUEDA_FINDING_OK;
    return false;
}

/* Start a job over all hosts. If that fails and there are more than two, hosts
 * meet in pairs, which shows where the fault is. */
void rueda_doctor_together(struct rueda_doctor *doctor)
{
    int places[RUEDA_DOCTOR_HOSTS_MAX];

    for (int i = 0; i < doctor->host_count; i++) {
        if (!can_meet(&doctor->hosts[i]))
            continue;
        places[doctor->met_count] = doctor->met_count;
        doctor->met[doctor->met_count++] = i;
    }
    if (doctor->met_count == 0)
        return;
    /* One of them must not hide what the others are like. */
    if (!meet_all(doctor, places) && doctor->met_count > 2 &&
        doctor->met_count <= APART_MOST)
        for (int i = 0; i < rueda_pair_rounds(doctor->met_count); i++)
            meet_round(doctor, i);
    rueda_pairs_judge(&doctor->pairs);
    judge_clocks(doctor);
}
