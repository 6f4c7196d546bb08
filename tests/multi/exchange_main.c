/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank of tests/python/test_exchange.py, started by a real launcher:
 *
 *     exchange_main pmix|pmi1|pmi2 BYTES TIMEOUT_MS [ABSENT_RANK]
 *
 * Rank 0 fills a card with a pattern, all exchange it, and each prints a line
 * of JSON: what it got, how long it took, and what the exchange left behind.
 * In a card of 64 bytes or more 32 in the middle are secret.
 * The absent rank stays away until the time of the others is over.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/exchange.h"
#include "os/clock.h"

#define MS ((int64_t)1000000)

typedef rueda_status
exchange_fn(const struct rueda_business_card_exchange *exchange, void *card,
            size_t bytes, struct rueda_text *error);

static const struct {
    const char *name;
    exchange_fn *exchange;
} ways[] = {
    {"pmix", rueda_launcher_exchange_pmix},
    {"pmi1", rueda_launcher_exchange_pmi1},
    {"pmi2", rueda_launcher_exchange_pmi2},
};

/* What a process has that an exchange should leave as it was. */
struct belongings {
    int threads;
    int descriptors;
    unsigned long long handlers; /* signals with a handler, a bit each; not
                                    the two that the C library keeps */
};

static const char *environment(void *arg, const char *name)
{
    (void)arg;
    return getenv(name);
}

static exchange_fn *find_way(const char *name)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(name, ways[i].name) == 0)
            return ways[i].exchange;
    return NULL;
}

/* The first of these variables that is set, or -1. */
static int number_of(const char *const *variables)
{
    for (; *variables != NULL; variables++) {
        const char *value = getenv(*variables);

        if (value != NULL)
            return (int)strtol(value, NULL, 10);
    }
    return -1;
}

static int count_entries(const char *folder)
{
    DIR *open = opendir(folder);
    int count = 0;

    while (open != NULL && readdir(open) != NULL)
        count++;
    if (open != NULL)
        closedir(open);
    return count;
}

static struct belongings look(void)
{
    struct belongings now = {.threads = count_entries("/proc/self/task") - 2,
                             .descriptors = count_entries("/proc/self/fd")};
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "SigCgt:", 7) == 0)
            now.handlers = strtoull(line + 7, NULL, 16) & ~(3ULL << 31);
    if (file != NULL)
        fclose(file);
    return now;
}

/* A thread that was joined is listed for a moment longer. */
static struct belongings look_again(const struct belongings *before)
{
    struct belongings now = look();

    for (int i = 0; i < 200 && now.threads > before->threads; i++) {
        rueda_sleep_ns(MS);
        now = look();
    }
    return now;
}

/* The exit code of a child that does a little work. */
static int code_of_child(void)
{
    pid_t child = fork();
    int how = -1;

    if (child == 0) {
        void *memory = malloc(100000);

        free(memory);
        _exit(memory != NULL ? 7 : 1);
    }
    if (child < 0 || waitpid(child, &how, 0) != child || !WIFEXITED(how))
        return -1;
    return WEXITSTATUS(how);
}

/* How it went in this rank. */
struct outcome {
    rueda_status status;
    struct rueda_text error;
    unsigned char card[RUEDA_BUSINESS_CARD_BYTES];
    int64_t took_ns;
    struct belongings before;
    struct belongings after;
};

/* One write, so that lines of several ranks do not mix. */
static int report(const struct rueda_business_card_exchange *exchange,
                  const struct outcome *outcome, size_t bytes)
{
    char hex[2 * RUEDA_BUSINESS_CARD_BYTES + 1] = "";
    char line[4096];
    int len;

    for (size_t i = 0; i < bytes; i++)
        snprintf(hex + 2 * i, 3, "%02x", outcome->card[i]);
    len = snprintf(
        line, sizeof(line),
        "{\"rank\": %d, \"size\": %d, \"status\": %d, \"error\": \"%s\", "
        "\"card\": \"%s\", \"ms\": %lld, \"threads\": %d, "
        "\"descriptors\": %d, \"handlers\": %d, \"child\": %d}\n",
        exchange->rank, exchange->size, outcome->status, outcome->error.chars,
        hex, (long long)(outcome->took_ns / MS),
        outcome->after.threads - outcome->before.threads,
        outcome->after.descriptors - outcome->before.descriptors,
        outcome->after.handlers != outcome->before.handlers, code_of_child());
    return write(STDOUT_FILENO, line, (size_t)len) == len ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "SLURM_PROCID", NULL};
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "SLURM_NTASKS", NULL};
    struct rueda_business_card_exchange exchange = {.rank = number_of(ranks),
                                                    .size = number_of(sizes),
                                                    .environment = environment};
    exchange_fn *way = argc > 3 ? find_way(argv[1]) : NULL;
    size_t bytes = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
    int64_t time_ns = argc > 3 ? strtol(argv[3], NULL, 10) * MS : 0;
    struct outcome outcome = {.before = look()};
    int64_t start = rueda_clock_ns();

    if (way == NULL || bytes == 0 || bytes > RUEDA_BUSINESS_CARD_BYTES) {
        fprintf(stderr, "see the head of exchange_main.c\n");
        return 2;
    }
    if (argc > 4 && strtol(argv[4], NULL, 10) == exchange.rank) {
        rueda_sleep_ns(time_ns + 2000 * MS);
        return 0;
    }
    if (bytes >= 64) {
        exchange.secret_at = 16;
        exchange.secret_bytes = 32;
    }
    for (size_t i = 0; i < bytes && exchange.rank == 0; i++)
        outcome.card[i] = (unsigned char)(i * 7 + i / 256);
    exchange.deadline_ns = start + time_ns;
    outcome.status = way(&exchange, outcome.card, bytes, &outcome.error);
    outcome.took_ns = rueda_clock_ns() - start;
    outcome.after = look_again(&outcome.before);
    return report(&exchange, &outcome, bytes);
}
