/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GPU is opened and closed here, and its plain calls are made: memory,
 * copies, events, streams. Arithmetic is in arith.c, packing in pack.c.
 */
#define RUEDA_LOG_TAG "device"

#include "device/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/cuda/cuda_state.h"
#include "device/cuda/nccl.h"

/* ---- Around every call --------------------------------------------------- */

void rueda_cuda_keep(struct rueda_cuda *cuda, const struct rueda_text *words)
{
    pthread_mutex_lock(&cuda->lock);
    cuda->words = *words;
    pthread_mutex_unlock(&cuda->lock);
}

/* Another thread may capture a graph in a mode that forbids calls of all
 * others; ours have nothing to do with its streams. */
void rueda_cuda_begin(const struct rueda_device *device,
                      struct rueda_work *work, struct rueda_cuda_scope *scope)
{
    struct rueda_cuda *cuda = rueda_cuda_of(device);

    scope->cuda = cuda;
    scope->row = work != NULL ? work->state[0] : NULL;
    scope->mode = RUEDA_CUDA_CAPTURE_RELAXED;
    scope->result = cuda->driver.context_push(cuda->context);
    scope->is_inside = scope->result == RUEDA_CUDA_SUCCESS;
    if (!scope->is_inside)
        return;
    cuda->driver.capture_mode(&scope->mode);
    if (work == NULL || scope->row != NULL)
        return;
    scope->result = rueda_cuda_row_take(cuda, &scope->row);
    if (scope->result == RUEDA_CUDA_SUCCESS)
        work->state[0] = scope->row;
}

void rueda_cuda_leave(struct rueda_cuda_scope *scope)
{
    void *ignored;

    if (!scope->is_inside)
        return;
    scope->cuda->driver.capture_mode(&scope->mode);
    scope->cuda->driver.context_pop(&ignored);
}

static rueda_status fail(const struct rueda_cuda *cuda,
                         rueda_cuda_result result, const char *what)
{
    struct rueda_text words = {{0}};

    rueda_text_add(&words, "GPU %d: %s: ", cuda->number, what);
    rueda_cuda_explain(&cuda->driver, result, &words);
    log_error("%s", words.chars);
    rueda_cuda_keep((struct rueda_cuda *)cuda, &words);
    return rueda_cuda_status(result);
}

rueda_status rueda_cuda_end(struct rueda_cuda_scope *scope,
                            rueda_cuda_result result, const char *what)
{
    rueda_cuda_leave(scope);
    if (result != RUEDA_CUDA_SUCCESS && result != RUEDA_CUDA_NOT_READY)
        return fail(scope->cuda, result, what);
    return scope->row != NULL ? RUEDA_IN_PROGRESS : rueda_cuda_status(result);
}

/* ---- Memory ----------------------------------------------------------- */

static void *cuda_alloc(const struct rueda_device *device, size_t bytes)
{
    struct rueda_cuda_scope scope;
    void *at = NULL;

    rueda_cuda_begin(device, NULL, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result = scope.cuda->driver.alloc(&at, bytes > 0 ? bytes : 1);
    return rueda_cuda_end(&scope, scope.result, "cuMemAlloc") == RUEDA_OK
               ? at
               : NULL;
}

static void cuda_free(const struct rueda_device *device, void *at)
{
    struct rueda_cuda_scope scope;

    if (at == NULL)
        return;
    rueda_cuda_begin(device, NULL, &scope);
    rueda_cuda_end(&scope, scope.cuda->driver.free(at), "cuMemFree");
}

static void *cuda_alloc_host(const struct rueda_device *device, size_t bytes)
{
    struct rueda_cuda_scope scope;
    void *at = NULL;

    rueda_cuda_begin(device, NULL, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result =
            scope.cuda->driver.host_alloc(&at, bytes > 0 ? bytes : 1, 0);
    return rueda_cuda_end(&scope, scope.result, "cuMemHostAlloc") == RUEDA_OK
               ? at
               : NULL;
}

static void cuda_free_host(const struct rueda_device *device, void *at)
{
    struct rueda_cuda_scope scope;

    if (at == NULL)
        return;
    rueda_cuda_begin(device, NULL, &scope);
    rueda_cuda_end(&scope, scope.cuda->driver.host_free(at), "cuMemFreeHost");
}

/* What the driver does not know is plain memory of the host. */
static rueda_status cuda_owns(const struct rueda_device *device, const void *at)
{
    struct rueda_cuda *cuda = rueda_cuda_of(device);
    struct rueda_text words = {{0}};
    unsigned kind = 0;
    int ordinal = -1;

    if (at == NULL)
        return RUEDA_OK;
    if (cuda->driver.pointer_attribute(&kind, RUEDA_CUDA_ATTRIBUTE_MEMORY,
                                       at) != RUEDA_CUDA_SUCCESS)
        kind = 0;
    if (kind == RUEDA_CUDA_MEMORY_DEVICE &&
        cuda->driver.pointer_attribute(&ordinal, RUEDA_CUDA_ATTRIBUTE_ORDINAL,
                                       at) == RUEDA_CUDA_SUCCESS &&
        ordinal == cuda->number)
        return RUEDA_OK;
    if (kind == RUEDA_CUDA_MEMORY_DEVICE)
        rueda_text_add(&words,
                       "the memory belongs to GPU %d and not to GPU %d; name "
                       "the GPU that holds the tensor",
                       ordinal, cuda->number);
    else
        rueda_text_add(&words,
                       "the address is in the memory of the host and not on "
                       "GPU %d; leave out the device, or copy the tensor",
                       cuda->number);
    rueda_cuda_keep(cuda, &words);
    return RUEDA_ERR_INVALID;
}

/* The driver sends a short copy to the GPU by way of its compute units, which
 * then have to be given to this process: on an H200 that two processes use, 4
 * KiB take 154 us. Two rows go by a copy engine, and take 16 us. */
#define SHORT_COPY ((size_t)32 << 10)

static rueda_cuda_result copy(const struct rueda_cuda_scope *scope, void *dst,
                              const void *src, size_t bytes)
{
    const struct rueda_cuda_rows rows = {
        .src_kind = RUEDA_CUDA_MEMORY_UNIFIED,
        .src = src,
        .src_pitch = bytes / 2,
        .dst_kind = RUEDA_CUDA_MEMORY_UNIFIED,
        .dst = dst,
        .dst_pitch = bytes / 2,
        .width = bytes / 2,
        .height = 2,
    };

    if (bytes < SHORT_COPY && bytes % 2 == 0)
        return scope->cuda->driver.copy_rows(&rows, scope->row->stream);
    return scope->cuda->driver.copy(dst, src, bytes, scope->row->stream);
}

static rueda_status cuda_copy(const struct rueda_device *device,
                              struct rueda_work *work, void *dst,
                              const void *src, size_t bytes)
{
    struct rueda_cuda_scope scope;

    if (bytes == 0 || dst == src)
        return work->status;
    rueda_cuda_begin(device, work, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result = copy(&scope, dst, src, bytes);
    return rueda_cuda_end(&scope, scope.result, "cuMemcpyAsync");
}

/* ---- Rows and events -------------------------------------------------- */

static void hand_over_dots(struct rueda_cuda_row *row)
{
    for (int i = 0; i < row->dot_count; i++)
        memcpy(row->owners[i], row->dots + (size_t)3 * (size_t)i,
               3 * sizeof(double));
    row->dot_count = 0;
}

static rueda_status cuda_poll(const struct rueda_device *device,
                              struct rueda_work *work)
{
    struct rueda_cuda_row *row = work->state[0];
    struct rueda_cuda_scope scope;
    rueda_status status;

    if (row == NULL)
        return RUEDA_OK;
    rueda_cuda_begin(device, NULL, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result = scope.cuda->driver.stream_query(row->stream);
    status = rueda_cuda_end(&scope, scope.result, "a kernel or copy");
    if (status == RUEDA_OK)
        hand_over_dots(row);
    if (status != RUEDA_IN_PROGRESS) {
        row->dot_count = 0;
        work->state[0] = NULL;
        rueda_cuda_row_give(scope.cuda, row);
    }
    return status;
}

static struct rueda_cuda_mark *mark_of(const struct rueda_event *event)
{
    return event->state[0];
}

/* Codes from 900 on tell that a capture is in the way. */
static rueda_cuda_result refuse_capture(const struct rueda_cuda *cuda,
                                        void *stream)
{
    int is_capturing = 0;
    rueda_cuda_result result =
        cuda->driver.stream_capturing(stream, &is_capturing);

    if (result >= RUEDA_CUDA_CAPTURING ||
        (result == RUEDA_CUDA_SUCCESS && is_capturing != 0))
        return RUEDA_CUDA_CAPTURING;
    return result;
}

static rueda_status cuda_record(const struct rueda_device *device, void *stream,
                                struct rueda_event *event)
{
    struct rueda_cuda_mark *mark = mark_of(event);
    struct rueda_cuda_scope scope;
    const char *what = "cuStreamIsCapturing";

    rueda_cuda_begin(device, NULL, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result = refuse_capture(scope.cuda, stream);
    if (scope.result == RUEDA_CUDA_SUCCESS && mark == NULL &&
        scope.cuda->driver.stream_query(stream) == RUEDA_CUDA_SUCCESS) {
        rueda_cuda_leave(&scope); /* there is nothing to wait for */
        return RUEDA_OK;
    }
    if (scope.result == RUEDA_CUDA_SUCCESS && mark == NULL) {
        what = "cuEventCreate";
        scope.result = rueda_cuda_mark_take(scope.cuda, &mark);
        event->state[0] = mark;
    }
    if (scope.result == RUEDA_CUDA_SUCCESS) {
        what = "cuEventRecord, on a stream of the application";
        scope.result = scope.cuda->driver.event_record(mark->event, stream);
    }
    return rueda_cuda_end(&scope, scope.result, what);
}

static rueda_status cuda_is_done(const struct rueda_device *device,
                                 struct rueda_event *event)
{
    struct rueda_cuda_scope scope;

    if (event->state[0] == NULL)
        return RUEDA_OK;
    rueda_cuda_begin(device, NULL, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result = scope.cuda->driver.event_query(mark_of(event)->event);
    return rueda_cuda_end(&scope, scope.result, "cuEventQuery");
}

static rueda_status cuda_wait(const struct rueda_device *device, void *stream,
                              struct rueda_event *event)
{
    struct rueda_cuda_scope scope;

    if (event->state[0] == NULL)
        return RUEDA_OK;
    rueda_cuda_begin(device, NULL, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result =
            scope.cuda->driver.stream_wait(stream, mark_of(event)->event, 0);
    return rueda_cuda_end(&scope, scope.result, "cuStreamWaitEvent");
}

static rueda_status cuda_after(const struct rueda_device *device,
                               struct rueda_work *work,
                               struct rueda_event *event)
{
    struct rueda_cuda_scope scope;

    if (event->state[0] == NULL)
        return work->status;
    rueda_cuda_begin(device, work, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result = scope.cuda->driver.stream_wait(scope.row->stream,
                                                      mark_of(event)->event, 0);
    return rueda_cuda_end(&scope, scope.result, "cuStreamWaitEvent");
}

static void cuda_hold(const struct rueda_device *device,
                      const struct rueda_event *event, struct rueda_event *out)
{
    struct rueda_cuda_mark *mark = mark_of(event);

    (void)device;
    if (mark != NULL)
        atomic_fetch_add_explicit(&mark->holders, 1, memory_order_relaxed);
    *out = *event;
}

/* A stream that waits for it has taken note of the event as it was. */
static void cuda_forget(const struct rueda_device *device,
                        struct rueda_event *event)
{
    if (event->state[0] != NULL)
        rueda_cuda_mark_give(rueda_cuda_of(device), mark_of(event));
    event->state[0] = NULL;
}

static void cuda_tell(const struct rueda_device *device, struct rueda_text *out)
{
    struct rueda_cuda *cuda = rueda_cuda_of(device);

    pthread_mutex_lock(&cuda->lock);
    rueda_text_add(out, "%s", cuda->words.chars);
    pthread_mutex_unlock(&cuda->lock);
}

static const struct rueda_device_ops cuda_ops = {
    .name = "cuda",
    .memory = RUEDA_MEMKIND_CUDA,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .alloc_host = cuda_alloc_host,
    .free_host = cuda_free_host,
    .owns = cuda_owns,
    .copy = cuda_copy,
    .gather = rueda_cuda_gather,
    .scatter = rueda_cuda_scatter,
    .reduce = rueda_cuda_reduce,
    .reduce_all = rueda_cuda_reduce_all,
    .scale = rueda_cuda_scale,
    .neutral = rueda_cuda_neutral,
    .convert = rueda_cuda_convert,
    .dots = rueda_cuda_dots,
    .combine = rueda_cuda_combine,
    .poll = cuda_poll,
    .record = cuda_record,
    .is_done = cuda_is_done,
    .wait = cuda_wait,
    .after = cuda_after,
    .hold = cuda_hold,
    .forget = cuda_forget,
    .identity = rueda_cuda_identity,
    .region = rueda_cuda_region,
    .share = rueda_cuda_share,
    .reach = rueda_cuda_reach,
    .unreach = rueda_cuda_unreach,
    .tell = cuda_tell,
};

/* ---- Life ------------------------------------------------------------- */

/* Each kernel by its name. */
static rueda_cuda_result find_kernels(struct rueda_cuda *cuda)
{
    static const char *const names[] = {
#define X(name, symbol) symbol,
        RUEDA_CUDA_KERNELS(X)
#undef X
    };
    rueda_cuda_result result = RUEDA_CUDA_SUCCESS;

    for (int i = 0; i < RUEDA_CUDA_KERNEL_COUNT && result == RUEDA_CUDA_SUCCESS;
         i++)
        result = cuda->driver.module_function(&cuda->kernels[i], cuda->module,
                                              names[i]);
    return result;
}

static rueda_cuda_result load_kernels(struct rueda_cuda *cuda)
{
    rueda_cuda_result result = cuda->driver.context_push(cuda->context);
    void *ignored;

    if (result != RUEDA_CUDA_SUCCESS)
        return result;
    result = cuda->driver.module_load(&cuda->module, rueda_cuda_ptx);
    if (result == RUEDA_CUDA_SUCCESS)
        result = find_kernels(cuda);
    if (result != RUEDA_CUDA_SUCCESS && cuda->module != NULL)
        cuda->driver.module_unload(cuda->module);
    cuda->driver.context_pop(&ignored);
    return result;
}

/* The driver is open. */
static rueda_status open_gpu(struct rueda_cuda *cuda, struct rueda_text *error)
{
    const struct rueda_cuda_driver *driver = &cuda->driver;
    const char *what = "cuDeviceGet";
    rueda_cuda_result result = driver->device_get(&cuda->ordinal, cuda->number);

    if (result == RUEDA_CUDA_SUCCESS) {
        what = "cuDevicePrimaryCtxRetain";
        result = driver->context_retain(&cuda->context, cuda->ordinal);
    }
    if (result == RUEDA_CUDA_SUCCESS) {
        what = "the kernels cannot be loaded";
        result = load_kernels(cuda);
        if (result != RUEDA_CUDA_SUCCESS)
            driver->context_release(cuda->ordinal);
    }
    if (result == RUEDA_CUDA_SUCCESS)
        return RUEDA_OK;
    rueda_text_set(error, "GPU %d: %s: ", cuda->number, what);
    rueda_cuda_explain(driver, result, error);
    return rueda_cuda_status(result);
}

static void say_hello(const struct rueda_cuda *cuda)
{
    char name[128] = "";
    int version = 0;

    cuda->driver.device_name(name, sizeof(name), cuda->ordinal);
    cuda->driver.version(&version);
    log_debug("tensors are on GPU %d, %s, driver for CUDA %d.%d", cuda->number,
              name, version / 1000, version % 1000 / 10);
}

rueda_status rueda_cuda_open(const char *library, int number,
                             const struct rueda_device **out,
                             struct rueda_text *error)
{
    struct rueda_cuda *cuda = calloc(1, sizeof(*cuda));
    rueda_status status;

    if (cuda == NULL) {
        rueda_text_set(error, "no memory for GPU %d", number);
        return RUEDA_ERR_NOMEM;
    }
    cuda->super.ops = &cuda_ops;
    cuda->number = number;
    status = rueda_cuda_driver_open(&cuda->driver, library, error);
    if (status != RUEDA_OK)
        goto err_free;
    status = open_gpu(cuda, error);
    if (status != RUEDA_OK)
        goto err_free;
    pthread_mutex_init(&cuda->lock, NULL);
    say_hello(cuda);
    *out = &cuda->super;
    return RUEDA_OK;

err_free:
    free(cuda);
    return status;
}

void rueda_cuda_set_up(const struct rueda_device *device,
                       const struct rueda_config *config)
{
    static const struct rueda_algo *const algos[] = {&rueda_cuda_nccl, NULL};
    struct rueda_cuda *cuda = rueda_cuda_of(device);

    cuda->nccl = rueda_nccl_new(config);
    cuda->super.algos = algos;
    cuda->super.private_by = config->cuda_ipc ? NULL : "RUEDA_CUDA_IPC=0";
}

void rueda_cuda_close(const struct rueda_device *device)
{
    struct rueda_cuda *cuda = rueda_cuda_of(device);
    void *ignored;

    rueda_nccl_free(cuda);
    if (cuda->driver.context_push(cuda->context) == RUEDA_CUDA_SUCCESS) {
        rueda_cuda_rows_fini(cuda);
        rueda_cuda_tables_fini(cuda);
        cuda->driver.module_unload(cuda->module);
        cuda->driver.context_pop(&ignored);
    }
    cuda->driver.context_release(cuda->ordinal);
    pthread_mutex_destroy(&cuda->lock);
    free(cuda);
}
