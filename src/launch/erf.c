/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/erf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many cores the job has on that host; 0: it is none of the job. */
static int cores_of(const struct rueda_hosts *cores, const char *name)
{
    for (int i = 0; i < cores->count; i++)
        if (strcmp(cores->list[i].name, name) == 0)
            return cores->list[i].slots;
    return 0;
}

static void print_rank(FILE *file, const struct rueda_placed_rank *placed,
                       const char *host, int cores)
{
    const int share =
        cores > placed->local_size ? cores / placed->local_size : 1;
    const int first = placed->local_rank * share % cores;

    if (placed->local_rank == 0)
        fputc('\n', file);
    fprintf(file,
            "rank: %d: { hostname: %s; cpu: {%d-%d} ; gpu: * ; mem: * }\n",
            placed->rank, host, first, first + share - 1);
}

/* The explicit resource file of jsrun: one line for each rank, with its host
 * and its share of the host's cores. The caller frees the text; NULL with a
 * message. */
char *rueda_erf_text(const struct rueda_placement *placement,
                     const struct rueda_hosts *hosts,
                     const struct rueda_hosts *cores, struct rueda_text *words)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    bool is_good = file != NULL;

    if (is_good)
        fputs("overlapping_rs: allow\ncpu_index_using: logical\n", file);
    for (int rank = 0; is_good && rank < placement->size; rank++) {
        const struct rueda_placed_rank *placed = &placement->ranks[rank];
        const char *host = hosts->list[placed->host].name;
        const int count = cores_of(cores, host);

        is_good = count > 0;
        if (is_good)
            print_rank(file, placed, host, count);
        else
            rueda_text_set(words, "host '%.200s' is none of this LSF job",
                           host);
    }
    if (file != NULL && fclose(file) == 0 && is_good)
        return text;
    rueda_text_set(words, "no memory");
    free(text);
    return NULL;
}
