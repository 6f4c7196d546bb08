/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/tune.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/library.h"

#define EQUAL 1.03 /* equal to the best within what can be measured */

/* Each algorithm that can run the operation gets a crew of its own. */
bool rueda_tune_start(struct rueda_bench *bench)
{
    const struct rueda_bench_options *options = &bench->options;
    const rueda_crew_kind kind = rueda_bench_crew_kind(bench);
    const char *names[RUEDA_TOOL_LIBRARY_ALGOS + 1];

    if (!rueda_bench_add(bench, "auto", kind, NULL))
        return false;
    rueda_tool_library_algos(rueda_bench_op_kind(options->op),
                             rueda_bench_has_slab(bench),
                             options->host_count > 1, names);
    for (int i = 0; names[i] != NULL; i++) {
        if (rueda_bench_add(bench, names[i], kind, names[i]))
            continue;
        if (bench->listener.signal != 0)
            return false;
        fprintf(stderr, "rueda: %s is left out: %s\n", names[i],
                bench->words.chars);
        bench->words.chars[0] = '\0';
    }
    return true;
}

/* The library's table counts the bytes of a piece where there are pieces
 * (algo/select.h), and the benchmark all of them. */
static size_t table_bytes(const struct rueda_row *row)
{
    if (row->work.op == RUEDA_BENCH_ALLGATHER ||
        row->work.op == RUEDA_BENCH_REDUCESCATTER)
        return row->bytes / (size_t)row->work.size;
    return row->bytes;
}

/* Print a row, and note which algorithm is the fastest at this size. The first
 * side is the library's own choice, shown for comparison: it is never the
 * answer. */
void rueda_tune_row(struct rueda_bench *bench, const struct rueda_row *row)
{
    const char *before = bench->point_count > 0
                             ? bench->points[bench->point_count - 1].best
                             : NULL;
    int best = 0;

    printf("%12zu", row->bytes);
    for (int i = 0; i < bench->side_count; i++) {
        if (isnan(row->sides[i].ratio)) {
            printf(" %11s", "-");
            continue;
        }
        printf(" %11.2f", row->sides[i].median * 1e6);
        bench->sides[i].log_ratio += log(row->sides[i].ratio);
        if (i > 0 &&
            (best == 0 || row->sides[i].ratio < row->sides[best].ratio))
            best = i;
    }
    /* Between equals the one that was best at the size before stays. */
    for (int i = 1; i < bench->side_count && best != 0 && before != NULL; i++)
        if (strcmp(bench->sides[i].name, before) == 0 &&
            row->sides[i].ratio <= row->sides[best].ratio * EQUAL)
            best = i;
    printf("  %s\n", best == 0 ? "-" : bench->sides[best].name);
    fflush(stdout);
    if (best == 0 || bench->point_count == RUEDA_TUNE_POINTS)
        return;
    bench->points[bench->point_count++] = (struct rueda_tune_point){
        .bytes = table_bytes(row),
        .best = bench->sides[best].name,
    };
}

/* The library knows no sizes for these: one algorithm for all, the one that is
 * best on the whole. */
static void make_one_point(struct rueda_bench *bench)
{
    int best = 0;

    for (int i = 1; i < bench->side_count; i++) {
        const struct rueda_side *side = &bench->sides[i];

        if (!side->is_out &&
            (best == 0 || side->log_ratio < bench->sides[best].log_ratio))
            best = i;
    }
    if (best == 0)
        return;
    bench->points[0] =
        (struct rueda_tune_point){.best = bench->sides[best].name};
    bench->point_count = 1;
}

/* Print the setting that makes these choices. */
bool rueda_tune_finish(struct rueda_bench *bench)
{
    const rueda_bench_op op = bench->options.op;
    const char *path = bench->options.tune_file;
    FILE *file = stdout;
    bool is_well;
    char rows[8192];

    if (op == RUEDA_BENCH_ALLTOALL || op == RUEDA_BENCH_BARRIER)
        make_one_point(bench);
    if (bench->point_count == 0) {
        rueda_text_set(&bench->words, "no algorithm could be measured");
        return false;
    }
    rueda_tune_format(rueda_bench_op_kind(op), bench->np, bench->points,
                      bench->point_count, rows, sizeof(rows));
    if (path != NULL)
        file = fopen(path, "we");
    is_well = file != NULL && fputs(rows, file) >= 0 && fflush(file) == 0;
    if (!is_well)
        rueda_text_set(&bench->words, "%s: %s", path != NULL ? path : "stdout",
                       strerror(errno));
    if (path != NULL && file != NULL)
        fclose(file);
    if (is_well && path != NULL)
        printf("# written to %s; RUEDA_TUNE_FILE=%s makes use of it\n", path,
               path);
    return is_well;
}
