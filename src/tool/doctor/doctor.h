/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `rueda doctor`: checks the hosts of a job before it runs. First each host
 * alone, over ssh and all at once; then the hosts that answered together, as
 * ranks that ruedarun starts.
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
