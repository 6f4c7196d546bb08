/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/seed.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_S 300

static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE,
                             SIGILL,  SIGTERM, SIGALRM};
#define DEADLY_COUNT ((int)(sizeof(deadly) / sizeof(deadly[0])))

static struct sigaction before[DEADLY_COUNT];
static char command[512]; /* empty: no seed runs */

/* Sanitizers have it; who dies of one raises no signal. */
extern void __sanitizer_set_death_callback(void (*fn)(void))
    __attribute__((weak));

/* Also in a signal's handler. */
static void tell(void)
{
    ssize_t ignored = write(STDERR_FILENO, command, strlen(command));

    (void)ignored;
    command[0] = '\0';
}

/* As it would have been without this, but for the words. */
static void die(int signal)
{
    tell();
    alarm(0);
    for (int i = 0; i < DEADLY_COUNT; i++)
        sigaction(deadly[i], &before[i], NULL);
    raise(signal);
}

void seed_begin(const char *program, uint64_t seed)
{
    struct sigaction action = {.sa_handler = die};

    snprintf(command, sizeof(command),
             "seed %llu does not end\n    repeat it with: %s %llu\n",
             (unsigned long long)seed, program, (unsigned long long)seed);
    for (int i = 0; i < DEADLY_COUNT; i++)
        sigaction(deadly[i], &action, &before[i]);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(tell);
    alarm(LIMIT_S);
}

void seed_end(void)
{
    alarm(0);
    for (int i = 0; i < DEADLY_COUNT; i++)
        sigaction(deadly[i], &before[i], NULL);
    command[0] = '\0';
}

int seed_tear_down(void **state)
{
    (void)state;
    if (command[0] == '\0')
        return 0;
    tell();
    seed_end();
    return 0;
}
