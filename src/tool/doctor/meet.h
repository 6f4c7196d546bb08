/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doctor's ranks: started by ruedarun, two on each host, they join a job
 * and meet in pairs, one of each host for TCP between hosts, both of a host for
 * shared memory and for TCP inside it. What they find they say in lines
 * (line.h).
 */
#ifndef RUEDA_TOOL_DOCTOR_MEET_H
#define RUEDA_TOOL_DOCTOR_MEET_H

/* Returns the exit code: 0 even if the job failed, which is then in
 * the report. */
int rueda_doctor_meet(void);

#endif /* RUEDA_TOOL_DOCTOR_MEET_H */
