/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the doctor thinks of what was found: each function fills in a finding's
 * value and verdict, and the fix where one is due. Pure.
 */
#ifndef RUEDA_TOOL_DOCTOR_JUDGE_H
#define RUEDA_TOOL_DOCTOR_JUDGE_H

#include <stdint.h>

#include "tool/doctor/finding.h"
#include "tool/doctor/line.h"

#define RUEDA_UNLIMITED UINT64_MAX

/* As getrlimit() has it. */
struct rueda_judge_limit {
    uint64_t soft;
    uint64_t hard;
};

/* Descriptors that a rank may hold, with these numbers of ranks on its host and
 * on other hosts; an upper estimate. */
uint64_t rueda_files_needed(int local_ranks, int ranks, int streams);

void rueda_judge_files(struct rueda_finding *finding,
                       struct rueda_judge_limit limit, uint64_t needed);

/* has_pins: are there devices whose drivers lock memory? */
void rueda_judge_memlock(struct rueda_finding *finding,
                         struct rueda_judge_limit limit, bool has_pins);

/* Bytes of the machine, and what may still be touched; RUEDA_UNLIMITED: not
 * known. */
void rueda_judge_memory(struct rueda_finding *finding, uint64_t total,
                        uint64_t left);

/* quota: CPUs of the cgroup, 0 if it sets none; is_visible: is there a cgroup
 * to look at? */
void rueda_judge_quota(struct rueda_finding *finding, bool is_visible,
                       double quota, int usable);

void rueda_judge_version(struct rueda_finding *finding, const char *theirs,
                         const char *ours);

/* How ssh, or the program there, ended; words is its last line on stderr. */
struct rueda_reach {
    bool is_late; /* it did not end in time, and was killed */
    int code;     /* exit code */
    double seconds;
    const char *words;
};
void rueda_judge_ssh(struct rueda_finding *finding, const char *host,
                     const struct rueda_reach *reach);

/* offset: of its clock against that of `other`; error: how far that may be
 * wrong. In seconds. */
void rueda_judge_clock(struct rueda_finding *finding, const char *other,
                       double offset, double error);

/* An interface and another host's in the same network. */
void rueda_judge_mtu(struct rueda_finding *finding,
                     const struct rueda_net *mine, const char *other,
                     const struct rueda_net *theirs);

/* The library's message about a job that failed. */
void rueda_judge_failure(struct rueda_finding *finding, const char *words);

/* What NVIDIA's driver tells in /proc, and what its library says. */
struct rueda_gpus {
    int count;         /* that the driver has */
    char driver[32];   /* its version, or empty */
    bool has_library;  /* libcuda.so.1 could be opened */
    int error;         /* of its start; 0: none, else CUDA's number */
    int version;       /* of CUDA, 1000 * major + 10 * minor */
    int visible_count; /* that a program can use */
    char name[128];    /* of the first of these */
    int nccl;          /* NCCL's version, 10000 * major + 100 * minor; 0: it
                          is not there */
};
void rueda_judge_gpus(struct rueda_finding *finding,
                      const struct rueda_gpus *gpus);

/* Whether processes map each other's memory there. error: of the driver, in
 * these words (NULL: none); -1: what was mapped is something else; -2: it could
 * not be tried. */
void rueda_judge_gpu_ipc(struct rueda_finding *finding, int error,
                         const char *words);

/* The version in /proc/driver/nvidia/version, or false. */
bool rueda_nvidia_version(const char *text, char *out, size_t room);

#endif /* RUEDA_TOOL_DOCTOR_JUDGE_H */
