/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program, run as a user would run it: words in; what it printed and how it
 * ended out. It ends with the test if that ends first. Only by the test's own
 * thread, with no other thread running.
 */
#ifndef RUEDA_TESTS_SUPPORT_PROGRAM_H
#define RUEDA_TESTS_SUPPORT_PROGRAM_H

#include "support/processes.h"

#define PROGRAM_TEXT 32768

struct program {
    pid_t pid;
    int out_fd;
    int err_fd;
    int code; /* its exit code, or as in processes.h */
    char out[PROGRAM_TEXT];
    char err[PROGRAM_TEXT];
};

/*
 * Start the program at path with the words of line, which are separated by
 * single spaces. settings: "NAME=value" for its environment, up to a NULL; NULL
 * stands for none. Ended by program_end().
 */
void program_start(struct program *program, const char *path, const char *line,
                   const char *const *settings);

/* Wait until this is part of what it has printed; false if it ends before, or
 * at the deadline. */
bool program_await(struct program *program, const char *text);

/* Wait for its end; who is late is killed. Returns its code, and leaves what it
 * printed in out and err. */
int program_end(struct program *program);

#endif /* RUEDA_TESTS_SUPPORT_PROGRAM_H */
