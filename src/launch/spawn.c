/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting one rank: find the program on the PATH, fork, reset signals,
 * execute.
 */
#include "launch/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/pty.h"

/* ---- Finding ------------------------------------------------------------ */

static bool is_runnable(const char *file)
{
    struct stat what;

    if (stat(file, &what) != 0)
        return false;
    if (!S_ISREG(what.st_mode)) {
        errno = S_ISDIR(what.st_mode) ? EISDIR : EACCES;
        return false;
    }
    return access(file, X_OK) == 0;
}

/* A script takes the program that its first line names, and the kernel would
 * say of the script that it is not there. What cannot be read is left to it. */
static bool has_interpreter(const char *file, struct rueda_text *words)
{
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    char head[256] = "";
    char *name;
    size_t len;
    bool is_from_windows;

    if (fd < 0)
        return true;
    if (read(fd, head, sizeof(head) - 1) < 0)
        head[0] = '\0';
    close(fd);
    if (strncmp(head, "#!", 2) != 0 || strchr(head, '\n') == NULL)
        return true;
    name = head + 2 + strspn(head + 2, " \t");
    len = strcspn(name, " \t\n");
    name[len] = '\0';
    if (len == 0 || is_runnable(name))
        return true;
    is_from_windows = name[len - 1] == '\r';
    if (is_from_windows)
        name[len - 1] = '\0';
    rueda_text_set(words, "cannot run '%.200s': its first line names '%s'%s%s",
                   file, name, is_from_windows ? "" : ": ",
                   is_from_windows ? " and ends with a carriage return; take "
                                     "those away (dos2unix)"
                                   : strerror(errno));
    return false;
}

bool rueda_spawn_find(const char *command, const char *path, char *out,
                      size_t bytes, struct rueda_text *words)
{
    int why = ENOENT;

    if (strchr(command, '/') != NULL) {
        if (is_runnable(command) && strlen(command) < bytes) {
            snprintf(out, bytes, "%s", command);
            return has_interpreter(out, words);
        }
        rueda_text_set(words, "cannot run '%.200s': %s%s", command,
                       strerror(errno),
                       errno == EACCES ? "; is it executable (chmod +x)?" : "");
        return false;
    }
    if (path == NULL)
        path = "/usr/local/bin:/usr/bin:/bin";
    for (const char *at = path; command[0] != '\0';) {
        const size_t len = strcspn(at, ":");
        const int written =
            snprintf(out, bytes, "%.*s/%s", (int)(len > 0 ? len : 1),
                     len > 0 ? at : ".", command);

        if (written > 0 && (size_t)written < bytes && is_runnable(out))
            return has_interpreter(out, words);
        if (errno == EACCES)
            why = EACCES;
        if (at[len] == '\0')
            break;
        at += len + 1;
    }
    rueda_text_set(words, "cannot run '%.200s': %s", command,
                   why == ENOENT ? "there is no such program on the PATH"
                                 : strerror(why));
    return false;
}

/* ---- Starting ----------------------------------------------------------- */

/* From here to execve() in the child: nothing but system calls. */

static void complain(const char *what, const char *name)
{
    char text[512];
    const int len = snprintf(text, sizeof(text), "ruedarun: %s %.300s: %s\n",
                             what, name, strerror(errno));

    if (write(STDERR_FILENO, text, (size_t)len) < 0)
        return;
}

static void be_ordinary(void)
{
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void bind_to(const struct rueda_cpus *cpus)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (size_t cpu = 0; cpu < RUEDA_MACHINE_MOST_CPUS && cpu < CPU_SETSIZE;
         cpu++)
        if ((cpus->bits[cpu / 64] >> (cpu % 64) & 1) != 0)
            CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

/* Standard descriptors first get numbers above, so that none is overwritten
 * before it has moved. */
static bool lay_out(const struct rueda_spawn *spawn)
{
    int input = spawn->input;
    int fds[3];

    if (input < 0)
        input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    fds[0] = fcntl(input, F_DUPFD_CLOEXEC, 3);
    fds[1] = fcntl(spawn->output, F_DUPFD_CLOEXEC, 3);
    fds[2] = fcntl(spawn->error, F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < 3; i++)
        if (fds[i] < 0 || dup2(fds[i], i) < 0)
            return false;
    return spawn->inherited < 0 || fcntl(spawn->inherited, F_SETFD, 0) == 0;
}

/* A file without "#!" is a shell script, as execvp() has it. */
static void execute(const struct rueda_spawn *spawn)
{
    size_t count = 0;
    char **words;

    execve(spawn->program, spawn->command, spawn->variables);
    if (errno != ENOEXEC)
        return;
    while (spawn->command[count] != NULL)
        count++;
    words = mmap(NULL, (count + 2) * sizeof(*words), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED)
        return;
    words[0] = (char *)"sh";
    words[1] = (char *)spawn->program;
    for (size_t i = 1; i < count; i++)
        words[i + 1] = spawn->command[i];
    execve("/bin/sh", words, spawn->variables);
}

static void become(const struct rueda_spawn *spawn, pid_t parent)
{
    be_ordinary();
    if (!spawn->has_terminal)
        setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    if (!lay_out(spawn))
        _exit(127);
    if (spawn->has_terminal)
        rueda_pty_take();
    if (spawn->cpus != NULL)
        bind_to(spawn->cpus);
    if (spawn->folder != NULL && chdir(spawn->folder) < 0)
        complain("cannot go to", spawn->folder);
    else {
        execute(spawn);
        complain("cannot run", spawn->program);
    }
    _exit(127);
}

/* Block signals until the child has reset its handlers: ours would catch a
 * signal there, and it would be lost. */
pid_t rueda_spawn(const struct rueda_spawn *spawn)
{
    const pid_t parent = getpid();
    sigset_t before;
    sigset_t all;
    pid_t child;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    child = fork();
    if (child == 0)
        become(spawn, parent);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* Parent and child both call it, so that it holds whichever runs first. */
    if (child > 0 && !spawn->has_terminal)
        setpgid(child, child);
    return child;
}
