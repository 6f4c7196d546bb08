/* SPDX-License-Identifier: Apache-2.0 */
/* The device of a simulated rank counts what it would do with phantoms, and
 * touches no memory: here there is none. */
#include <sys/mman.h>

#include "unit/unit.h"

#include "device/host_kernels.h"
#include "transport/sim/sim.h"

#define BYTES ((size_t)1 << 20)

static void packing_phantoms_takes_time_and_no_memory(void **state)
{
    const struct rueda_sim_wire wire = {.bytes_per_s = 1e9};
    const struct rueda_sim_net net = rueda_sim_net_flat(1, wire);
    struct rueda_sim_settings settings = rueda_sim_settings_default(&net);
    char *nowhere = mmap(NULL, 2 * BYTES, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const struct rueda_part parts[] = {
        {.send = nowhere, .recv = nowhere, .at = 0, .bytes = BYTES / 2},
        {.send = NULL, .recv = nowhere, .at = BYTES / 2 + 64, .bytes = 100},
    };
    struct rueda_work work = {0};
    struct rueda_text error = {""};
    const struct rueda_device *device;
    struct rueda_sim *sim;

    (void)state;
    assert_true(nowhere != MAP_FAILED);
    settings.is_phantom = true;
    assert_int_equal(rueda_sim_open(&settings, &sim, &error), RUEDA_OK);
    device = rueda_sim_device(sim, 0);
    rueda_device_gather(device, &work, nowhere + BYTES, parts, 2);
    assert_int_equal(rueda_host_of(device)->meter->bytes, BYTES / 2 + 100);
    rueda_device_scatter(device, &work, nowhere + BYTES, parts, 2);
    assert_int_equal(rueda_host_of(device)->meter->bytes, BYTES + 200);
    rueda_sim_close(sim);
    munmap(nowhere, 2 * BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing_phantoms_takes_time_and_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
