/* SPDX-License-Identifier: Apache-2.0 */
/* The command `rueda sim`: how a model would train on a cluster that one does
 * not have. */
#ifndef RUEDA_TOOL_SIM_H
#define RUEDA_TOOL_SIM_H

#include "tool/sim_options.h"

/* One number of ranks with one algorithm. */
struct rueda_tool_sim_row {
    int ranks;
    int hosts;
    const char *algo;
    double compute_ms;   /* of a rank alone, with as many others at work */
    rueda_status status; /* of the attempt; what follows is set if it is well */
    struct rueda_training_result result;
    struct rueda_text words; /* why there is none */
    double measured_ms;      /* 0: not measured */
    double wall_s;           /* that the simulation took */
};

struct rueda_tool_sim_report {
    const struct rueda_tool_sim_options *options;
    const struct rueda_model *model;
    double alone_ms; /* a step of one rank, to which others are compared */
    struct rueda_tool_sim_row *rows;
    int count;
};

/* The words after "sim"; returns the exit code. */
int rueda_tool_sim_main(int argc, char **argv);

/* ---- sim_report.c, sim_plot.c ----------------------------------------- */

void rueda_tool_sim_head(const struct rueda_tool_sim_report *report);
void rueda_tool_sim_print(const struct rueda_tool_sim_report *report,
                          const struct rueda_tool_sim_row *row);

/* False with errno if the file could not be written. */
bool rueda_tool_sim_json(const struct rueda_tool_sim_report *report,
                         const char *path);
bool rueda_tool_sim_plot(const struct rueda_tool_sim_report *report,
                         const char *path);

/* How much a rank gets done, compared with one alone. */
static inline double
rueda_tool_sim_efficiency(const struct rueda_tool_sim_report *report,
                          const struct rueda_tool_sim_row *row)
{
    return row->result.step_ns > 0.0
               ? report->alone_ms * 1e6 / row->result.step_ns
               : 0.0;
}

#endif /* RUEDA_TOOL_SIM_H */
