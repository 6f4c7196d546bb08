/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "auth/object.h"
#include "unit/unit.h"

static const char words[] = "an object that will be unpickled";

static struct rueda_key key_of(int seed)
{
    struct rueda_key secret = {.present = true};
    struct rueda_key key;

    memset(secret.bytes, seed, sizeof(secret.bytes));
    assert_int_equal(rueda_object_key(&secret, "job", 3, &key), RUEDA_OK);
    return key;
}

static const struct rueda_object_id here = {
    .purpose = 1, .sender = 2, .set = 3, .sequence = 4, .name = "state"};

static void seal(unsigned char head[RUEDA_OBJECT_HEAD_BYTES])
{
    const struct rueda_key key = key_of(1);

    assert_int_equal(rueda_object_seal(&key, &here, words, sizeof(words), head),
                     RUEDA_OK);
}

static rueda_status check_at(const struct rueda_object_id *id, int seed,
                             const unsigned char *head)
{
    const struct rueda_key key = key_of(seed);
    uint64_t len = 77;
    rueda_status status = rueda_object_length(&key, id, head, &len);

    /* A head is refused before its length is believed. */
    assert_int_equal(len, status == RUEDA_OK ? sizeof(words) : 77);
    assert_int_equal(rueda_object_check(&key, id, head, words, sizeof(words)),
                     status);
    return status;
}

static void an_object_passes_at_its_place(void **state)
{
    unsigned char head[RUEDA_OBJECT_HEAD_BYTES];

    (void)state;
    seal(head);
    assert_int_equal(check_at(&here, 1, head), RUEDA_OK);
}

static void an_object_passes_nowhere_else(void **state)
{
    unsigned char head[RUEDA_OBJECT_HEAD_BYTES];
    struct rueda_object_id moved[5] = {here, here, here, here, here};

    (void)state;
    moved[0].purpose++;
    moved[1].sender++;
    moved[2].set++;
    moved[3].sequence++; /* repeated in the next call */
    moved[4].name = "stat";
    seal(head);
    for (int i = 0; i < 5; i++)
        assert_int_equal(check_at(&moved[i], 1, head), RUEDA_ERR_AUTH);
    assert_int_equal(check_at(&here, 2, head), RUEDA_ERR_AUTH);
}

static void every_bit_of_a_head_counts(void **state)
{
    unsigned char head[RUEDA_OBJECT_HEAD_BYTES];

    (void)state;
    for (size_t bit = 0; bit < sizeof(head) * 8; bit++) {
        seal(head);
        head[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(check_at(&here, 1, head), RUEDA_ERR_AUTH);
    }
}

static void every_bit_of_an_object_counts(void **state)
{
    unsigned char head[RUEDA_OBJECT_HEAD_BYTES];
    const struct rueda_key key = key_of(1);
    unsigned char changed[sizeof(words)];

    (void)state;
    seal(head);
    for (size_t bit = 0; bit < sizeof(words) * 8; bit++) {
        memcpy(changed, words, sizeof(words));
        changed[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(
            rueda_object_check(&key, &here, head, changed, sizeof(changed)),
            RUEDA_ERR_AUTH);
    }
    assert_int_equal(
        rueda_object_check(&key, &here, head, words, sizeof(words) - 1),
        RUEDA_ERR_AUTH);
}

static void keys_of_two_jobs_differ(void **state)
{
    struct rueda_key secret = {.bytes = {9}, .present = true};
    struct rueda_key keys[2];

    (void)state;
    assert_int_equal(rueda_object_key(&secret, "a", 1, &keys[0]), RUEDA_OK);
    assert_int_equal(rueda_object_key(&secret, "b", 1, &keys[1]), RUEDA_OK);
    assert_memory_not_equal(keys[0].bytes, keys[1].bytes, RUEDA_KEY_BYTES);
    assert_memory_not_equal(keys[0].bytes, secret.bytes, RUEDA_KEY_BYTES);
}

static void without_a_key_nothing_passes(void **state)
{
    unsigned char head[RUEDA_OBJECT_HEAD_BYTES] = {0};
    const struct rueda_key none = {.present = false};
    struct rueda_key key;
    uint64_t len;

    (void)state;
    assert_int_equal(rueda_object_key(&none, "", 0, &key), RUEDA_ERR_AUTH);
    assert_int_equal(rueda_object_seal(&none, &here, "", 0, head),
                     RUEDA_ERR_AUTH);
    assert_int_equal(rueda_object_length(&none, &here, head, &len),
                     RUEDA_ERR_AUTH);
    assert_int_equal(rueda_object_check(&none, &here, head, "", 0),
                     RUEDA_ERR_AUTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_passes_at_its_place),
        cmocka_unit_test(an_object_passes_nowhere_else),
        cmocka_unit_test(every_bit_of_a_head_counts),
        cmocka_unit_test(every_bit_of_an_object_counts),
        cmocka_unit_test(keys_of_two_jobs_differ),
        cmocka_unit_test(without_a_key_nothing_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
