/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of the public header as words, and its version. Every function
 * answers for any number: programs pass on what a newer library may have
 * returned.
 */
#include <rueda/rueda.h>

#include "base/dtype.h"

#define TEXT_OF(x)  TEXT_OF_(x)
#define TEXT_OF_(x) #x

const char *rueda_version(void)
{
    return TEXT_OF(RUEDA_VERSION_MAJOR) "." TEXT_OF(
        RUEDA_VERSION_MINOR) "." TEXT_OF(RUEDA_VERSION_PATCH);
}

int rueda_abi(void)
{
    return RUEDA_ABI;
}

const char *rueda_status_str(rueda_status status)
{
    switch (status) {
#define X(name, value, text)                                                   \
    case RUEDA_##name:                                                         \
        return text;
        RUEDA_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

size_t rueda_dtype_size(rueda_dtype dtype)
{
    return rueda_dtype_bytes(dtype);
}

const char *rueda_dtype_str(rueda_dtype dtype)
{
    switch (dtype) {
#define X(name, value, bytes, text)                                            \
    case RUEDA_##name:                                                         \
        return text;
        RUEDA_DTYPE_MAP(X)
#undef X
    }
    return "unknown dtype";
}

bool rueda_dtype_is_float(rueda_dtype dtype)
{
    return dtype == RUEDA_FLOAT16 || dtype == RUEDA_BFLOAT16 ||
           dtype == RUEDA_FLOAT32 || dtype == RUEDA_FLOAT64;
}

const char *rueda_reduction_str(rueda_reduction reduction)
{
    switch (reduction) {
#define X(name, value, text)                                                   \
    case RUEDA_##name:                                                         \
        return text;
        RUEDA_REDUCTION_MAP(X)
#undef X
    }
    return "unknown reduction";
}

const char *rueda_compression_str(rueda_compression compression)
{
    switch (compression) {
#define X(name, value, text)                                                   \
    case RUEDA_##name:                                                         \
        return text;
        RUEDA_COMPRESSION_MAP(X)
#undef X
    }
    return "unknown compression";
}

const char *rueda_kind_str(rueda_kind kind)
{
    switch (kind) {
    case RUEDA_ALLREDUCE:
        return "allreduce";
    case RUEDA_ALLGATHER:
        return "allgather";
    case RUEDA_BROADCAST:
        return "broadcast";
    case RUEDA_ALLTOALL:
        return "alltoall";
    case RUEDA_REDUCE_SCATTER:
        return "reducescatter";
    case RUEDA_BARRIER:
        return "barrier";
    case RUEDA_JOIN:
        return "join";
    case RUEDA_SEND:
        return "send";
    case RUEDA_RECV:
        return "recv";
    }
    /* Those of op/request.h, which this folder may not include. Messages about
     * a change of process sets name them. */
    if ((int)kind == RUEDA_RECV + 1)
        return "process set add";
    if ((int)kind == RUEDA_RECV + 2)
        return "process set drop";
    if ((int)kind == RUEDA_RECV + 3)
        return "process set close";
    return "unknown kind";
}
