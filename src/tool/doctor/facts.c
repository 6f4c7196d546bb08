/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collecting the facts of this host: system, CPUs, memory, limits and networks.
 */
#include "tool/doctor/facts.h"

#include <dirent.h>
#include <errno.h>
#include <rueda/rueda.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/config.h"
#include "job/network.h"
#include "os/event.h"
#include "os/memory.h"
#include "tool/doctor/judge.h"
#include "tool/machine.h"
#include "tool/size.h"

/* Addresses of the segment that a host's ranks share, a rank. */
#define SEGMENT_BYTES ((size_t)64 << 30)

/* One word for "no limit", whatever this system's number for it is. */
static struct rueda_judge_limit limit_of(__rlimit_resource_t what)
{
    struct rlimit limit = {0, 0};

    getrlimit(what, &limit);
    return (struct rueda_judge_limit){
        limit.rlim_cur == RLIM_INFINITY ? RUEDA_UNLIMITED : limit.rlim_cur,
        limit.rlim_max == RLIM_INFINITY ? RUEDA_UNLIMITED : limit.rlim_max};
}

/* ---- The system --------------------------------------------------------- */

static void add_version(struct rueda_facts *facts)
{
    struct rueda_finding finding = {.verdict = RUEDA_FINDING_OK};

    rueda_finding_name(&finding, "version");
    rueda_finding_value(&finding, "%s", rueda_version());
    rueda_findings_add(&facts->findings, &finding);
}

/* The kernel. Old ones have no pidfds, and the library does with pipes. */
static void add_system(struct rueda_facts *facts)
{
    struct rueda_finding finding = {.verdict = RUEDA_FINDING_OK};
    struct utsname name;
    int fd;

    rueda_finding_name(&finding, "system");
    if (uname(&name) == 0)
        rueda_finding_value(&finding, "%s %s, %s", name.sysname, name.release,
                            name.machine);
    if (rueda_death_open_self(&fd) == RUEDA_OK)
        close(fd);
    else
        rueda_finding_judge(&finding, RUEDA_FINDING_WARN,
                            "no pidfd (%s): a rank whose child lives on may "
                            "be noticed late when it dies; take Linux 5.3 or "
                            "newer, and a container runtime that lets "
                            "pidfd_open through",
                            strerror(errno));
    rueda_findings_add(&facts->findings, &finding);
}

/* CPUs and the quota of the cgroup, compared with the ranks of this host. */
static void add_cpus(struct rueda_facts *facts,
                     const struct rueda_tool_machine *machine,
                     const struct rueda_doctor_job *job)
{
    struct rueda_finding finding = {.verdict = RUEDA_FINDING_OK};
    struct rueda_finding quota = {.verdict = RUEDA_FINDING_OK};

    rueda_finding_name(&finding, "cpus");
    rueda_finding_value(&finding, "%d, of which %d may be used: %s",
                        machine->cpus, machine->usable, machine->cpu);
    if (job->local_ranks > machine->usable)
        rueda_finding_judge(&finding, RUEDA_FINDING_WARN,
                            "%d ranks share %d CPUs and wait for each other: "
                            "start at most %d here",
                            job->local_ranks, machine->usable, machine->usable);
    rueda_findings_add(&facts->findings, &finding);
    rueda_judge_quota(&quota,
                      access("/proc/self/cgroup", R_OK) == 0 &&
                          access("/sys/fs/cgroup", X_OK) == 0,
                      machine->quota_cpus, machine->usable);
    rueda_findings_add(&facts->findings, &quota);
}

/* What a job would do: map a sparse memfd. Limits on addresses and on sizes of
 * files, and seccomp filters, show themselves here. */
static void add_shared_memory(struct rueda_facts *facts,
                              const struct rueda_doctor_job *job)
{
    const size_t bytes = (size_t)job->local_ranks * SEGMENT_BYTES;
    struct rueda_finding finding = {.verdict = RUEDA_FINDING_OK};
    char words[RUEDA_SIZE_TEXT];
    void *at = NULL;
    int fd = -1;

    rueda_finding_name(&finding, "shared memory");
    if (rueda_memfd_create("rueda-doctor", bytes, &fd) == RUEDA_OK &&
        rueda_memory_map_shared(fd, bytes, &at) == RUEDA_OK) {
        rueda_finding_value(&finding,
                            "a segment of %s of addresses can be mapped",
                            rueda_size_words(bytes, words));
        rueda_memory_unmap(at, bytes);
    } else {
        rueda_finding_value(&finding,
                            "a segment of %s of addresses cannot be mapped: %s",
                            rueda_size_words(bytes, words), strerror(errno));
        rueda_finding_judge(&finding, RUEDA_FINDING_WARN,
                            "ulimit -v unlimited; ulimit -f unlimited; only "
                            "pages that are touched take memory. Until then "
                            "ranks have less room for rueda_alloc()");
    }
    if (fd >= 0)
        close(fd);
    rueda_findings_add(&facts->findings, &finding);
}

/* ---- Limits and devices ------------------------------------------------- */

static int streams(void)
{
    struct rueda_text error = {{0}};
    struct rueda_config config;

    return rueda_config_load(&config, &error) == RUEDA_OK ? config.tcp_streams
                                                          : 1;
}

static bool has_rdma(void)
{
    DIR *dir = opendir("/sys/class/infiniband");
    const struct dirent *entry = NULL;

    if (dir == NULL)
        return false;
    do
        entry = readdir(dir);
    while (entry != NULL && entry->d_name[0] == '.');
    closedir(dir);
    return entry != NULL;
}

/* What ulimit allows: descriptors, locked memory, processes; and GPUs, whose
 * drivers lock memory. The trial of GPU memory forks, so it comes before this
 * process starts the driver. */
static void add_limits(struct rueda_facts *facts,
                       const struct rueda_doctor_job *job)
{
    struct rueda_finding files = {.verdict = RUEDA_FINDING_OK};
    struct rueda_finding memlock = {.verdict = RUEDA_FINDING_OK};
    struct rueda_finding gpus = {.verdict = RUEDA_FINDING_OK};
    struct rueda_finding ipc = {.verdict = RUEDA_FINDING_OK};
    const bool may_map = rueda_facts_has_gpus();
    bool has_gpus;

    if (may_map)
        rueda_facts_gpu_ipc(&ipc, "libcuda.so.1");
    has_gpus = rueda_facts_gpus(&gpus);

    rueda_judge_files(
        &files, limit_of(RLIMIT_NOFILE),
        rueda_files_needed(job->local_ranks, job->ranks, streams()));
    rueda_findings_add(&facts->findings, &files);
    rueda_judge_memlock(&memlock, limit_of(RLIMIT_MEMLOCK),
                        has_gpus || has_rdma());
    rueda_findings_add(&facts->findings, &memlock);
    rueda_findings_add(&facts->findings, &gpus);
    if (may_map)
        rueda_findings_add(&facts->findings, &ipc);
}

/* The interfaces by which other hosts are reached. */
static void add_network(struct rueda_facts *facts,
                        const struct rueda_doctor_job *job)
{
    struct rueda_finding finding = {.verdict = RUEDA_FINDING_OK};
    struct rueda_text words = {{0}};

    facts->net_count = rueda_facts_nets(facts->nets, RUEDA_NETS_MAX);
    for (int i = 0; i < facts->net_count; i++)
        rueda_text_add(&words, "%s%s %s mtu %d", i == 0 ? "" : "; ",
                       facts->nets[i].interface, facts->nets[i].network,
                       facts->nets[i].mtu);
    rueda_finding_name(&finding, "network");
    if (facts->net_count > 0)
        rueda_finding_value(&finding, "%s", words.chars);
    else
        rueda_finding_value(&finding, "no interface but loopback is up");
    if (facts->net_count == 0 && job->ranks > job->local_ranks)
        rueda_finding_judge(
            &finding, RUEDA_FINDING_BAD,
            "give this host an address that the others reach "
            "(ip link, ip address), or start the container with "
            "--network host");
    rueda_findings_add(&facts->findings, &finding);
}

/* How ranks here would have a job of several hosts protected. */
static void add_protection(struct rueda_facts *facts)
{
    struct rueda_finding finding = {.verdict = RUEDA_FINDING_OK};
    struct rueda_config config;
    struct rueda_text words = {{0}};

    if (rueda_config_load(&config, &words) == RUEDA_OK)
        rueda_network_tell_protection(&config, 0, &words);
    rueda_finding_name(&finding, "protection");
    rueda_finding_value(&finding, "%s", words.chars);
    rueda_findings_add(&facts->findings, &finding);
}

/* Everything that one host can find out about itself, in the order of the
 * report. */
void rueda_facts_find(const struct rueda_doctor_job *job,
                      struct rueda_facts *out)
{
    struct rueda_finding memory = {.verdict = RUEDA_FINDING_OK};
    struct rueda_tool_machine machine;

    rueda_tool_machine_read(&machine);
    add_version(out);
    add_system(out);
    add_cpus(out, &machine, job);
    rueda_judge_memory(&memory, machine.memory_total,
                       machine.memory_free == SIZE_MAX ? RUEDA_UNLIMITED
                                                       : machine.memory_free);
    rueda_findings_add(&out->findings, &memory);
    add_shared_memory(out, job);
    add_limits(out, job);
    add_network(out, job);
    if (job->ranks > job->local_ranks)
        add_protection(out);
}
