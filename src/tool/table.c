/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Printing the results of a benchmark as a table. Lines that begin with # say
 * what was measured, on what and how, so that it can be repeated; the others
 * are the columns.
 */
#include "tool/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tool/library.h"
#include "tool/size.h"

static void print_machine(const struct rueda_bench *bench)
{
    const struct rueda_tool_machine *machine = &bench->machine;
    char total[RUEDA_SIZE_TEXT];
    char left[RUEDA_SIZE_TEXT];

    printf("# machine     %s, %d cores (%d usable), %s\n", machine->cpu,
           machine->cpus, machine->usable, machine->caches);
    printf("# memory      %s, %s free\n",
           rueda_size_words(machine->memory_total, total),
           rueda_size_words(machine->memory_free, left));
    printf("# kernels     %s\n", rueda_tool_library_kernels());
}

static const char *const placings[] = {
    [RUEDA_PLACING_START] = "free to move, each turn begins on core r",
    [RUEDA_PLACING_BOUND] = "rank r of every side bound to core r",
    [RUEDA_PLACING_FREE] = "wherever the system puts them",
};

/* The head of the table says all that a reader needs to repeat it. */
static void print_settings(const struct rueda_bench *bench)
{
    const struct rueda_bench_options *options = &bench->options;
    const rueda_crew_kind kind = bench->sides[0].crew->kind;

    printf("# ranks       %d %s on %s%s, %s\n", bench->np,
           kind == RUEDA_CREW_THREADS ? "threads" : "processes",
           options->host_count > 0 ? "the hosts " : "this host",
           options->host_count > 0 ? options->hosts_text : "",
           placings[options->placing]);
    printf("# settings    transport %s, algorithm %s, %s, %s, %s memory\n",
           options->transport != NULL ? options->transport : "auto",
           options->is_tune        ? "each in turn"
           : options->algo != NULL ? options->algo
                                   : "auto",
           rueda_dtype_str(options->dtype),
           rueda_reduction_str(options->reduction),
           options->is_shared ? "shared" : "private");
    printf("# transport   %s, as all ranks say\n", bench->sides[0].crew->used);
}

static const char *words_of(const struct rueda_side *side)
{
    if (side->is_copy)
        return "memcpy by every rank at once";
    if (side->is_private)
        return "rueda with private memory";
    return side->crew->version;
}

/* Its options except the number of ranks. */
static void print_openmpi(const struct rueda_crew *crew)
{
    const bool is_tcp =
        crew->transport != NULL && strcmp(crew->transport, "tcp") == 0;

    printf(
        " (--bind-to none%s%s%s)", crew->is_crowded ? " --oversubscribe" : "",
        is_tcp ? " --mca btl tcp,self" : "",
        crew->is_crowded && crew->hosts != NULL ? " --mca mpi_yield_when_idle 1"
                                                : "");
}

/* Which peers are compared, with their versions. */
static void print_peers(const struct rueda_bench *bench)
{
    if (bench->side_count < 2 || bench->options.is_tune)
        return;
    printf("# peers      ");
    for (int i = 1; i < bench->side_count; i++) {
        const struct rueda_side *side = &bench->sides[i];

        printf("%s %s", i == 1 ? "" : ",", words_of(side));
        if (side->is_algo)
            printf(" with the algorithm %s", side->name);
        if (side->crew->kind == RUEDA_CREW_OPENMPI)
            print_openmpi(side->crew);
    }
    printf("\n");
}

/* Before and after the sizes: if the two differ the machine has changed
 * meanwhile, and so have the figures. */
static void print_line_latency(struct rueda_bench *bench, const char *when)
{
    int cpus[2];
    const double line = rueda_measure_line(bench, cpus);

    if (bench->np < 2)
        return;
    if (isnan(line))
        printf("# cache line  could not be measured %s\n", when);
    else
        printf("# cache line  %.0f ns one way between rank 0 (core %d) and "
               "rank 1 (core %d), %s\n",
               line * 1e9, cpus[0], cpus[1], when);
}

/* The titles of the columns. */
static void print_columns(const struct rueda_bench *bench)
{
    if (bench->options.is_tune) {
        printf("%12s", "bytes");
        for (int i = 0; i < bench->side_count; i++)
            printf(" %11.11s", bench->sides[i].name);
        printf("  best\n");
        return;
    }
    printf("%12s %11s %11s %11s %9s %9s", "bytes", "median us", "p99 us",
           "best us", "algbw", "busbw");
    for (int i = 1; i < bench->side_count; i++) {
        char title[16];

        snprintf(title, sizeof(title), "vs %.9s", bench->sides[i].name);
        printf(" %12s", title);
    }
    printf("\n");
}

void rueda_table_head(struct rueda_bench *bench)
{
    printf("# rueda %s bench %s\n", rueda_version(),
           rueda_bench_op_str(bench->options.op));
    print_machine(bench);
    print_settings(bench);
    print_peers(bench);
    print_line_latency(bench, "before");
    print_columns(bench);
    fflush(stdout);
}

void rueda_table_row(const struct rueda_bench *bench,
                     const struct rueda_row *row)
{
    printf("%12zu %11.2f %11.2f %11.2f %9.3f %9.3f", row->bytes,
           row->median * 1e6, row->p99 * 1e6, row->best * 1e6,
           row->algbw * 1e-9, row->busbw * 1e-9);
    for (int i = 1; i < bench->side_count; i++) {
        const double ratio = row->sides[i].ratio;

        if (isnan(ratio))
            printf(" %12s", "-");
        else
            printf(" %12.*f", ratio < 0.1 ? 4 : 2, ratio);
    }
    printf("\n");
    fflush(stdout);
}

void rueda_table_foot(struct rueda_bench *bench)
{
    print_line_latency(bench, "after");
    printf("# algbw, busbw in GB/s. Every answer was checked.");
    if (bench->side_count > 1 && !bench->options.is_tune)
        printf(" vs: the peer's time over ours, median of\n# the rounds; "
               "above 1 rueda is faster.");
    printf("\n");
    fflush(stdout);
}
