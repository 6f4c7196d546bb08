/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the doctor thinks of each fact of a host: fine, a warning or a problem,
 * and the fix.
 */
#include "tool/doctor/judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tool/size.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- Limits ------------------------------------------------------------- */

#define FEW_FILES  1024
#define GOOD_FILES 65536

/* Besides connections: standard streams, libraries, data that is open. */
#define OTHER_FILES 32

uint64_t rueda_files_needed(int local_ranks, int ranks, int streams)
{
    const uint64_t local = (uint64_t)local_ranks;
    const uint64_t others = (uint64_t)ranks - local;

    return 2 * local + 2 + others * (uint64_t)streams + OTHER_FILES;
}

static const char *number_words(uint64_t number, char *out, size_t room)
{
    if (number == RUEDA_UNLIMITED)
        snprintf(out, room, "unlimited");
    else
        snprintf(out, room, "%llu", (unsigned long long)number);
    return out;
}

/* Open files: a connection costs descriptors, and a program opens files of its
 * own. */
void rueda_judge_files(struct rueda_finding *finding,
                       struct rueda_judge_limit limit, uint64_t needed)
{
    const uint64_t wanted = needed > GOOD_FILES ? needed : GOOD_FILES;
    char soft[24];
    char hard[24];

    rueda_finding_name(finding, "open files");
    rueda_finding_value(finding, "%s (up to %s); a rank may need %llu",
                        number_words(limit.soft, soft, sizeof(soft)),
                        number_words(limit.hard, hard, sizeof(hard)),
                        (unsigned long long)needed);
    if (limit.soft >= needed && limit.soft >= FEW_FILES)
        return;
    rueda_finding_judge(
        finding, limit.soft < needed ? RUEDA_FINDING_BAD : RUEDA_FINDING_WARN,
        "ulimit -n %llu in this shell; for all sessions the line "
        "\"* - nofile %llu\" in /etc/security/limits.conf on that host, and a "
        "new login",
        (unsigned long long)wanted, (unsigned long long)wanted);
}

static const char *bytes_words(uint64_t bytes, char out[RUEDA_SIZE_TEXT])
{
    if (bytes == RUEDA_UNLIMITED)
        snprintf(out, RUEDA_SIZE_TEXT, "unlimited");
    else
        rueda_size_words((size_t)bytes, out);
    return out;
}

/* Locked memory matters only where GPUs or RDMA pin buffers. */
void rueda_judge_memlock(struct rueda_finding *finding,
                         struct rueda_judge_limit limit, bool has_pins)
{
    char text[RUEDA_SIZE_TEXT];

    rueda_finding_name(finding, "locked memory");
    bytes_words(limit.soft, text);
    if (limit.soft == RUEDA_UNLIMITED) {
        rueda_finding_value(finding, "%s", text);
    } else if (!has_pins) {
        rueda_finding_value(finding, "%s; TCP and shared memory lock none",
                            text);
    } else {
        rueda_finding_value(finding, "%s; GPUs and RDMA lock memory", text);
        rueda_finding_judge(finding, RUEDA_FINDING_WARN,
                            "ulimit -l unlimited; for all sessions the line "
                            "\"* - memlock unlimited\" in "
                            "/etc/security/limits.conf, and a new login");
    }
}

#define LEAST_MEMORY ((uint64_t)64 << 20)
#define SOME_MEMORY  ((uint64_t)1 << 30)

/* Free memory, of the machine or of the cgroup, whichever is less. */
void rueda_judge_memory(struct rueda_finding *finding, uint64_t total,
                        uint64_t left)
{
    char all[RUEDA_SIZE_TEXT];
    char rest[RUEDA_SIZE_TEXT];

    rueda_finding_name(finding, "memory");
    rueda_finding_value(finding, "%s, of which %s free here and in the cgroup",
                        bytes_words(total, all),
                        left == RUEDA_UNLIMITED ? "an unknown part"
                                                : bytes_words(left, rest));
    if (left < SOME_MEMORY)
        rueda_finding_judge(finding,
                            left < LEAST_MEMORY ? RUEDA_FINDING_BAD
                                                : RUEDA_FINDING_WARN,
                            "end what uses it (top, sorted by M), or raise the "
                            "memory limit of the container or job");
}

/* Ranks that share less CPU time than they are many slow each other down. */
void rueda_judge_quota(struct rueda_finding *finding, bool is_visible,
                       double quota, int usable)
{
    rueda_finding_name(finding, "cpu quota");
    if (!is_visible)
        rueda_finding_value(finding,
                            "not to be seen: no cgroup is mounted here");
    else if (quota <= 0)
        rueda_finding_value(finding, "none");
    else
        rueda_finding_value(finding, "%.2f CPUs, of %d that may be used", quota,
                            usable);
    if (quota > 0 && quota < usable)
        rueda_finding_judge(
            finding, RUEDA_FINDING_WARN,
            "start at most %d ranks here, or raise the CPU limit "
            "of the container (docker --cpus, resources.limits)",
            quota < 1 ? 1 : (int)quota);
}

/* ---- Hosts -------------------------------------------------------------- */

void rueda_judge_version(struct rueda_finding *finding, const char *theirs,
                         const char *ours)
{
    rueda_finding_name(finding, "version");
    rueda_finding_value(finding, "%s", theirs);
    if (strcmp(theirs, ours) != 0)
        rueda_finding_judge(finding, RUEDA_FINDING_BAD,
                            "install the same version as here, %s, at the same "
                            "place on every host",
                            ours);
}

/* What ssh says, and what helps. */
static const struct {
    const char *words;
    const char *fix;
} advice[] = {
    {"Permission denied",
     "let this user in without a question: ssh-copy-id %s, or -i FILE"},
    {"Host key verification failed",
     "log in once by hand and look at its key: ssh %s"},
    {"IDENTIFICATION HAS CHANGED",
     "if the host is a new one: ssh-keygen -R %s, then log in once by hand"},
    {"Could not resolve",
     "%s is no name that this host knows: mind the spelling, or add it to DNS, "
     "/etc/hosts or ~/.ssh/config"},
    {"Connection refused",
     "start sshd on %s (systemctl start ssh), or say its port by -p"},
    {"timed out", "is %s up, and does a firewall let ssh through?"},
    {"No route to host", "is %s up, and on a network that this host reaches?"},
    {"Network is unreachable",
     "is %s up, and on a network that this host reaches?"},
    {"not found", "install rueda on %s at the same place as here, or on the "
                  "PATH that ssh gives to commands"},
    {"unknown command", "%s has an older rueda: install the version of here"},
};

static const char *advice_for(const struct rueda_reach *reach)
{
    for (size_t i = 0; i < COUNT(advice); i++)
        if (strstr(reach->words, advice[i].words) != NULL)
            return advice[i].fix;
    return reach->code == 127 ? advice[COUNT(advice) - 2].fix
                              : "see that this works without a question and "
                                "prints nothing else: ssh %s true";
}

/* How ssh answered, with advice for the usual causes. */
void rueda_judge_ssh(struct rueda_finding *finding, const char *host,
                     const struct rueda_reach *reach)
{
    const char *fix = advice_for(reach);
    const char *mark = strstr(fix, "%s");

    rueda_finding_name(finding, "ssh");
    if (reach->is_late) {
        rueda_finding_value(finding, "no answer within %.0f s%s%s",
                            reach->seconds, reach->words[0] != '\0' ? ": " : "",
                            reach->words);
        rueda_finding_judge(finding, RUEDA_FINDING_BAD,
                            "is %s up, and does ssh %s true end by itself?",
                            host, host);
        return;
    }
    if (reach->words[0] != '\0')
        rueda_finding_value(finding, "%s", reach->words);
    else
        rueda_finding_value(
            finding, "ended with exit code %d and without a word", reach->code);
    rueda_finding_judge(finding, RUEDA_FINDING_BAD, "%.*s%s%s",
                        (int)(mark - fix), fix, host, mark + 2);
}

/* A tenth of a second is a step of training: traces no longer fit together. */
#define CLOCK_OFF 0.1

void rueda_judge_clock(struct rueda_finding *finding, const char *other,
                       double offset, double error)
{
    rueda_finding_name(finding, "clock");
    rueda_finding_value(finding, "%+.3f ms against %s, to %.3f ms",
                        offset * 1e3, other, error * 1e3);
    if (fabs(offset) > CLOCK_OFF)
        rueda_finding_judge(
            finding, RUEDA_FINDING_WARN,
            "let all hosts keep time: apt-get install chrony, or "
            "timedatectl set-ntp true");
}

/* Two interfaces of one network with different MTUs: long packets are lost. */
void rueda_judge_mtu(struct rueda_finding *finding,
                     const struct rueda_net *mine, const char *other,
                     const struct rueda_net *theirs)
{
    const bool is_mine = mine->mtu > theirs->mtu;

    rueda_finding_name(finding, "mtu");
    rueda_finding_value(finding,
                        "%s has %d, but %s of %s on the same network %s has %d",
                        mine->interface, mine->mtu, theirs->interface, other,
                        mine->network, theirs->mtu);
    rueda_finding_judge(finding, RUEDA_FINDING_WARN,
                        "give both the same, for now by ip link set dev %s mtu "
                        "%d on %s, and in the network's configuration",
                        is_mine ? mine->interface : theirs->interface,
                        is_mine ? theirs->mtu : mine->mtu,
                        is_mine ? "this one" : other);
}

/* Advice for the message with which a trial job failed. */
void rueda_judge_failure(struct rueda_finding *finding, const char *words)
{
    rueda_finding_value(finding, "%s", words);
    if (strstr(words, "MTU") != NULL)
        rueda_finding_judge(
            finding, RUEDA_FINDING_BAD,
            "long packets are lost on the way: ip link set dev INTERFACE mtu "
            "1500 on both hosts, or raise the MTU of the switches between");
    else if (strstr(words, "reach") != NULL || strstr(words, "silent") != NULL)
        rueda_finding_judge(
            finding, RUEDA_FINDING_BAD,
            "let TCP pass between the hosts on all ports from 1024 (iptables, "
            "nft, security groups); where they have several networks name the "
            "right one by --network-interfaces");
    else
        rueda_finding_judge(
            finding, RUEDA_FINDING_BAD,
            "mend first what is bad above; if nothing is, "
            "RUEDA_LOG_LEVEL=debug "
            "ruedarun with these hosts and any program says more");
}

/* ---- GPUs --------------------------------------------------------------- */

#define NO_DEVICE 100 /* CUDA_ERROR_NO_DEVICE */

/* There are some, but no program can use them. */
static void judge_hidden_gpus(struct rueda_finding *finding,
                              const struct rueda_gpus *gpus, const char *driver)
{
    if (!gpus->has_library) {
        rueda_finding_value(finding, "%d, driver %s, but no libcuda.so.1",
                            gpus->count, driver);
        rueda_finding_judge(
            finding, RUEDA_FINDING_WARN,
            "install the driver's libraries (libcuda1), or start "
            "the container with --gpus all");
    } else if (gpus->error == 0 || gpus->error == NO_DEVICE) {
        rueda_finding_value(finding, "%d, driver %s, but none that may be seen",
                            gpus->count, driver);
        rueda_finding_judge(
            finding, RUEDA_FINDING_WARN,
            "unset CUDA_VISIBLE_DEVICES, or start the container "
            "with --gpus all");
    } else {
        rueda_finding_value(finding,
                            "%d, driver %s, but CUDA does not start (%d)",
                            gpus->count, driver, gpus->error);
        rueda_finding_judge(finding, RUEDA_FINDING_WARN,
                            "nvidia-smi says more: load the driver (modprobe "
                            "nvidia), or install libraries of its version");
    }
}

/* Without NCCL everything works, but between GPUs of their own more slowly. */
static void tell_gpus(struct rueda_finding *finding,
                      const struct rueda_gpus *gpus, const char *driver)
{
    char nccl[32] = "no NCCL";

    if (gpus->nccl > 0)
        snprintf(nccl, sizeof(nccl), "NCCL %d.%d.%d", gpus->nccl / 10000,
                 gpus->nccl % 10000 / 100, gpus->nccl % 100);
    rueda_finding_value(finding, "%d x %s, driver %s, CUDA %d.%d, %s",
                        gpus->visible_count, gpus->name, driver,
                        gpus->version / 1000, gpus->version % 1000 / 10, nccl);
    if (gpus->nccl == 0 && gpus->visible_count > 1)
        rueda_finding_judge(finding, RUEDA_FINDING_WARN,
                            "ranks with a GPU each use NCCL if it is there: "
                            "install nvidia-nccl-cu12 or libnccl2, or set "
                            "RUEDA_NCCL_LIB");
}

/* GPUs, the driver, and whether this process can see them. */
void rueda_judge_gpus(struct rueda_finding *finding,
                      const struct rueda_gpus *gpus)
{
    const char *driver = gpus->driver[0] != '\0' ? gpus->driver : "unknown";

    rueda_finding_name(finding, "gpus");
    if (gpus->visible_count > 0)
        tell_gpus(finding, gpus, driver);
    else if (gpus->count > 0)
        judge_hidden_gpus(finding, gpus, driver);
    else if (gpus->driver[0] != '\0')
        rueda_finding_value(finding, "none, but NVIDIA's driver %s", driver);
    else
        rueda_finding_value(finding, "none: NVIDIA's driver is not here");
}

void rueda_judge_gpu_ipc(struct rueda_finding *finding, int error,
                         const char *words)
{
    if (error == 0)
        rueda_finding_value(finding, "processes map each other's memory");
    else if (error == -2)
        rueda_finding_value(finding, "not tried: no second process");
    else
        rueda_finding_value(finding, "tensors go by way of the host: %s (%d)",
                            error == -1     ? "what is mapped differs"
                            : words != NULL ? words
                                            : "unknown error",
                            error);
    if (error != 0 && error != -2)
        rueda_finding_judge(
            finding, RUEDA_FINDING_WARN,
            "let the ranks of a host share namespaces: start containers with "
            "--pid=host --ipc=host, or all ranks in one container");
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu ...": the
 * first word that is made of numbers and dots. */
bool rueda_nvidia_version(const char *text, char *out, size_t room)
{
    for (text += strspn(text, " \n"); *text != '\0';
         text += strspn(text, " \n")) {
        const size_t len = strcspn(text, " \n");

        if (strspn(text, "0123456789.") == len &&
            memchr(text, '.', len) != NULL && len < room) {
            memcpy(out, text, len);
            out[len] = '\0';
            return true;
        }
        text += len;
    }
    return false;
}
