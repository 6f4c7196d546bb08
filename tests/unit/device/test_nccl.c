/* SPDX-License-Identifier: Apache-2.0 */
/* Which operations NCCL may carry between hosts. */
#include "device/cuda/nccl_state.h"
#include "unit/unit.h"

/* Two members on this host, or on two, with the job's decision. */
static bool can_run(bool is_on_hosts, rueda_encrypt_choice decision,
                    rueda_kind kind, rueda_dtype dtype)
{
    struct rueda_config config = {.encrypt = decision};
    struct rueda_nccl nccl = {.config = &config};
    struct rueda_cuda cuda = {.nccl = &nccl};
    struct rueda_mesh mesh = {.size = 2};
    int some_staging;
    const struct rueda_place place = {.mesh = &mesh,
                                      .staging =
                                          (struct rueda_staging *)&some_staging,
                                      .device = &cuda.super,
                                      .is_on_hosts = is_on_hosts};
    const struct rueda_coll coll = {
        .kind = kind,
        .arith = {.dtype = dtype, .reduction = RUEDA_SUM, .prescale = 1},
        .count = 4};

    return rueda_cuda_nccl.can_run(&place, &coll);
}

static void inside_a_host_it_carries_all_types(void **state)
{
    (void)state;
    for (int i = RUEDA_ENCRYPT_AUTO; i <= RUEDA_ENCRYPT_AUTHENTICATE; i++) {
        const rueda_encrypt_choice choice = (rueda_encrypt_choice)i;

        assert_true(can_run(false, choice, RUEDA_ALLREDUCE, RUEDA_FLOAT32));
        assert_true(can_run(false, choice, RUEDA_BROADCAST, RUEDA_UINT8));
    }
}

static void between_hosts_it_carries_what_the_job_leaves_bare(void **state)
{
    (void)state;
    assert_true(
        can_run(true, RUEDA_ENCRYPT_NEVER, RUEDA_ALLREDUCE, RUEDA_FLOAT32));
    assert_true(
        can_run(true, RUEDA_ENCRYPT_NEVER, RUEDA_ALLGATHER, RUEDA_BFLOAT16));
    assert_false(
        can_run(true, RUEDA_ENCRYPT_NEVER, RUEDA_BROADCAST, RUEDA_UINT8));
    assert_false(
        can_run(true, RUEDA_ENCRYPT_NEVER, RUEDA_ALLGATHER, RUEDA_INT64));
    assert_false(
        can_run(true, RUEDA_ENCRYPT_ALWAYS, RUEDA_ALLREDUCE, RUEDA_FLOAT32));
    assert_false(can_run(true, RUEDA_ENCRYPT_AUTHENTICATE, RUEDA_ALLREDUCE,
                         RUEDA_FLOAT32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inside_a_host_it_carries_all_types),
        cmocka_unit_test(between_hosts_it_carries_what_the_job_leaves_bare),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
