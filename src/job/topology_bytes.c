/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records and tables as bytes. Numbers are little-endian, of 32 bits, in two's
 * complement.
 *
 *      record  id[32] local_rank local_size name
 *      name    its length in one byte, then as many characters
 *      table   magic size host_count, then for each host  id[32] name,
 *              then for each rank  host local_rank local_size
 *
 * A table whose local ranks are not the launcher's has -1 for them. Whatever
 * else is in it follows from this.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "job/topology.h"

#define MAGIC      0x31505452u /* "RTP1" */
#define HEAD_BYTES 12
#define HOST_BYTES (RUEDA_TOPOLOGY_ID_BYTES + 1) /* and its name */
#define ROW_BYTES  12

/* ---- Writing ------------------------------------------------------------ */

static unsigned char *put_number(unsigned char *at, uint32_t number)
{
    rueda_put_u32(at, number);
    return at + 4;
}

/* Names are shown to people: nothing in them may move a terminal's cursor. */
static bool is_shown(unsigned char c)
{
    return c >= ' ' && c != 0x7f;
}

static unsigned char *put_name(unsigned char *at, const char *name)
{
    size_t length = strnlen(name, RUEDA_TOPOLOGY_NAME_BYTES - 1);

    *at++ = (unsigned char)length;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];

        *at++ = is_shown(c) ? c : '?';
    }
    return at;
}

size_t rueda_topology_record_pack(const struct rueda_topology_record *record,
                                  unsigned char *out)
{
    unsigned char *at = out;

    memcpy(at, record->host, sizeof(record->host));
    at += sizeof(record->host);
    at = put_number(at, (uint32_t)record->local_rank);
    at = put_number(at, (uint32_t)record->local_size);
    at = put_name(at, record->name);
    return (size_t)(at - out);
}

size_t rueda_topology_bytes(const struct rueda_topology *topology)
{
    size_t bytes = HEAD_BYTES + (size_t)topology->size * ROW_BYTES;

    for (int i = 0; i < topology->host_count; i++)
        bytes += HOST_BYTES + strlen(topology->hosts[i].name);
    return bytes;
}

/* What is written for a rank. */
struct numbers {
    uint32_t host;
    uint32_t local_rank;
    uint32_t local_size;
};

static struct numbers numbers_of(const struct rueda_topology *topology,
                                 int rank)
{
    const struct rueda_topology_row *row = &topology->rows[rank];
    struct numbers numbers = {(uint32_t)row->host, UINT32_MAX, UINT32_MAX};

    if (topology->is_launchers) {
        numbers.local_rank = (uint32_t)row->local_rank;
        numbers.local_size = (uint32_t)row->local_size;
    }
    return numbers;
}

void rueda_topology_pack(const struct rueda_topology *topology,
                         unsigned char *out)
{
    unsigned char *at = put_number(out, MAGIC);

    at = put_number(at, (uint32_t)topology->size);
    at = put_number(at, (uint32_t)topology->host_count);
    for (int i = 0; i < topology->host_count; i++) {
        memcpy(at, topology->hosts[i].id, RUEDA_TOPOLOGY_ID_BYTES);
        at = put_name(at + RUEDA_TOPOLOGY_ID_BYTES, topology->hosts[i].name);
    }
    for (int i = 0; i < topology->size; i++) {
        struct numbers numbers = numbers_of(topology, i);

        at = put_number(at, numbers.host);
        at = put_number(at, numbers.local_rank);
        at = put_number(at, numbers.local_size);
    }
}

/* ---- Reading ------------------------------------------------------------ */

/* What is left to read. After a failure nothing is, and all reads fail. */
struct topology_reader {
    const unsigned char *at;
    size_t left;
    bool is_good;
};

static const unsigned char *take(struct topology_reader *reader, size_t bytes)
{
    const unsigned char *at = reader->at;

    if (!reader->is_good || bytes > reader->left) {
        reader->is_good = false;
        return NULL;
    }
    reader->at += bytes;
    reader->left -= bytes;
    return at;
}

static uint32_t take_number(struct topology_reader *reader)
{
    const unsigned char *at = take(reader, 4);

    return at != NULL ? rueda_get_u32(at) : 0;
}

/* -1 and what local ranks and sizes can be; all else is a failure. */
static int take_local(struct topology_reader *reader)
{
    uint32_t number = take_number(reader);

    if (number == UINT32_MAX)
        return -1;
    if (number > RUEDA_TOPOLOGY_MAX)
        reader->is_good = false;
    return (int)number;
}

static void take_id(struct topology_reader *reader, unsigned char *out)
{
    const unsigned char *at = take(reader, RUEDA_TOPOLOGY_ID_BYTES);

    if (at != NULL)
        memcpy(out, at, RUEDA_TOPOLOGY_ID_BYTES);
}

static void take_name(struct topology_reader *reader, char *out)
{
    const unsigned char *length = take(reader, 1);
    const unsigned char *at = NULL;

    if (length != NULL && *length < RUEDA_TOPOLOGY_NAME_BYTES)
        at = take(reader, *length);
    if (at == NULL) {
        reader->is_good = false;
        return;
    }
    memset(out, 0, RUEDA_TOPOLOGY_NAME_BYTES);
    memcpy(out, at, *length);
    for (int i = 0; i < *length; i++)
        if (!is_shown(at[i]))
            reader->is_good = false;
}

rueda_status rueda_topology_record_unpack(const void *bytes, size_t len,
                                          struct rueda_topology_record *out)
{
    struct topology_reader reader = {bytes, len, true};
    struct rueda_topology_record record;

    memset(&record, 0, sizeof(record));
    take_id(&reader, record.host);
    record.local_rank = take_local(&reader);
    record.local_size = take_local(&reader);
    take_name(&reader, record.name);
    if (!reader.is_good || reader.left != 0 ||
        !rueda_topology_record_is_good(&record))
        return RUEDA_ERR_INVALID;
    *out = record;
    return RUEDA_OK;
}

/*
 * The records that a table was made of. Returns NULL without memory, or, with
 * is_good false, where the bytes are bad.
 */
static struct rueda_topology_record *
take_records(struct topology_reader *reader, int size, int host_count)
{
    struct rueda_topology_record *records;
    struct rueda_topology_host *hosts;

    records = calloc((size_t)size, sizeof(*records));
    hosts = calloc((size_t)host_count, sizeof(*hosts));
    if (records == NULL || hosts == NULL)
        goto err;
    for (int i = 0; i < host_count; i++) {
        take_id(reader, hosts[i].id);
        take_name(reader, hosts[i].name);
    }
    for (int i = 0; i < size; i++) {
        uint32_t host = take_number(reader);

        if (host >= (uint32_t)host_count)
            goto err_bad;
        memcpy(records[i].host, hosts[host].id, RUEDA_TOPOLOGY_ID_BYTES);
        memcpy(records[i].name, hosts[host].name, RUEDA_TOPOLOGY_NAME_BYTES);
        records[i].local_rank = take_local(reader);
        records[i].local_size = take_local(reader);
    }
    if (!reader->is_good || reader->left != 0)
        goto err_bad;
    free(hosts);
    return records;

err_bad:
    reader->is_good = false;
err:
    free(hosts);
    free(records);
    return NULL;
}

/*
 * A table has one way of being written. Two hosts with one id, hosts in
 * another order or local numbers of some ranks only make another.
 */
static bool is_packed_as(const struct rueda_topology *topology,
                         uint32_t host_count, const unsigned char *end)
{
    size_t bytes = (size_t)topology->size * ROW_BYTES;
    struct topology_reader reader = {end - bytes, bytes, true};

    if ((uint32_t)topology->host_count != host_count)
        return false;
    for (int i = 0; i < topology->size; i++) {
        struct numbers numbers = numbers_of(topology, i);

        if (take_number(&reader) != numbers.host ||
            take_number(&reader) != numbers.local_rank ||
            take_number(&reader) != numbers.local_size)
            return false;
    }
    return true;
}

rueda_status rueda_topology_unpack(const void *bytes, size_t len,
                                   struct rueda_topology **out,
                                   struct rueda_text *error)
{
    struct topology_reader reader = {bytes, len, true};
    bool is_magic = take_number(&reader) == MAGIC;
    uint32_t size = take_number(&reader);
    uint32_t hosts = take_number(&reader);
    struct rueda_topology_record *records;
    struct rueda_topology *topology;
    rueda_status status;

    /* Before memory is taken: that many can be in what is left. */
    if (!reader.is_good || !is_magic || size < 1 || size > RUEDA_TOPOLOGY_MAX ||
        hosts < 1 || hosts > size ||
        reader.left < (size_t)size * ROW_BYTES + (size_t)hosts * HOST_BYTES)
        goto err_bad;
    records = take_records(&reader, (int)size, (int)hosts);
    if (records == NULL && reader.is_good)
        goto err_memory;
    if (records == NULL)
        goto err_bad;
    status = rueda_topology_new(records, (int)size, &topology, error);
    free(records);
    if (status != RUEDA_OK)
        return status;
    if (!is_packed_as(topology, hosts, reader.at)) {
        rueda_topology_free(topology);
        goto err_bad;
    }
    *out = topology;
    return RUEDA_OK;

err_memory:
    rueda_text_set(error, "no memory for the table of %u ranks", size);
    return RUEDA_ERR_NOMEM;
err_bad:
    rueda_text_set(error, "%zu bytes that are not a table of ranks", len);
    return RUEDA_ERR_INVALID;
}
