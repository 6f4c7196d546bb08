/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a GPU that other processes map (CUDA IPC). What is mapped is always
 * a whole allocation, since that is all a handle can name.
 *
 * The kernels of a process that maps memory run in that process. So whatever
 * becomes of the owner, they end; the driver keeps the memory until the last
 * process has let go of it.
 */
#include <string.h>

#include "device/cuda/cuda_state.h"
#include "os/process.h"

_Static_assert(sizeof(struct rueda_cuda_handle) ==
                   sizeof(((struct rueda_shared *)0)->handle),
               "a handle");

/* These failures are no errors: the caller goes another way. */
static rueda_status explain(const struct rueda_cuda *cuda,
                            rueda_cuda_result result, const char *what,
                            struct rueda_text *why)
{
    if (result == RUEDA_CUDA_SUCCESS)
        return RUEDA_OK;
    rueda_text_add(why, "GPU %d: %s: ", cuda->number, what);
    rueda_cuda_explain(&cuda->driver, result, why);
    return RUEDA_ERR_UNSUPPORTED;
}

void rueda_cuda_identity(const struct rueda_device *device, uint64_t out[2])
{
    const struct rueda_cuda *cuda = rueda_cuda_of(device);

    if (cuda->driver.device_uuid(out, cuda->ordinal) != RUEDA_CUDA_SUCCESS) {
        /* Then it is like no other. */
        rueda_process_identity(out);
        out[1] ^= (uint64_t)cuda->number + 1;
    }
}

rueda_status rueda_cuda_region(const struct rueda_device *device,
                               const void *at, struct rueda_region *out)
{
    struct rueda_cuda_scope scope;
    unsigned long long id = 0;
    void *base = NULL;
    size_t bytes = 0;

    rueda_cuda_begin(device, NULL, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result = scope.cuda->driver.address_range(&base, &bytes, at);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result = scope.cuda->driver.pointer_attribute(
            &id, RUEDA_CUDA_ATTRIBUTE_ALLOCATION, base);
    rueda_cuda_leave(&scope);
    if (scope.result != RUEDA_CUDA_SUCCESS)
        return RUEDA_ERR_UNSUPPORTED;
    *out = (struct rueda_region){id, base, bytes};
    return RUEDA_OK;
}

rueda_status rueda_cuda_share(const struct rueda_device *device,
                              const struct rueda_region *region,
                              struct rueda_shared *out, struct rueda_text *why)
{
    struct rueda_cuda_handle handle;
    struct rueda_cuda_scope scope;

    rueda_cuda_begin(device, NULL, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result = scope.cuda->driver.handle_get(&handle, region->base);
    rueda_cuda_leave(&scope);
    if (scope.result != RUEDA_CUDA_SUCCESS)
        return explain(scope.cuda, scope.result,
                       "cuIpcGetMemHandle, of memory that is no plain "
                       "allocation (torch's expandable segments are none)",
                       why);
    out->region = *region;
    rueda_process_identity(out->process);
    rueda_cuda_identity(device, out->device);
    memcpy(out->handle, &handle, sizeof(handle));
    return RUEDA_OK;
}

static bool is_mine(const struct rueda_shared *shared)
{
    uint64_t process[2];

    rueda_process_identity(process);
    return process[0] == shared->process[0] && process[1] == shared->process[1];
}

/* Memory of this process needs no mapping, and a handle of it could not be
 * opened. */
rueda_status rueda_cuda_reach(const struct rueda_device *device,
                              const struct rueda_shared *shared, void **out,
                              struct rueda_text *why)
{
    struct rueda_cuda_handle handle;
    struct rueda_cuda_scope scope;
    uint64_t here[2];
    void *at = NULL;

    if (is_mine(shared)) {
        rueda_cuda_identity(device, here);
        if (here[0] != shared->device[0] || here[1] != shared->device[1]) {
            rueda_text_add(why, "ranks of one process use several GPUs");
            return RUEDA_ERR_UNSUPPORTED;
        }
        *out = shared->region.base;
        return RUEDA_OK;
    }
    memcpy(&handle, shared->handle, sizeof(handle));
    rueda_cuda_begin(device, NULL, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.result =
            scope.cuda->driver.handle_open(&at, handle, RUEDA_CUDA_PEER_ACCESS);
    rueda_cuda_leave(&scope);
    if (scope.result != RUEDA_CUDA_SUCCESS)
        return explain(scope.cuda, scope.result,
                       "cuIpcOpenMemHandle, of a rank whose GPU has no peer "
                       "access, or that runs in a container of its own",
                       why);
    *out = at;
    return RUEDA_OK;
}

void rueda_cuda_unreach(const struct rueda_device *device,
                        const struct rueda_shared *shared, void *at)
{
    struct rueda_cuda_scope scope;

    if (is_mine(shared))
        return;
    rueda_cuda_begin(device, NULL, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        scope.cuda->driver.handle_close(at);
    rueda_cuda_leave(&scope);
}
