/* SPDX-License-Identifier: Apache-2.0 */
#include "support/gpu_seat.h"

#include "device/cuda/cuda.h"

static int open_gpu(struct test_rank *me, struct gpu_seat *gpu)
{
    const char *library = getenv("RUEDA_CUDA_LIB");
    struct rueda_text error = {{0}};

    fake_cuda_open(&gpu->fake, library);
    if (rueda_cuda_open(library, gpu->number, &gpu->device, &error) != RUEDA_OK)
        return rank_says(me, "%s", error.chars);
    if (gpu->fake.retain(&gpu->context, gpu->number) != 0 ||
        gpu->fake.push(gpu->context) != 0 ||
        gpu->fake.stream_create(&gpu->stream, 0) != 0)
        return rank_says(me, "no stream");
    return 0;
}

static int close_gpu(struct test_rank *me, struct gpu_seat *gpu)
{
    void *context = NULL;

    gpu->fake.stream_destroy(gpu->stream);
    if (gpu->fake.depth() != 1 || gpu->fake.pop(&context) != 0 ||
        context != gpu->context)
        return rank_says(me, "another context is current");
    gpu->fake.release(gpu->number);
    rueda_cuda_close(gpu->device);
    fake_cuda_close(&gpu->fake);
    return 0;
}

int gpu_seat_with(struct test_rank *me, int number,
                  int (*body)(struct test_rank *me, struct gpu_seat *gpu))
{
    struct gpu_seat gpu = {.number = number};
    int failed = open_gpu(me, &gpu);

    if (failed == 0)
        failed = body(me, &gpu);
    return failed != 0 ? failed : close_gpu(me, &gpu);
}

void *gpu_seat_put(const struct gpu_seat *gpu, const void *bytes, size_t count)
{
    void *at = gpu->device->ops->alloc(gpu->device, count);

    if (at != NULL && bytes != NULL &&
        !fake_cuda_copy(gpu->device, at, bytes, count))
        return NULL;
    return at;
}

int gpu_seat_get(struct test_rank *me, const struct gpu_seat *gpu, void *out,
                 void *at, size_t count)
{
    const bool is_good = fake_cuda_copy(gpu->device, out, at, count);

    gpu->device->ops->free(gpu->device, at);
    return is_good ? 0 : rank_says(me, "a result cannot be read");
}

struct rueda_submit_args gpu_seat_args(const struct gpu_seat *gpu,
                                       rueda_kind kind, const char *name,
                                       void *data, const size_t *shape)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;

    args.kind = kind;
    args.name = name;
    args.dtype = RUEDA_INT32;
    args.send = data;
    args.recv = data;
    args.dims = 1;
    args.shape = shape;
    args.device = gpu->number;
    args.stream = gpu->stream;
    return args;
}

int gpu_seat_run(struct test_rank *me, const struct rueda_submit_args *args)
{
    const char *name = args->name != NULL ? args->name : "";
    rueda_handle handle;

    if (rueda_submit(me->ctx, args, &handle) != RUEDA_OK)
        return rank_says(me, "submit %s: %s", name, rueda_last_error());
    if (rueda_wait(me->ctx, handle, 60000) != RUEDA_OK)
        return rank_says(me, "wait for %s: %s", name, rueda_last_error());
    return 0;
}
