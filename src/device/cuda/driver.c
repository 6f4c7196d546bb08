/* SPDX-License-Identifier: Apache-2.0 */
/* Loading the CUDA driver and putting its failures into words. Each message
 * says what helps, since users meet most of them when they set up a machine. */
#include "device/cuda/driver.h"

#include <string.h>

#include "os/library.h"

/* All functions by their names, which are those of the driver's current ABI. */
static rueda_status find_functions(struct rueda_cuda_driver *driver,
                                   const char *library,
                                   struct rueda_text *error)
{
    static const char words[] =
        "%s has no function %s; it belongs to a driver that is too old "
        "(CUDA 11.1 is needed) or is no CUDA driver at all; update the "
        "NVIDIA driver, or set RUEDA_CUDA_LIB to its libcuda.so.1";

#define X(symbol, field, parameters)                                           \
    if (rueda_library_function(driver->library, #symbol, &driver->field) !=    \
        RUEDA_OK) {                                                            \
        rueda_text_set(error, words, library, #symbol);                        \
        return RUEDA_ERR_UNSUPPORTED;                                          \
    }
    RUEDA_CUDA_FUNCTIONS(X)
#undef X
    return RUEDA_OK;
}

static rueda_status start(const struct rueda_cuda_driver *driver,
                          struct rueda_text *error)
{
    const rueda_cuda_result result = driver->init(0);
    int count = 0;

    if (result != RUEDA_CUDA_SUCCESS) {
        rueda_text_set(error, "the CUDA driver does not start: ");
        rueda_cuda_explain(driver, result, error);
        return rueda_cuda_status(result);
    }
    if (driver->device_count(&count) == RUEDA_CUDA_SUCCESS && count > 0)
        return RUEDA_OK;
    rueda_text_set(error, "the CUDA driver finds no GPU that this process may "
                          "use; look at nvidia-smi and CUDA_VISIBLE_DEVICES");
    return RUEDA_ERR_UNSUPPORTED;
}

rueda_status rueda_cuda_driver_open(struct rueda_cuda_driver *driver,
                                    const char *library,
                                    struct rueda_text *error)
{
    rueda_status status;

    memset(driver, 0, sizeof(*driver));
    driver->library = rueda_library_open(library);
    if (driver->library == NULL) {
        rueda_text_set(error,
                       "the CUDA driver library %s cannot be loaded (%s); "
                       "install the NVIDIA driver, mount it into the "
                       "container, or set RUEDA_CUDA_LIB to its path",
                       library, rueda_library_error());
        return RUEDA_ERR_UNSUPPORTED;
    }
    status = find_functions(driver, library, error);
    if (status == RUEDA_OK)
        status = start(driver, error);
    if (status != RUEDA_OK)
        rueda_library_close(driver->library);
    return status;
}

rueda_status rueda_cuda_status(rueda_cuda_result result)
{
    switch (result) {
    case RUEDA_CUDA_SUCCESS:
        return RUEDA_OK;
    case RUEDA_CUDA_NOT_READY:
        return RUEDA_IN_PROGRESS;
    case RUEDA_CUDA_OUT_OF_MEMORY:
        return RUEDA_ERR_NOMEM;
    case RUEDA_CUDA_NO_DEVICE:
    case RUEDA_CUDA_INVALID_DEVICE:
        return RUEDA_ERR_INVALID;
    case RUEDA_CUDA_CAPTURING:
    case RUEDA_CUDA_BAD_PTX:
    case RUEDA_CUDA_OLD_PTX:
        return RUEDA_ERR_UNSUPPORTED;
    default:
        return RUEDA_ERR_IO;
    }
}

/* What a user can do about it. */
static const char *remedy(rueda_cuda_result result)
{
    switch (result) {
    case RUEDA_CUDA_OUT_OF_MEMORY:
        return "; leave the GPU more memory, or set RUEDA_FUSION_BYTES lower";
    case RUEDA_CUDA_NO_DEVICE:
    case RUEDA_CUDA_INVALID_DEVICE:
        return "; look at nvidia-smi and CUDA_VISIBLE_DEVICES";
    case RUEDA_CUDA_BAD_PTX:
    case RUEDA_CUDA_OLD_PTX:
        return "; the kernels need compute capability 7.0 and a driver for "
               "CUDA 11.1 or later";
    case RUEDA_CUDA_ILLEGAL_ADDRESS:
        return "; an earlier kernel of this process wrote where it must not, "
               "or a tensor was freed too early; CUDA_LAUNCH_BLOCKING=1 and "
               "compute-sanitizer find it";
    case RUEDA_CUDA_CAPTURING:
        return "; collectives cannot be captured in a CUDA graph, so submit "
               "them outside the capture";
    default:
        return "";
    }
}

void rueda_cuda_explain(const struct rueda_cuda_driver *driver,
                        rueda_cuda_result result, struct rueda_text *out)
{
    const char *name = NULL;
    const char *words = NULL;

    driver->error_name(result, &name);
    driver->error_string(result, &words);
    rueda_text_add(out, "%s (%s)%s", words != NULL ? words : "unknown error",
                   name != NULL ? name : "no name", remedy(result));
}
