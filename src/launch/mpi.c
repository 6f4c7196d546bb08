/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/mpi.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "base/duration.h"
#include "launch/spawn.h"
#include "launch/takeover.h"
#include "launch/variables.h"
#include "os/clock.h"
#include "os/stream.h"

#define VERSION_BYTES 4096
#define VERSION_NS    RUEDA_S(10)

/* ---- Whose mpirun it is ------------------------------------------------- */

/* Read a pipe until its end, or the deadline; cut to fit. */
static void read_all(int fd, char *out, size_t bytes)
{
    const int64_t deadline = rueda_clock_ns() + VERSION_NS;
    size_t len = 0;

    while (len + 1 < bytes &&
           rueda_stream_await(fd, false, deadline) == RUEDA_OK) {
        const ssize_t got = read(fd, out + len, bytes - 1 - len);

        if (got <= 0)
            break;
        len += (size_t)got;
    }
    out[len] = '\0';
}

/* Which MPI does this mpirun belong to? Its options differ. */
static rueda_mpi ask_version(const char *program)
{
    char *words[] = {(char *)"mpirun", (char *)"--version", NULL};
    char text[VERSION_BYTES] = "";
    struct rueda_spawn spawn = {.program = program,
                                .command = words,
                                .variables = environ,
                                .input = -1,
                                .inherited = -1};
    int ends[2];
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return RUEDA_MPI_UNKNOWN;
    spawn.output = ends[1];
    spawn.error = ends[1];
    child = rueda_spawn(&spawn);
    close(ends[1]);
    if (child > 0) {
        read_all(ends[0], text, sizeof(text));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    close(ends[0]);
    return rueda_mpi_whose(text);
}

/* ---- Becoming it -------------------------------------------------------- */

/* The hosts, with slots enough for all ranks. */
static bool find_hosts(const struct rueda_options *options,
                       struct rueda_hosts *out, struct rueda_text *words)
{
    const int size = rueda_options_whole(options, RUEDA_OPTION_NP, 1);

    if (!rueda_hosts_find(options->values[RUEDA_OPTION_HOSTS],
                          options->values[RUEDA_OPTION_HOSTFILE], size, out,
                          words))
        return false;
    if (size <= rueda_hosts_slots(out))
        return true;
    rueda_text_set(words, "%d ranks are more than the %d slots of all hosts",
                   size, rueda_hosts_slots(out));
    rueda_hosts_fini(out);
    return false;
}

/* Replace this process by mpirun. Returns only if that fails, with the exit
 * code. */
static int become(const struct rueda_options *options, const char *program,
                  const struct rueda_hosts *hosts, struct rueda_text *words)
{
    struct rueda_strings variables = {.list = NULL};
    struct rueda_strings names = {.list = NULL};
    struct rueda_strings command = {.list = NULL};
    const rueda_mpi mpi = ask_version(program);
    int code = 2;

    rueda_takeover_variables(options, &variables);
    rueda_variables_forward(variables.list, &names);
    command.is_short = names.is_short;
    if (mpi == RUEDA_MPI_UNKNOWN)
        rueda_text_set(words,
                       "--mpi: whose mpirun %.200s is cannot be told from "
                       "\"mpirun --version\"; those of Open MPI, Spectrum MPI, "
                       "MPICH and Intel MPI are known",
                       program);
    else if (rueda_mpi_words(options, mpi, hosts, &names, &command, words))
        code = rueda_takeover(options, program, &command, &variables, words);
    rueda_strings_fini(&variables);
    rueda_strings_fini(&names);
    rueda_strings_fini(&command);
    return code;
}

/* Start the ranks by the mpirun on the PATH. */
int rueda_mpi_run(const struct rueda_options *options, struct rueda_text *words)
{
    struct rueda_text why = {{0}};
    struct rueda_hosts hosts;
    char program[4096];
    int code;

    if (!find_hosts(options, &hosts, words))
        return 2;
    if (!rueda_spawn_find("mpirun", rueda_environment("PATH"), program,
                          sizeof(program), &why)) {
        rueda_text_set(words, "--mpi: there is no mpirun on the PATH; without "
                              "--mpi none is needed");
        rueda_hosts_fini(&hosts);
        return 2;
    }
    code = become(options, program, &hosts, words);
    rueda_hosts_fini(&hosts);
    return code;
}
