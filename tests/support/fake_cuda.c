/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/library.h"

void fake_cuda_open(struct fake_cuda *fake, const char *path)
{
    const struct {
        const char *name;
        void *function;
    } functions[] = {
        {"fake_cuda_depth", &fake->depth},
        {"fake_cuda_blocks", &fake->blocks},
        {"fake_cuda_mapped", &fake->mapped},
        {"fake_cuda_retained", &fake->retained},
        {"fake_cuda_launches", &fake->launches},
        {"fake_cuda_capture", &fake->capture},
        {"cuCtxPushCurrent_v2", &fake->push},
        {"cuCtxPopCurrent_v2", &fake->pop},
        {"cuDevicePrimaryCtxRetain", &fake->retain},
        {"cuDevicePrimaryCtxRelease_v2", &fake->release},
        {"cuStreamCreate", &fake->stream_create},
        {"cuStreamDestroy_v2", &fake->stream_destroy},
    };

    fake->library = rueda_library_open(path);
    assert_non_null(fake->library);
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        assert_int_equal(rueda_library_function(fake->library,
                                                functions[i].name,
                                                functions[i].function),
                         RUEDA_OK);
}

void fake_cuda_close(struct fake_cuda *fake)
{
    rueda_library_close(fake->library);
}

rueda_status fake_cuda_await(const struct rueda_device *device,
                             struct rueda_work *work)
{
    while (rueda_device_poll(device, work) == RUEDA_IN_PROGRESS)
        usleep(10);
    return work->status;
}

bool fake_cuda_copy(const struct rueda_device *device, void *dst,
                    const void *src, size_t bytes)
{
    struct rueda_work work = {RUEDA_OK, {NULL}};

    rueda_device_copy(device, &work, dst, src, bytes);
    return fake_cuda_await(device, &work) == RUEDA_OK;
}
