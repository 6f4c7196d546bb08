/* SPDX-License-Identifier: Apache-2.0 */
/* The results of `rueda sim` as a table and as JSON. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tool/json.h"
#include "tool/sim.h"

/* ---- The table -------------------------------------------------------- */

static const char *const compressions[] = {
    [RUEDA_COMPRESS_NONE] = "fp32",
    [RUEDA_COMPRESS_FP16] = "fp16",
    [RUEDA_COMPRESS_BF16] = "bf16",
};

static void print_wire(const char *name, const struct rueda_sim_wire *wire)
{
    printf("# %-11s %g Gbit/s, %g us\n", name, wire->bytes_per_s * 8 / 1e9,
           (double)wire->latency_ns / 1e3);
}

void rueda_tool_sim_head(const struct rueda_tool_sim_report *report)
{
    const struct rueda_tool_sim_options *options = report->options;
    const struct rueda_sim_net *net = &options->net;
    const struct rueda_model *model = report->model;
    char rate[RUEDA_MODEL_WORD + 4];

    printf("# model       %s, %d tensors, %.1f million parameters\n",
           model->name, model->gradient_count, model->elements / 1e6);
    printf("# step        %g ms of computation for %g %ss, %.0f %% of it "
           "forward\n",
           report->alone_ms, model->batch, model->sample, model->forward * 100);
    printf("# network     up to %d hosts of %d ranks, %d hosts a rack, "
           "oversubscription %g\n",
           net->hosts, net->ranks_per_host, net->hosts_per_rack,
           net->oversubscription);
    print_wire("link", &net->uplink);
    print_wire("local", &net->port);
    printf("# settings    %s on the wire, %d steps without the first, seed "
           "%llu\n",
           compressions[options->compression], options->steps - 1,
           (unsigned long long)options->seed);
    snprintf(rate, sizeof(rate), "%ss/s", model->sample);
    printf("%7s %6s %-17s %10s %11s %10s %9s %10s %11s", "ranks", "hosts",
           "algorithm", "step ms", "exposed ms", "efficiency", "bound ms",
           "of bound", rate);
    if (options->measured != NULL)
        printf(" %11s %7s", "measured", "off by");
    putchar('\n');
}

/* A row without steps: why. */
static void print_failure(const struct rueda_tool_sim_row *row)
{
    printf("%7d %6d %-17s ", row->ranks, row->hosts, row->algo);
    if (row->status != RUEDA_OK)
        printf("%s\n", row->words.chars);
    else if (row->result.failed > 0)
        printf("%d ranks end with \"%s\"; the last of them after %.3f ms\n",
               row->result.failed, rueda_status_str(row->result.status),
               row->result.over_ns / 1e6);
    else
        printf("%s%s\n", rueda_status_str(row->result.status),
               row->result.words.chars);
}

void rueda_tool_sim_print(const struct rueda_tool_sim_report *report,
                          const struct rueda_tool_sim_row *row)
{
    const double step_ms = row->result.step_ns / 1e6;

    if (row->status != RUEDA_OK || row->result.status != RUEDA_OK) {
        print_failure(row);
        return;
    }
    printf("%7d %6d %-17s %10.3f %11.3f %8.1f %% %9.3f %8.1f %% %11.0f",
           row->ranks, row->hosts, row->algo, step_ms,
           step_ms - row->compute_ms,
           100 * rueda_tool_sim_efficiency(report, row),
           row->result.bound_ns / 1e6,
           100 * row->result.bound_ns / row->result.step_ns,
           report->model->batch * row->ranks / step_ms * 1e3);
    if (row->measured_ms > 0)
        printf(" %11.3f %5.1f %%", row->measured_ms,
               100 * (step_ms / row->measured_ms - 1));
    putchar('\n');
}

/* ---- JSON ------------------------------------------------------------- */

/* With a comma before it: it is never the first of its object. */
static void field(FILE *file, const char *name, double number)
{
    fprintf(file, ", \"%s\": ", name);
    rueda_json_number(file, number);
}

static void write_row(FILE *file, const struct rueda_tool_sim_report *report,
                      const struct rueda_tool_sim_row *row)
{
    const struct rueda_training_result *result = &row->result;
    const bool is_well = row->status == RUEDA_OK && result->status == RUEDA_OK;

    fprintf(file, "{\"ranks\": %d, \"hosts\": %d, \"algo\": ", row->ranks,
            row->hosts);
    rueda_json_text(file, row->algo);
    fputs(", \"status\": ", file);
    rueda_json_text(file, row->status != RUEDA_OK
                              ? row->words.chars
                              : rueda_status_str(result->status));
    field(file, "wall_s", row->wall_s);
    if (row->status == RUEDA_OK) {
        field(file, "over_ms", result->over_ns / 1e6);
        field(file, "failed_ranks", result->failed);
        field(file, "events", (double)result->events);
        fprintf(file, ", \"digest\": \"%016llx\"",
                (unsigned long long)result->digest);
    }
    if (is_well) {
        field(file, "step_ms", result->step_ns / 1e6);
        field(file, "first_ms", result->first_ns / 1e6);
        field(file, "compute_ms", row->compute_ms);
        field(file, "exposed_ms", result->step_ns / 1e6 - row->compute_ms);
        field(file, "efficiency", rueda_tool_sim_efficiency(report, row));
        field(file, "bound_ms", result->bound_ns / 1e6);
    }
    if (row->measured_ms > 0)
        field(file, "measured_ms", row->measured_ms);
    fputs("}", file);
}

bool rueda_tool_sim_json(const struct rueda_tool_sim_report *report,
                         const char *path)
{
    const struct rueda_tool_sim_options *options = report->options;
    FILE *file = fopen(path, "we");
    bool is_well;

    if (file == NULL)
        return false;
    fputs("{\"model\": ", file);
    rueda_json_text(file, report->model->name);
    field(file, "parameters", report->model->elements);
    field(file, "alone_ms", report->alone_ms);
    field(file, "hosts", options->net.hosts);
    field(file, "ranks_per_host", options->net.ranks_per_host);
    field(file, "link_bytes_per_s", options->net.uplink.bytes_per_s);
    field(file, "link_latency_us",
          (double)options->net.uplink.latency_ns / 1e3);
    field(file, "local_bytes_per_s", options->net.port.bytes_per_s);
    fputs(", \"wire\": ", file);
    rueda_json_text(file, compressions[options->compression]);
    field(file, "seed", (double)options->seed);
    fputs(", \"rows\": [", file);
    for (int i = 0; i < report->count; i++) {
        fputs(i == 0 ? "\n  " : ",\n  ", file);
        write_row(file, report, &report->rows[i]);
    }
    fputs("\n]}\n", file);
    is_well = fflush(file) == 0 && ferror(file) == 0;
    return fclose(file) == 0 && is_well;
}
