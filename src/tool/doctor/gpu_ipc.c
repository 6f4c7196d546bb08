/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Can two processes of this host map each other's memory of a GPU? A child puts
 * a word there and hands over the memory's handle; this process maps it, and
 * reads the word.
 *
 *     child                                this process
 *     cuMemAlloc, copies WORD there
 *     cuIpcGetMemHandle   -- there[] -->   cuIpcOpenMemHandle
 *     waits on back[]                      copies the word back, compares,
 *                                          kills the child
 *
 * The child must live until the memory has been read. No process starts the
 * driver (cuInit) before the fork: a child cannot use a driver that its parent
 * has started.
 */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/library.h"
#include "tool/doctor/facts.h"
#include "tool/doctor/judge.h"

#define BYTES      ((size_t)2 << 20)
#define WORD       UINT64_C(0x7275656461697063)
#define PATIENCE_S 20 /* the first context of a GPU takes a second or two */

struct gpu_handle {
    unsigned char bytes[64];
};

struct gpu_driver {
    int (*init)(unsigned);
    int (*device_get)(int *, int);
    int (*retain)(void **, int);
    int (*push)(void *);
    int (*alloc)(void **, size_t);
    int (*copy)(void *, const void *, size_t, void *);
    int (*synchronize)(void *);
    int (*handle_get)(struct gpu_handle *, void *);
    int (*handle_open)(void **, struct gpu_handle, unsigned);
    int (*error_string)(int, const char **);
};

/* The library stays open: some versions do not survive being closed. */
static bool find_functions(struct gpu_driver *out, const char *path)
{
    void *library = rueda_library_open(path);
    const struct {
        const char *name;
        void *function;
    } functions[] = {
        {"cuInit", &out->init},
        {"cuDeviceGet", &out->device_get},
        {"cuDevicePrimaryCtxRetain", &out->retain},
        {"cuCtxPushCurrent_v2", &out->push},
        {"cuMemAlloc_v2", &out->alloc},
        {"cuMemcpyAsync", &out->copy},
        {"cuStreamSynchronize", &out->synchronize},
        {"cuIpcGetMemHandle", &out->handle_get},
        {"cuIpcOpenMemHandle_v2", &out->handle_open},
        {"cuGetErrorString", &out->error_string},
    };

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        if (library == NULL ||
            rueda_library_function(library, functions[i].name,
                                   functions[i].function) != RUEDA_OK)
            return false;
    return true;
}

static int enter(const struct gpu_driver *driver)
{
    void *context = NULL;
    int device = 0;
    int error = driver->init(0);

    if (error == 0)
        error = driver->device_get(&device, 0);
    if (error == 0)
        error = driver->retain(&context, device);
    return error != 0 ? error : driver->push(context);
}

/* What the child sends. */
struct gpu_offer {
    int error;
    struct gpu_handle handle;
};

static void offer(const struct gpu_driver *driver, struct gpu_offer *out)
{
    const uint64_t word = WORD;
    void *at = NULL;

    out->error = enter(driver);
    if (out->error == 0)
        out->error = driver->alloc(&at, BYTES);
    if (out->error == 0)
        out->error = driver->copy(at, &word, sizeof(word), NULL);
    if (out->error == 0)
        out->error = driver->synchronize(NULL);
    if (out->error == 0)
        out->error = driver->handle_get(&out->handle, at);
}

/* The child, which stays until the other end is closed. */
static void be_owner(const struct gpu_driver *driver, int out, int in)
{
    struct gpu_offer mine = {0};
    char end;

    alarm(2 * PATIENCE_S);
    offer(driver, &mine);
    if (write(out, &mine, sizeof(mine)) == (ssize_t)sizeof(mine))
        while (read(in, &end, 1) > 0)
            continue;
    _exit(0);
}

/* The handle is opened here. */
static int map_offer(const struct gpu_driver *driver,
                     const struct gpu_offer *theirs)
{
    uint64_t word = 0;
    void *at = NULL;
    int error = theirs->error != 0 ? theirs->error : enter(driver);

    if (error == 0)
        error = driver->handle_open(&at, theirs->handle, 1);
    if (error == 0)
        error = driver->copy(&word, at, sizeof(word), NULL);
    if (error == 0)
        error = driver->synchronize(NULL);
    if (error == 0 && word != WORD)
        error = -1;
    return error;
}

static int try_with_child(const struct gpu_driver *driver, int there[2],
                          int back[2])
{
    struct pollfd reply = {.fd = there[0], .events = POLLIN};
    struct gpu_offer theirs = {.error = -2};
    const pid_t child = fork();
    int error;

    if (child == 0) {
        close(there[0]);
        close(back[1]);
        be_owner(driver, there[1], back[0]);
    }
    if (child < 0 || poll(&reply, 1, PATIENCE_S * 1000) != 1 ||
        read(there[0], &theirs, sizeof(theirs)) != (ssize_t)sizeof(theirs))
        theirs.error = -2;
    error = map_offer(driver, &theirs);
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return error;
}

void rueda_facts_gpu_ipc(struct rueda_finding *finding, const char *library)
{
    struct gpu_driver driver = {0};
    const char *words = NULL;
    int there[2];
    int back[2];
    int error = -2;

    rueda_finding_name(finding, "gpu ipc");
    if (!find_functions(&driver, library)) {
        rueda_finding_value(finding, "not tried: no driver of CUDA");
        return;
    }
    if (pipe(there) == 0) {
        if (pipe(back) == 0) {
            error = try_with_child(&driver, there, back);
            close(back[0]);
            close(back[1]);
        }
        close(there[0]);
        close(there[1]);
    }
    if (error > 0)
        driver.error_string(error, &words);
    rueda_judge_gpu_ipc(finding, error, words);
}
