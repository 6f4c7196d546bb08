/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>

#include "os/machine.h"
#include "unit/unit.h"

static void cpus_are_those_the_thread_may_run_on(void **state)
{
    struct rueda_cpus cpus;
    cpu_set_t wanted;

    (void)state;
    CPU_ZERO(&wanted);
    assert_int_equal(sched_getaffinity(0, sizeof(wanted), &wanted), 0);
    rueda_machine_cpus(&cpus);

    assert_int_equal(rueda_cpus_count(&cpus), CPU_COUNT(&wanted));
    for (int i = 0; i < CPU_SETSIZE && i < RUEDA_MACHINE_MOST_CPUS; i++)
        assert_int_equal(cpus.bits[i / 64] >> i % 64 & 1,
                         CPU_ISSET(i, &wanted) != 0);
}

static void a_pinned_thread_has_one_cpu(void **state)
{
    struct rueda_cpus cpus;
    cpu_set_t before;
    cpu_set_t one;

    (void)state;
    CPU_ZERO(&before);
    CPU_ZERO(&one);
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    rueda_machine_cpus(&cpus);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);

    assert_int_equal(rueda_cpus_count(&cpus), 1);
}

static void cpus_are_counted_in_every_word(void **state)
{
    struct rueda_cpus cpus = {{0}};

    (void)state;
    assert_int_equal(rueda_cpus_count(&cpus), 0);
    cpus.bits[0] = 5;
    cpus.bits[RUEDA_MACHINE_MOST_CPUS / 64 - 1] = UINT64_C(1) << 63;
    assert_int_equal(rueda_cpus_count(&cpus), 3);
    memset(&cpus, 0xff, sizeof(cpus));
    assert_int_equal(rueda_cpus_count(&cpus), RUEDA_MACHINE_MOST_CPUS);
}

static void caches_have_likely_sizes(void **state)
{
    struct rueda_caches caches;

    (void)state;
    rueda_machine_caches(&caches);
    assert_in_range(caches.l1_bytes, 8 << 10, 1 << 20);
    assert_in_range(caches.l2_bytes, 64 << 10, 1 << 30);
    assert_in_range(caches.l3_bytes, 64 << 10, (size_t)64 << 30);
}

static void a_quota_is_none_or_positive(void **state)
{
    double quota = rueda_machine_cpu_quota();

    (void)state;
    assert_true(quota >= 0);
    assert_true(quota < 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpus_are_those_the_thread_may_run_on),
        cmocka_unit_test(a_pinned_thread_has_one_cpu),
        cmocka_unit_test(cpus_are_counted_in_every_word),
        cmocka_unit_test(caches_have_likely_sizes),
        cmocka_unit_test(a_quota_is_none_or_positive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
