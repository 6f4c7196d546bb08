/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `rueda doctor`: checks the hosts of a job before it runs. First each host
 * alone, over ssh and all at once; then the hosts that answered together, as
 * ranks that ruedarun starts.
 *
 *     doctor.c
 *       alone.c      on every host: rueda doctor --facts    -> lines (line.h)
 *                      facts.c, nets.c, gpus.c, gpu_ipc.c
 *       together.c   ruedarun: rueda doctor --meet          -> lines
 *                      meet.c
 *       judge.c, pair.c    what to think of what was found, as pure functions
 *       report.c           a table for people, JSON for programs
 *
 * Everything that is said about one thing is a finding (finding.h): a value, a
 * verdict, and a fix unless all is well. Nothing is changed on any host. One
 * thread; commands on hosts run as processes (errand.h), each with a deadline.
 */
#ifndef RUEDA_TOOL_DOCTOR_DOCTOR_H
#define RUEDA_TOOL_DOCTOR_DOCTOR_H

#include "tool/doctor/facts.h"
#include "tool/doctor/options.h"
#include "tool/doctor/pair.h"

struct rueda_doctor_host {
    const char *name;
    int slots;
    bool is_local;
    bool is_reached; /* it has reported everything about itself */
    struct rueda_facts facts;
};

struct rueda_doctor {
    struct rueda_doctor_options options;
    struct rueda_hosts names;
    struct rueda_doctor_host *hosts; /* [names.count] */
    int host_count;

    /* Together: hosts of the job, by their places above, pairs of them by
     * their places in this list, and what is to be said of all. */
    int met[RUEDA_DOCTOR_HOSTS_MAX];
    int met_count;
    struct rueda_pairs pairs;
    struct rueda_findings together;
};

int rueda_doctor_main(int argc, char **argv);

/* ---- alone.c ------------------------------------------------------------ */

/* Each host's facts, or why there are none. */
void rueda_doctor_alone(struct rueda_doctor *doctor);

/* ---- together.c --------------------------------------------------------- */

/* A job on all hosts that have been reached and have our version; if it fails,
 * one for each pair of them that has not met in it. */
void rueda_doctor_together(struct rueda_doctor *doctor);

/* ---- report.c ----------------------------------------------------------- */

/* How many findings, of hosts, pairs and all together, ended so. */
int rueda_doctor_count(const struct rueda_doctor *doctor,
                       rueda_finding_verdict verdict);
void rueda_doctor_print(const struct rueda_doctor *doctor);

/* False with errno. */
bool rueda_doctor_write_json(const struct rueda_doctor *doctor,
                             const char *path);

#endif /* RUEDA_TOOL_DOCTOR_DOCTOR_H */
