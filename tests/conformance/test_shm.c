/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "conformance/conformance.h"
#include "transport/shm/pipe.h"
#include "transport/shm/shm.h"

struct host {
    struct rueda_segment *members[2];
    struct rueda_shm_pipe *pipes; /* [2], of side 0 and of side 1 */
};

static void open_shm(struct pair *pair)
{
    struct host *host = calloc(1, sizeof(*host));
    struct rueda_text error;
    void *area;

    assert_non_null(host);
    assert_int_equal(rueda_segment_threads(2, host->members, &error), RUEDA_OK);
    assert_int_equal(rueda_segment_alloc(host->members[0],
                                         rueda_shm_pair_bytes(), &area, &error),
                     RUEDA_OK);
    host->pipes = area;
    assert_int_equal(
        rueda_shm_ep_open(host->members[0], area, 0, 1, 1, &pair->a), RUEDA_OK);
    assert_int_equal(
        rueda_shm_ep_open(host->members[1], area, 1, 0, 0, &pair->b), RUEDA_OK);
    pair->owner = host;
}

static void close_shm(struct pair *pair)
{
    struct host *host = pair->owner;

    if (pair->a != NULL)
        rueda_ep_close(pair->a);
    if (pair->b != NULL)
        rueda_ep_close(pair->b);
    for (int i = 0; i < 2; i++)
        rueda_segment_close(host->members[i]);
    free(host);
}

/* As a death that was learned by pidfd. */
static void vanish_shm(struct pair *pair)
{
    struct host *host = pair->owner;

    host->members[0]->dead[1] = true;
}

static const struct fixture shm = {
    .name = "shm",
    .open = open_shm,
    .close = close_shm,
    .vanish = vanish_shm,
};

/* ---- Processes ------------------------------------------------------- */

static void two_processes_talk_and_sleep(void **state)
{
    struct pair *pair = *state;
    struct host *host = pair->owner;
    struct stress ends[2] = {
        {pair->a, 0, 200, host->members[0]},
        {pair->b, 1, 200, host->members[1]},
    };
    rueda_status result;
    int how = -1;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(stress_run(&ends[1]) == RUEDA_OK ? 0 : 1);
    result = stress_run(&ends[0]);
    assert_int_equal(waitpid(child, &how, 0), child);

    assert_int_equal(result, RUEDA_OK);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

/* ---- Damaged memory -------------------------------------------------- */

/* A message of this length from a to b, as far as b has not looked at it. */
static void send_to_b(struct pair *pair, size_t len, struct rueda_req *sent)
{
    static unsigned char bytes[200000];

    assert_true(len <= sizeof(bytes));
    rueda_ep_send(pair->a, tag_of(1), bytes, len, sent);
}

static void a_slot_that_makes_no_sense_fails_the_endpoint(void **state)
{
    static unsigned char in[200000];
    struct pair *pair = *state;

    for (int damage = 0; damage < 6; damage++) {
        struct pair own = {.fixture = pair->fixture};
        struct rueda_shm_notice *notice;
        struct rueda_req sent;
        struct rueda_req received;

        open_shm(&own);
        notice = &((struct host *)own.owner)->pipes[0].notices[1];
        send_to_b(&own, 100000, &sent);
        switch (damage) {
        case 0:
            atomic_store(&notice->number, 77);
            break;
        case 1:
            notice->channel = RUEDA_SHM_CHANNELS;
            break;
        case 2:
            notice->ready = UINT32_MAX;
            break;
        case 3:
            notice->ready = 0;
            break;
        case 4:
            notice->len = 5;
            break;
        case 5:
            notice->ready = (uint32_t)RUEDA_SHM_PIECE + 1;
            break;
        }
        rueda_ep_recv(own.b, tag_of(1), in, 100000, &received);

        assert_int_equal(drive_to_end(own.b), RUEDA_ERR_PEER_LOST);
        assert_int_equal(received.status, RUEDA_ERR_PEER_LOST);
        assert_int_equal(drive_to_end(own.a), RUEDA_ERR_PEER_LOST);
        close_shm(&own);
    }
}

static void a_count_out_of_range_fails_the_reader(void **state)
{
    static const unsigned long long counts[] = {
        0,      RUEDA_SHM_PIECE - 1, RUEDA_SHM_RING + RUEDA_SHM_PIECE + 1,
        200001, UINT64_MAX,
    };
    static unsigned char in[200000];
    struct pair *pair = *state;

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct pair own = {.fixture = pair->fixture};
        struct rueda_req sent;
        struct rueda_req received;

        open_shm(&own);
        send_to_b(&own, 200000, &sent);
        atomic_store(&((struct host *)own.owner)->pipes[0].flows[0].written,
                     counts[i]);
        rueda_ep_recv(own.b, tag_of(1), in, 200000, &received);

        assert_int_equal(drive_to_end(own.b), RUEDA_ERR_PEER_LOST);
        assert_int_equal(received.status, RUEDA_ERR_PEER_LOST);
        close_shm(&own);
    }
}

static void an_ack_of_what_was_not_sent_fails_the_writer(void **state)
{
    struct pair *pair = *state;
    struct host *host = pair->owner;
    struct rueda_req sent[RUEDA_SHM_CHANNELS + 1];

    for (int i = 0; i <= RUEDA_SHM_CHANNELS; i++)
        send_to_b(pair, 10, &sent[i]);
    assert_int_equal(sent[RUEDA_SHM_CHANNELS].status, RUEDA_IN_PROGRESS);
    atomic_store(&host->pipes[0].acks[3], 1000);

    assert_int_equal(drive_to_end(pair->a), RUEDA_ERR_PEER_LOST);
    assert_int_equal(sent[RUEDA_SHM_CHANNELS].status, RUEDA_ERR_PEER_LOST);
}

static void more_read_than_written_fails_the_writer(void **state)
{
    struct pair *pair = *state;
    struct host *host = pair->owner;
    struct rueda_req sent;

    send_to_b(pair, 200000, &sent);
    atomic_store(&host->pipes[0].flows[0].read, RUEDA_SHM_RING + 1);

    assert_int_equal(drive_to_end(pair->a), RUEDA_ERR_PEER_LOST);
    assert_int_equal(sent.status, RUEDA_ERR_PEER_LOST);
}

/* Whatever lies in the memory, both ends come to an end of it. */
static void random_bytes_crash_nobody(void **state)
{
    static unsigned char out[2][300000];
    static unsigned char in[2][300000];
    struct pair *pair = *state;
    struct rueda_req reqs[8];
    unsigned seed = 1;

    for (int round = 0; round < 100; round++) {
        struct pair own = {.fixture = pair->fixture};
        struct rueda_ep *ends[2];
        struct rueda_shm_pipe *pipes;

        open_shm(&own);
        ends[0] = own.a;
        ends[1] = own.b;
        pipes = ((struct host *)own.owner)->pipes;
        for (int i = 0; i < 4; i++) {
            size_t len = i % 2 == 0 ? sizeof(out[0]) : 20;

            rueda_ep_send(ends[i % 2], tag_of(0), out[i % 2], len, &reqs[i]);
            rueda_ep_recv(ends[i % 2], tag_of(0), in[i % 2], len, &reqs[4 + i]);
        }
        for (int i = 0; i < 40; i++) {
            unsigned char *head = (unsigned char *)&pipes[i % 2];
            size_t at;

            seed = seed * 1103515245 + 12345;
            at = seed / 65536 % offsetof(struct rueda_shm_pipe, rings);
            head[at] = (unsigned char)(seed >> 8);
            rueda_ep_progress(ends[0]);
            rueda_ep_progress(ends[1]);
        }
        close_shm(&own);
    }
    for (int i = 0; i < 8; i++)
        assert_int_not_equal(reqs[i].status, RUEDA_IN_PROGRESS);
}

static void drop_line(void *arg, rueda_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static int open_case(void **state)
{
    struct pair *pair = calloc(1, sizeof(*pair));

    if (pair == NULL)
        return -1;
    pair->fixture = &shm;
    open_shm(pair);
    *state = pair;
    return 0;
}

static int close_case(void **state)
{
    close_shm(*state);
    free(*state);
    return 0;
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_case, close_case)

int main(void)
{
    const struct CMUnitTest own[] = {
        CASE(two_processes_talk_and_sleep),
        CASE(a_slot_that_makes_no_sense_fails_the_endpoint),
        CASE(a_count_out_of_range_fails_the_reader),
        CASE(an_ack_of_what_was_not_sent_fails_the_writer),
        CASE(more_read_than_written_fails_the_writer),
        CASE(random_bytes_crash_nobody),
    };
    int failed = conformance_run(&shm);

    rueda_log_set_sink(drop_line, NULL);
    return failed + cmocka_run_group_tests_name("shm memory", own, NULL, NULL);
}
