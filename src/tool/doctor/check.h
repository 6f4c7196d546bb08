/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `rueda doctor` has to say of one thing on one host: its name, what was
 * found, whether that is well, and what to do if it is not. Pure.
 */
#ifndef RUEDA_TOOL_DOCTOR_CHECK_H
#define RUEDA_TOOL_DOCTOR_CHECK_H

#include <stdbool.h>
#include <stddef.h>

typedef enum rueda_verdict {
    RUEDA_VERDICT_OK,
    RUEDA_VERDICT_WARN, /* a job runs, but not as well as it could */
    RUEDA_VERDICT_BAD,  /* it would stop a job */
} rueda_verdict;

/* "ok", "warn" or "bad". */
const char *rueda_verdict_str(rueda_verdict verdict);
bool rueda_verdict_parse(const char *text, rueda_verdict *out);

#define RUEDA_CHECK_NAME  32
#define RUEDA_CHECK_WORDS 512

/* All zero is a check that is well and says nothing. Texts have no control
 * characters. */
struct rueda_check {
    char name[RUEDA_CHECK_NAME];
    rueda_verdict verdict;
    char value[RUEDA_CHECK_WORDS];
    char fix[RUEDA_CHECK_WORDS]; /* empty where all is well */
};

/* Cut, never overrun; what a terminal might obey becomes a question mark. */
void rueda_check_name(struct rueda_check *check, const char *name);
void rueda_check_value(struct rueda_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The verdict, and what to do about it. */
void rueda_check_judge(struct rueda_check *check, rueda_verdict verdict,
                       const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Copy a text of anybody's, made harmless. */
void rueda_check_copy(char *out, size_t room, const char *text);

struct rueda_checks {
    struct rueda_check *list;
    int count;
};

/* A copy at the end; without memory it is left out. */
void rueda_checks_add(struct rueda_checks *checks,
                      const struct rueda_check *check);
rueda_verdict rueda_checks_worst(const struct rueda_checks *checks);
int rueda_checks_count(const struct rueda_checks *checks,
                       rueda_verdict verdict);
void rueda_checks_fini(struct rueda_checks *checks);

#endif /* RUEDA_TOOL_DOCTOR_CHECK_H */
