/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a host knows about itself without asking other hosts. Reads files of the
 * system, opens the driver's library of GPUs, and changes nothing.
 */
#ifndef RUEDA_TOOL_DOCTOR_FACTS_H
#define RUEDA_TOOL_DOCTOR_FACTS_H

#include "tool/doctor/finding.h"
#include "tool/doctor/line.h"

/* The job that is meant: ranks of this host, and of all. */
struct rueda_doctor_job {
    int local_ranks;
    int ranks;
};

#define RUEDA_NETS_MAX 32

struct rueda_facts {
    struct rueda_findings findings; /* the first is the version */
    struct rueda_net nets[RUEDA_NETS_MAX];
    int net_count;
};

/* out is to be all zero; end it by rueda_findings_fini(). */
void rueda_facts_find(const struct rueda_doctor_job *job,
                      struct rueda_facts *out);

/* Networks of the interfaces that are up and have an address, except loopback
 * and link-local ones; returns how many. */
int rueda_facts_nets(struct rueda_net *out, int room);

/* GPUs and their driver, in a finding; is anything there? */
bool rueda_facts_gpus(struct rueda_finding *finding);

/* The same says /proc, without the driver's library. */
bool rueda_facts_has_gpus(void);

/* Can processes map each other's memory of a GPU? Forks, so it comes before
 * anything else uses the driver in this process. */
void rueda_facts_gpu_ipc(struct rueda_finding *finding, const char *library);

#endif /* RUEDA_TOOL_DOCTOR_FACTS_H */
