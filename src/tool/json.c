/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/json.h"

#include <errno.h>
#include <math.h>

/* The file is valid JSON only after rueda_json_close(): a benchmark that fails
 * in the middle leaves an array without its end. */
bool rueda_json_open(struct rueda_json *json, const char *path)
{
    json->file = fopen(path, "we");
    json->count = 0;
    if (json->file == NULL)
        return false;
    fputs("[", json->file);
    return true;
}

/* A string with the escapes that JSON asks for; null for NULL. */
void rueda_json_text(FILE *file, const char *text)
{
    if (text == NULL) {
        fputs("null", file);
        return;
    }
    fputc('"', file);
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20)
            fprintf(file, "\\u%04x", c);
        else
            fputc(c, file);
    }
    fputc('"', file);
}

void rueda_json_number(FILE *file, double number)
{
    if (isfinite(number))
        fprintf(file, "%.9g", number);
    else
        fputs("null", file);
}

static void field_text(FILE *file, const char *name, const char *text)
{
    fprintf(file, ", \"%s\": ", name);
    rueda_json_text(file, text);
}

static void field_number(FILE *file, const char *name, double number)
{
    fprintf(file, ", \"%s\": ", name);
    rueda_json_number(file, number);
}

static double median_us(const struct rueda_row *row, int side)
{
    return row->sides[side].median * 1e6;
}

static double p99_us(const struct rueda_row *row, int side)
{
    return row->sides[side].p99 * 1e6;
}

static double ratio(const struct rueda_row *row, int side)
{
    return row->sides[side].ratio;
}

/* {"openmpi": 1.25, ...}: one figure of each side but the first. */
static void sides(FILE *file, const char *name, const struct rueda_bench *bench,
                  const struct rueda_row *row,
                  double (*figure)(const struct rueda_row *row, int side))
{
    fprintf(file, ", \"%s\": {", name);
    for (int i = 1; i < bench->side_count; i++) {
        fputs(i == 1 ? "" : ", ", file);
        rueda_json_text(file, bench->sides[i].name);
        fputs(": ", file);
        rueda_json_number(file, figure(row, i));
    }
    fputs("}", file);
}

/* One row of the table with all its fields. */
void rueda_json_row(struct rueda_json *json, const struct rueda_bench *bench,
                    const struct rueda_row *row)
{
    const struct rueda_bench_options *options = &bench->options;
    FILE *file = json->file;

    if (file == NULL)
        return;
    fprintf(file, "%s\n  {\"op\": ", json->count++ == 0 ? "" : ",");
    rueda_json_text(file, rueda_bench_op_str(row->work.op));
    fprintf(file, ", \"bytes\": %zu, \"ranks\": %d", row->bytes, bench->np);
    field_text(file, "transport",
               options->transport != NULL ? options->transport : "auto");
    field_text(file, "used", bench->sides[0].crew->used);
    field_text(file, "algo", options->algo != NULL ? options->algo : "auto");
    field_text(file, "dtype", rueda_dtype_str(row->work.dtype));
    field_text(file, "reduction", rueda_reduction_str(row->work.reduction));
    field_text(file, "alloc", row->work.is_shared ? "shared" : "private");
    field_number(file, "median_us", row->median * 1e6);
    field_number(file, "p99_us", row->p99 * 1e6);
    field_number(file, "best_us", row->best * 1e6);
    field_number(file, "algbw_gbs", row->algbw * 1e-9);
    field_number(file, "busbw_gbs", row->busbw * 1e-9);
    field_number(file, "line_ns", row->line * 1e9);
    sides(file, "peers", bench, row, median_us);
    sides(file, "peers_p99", bench, row, p99_us);
    sides(file, "ratio", bench, row, ratio);
    fputs("}", file);
}

bool rueda_json_close(struct rueda_json *json)
{
    FILE *file = json->file;
    bool is_well;

    if (file == NULL)
        return true;
    json->file = NULL;
    fputs("\n]\n", file);
    is_well = fflush(file) == 0 && ferror(file) == 0;
    if (fclose(file) != 0)
        is_well = false;
    return is_well;
}
