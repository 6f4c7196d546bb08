/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's library is found and opened here, and its failures put in words. */
#define RUEDA_LOG_TAG "device"

#include "device/cuda/nccl_lib.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "os/library.h"

/* Where wheels of Python put it, beside our own package. */
#define FOLDER "nvidia/nccl/lib"
#define NAME   "libnccl.so.2"

static rueda_status load(struct rueda_nccl_lib *lib, const char *wanted,
                         struct rueda_text *error)
{
    if (wanted[0] != '\0') {
        lib->library = rueda_library_open(wanted);
        snprintf(lib->path, sizeof(lib->path), "%s", wanted);
    } else {
        lib->library = rueda_library_open_beside(FOLDER, NAME, lib->path,
                                                 sizeof(lib->path));
    }
    if (lib->library != NULL)
        return RUEDA_OK;
    rueda_text_set(error,
                   "NCCL's library %s cannot be loaded (%s); install "
                   "nvidia-nccl-cu12 or libnccl2, or set RUEDA_NCCL_LIB to its "
                   "path",
                   lib->path, rueda_library_error());
    return RUEDA_ERR_UNSUPPORTED;
}

static rueda_status find_functions(struct rueda_nccl_lib *lib,
                                   struct rueda_text *error)
{
    static const char words[] =
        "%s has no function %s; it belongs to an NCCL that is too old (2.10 is "
        "needed) or is no NCCL at all; install a later one, or set "
        "RUEDA_NCCL_LIB to its libnccl.so.2";

#define X(symbol, field, parameters)                                           \
    if (rueda_library_function(lib->library, #symbol, &lib->field) !=          \
        RUEDA_OK) {                                                            \
        rueda_text_set(error, words, lib->path, #symbol);                      \
        return RUEDA_ERR_UNSUPPORTED;                                          \
    }
    RUEDA_NCCL_FUNCTIONS(X)
    X(ncclGetErrorString, error_string, )
#undef X
    return RUEDA_OK;
}

/* What is not there stays NULL. */
static void find_later_functions(struct rueda_nccl_lib *lib)
{
    struct rueda_text name = {{0}};

#define X(symbol, field, parameters)                                           \
    rueda_library_function(lib->library, #symbol, &lib->field);
    RUEDA_NCCL_LATER_FUNCTIONS(X)
    X(ncclGetLastError, last_error, )
#undef X
    rueda_nccl_name(lib, &name);
    if (lib->comm_init_config == NULL)
        log_info("%s has no ncclCommInitRankConfig (2.14 has): a thread makes "
                 "each communicator, and one that fails cannot be ended",
                 name.chars);
    if (lib->comm_finalize == NULL)
        log_info("%s has no ncclCommFinalize (2.14 has): communicators end "
                 "without waiting for other ranks",
                 name.chars);
}

rueda_status rueda_nccl_lib_open(struct rueda_nccl_lib *lib, const char *wanted,
                                 struct rueda_text *error)
{
    struct rueda_text name = {{0}};
    rueda_status status;

    memset(lib, 0, sizeof(*lib));
    status = load(lib, wanted, error);
    if (status == RUEDA_OK)
        status = find_functions(lib, error);
    if (status != RUEDA_OK)
        return status;
    if (lib->get_version(&lib->version) != RUEDA_NCCL_SUCCESS ||
        lib->version < RUEDA_NCCL_OLDEST) {
        rueda_nccl_name(lib, &name);
        rueda_text_set(error,
                       "%s of %s is too old; 2.10 is needed: install a later "
                       "one, or set RUEDA_NCCL_LIB to its libnccl.so.2",
                       name.chars, lib->path);
        return RUEDA_ERR_UNSUPPORTED;
    }
    find_later_functions(lib);
    return RUEDA_OK;
}

void rueda_nccl_name(const struct rueda_nccl_lib *lib, struct rueda_text *out)
{
    rueda_text_add(out, "NCCL %d.%d.%d", lib->version / 10000,
                   lib->version % 10000 / 100, lib->version % 100);
}

static const char *remedy(rueda_nccl_result result)
{
    switch (result) {
    case RUEDA_NCCL_INVALID_USAGE:
        return "; ranks that share a GPU cannot use NCCL unless each of them "
               "has its own NCCL_HOSTID; RUEDA_NCCL=never does without NCCL";
    case RUEDA_NCCL_SYSTEM_ERROR:
    case RUEDA_NCCL_REMOTE_ERROR:
        return "; NCCL_DEBUG=WARN tells more, NCCL_SOCKET_IFNAME chooses the "
               "network, RUEDA_NCCL=never does without NCCL";
    default:
        return "; NCCL_DEBUG=WARN tells more, RUEDA_NCCL=never does without "
               "NCCL";
    }
}

void rueda_nccl_explain(const struct rueda_nccl_lib *lib, void *comm,
                        rueda_nccl_result result, const char *what,
                        struct rueda_text *out)
{
    const char *words = lib->error_string(result);
    const char *detail = lib->last_error != NULL ? lib->last_error(comm) : NULL;

    rueda_nccl_name(lib, out);
    rueda_text_add(out, ": %s: %s", what,
                   words != NULL ? words : "unknown error");
    if (detail != NULL && detail[0] != '\0')
        rueda_text_add(out, " (%.120s)", detail);
    rueda_text_add(out, "%s", remedy(result));
}

int rueda_nccl_dtype(rueda_dtype dtype)
{
    switch (dtype) {
    case RUEDA_INT8:
        return 0;
    case RUEDA_UINT8:
        return 1;
    case RUEDA_INT32:
        return 2;
    case RUEDA_INT64:
        return 4;
    case RUEDA_FLOAT16:
        return 6;
    case RUEDA_FLOAT32:
        return 7;
    case RUEDA_FLOAT64:
        return 8;
    case RUEDA_BFLOAT16:
        return 9;
    default:
        return -1;
    }
}

int rueda_nccl_op(rueda_reduction reduction)
{
    switch (reduction) {
    case RUEDA_SUM:
        return 0;
    case RUEDA_PRODUCT:
        return 1;
    case RUEDA_MAX:
        return 2;
    case RUEDA_MIN:
        return 3;
    default:
        return -1;
    }
}
