/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "algo/hier.h"

static struct rueda_mesh mesh = {.size = 4, .memory = RUEDA_MEMKIND_HOST};
static const struct rueda_device_ops near_ops = {.memory = RUEDA_MEMKIND_HOST};
static const struct rueda_device near = {.ops = &near_ops};
static struct rueda_place net = {.mesh = &mesh, .device = &near};
/* Only whether there is one matters; it is never looked into. */
static struct rueda_place host = {
    .mesh = &mesh, .device = &near, .slab = (void *)&mesh};

/* Two hosts of two ranks, and four of one. */
static int firsts[] = {0, 2, 4};
static struct rueda_hier pairs = {
    .hosts = 2, .carriers = 2, .most = 2, .firsts = firsts};
static struct rueda_place hosts = {
    .mesh = &mesh, .device = &near, .hier = &pairs};
static struct rueda_hier shuffled = {.hosts = 2, .carriers = 2, .most = 2};
static struct rueda_place mixed = {
    .mesh = &mesh, .device = &near, .hier = &shuffled};
static struct rueda_hier singles = {.hosts = 4, .carriers = 1, .most = 1};
static struct rueda_place apart = {
    .mesh = &mesh, .device = &near, .hier = &singles};

static struct rueda_coll coll_of(rueda_kind kind, size_t bytes)
{
    struct rueda_coll coll = {.kind = kind, .elem_bytes = 1, .count = bytes};

    return coll;
}

static const char *chosen(const struct rueda_select *select, rueda_kind kind,
                          size_t bytes)
{
    const struct rueda_coll coll = coll_of(kind, bytes);

    return rueda_select_choose(select, &net, &coll)->name;
}

static struct rueda_select parsed(const char *text)
{
    struct rueda_text error = {""};
    struct rueda_select select;

    rueda_select_init(&select);
    assert_int_equal(rueda_select_parse(&select, text, &error), RUEDA_OK);
    assert_true(rueda_text_is_empty(&error));
    return select;
}

/* ---- Built-in rows --------------------------------------------------- */

static void there_is_an_algorithm_for_everything(void **state)
{
    static const size_t sizes[] = {0, 1, 4096, (size_t)1 << 20, SIZE_MAX / 8};
    struct rueda_place *places[] = {&net, &host, &hosts, &apart};
    struct rueda_select select;

    (void)state;
    rueda_select_init(&select);
    for (int kind = 0; kind < RUEDA_KIND_COUNT; kind++)
        for (int s = 0; s < 5; s++)
            for (int p = 0; p < 4; p++) {
                struct rueda_coll coll = coll_of((rueda_kind)kind, sizes[s]);
                const struct rueda_algo *algo =
                    rueda_select_choose(&select, places[p], &coll);

                assert_non_null(algo);
                assert_true(algo->kinds >> kind & 1u);
                assert_true(!algo->needs_slab || places[p]->slab != NULL);
                assert_true(!algo->needs_hier || places[p]->hier != NULL);
                assert_false(algo->does_adasum);
            }
}

static void every_built_in_row_names_an_algorithm_that_can_do_it(void **state)
{
    const struct rueda_select_row *row;

    (void)state;
    for (row = rueda_select_defaults; row->algo != NULL; row++) {
        const struct rueda_algo *algo = rueda_algo_find(row->algo);

        assert_non_null(algo);
        assert_true(algo->kinds >> row->kind & 1u);
    }
}

static void adasum_goes_to_an_algorithm_that_does_it(void **state)
{
    struct rueda_coll coll = coll_of(RUEDA_ALLREDUCE, 1000);
    struct rueda_select select = parsed("allreduce:ring");

    (void)state;
    coll.arith.reduction = RUEDA_ADASUM;
    assert_true(rueda_select_choose(&select, &net, &coll)->does_adasum);
    assert_true(rueda_select_choose(&select, &host, &coll)->does_adasum);
    coll.count = (size_t)1 << 20;
    assert_true(rueda_select_choose(&select, &hosts, &coll)->does_adasum);
}

static const char *chosen_at(const struct rueda_place *place, const char *text,
                             size_t bytes, rueda_compression compression)
{
    const struct rueda_select select = parsed(text);
    struct rueda_coll coll = coll_of(RUEDA_ALLREDUCE, bytes);

    coll.compression = compression;
    return rueda_select_choose(&select, place, &coll)->name;
}

static void hosts_of_several_ranks_take_hier_for_what_is_not_short(void **state)
{
    (void)state;
    assert_string_equal(chosen_at(&hosts, "", 16 << 10, 0), "hier");
    assert_string_equal(chosen_at(&hosts, "", SIZE_MAX / 8, 0), "hier");
    assert_string_equal(chosen_at(&hosts, "", 1 << 10, 0), "doubling");
    assert_string_equal(chosen_at(&apart, "", 16 << 20, 0), "ring");
    assert_string_equal(chosen_at(&host, "", 16 << 20, 0), "direct");
}

static void hier_can_be_told_and_is_skipped_on_one_host(void **state)
{
    (void)state;
    assert_string_equal(chosen_at(&apart, "allreduce:hier", 8, 0), "hier");
    assert_string_equal(chosen_at(&hosts, "allreduce:ring", 1 << 20, 0),
                        "ring");
    assert_string_equal(chosen_at(&net, "allreduce:ring;allreduce:hier", 8, 0),
                        "ring");
    assert_string_equal(chosen_at(&host, "allreduce:hier", 8, 0), "direct");
}

static const char *gathered(const struct rueda_place *place, const char *text,
                            size_t bytes)
{
    const struct rueda_select select = parsed(text);
    const struct rueda_coll coll = coll_of(RUEDA_ALLGATHER, bytes);

    return rueda_select_choose(&select, place, &coll)->name;
}

static const char *gathered_at(const struct rueda_place *place,
                               const char *text)
{
    return gathered(place, text, 64 << 10);
}

static void hosts_gather_in_stages_where_ranks_follow_one_another(void **state)
{
    (void)state;
    assert_string_equal(gathered_at(&hosts, ""), "hier");
    assert_string_equal(gathered(&hosts, "", 100), "ring");
    assert_string_equal(gathered(&hosts, "allgather:hier", 100), "hier");
    assert_string_equal(gathered_at(&mixed, ""), "ring");
    assert_string_equal(gathered_at(&mixed, "allgather:hier"), "ring");
    assert_string_equal(gathered_at(&apart, ""), "ring");
    assert_string_equal(gathered_at(&host, ""), "direct");
}

static void stages_can_be_turned_off(void **state)
{
    const char *rows = "allreduce:flat;allgather:flat;allreduce:0-4k:tree";
    const struct rueda_select select = parsed(rows);
    struct rueda_select none;
    struct rueda_text error = {""};
    char text[64];

    (void)state;
    assert_string_equal(gathered_at(&hosts, "allgather:flat"), "ring");
    assert_string_equal(gathered_at(&hosts, "allgather:flat;allgather:hier"),
                        "ring");
    assert_string_equal(gathered_at(&hosts, "allreduce:flat"), "hier");
    assert_string_equal(gathered_at(&host, "allgather:flat"), "direct");
    assert_string_equal(chosen_at(&hosts, "allreduce:flat", 1 << 20, 0),
                        "ring");
    assert_string_equal(
        chosen_at(&hosts, "allreduce:flat", 8, RUEDA_COMPRESS_FP16), "hier");
    rueda_select_format(&select, text, sizeof(text));
    assert_string_equal(text, rows);
    rueda_select_init(&none);
    assert_int_equal(rueda_select_parse(&none, "allreduce:0-4k:flat", &error),
                     RUEDA_ERR_INVALID);
    assert_int_equal(none.flat, 0);
}

static void compression_takes_hier_wherever_there_are_hosts(void **state)
{
    (void)state;
    assert_string_equal(chosen_at(&apart, "", 8, RUEDA_COMPRESS_FP16), "hier");
    assert_string_equal(
        chosen_at(&hosts, "allreduce:ring", 8, RUEDA_COMPRESS_BF16), "hier");
    assert_string_equal(chosen_at(&host, "", 8, RUEDA_COMPRESS_FP16), "direct");
    assert_string_equal(chosen_at(&net, "", 8, RUEDA_COMPRESS_FP16),
                        "doubling");
}

static void ranks_with_uneven_pieces_choose_alike(void **state)
{
    const size_t counts[4] = {0, 4000, 1, 39};
    const struct rueda_select select = parsed("allgather:0-1k:ring");
    struct rueda_coll coll = coll_of(RUEDA_ALLGATHER, 0);
    const struct rueda_algo *first;

    (void)state;
    coll.recv_counts = counts;
    first = rueda_select_choose(&select, &host, &coll);
    assert_string_equal(first->name, "ring"); /* 1010 bytes on average */
    for (int rank = 1; rank < 4; rank++) {
        coll.count = counts[rank];
        assert_ptr_equal(rueda_select_choose(&select, &host, &coll), first);
    }
}

/* ---- Added rows ------------------------------------------------------ */

static void added_rows_win_within_their_sizes(void **state)
{
    const struct rueda_select select =
        parsed("allreduce:0-4k:ring;allreduce:4k-inf:tree");

    (void)state;
    assert_string_equal(chosen(&select, RUEDA_ALLREDUCE, 0), "ring");
    assert_string_equal(chosen(&select, RUEDA_ALLREDUCE, 4095), "ring");
    assert_string_equal(chosen(&select, RUEDA_ALLREDUCE, 4096), "tree");
    assert_string_equal(chosen(&select, RUEDA_ALLREDUCE, SIZE_MAX), "tree");
    assert_string_equal(chosen(&select, RUEDA_BARRIER, 0), "dissemination");
}

static void added_rows_win_over_shared_memory(void **state)
{
    const struct rueda_select select = parsed("allreduce:ring");
    const struct rueda_coll coll = coll_of(RUEDA_ALLREDUCE, 8);

    (void)state;
    assert_string_equal(rueda_select_choose(&select, &host, &coll)->name,
                        "ring");
}

static void ranks_limit_a_row(void **state)
{
    struct rueda_select select =
        parsed("allreduce:tree;allreduce:@5-inf:ring;allreduce:0-1m@3:ring");

    (void)state;
    assert_string_equal(chosen(&select, RUEDA_ALLREDUCE, 8), "tree");
    mesh.size = 5;
    assert_string_equal(chosen(&select, RUEDA_ALLREDUCE, 8), "ring");
    mesh.size = 3;
    assert_string_equal(chosen(&select, RUEDA_ALLREDUCE, 8), "ring");
    assert_string_equal(chosen(&select, RUEDA_ALLREDUCE, 2 << 20), "tree");
    mesh.size = 4;
}

static void later_rows_win_over_earlier_ones(void **state)
{
    struct rueda_select select = parsed("allreduce:ring; allreduce:tree ;");
    struct rueda_text error = {""};

    (void)state;
    assert_string_equal(chosen(&select, RUEDA_ALLREDUCE, 8), "tree");
    assert_int_equal(
        rueda_select_parse(&select, "allreduce:halving_doubling", &error),
        RUEDA_OK);
    assert_string_equal(chosen(&select, RUEDA_ALLREDUCE, 8),
                        "halving_doubling");
}

/* `direct` is told for all places, and skipped where there is no slab. */
static void a_row_whose_algorithm_cannot_run_does_not_count(void **state)
{
    const struct rueda_select select = parsed("allreduce:ring;"
                                              "allreduce:direct");
    const struct rueda_coll coll = coll_of(RUEDA_ALLREDUCE, 8);

    (void)state;
    assert_string_equal(chosen(&select, RUEDA_ALLREDUCE, 8), "ring");
    assert_string_equal(rueda_select_choose(&select, &host, &coll)->name,
                        "direct");
}

/* ---- Text ------------------------------------------------------------ */

static void what_is_written_is_what_was_read(void **state)
{
    static const char *const texts[] = {
        "",
        "broadcast:tree",
        "allreduce:0-4k:tree;allreduce:4k-inf@2-8:ring;broadcast:tree",
        "allreduce:1-3:ring;allreduce:3m-2g@3-inf:ring;alltoall:@4-4:pairwise",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct rueda_select select = parsed(texts[i]);
        char buf[256];

        assert_int_equal(rueda_select_format(&select, buf, sizeof(buf)),
                         strlen(texts[i]));
        assert_string_equal(buf, texts[i]);
    }
}

static void what_does_not_fit_is_cut(void **state)
{
    const struct rueda_select select = parsed("broadcast:tree");
    char buf[6] = "xxxxx";

    (void)state;
    assert_int_equal(rueda_select_format(&select, buf, 5), 14);
    assert_memory_equal(buf, "broa\0", 6);
    assert_int_equal(rueda_select_format(&select, NULL, 0), 14);
}

static void a_bad_row_is_named_and_nothing_is_added(void **state)
{
    static const struct {
        const char *text;
        const char *named;
        const char *known;
    } cases[] = {
        {"allreduce:ring;alreduce:ring", "'alreduce'", "reducescatter"},
        {"allreduce:rung", "'rung'", "halving_doubling"},
        {"barrier:ring", "'ring'", "dissemination"},
        {"allreduce", "''", "ring"},
        {"allreduce:", "''", "ring"},
        {":ring", "''", "allreduce"},
        {"allreduce:4k:ring", "'4k'", "64k-inf"},
        {"allreduce:4k-2k:ring", "'4k-2k'", "64k-inf"},
        {"allreduce:0-4x:ring", "'0-4x'", "64k-inf"},
        {"allreduce:0-99999999999999999999:ring", "99999", "64k-inf"},
        {"allreduce:0-99999999999g:ring", "99999999999g", "64k-inf"},
        {"allreduce:0-4k@:ring", "'@'", "@2-8"},
        {"allreduce:@0-4:ring", "'@0-4'", "@2-8"},
        {"allreduce:@8-2:ring", "'@8-2'", "@2-8"},
        {"allreduce:@2-8-9:ring", "'@2-8-9'", "@2-8"},
        {"allreduce:@4k:ring", "'@4k'", "@2-8"},
        {"allreduce:0-4k:ring:tree", "'ring:tree'", "halving_doubling"},
        {"alltoall:0-4k:pairwise", "'0-4k'", "not chosen by size"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_text error = {""};
        struct rueda_select select;

        rueda_select_init(&select);
        assert_int_equal(rueda_select_parse(&select, cases[i].text, &error),
                         RUEDA_ERR_INVALID);
        if (strstr(error.chars, cases[i].named) == NULL ||
            strstr(error.chars, cases[i].known) == NULL)
            fail_msg("'%s' gives: %s", cases[i].text, error.chars);
        assert_int_equal(select.added_count, 0);
    }
}

static void too_many_rows_are_refused(void **state)
{
    struct rueda_text error = {""};
    struct rueda_select select;

    (void)state;
    rueda_select_init(&select);
    for (int i = 0; i < RUEDA_SELECT_ADDED_ROWS; i++)
        assert_int_equal(rueda_select_parse(&select, "broadcast:tree", &error),
                         RUEDA_OK);
    assert_int_equal(
        rueda_select_parse(&select, "barrier:dissemination;", &error),
        RUEDA_ERR_INVALID);
    assert_non_null(strstr(error.chars, "'barrier:dissemination'"));
}

static void algorithms_are_found_by_name(void **state)
{
    (void)state;
    for (int i = 0; rueda_algos[i] != NULL; i++)
        assert_ptr_equal(rueda_algo_find(rueda_algos[i]->name), rueda_algos[i]);
    assert_null(rueda_algo_find("no such thing"));
    assert_null(rueda_algo_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_an_algorithm_for_everything),
        cmocka_unit_test(every_built_in_row_names_an_algorithm_that_can_do_it),
        cmocka_unit_test(adasum_goes_to_an_algorithm_that_does_it),
        cmocka_unit_test(
            hosts_of_several_ranks_take_hier_for_what_is_not_short),
        cmocka_unit_test(hier_can_be_told_and_is_skipped_on_one_host),
        cmocka_unit_test(hosts_gather_in_stages_where_ranks_follow_one_another),
        cmocka_unit_test(stages_can_be_turned_off),
        cmocka_unit_test(compression_takes_hier_wherever_there_are_hosts),
        cmocka_unit_test(ranks_with_uneven_pieces_choose_alike),
        cmocka_unit_test(added_rows_win_within_their_sizes),
        cmocka_unit_test(added_rows_win_over_shared_memory),
        cmocka_unit_test(ranks_limit_a_row),
        cmocka_unit_test(later_rows_win_over_earlier_ones),
        cmocka_unit_test(a_row_whose_algorithm_cannot_run_does_not_count),
        cmocka_unit_test(what_is_written_is_what_was_read),
        cmocka_unit_test(what_does_not_fit_is_cut),
        cmocka_unit_test(a_bad_row_is_named_and_nothing_is_added),
        cmocka_unit_test(too_many_rows_are_refused),
        cmocka_unit_test(algorithms_are_found_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
