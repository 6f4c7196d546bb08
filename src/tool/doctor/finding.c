/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings and lists of them. Every text that enters one loses its control
 * characters: much of it comes from other hosts, and all of it goes to a
 * terminal.
 */
#include "tool/doctor/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const verdicts[] = {
    [RUEDA_FINDING_OK] = "ok",
    [RUEDA_FINDING_WARN] = "warn",
    [RUEDA_FINDING_BAD] = "bad",
};

const char *rueda_finding_verdict_str(rueda_finding_verdict verdict)
{
    return verdicts[verdict];
}

bool rueda_finding_verdict_parse(const char *text, rueda_finding_verdict *out)
{
    for (int i = RUEDA_FINDING_OK; i <= RUEDA_FINDING_BAD; i++) {
        if (strcmp(text, verdicts[i]) != 0)
            continue;
        *out = (rueda_finding_verdict)i;
        return true;
    }
    return false;
}

static void make_harmless(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

void rueda_finding_copy(char *out, size_t room, const char *text)
{
    snprintf(out, room, "%s", text);
    make_harmless(out);
}

void rueda_finding_name(struct rueda_finding *finding, const char *name)
{
    rueda_finding_copy(finding->name, sizeof(finding->name), name);
}

void rueda_finding_value(struct rueda_finding *finding, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(finding->value, sizeof(finding->value), format, args);
    va_end(args);
    make_harmless(finding->value);
}

void rueda_finding_judge(struct rueda_finding *finding,
                         rueda_finding_verdict verdict, const char *format, ...)
{
    va_list args;

    finding->verdict = verdict;
    va_start(args, format);
    vsnprintf(finding->fix, sizeof(finding->fix), format, args);
    va_end(args);
    make_harmless(finding->fix);
}

void rueda_findings_add(struct rueda_findings *findings,
                        const struct rueda_finding *finding)
{
    struct rueda_finding *bigger =
        realloc(findings->list,
                (size_t)(findings->count + 1) * sizeof(*findings->list));

    if (bigger == NULL)
        return;
    findings->list = bigger;
    findings->list[findings->count++] = *finding;
}

int rueda_findings_count(const struct rueda_findings *findings,
                         rueda_finding_verdict verdict)
{
    int count = 0;

    for (int i = 0; i < findings->count; i++)
        count += findings->list[i].verdict == verdict;
    return count;
}

rueda_finding_verdict
rueda_findings_worst(const struct rueda_findings *findings)
{
    rueda_finding_verdict worst = RUEDA_FINDING_OK;

    for (int i = 0; i < findings->count; i++)
        if (findings->list[i].verdict > worst)
            worst = findings->list[i].verdict;
    return worst;
}

void rueda_findings_fini(struct rueda_findings *findings)
{
    free(findings->list);
    *findings = (struct rueda_findings){.list = NULL};
}
