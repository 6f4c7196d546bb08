/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting the workers of a crew: by fork and exec on this host, through --rsh
 * on others, or by an mpirun.
 *
 *     [RSH HOST exec] [mpirun ... -np N] rueda bench-worker SOCKET CREW ...
 *
 * Each process dies with its parent (PR_SET_PDEATHSIG), so that nothing is left
 * of a benchmark that is killed.
 */
#define _GNU_SOURCE
#include "tool/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/lists.h"
#include "tool/system.h"

#define ARGS_MAX 64

/* The words of a command line, texts of its own among them. */
struct command_line {
    char *argv[ARGS_MAX];
    int argc;
    char self[4096 + 2];
    int keep_fd; /* a descriptor that the child inherits, or -1 */
    char numbers[5][16];
    char job[RUEDA_CONTROL_NAME + 16];
};

/* The word is borrowed until the line is run. */
static void say(struct command_line *line, const char *word)
{
    line->argv[line->argc++] = (char *)word;
    line->argv[line->argc] = NULL;
}

/* As text, in a place i of the line's own. */
static const char *number(struct command_line *line, int i, int value)
{
    snprintf(line->numbers[i], sizeof(line->numbers[i]), "%d", value);
    return line->numbers[i];
}

static bool is_mpi(const struct rueda_crew *crew)
{
    return crew->kind == RUEDA_CREW_OPENMPI || crew->kind == RUEDA_CREW_MPICH;
}

/* A parameter of Open MPI's. */
static void say_mca(struct command_line *line, const char *name,
                    const char *value)
{
    say(line, "--mca");
    say(line, name);
    say(line, value);
}

/* Open MPI is given the way that our ranks take. Between hosts it would count
 * each host's cores as if they were its own, and spin. */
static void say_network(struct command_line *line,
                        const struct rueda_crew *crew)
{
    const struct rueda_bench_options *hosts = crew->hosts;

    if (crew->transport != NULL && strcmp(crew->transport, "tcp") == 0) {
        say_mca(line, "pml", "ob1");
        say_mca(line, "btl", "tcp,self");
        if (hosts == NULL)
            say_mca(line, "btl_tcp_if_include", "lo");
    }
    if (hosts == NULL)
        return;
    say_mca(line, "plm", "rsh");
    say_mca(line, "plm_rsh_agent", hosts->rsh);
    if (crew->is_crowded)
        say_mca(line, "mpi_yield_when_idle", "1");
    say(line, "--host");
    say(line, hosts->hosts_text);
}

/* The words of mpirun. */
static void say_launcher(struct command_line *line,
                         const struct rueda_crew *crew)
{
    if (crew->kind == RUEDA_CREW_OPENMPI) {
        say(line, "mpirun.openmpi");
        say(line, "--allow-run-as-root");
        say(line, "--bind-to");
        say(line, "none");
        if (crew->is_crowded)
            say(line, "--oversubscribe");
        say_network(line, crew);
    } else {
        say(line, "mpirun.mpich");
    }
    say(line, "-np");
    say(line, number(line, 0, crew->size));
}

/* The whole command of one worker: how it is reached, which program it is, and
 * what it is to be. */
static bool compose(struct command_line *line, const struct rueda_crew *crew,
                    const struct rueda_crew_listener *listener, int rank)
{
    static const char *const systems[] = {
        [RUEDA_CREW_PROCESSES] = "rueda", [RUEDA_CREW_THREADS] = "threads",
        [RUEDA_CREW_OPENMPI] = "openmpi", [RUEDA_CREW_MPICH] = "mpich",
        [RUEDA_CREW_RAW] = "raw",
    };
    /* On a host it is read by a shell. */
    const char *quote = crew->hosts != NULL ? "'" : "";
    char path[4096];
    const ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (len < 0)
        return false;
    snprintf(line->self, sizeof(line->self), "%s%.*s%s", quote, (int)len, path,
             quote);
    line->argc = 0;
    if (crew->hosts != NULL) {
        say(line, crew->hosts->rsh);
        say(line, rueda_bench_hosts_of(crew->hosts, rank));
        /* No shell stays between us and what has to die with us. */
        say(line, "exec");
    }
    if (is_mpi(crew))
        say_launcher(line, crew);
    say(line, line->self);
    say(line, "bench-worker");
    say(line, listener->name);
    say(line, number(line, 1, crew->number));
    say(line, systems[crew->kind]);
    say(line, number(line, 2, rank));
    say(line, number(line, 3, crew->size));
    /* The job's name fits RUEDA_JOB and differs between crews. */
    if (crew->kind == RUEDA_CREW_RAW)
        snprintf(line->job, sizeof(line->job), "%d", line->keep_fd);
    else
        snprintf(line->job, sizeof(line->job), "bench-%d-%d", (int)getpid(),
                 crew->number);
    say(line, line->job);
    say(line, number(line, 4, (int)crew->placing));
    return true;
}

/* Ranks of several hosts meet at the first of them. The ports of benchmarks,
 * and of the crews of one, differ. */
static void set_store(const struct rueda_crew *crew)
{
    char store[96];

    snprintf(store, sizeof(store), "%s:%d", crew->hosts->hosts[0].name,
             10000 + (int)getppid() % 1000 * 16 + crew->number);
    setenv("RUEDA_STORE", store, 1);
}

/* In the child. Ranks of a crew must not take the seat that a launcher has
 * given to this process. */
static void set_environment(const struct rueda_crew *crew)
{
    /* Rank and size are on the command line. */
    unsetenv("RUEDA_RANK");
    unsetenv("RUEDA_SIZE");
    if (crew->transport != NULL)
        setenv("RUEDA_TRANSPORT", crew->transport, 1);
    if (crew->hosts != NULL)
        set_store(crew);
    if (crew->algo[0] != '\0')
        setenv("RUEDA_ALGO", crew->algo, 1);
}

/* The child until exec. Its own process group keeps a Ctrl-C of the terminal
 * from it: the coordinator sees to its end. */
static _Noreturn void become(const struct command_line *line,
                             const struct rueda_crew *crew, pid_t parent,
                             int report)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;
    int error;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    if (crew->log_fd >= 0) {
        dup2(crew->log_fd, STDOUT_FILENO);
        dup2(crew->log_fd, STDERR_FILENO);
    } else {
        dup2(STDERR_FILENO, STDOUT_FILENO);
    }
    set_environment(crew);
    if (line->keep_fd >= 0)
        fcntl(line->keep_fd, F_SETFD, 0);
    execvp(line->argv[0], line->argv);
    error = errno;
    if (write(report, &error, sizeof(error)) != (ssize_t)sizeof(error))
        _exit(126);
    _exit(127);
}

/* -1 with errno. The child writes to a pipe why exec failed; exec that succeeds
 * closes it, so what is read here is a cause or the end. */
static pid_t start(struct command_line *line, const struct rueda_crew *crew)
{
    const pid_t parent = getpid();
    int report[2];
    int error = 0;
    ssize_t got;
    pid_t child;

    if (pipe2(report, O_CLOEXEC) != 0)
        return -1;
    /* Otherwise the child would print the content of the buffers as well. */
    fflush(NULL);
    child = fork();
    if (child == 0)
        become(line, crew, parent, report[1]);
    if (child < 0)
        error = errno;
    close(report[1]);
    do
        got = read(report[0], &error, sizeof(error));
    while (got < 0 && errno == EINTR);
    close(report[0]);
    if (child > 0 && got > 0) {
        waitpid(child, NULL, 0);
        child = -1;
    }
    errno = error;
    return child;
}

static void explain(struct rueda_crew *crew, int rank)
{
    if (crew->hosts != NULL)
        rueda_text_set(&crew->words, "cannot run %.64s: %s", crew->hosts->rsh,
                       strerror(errno));
    else if (crew->kind == RUEDA_CREW_OPENMPI && errno == ENOENT)
        rueda_text_set(&crew->words, "mpirun.openmpi is not here: "
                                     "apt-get install openmpi-bin");
    else if (crew->kind == RUEDA_CREW_MPICH && errno == ENOENT)
        rueda_text_set(&crew->words,
                       "mpirun.mpich is not here: apt-get install mpich");
    else
        rueda_text_set(&crew->words, "cannot start rank %d: %s", rank,
                       strerror(errno));
}

/* ends: where the ranks have a connection, rank r its r-th end. */
static bool start_all(struct rueda_crew *crew,
                      const struct rueda_crew_listener *listener,
                      const int *ends)
{
    const int count =
        crew->kind == RUEDA_CREW_PROCESSES || crew->kind == RUEDA_CREW_RAW
            ? crew->size
            : 1;
    struct command_line line;

    for (int rank = 0; rank < count; rank++) {
        pid_t child = -1;

        line.keep_fd = ends != NULL ? ends[rank] : -1;
        if (compose(&line, crew, listener, rank))
            child = start(&line, crew);
        if (child < 0) {
            explain(crew, rank);
            return false;
        }
        crew->children[crew->child_count++] = child;
    }
    return true;
}

/* Ranks of ours are started one by one; an mpirun starts its own. What it
 * prints goes to a memory file, for messages. */
bool rueda_bench_spawn(struct rueda_crew *crew,
                       const struct rueda_crew_listener *listener)
{
    int ends[2];
    bool is_well;

    crew->child_count = 0;
    crew->log_fd = -1;
    if (is_mpi(crew)) {
        crew->log_fd = memfd_create("rueda-bench-log", MFD_CLOEXEC);
        if (crew->log_fd >= 0)
            fcntl(crew->log_fd, F_SETFL, O_APPEND);
    }
    if (crew->kind != RUEDA_CREW_RAW)
        return start_all(crew, listener, NULL);
    if (!rueda_system_raw_pair(ends)) {
        rueda_text_set(&crew->words, "no connection over loopback: %s",
                       strerror(errno));
        return false;
    }
    is_well = start_all(crew, listener, ends);
    close(ends[0]);
    close(ends[1]);
    return is_well;
}

void rueda_bench_spawn_epitaph(int status, char *words, size_t room)
{
    if (WIFSIGNALED(status))
        snprintf(words, room, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(words, room, "ended with exit code %d", WEXITSTATUS(status));
}

/* Read the end of the memory file. */
void rueda_bench_spawn_last_words(const struct rueda_crew *crew, char *words,
                                  size_t room)
{
    const off_t end = crew->log_fd < 0 ? 0 : lseek(crew->log_fd, 0, SEEK_END);
    const off_t start = end > (off_t)room - 1 ? end - (off_t)room + 1 : 0;
    ssize_t len = 0;
    size_t out = 0;

    if (end > 0)
        len = pread(crew->log_fd, words, (size_t)(end - start), start);
    /* Lines become sentences, rulers and blanks go. */
    for (ssize_t i = 0; i < len; i++) {
        char c = words[i];

        if (c == '\n' || c == '\t')
            c = ' ';
        if (out > 0 && c == words[out - 1] && (c == ' ' || c == '-'))
            continue;
        words[out++] = c;
    }
    words[out] = '\0';
}
