/* SPDX-License-Identifier: Apache-2.0 */
/* What the launcher and its agents say to one another, and the assignment of a
 * host: environment, CPUs, how ranks end. */
#include <signal.h>

#include "launch/assignment.h"
#include "launch/cpus.h"
#include "launch/ending.h"
#include "launch/spawn.h"
#include "launch/variables.h"
#include "unit/unit.h"

/* ---- Frames and assignments ---------------------------------------------- */

static void make_assignment(struct rueda_assignment *assignment)
{
    *assignment = (struct rueda_assignment){.size = 5,
                                            .first_rank = 2,
                                            .count = 2,
                                            .has_input = true,
                                            .bind = RUEDA_BIND_AUTO,
                                            .grace_ms = 1500,
                                            .folder = "/tmp"};
    rueda_strings_add(&assignment->command, "python");
    rueda_strings_add(&assignment->command, "");
    rueda_strings_add(&assignment->stores, "10.0.0.1:4000");
    rueda_strings_add(&assignment->variables, "A=1");
    assignment->ranks = calloc(2, sizeof(*assignment->ranks));
    assert_non_null(assignment->ranks);
    rueda_strings_add(&assignment->ranks[0], "RUEDA_RANK=2");
    rueda_strings_add(&assignment->ranks[1], "RUEDA_RANK=3");
}

static void pack(const struct rueda_assignment *assignment,
                 struct rueda_packer *packer)
{
    rueda_packer_begin(packer, RUEDA_FRAME_START);
    rueda_assignment_pack(assignment, packer);
    rueda_packer_end(packer);
    assert_false(packer->is_short);
}

static void an_assignment_arrives_as_it_was_sent(void **state)
{
    struct rueda_assignment assignment;
    struct rueda_assignment copy;
    struct rueda_packer packer;
    struct rueda_frame frame;
    size_t bytes;

    (void)state;
    make_assignment(&assignment);
    pack(&assignment, &packer);
    assert_int_equal(rueda_frame_next(packer.bytes, packer.len, &frame, &bytes),
                     RUEDA_OK);
    assert_int_equal(bytes, packer.len);
    assert_true(rueda_assignment_unpack(&frame, &copy));
    assert_int_equal(copy.size, 5);
    assert_int_equal(copy.first_rank, 2);
    assert_int_equal(copy.count, 2);
    assert_true(copy.has_input);
    assert_int_equal(copy.bind, RUEDA_BIND_AUTO);
    assert_int_equal(copy.grace_ms, 1500);
    assert_string_equal(copy.folder, "/tmp");
    assert_int_equal(copy.command.count, 2);
    assert_string_equal(copy.command.list[1], "");
    assert_null(copy.command.list[2]);
    assert_string_equal(copy.stores.list[0], "10.0.0.1:4000");
    assert_string_equal(copy.ranks[1].list[0], "RUEDA_RANK=3");
    rueda_assignment_fini(&copy);
    rueda_assignment_fini(&assignment);
    rueda_packer_fini(&packer);
}

static void no_part_of_an_assignment_is_an_assignment(void **state)
{
    struct rueda_assignment assignment;
    struct rueda_packer packer;
    struct rueda_assignment copy;

    (void)state;
    make_assignment(&assignment);
    pack(&assignment, &packer);
    for (size_t len = 0; len + RUEDA_FRAME_HEAD < packer.len; len++) {
        struct rueda_frame frame = {.kind = RUEDA_FRAME_START,
                                    .bytes = packer.bytes + RUEDA_FRAME_HEAD,
                                    .len = len};

        assert_false(rueda_assignment_unpack(&frame, &copy));
    }
    rueda_assignment_fini(&assignment);
    rueda_packer_fini(&packer);
}

static void assignments_that_cannot_be_are_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct rueda_assignment assignment;
        struct rueda_assignment copy;
        struct rueda_packer packer;
        struct rueda_frame frame;
        size_t bytes;

        make_assignment(&assignment);
        if (i == 0)
            assignment.first_rank = 4;
        if (i == 1)
            assignment.size = 1;
        if (i == 2)
            assignment.bind = 7;
        if (i == 3)
            assignment.folder[0] = 't';
        if (i == 4)
            rueda_strings_add(&assignment.variables, "no variable");
        if (i == 5)
            rueda_strings_add(&assignment.stores, "nowhere");
        pack(&assignment, &packer);
        rueda_frame_next(packer.bytes, packer.len, &frame, &bytes);
        assert_false(rueda_assignment_unpack(&frame, &copy));
        rueda_assignment_fini(&assignment);
        rueda_packer_fini(&packer);
    }
}

static void what_is_no_frame_is_refused(void **state)
{
    struct rueda_packer packer;
    struct rueda_frame frame;
    size_t bytes;

    (void)state;
    rueda_packer_begin(&packer, RUEDA_FRAME_NOTE);
    rueda_frame_pack_text(&packer, "hello");
    rueda_packer_end(&packer);
    assert_int_equal(rueda_frame_next(packer.bytes, 3, &frame, &bytes),
                     RUEDA_IN_PROGRESS);
    assert_int_equal(bytes, RUEDA_FRAME_HEAD);
    assert_int_equal(
        rueda_frame_next(packer.bytes, packer.len - 1, &frame, &bytes),
        RUEDA_IN_PROGRESS);
    assert_int_equal(bytes, packer.len);
    packer.bytes[4] = 99; /* a kind that is none */
    assert_int_equal(rueda_frame_next(packer.bytes, packer.len, &frame, &bytes),
                     RUEDA_ERR_INVALID);
    packer.bytes[4] = RUEDA_FRAME_NOTE;
    packer.bytes[3] = 1; /* 16 MiB */
    assert_int_equal(rueda_frame_next(packer.bytes, packer.len, &frame, &bytes),
                     RUEDA_ERR_INVALID);
    rueda_packer_fini(&packer);
}

/* ---- Environment -------------------------------------------------------- */

static void every_rank_is_told_its_place_in_both_languages(void **state)
{
    const struct rueda_placed_rank placed = {.rank = 5,
                                             .local_rank = 1,
                                             .local_size = 2,
                                             .cross_rank = 2,
                                             .cross_size = 3};
    struct rueda_strings list = {.list = NULL};

    (void)state;
    rueda_strings_add(&list, "HOROVOD_RANK=77");
    rueda_variables_rank(&placed, 8, "node3", &list);
    assert_string_equal(rueda_strings_get(&list, "RUEDA_RANK"), "5");
    assert_string_equal(rueda_strings_get(&list, "HOROVOD_RANK"), "5");
    assert_string_equal(rueda_strings_get(&list, "HOROVOD_SIZE"), "8");
    assert_string_equal(rueda_strings_get(&list, "HOROVOD_LOCAL_RANK"), "1");
    assert_string_equal(rueda_strings_get(&list, "HOROVOD_LOCAL_SIZE"), "2");
    assert_string_equal(rueda_strings_get(&list, "HOROVOD_CROSS_RANK"), "2");
    assert_string_equal(rueda_strings_get(&list, "HOROVOD_CROSS_SIZE"), "3");
    assert_string_equal(rueda_strings_get(&list, "HOROVOD_HOSTNAME"), "node3");
    assert_int_equal(list.count, 13);
    rueda_strings_fini(&list);
}

static void every_rank_is_told_its_place_as_by_torchrun(void **state)
{
    const struct rueda_placed_rank placed = {
        .rank = 5, .local_rank = 1, .local_size = 2};
    struct rueda_strings list = {.list = NULL};

    (void)state;
    rueda_strings_add(&list, "RANK=77");
    rueda_variables_torch(&placed, 8, "fd00::1", 30001, &list);
    assert_string_equal(rueda_strings_get(&list, "RANK"), "5");
    assert_string_equal(rueda_strings_get(&list, "WORLD_SIZE"), "8");
    assert_string_equal(rueda_strings_get(&list, "LOCAL_RANK"), "1");
    assert_string_equal(rueda_strings_get(&list, "LOCAL_WORLD_SIZE"), "2");
    assert_string_equal(rueda_strings_get(&list, "MASTER_ADDR"), "fd00::1");
    assert_string_equal(rueda_strings_get(&list, "MASTER_PORT"), "30001");
    assert_int_equal(list.count, 6);
    rueda_strings_fini(&list);
}

static void variables_of_torchrun_stay_here(void **state)
{
    char *mine[] = {(char *)"TORCHELASTIC_RUN_ID=x", (char *)"GROUP_RANK=1",
                    (char *)"TORCHELASTIC_USE_AGENT_STORE=True",
                    (char *)"GROUP=staff", NULL};
    struct rueda_strings list = {.list = NULL};

    (void)state;
    rueda_variables_forward(mine, &list);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.list[0], "GROUP=staff");
    rueda_strings_fini(&list);
}

static void what_is_of_this_host_stays_here(void **state)
{
    char *mine[] = {(char *)"PATH=/bin",
                    (char *)"BASH_FUNC_f%%=() { :; }",
                    (char *)"OLDPWD=/",
                    (char *)"MY_CUDA_VISIBLE_DEVICES=1",
                    (char *)"CUDA_VISIBLE_DEVICES=0",
                    (char *)"_HOROVOD_SECRET_KEY=x",
                    (char *)"RUEDA_KEY_FILE=/k",
                    (char *)"SSH_AUTH_SOCK=/s",
                    (char *)"HOME=/root",
                    (char *)"ODD",
                    (char *)"LR=0.1",
                    NULL};
    struct rueda_strings list = {.list = NULL};

    (void)state;
    rueda_variables_forward(mine, &list);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.list[0], "PATH=/bin");
    assert_string_equal(list.list[1], "LR=0.1");
    rueda_strings_fini(&list);
}

static void the_store_is_named_in_both_languages(void **state)
{
    struct rueda_strings list = {.list = NULL};

    (void)state;
    rueda_variables_store("[fd00::1]:4000", &list);
    assert_string_equal(rueda_strings_get(&list, "RUEDA_STORE"),
                        "[fd00::1]:4000");
    assert_string_equal(rueda_strings_get(&list, "RUEDA_STORE_KEEPER"),
                        "launcher");
    assert_string_equal(
        rueda_strings_get(&list, "HOROVOD_GLOO_RENDEZVOUS_ADDR"), "fd00::1");
    assert_string_equal(
        rueda_strings_get(&list, "HOROVOD_GLOO_RENDEZVOUS_PORT"), "4000");
    rueda_strings_fini(&list);
}

static void check_interfaces(const struct rueda_strings *list, const char *one,
                             const char *all, const char *network)
{
    const char *is = rueda_strings_get(list, "RUEDA_NETWORK");

    assert_string_equal(rueda_strings_get(list, "HOROVOD_GLOO_IFACE"), one);
    assert_string_equal(rueda_strings_get(list, "NCCL_SOCKET_IFNAME"), all);
    assert_string_equal(is != NULL ? is : "none", network);
}

/* The library takes HOROVOD_GLOO_IFACE for a limit unless it is told more. */
static void interfaces_are_named_and_do_not_limit_us(void **state)
{
    struct rueda_strings list = {.list = NULL};

    (void)state;
    rueda_variables_interfaces("lo", false, &list);
    check_interfaces(&list, "lo", "lo", "none");
    /* As a rank of that job starts one of several hosts. */
    rueda_variables_interfaces("eth0,eth1", true, &list);
    check_interfaces(&list, "eth0", "eth0,eth1", "all");
    rueda_variables_interfaces("ib0", true, &list);
    check_interfaces(&list, "eth0", "eth0,eth1", "all");
    rueda_strings_fini(&list);

    rueda_strings_add(&list, "HOROVOD_GLOO_IFACE=eth5");
    rueda_variables_interfaces("ib0", true, &list);
    check_interfaces(&list, "eth5", "ib0", "none");
    rueda_strings_fini(&list);
    assert_false(rueda_variables_is_network(NULL));
    assert_false(rueda_variables_is_network("all"));
    assert_true(rueda_variables_is_network("eth0"));
}

static void tf_config_makes_every_rank_a_worker(void **state)
{
    struct rueda_text words = {{0}};
    struct rueda_strings list = {.list = NULL};
    struct rueda_placement placement;
    struct rueda_hosts hosts;

    (void)state;
    assert_true(rueda_hosts_parse("a:2,[fd00::1]:1", &hosts, &words));
    assert_true(rueda_placement_make(&hosts, 3, &placement, &words));
    rueda_variables_tf_config(&placement, &hosts, 1, 2000, &list);
    assert_string_equal(
        rueda_strings_get(&list, "TF_CONFIG"),
        "{\"cluster\": {\"worker\": [\"a:2000\", \"a:2001\", "
        "\"[fd00::1]:2000\"]}, \"task\": {\"type\": \"worker\", "
        "\"index\": 1}}");
    rueda_strings_fini(&list);
    rueda_placement_fini(&placement);
    rueda_hosts_fini(&hosts);
}

static void variables_are_set_once_and_unset(void **state)
{
    struct rueda_strings list = {.list = NULL};

    (void)state;
    rueda_strings_set(&list, "A", "1");
    rueda_strings_set(&list, "AB", "2");
    rueda_strings_set(&list, "A", "3");
    assert_int_equal(list.count, 2);
    assert_string_equal(list.list[0], "A=3");
    rueda_strings_unset(&list, "A");
    assert_int_equal(list.count, 1);
    assert_string_equal(list.list[0], "AB=2");
    assert_null(list.list[1]);
    assert_null(rueda_strings_get(&list, "A"));
    rueda_strings_fini(&list);
}

/* ---- CPUs --------------------------------------------------------------- */

/* The CPUs, as bits, of a rank's share. */
static uint64_t share_of(const struct rueda_cores *cores, rueda_bind bind,
                         int rank, int size)
{
    struct rueda_cpus share;

    if (!rueda_cores_share(cores, bind, rank, size, &share))
        return 0;
    return share.bits[0];
}

static void cpus_are_shared_out_evenly(void **state)
{
    struct rueda_cpus usable = {{0xf0f}}; /* eight of them, with a gap */
    struct rueda_cores cores;

    (void)state;
    rueda_cores_plain(&usable, &cores);
    assert_int_equal(cores.count, 8);
    assert_int_equal(share_of(&cores, RUEDA_BIND_AUTO, 0, 2), 0x00f);
    assert_int_equal(share_of(&cores, RUEDA_BIND_AUTO, 1, 2), 0xf00);
    assert_int_equal(share_of(&cores, RUEDA_BIND_AUTO, 2, 3), 0xe00);
    assert_int_equal(share_of(&cores, RUEDA_BIND_AUTO, 0, 9), 0);
    assert_int_equal(share_of(&cores, RUEDA_BIND_CORE, 5, 9), 0x200);
    assert_int_equal(share_of(&cores, RUEDA_BIND_CORE, 8, 9), 0x001);
    assert_int_equal(share_of(&cores, RUEDA_BIND_NONE, 0, 1), 0);
}

static void a_core_is_not_cut_while_there_are_enough(void **state)
{
    /* Four cores of two CPUs, numbered as Linux often does. */
    const struct rueda_cores cores = {
        .cpus = {0, 4, 1, 5, 2, 6, 3, 7}, .count = 8, .per_core = 2};

    (void)state;
    assert_int_equal(share_of(&cores, RUEDA_BIND_AUTO, 0, 3), 0x11);
    assert_int_equal(share_of(&cores, RUEDA_BIND_AUTO, 2, 3), 0xcc);
    assert_int_equal(share_of(&cores, RUEDA_BIND_AUTO, 1, 8), 0x10);
    assert_int_equal(share_of(&cores, RUEDA_BIND_CORE, 1, 2), 0x22);
    assert_int_equal(share_of(&cores, RUEDA_BIND_CORE, 4, 5), 0x11);
}

static void the_cores_of_this_machine_are_all_found(void **state)
{
    struct rueda_cpus usable;
    struct rueda_cpus all;
    struct rueda_cores cores;

    (void)state;
    rueda_machine_cpus(&usable);
    rueda_cores_find(&usable, &cores);
    assert_int_equal(cores.count, rueda_cpus_count(&usable));
    assert_int_equal(cores.count % cores.per_core, 0);
    assert_true(rueda_cores_share(&cores, RUEDA_BIND_AUTO, 0, 1, &all));
    assert_memory_equal(&all, &usable, sizeof(all));
}

/* ---- Ends --------------------------------------------------------------- */

static void an_end_is_told_as_shells_do(void **state)
{
    static const struct {
        struct rueda_ending ending;
        int code;
        const char *words;
    } cases[] = {
        {{.rank = 3, .code = 7}, 7, "rank 3 on a ended with exit code 7"},
        {{.code = 127}, 127, "rank 0 on a ended with exit code 127 (a command"},
        {{.signal = SIGSEGV}, 139, "was killed by signal 11 (SIGSEGV)"},
        {{.signal = SIGKILL, .oom = RUEDA_OOM_CGROUP},
         137,
         "(SIGKILL): out of memory, the limit of its cgroup"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_text words = {{0}};

        assert_int_equal(rueda_ending_code(&cases[i].ending), cases[i].code);
        rueda_ending_words(&cases[i].ending, "a", &words);
        assert_non_null(strstr(words.chars, cases[i].words));
    }
}

static void the_kernels_count_of_kills_is_found(void **state)
{
    (void)state;
    assert_int_equal(rueda_oom_parse("low 0\noom 3\noom_kill 2\n"), 2);
    assert_int_equal(rueda_oom_parse("oom_kill_disable 0\noom_kill 5"), 5);
    assert_int_equal(rueda_oom_parse("oom 3\n"), -1);
    assert_int_equal(rueda_oom_parse(""), -1);
}

static void programs_are_found_as_shells_do(void **state)
{
    struct folder *folder = *state;
    struct rueda_text words = {{0}};
    const char *plain = folder_write(folder, "plain", "x");
    char found[256];

    assert_true(
        rueda_spawn_find("sh", "/nowhere:/bin", found, sizeof(found), &words));
    assert_string_equal(found, "/bin/sh");
    assert_true(rueda_spawn_find("/bin/sh", "", found, sizeof(found), &words));
    assert_false(
        rueda_spawn_find("sh", "/nowhere", found, sizeof(found), &words));
    assert_non_null(strstr(words.chars, "no such program on the PATH"));
    words.chars[0] = '\0';
    assert_false(rueda_spawn_find(plain, "", found, sizeof(found), &words));
    assert_non_null(strstr(words.chars, "chmod +x"));
    words.chars[0] = '\0';
    assert_false(rueda_spawn_find("/tmp", "", found, sizeof(found), &words));
    assert_non_null(strstr(words.chars, "directory"));
    assert_false(rueda_spawn_find("", "/bin", found, sizeof(found), &words));
}

static void take_signal(int number)
{
    (void)number;
}

static void a_signal_is_not_lost_while_a_process_begins(void **state)
{
    char *command[] = {(char *)"sleep", (char *)"600", NULL};
    char *variables[] = {NULL};
    const struct rueda_spawn spawn = {.program = "/bin/sleep",
                                      .command = command,
                                      .variables = variables,
                                      .input = -1,
                                      .output = 1,
                                      .error = 2,
                                      .inherited = -1};

    (void)state;
    skip_where_forks_are_not_followed();
    signal(SIGTERM, take_signal);
    for (int i = 0; i < 50; i++) {
        const pid_t process = rueda_spawn(&spawn);
        int how = 0;

        assert_true(process > 0);
        assert_int_equal(kill(-process, SIGTERM), 0);
        for (int k = 0; k < 500 && waitpid(process, &how, WNOHANG) == 0; k++)
            usleep(10000);
        kill(process, SIGKILL);
        assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
    }
    signal(SIGTERM, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_assignment_arrives_as_it_was_sent),
        cmocka_unit_test(no_part_of_an_assignment_is_an_assignment),
        cmocka_unit_test(assignments_that_cannot_be_are_refused),
        cmocka_unit_test(what_is_no_frame_is_refused),
        cmocka_unit_test(every_rank_is_told_its_place_in_both_languages),
        cmocka_unit_test(every_rank_is_told_its_place_as_by_torchrun),
        cmocka_unit_test(variables_of_torchrun_stay_here),
        cmocka_unit_test(what_is_of_this_host_stays_here),
        cmocka_unit_test(the_store_is_named_in_both_languages),
        cmocka_unit_test(interfaces_are_named_and_do_not_limit_us),
        cmocka_unit_test(tf_config_makes_every_rank_a_worker),
        cmocka_unit_test(variables_are_set_once_and_unset),
        cmocka_unit_test(cpus_are_shared_out_evenly),
        cmocka_unit_test(a_core_is_not_cut_while_there_are_enough),
        cmocka_unit_test(the_cores_of_this_machine_are_all_found),
        cmocka_unit_test(an_end_is_told_as_shells_do),
        cmocka_unit_test(the_kernels_count_of_kills_is_found),
        cmocka_unit_test(a_signal_is_not_lost_while_a_process_begins),
        cmocka_unit_test_setup_teardown(programs_are_found_as_shells_do,
                                        folder_make, folder_drop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
