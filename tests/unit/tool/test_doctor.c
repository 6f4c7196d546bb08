/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor thinks of what was found, and how it is told. */
#include "support/test_rank.h"
#include "tool/doctor/facts.h"
#include "tool/doctor/judge.h"
#include "tool/doctor/options.h"
#include "unit/unit.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

#define NEW_CHECK                                                              \
    {                                                                          \
        .verdict = RUEDA_FINDING_OK                                            \
    }

static void assert_says(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, text);
}

/* ---- Verdicts ----------------------------------------------------------- */

static void files_have_to_suffice_for_the_job(void **state)
{
    struct rueda_finding well = NEW_CHECK;
    struct rueda_finding few = NEW_CHECK;
    struct rueda_finding too_few = NEW_CHECK;
    const uint64_t needed = rueda_files_needed(8, 1024, 4);

    (void)state;
    assert_true(needed > UINT64_C(4) * (1024 - 8));
    rueda_judge_files(&well, (struct rueda_judge_limit){65536, RUEDA_UNLIMITED},
                      needed);
    assert_int_equal(well.verdict, RUEDA_FINDING_OK);
    assert_string_equal(well.fix, "");
    assert_says(well.value, "65536 (up to unlimited)");
    rueda_judge_files(&few, (struct rueda_judge_limit){256, 4096}, 100);
    assert_int_equal(few.verdict, RUEDA_FINDING_WARN);
    rueda_judge_files(&too_few, (struct rueda_judge_limit){1024, 4096}, needed);
    assert_int_equal(too_few.verdict, RUEDA_FINDING_BAD);
    assert_says(too_few.fix, "ulimit -n 65536");
}

static void locked_memory_matters_where_devices_lock_it(void **state)
{
    const struct rueda_judge_limit some = {8 * MIB, 8 * MIB};
    const struct rueda_judge_limit all = {RUEDA_UNLIMITED, RUEDA_UNLIMITED};
    struct rueda_finding finding = NEW_CHECK;

    (void)state;
    rueda_judge_memlock(&finding, some, false);
    assert_int_equal(finding.verdict, RUEDA_FINDING_OK);
    assert_says(finding.value, "8 MiB");
    rueda_judge_memlock(&finding, all, true);
    assert_int_equal(finding.verdict, RUEDA_FINDING_OK);
    rueda_judge_memlock(&finding, some, true);
    assert_int_equal(finding.verdict, RUEDA_FINDING_WARN);
    assert_says(finding.fix, "ulimit -l unlimited");
}

static void little_memory_is_a_warning_and_none_is_bad(void **state)
{
    struct rueda_finding finding = NEW_CHECK;

    (void)state;
    rueda_judge_memory(&finding, 16 * GIB, RUEDA_UNLIMITED);
    assert_int_equal(finding.verdict, RUEDA_FINDING_OK);
    rueda_judge_memory(&finding, 16 * GIB, 8 * GIB);
    assert_int_equal(finding.verdict, RUEDA_FINDING_OK);
    assert_says(finding.value, "16 GiB, of which 8 GiB free");
    rueda_judge_memory(&finding, 16 * GIB, 500 * MIB);
    assert_int_equal(finding.verdict, RUEDA_FINDING_WARN);
    rueda_judge_memory(&finding, 16 * GIB, 10 * MIB);
    assert_int_equal(finding.verdict, RUEDA_FINDING_BAD);
}

static void a_quota_below_the_cpus_is_a_warning(void **state)
{
    struct rueda_finding finding = NEW_CHECK;

    (void)state;
    rueda_judge_quota(&finding, false, 0, 8);
    assert_int_equal(finding.verdict, RUEDA_FINDING_OK);
    assert_says(finding.value, "no cgroup");
    rueda_judge_quota(&finding, true, 0, 8);
    assert_string_equal(finding.value, "none");
    rueda_judge_quota(&finding, true, 8, 8);
    assert_int_equal(finding.verdict, RUEDA_FINDING_OK);
    rueda_judge_quota(&finding, true, 0.5, 8);
    assert_int_equal(finding.verdict, RUEDA_FINDING_WARN);
    assert_says(finding.fix, "at most 1 rank");
}

static void another_version_would_stop_a_job(void **state)
{
    struct rueda_finding finding = NEW_CHECK;

    (void)state;
    rueda_judge_version(&finding, "1.2.3", "1.2.3");
    assert_int_equal(finding.verdict, RUEDA_FINDING_OK);
    rueda_judge_version(&finding, "1.2.2", "1.2.3");
    assert_int_equal(finding.verdict, RUEDA_FINDING_BAD);
    assert_says(finding.fix, "1.2.3");
}

static void ssh_is_quoted_and_advised(void **state)
{
    static const struct {
        int code;
        const char *words;
        const char *fix;
    } cases[] = {
        {255, "me@n: Permission denied (publickey).", "ssh-copy-id n"},
        {255, "Host key verification failed.", "ssh n"},
        {255, "ssh: connect to host n port 22: Connection refused",
         "start sshd on n"},
        {255, "ssh: Could not resolve hostname n: Name unknown",
         "n is no name"},
        {127, "sh: 1: exec: rueda: not found", "install rueda on n"},
        {127, "", "install rueda on n"},
        {2, "rueda: unknown command 'doctor'", "n has an older rueda"},
        {1, "This account is closed", "ssh n true"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_finding finding = NEW_CHECK;
        const struct rueda_reach reach = {.code = cases[i].code,
                                          .words = cases[i].words};

        rueda_judge_ssh(&finding, "n", &reach);
        assert_int_equal(finding.verdict, RUEDA_FINDING_BAD);
        assert_says(finding.fix, cases[i].fix);
        if (cases[i].words[0] != '\0')
            assert_string_equal(finding.value, cases[i].words);
        else
            assert_says(finding.value, "exit code 127");
    }
}

static void a_host_that_does_not_answer_is_told(void **state)
{
    const struct rueda_reach reach = {
        .is_late = true, .code = 137, .seconds = 15, .words = ""};
    struct rueda_finding finding = NEW_CHECK;

    (void)state;
    rueda_judge_ssh(&finding, "n", &reach);
    assert_int_equal(finding.verdict, RUEDA_FINDING_BAD);
    assert_string_equal(finding.value, "no answer within 15 s");
    assert_says(finding.fix, "is n up");
}

static void a_clock_may_be_off_by_little(void **state)
{
    struct rueda_finding finding = NEW_CHECK;

    (void)state;
    rueda_judge_clock(&finding, "a", -0.02, 0.001);
    assert_int_equal(finding.verdict, RUEDA_FINDING_OK);
    assert_says(finding.value, "-20.000 ms against a");
    rueda_judge_clock(&finding, "a", -2.5, 0.001);
    assert_int_equal(finding.verdict, RUEDA_FINDING_WARN);
    assert_says(finding.fix, "chrony");
}

static void a_longer_packet_is_named_with_its_interface(void **state)
{
    const struct rueda_net mine = {"eth0", "10.0.0.0/8", 1500};
    const struct rueda_net theirs = {"ens5", "10.0.0.0/8", 9000};
    struct rueda_finding finding = NEW_CHECK;

    (void)state;
    rueda_judge_mtu(&finding, &mine, "b", &theirs);
    assert_int_equal(finding.verdict, RUEDA_FINDING_WARN);
    assert_says(finding.value, "eth0 has 1500, but ens5 of b");
    assert_says(finding.fix, "ip link set dev ens5 mtu 1500 on b");
}

static void a_failure_is_advised_by_its_words(void **state)
{
    struct rueda_finding finding = NEW_CHECK;

    (void)state;
    rueda_judge_failure(&finding, "cannot reach rank 2: is the MTU too large?");
    assert_int_equal(finding.verdict, RUEDA_FINDING_BAD);
    assert_says(finding.fix, "ip link set dev");
    rueda_judge_failure(&finding, "rank 0 cannot reach rank 2");
    assert_says(finding.fix, "--network-interfaces");
    rueda_judge_failure(&finding, "who knows");
    assert_says(finding.fix, "RUEDA_LOG_LEVEL");
}

static void gpus_are_told_from_none(void **state)
{
    struct rueda_gpus gpus = {.count = 0};
    struct rueda_finding finding = NEW_CHECK;

    (void)state;
    rueda_judge_gpus(&finding, &gpus);
    assert_int_equal(finding.verdict, RUEDA_FINDING_OK);
    assert_string_equal(finding.value, "none: NVIDIA's driver is not here");
    gpus = (struct rueda_gpus){.count = 2,
                               .driver = "580.159.04",
                               .has_library = true,
                               .version = 13010,
                               .visible_count = 1,
                               .name = "NVIDIA H200"};
    rueda_judge_gpus(&finding, &gpus);
    assert_int_equal(finding.verdict, RUEDA_FINDING_OK);
    assert_string_equal(finding.value,
                        "1 x NVIDIA H200, driver 580.159.04, CUDA 13.1, "
                        "no NCCL");
    gpus.nccl = 22809;
    rueda_judge_gpus(&finding, &gpus);
    assert_says(finding.value, "NCCL 2.28.9");
}

static void several_gpus_without_nccl_are_a_warning(void **state)
{
    struct rueda_gpus gpus = {.count = 2,
                              .driver = "580.159.04",
                              .has_library = true,
                              .version = 13010,
                              .visible_count = 2,
                              .name = "NVIDIA H200"};
    struct rueda_finding finding = NEW_CHECK;

    (void)state;
    rueda_judge_gpus(&finding, &gpus);
    assert_int_equal(finding.verdict, RUEDA_FINDING_WARN);
    assert_says(finding.fix, "RUEDA_NCCL_LIB");
}

/* With the stand-in for the driver. */
static void processes_try_to_map_memory_of_a_gpu(void **state)
{
    struct rueda_finding finding = NEW_CHECK;

    (void)state;
    rank_skip_without_fork();
    setenv("FAKE_CUDA_FAIL", "cuIpcOpenMemHandle_v2=201", 1);
    rueda_facts_gpu_ipc(&finding, FAKE_CUDA_FOLDER "libcuda.so.1");
    unsetenv("FAKE_CUDA_FAIL");
    assert_int_equal(finding.verdict, RUEDA_FINDING_WARN);
    assert_says(finding.value, "by way of the host: an error of the stand-in");
    assert_says(finding.fix, "--ipc=host");
    /* It leaves streams behind, whose threads a child would not have. */
    finding = (struct rueda_finding)NEW_CHECK;
    rueda_facts_gpu_ipc(&finding, FAKE_CUDA_FOLDER "libcuda.so.1");
    assert_int_equal(finding.verdict, RUEDA_FINDING_OK);
    assert_string_equal(finding.value, "processes map each other's memory");
    rueda_facts_gpu_ipc(&finding, FAKE_CUDA_FOLDER "no_such_library.so");
    assert_says(finding.value, "not tried");
}

static void gpus_that_cannot_be_used_are_a_warning(void **state)
{
    struct rueda_gpus gpus = {.count = 2, .driver = "580.159.04"};
    struct rueda_finding finding = NEW_CHECK;

    (void)state;
    rueda_judge_gpus(&finding, &gpus);
    assert_int_equal(finding.verdict, RUEDA_FINDING_WARN);
    assert_says(finding.value, "no libcuda.so.1");
    gpus.has_library = true;
    gpus.error = 100;
    rueda_judge_gpus(&finding, &gpus);
    assert_int_equal(finding.verdict, RUEDA_FINDING_WARN);
    assert_says(finding.fix, "CUDA_VISIBLE_DEVICES");
    gpus.error = 803;
    rueda_judge_gpus(&finding, &gpus);
    assert_int_equal(finding.verdict, RUEDA_FINDING_WARN);
    assert_says(finding.value, "(803)");
}

static void the_drivers_version_is_found(void **state)
{
    char version[16] = "";

    (void)state;
    assert_true(rueda_nvidia_version(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb\n"
        "GCC version:  gcc version 12.2.0\n",
        version, sizeof(version)));
    assert_string_equal(version, "550.54.14");
    assert_true(rueda_nvidia_version(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  "
        "Release Build\n",
        version, sizeof(version)));
    assert_string_equal(version, "580.159.04");
    assert_false(rueda_nvidia_version("", version, sizeof(version)));
    assert_false(rueda_nvidia_version("none at all 12", version, 16));
    assert_false(rueda_nvidia_version("1.2.3.4.5.6.7.8.9.0", version, 16));
}

/* ---- Lines -------------------------------------------------------------- */

static char *written(const struct rueda_line *line)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    assert_non_null(file);
    rueda_line_write(line, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(text[bytes - 1], '\n');
    text[bytes - 1] = '\0';
    return text;
}

/* Behind what a launcher puts before it. */
static struct rueda_line passed_on(const struct rueda_line *line)
{
    struct rueda_line got;
    char *text = written(line);
    char *prefixed;

    assert_true(asprintf(&prefixed, "[3]<stdout>:%s", text) > 0);
    assert_true(rueda_line_read(prefixed, &got));
    assert_int_equal(got.kind, line->kind);
    free(prefixed);
    free(text);
    return got;
}

static void lines_say_the_same_when_they_arrive(void **state)
{
    struct rueda_line finding = {.kind = RUEDA_LINE_FINDING};
    const struct rueda_line net = {.kind = RUEDA_LINE_NET,
                                   .net = {"eth0", "fd77::/64", 9000}};
    const struct rueda_line half = {
        .kind = RUEDA_LINE_HALF,
        .half = {"tcp", 2, 5, 1.5e-5, 2.25e9, -12345678901}};
    const struct rueda_line failed = {
        .kind = RUEDA_LINE_FAILED, .rank = 7, .words = "rank 3 died"};
    const struct rueda_line end = {.kind = RUEDA_LINE_END};
    struct rueda_line got;

    (void)state;
    rueda_finding_name(&finding.finding, "cpus");
    rueda_finding_value(&finding.finding, "4\tof\n8");
    rueda_finding_judge(&finding.finding, RUEDA_FINDING_WARN, "get more");
    got = passed_on(&finding);
    assert_string_equal(got.finding.name, "cpus");
    assert_string_equal(got.finding.value, "4?of?8");
    assert_string_equal(got.finding.fix, "get more");
    assert_int_equal(got.finding.verdict, RUEDA_FINDING_WARN);
    got = passed_on(&net);
    assert_string_equal(got.net.interface, "eth0");
    assert_string_equal(got.net.network, "fd77::/64");
    assert_int_equal(got.net.mtu, 9000);
    got = passed_on(&half);
    assert_string_equal(got.half.way, "tcp");
    assert_int_equal(got.half.rank, 2);
    assert_int_equal(got.half.peer, 5);
    assert_true(got.half.latency == 1.5e-5 && got.half.bandwidth == 2.25e9);
    assert_true(got.half.delta_ns == -12345678901);
    got = passed_on(&failed);
    assert_int_equal(got.rank, 7);
    assert_string_equal(got.words, "rank 3 died");
    passed_on(&end);
}

static void other_lines_are_not_ours(void **state)
{
    static const char *const lines[] = {
        "",
        "Welcome to this host",
        "rueda-doctor",
        "rueda-doctor\t",
        "rueda-doctor\tdance\t1",
        "rueda-doctor\tcheck\tcpus\tfine\t1\t",
        "rueda-doctor\tcheck\tcpus\tok\t1",
        "rueda-doctor\tcheck\t\tok\t1\t",
        "rueda-doctor\tnet\teth0\t10.0.0.0/8\tlong",
        "rueda-doctor\thalf\tpigeon-post\t0\t1\t1\t1\t0",
        "rueda-doctor\thalf\ttcp\t-1\t1\t1\t1\t0",
        "rueda-doctor\thalf\ttcp\t0\t1\tnan\t1\t0",
        "rueda-doctor\thalf\ttcp\t0\t1\t1\t-1\t0",
        "rueda-doctor\thalf\ttcp\t0\t1\t1\t1\t--1",
        "rueda-doctor\tjoined\t",
        "rueda-doctor\tfailed\t1",
        "rueda-doctor\tend\t",
    };
    struct rueda_line line;

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (rueda_line_read(lines[i], &line))
            fail_msg("taken: %s", lines[i]);
}

static void count_line(void *arg, const struct rueda_line *line)
{
    int *ends = arg;

    *ends += line->kind == RUEDA_LINE_END;
}

static void lines_are_found_among_others(void **state)
{
    static const char two[] = "rueda-doctor\tend\nrueda-doctor\tend\n";
    char text[9000 + sizeof(two)];
    int ends = 0;

    (void)state;
    rueda_line_each("", count_line, &ends);
    assert_int_equal(ends, 0);
    rueda_line_each("motd\n\nrueda-doctor\tend\nx rueda-doctor\tend\n"
                    "rueda-doctor\tend",
                    count_line, &ends);
    assert_int_equal(ends, 3);
    /* One that is too long is none, and harms none. */
    memset(text, 'x', 9000);
    memcpy(text + 9000, two, sizeof(two));
    rueda_line_each(text, count_line, &ends);
    assert_int_equal(ends, 4);
}

static void checks_are_counted_by_verdict(void **state)
{
    struct rueda_findings findings = {.list = NULL};
    struct rueda_finding finding = NEW_CHECK;

    (void)state;
    assert_int_equal(rueda_findings_worst(&findings), RUEDA_FINDING_OK);
    rueda_findings_add(&findings, &finding);
    rueda_finding_judge(&finding, RUEDA_FINDING_WARN, "do");
    rueda_findings_add(&findings, &finding);
    rueda_findings_add(&findings, &finding);
    assert_int_equal(rueda_findings_worst(&findings), RUEDA_FINDING_WARN);
    assert_int_equal(rueda_findings_count(&findings, RUEDA_FINDING_OK), 1);
    assert_int_equal(rueda_findings_count(&findings, RUEDA_FINDING_WARN), 2);
    assert_int_equal(rueda_findings_count(&findings, RUEDA_FINDING_BAD), 0);
    rueda_findings_fini(&findings);
}

/* ---- The command line --------------------------------------------------- */

struct words {
    char text[256];
    char *argv[20];
    struct rueda_doctor_options options;
    struct rueda_text mistake;
};

static bool parse(struct words *words, const char *text)
{
    int argc = 0;
    char *rest;

    memset(words, 0, sizeof(*words));
    snprintf(words->text, sizeof(words->text), "%s", text);
    for (char *word = strtok_r(words->text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest))
        words->argv[argc++] = word;
    return rueda_doctor_options_parse(argc, words->argv, &words->options,
                                      &words->mistake);
}

static void options_are_those_of_ruedarun(void **state)
{
    struct words words;

    (void)state;
    assert_true(parse(&words, ""));
    assert_null(words.options.list);
    assert_int_equal(words.options.timeout_s, 15);
    assert_true(parse(&words, "-H a:2,b -p 2222 --ssh-identity-file=k "
                              "--network-interfaces eth0 --timeout 3 "
                              "--json out"));
    assert_string_equal(words.options.list, "a:2,b");
    assert_string_equal(words.options.ssh.port, "2222");
    assert_string_equal(words.options.ssh.identity, "k");
    assert_string_equal(words.options.network, "eth0");
    assert_string_equal(words.options.json, "out");
    assert_int_equal(words.options.timeout_s, 3);
    assert_true(parse(&words, "--json x --help"));
    assert_int_equal(words.options.role, RUEDA_DOCTOR_HELPS);
    assert_true(parse(&words, "--facts 2 8"));
    assert_int_equal(words.options.role, RUEDA_DOCTOR_FACTS);
    assert_int_equal(words.options.job.ranks, 8);
}

static void mistakes_are_named(void **state)
{
    static const char *const cases[][2] = {
        {"-H", "-H needs a value"},
        {"-H a --hostfile f", "do not go together"},
        {"-p 0", "-p takes a port"},
        {"--timeout never", "--timeout takes seconds"},
        {"--jsn x", "did you mean '--json'"},
        {"host1", "unknown word 'host1'"},
        {"--facts 0 8", "unknown option '--facts'"},
        {"--facts 9 8", "unknown option '--facts'"},
    };
    struct words words;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_false(parse(&words, cases[i][0]));
        assert_says(words.mistake.chars, cases[i][1]);
    }
}

static void hosts_may_come_without_slots(void **state)
{
    struct rueda_doctor_options options = {.list = "a,[fd00::1],b:3,[::2]:2"};
    struct rueda_text words = {{0}};
    struct rueda_hosts hosts;

    (void)state;
    assert_true(rueda_doctor_hosts(&options, 5, &hosts, &words));
    assert_int_equal(hosts.count, 4);
    assert_string_equal(hosts.list[1].name, "fd00::1");
    assert_int_equal(hosts.list[0].slots, 1);
    assert_int_equal(hosts.list[2].slots, 3);
    assert_int_equal(hosts.list[3].slots, 2);
    rueda_hosts_fini(&hosts);
    options.list = NULL;
    assert_true(rueda_doctor_hosts(&options, 5, &hosts, &words));
    assert_int_equal(hosts.list[0].slots, 5);
    rueda_hosts_fini(&hosts);
    options.list = "a,,b";
    assert_false(rueda_doctor_hosts(&options, 5, &hosts, &words));
    assert_false(rueda_text_is_empty(&words));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_have_to_suffice_for_the_job),
        cmocka_unit_test(locked_memory_matters_where_devices_lock_it),
        cmocka_unit_test(little_memory_is_a_warning_and_none_is_bad),
        cmocka_unit_test(a_quota_below_the_cpus_is_a_warning),
        cmocka_unit_test(another_version_would_stop_a_job),
        cmocka_unit_test(ssh_is_quoted_and_advised),
        cmocka_unit_test(a_host_that_does_not_answer_is_told),
        cmocka_unit_test(a_clock_may_be_off_by_little),
        cmocka_unit_test(a_longer_packet_is_named_with_its_interface),
        cmocka_unit_test(a_failure_is_advised_by_its_words),
        cmocka_unit_test(gpus_are_told_from_none),
        cmocka_unit_test(processes_try_to_map_memory_of_a_gpu),
        cmocka_unit_test(several_gpus_without_nccl_are_a_warning),
        cmocka_unit_test(gpus_that_cannot_be_used_are_a_warning),
        cmocka_unit_test(the_drivers_version_is_found),
        cmocka_unit_test(lines_say_the_same_when_they_arrive),
        cmocka_unit_test(other_lines_are_not_ours),
        cmocka_unit_test(lines_are_found_among_others),
        cmocka_unit_test(checks_are_counted_by_verdict),
        cmocka_unit_test(options_are_those_of_ruedarun),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(hosts_may_come_without_slots),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
