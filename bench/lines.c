/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cache lines of an allreduce cost by themselves: the four steps of
 * `direct` (ARCHITECTURE.md), each by all ranks at once, with nobody waiting
 * for anybody within a step, nothing added up and nothing written to the
 * result. An allreduce through shared memory that copies private buffers cannot
 * be faster than their sum.
 *
 *     gcc -O2 bench/lines.c -o lines -pthread && ./lines 4 2097152
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MOST_RANKS 64
#define ROUNDS     400
#define STEPS      4

static const char *const names[STEPS] = {"write the others' slices",
                                         "read my slice of all", "write my sum",
                                         "read the others' sums"};

static int ranks = 4;
static size_t bytes = (size_t)2 << 20;
static char *rings[MOST_RANKS];   /* shared between the ranks */
static char *buffers[MOST_RANKS]; /* private */
static double times_us[MOST_RANKS][STEPS][ROUNDS];
static atomic_long arrived;

static double now_us(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void meet(long *round)
{
    *round += ranks;
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < *round)
        ;
}

static uint64_t read_all(const char *from, size_t len)
{
    uint64_t sums[4] = {0};

    for (size_t i = 0; i + 32 <= len; i += 32)
        for (int k = 0; k < 4; k++) {
            uint64_t word;

            memcpy(&word, from + i + 8 * k, 8);
            sums[k] += word;
        }
    return sums[0] + sums[1] + sums[2] + sums[3];
}

static uint64_t take_step(int step, int me)
{
    size_t slice = bytes / (size_t)ranks;
    uint64_t sum = 0;

    for (int i = 0; i < ranks; i++) {
        int other = (me + i) % ranks;
        size_t theirs = slice * (size_t)other;
        size_t mine = slice * (size_t)me;

        if (step == 0 && other != me)
            memcpy(rings[me] + theirs, buffers[me] + theirs, slice);
        else if (step == 1 && other != me)
            sum += read_all(rings[other] + mine, slice);
        else if (step == 2 && other == me)
            memcpy(rings[me] + mine, buffers[me] + mine, slice);
        else if (step == 3 && other != me)
            sum += read_all(rings[other] + theirs, slice);
    }
    return sum;
}

static void *rank_main(void *arg)
{
    int me = (int)(intptr_t)arg;
    volatile uint64_t sink = 0;
    long round = 0;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET(me, &cpus);
    sched_setaffinity(0, sizeof(cpus), &cpus);
    for (int i = 0; i < ROUNDS; i++)
        for (int step = 0; step < STEPS; step++) {
            double began;

            meet(&round);
            began = now_us();
            sink += take_step(step, me);
            times_us[me][step][i] = now_us() - began;
        }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return (left > right) - (left < right);
}

static char *memory(void)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return at;
}

int main(int argc, char **argv)
{
    pthread_t threads[MOST_RANKS];
    double all = 0;

    if (argc > 1)
        ranks = atoi(argv[1]);
    if (argc > 2)
        bytes = strtoull(argv[2], NULL, 10);
    if (ranks < 2 || ranks > MOST_RANKS || bytes < 4096) {
        fprintf(stderr, "usage: lines [RANKS [BYTES]]\n");
        return 2;
    }
    for (int i = 0; i < ranks; i++) {
        rings[i] = memory();
        buffers[i] = memory();
    }
    for (int i = 1; i < ranks; i++)
        pthread_create(&threads[i], NULL, rank_main, (void *)(intptr_t)i);
    rank_main((void *)0);
    for (int i = 1; i < ranks; i++)
        pthread_join(threads[i], NULL);
    for (int step = 0; step < STEPS; step++) {
        double mean = 0;

        for (int i = 0; i < ranks; i++) {
            qsort(times_us[i][step], ROUNDS, sizeof(double), compare);
            mean += times_us[i][step][ROUNDS / 2] / ranks;
        }
        printf("%-26s %8.1f us\n", names[step], mean);
        all += mean;
    }
    printf("%-26s %8.1f us, %d ranks, %zu bytes\n", "together", all, ranks,
           bytes);
    return 0;
}
