/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of a worker: it connects to the coordinator, opens its system and
 * carries out commands.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tool/placing.h"
#include "tool/worker.h"

/* The words of the command line. */
struct worker_spec {
    const char *socket;
    int crew;
    const char *system;
    int rank;
    int size;
    const char *job;
    rueda_placing placing;
};

/* Tell the coordinator which rank is there, or why it is not. */
static bool greet(int fd, const struct worker_spec *spec,
                  const struct rueda_system *system,
                  const struct rueda_text *words)
{
    struct rueda_hello hello = {
        .crew = spec->crew,
        .rank = system != NULL ? system->rank : spec->rank,
        .is_ok = system != NULL,
    };

    snprintf(hello.words, sizeof(hello.words), "%.250s",
             system != NULL ? system->version : words->chars);
    if (system != NULL)
        memcpy(hello.transport, system->transport, sizeof(hello.transport));
    return rueda_control_send(fd, &hello, sizeof(hello));
}

/* Do commands until the coordinator says quit, or is gone. */
static int serve(int fd, const struct worker_spec *spec,
                 struct rueda_system *system)
{
    struct rueda_bench_worker worker = {.system = system,
                                        .placing = spec->placing};
    struct rueda_control_command command;
    struct rueda_reply reply;
    int code = EXIT_FAILURE;

    while (rueda_control_recv(fd, &command, sizeof(command))) {
        rueda_bench_worker_do(&worker, &command, &reply);
        if (command.kind == RUEDA_CONTROL_QUIT)
            code = EXIT_SUCCESS;
        if (!rueda_control_send(fd, &reply, sizeof(reply)) ||
            command.kind == RUEDA_CONTROL_QUIT)
            break;
    }
    rueda_bench_worker_fini(&worker);
    return code;
}

/* One rank from beginning to end; system is taken, NULL: it failed with these
 * words. */
static int be_rank(const struct worker_spec *spec, struct rueda_system *system,
                   const struct rueda_text *words)
{
    const int fd = rueda_control_connect(spec->socket);
    int code = EXIT_FAILURE;

    if (fd < 0)
        fprintf(stderr,
                "rueda: bench worker cannot reach its coordinator: "
                "%s\n",
                strerror(errno));
    else if (greet(fd, spec, system, words) && system != NULL)
        code = serve(fd, spec, system);
    /* Without a coordinator close() waits for no one. */
    if (system != NULL && code == EXIT_SUCCESS)
        system->ops->close(system);
    if (fd >= 0)
        close(fd);
    return code;
}

struct thread {
    pthread_t id;
    const struct worker_spec *spec;
    rueda_ctx *ctx;
    int code;
};

static void *thread_main(void *arg)
{
    struct thread *thread = arg;
    struct rueda_text words = {""};
    struct rueda_system *system = rueda_system_adopt(thread->ctx, &words);

    thread->code = be_rank(thread->spec, system, &words);
    return NULL;
}

/* Start the ranks of a crew of threads, and wait for their end. Returns the
 * exit code. */
static int start_threads(struct thread *threads, int count)
{
    int started;
    int code = EXIT_SUCCESS;

    for (started = 0; started < count; started++)
        if (pthread_create(&threads[started].id, NULL, thread_main,
                           &threads[started]) != 0)
            break;
    if (started < count) {
        /* Those that run wait for ever: the process ends with them. */
        fprintf(stderr, "rueda: no thread for rank %d\n", started);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i].id, NULL);
        if (threads[i].code != EXIT_SUCCESS)
            code = EXIT_FAILURE;
    }
    return code;
}

/* All ranks are threads of this process. */
static int be_threads(const struct worker_spec *spec)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    struct rueda_text words = {""};
    struct thread *threads = calloc((size_t)spec->size, sizeof(*threads));
    rueda_ctx **ctx = calloc((size_t)spec->size, sizeof(rueda_ctx *));
    char error[384] = "";
    rueda_status status = RUEDA_ERR_NOMEM;
    int code = EXIT_FAILURE;

    args.error = error;
    args.error_bytes = sizeof(error);
    if (threads != NULL && ctx != NULL)
        status = rueda_init_threads(spec->size, &args, ctx);
    if (status == RUEDA_OK) {
        for (int i = 0; i < spec->size; i++)
            threads[i] = (struct thread){.spec = spec, .ctx = ctx[i]};
        code = start_threads(threads, spec->size);
    } else {
        rueda_text_set(&words, "%s%s%s", rueda_status_str(status),
                       error[0] != '\0' ? ": " : "", error);
        be_rank(spec, NULL, &words);
    }
    free(ctx);
    free(threads);
    return code;
}

static int be_process(const struct worker_spec *spec)
{
    struct rueda_text words = {""};
    struct rueda_system *system;

    if (strcmp(spec->system, "rueda") == 0)
        system = rueda_system_rueda(spec->rank, spec->size, spec->job, &words);
    else if (strcmp(spec->system, "raw") == 0)
        system = rueda_system_raw(spec->rank, atoi(spec->job), &words);
    else
        system = rueda_system_mpi(spec->system, &words);
    return be_rank(spec, system, &words);
}

/* `rueda bench-worker`: what `rueda bench` starts. It is not for users. */
int rueda_bench_worker_main(int argc, char **argv)
{
    struct worker_spec spec;

    if (argc != 7) {
        fprintf(stderr, "rueda: bench-worker is started by rueda bench only\n");
        return 2;
    }
    /* mpirun is the parent of its workers: they end with it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    spec = (struct worker_spec){
        .socket = argv[0],
        .crew = atoi(argv[1]),
        .system = argv[2],
        .rank = atoi(argv[3]),
        .size = atoi(argv[4]),
        .job = argv[5],
        .placing = (rueda_placing)atoi(argv[6]),
    };
    if (spec.size < 1 || spec.size > 4096)
        return 2;
    return strcmp(spec.system, "threads") == 0 ? be_threads(&spec)
                                               : be_process(&spec);
}
