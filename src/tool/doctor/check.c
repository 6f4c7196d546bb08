/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/doctor/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const verdicts[] = {
    [RUEDA_VERDICT_OK] = "ok",
    [RUEDA_VERDICT_WARN] = "warn",
    [RUEDA_VERDICT_BAD] = "bad",
};

const char *rueda_verdict_str(rueda_verdict verdict)
{
    return verdicts[verdict];
}

bool rueda_verdict_parse(const char *text, rueda_verdict *out)
{
    for (int i = RUEDA_VERDICT_OK; i <= RUEDA_VERDICT_BAD; i++) {
        if (strcmp(text, verdicts[i]) != 0)
            continue;
        *out = (rueda_verdict)i;
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

void rueda_check_copy(char *out, size_t room, const char *text)
{
    snprintf(out, room, "%s", text);
    make_harmless(out);
}

void rueda_check_name(struct rueda_check *check, const char *name)
{
    rueda_check_copy(check->name, sizeof(check->name), name);
}

void rueda_check_value(struct rueda_check *check, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(check->value, sizeof(check->value), format, args);
    va_end(args);
    make_harmless(check->value);
}

void rueda_check_judge(struct rueda_check *check, rueda_verdict verdict,
                       const char *format, ...)
{
    va_list args;

    check->verdict = verdict;
    va_start(args, format);
    vsnprintf(check->fix, sizeof(check->fix), format, args);
    va_end(args);
    make_harmless(check->fix);
}

void rueda_checks_add(struct rueda_checks *checks,
                      const struct rueda_check *check)
{
    struct rueda_check *bigger = realloc(
        checks->list, (size_t)(checks->count + 1) * sizeof(*checks->list));

    if (bigger == NULL)
        return;
    checks->list = bigger;
    checks->list[checks->count++] = *check;
}

int rueda_checks_count(const struct rueda_checks *checks, rueda_verdict verdict)
{
    int count = 0;

    for (int i = 0; i < checks->count; i++)
        count += checks->list[i].verdict == verdict;
    return count;
}

rueda_verdict rueda_checks_worst(const struct rueda_checks *checks)
{
    rueda_verdict worst = RUEDA_VERDICT_OK;

    for (int i = 0; i < checks->count; i++)
        if (checks->list[i].verdict > worst)
            worst = checks->list[i].verdict;
    return worst;
}

void rueda_checks_fini(struct rueda_checks *checks)
{
    free(checks->list);
    *checks = (struct rueda_checks){.list = NULL};
}
