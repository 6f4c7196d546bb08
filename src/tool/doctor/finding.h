/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `rueda doctor` has to say of one thing on one host: its name, what was
 * found, whether that is well, and what to do if it is not. Pure.
 */
#ifndef RUEDA_TOOL_DOCTOR_FINDING_H
#define RUEDA_TOOL_DOCTOR_FINDING_H

#include <stdbool.h>
#include <stddef.h>

typedef enum rueda_finding_verdict {
    RUEDA_FINDING_OK,
    RUEDA_FINDING_WARN, /* a job runs, but not as well as it could */
    RUEDA_FINDING_BAD,  /* it would stop a job */
} rueda_finding_verdict;

/* "ok", "warn" or "bad". */
const char *rueda_finding_verdict_str(rueda_finding_verdict verdict);
bool rueda_finding_verdict_parse(const char *text, rueda_finding_verdict *out);

#define RUEDA_FINDING_NAME  32
#define RUEDA_FINDING_WORDS 512

/* All zero is a finding that is well and says nothing. Texts have no control
 * characters. */
struct rueda_finding {
    char name[RUEDA_FINDING_NAME];
    rueda_finding_verdict verdict;
    char value[RUEDA_FINDING_WORDS];
    char fix[RUEDA_FINDING_WORDS]; /* empty where all is well */
};

/* Cut, never overrun; what a terminal might obey becomes a question mark. */
void rueda_finding_name(struct rueda_finding *finding, const char *name);
void rueda_finding_value(struct rueda_finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The verdict, and what to do about it. */
void rueda_finding_judge(struct rueda_finding *finding,
                         rueda_finding_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Copy a text from outside, made harmless. */
void rueda_finding_copy(char *out, size_t room, const char *text);

struct rueda_findings {
    struct rueda_finding *list;
    int count;
};

/* A copy at the end; without memory it is left out. */
void rueda_findings_add(struct rueda_findings *findings,
                        const struct rueda_finding *finding);
rueda_finding_verdict
rueda_findings_worst(const struct rueda_findings *findings);
int rueda_findings_count(const struct rueda_findings *findings,
                         rueda_finding_verdict verdict);
void rueda_findings_fini(struct rueda_findings *findings);

#endif /* RUEDA_TOOL_DOCTOR_FINDING_H */
