/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --mpi: the ranks are started by the mpirun that is installed, which takes our
 * place. Those of Open MPI, IBM Spectrum MPI, MPICH and Intel MPI are known.
 */
#ifndef RUEDA_LAUNCH_MPI_H
#define RUEDA_LAUNCH_MPI_H

#include "launch/hosts.h"
#include "launch/options.h"
#include "launch/strings.h"

typedef enum rueda_mpi {
    RUEDA_MPI_UNKNOWN,
    RUEDA_MPI_OPEN_MPI,
    RUEDA_MPI_SPECTRUM,
    RUEDA_MPI_MPICH,
    RUEDA_MPI_INTEL,
} rueda_mpi;

/* Which MPI is it, by the output of `mpirun --version`? Pure. */
rueda_mpi rueda_mpi_whose(const char *version);

/*
 * The words of the command. Variables are passed by name only, so that no value
 * is visible on a command line: `variables` is the environment that mpirun is
 * going to have. False with a message: this mpirun cannot do what the options
 * ask for. Pure.
 */
bool rueda_mpi_words(const struct rueda_options *options, rueda_mpi mpi,
                     const struct rueda_hosts *hosts,
                     const struct rueda_strings *variables,
                     struct rueda_strings *out, struct rueda_text *words);

/* Replace this process by mpirun. Returns only on failure, with the exit code
 * and a message. */
int rueda_mpi_run(const struct rueda_options *options,
                  struct rueda_text *words);

#endif /* RUEDA_LAUNCH_MPI_H */
