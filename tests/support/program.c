/* SPDX-License-Identifier: Apache-2.0 */
#include "support/program.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MOST 32

/* The child until exec. */
static _Noreturn void become(const struct program *program, pid_t parent,
                             char **words, const char *const *settings)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent ||
        dup2(program->out_fd, STDOUT_FILENO) != STDOUT_FILENO ||
        dup2(program->err_fd, STDERR_FILENO) != STDERR_FILENO)
        _exit(127);
    for (; settings != NULL && *settings != NULL; settings++)
        putenv((char *)*settings);
    execv(words[0], words);
    perror(words[0]);
    _exit(127);
}

void program_start(struct program *program, const char *path, const char *line,
                   const char *const *settings)
{
    const pid_t parent = getpid();
    char text[1024];
    char *words[WORDS_MOST + 1] = {(char *)path};
    char *rest;
    int count = 1;

    memset(program, 0, sizeof(*program));
    program->code = PROCESS_RUNS;
    assert_true(strlen(line) < sizeof(text));
    memcpy(text, line, strlen(line) + 1);
    for (char *word = strtok_r(text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        assert_true(count < WORDS_MOST);
        words[count++] = word;
    }
    /* Files never fill up as pipes do, and workers may hold them for longer. */
    program->out_fd = memfd_create("out", MFD_CLOEXEC);
    program->err_fd = memfd_create("err", MFD_CLOEXEC);
    assert_true(program->out_fd >= 0 && program->err_fd >= 0);
    program->pid = fork();
    if (program->pid == 0)
        become(program, parent, words, settings);
    assert_true(program->pid > 0);
}

static void read_text(int fd, char *out)
{
    ssize_t len = pread(fd, out, PROGRAM_TEXT - 1, 0);

    out[len > 0 ? len : 0] = '\0';
}

static void read_texts(struct program *program)
{
    read_text(program->out_fd, program->out);
    read_text(program->err_fd, program->err);
}

static bool has_ended(struct program *program)
{
    int how;

    if (program->code != PROCESS_RUNS)
        return true;
    if (waitpid(program->pid, &how, WNOHANG) != program->pid)
        return false;
    program->code =
        WIFSIGNALED(how) ? PROCESS_SIGNAL - WTERMSIG(how) : WEXITSTATUS(how);
    return true;
}

bool program_await(struct program *program, const char *text)
{
    const int64_t deadline = rank_now_ms() + RANK_DEADLINE_MS;

    for (;;) {
        const bool is_last = has_ended(program) || rank_now_ms() > deadline;

        read_texts(program);
        if (strstr(program->out, text) != NULL)
            return true;
        if (is_last)
            return false;
        rank_sleep_ms(1);
    }
}

int program_end(struct program *program)
{
    const int64_t deadline = rank_now_ms() + RANK_DEADLINE_MS;

    while (!has_ended(program) && rank_now_ms() < deadline)
        rank_sleep_ms(1);
    if (program->code == PROCESS_RUNS) {
        kill(program->pid, SIGKILL);
        waitpid(program->pid, NULL, 0);
        program->code = PROCESS_LATE;
    }
    read_texts(program);
    close(program->out_fd);
    close(program->err_fd);
    return program->code;
}
