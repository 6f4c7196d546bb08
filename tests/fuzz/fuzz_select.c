/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of algorithms from text, which is a setting's or a file's. A table is
 * written as text that gives the same table, and leaves no kind of collective
 * without an algorithm.
 */
#include "algo/select.h"
#include "fuzz/fuzz.h"

#define TEXT_BYTES 8192

static bool is_same_row(const struct rueda_select_row *a,
                        const struct rueda_select_row *b)
{
    return a->kind == b->kind && a->ranks_from == b->ranks_from &&
           a->ranks_to == b->ranks_to && a->bytes_from == b->bytes_from &&
           a->bytes_to == b->bytes_to && a->where == b->where &&
           strcmp(a->algo, b->algo) == 0 && a->score == b->score;
}

static void check_written(const struct rueda_select *select)
{
    struct rueda_text error = {{0}};
    struct rueda_select again;
    char text[TEXT_BYTES];
    char part[16];
    size_t length = rueda_select_format(select, text, sizeof(text));

    must(length < sizeof(text) && strlen(text) == length);
    must(rueda_select_format(select, part, sizeof(part)) == length);
    must(strncmp(part, text, sizeof(part) - 1) == 0);
    rueda_select_init(&again);
    must(rueda_select_parse(&again, text, &error) == RUEDA_OK);
    must(again.added_count == select->added_count &&
         again.flat == select->flat);
    for (int i = 0; i < again.added_count; i++)
        must(is_same_row(&again.added[i], &select->added[i]));
}

static void check_choice(const struct rueda_select *select, rueda_kind kind,
                         size_t bytes, int ranks)
{
    struct rueda_mesh mesh = {.size = ranks, .memory = RUEDA_MEMKIND_HOST};
    struct rueda_place place = {.mesh = &mesh,
                                .device = rueda_device_default("auto")};
    struct rueda_coll coll = {.kind = kind,
                              .arith = {.reduction = RUEDA_SUM},
                              .elem_bytes = 1,
                              .count = bytes};
    const struct rueda_algo *algo = rueda_select_choose(select, &place, &coll);

    must(algo != NULL && (algo->kinds >> kind & 1u) != 0);
}

static void check_choices(const struct rueda_select *select)
{
    for (int kind = 0; kind < RUEDA_KIND_COUNT; kind++)
        check_choice(select, (rueda_kind)kind, 4096, 4);
    for (int i = 0; i < select->added_count; i++)
        check_choice(select, select->added[i].kind, select->added[i].bytes_from,
                     select->added[i].ranks_to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct rueda_text error = {{0}};
    struct rueda_select select;
    rueda_status status;

    rueda_select_init(&select);
    status = rueda_select_parse(&select, text, &error);
    must(rueda_text_is_empty(&error) == (status == RUEDA_OK));
    must(select.added_count <= RUEDA_SELECT_ADDED_ROWS);
    if (status == RUEDA_OK)
        check_written(&select);
    else
        must(status == RUEDA_ERR_INVALID && select.added_count == 0);
    check_choices(&select);
    free(text);
    return 0;
}
