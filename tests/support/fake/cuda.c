/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcuda.so.1, for machines without a GPU: two GPUs whose
 * memory is memory of the host, seen at addresses that the host cannot touch.
 * A stream is a thread that carries out what it is given, in order and late.
 * Kernels are those of kernels.cu, compiled for the CPU; they are found by name
 * only if the PTX that was loaded has an entry of that name. The GPUs' memory
 * is a file without a name, which other processes map by the handles of CUDA
 * IPC.
 *
 *      FAKE_CUDA_DELAY_US  how late each piece of work is; 20 if not set
 *      FAKE_CUDA_FAIL      "cuMemAlloc_v2=2" lets a function fail with a
 *                          code; "cuLaunchKernel=1#3" from its fourth call on;
 *                          "kernel=700" lets kernels and copies fail when they
 *                          are carried out
 *      FAKE_CUDA_UUID      8 characters of the GPUs' identities
 *      FAKE_CUDA_GPUS      how many there are; 2 if not set
 *
 * The fake_cuda_ functions are for tests, which find them in the library.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    GPUS = 2,
    BLOCKS_MOST = 4096, /* allocations */
    DEPTH = 8,          /* of contexts that a thread has pushed */
    MAPPED_MOST = 1024, /* allocations of other processes */
};
#define GPU_BYTES ((size_t)512 << 20)
#define ALIGNMENT ((size_t)512)
#define PAGE      ((size_t)4096)

/* ---- Memory ----------------------------------------------------------- */

struct block {
    size_t at;
    size_t bytes;
    int gpu;
    uint64_t id;
};

/* What a handle has in it. */
struct handle {
    int pid;
    int file;
    uint64_t id;
    uint64_t at; /* in the file */
    uint64_t bytes;
};
union any_handle {
    struct handle own;
    unsigned char bytes[64];
};

/* An allocation of another process, seen and real like those of this one. */
struct mapped {
    struct handle handle;
    char *seen;
    char *real;
    int opened; /* times that it was opened and not closed */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char *seen; /* where the GPUs' memory seems to be, */
static char *real; /* and is, */
static int file = -1;
static pid_t owner;
static struct block blocks[BLOCKS_MOST];
static int block_count;
static uint64_t ids;
static struct mapped mapped[MAPPED_MOST];
static int mapped_count; /* places in use, some of which may be free again */
static void *pinned[BLOCKS_MOST];
static int pinned_count;

static void *translate(const void *at)
{
    const char *p = at;

    if (seen != NULL && p >= seen && p < seen + GPUS * GPU_BYTES)
        return real + (p - seen);
    for (int i = 0; i < __atomic_load_n(&mapped_count, __ATOMIC_ACQUIRE); i++)
        if (mapped[i].opened > 0 && p >= mapped[i].seen &&
            p < mapped[i].seen + mapped[i].handle.bytes)
            return mapped[i].real + (p - mapped[i].seen);
    return (void *)at;
}

/* ---- Kernels ---------------------------------------------------------- */

static __thread unsigned thread_now;
static __thread unsigned thread_count;
static __thread unsigned block_now;
static __thread unsigned grid_count;

#define THREAD_HERE  thread_now
#define THREADS_HERE thread_count
#define BLOCK        block_now
#define BLOCKS       grid_count
#define AT(pointer)  translate(pointer)
#include "device/cuda/kernels.cu"

#include "cuda_kernels.inc.h"

#include "cuda_streams.inc.h"

static __thread int contexts[DEPTH];
static __thread int depth;
static int retained[GPUS];
static int launches;

/* ---- For tests -------------------------------------------------------- */

EXPORT int fake_cuda_depth(void)
{
    return depth;
}

EXPORT int fake_cuda_blocks(void)
{
    int count;

    pthread_mutex_lock(&lock);
    count = block_count + pinned_count;
    for (int i = 0; i < mapped_count; i++)
        count += mapped[i].opened > 0;
    pthread_mutex_unlock(&lock);
    return count;
}

EXPORT int fake_cuda_mapped(void)
{
    int count = 0;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < mapped_count; i++)
        count += mapped[i].opened > 0;
    pthread_mutex_unlock(&lock);
    return count;
}

EXPORT int fake_cuda_retained(void)
{
    return retained[0] + retained[1];
}

EXPORT int fake_cuda_launches(void)
{
    return __atomic_load_n(&launches, __ATOMIC_RELAXED);
}

EXPORT void fake_cuda_capture(void *stream, int is_capturing)
{
    stream_of(stream)->is_capturing = is_capturing;
}

/* For the stand-in for NCCL: a call in a stream's order, and where an address
 * really is. */
EXPORT int fake_cuda_call(void *stream, void (*call)(void *arg), void *arg)
{
    return push(stream, (struct item){.what = CALL, .call = call, .arg = arg});
}

EXPORT void *fake_cuda_at(const void *at)
{
    return translate(at);
}

/* The GPU of the context that is current, or -1. */
EXPORT int fake_cuda_current(void)
{
    return depth > 0 ? contexts[depth - 1] : -1;
}

/* ---- The driver's functions ------------------------------------------- */

#define FAIL_IF_TOLD                                                           \
    do {                                                                       \
        const int code_ = fails(__func__);                                     \
                                                                               \
        if (code_ != 0)                                                        \
            return code_;                                                      \
    } while (0)
#define NEED_CONTEXT                                                           \
    do {                                                                       \
        FAIL_IF_TOLD;                                                          \
        if (depth == 0)                                                        \
            return 201;                                                        \
    } while (0)

static int gpu_count(void)
{
    const char *text = getenv("FAKE_CUDA_GPUS");

    return text != NULL ? (int)strtol(text, NULL, 10) : GPUS;
}

EXPORT int cuInit(unsigned flags)
{
    const size_t bytes = GPUS * GPU_BYTES;

    FAIL_IF_TOLD;
    pthread_mutex_lock(&lock);
    if (seen == NULL || owner != getpid()) {
        owner = getpid(); /* the child of a fork begins with GPUs of its own */
        block_count = 0;
        pinned_count = 0;
        mapped_count = 0;
        legacy = NULL;
        seen = mmap(NULL, bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        file = memfd_create("fake-gpus", MFD_CLOEXEC);
        real = file < 0 || ftruncate(file, (off_t)bytes) != 0
                   ? MAP_FAILED
                   : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_NORESERVE, file, 0);
    }
    pthread_mutex_unlock(&lock);
    return flags != 0 || seen == MAP_FAILED || real == MAP_FAILED ? 2 : 0;
}

EXPORT int cuDriverGetVersion(int *out)
{
    *out = 12040;
    return 0;
}

EXPORT int cuGetErrorName(int code, const char **out)
{
    *out = code == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
           : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
           : code == 900 ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
                         : "CUDA_ERROR_UNKNOWN";
    return 0;
}

EXPORT int cuGetErrorString(int code, const char **out)
{
    *out = code == 2     ? "out of memory"
           : code == 700 ? "an illegal memory access was encountered"
           : code == 900 ? "operation not permitted when stream is capturing"
                         : "an error of the stand-in";
    return 0;
}

EXPORT int cuDeviceGetCount(int *out)
{
    *out = gpu_count();
    return 0;
}

EXPORT int cuDeviceGet(int *out, int number)
{
    FAIL_IF_TOLD;
    *out = number;
    return number >= 0 && number < gpu_count() ? 0 : 101;
}

EXPORT int cuDeviceGetName(char *out, int bytes, int device)
{
    snprintf(out, (size_t)bytes, "stand-in %d", device);
    return 0;
}

/* FAKE_CUDA_UUID: as if each process had GPUs of its own. */
EXPORT int cuDeviceGetUuid(unsigned char out[16], int device)
{
    const char *text = getenv("FAKE_CUDA_UUID");

    memset(out, 0, 16);
    out[0] = (unsigned char)(device + 1);
    for (size_t i = 0; text != NULL && i < 8 && text[i] != '\0'; i++)
        out[8 + i] = (unsigned char)text[i];
    return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(void **out, int device)
{
    FAIL_IF_TOLD;
    __atomic_add_fetch(&retained[device], 1, __ATOMIC_RELAXED);
    *out = &retained[device];
    return 0;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    return __atomic_sub_fetch(&retained[device], 1, __ATOMIC_RELAXED) < 0;
}

EXPORT int cuCtxPushCurrent_v2(void *context)
{
    FAIL_IF_TOLD;
    if (depth == DEPTH)
        return 1;
    contexts[depth++] = (int)((int *)context - retained);
    return 0;
}

EXPORT int cuCtxPopCurrent_v2(void **out)
{
    if (depth == 0)
        return 201;
    *out = &retained[contexts[--depth]];
    return 0;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
    static __thread int now;
    const int before = now;

    now = *mode;
    *mode = before;
    return 0;
}

/* The first gap of the GPU's memory that is large enough. */
EXPORT int cuMemAlloc_v2(void **out, size_t bytes)
{
    const int gpu = depth > 0 ? contexts[depth - 1] : 0;
    const size_t end = (size_t)(gpu + 1) * GPU_BYTES;
    size_t at = (size_t)gpu * GPU_BYTES;
    int place = 0;

    NEED_CONTEXT;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    pthread_mutex_lock(&lock);
    while (place < block_count &&
           (blocks[place].at + blocks[place].bytes <= at ||
            blocks[place].at < at + bytes)) {
        const size_t next = blocks[place].at + blocks[place].bytes;

        at = next > at ? next : at;
        place++;
    }
    if (bytes == 0 || at + bytes > end || block_count == BLOCKS_MOST) {
        pthread_mutex_unlock(&lock);
        return bytes == 0 ? 1 : 2;
    }
    memmove(blocks + place + 1, blocks + place,
            (size_t)(block_count - place) * sizeof(blocks[0]));
    blocks[place] = (struct block){at, bytes, gpu, ++ids};
    block_count++;
    memset(real + at, 0xb5, bytes < 4096 ? bytes : 4096); /* not cleared */
    pthread_mutex_unlock(&lock);
    *out = seen + at;
    return 0;
}

/* Under the lock. */
static int find_block(const void *at)
{
    const char *p = at;

    for (int i = 0; i < block_count; i++)
        if (p >= seen + blocks[i].at &&
            p < seen + blocks[i].at + blocks[i].bytes)
            return i;
    return -1;
}

EXPORT int cuMemFree_v2(void *at)
{
    int place;

    NEED_CONTEXT;
    pthread_mutex_lock(&lock);
    place = find_block(at);
    if (place >= 0) {
        block_count--;
        memmove(blocks + place, blocks + place + 1,
                (size_t)(block_count - place) * sizeof(blocks[0]));
    }
    pthread_mutex_unlock(&lock);
    return place < 0;
}

#include "cuda_ipc.inc.h"

EXPORT int cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    NEED_CONTEXT;
    (void)flags;
    *out = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (*out == NULL)
        return 2;
    pthread_mutex_lock(&lock);
    pinned[pinned_count++] = *out;
    pthread_mutex_unlock(&lock);
    return 0;
}

EXPORT int cuMemFreeHost(void *at)
{
    int code = 1;

    NEED_CONTEXT;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < pinned_count; i++)
        if (pinned[i] == at) {
            pinned[i] = pinned[--pinned_count];
            code = 0;
        }
    pthread_mutex_unlock(&lock);
    free(at);
    return code;
}

EXPORT int cuMemcpyAsync(void *dst, const void *src, size_t bytes, void *stream)
{
    NEED_CONTEXT;
    return push(
        stream,
        (struct item){.what = COPY, .dst = dst, .src = src, .bytes = bytes});
}

/* CUDA_MEMCPY2D, in words of 8 bytes. Rows lie close to each other. */
EXPORT int cuMemcpy2DAsync_v2(void *const *args, void *stream)
{
    const size_t width = (size_t)args[14];

    NEED_CONTEXT;
    if (args[0] != NULL || args[1] != NULL || (int)(size_t)args[2] != 4 ||
        args[7] != NULL || args[8] != NULL || (int)(size_t)args[9] != 4 ||
        args[6] != args[14] || args[13] != args[14] || width == 0)
        return 1;
    return push(stream, (struct item){.what = COPY,
                                      .dst = args[11],
                                      .src = args[4],
                                      .bytes = width * (size_t)args[15]});
}

EXPORT int cuStreamCreate(void **out, unsigned flags)
{
    NEED_CONTEXT;
    (void)flags;
    *out = stream_new();
    return *out != NULL ? 0 : 2;
}

EXPORT int cuStreamQuery(void *given)
{
    struct stream *stream = stream_of(given);
    int code;

    NEED_CONTEXT;
    pthread_mutex_lock(&lock);
    code = stream->failed != 0 ? stream->failed : stream->left > 0 ? 600 : 0;
    pthread_mutex_unlock(&lock);
    return code;
}

EXPORT int cuStreamSynchronize(void *given)
{
    struct stream *stream = stream_of(given);

    NEED_CONTEXT;
    pthread_mutex_lock(&lock);
    while (stream->left > 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return stream->failed;
}

EXPORT int cuStreamDestroy_v2(void *given)
{
    struct stream *stream = given;

    NEED_CONTEXT;
    push(stream, (struct item){.what = STOP});
    pthread_join(stream->thread, NULL);
    free(stream);
    return 0;
}

EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    NEED_CONTEXT;
    (void)flags;
    return push(stream, (struct item){.what = WAIT, .event = event});
}

EXPORT int cuStreamIsCapturing(void *stream, int *out)
{
    NEED_CONTEXT;
    *out = stream_of(stream)->is_capturing;
    return 0;
}

EXPORT int cuEventCreate(void **out, unsigned flags)
{
    NEED_CONTEXT;
    (void)flags;
    *out = calloc(1, sizeof(struct event));
    return *out != NULL ? 0 : 2;
}

EXPORT int cuEventDestroy_v2(void *given)
{
    struct event *event = given;

    NEED_CONTEXT;
    pthread_mutex_lock(&lock);
    event->is_destroyed = true;
    let_go(event);
    pthread_mutex_unlock(&lock);
    return 0;
}

EXPORT int cuEventRecord(void *event, void *stream)
{
    NEED_CONTEXT;
    return push(stream, (struct item){.what = RECORD, .event = event});
}

EXPORT int cuEventQuery(void *given)
{
    const struct event *event = given;
    int code;

    NEED_CONTEXT;
    pthread_mutex_lock(&lock);
    code = event->reached < event->recorded ? 600 : 0;
    pthread_mutex_unlock(&lock);
    return code;
}

EXPORT int cuModuleLoadData(void **out, const void *image)
{
    NEED_CONTEXT;
    if (strncmp(image, ".version 6.0\n.target sm_70\n", 27) != 0)
        return 218;
    *out = (void *)image;
    return 0;
}

EXPORT int cuModuleUnload(void *module)
{
    NEED_CONTEXT;
    (void)module;
    return 0;
}

EXPORT int cuModuleGetFunction(void **out, void *module, const char *name)
{
    char entry[128];

    NEED_CONTEXT;
    snprintf(entry, sizeof(entry), ".entry %s(", name);
    if (strstr(module, entry) == NULL)
        return 500;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        if (strcmp(kernels[i].name, name) == 0) {
            *out = (void *)&kernels[i];
            return 0;
        }
    return 500;
}

/* NOLINTNEXTLINE(readability-function-size): the driver has it so */
EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned shared_bytes, void *stream,
                          void **params, void **extra)
{
    struct item item = {
        .what = LAUNCH, .kernel = function, .grid = grid_x, .threads = block_x};

    NEED_CONTEXT;
    if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x == 0 ||
        block_x > 1024 || block_y != 1 || block_z != 1 || shared_bytes != 0 ||
        extra != NULL)
        return 1;
    memcpy(&item.args, params[0], item.kernel->bytes);
    __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED);
    return push(stream, item);
}

/* Where an address is: the GPU of its memory, HOST_PINNED, or NOWHERE. */
enum {
    NOWHERE = -2,
    HOST_PINNED = -1
};
static int gpu_of(const void *at)
{
    int place;
    int gpu = NOWHERE;

    pthread_mutex_lock(&lock);
    place = find_block(at);
    if (place >= 0)
        gpu = blocks[place].gpu;
    for (int i = 0; i < pinned_count && gpu == NOWHERE; i++)
        if (pinned[i] == at)
            gpu = HOST_PINNED;
    pthread_mutex_unlock(&lock);
    return gpu;
}

EXPORT int cuPointerGetAttribute(void *out, int attribute, const void *at)
{
    const int gpu = gpu_of(at);
    const struct block *block;

    FAIL_IF_TOLD;
    if (gpu == NOWHERE)
        return 1;
    if (attribute == 7) {
        pthread_mutex_lock(&lock);
        block = block_of(at);
        *(unsigned long long *)out = block != NULL ? block->id : 0;
        pthread_mutex_unlock(&lock);
    } else if (attribute == 2)
        *(unsigned *)out = gpu >= 0 ? 2 : 1;
    else if (attribute == 9)
        *(int *)out = gpu >= 0 ? gpu : 0;
    else
        return 1;
    return 0;
}
