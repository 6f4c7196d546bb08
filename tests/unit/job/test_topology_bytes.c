/* SPDX-License-Identifier: Apache-2.0 */
/* Records and tables as bytes, and bytes that are neither. Each try is in
 * memory of its very length, so that a sanitizer sees a read beyond it. */
#include "job/topology.h"
#include "unit/unit.h"

#define HEAD 12
#define HOST (RUEDA_TOPOLOGY_ID_BYTES + 1)
#define ROW  12

/* Five ranks on the hosts a, b and c, as a table in bytes. */
struct table {
    struct rueda_topology *topology;
    unsigned char *bytes;
    size_t len;
};

static int table_make(void **state, bool is_said)
{
    static const char hosts[] = "abacb";
    static const int locals[] = {1, 0, 0, 0, 1};
    struct rueda_topology_record records[5];
    struct table *table = calloc(1, sizeof(*table));
    struct rueda_text error = {{0}};

    if (table == NULL)
        return -1;
    memset(records, 0, sizeof(records));
    for (int i = 0; i < 5; i++) {
        memset(records[i].host, hosts[i], sizeof(records[i].host));
        snprintf(records[i].name, sizeof(records[i].name), "n-%c", hosts[i]);
        records[i].local_rank = is_said ? locals[i] : -1;
        records[i].local_size = is_said ? 2 : -1;
    }
    *state = table;
    if (rueda_topology_new(records, 5, &table->topology, &error) != RUEDA_OK)
        return -1;
    table->len = rueda_topology_bytes(table->topology);
    table->bytes = malloc(table->len);
    if (table->bytes == NULL)
        return -1;
    rueda_topology_pack(table->topology, table->bytes);
    return 0;
}

static int table_of_launcher(void **state)
{
    return table_make(state, true);
}

static int table_of_nobody(void **state)
{
    return table_make(state, false);
}

static int table_drop(void **state)
{
    struct table *table = *state;

    rueda_topology_free(table->topology);
    free(table->bytes);
    free(table);
    return 0;
}

static rueda_status unpack(const unsigned char *bytes, size_t len,
                           struct rueda_topology **out)
{
    unsigned char *copy = malloc(len > 0 ? len : 1);
    struct rueda_text error = {{0}};
    rueda_status status;

    assert_non_null(copy);
    memcpy(copy, bytes, len);
    status = rueda_topology_unpack(copy, len, out, &error);
    assert_int_equal(rueda_text_is_empty(&error), status == RUEDA_OK);
    free(copy);
    return status;
}

static void check_refused(const unsigned char *bytes, size_t len)
{
    struct rueda_topology *topology = NULL;

    assert_int_equal(unpack(bytes, len, &topology), RUEDA_ERR_INVALID);
    assert_null(topology);
}

/* Refused with this byte, and taken again without it. */
static void check_byte_refused(struct table *table, size_t at,
                               unsigned char value)
{
    struct rueda_topology *topology = NULL;
    unsigned char before = table->bytes[at];

    assert_int_not_equal(before, value);
    table->bytes[at] = value;
    check_refused(table->bytes, table->len);
    table->bytes[at] = before;
    assert_int_equal(unpack(table->bytes, table->len, &topology), RUEDA_OK);
    rueda_topology_free(topology);
}

static size_t place_at(const struct table *table, int rank)
{
    return table->len - (size_t)(5 - rank) * ROW;
}

/* ---- Tables ------------------------------------------------------------ */

static void a_table_comes_back_as_it_was(void **state)
{
    struct table *table = *state;
    struct rueda_topology *again = NULL;

    assert_int_equal(table->len, HEAD + 3 * (HOST + 3) + 5 * ROW);
    assert_int_equal(unpack(table->bytes, table->len, &again), RUEDA_OK);
    assert_int_equal(again->size, 5);
    assert_int_equal(again->host_count, 3);
    assert_int_equal(again->is_launchers, table->topology->is_launchers);
    assert_int_equal(again->is_homogeneous, false);
    assert_memory_equal(again->rows, table->topology->rows,
                        5 * sizeof(*again->rows));
    assert_memory_equal(again->hosts, table->topology->hosts,
                        3 * sizeof(*again->hosts));
    rueda_topology_free(again);
}

static void numbers_have_their_low_byte_first(void **state)
{
    static const unsigned char head[] = {'R', 'T', 'P', '1', 5, 0,
                                         0,   0,   3,   0,   0, 0};
    static const unsigned char last[] = {1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0};
    struct table *table = *state;

    assert_memory_equal(table->bytes, head, sizeof(head));
    assert_memory_equal(table->bytes + place_at(table, 4), last, sizeof(last));
}

static void a_table_of_another_length_is_refused(void **state)
{
    struct table *table = *state;
    unsigned char *longer = calloc(1, table->len + 1);

    for (size_t len = 0; len < table->len; len++)
        check_refused(table->bytes, len);
    assert_non_null(longer);
    memcpy(longer, table->bytes, table->len);
    check_refused(longer, table->len + 1);
    free(longer);
}

static void counts_that_cannot_be_are_refused(void **state)
{
    struct table *table = *state;

    check_byte_refused(table, 0, 'X');
    check_byte_refused(table, 3, '2');
    check_byte_refused(table, 4, 0);
    check_byte_refused(table, 4, 4);
    check_byte_refused(table, 4, 6);
    check_byte_refused(table, 6, 1);
    check_byte_refused(table, 7, 0xff);
    check_byte_refused(table, 8, 0);
    check_byte_refused(table, 8, 2);
    check_byte_refused(table, 8, 4);
    check_byte_refused(table, 11, 0x80);
}

static void names_that_cannot_be_are_refused(void **state)
{
    struct table *table = *state;
    size_t name = HEAD + RUEDA_TOPOLOGY_ID_BYTES;

    check_byte_refused(table, name, 64);
    check_byte_refused(table, name, 255);
    check_byte_refused(table, name + 1, 0);
    check_byte_refused(table, name + 1, 27);
    check_byte_refused(table, name + 1, 127);
}

/* Ranks show the hosts in the order 0, 1, 0, 2, 1. */
static void places_that_cannot_be_are_refused(void **state)
{
    struct table *table = *state;

    check_byte_refused(table, place_at(table, 0), 1);
    check_byte_refused(table, place_at(table, 3), 1);
    check_byte_refused(table, place_at(table, 3), 3);
    check_byte_refused(table, place_at(table, 3) + 3, 0xff);
    check_byte_refused(table, place_at(table, 1) + 4, 2);
    check_byte_refused(table, place_at(table, 1) + 7, 0x80);
    check_byte_refused(table, place_at(table, 1) + 8, 0);
    check_byte_refused(table, place_at(table, 1) + 11, 0x80);
}

static void two_hosts_of_one_id_are_refused(void **state)
{
    struct table *table = *state;

    memcpy(table->bytes + HEAD + HOST + 3, table->bytes + HEAD,
           RUEDA_TOPOLOGY_ID_BYTES);
    check_refused(table->bytes, table->len);
}

static void local_ranks_of_some_ranks_only_are_refused(void **state)
{
    struct table *table = *state;

    memset(table->bytes + place_at(table, 2) + 4, 0xff, 8);
    check_refused(table->bytes, table->len);
}

/* Whatever the bytes are, what is taken has one way of being written. */
static void no_byte_can_be_changed_unseen(void **state)
{
    struct table *table = *state;

    for (size_t at = 0; at < table->len; at++) {
        for (int bit = 0; bit < 8; bit++) {
            struct rueda_topology *topology = NULL;
            unsigned char *again;

            table->bytes[at] ^= (unsigned char)(1 << bit);
            if (unpack(table->bytes, table->len, &topology) == RUEDA_OK) {
                assert_int_equal(rueda_topology_bytes(topology), table->len);
                again = malloc(table->len);
                assert_non_null(again);
                rueda_topology_pack(topology, again);
                assert_memory_equal(again, table->bytes, table->len);
                free(again);
            }
            rueda_topology_free(topology);
            table->bytes[at] ^= (unsigned char)(1 << bit);
        }
    }
}

/* ---- Records ----------------------------------------------------------- */

static rueda_status unpack_record(const unsigned char *bytes, size_t len,
                                  struct rueda_topology_record *out)
{
    unsigned char *copy = malloc(len > 0 ? len : 1);
    rueda_status status;

    assert_non_null(copy);
    memcpy(copy, bytes, len);
    status = rueda_topology_record_unpack(copy, len, out);
    free(copy);
    return status;
}

static void a_record_comes_back_as_it_was(void **state)
{
    unsigned char bytes[RUEDA_TOPOLOGY_RECORD_BYTES];
    struct rueda_topology_record record = {
        .host = {1, 2, 3}, .name = "node07", .local_rank = 3, .local_size = -1};
    struct rueda_topology_record again;
    size_t len;

    (void)state;
    len = rueda_topology_record_pack(&record, bytes);
    assert_int_equal(len, RUEDA_TOPOLOGY_ID_BYTES + 9 + 6);
    assert_int_equal(unpack_record(bytes, len, &again), RUEDA_OK);
    assert_memory_equal(&again, &record, sizeof(record));

    record.local_rank = -1;
    memset(record.name, 'n', sizeof(record.name));
    len = rueda_topology_record_pack(&record, bytes);
    assert_int_equal(len, RUEDA_TOPOLOGY_RECORD_BYTES);
    assert_int_equal(unpack_record(bytes, len, &again), RUEDA_OK);
    assert_int_equal(strlen(again.name), RUEDA_TOPOLOGY_NAME_BYTES - 1);
    assert_int_equal(again.local_rank, -1);
}

/* Its end would not fit beside it. */
static void a_name_of_64_characters_is_refused(void **state)
{
    unsigned char bytes[RUEDA_TOPOLOGY_RECORD_BYTES + 1];
    struct rueda_topology_record record = {.local_rank = -1, .local_size = -1};
    struct rueda_topology_record out;
    size_t len;

    (void)state;
    memset(bytes, 'n', sizeof(bytes));
    len = rueda_topology_record_pack(&record, bytes);
    bytes[len - 1] = RUEDA_TOPOLOGY_NAME_BYTES - 1;
    assert_int_equal(unpack_record(bytes, sizeof(bytes) - 1, &out), RUEDA_OK);
    bytes[len - 1] = RUEDA_TOPOLOGY_NAME_BYTES;
    assert_int_equal(unpack_record(bytes, sizeof(bytes), &out),
                     RUEDA_ERR_INVALID);
}

static void what_a_terminal_would_obey_is_not_packed(void **state)
{
    unsigned char bytes[RUEDA_TOPOLOGY_RECORD_BYTES];
    struct rueda_topology_record record = {
        .name = "a\x1b[2Jb\n", .local_rank = -1, .local_size = -1};
    size_t len = rueda_topology_record_pack(&record, bytes);

    (void)state;
    assert_int_equal(unpack_record(bytes, len, &record), RUEDA_OK);
    assert_string_equal(record.name, "a?[2Jb?");
}

static void a_record_that_cannot_be_is_refused(void **state)
{
    unsigned char bytes[RUEDA_TOPOLOGY_RECORD_BYTES + 1] = {0};
    struct rueda_topology_record record = {
        .name = "node", .local_rank = 1, .local_size = 2};
    size_t len = rueda_topology_record_pack(&record, bytes);
    struct rueda_topology_record out;

    (void)state;
    memset(&out, 0x77, sizeof(out));
    for (size_t shorter = 0; shorter < len; shorter++)
        assert_int_equal(unpack_record(bytes, shorter, &out),
                         RUEDA_ERR_INVALID);
    assert_int_equal(unpack_record(bytes, len + 1, &out), RUEDA_ERR_INVALID);
    bytes[RUEDA_TOPOLOGY_ID_BYTES] = 2; /* local rank 2 of 2 */
    assert_int_equal(unpack_record(bytes, len, &out), RUEDA_ERR_INVALID);
    memset(bytes + RUEDA_TOPOLOGY_ID_BYTES + 4, 0xff,
           4); /* of an unknown size */
    assert_int_equal(unpack_record(bytes, len, &record), RUEDA_OK);
    bytes[RUEDA_TOPOLOGY_ID_BYTES] = 0;
    bytes[RUEDA_TOPOLOGY_ID_BYTES + 2] =
        1; /* local rank 65536: out of any job */
    assert_int_equal(unpack_record(bytes, len, &out), RUEDA_ERR_INVALID);
    bytes[RUEDA_TOPOLOGY_ID_BYTES + 3] = 0x80; /* a negative one */
    assert_int_equal(unpack_record(bytes, len, &out), RUEDA_ERR_INVALID);
    assert_int_equal(out.local_rank, 0x77777777);
}

int main(void)
{
#define of_launcher(test)                                                      \
    cmocka_unit_test_setup_teardown(test, table_of_launcher, table_drop)
#define of_nobody(test)                                                        \
    cmocka_unit_test_setup_teardown(test, table_of_nobody, table_drop)
    const struct CMUnitTest tests[] = {
        of_launcher(a_table_comes_back_as_it_was),
        of_nobody(a_table_comes_back_as_it_was),
        of_launcher(numbers_have_their_low_byte_first),
        of_launcher(a_table_of_another_length_is_refused),
        of_launcher(counts_that_cannot_be_are_refused),
        of_launcher(names_that_cannot_be_are_refused),
        of_launcher(places_that_cannot_be_are_refused),
        of_launcher(two_hosts_of_one_id_are_refused),
        of_launcher(local_ranks_of_some_ranks_only_are_refused),
        of_launcher(no_byte_can_be_changed_unseen),
        of_nobody(no_byte_can_be_changed_unseen),
        cmocka_unit_test(a_record_comes_back_as_it_was),
        cmocka_unit_test(a_name_of_64_characters_is_refused),
        cmocka_unit_test(what_a_terminal_would_obey_is_not_packed),
        cmocka_unit_test(a_record_that_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
