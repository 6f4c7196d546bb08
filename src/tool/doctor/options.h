/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of `rueda doctor`. Pure except for reading a hostfile; an
 * error becomes one line of text.
 */
#ifndef RUEDA_TOOL_DOCTOR_OPTIONS_H
#define RUEDA_TOOL_DOCTOR_OPTIONS_H

#include "base/text.h"
#include "launch/hosts.h"
#include "launch/ssh.h"
#include "tool/doctor/facts.h"

#define RUEDA_DOCTOR_HOSTS_MAX 128

typedef enum rueda_doctor_role {
    RUEDA_DOCTOR_EXAMINES,
    RUEDA_DOCTOR_FACTS, /* says what it finds here, on another host */
    RUEDA_DOCTOR_MEETS, /* is a rank that meets others */
    RUEDA_DOCTOR_HELPS, /* --help */
} rueda_doctor_role;

/* Texts are borrowed from argv. */
struct rueda_doctor_options {
    rueda_doctor_role role;
    const char *list;     /* -H */
    const char *file;     /* --hostfile */
    struct rueda_ssh ssh; /* -p, -i */
    const char *network;  /* --network-interfaces */
    const char *json;
    int timeout_s;
    struct rueda_doctor_job job; /* for the facts */
};

bool rueda_doctor_options_parse(int argc, char **argv,
                                struct rueda_doctor_options *out,
                                struct rueda_text *words);

/* The hosts that are meant, at most RUEDA_DOCTOR_HOSTS_MAX; of a list, "a" is
 * "a:1". Without any, this one, with `slots`. */
bool rueda_doctor_hosts(const struct rueda_doctor_options *options, int slots,
                        struct rueda_hosts *out, struct rueda_text *words);

#endif /* RUEDA_TOOL_DOCTOR_OPTIONS_H */
