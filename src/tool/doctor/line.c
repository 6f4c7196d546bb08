/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing and reading the doctor's lines of text. Lines come from other
 * machines, so every field is checked.
 *
 *     mark          kind   fields, with a tab before each
 *     rueda-doctor  check  open files  ok  1048576 ...  (no fix)
 *     rueda-doctor  half   tcp  0  2  2.1e-05  3.2e+09  120000
 *
 * The mark may stand anywhere in a line, as launchers may put the rank before
 * it. What is not a line of ours is skipped without a word, as login shells
 * print what they like.
 */
#include "tool/doctor/line.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define MARK       "rueda-doctor\t"
#define FIELDS_MAX 8
#define FIELD_ROOM 600
#define LINE_ROOM  4096

struct fields {
    char text[FIELDS_MAX][FIELD_ROOM];
    int count;
};

static const char *const kinds[] = {
    [RUEDA_LINE_FINDING] = "check", [RUEDA_LINE_NET] = "net",
    [RUEDA_LINE_HALF] = "half",     [RUEDA_LINE_JOINED] = "joined",
    [RUEDA_LINE_FAILED] = "failed", [RUEDA_LINE_END] = "end",
};

/* ---- Writing ------------------------------------------------------------ */

/* Write one line; tabs separate fields, and a mark tells it from what other
 * programs print. */
void rueda_line_write(const struct rueda_line *line, FILE *file)
{
    const struct rueda_finding *finding = &line->finding;
    const struct rueda_half *half = &line->half;

    fprintf(file, MARK "%s", kinds[line->kind]);
    switch (line->kind) {
    case RUEDA_LINE_FINDING:
        fprintf(file, "\t%s\t%s\t%s\t%s", finding->name,
                rueda_finding_verdict_str(finding->verdict), finding->value,
                finding->fix);
        break;
    case RUEDA_LINE_NET:
        fprintf(file, "\t%s\t%s\t%d", line->net.interface, line->net.network,
                line->net.mtu);
        break;
    case RUEDA_LINE_HALF:
        fprintf(file, "\t%s\t%d\t%d\t%.9g\t%.9g\t%" PRId64, half->way,
                half->rank, half->peer, half->latency, half->bandwidth,
                half->delta_ns);
        break;
    case RUEDA_LINE_JOINED:
        fprintf(file, "\t%d", line->rank);
        break;
    case RUEDA_LINE_FAILED:
        fprintf(file, "\t%d\t%s", line->rank, line->words);
        break;
    case RUEDA_LINE_END:
        break;
    }
    fputc('\n', file);
}

/* ---- Reading ------------------------------------------------------------ */

/* Fields are copied, not pointed to: they are short, and a line may end in the
 * middle of one. */
static bool split(const char *text, struct fields *out)
{
    out->count = 0;
    for (;;) {
        const size_t len = strcspn(text, "\t");

        if (out->count == FIELDS_MAX || len >= FIELD_ROOM)
            return false;
        memcpy(out->text[out->count], text, len);
        out->text[out->count++][len] = '\0';
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
}

/* A number that is one, and not less than nothing. */
static bool read_amount(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*out) && *out >= 0;
}

static bool read_signed(const char *text, int64_t *out)
{
    uint64_t number;

    if (!rueda_parse_whole(text + (text[0] == '-'), INT64_MAX, &number))
        return false;
    *out = text[0] == '-' ? -(int64_t)number : (int64_t)number;
    return true;
}

static bool read_check(const struct fields *fields, struct rueda_finding *out)
{
    if (fields->count != 5 ||
        !rueda_finding_verdict_parse(fields->text[2], &out->verdict))
        return false;
    rueda_finding_name(out, fields->text[1]);
    rueda_finding_copy(out->value, sizeof(out->value), fields->text[3]);
    rueda_finding_copy(out->fix, sizeof(out->fix), fields->text[4]);
    return out->name[0] != '\0';
}

static bool read_net(const struct fields *fields, struct rueda_net *out)
{
    if (fields->count != 4 || !rueda_parse_int(fields->text[3], &out->mtu))
        return false;
    rueda_finding_copy(out->interface, sizeof(out->interface), fields->text[1]);
    rueda_finding_copy(out->network, sizeof(out->network), fields->text[2]);
    return true;
}

static bool read_half(const struct fields *fields, struct rueda_half *out)
{
    if (fields->count != 7 || strlen(fields->text[1]) >= sizeof(out->way))
        return false;
    rueda_finding_copy(out->way, sizeof(out->way), fields->text[1]);
    return rueda_parse_int(fields->text[2], &out->rank) &&
           rueda_parse_int(fields->text[3], &out->peer) &&
           read_amount(fields->text[4], &out->latency) &&
           read_amount(fields->text[5], &out->bandwidth) &&
           read_signed(fields->text[6], &out->delta_ns);
}

static bool find_kind(const char *text, rueda_line_kind *out)
{
    for (int i = RUEDA_LINE_FINDING; i <= RUEDA_LINE_END; i++) {
        if (strcmp(text, kinds[i]) != 0)
            continue;
        *out = (rueda_line_kind)i;
        return true;
    }
    return false;
}

/* Read one line from another host. Whatever it holds, the result has sound
 * enumerations and texts that end. */
bool rueda_line_read(const char *text, struct rueda_line *out)
{
    const char *mark = strstr(text, MARK);
    struct fields fields;

    memset(out, 0, sizeof(*out));
    if (mark == NULL || !split(mark + strlen(MARK), &fields) ||
        !find_kind(fields.text[0], &out->kind))
        return false;
    switch (out->kind) {
    case RUEDA_LINE_FINDING:
        return read_check(&fields, &out->finding);
    case RUEDA_LINE_NET:
        return read_net(&fields, &out->net);
    case RUEDA_LINE_HALF:
        return read_half(&fields, &out->half);
    case RUEDA_LINE_JOINED:
        return fields.count == 2 && rueda_parse_int(fields.text[1], &out->rank);
    case RUEDA_LINE_FAILED:
        rueda_finding_copy(out->words, sizeof(out->words),
                           fields.count == 3 ? fields.text[2] : "");
        return fields.count == 3 && rueda_parse_int(fields.text[1], &out->rank);
    case RUEDA_LINE_END:
        return fields.count == 1;
    }
    return false;
}

/* Call take() for every line of ours in a text; all other lines are skipped. */
void rueda_line_each(const char *text,
                     void (*take)(void *arg, const struct rueda_line *line),
                     void *arg)
{
    char one[LINE_ROOM];

    while (*text != '\0') {
        const size_t len = strcspn(text, "\n");
        struct rueda_line line;

        if (len < sizeof(one)) {
            memcpy(one, text, len);
            one[len] = '\0';
            if (rueda_line_read(one, &line))
                take(arg, &line);
        }
        text += len + (text[len] == '\n');
    }
}
