/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job of LSF: which hosts it was given, with how many slots. LSF says so in
 * LSB_MCPU_HOSTS ("a 4 b 4"), in LSB_HOSTS ("a a b b") if that is short enough,
 * and in the file LSB_DJOB_HOSTFILE, a line for each slot. Any thread.
 */
#ifndef RUEDA_LAUNCH_LSF_H
#define RUEDA_LAUNCH_LSF_H

#include "launch/hosts.h"
#include "launch/options.h"

/* Are we in one? */
bool rueda_lsf_is_job(void);

/* Names and numbers in turn. False with a message: this is something else.
 * Pure. */
bool rueda_lsf_parse_counted(const char *text, struct rueda_hosts *out,
                             struct rueda_text *words);

/* A name for each slot, between blanks or on lines. The same. Pure. */
bool rueda_lsf_parse_names(const char *text, struct rueda_hosts *out,
                           struct rueda_text *words);

/* Forget the first host if it has one slot and all others have more: the node
 * that a batch script runs on where ranks are started by jsrun. Pure. */
void rueda_lsf_drop_launch_node(struct rueda_hosts *hosts);

/* The hosts of this job. With jsrun: those that it starts ranks on. */
bool rueda_lsf_hosts(bool is_jsrun, struct rueda_hosts *out,
                     struct rueda_text *words);

/* In an LSF job: choose jsrun if it is installed and no option forbids it, and
 * take the number of ranks and the hosts from the job if the user gives none.
 * False with a message on failure. */
bool rueda_lsf_fill_in(struct rueda_options *options, struct rueda_text *words);

#endif /* RUEDA_LAUNCH_LSF_H */
