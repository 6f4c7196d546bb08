/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of --help. Static. */
#ifndef RUEDA_TOOL_HELP_H
#define RUEDA_TOOL_HELP_H

const char *rueda_help(void);
const char *rueda_bench_help(void);
const char *rueda_doctor_help(void);
const char *rueda_step_help(void);
const char *rueda_info_help(void);
const char *rueda_tool_key_help(void);
const char *rueda_tool_sim_help(void);

#endif /* RUEDA_TOOL_HELP_H */
