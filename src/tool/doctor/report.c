/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's report, for people and for programs. */
#include <errno.h>
#include <math.h>
#include <rueda/rueda.h>
#include <stdio.h>
#include <string.h>

#include "tool/doctor/doctor.h"
#include "tool/json.h"

/* This many pairs, and hosts with all their checks, are shown; of more only
 * problems. */
#define PAIRS_SHOWN 36
#define HOSTS_SHOWN 8

int rueda_doctor_count(const struct rueda_doctor *doctor,
                       rueda_finding_verdict verdict)
{
    int count = rueda_findings_count(&doctor->together, verdict);

    for (int i = 0; i < doctor->host_count; i++)
        count +=
            rueda_findings_count(&doctor->hosts[i].facts.findings, verdict);
    for (int i = 0; i < doctor->pairs.count; i++)
        count += doctor->pairs.list[i].finding.verdict == verdict;
    return count;
}

/* ---- For people --------------------------------------------------------- */

static void print_fix(const struct rueda_finding *finding)
{
    if (finding->fix[0] != '\0')
        printf("        fix: %s\n", finding->fix);
}

static void print_checks(const struct rueda_findings *findings, bool is_brief)
{
    if (is_brief && rueda_findings_worst(findings) == RUEDA_FINDING_OK)
        printf("  %-5s %d checks\n",
               rueda_finding_verdict_str(RUEDA_FINDING_OK), findings->count);
    for (int i = 0; i < findings->count; i++) {
        const struct rueda_finding *finding = &findings->list[i];

        if (is_brief && finding->verdict == RUEDA_FINDING_OK)
            continue;
        printf("  %-5s %-14s %s\n", rueda_finding_verdict_str(finding->verdict),
               finding->name, finding->value);
        print_fix(finding);
    }
}

/* place: in the list of hosts that have met. */
static const char *name_of(const struct rueda_doctor *doctor, int place)
{
    return doctor->hosts[doctor->met[place]].name;
}

static void print_pair(const struct rueda_doctor *doctor,
                       const struct rueda_pair *pair)
{
    char names[2 * RUEDA_LAUNCH_HOST_BYTES + 8];

    snprintf(names, sizeof(names), "%s - %s", name_of(doctor, pair->a),
             name_of(doctor, pair->b));
    printf("  %-5s %-30s %-4s",
           rueda_finding_verdict_str(pair->finding.verdict), names, pair->way);
    if (isnan(pair->latency))
        printf(" %s\n", pair->finding.value);
    else
        printf(" %9.1f us  %7.2f GB/s\n", pair->latency * 1e6,
               pair->bandwidth * 1e-9);
    print_fix(&pair->finding);
}

/* Pairs that are well are shown up to a number, those with findings always. */
static void print_pairs(const struct rueda_doctor *doctor)
{
    const struct rueda_pairs *pairs = &doctor->pairs;
    int hidden = 0;

    if (pairs->count == 0)
        return;
    printf(
        "\npairs of ranks                         way     latency  bandwidth "
        "each way\n");
    for (int i = 0; i < pairs->count; i++) {
        if (i < PAIRS_SHOWN ||
            pairs->list[i].finding.verdict != RUEDA_FINDING_OK)
            print_pair(doctor, &pairs->list[i]);
        else
            hidden++;
    }
    if (hidden > 0)
        printf("        and %d more, which are well; --json FILE has all\n",
               hidden);
}

static void print_sum(const struct rueda_doctor *doctor)
{
    const int bad = rueda_doctor_count(doctor, RUEDA_FINDING_BAD);
    const int warnings = rueda_doctor_count(doctor, RUEDA_FINDING_WARN);

    if (bad == 0 && warnings == 0)
        printf("\nall is well\n");
    else
        printf("\n%d would stop a job, %d %s\n", bad, warnings,
               warnings == 1 ? "warning" : "warnings");
}

/* The report for people: each host, then all of them together, then the pairs.
 */
void rueda_doctor_print(const struct rueda_doctor *doctor)
{
    printf("rueda %s doctor\n", rueda_version());
    for (int i = 0; i < doctor->host_count; i++) {
        const struct rueda_doctor_host *host = &doctor->hosts[i];

        printf("\n%s%s\n", host->name, host->is_local ? " (this host)" : "");
        print_checks(&host->facts.findings, doctor->host_count > HOSTS_SHOWN);
    }
    if (doctor->together.count > 0) {
        printf("\ntogether: %d ranks on %d %s\n",
               RUEDA_DOCTOR_RANKS * doctor->met_count, doctor->met_count,
               doctor->met_count == 1 ? "host" : "hosts");
        print_checks(&doctor->together, false);
    }
    print_pairs(doctor);
    print_sum(doctor);
    fflush(stdout);
}

/* ---- For programs ------------------------------------------------------- */

static void json_field(FILE *file, const char *name, const char *text)
{
    fprintf(file, "\"%s\": ", name);
    rueda_json_text(file, text);
}

static void json_verdict(FILE *file, const struct rueda_finding *finding)
{
    json_field(file, "verdict", rueda_finding_verdict_str(finding->verdict));
    fputs(", ", file);
    json_field(file, "fix", finding->fix[0] != '\0' ? finding->fix : NULL);
}

static void json_checks(FILE *file, const struct rueda_findings *findings)
{
    fputs("[", file);
    for (int i = 0; i < findings->count; i++) {
        fputs(i == 0 ? "\n    {" : ",\n    {", file);
        json_field(file, "name", findings->list[i].name);
        fputs(", ", file);
        json_field(file, "value", findings->list[i].value);
        fputs(", ", file);
        json_verdict(file, &findings->list[i]);
        fputs("}", file);
    }
    fputs("]", file);
}

static void json_number(FILE *file, const char *name, double number)
{
    fprintf(file, ", \"%s\": ", name);
    rueda_json_number(file, number);
}

/* The pairs as an array, each with both measurements. */
static void json_pairs(FILE *file, const struct rueda_doctor *doctor)
{
    fputs("[", file);
    for (int i = 0; i < doctor->pairs.count; i++) {
        const struct rueda_pair *pair = &doctor->pairs.list[i];

        fputs(i == 0 ? "\n  {\"hosts\": [" : ",\n  {\"hosts\": [", file);
        rueda_json_text(file, name_of(doctor, pair->a));
        fputs(", ", file);
        rueda_json_text(file, name_of(doctor, pair->b));
        fputs("], ", file);
        json_field(file, "way", pair->way);
        json_number(file, "latency_us", pair->latency * 1e6);
        json_number(file, "bandwidth_gb_s", pair->bandwidth * 1e-9);
        json_number(file, "clock_offset_ms", pair->offset * 1e3);
        fputs(", ", file);
        json_field(file, "failure",
                   pair->finding.value[0] != '\0' ? pair->finding.value : NULL);
        fputs(", ", file);
        json_verdict(file, &pair->finding);
        fputs("}", file);
    }
    fputs("]", file);
}

/* The same report for programs. False with errno. */
bool rueda_doctor_write_json(const struct rueda_doctor *doctor,
                             const char *path)
{
    FILE *file = fopen(path, "we");
    bool has_failed;

    if (file == NULL)
        return false;
    fputs("{", file);
    json_field(file, "version", rueda_version());
    fprintf(file, ", \"bad\": %d, \"warnings\": %d,\n \"hosts\": [",
            rueda_doctor_count(doctor, RUEDA_FINDING_BAD),
            rueda_doctor_count(doctor, RUEDA_FINDING_WARN));
    for (int i = 0; i < doctor->host_count; i++) {
        fputs(i == 0 ? "\n  {" : ",\n  {", file);
        json_field(file, "name", doctor->hosts[i].name);
        fputs(", \"checks\": ", file);
        json_checks(file, &doctor->hosts[i].facts.findings);
        fputs("}", file);
    }
    fputs("],\n \"together\": ", file);
    json_checks(file, &doctor->together);
    fputs(",\n \"pairs\": ", file);
    json_pairs(file, doctor);
    fputs("}\n", file);
    has_failed = ferror(file) != 0;
    return fclose(file) == 0 && !has_failed;
}
