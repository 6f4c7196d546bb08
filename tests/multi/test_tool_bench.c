/* SPDX-License-Identifier: Apache-2.0 */
/* `rueda bench`: short runs, of which the words and numbers are looked at; how
 * fast they are is not tested here. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/json.h"
#include "support/program.h"
#include "unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define ROWS_MOST     8
#define COLUMNS_MOST  10
#define SHORT         " --rounds 1 --max 512" /* 8, 64 and 512 bytes */

static struct program rueda;

static void start(struct program *program, const char *line,
                  const char *const *settings)
{
    program_start(program, RUEDA_TEST_BIN_DIR "/rueda", line, settings);
}

static int run(const char *line, const char *const *settings)
{
    start(&rueda, line, settings);
    return program_end(&rueda);
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* The numbers of the table; what is none is NAN. */
struct table {
    int count;
    int columns[ROWS_MOST];
    double rows[ROWS_MOST][COLUMNS_MOST];
};

static int read_row(const char *line, double *out)
{
    int count = 0;

    while (*line != '\n' && *line != '\0' && count < COLUMNS_MOST) {
        char *end;

        line += strspn(line, " ");
        out[count] = strtod(line, &end);
        if (end == line)
            out[count] = NAN;
        count++;
        line += strcspn(line, " \n");
    }
    return count;
}

static void read_table(const char *text, struct table *out)
{
    memset(out, 0, sizeof(*out));
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *word = line + strspn(line, " ");

        if (*word >= '0' && *word <= '9' && out->count < ROWS_MOST) {
            out->columns[out->count] = read_row(line, out->rows[out->count]);
            out->count++;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
}

/* The run went well and has measured and checked this many sizes. */
static void is_measured(const struct program *program, const char *line,
                        int rows, struct table *out)
{
    if (program->code != 0)
        fail_msg("rueda %s: code %d\n%s%s", line, program->code, program->out,
                 program->err);
    has(program->out, "Every answer was checked.");
    /* What a sanitizer has to say of a rank. */
    if (strstr(program->err, "Sanitizer") != NULL)
        fail_msg("rueda %s:\n%s", line, program->err);
    read_table(program->out, out);
    assert_int_equal(out->count, rows);
    for (int i = 0; i < rows; i++) {
        const double *row = out->rows[i];

        /* median, p99, best */
        assert_true(0 <= row[3] && row[3] <= row[1] && row[1] <= row[2]);
        assert_true(row[2] > 0);
    }
}

/* ---- The table --------------------------------------------------------- */

static void the_table_has_a_row_for_every_size(void **state)
{
    static const double sizes[] = {8, 64, 512, 4096};
    struct table table;

    (void)state;
    run("bench allreduce --np 2 --min 8 --max 4k --rounds 2", NULL);
    is_measured(&rueda, "bench allreduce", 4, &table);
    assert_string_equal(rueda.err, "");
    has(rueda.out, "# rueda ");
    has(rueda.out, "# machine     ");
    has(rueda.out, "# ranks       2 processes on this host, free to move");
    has(rueda.out, "transport auto, algorithm auto, float32, sum, private");
    has(rueda.out, "# cache line  ");
    has(rueda.out, " ns one way between rank 0 (core ");
    for (int i = 0; i < table.count; i++) {
        const double *row = table.rows[i];

        assert_int_equal(table.columns[i], 6);
        assert_true(row[0] == sizes[i]);
        /* What two ranks move on the bus is what they reduce. */
        assert_true(row[4] == row[5]);
    }
    /* Bytes over median in GB/s, as far as the digits go. */
    assert_true(fabs(table.rows[3][4] * table.rows[3][1] * 1e3 / 4096 - 1) <
                0.1);
}

static void every_operation_is_measured_and_right(void **state)
{
    static const char *const ops[] = {
        "allreduce", "allgather",     "broadcast",
        "alltoall",  "reducescatter", "pingpong",
    };
    struct table table;
    char line[128];

    (void)state;
    for (size_t i = 0; i < LENGTH(ops); i++) {
        snprintf(line, sizeof(line), "bench %s --np 2" SHORT, ops[i]);
        run(line, NULL);
        is_measured(&rueda, line, 3, &table);
        assert_true(table.rows[2][0] == 512);
    }
    run("bench barrier --np 2" SHORT, NULL);
    is_measured(&rueda, "bench barrier", 1, &table);
    assert_true(table.rows[0][0] == 0);
}

static void every_choice_is_measured_and_right(void **state)
{
    static const struct {
        const char *words;
        const char *head;
    } choices[] = {
        {"--np 1", "# ranks       1 processes"},
        {"--np 3", "# ranks       3 processes"},
        {"--np 2 --transport loop", "# ranks       2 threads on this host"},
        {"--np 2 --transport messages", "# transport   shm, as all ranks say"},
        {"--np 2 --transport shm", "# transport   direct, as all ranks say"},
        {"--np 3 --transport tcp", "# transport   tcp, as all ranks say"},
        {"--np 2 --algo ring", "algorithm ring, "},
        {"--np 2 --alloc shared", ", shared memory"},
        {"--np 2 --bind core", "rank r of every side bound to core r"},
        {"--np 2 --bind free", "wherever the system puts them"},
        {"--np 2 --dtype bfloat16 --reduction average", "bfloat16, average"},
        {"--np 2 --dtype float16 --reduction min", "float16, min"},
        {"--np 2 --dtype uint8 --reduction sum", "uint8, sum"},
        {"--np 2 --dtype int16 --reduction product", "int16, product"},
        {"--np 2 --dtype int64 --reduction max", "int64, max"},
        {"--np 2 --dtype bool --reduction max", "bool, max"},
        {"--np 2 --dtype float64 --reduction adasum", "float64, adasum"},
    };
    struct table table;
    char line[128];

    (void)state;
    for (size_t i = 0; i < LENGTH(choices); i++) {
        snprintf(line, sizeof(line), "bench %s" SHORT, choices[i].words);
        run(line, NULL);
        is_measured(&rueda, line, 3, &table);
        has(rueda.out, choices[i].head);
    }
}

static void sizes_that_do_not_fit_are_left_out(void **state)
{
    struct table table;

    (void)state;
    run("bench --np 2 --rounds 1 --min 64t", NULL);
    is_measured(&rueda, "bench --min 64t", 0, &table);
    has(rueda.out, "# 70368744177664 bytes left out: all sides together need "
                   "128 TiB, ");
}

/* ---- JSON -------------------------------------------------------------- */

static void check_object(const char *row, const char *op, double bytes)
{
    static const char *const times[] = {"best_us", "median_us", "p99_us"};
    double before = 0;
    double median = json_number(json_field(row, "median_us"));
    double algbw = json_number(json_field(row, "algbw_gbs"));
    double busbw = json_number(json_field(row, "busbw_gbs"));

    assert_true(json_is_text(json_field(row, "op"), op));
    assert_true(json_is_text(json_field(row, "transport"), "messages"));
    assert_true(json_is_text(json_field(row, "algo"), "ring"));
    assert_true(json_is_text(json_field(row, "dtype"), "float64"));
    assert_true(json_is_text(json_field(row, "reduction"), "max"));
    assert_true(json_is_text(json_field(row, "alloc"), "private"));
    assert_true(json_number(json_field(row, "bytes")) == bytes);
    assert_true(json_number(json_field(row, "ranks")) == 3);
    for (size_t i = 0; i < LENGTH(times); i++) {
        const double time = json_number(json_field(row, times[i]));

        assert_true(time > 0 && time >= before);
        before = time;
    }
    assert_true(fabs(algbw * median * 1e3 / bytes - 1) < 1e-6);
    /* 2 (n - 1) / n for three ranks. */
    assert_true(fabs(busbw / algbw / (4.0 / 3.0) - 1) < 1e-6);
    assert_true(json_number(json_field(row, "line_ns")) > 0);
    assert_true(json_number(json_field(json_field(row, "peers"), "memcpy")) >
                0);
    assert_true(
        json_number(json_field(json_field(row, "peers_p99"), "memcpy")) >=
        json_number(json_field(json_field(row, "peers"), "memcpy")));
    assert_true(json_number(json_field(json_field(row, "ratio"), "memcpy")) >
                0);
}

static void read_whole(const char *path, char *out, size_t room)
{
    FILE *file = fopen(path, "re");
    size_t len;

    assert_non_null(file);
    len = fread(out, 1, room - 1, file);
    out[len] = '\0';
    fclose(file);
}

static void json_has_the_rows_of_the_table(void **state)
{
    struct folder *folder = *state;
    const char *path = folder_write(folder, "rows.json", "");
    struct table table;
    char line[256];
    char text[8192];

    snprintf(line, sizeof(line),
             "bench --np 3 --rounds 1 --min 64 --max 512 --transport messages "
             "--algo ring --dtype float64 --reduction max --vs memcpy "
             "--json %s",
             path);
    run(line, NULL);
    is_measured(&rueda, line, 2, &table);
    read_whole(path, text, sizeof(text));

    assert_true(json_is_valid(text));
    check_object(json_element(text, 0), "allreduce", 64);
    check_object(json_element(text, 1), "allreduce", 512);
    assert_null(json_element(text, 2));
    has(rueda.out, "vs memcpy");
    assert_int_equal(table.columns[0], 7);
}

static void a_file_that_cannot_be_written_is_named(void **state)
{
    (void)state;
    assert_int_equal(
        run("bench --np 1" SHORT " --json /nowhere/rows.json", NULL), 1);
    has(rueda.err, "/nowhere/rows.json: No such file");
    assert_int_equal(
        run("bench barrier --np 2" SHORT " --tune /nowhere/rows", NULL), 1);
    has(rueda.err, "/nowhere/rows: No such file");
}

/* ---- Peers ------------------------------------------------------------- */

static void a_peer_that_is_not_installed_is_named_and_left_out(void **state)
{
    static const char *const settings[] = {"PATH=/nowhere", NULL};
    const char *line = "bench --np 2" SHORT " --vs openmpi,mpich";
    struct table table;

    (void)state;
    run(line, settings);
    is_measured(&rueda, line, 3, &table);
    has(rueda.err, "openmpi is left out: mpirun.openmpi is not here: apt-get "
                   "install openmpi-bin");
    has(rueda.err, "mpich is left out: mpirun.mpich is not here: apt-get "
                   "install mpich");
    assert_int_equal(table.columns[0], 6);
}

static void a_peer_that_fails_is_left_out_with_its_words(void **state)
{
    struct folder *folder = *state;
    const char *script = folder_write(folder, "mpirun.mpich",
                                      "#!/bin/sh\n"
                                      "echo no network  today\nexit 3\n");
    const char *line = "bench --np 2" SHORT " --vs mpich";
    struct table table;
    char path[128];
    const char *const settings[] = {path, NULL};

    snprintf(path, sizeof(path), "PATH=%s:/bin", folder->name);
    assert_int_equal(chmod(script, 0700), 0);
    run(line, settings);
    is_measured(&rueda, line, 3, &table);
    has(rueda.err, "mpich is left out: mpich ended with exit code 3");
    has(rueda.err, "it said: no network today");
}

/* Foreign libraries leak and race as they like. */
static void skip_without_peer(const char *launcher)
{
    char path[64];

    if (RANK_IS_SLOW) {
        print_message("skipped: sanitizers have much to say about MPI\n");
        skip();
    }
    snprintf(path, sizeof(path), "/usr/bin/%s", launcher);
    if (access(path, X_OK) != 0) {
        print_message("SKIP-MISSING-TOOL: %s\n", launcher);
        skip();
    }
}

static void is_beside_peer(const char *line, int rows)
{
    struct table table;

    run(line, NULL);
    is_measured(&rueda, line, rows, &table);
    assert_string_equal(rueda.err, "");
    for (int i = 0; i < rows; i++) {
        assert_int_equal(table.columns[i], 7);
        assert_true(table.rows[i][6] > 0);
    }
}

static void private_memory_is_measured_beside_shared(void **state)
{
    struct folder *folder = *state;
    const char *path = folder_write(folder, "rows.json", "");
    char line[256];
    char text[8192];

    /* Large enough that shared buffers are read where they are. */
    snprintf(line, sizeof(line),
             "bench --np 2 --rounds 2 --min 64k --max 64k --alloc shared "
             "--vs private --json %s",
             path);
    is_beside_peer(line, 1);
    has(rueda.out, ", shared memory");
    has(rueda.out, "# peers       rueda with private memory");
    has(rueda.out, "vs private");
    read_whole(path, text, sizeof(text));
    assert_true(json_is_valid(text));
    assert_true(
        json_is_text(json_field(json_element(text, 0), "alloc"), "shared"));
    assert_true(
        json_number(json_field(json_field(json_element(text, 0), "peers"),
                               "private")) > 0);
    assert_true(
        json_number(json_field(json_field(json_element(text, 0), "ratio"),
                               "private")) > 0);

    is_beside_peer("bench alltoall --np 2 --transport loop --alloc shared "
                   "--rounds 1 --max 8 --vs private",
                   1);
}

static void private_memory_beside_itself_is_refused(void **state)
{
    (void)state;
    assert_int_equal(run("bench --np 2" SHORT " --vs private", NULL), 2);
    assert_string_equal(rueda.out, "");
    has(rueda.err, "add --alloc shared");
}

static void openmpi_is_measured_beside_us(void **state)
{
    static const char *const ops[] = {
        "allreduce",     "allgather", "broadcast", "alltoall",
        "reducescatter", "barrier",   "pingpong",
    };
    char line[128];

    (void)state;
    skip_without_peer("mpirun.openmpi");
    for (size_t i = 0; i < LENGTH(ops); i++) {
        snprintf(line, sizeof(line),
                 "bench %s --np 2 --rounds 2 --max 8 --vs openmpi", ops[i]);
        is_beside_peer(line, 1);
        has(rueda.out, "# peers       Open MPI v");
        has(rueda.out, "vs openmpi");
    }
}

static void mpich_is_measured_beside_us(void **state)
{
    (void)state;
    skip_without_peer("mpirun.mpich");
    is_beside_peer("bench --np 2" SHORT " --vs mpich --dtype int32 "
                   "--reduction product",
                   3);
    has(rueda.out, "# peers       MPICH Version: ");
}

static void a_peer_that_cannot_do_it_is_out(void **state)
{
    const char *line = "bench --np 2" SHORT " --dtype bfloat16 --vs mpich";
    struct table table;

    (void)state;
    skip_without_peer("mpirun.mpich");
    run(line, NULL);
    is_measured(&rueda, line, 3, &table);
    has(rueda.err, "mpich is out: MPI has no bfloat16");
    assert_true(isnan(table.rows[2][6]));
}

/* ---- Beside the network's own ------------------------------------------ */

static void raw_sockets_are_measured_beside_us(void **state)
{
    static const char *const ops[] = {"allreduce", "allgather", "alltoall",
                                      "reducescatter"};
    char line[128];

    (void)state;
    /* Written at once, and by a second thread. */
    is_beside_peer("bench --transport tcp --vs raw --rounds 2 --min 4k "
                   "--max 256k",
                   3);
    has(rueda.out, "# ranks       2 processes on this host");
    has(rueda.out, "# transport   tcp, as all ranks say");
    has(rueda.out, "# peers       raw: blocking sockets");
    has(rueda.out, "vs raw");
    for (size_t i = 0; i < LENGTH(ops); i++) {
        snprintf(line, sizeof(line),
                 "bench %s --vs raw --rounds 1 --min 64k --max 64k", ops[i]);
        is_beside_peer(line, 1);
    }
    assert_int_equal(run("bench --np 3 --vs raw", NULL), 2);
    has(rueda.err, "an exchange between two ranks");
}

static void another_algorithm_is_measured_beside_us(void **state)
{
    (void)state;
    is_beside_peer("bench --np 2 --transport tcp --algo ring" SHORT
                   " --vs algo:halving_doubling",
                   3);
    has(rueda.out, " with the algorithm halving_doubling");
    assert_int_equal(run("bench --np 2 --vs algo:rng", NULL), 2);
    has(rueda.err, "no algorithm 'rng' can do this; did you mean 'ring'?");
}

static void peers_of_a_network_keep_off_shared_memory(void **state)
{
    const char *line = "bench --np 2 --transport tcp" SHORT " --vs mpich";
    struct table table;

    (void)state;
    run(line, NULL);
    is_measured(&rueda, line, 3, &table);
    has(rueda.err, "mpich is left out: it is measured in shared memory only");
    skip_without_peer("mpirun.openmpi");
    is_beside_peer("bench --np 2 --transport tcp" SHORT " --vs openmpi", 3);
    has(rueda.out, " (--bind-to none --mca btl tcp,self)");
}

/* A host by the name of 127.0.0.1, which is this one. */
static void ranks_are_started_on_hosts(void **state)
{
    struct folder *folder = *state;
    const char *script = folder_write(folder, "rsh",
                                      "#!/bin/sh\n"
                                      "[ \"$1\" = 127.0.0.1 ] || exit 1\n"
                                      "shift; eval \"$*\"\n");
    const char *line =
        "bench --hosts 127.0.0.1:2 --rsh rsh" SHORT " --vs algo:ring";
    struct table table;
    char path[128];
    char key[128];
    const char *const settings[] = {path, key, NULL};

    assert_int_equal(chmod(script, 0700), 0);
    snprintf(path, sizeof(path), "PATH=%s:/bin:/usr/bin", folder->name);
    snprintf(key, sizeof(key), "RUEDA_KEY_FILE=%s",
             folder_write(folder, "key",
                          "0123456789abcdef0123456789abcdef"
                          "0123456789abcdef0123456789abcdef\n"));
    assert_int_equal(chmod(strchr(key, '=') + 1, 0600), 0);
    run(line, settings);
    is_measured(&rueda, line, 3, &table);
    assert_string_equal(rueda.err, "");
    has(rueda.out, "2 processes on the hosts 127.0.0.1:2, ");
    assert_true(table.rows[0][6] > 0);
    assert_int_equal(run("bench --hosts 127.0.0.2:2 --rsh rsh", settings), 1);
    has(rueda.err, "rank 0 ended with exit code 1");
    assert_int_equal(
        run("bench --hosts 127.0.0.1:2 --rsh /nowhere/rsh", settings), 1);
    has(rueda.err, "cannot run /nowhere/rsh: No such file");
}

/* ---- Launched ---------------------------------------------------------- */

/* Two programs that a launcher has made ranks of one job. */
static void run_launched(const char *line, struct program programs[2])
{
    char job[80] = "RUEDA_JOB=";

    rank_job_name(job + strlen(job), sizeof(job) - strlen(job));
    for (int rank = 0; rank < 2; rank++) {
        const char *const settings[] = {rank == 0 ? "RUEDA_RANK=0"
                                                  : "RUEDA_RANK=1",
                                        "RUEDA_SIZE=2", job, NULL};

        start(&programs[rank], line, settings);
    }
    for (int rank = 0; rank < 2; rank++)
        program_end(&programs[rank]);
}

static void ranks_of_a_launcher_measure_together(void **state)
{
    static struct program ranks[2];
    const char *line =
        "bench broadcast --algo tree --transport messages --bind core"
        " --vs memcpy,openmpi" SHORT;
    struct table table;

    (void)state;
    run_launched(line, ranks);
    is_measured(&ranks[0], line, 3, &table);
    has(ranks[0].out, "# ranks       2 processes on this host");
    has(ranks[0].err, "openmpi is left out: it is measured only where");
    assert_int_equal(table.columns[0], 7);
    /* Of 512 bytes: a copy of 8 is next to nothing where ranks wait long. */
    assert_true(table.rows[2][6] >= 0);
    assert_int_equal(ranks[1].code, 0);
    assert_string_equal(ranks[1].out, "");
    assert_string_equal(ranks[1].err, "");
}

static void a_launched_rank_cannot_tune_and_misses_the_others(void **state)
{
    static const char *const settings[] = {"RUEDA_RANK=0", "RUEDA_SIZE=2",
                                           "RUEDA_START_TIMEOUT=200ms", NULL};

    (void)state;
    assert_int_equal(run("bench --tune", settings), 2);
    has(rueda.err, "unset RUEDA_RANK");
    assert_int_equal(run("bench" SHORT, settings), 1);
    assert_string_equal(rueda.out, "");
    has(rueda.err, "rueda: ");
    has(rueda.err, "rank 1");
}

/* ---- Tune -------------------------------------------------------------- */

static void tuned_rows_can_be_used(void **state)
{
    struct folder *folder = *state;
    const char *path = folder_write(folder, "rows", "");
    struct table table;
    char setting[128];
    const char *const settings[] = {setting, NULL};
    char line[256];
    char text[8192];

    snprintf(line, sizeof(line), "bench --np 2" SHORT " --tune %s", path);
    assert_int_equal(run(line, NULL), 0);
    has(rueda.out, "algorithm each in turn");
    has(rueda.out, "RUEDA_TUNE_FILE=");
    read_whole(path, text, sizeof(text));
    assert_int_equal(strncmp(text, "allreduce:0-", 12), 0);
    has(text, "-inf@2:");

    snprintf(setting, sizeof(setting), "RUEDA_TUNE_FILE=%s", path);
    run("bench --np 2" SHORT, settings);
    is_measured(&rueda, "bench with rows", 3, &table);

    /* It is really read: rows that make no sense are a failure. */
    folder_write(folder, "rows", "allreduce:0-inf@2:nonsense;\n");
    assert_int_equal(run("bench --np 2" SHORT, settings), 1);
    has(rueda.err, "nonsense");
}

static void without_a_file_tuned_rows_are_printed(void **state)
{
    (void)state;
    assert_int_equal(run("bench barrier --np 2" SHORT " --tune", NULL), 0);
    has(rueda.out, "\nbarrier:@2:");
    assert_int_equal(run("bench --tune allgather --np 2" SHORT, NULL), 0);
    has(rueda.out, "\nallgather:0-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_a_row_for_every_size),
        cmocka_unit_test(every_operation_is_measured_and_right),
        cmocka_unit_test(every_choice_is_measured_and_right),
        cmocka_unit_test(sizes_that_do_not_fit_are_left_out),
        cmocka_unit_test_setup_teardown(json_has_the_rows_of_the_table,
                                        folder_make, folder_drop),
        cmocka_unit_test(a_file_that_cannot_be_written_is_named),
        cmocka_unit_test(a_peer_that_is_not_installed_is_named_and_left_out),
        cmocka_unit_test_setup_teardown(
            a_peer_that_fails_is_left_out_with_its_words, folder_make,
            folder_drop),
        cmocka_unit_test_setup_teardown(
            private_memory_is_measured_beside_shared, folder_make, folder_drop),
        cmocka_unit_test(private_memory_beside_itself_is_refused),
        cmocka_unit_test(openmpi_is_measured_beside_us),
        cmocka_unit_test(mpich_is_measured_beside_us),
        cmocka_unit_test(a_peer_that_cannot_do_it_is_out),
        cmocka_unit_test(raw_sockets_are_measured_beside_us),
        cmocka_unit_test(another_algorithm_is_measured_beside_us),
        cmocka_unit_test(peers_of_a_network_keep_off_shared_memory),
        cmocka_unit_test_setup_teardown(ranks_are_started_on_hosts, folder_make,
                                        folder_drop),
        cmocka_unit_test(ranks_of_a_launcher_measure_together),
        cmocka_unit_test(a_launched_rank_cannot_tune_and_misses_the_others),
        cmocka_unit_test_setup_teardown(tuned_rows_can_be_used, folder_make,
                                        folder_drop),
        cmocka_unit_test(without_a_file_tuned_rows_are_printed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
