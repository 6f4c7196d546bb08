/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/doctor/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/locality.h"
#include "os/machine.h"
#include "tool/doctor/meet.h"
#include "tool/help.h"

#define RESOLVE_MS 3000

/* ---- On another host ---------------------------------------------------- */

/* On an examined host: print what was found, as lines that the doctor reads. */
static int say_facts(const struct rueda_doctor_job *job)
{
    struct rueda_line line = {.kind = RUEDA_LINE_FINDING};
    struct rueda_facts facts = {.net_count = 0};

    rueda_facts_find(job, &facts);
    for (int i = 0; i < facts.findings.count; i++) {
        line.finding = facts.findings.list[i];
        rueda_line_write(&line, stdout);
    }
    line.kind = RUEDA_LINE_NET;
    for (int i = 0; i < facts.net_count; i++) {
        line.net = facts.nets[i];
        rueda_line_write(&line, stdout);
    }
    line.kind = RUEDA_LINE_END;
    rueda_line_write(&line, stdout);
    rueda_findings_fini(&facts.findings);
    return EXIT_SUCCESS;
}

/* ---- The doctor --------------------------------------------------------- */

/* Without hosts a job here would have a rank a CPU. */
static int usual_slots(void)
{
    struct rueda_cpus usable;

    rueda_machine_cpus(&usable);
    return rueda_cpus_count(&usable);
}

/* One entry for each host; which of them are this machine is asked for all of
 * them together. */
static bool open_doctor(struct rueda_doctor *doctor)
{
    const int count = doctor->names.count;
    bool *is_local = calloc((size_t)count, sizeof(*is_local));

    doctor->hosts = calloc((size_t)count, sizeof(*doctor->hosts));
    if (is_local == NULL || doctor->hosts == NULL) {
        free(is_local);
        return false;
    }
    doctor->host_count = count;
    rueda_locality_find(&doctor->names, count, RESOLVE_MS, is_local);
    for (int i = 0; i < count; i++) {
        doctor->hosts[i].name = doctor->names.list[i].name;
        doctor->hosts[i].slots = doctor->names.list[i].slots;
        doctor->hosts[i].is_local = is_local[i];
    }
    free(is_local);
    return true;
}

static void close_doctor(struct rueda_doctor *doctor)
{
    for (int i = 0; i < doctor->host_count; i++)
        rueda_findings_fini(&doctor->hosts[i].facts.findings);
    free(doctor->hosts);
    rueda_pairs_fini(&doctor->pairs);
    rueda_findings_fini(&doctor->together);
    rueda_hosts_fini(&doctor->names);
}

/* The two examinations, then the report. The exit code tells scripts whether
 * anything is bad. */
static int examine(struct rueda_doctor *doctor)
{
    const char *json = doctor->options.json;
    int code = EXIT_SUCCESS;

    if (!open_doctor(doctor)) {
        fprintf(stderr, "rueda: no memory\n");
        return EXIT_FAILURE;
    }
    rueda_doctor_alone(doctor);
    rueda_doctor_together(doctor);
    rueda_doctor_print(doctor);
    if (json != NULL && !rueda_doctor_write_json(doctor, json)) {
        fprintf(stderr, "rueda: cannot write %s: %s\n", json, strerror(errno));
        code = EXIT_FAILURE;
    }
    if (rueda_doctor_count(doctor, RUEDA_FINDING_BAD) > 0)
        code = EXIT_FAILURE;
    return code;
}

static int mistake(const struct rueda_text *words)
{
    fprintf(stderr, "rueda: %s (see 'rueda doctor --help')\n", words->chars);
    return 2;
}

/* `rueda doctor`, and the roles in which it calls itself on other hosts. */
int rueda_doctor_main(int argc, char **argv)
{
    struct rueda_doctor doctor = {.hosts = NULL};
    struct rueda_text words = {{0}};
    int code;

    if (!rueda_doctor_options_parse(argc, argv, &doctor.options, &words))
        return mistake(&words);
    switch (doctor.options.role) {
    case RUEDA_DOCTOR_HELPS:
        fputs(rueda_doctor_help(), stdout);
        return EXIT_SUCCESS;
    case RUEDA_DOCTOR_FACTS:
        return say_facts(&doctor.options.job);
    case RUEDA_DOCTOR_MEETS:
        return rueda_doctor_meet();
    case RUEDA_DOCTOR_EXAMINES:
        break;
    }
    if (!rueda_doctor_hosts(&doctor.options, usual_slots(), &doctor.names,
                            &words))
        return mistake(&words);
    code = examine(&doctor);
    close_doctor(&doctor);
    return code;
}
