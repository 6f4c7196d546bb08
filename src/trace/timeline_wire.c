/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/timeline_wire.h"

#include <limits.h>
#include <string.h>

#include "base/bytes.h"

/* Two bytes before the dimensions. */
#define SHAPE_HEAD 2

#define TIME_AT 8

static size_t write_shape(const struct rueda_timeline_record *record,
                          unsigned char *out)
{
    if (record->dims < 0)
        return 0;
    out[0] = (unsigned char)record->dtype;
    out[1] = (unsigned char)record->dims;
    for (size_t i = 0; i < (size_t)record->dims; i++)
        rueda_put_u64(out + SHAPE_HEAD + 8 * i, record->shape[i]);
    return SHAPE_HEAD + 8 * (size_t)record->dims;
}

size_t rueda_timeline_write(const struct rueda_timeline_record *record,
                            unsigned char out[RUEDA_TIMELINE_RECORD_MAX])
{
    unsigned char *extra = out + RUEDA_TIMELINE_HEAD_BYTES;
    size_t len = 0;

    switch (record->what) {
    case RUEDA_TIMELINE_NAME:
        memcpy(extra, record->name, record->name_len);
        len = record->name_len;
        break;
    case RUEDA_TIMELINE_END:
        len = write_shape(record, extra);
        break;
    case RUEDA_TIMELINE_ARRIVAL:
        rueda_put_u32(extra, (uint32_t)record->rank);
        len = 4;
        break;
    case RUEDA_TIMELINE_LOST:
        rueda_put_u64(extra, record->lost);
        len = 8;
        break;
    case RUEDA_TIMELINE_BEGIN:
    case RUEDA_TIMELINE_CYCLE:
        break;
    }
    out[0] = (unsigned char)record->what;
    out[1] = record->what == RUEDA_TIMELINE_BEGIN
                 ? (unsigned char)record->activity
                 : 0;
    rueda_put_u16(out + 2, (uint16_t)len);
    rueda_put_u32(out + 4, record->id);
    rueda_timeline_set_time(out, record->time_ns);
    return RUEDA_TIMELINE_HEAD_BYTES + len;
}

int64_t rueda_timeline_time(const unsigned char *record)
{
    return (int64_t)rueda_get_u64(record + TIME_AT);
}

void rueda_timeline_set_time(unsigned char *record, int64_t time_ns)
{
    rueda_put_u64(record + TIME_AT, (uint64_t)time_ns);
}

static bool read_shape(const unsigned char *extra, size_t len,
                       struct rueda_timeline_record *out)
{
    out->dims = -1;
    if (len == 0)
        return true;
    if (len < SHAPE_HEAD || extra[0] >= RUEDA_DTYPE_COUNT ||
        extra[1] > RUEDA_MAX_DIMS || len != SHAPE_HEAD + 8 * (size_t)extra[1])
        return false;
    out->dtype = (rueda_dtype)extra[0];
    out->dims = extra[1];
    for (size_t i = 0; i < extra[1]; i++)
        out->shape[i] = rueda_get_u64(extra + SHAPE_HEAD + 8 * i);
    return true;
}

static bool read_extra(const unsigned char *extra, size_t len,
                       struct rueda_timeline_record *out)
{
    switch (out->what) {
    case RUEDA_TIMELINE_NAME:
        out->name = (const char *)extra;
        out->name_len = len;
        return len >= 1 && len <= RUEDA_TIMELINE_NAME_MAX;
    case RUEDA_TIMELINE_END:
        return read_shape(extra, len, out);
    case RUEDA_TIMELINE_ARRIVAL:
        if (len != 4 || rueda_get_u32(extra) > INT_MAX)
            return false;
        out->rank = (int)rueda_get_u32(extra);
        return true;
    case RUEDA_TIMELINE_LOST:
        if (len != 8)
            return false;
        out->lost = rueda_get_u64(extra);
        return true;
    case RUEDA_TIMELINE_BEGIN:
    case RUEDA_TIMELINE_CYCLE:
        return len == 0;
    }
    return false;
}

size_t rueda_timeline_read(const void *bytes, size_t len,
                           struct rueda_timeline_record *out)
{
    const unsigned char *in = bytes;
    size_t extra;
    uint64_t time_ns;
    bool has_name;

    if (len < RUEDA_TIMELINE_HEAD_BYTES || in[0] > RUEDA_TIMELINE_LOST)
        return 0;
    out->what = (rueda_timeline_what)in[0];
    out->activity = (rueda_timeline_activity)in[1];
    extra = rueda_get_u16(in + 2);
    out->id = rueda_get_u32(in + 4);
    time_ns = rueda_get_u64(in + TIME_AT);
    out->time_ns = (int64_t)time_ns;

    has_name = out->what <= RUEDA_TIMELINE_ARRIVAL;
    if (in[1] >= (out->what == RUEDA_TIMELINE_BEGIN ? RUEDA_TIMELINE_ACTIVITIES
                                                    : 1) ||
        out->id > RUEDA_TIMELINE_NAMES || (out->id > 0) != has_name ||
        time_ns > INT64_MAX || extra > len - RUEDA_TIMELINE_HEAD_BYTES ||
        !read_extra(in + RUEDA_TIMELINE_HEAD_BYTES, extra, out))
        return 0;
    return RUEDA_TIMELINE_HEAD_BYTES + extra;
}
