/* SPDX-License-Identifier: Apache-2.0 */
/* What this process knows of itself; the rest of seats is pure. */
#include <string.h>

#include "job/seat.h"
#include "os/library.h"
#include "os/process.h"

const char *rueda_seat_environment(void *arg, const char *name)
{
    (void)arg;
    return rueda_environment(name);
}

/* Python loads libraries so that their symbols are hidden from others: those
 * are recognised by their file names. */
static bool has_mpi(void)
{
    return rueda_library_has_symbol("MPI_Init") ||
           rueda_library_is_mapped("libmpi.so") ||
           rueda_library_is_mapped("libmpich.so");
}

/* A shell may stand between the launcher and us. */
static int find_parent(void)
{
    int hydra = rueda_process_ancestor("hydra_");

    return hydra > 0 ? hydra : rueda_process_parent();
}

void rueda_seat_query_init(struct rueda_seat_query *query)
{
    memset(query, 0, sizeof(*query));
    query->environment = rueda_seat_environment;
    query->rank = -1;
    query->size = -1;
    query->local_rank = -1;
    query->local_size = -1;
    query->cross_rank = -1;
    query->cross_size = -1;
    query->has_mpi = has_mpi();
    query->parent = find_parent();
}
