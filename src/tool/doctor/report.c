/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor tells people, and programs. */
#include <errno.h>
#include <math.h>
#include <rueda/rueda.h>
#include <stdio.h>
#include <string.h>

#include "tool/doctor/doctor.h"
#include "tool/json.h"

/* So many pairs, and hosts with all of their checks, are shown; beyond that
 * only where something is wrong. */
#define PAIRS_SHOWN 36
#define HOSTS_SHOWN 8

int rueda_doctor_count(const struct rueda_doctor *doctor, rueda_verdict verdict)
{
    int count = rueda_checks_count(&doctor->together, verdict);

    for (int i = 0; i < doctor->host_count; i++)
        count += rueda_checks_count(&doctor->hosts[i].facts.checks, verdict);
    for (int i = 0; i < doctor->pairs.count; i++)
        count += doctor->pairs.list[i].check.verdict == verdict;
    return count;
}

/* ---- For people --------------------------------------------------------- */

static void print_fix(const struct rueda_check *check)
{
    if (check->fix[0] != '\0')
        printf("        fix: %s\n", check->fix);
}

static void print_checks(const struct rueda_checks *checks, bool is_brief)
{
    if (is_brief && rueda_checks_worst(checks) == RUEDA_VERDICT_OK)
        printf("  %-5s %d checks\n", rueda_verdict_str(RUEDA_VERDICT_OK),
               checks->count);
    for (int i = 0; i < checks->count; i++) {
        const struct rueda_check *check = &checks->list[i];

        if (is_brief && check->verdict == RUEDA_VERDICT_OK)
            continue;
        printf("  %-5s %-14s %s\n", rueda_verdict_str(check->verdict),
               check->name, check->value);
        print_fix(check);
    }
}

static const char *name_of(const struct rueda_doctor *doctor, int place)
{
    return doctor->hosts[doctor->met[place]].name;
}

static void print_pair(const struct rueda_doctor *doctor,
                       const struct rueda_pair *pair)
{
    char names[2 * RUEDA_HOST_BYTES + 8];

    snprintf(names, sizeof(names), "%s - %s", name_of(doctor, pair->a),
             name_of(doctor, pair->b));
    printf("  %-5s %-30s %-4s", rueda_verdict_str(pair->check.verdict), names,
           pair->way);
    if (isnan(pair->latency))
        printf(" %s\n", pair->check.value);
    else
        printf(" %9.1f us  %7.2f GB/s\n", pair->latency * 1e6,
               pair->bandwidth * 1e-9);
    print_fix(&pair->check);
}

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
        if (i < PAIRS_SHOWN || pairs->list[i].check.verdict != RUEDA_VERDICT_OK)
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
    const int bad = rueda_doctor_count(doctor, RUEDA_VERDICT_BAD);
    const int warnings = rueda_doctor_count(doctor, RUEDA_VERDICT_WARN);

    if (bad == 0 && warnings == 0)
        printf("\nall is well\n");
    else
        printf("\n%d would stop a job, %d %s\n", bad, warnings,
               warnings == 1 ? "warning" : "warnings");
}

void rueda_doctor_print(const struct rueda_doctor *doctor)
{
    printf("rueda %s doctor\n", rueda_version());
    for (int i = 0; i < doctor->host_count; i++) {
        const struct rueda_doctor_host *host = &doctor->hosts[i];

        printf("\n%s%s\n", host->name, host->is_local ? " (this host)" : "");
        print_checks(&host->facts.checks, doctor->host_count > HOSTS_SHOWN);
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

static void json_verdict(FILE *file, const struct rueda_check *check)
{
    json_field(file, "verdict", rueda_verdict_str(check->verdict));
    fputs(", ", file);
    json_field(file, "fix", check->fix[0] != '\0' ? check->fix : NULL);
}

static void json_checks(FILE *file, const struct rueda_checks *checks)
{
    fputs("[", file);
    for (int i = 0; i < checks->count; i++) {
        fputs(i == 0 ? "\n    {" : ",\n    {", file);
        json_field(file, "name", checks->list[i].name);
        fputs(", ", file);
        json_field(file, "value", checks->list[i].value);
        fputs(", ", file);
        json_verdict(file, &checks->list[i]);
        fputs("}", file);
    }
    fputs("]", file);
}

static void json_number(FILE *file, const char *name, double number)
{
    fprintf(file, ", \"%s\": ", name);
    rueda_json_number(file, number);
}

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
                   pair->check.value[0] != '\0' ? pair->check.value : NULL);
        fputs(", ", file);
        json_verdict(file, &pair->check);
        fputs("}", file);
    }
    fputs("]", file);
}

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
            rueda_doctor_count(doctor, RUEDA_VERDICT_BAD),
            rueda_doctor_count(doctor, RUEDA_VERDICT_WARN));
    for (int i = 0; i < doctor->host_count; i++) {
        fputs(i == 0 ? "\n  {" : ",\n  {", file);
        json_field(file, "name", doctor->hosts[i].name);
        fputs(", \"checks\": ", file);
        json_checks(file, &doctor->hosts[i].facts.checks);
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
