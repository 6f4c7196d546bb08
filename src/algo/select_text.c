/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a table of algorithms as a string, and back. Its form is in
 * select.h.
 */
#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "algo/select.h"
#include "base/config.h"

/* Above every built-in row. */
#define ADDED_SCORE 1000

/* In place of an algorithm: any but `hier`. */
#define FLAT "flat"

/* Part of the string: what a row, or a field of it, is while it is read. */
struct select_span {
    const char *at;
    size_t length;
};

/* Characters up to one of `ends`, which is skipped in *rest. */
static struct select_span cut(struct select_span *rest, const char *ends)
{
    struct select_span first = {rest->at, 0};

    while (first.length < rest->length &&
           strchr(ends, rest->at[first.length]) == NULL)
        first.length++;
    rest->at += first.length;
    rest->length -= first.length;
    if (rest->length > 0) {
        rest->at++;
        rest->length--;
    }
    return first;
}

static bool has(struct select_span span, char c)
{
    return memchr(span.at, c, span.length) != NULL;
}

static bool is_word(struct select_span span, const char *word)
{
    return strlen(word) == span.length &&
           memcmp(span.at, word, span.length) == 0;
}

static struct select_span trim(struct select_span span)
{
    while (span.length > 0 && isspace((unsigned char)span.at[0])) {
        span.at++;
        span.length--;
    }
    while (span.length > 0 && isspace((unsigned char)span.at[span.length - 1]))
        span.length--;
    return span;
}

/* ---- Reading --------------------------------------------------------- */

/* Digits, and if `suffixes` is set one of k, m, g, t. */
static bool parse_number(struct select_span span, bool suffixes, size_t *out)
{
    char text[24] = "";

    if (span.length == 0 || span.length >= sizeof(text) ||
        (!suffixes && !isdigit((unsigned char)span.at[span.length - 1])))
        return false;
    memcpy(text, span.at, span.length);
    return rueda_parse_size(text, out);
}

static bool parse_sizes(struct select_span sizes, struct rueda_select_row *row)
{
    struct select_span to = sizes;
    const struct select_span from = cut(&to, "-");

    if (!has(sizes, '-') || !parse_number(from, true, &row->bytes_from))
        return false;
    if (is_word(to, "inf")) {
        row->bytes_to = SIZE_MAX;
        return row->bytes_from < SIZE_MAX;
    }
    return parse_number(to, true, &row->bytes_to) &&
           row->bytes_from < row->bytes_to;
}

static bool parse_ranks(struct select_span ranks, struct rueda_select_row *row)
{
    struct select_span rest = ranks;
    const struct select_span from = cut(&rest, "-");
    size_t first;
    size_t last;

    if (!parse_number(from, false, &first))
        return false;
    last = first;
    if (has(ranks, '-') && is_word(rest, "inf"))
        last = INT_MAX;
    else if (has(ranks, '-') && !parse_number(rest, false, &last))
        return false;
    if (first < 1 || first > last || last > INT_MAX)
        return false;
    row->ranks_from = (int)first;
    row->ranks_to = (int)last;
    return true;
}

static bool parse_kind(struct select_span name, rueda_kind *out_kind)
{
    for (int kind = 0; kind < RUEDA_KIND_COUNT; kind++)
        if (is_word(name, rueda_kind_str((rueda_kind)kind))) {
            *out_kind = (rueda_kind)kind;
            return true;
        }
    return false;
}

static const struct rueda_algo *parse_algo(struct select_span name,
                                           rueda_kind kind)
{
    for (int i = 0; rueda_algos[i] != NULL; i++)
        if (is_word(name, rueda_algos[i]->name) &&
            (rueda_algos[i]->kinds >> kind & 1u) != 0)
            return rueda_algos[i];
    return NULL;
}

static rueda_status bad_kind(struct select_span name, struct rueda_text *error)
{
    rueda_text_set(error, "'%.*s' is not a kind of collective; there are",
                   (int)name.length, name.at);
    for (int kind = 0; kind < RUEDA_KIND_COUNT; kind++)
        rueda_text_add(error, "%s %s", kind > 0 ? "," : "",
                       rueda_kind_str((rueda_kind)kind));
    return RUEDA_ERR_INVALID;
}

static rueda_status bad_algo(struct select_span name, rueda_kind kind,
                             struct rueda_text *error)
{
    const char *comma = "";

    rueda_text_set(error, "'%.*s' is not an algorithm for %s; there are",
                   (int)name.length, name.at, rueda_kind_str(kind));
    for (int i = 0; rueda_algos[i] != NULL; i++) {
        if ((rueda_algos[i]->kinds >> kind & 1u) == 0)
            continue;
        rueda_text_add(error, "%s %s", comma, rueda_algos[i]->name);
        comma = ",";
    }
    return RUEDA_ERR_INVALID;
}

/* sizes, @ranks, or both. */
static rueda_status parse_ranges(struct select_span ranges,
                                 struct rueda_select_row *row,
                                 struct rueda_text *error)
{
    const bool has_ranks = has(ranges, '@');
    struct select_span ranks = ranges;
    const struct select_span sizes = cut(&ranks, "@");

    if (sizes.length > 0) {
        if (row->kind == RUEDA_ALLTOALL || row->kind == RUEDA_BARRIER) {
            rueda_text_set(error, "%s is not chosen by size: '%.*s'",
                           rueda_kind_str(row->kind), (int)sizes.length,
                           sizes.at);
            return RUEDA_ERR_INVALID;
        }
        if (!parse_sizes(sizes, row)) {
            rueda_text_set(error,
                           "'%.*s' is not a range of sizes such as 0-4k or "
                           "64k-inf",
                           (int)sizes.length, sizes.at);
            return RUEDA_ERR_INVALID;
        }
    }
    if (has_ranks && !parse_ranks(ranks, row)) {
        rueda_text_set(error, "'@%.*s' is not a range of ranks such as @2-8",
                       (int)ranks.length, ranks.at);
        return RUEDA_ERR_INVALID;
    }
    return RUEDA_OK;
}

/* The algorithm of a row that stands for none is NULL. */
static rueda_status parse_row(struct select_span text,
                              struct rueda_select_row *row,
                              struct rueda_text *error)
{
    struct select_span rest = text;
    const struct select_span kind = trim(cut(&rest, ":"));
    struct select_span ranges = {NULL, 0};
    const struct rueda_algo *algo;
    rueda_status status;

    if (!parse_kind(kind, &row->kind))
        return bad_kind(kind, error);
    row->ranks_from = 1;
    row->ranks_to = INT_MAX;
    row->bytes_from = 0;
    row->bytes_to = SIZE_MAX;
    row->where = RUEDA_SELECT_ANYWHERE;
    if (rest.length > 0 && has(rest, ':')) {
        ranges = trim(cut(&rest, ":"));
        status = parse_ranges(ranges, row, error);
        if (status != RUEDA_OK)
            return status;
    }
    rest = trim(rest);
    row->algo = NULL;
    if (is_word(rest, FLAT) && ranges.at == NULL)
        return RUEDA_OK;
    algo = parse_algo(rest, row->kind);
    if (algo == NULL)
        return bad_algo(rest, row->kind, error);
    row->algo = algo->name;
    return RUEDA_OK;
}

rueda_status rueda_select_parse(struct rueda_select *select, const char *text,
                                struct rueda_text *error)
{
    struct select_span rest = {text, strlen(text)};
    unsigned flat = select->flat;
    int count = select->added_count;

    while (rest.length > 0) {
        const struct select_span row = trim(cut(&rest, ";"));
        rueda_status status;

        if (row.length == 0)
            continue;
        if (count == RUEDA_SELECT_ADDED_ROWS) {
            rueda_text_set(error, "more than %d rows: '%.*s' is too many",
                           RUEDA_SELECT_ADDED_ROWS, (int)row.length, row.at);
            return RUEDA_ERR_INVALID;
        }
        status = parse_row(row, &select->added[count], error);
        if (status != RUEDA_OK)
            return status;
        if (select->added[count].algo == NULL) {
            flat |= 1u << select->added[count].kind;
            continue;
        }
        select->added[count].score = ADDED_SCORE + count;
        count++;
    }
    select->flat = flat;
    select->added_count = count;
    return RUEDA_OK;
}

/* ---- Writing --------------------------------------------------------- */

/* A string that is built up, and the length it would like to have. */
struct sink {
    char *buf;
    size_t size;
    size_t length;
};

static void put(struct sink *sink, const char *words)
{
    for (; *words != '\0'; words++, sink->length++)
        if (sink->length + 1 < sink->size)
            sink->buf[sink->length] = *words;
}

static void put_size(struct sink *sink, size_t bytes)
{
    static const char *const suffixes[] = {"", "k", "m", "g"};
    char number[32];
    int i = 0;

    if (bytes == SIZE_MAX) {
        put(sink, "inf");
        return;
    }
    while (bytes > 0 && bytes % 1024 == 0 && i < 3) {
        bytes /= 1024;
        i++;
    }
    snprintf(number, sizeof(number), "%zu%s", bytes, suffixes[i]);
    put(sink, number);
}

static void put_row(struct sink *sink, const struct rueda_select_row *row)
{
    const bool has_sizes = row->bytes_from > 0 || row->bytes_to < SIZE_MAX;
    const bool has_ranks = row->ranks_from > 1 || row->ranks_to < INT_MAX;
    char ranks[64];

    put(sink, rueda_kind_str(row->kind));
    if (has_sizes || has_ranks)
        put(sink, ":");
    if (has_sizes) {
        put_size(sink, row->bytes_from);
        put(sink, "-");
        put_size(sink, row->bytes_to);
    }
    if (has_ranks) {
        if (row->ranks_to == INT_MAX)
            snprintf(ranks, sizeof(ranks), "@%d-inf", row->ranks_from);
        else
            snprintf(ranks, sizeof(ranks), "@%d-%d", row->ranks_from,
                     row->ranks_to);
        put(sink, ranks);
    }
    put(sink, ":");
    put(sink, row->algo);
}

size_t rueda_select_format(const struct rueda_select *select, char *buf,
                           size_t size)
{
    struct sink sink = {buf, size, 0};

    for (int kind = 0; kind < RUEDA_KIND_COUNT; kind++) {
        if ((select->flat >> kind & 1u) == 0)
            continue;
        put(&sink, sink.length > 0 ? ";" : "");
        put(&sink, rueda_kind_str((rueda_kind)kind));
        put(&sink, ":" FLAT);
    }
    for (int i = 0; i < select->added_count; i++) {
        put(&sink, sink.length > 0 ? ";" : "");
        put_row(&sink, &select->added[i]);
    }
    if (size > 0)
        buf[sink.length < size ? sink.length : size - 1] = '\0';
    return sink.length;
}
