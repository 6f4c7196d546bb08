/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store under everything at once: clients that are processes, a network
 * that cuts their connections at any byte, changes and repeats pieces, a keeper
 * that is stopped now and then, and clients that are killed in the middle of a
 * request. What all of them saw has to be linearizable, each request carried
 * out once at most, and each killed client's will carried out once
 * (support/history.h).
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/log.h"
#include "job/store/client.h"
#include "job/store/keeper.h"
#include "os/clock.h"
#include "support/cutter.h"
#include "support/history.h"
#include "support/processes.h"

#define KEYS   3 /* that are written, and one more with a sum */
#define SUM    KEYS
#define RANKS  (1 + HISTORY_CLIENTS)
#define KILLED 2 /* the last of them */

/* A client adds to its part of the sum no further than fits. */
#define MOST_OPS 1000

#define CUT_MS       2000
#define MOST_STOP_MS 100
#define KILL_MS      200
#define ONE_IN       30
#define MOST_NAP_MS  4
#define PATIENCE_NS  RUEDA_S(30)

/* Killed clients leave wills that are soon carried out, the others such that
 * would be much later, and that they revoke when they leave. */
#define SOON_MS 200
#define LATE_MS 600000

typedef enum phase {
    CUTTING, /* the network cuts, the keeper is stopped now and then */
    RESTING, /* it does not: wills are left, clients are killed */
    OVER,    /* clients leave */
    DONE,    /* the keeper leaves */
} phase;

/* What all processes can see. */
struct board {
    struct rueda_key key;
    atomic_int keeper_port;
    atomic_int port; /* of the network; 0: it is not there yet */
    atomic_int phase;
    atomic_int wills;
    atomic_int counts[HISTORY_CLIENTS];
    struct history_op ops[HISTORY_CLIENTS][MOST_OPS];
};

static struct board *board;

static void hush(void *arg, rueda_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static int address_at(int port, struct rueda_address *out)
{
    struct rueda_text error = {{0}};
    char text[32];

    snprintf(text, sizeof(text), "127.0.0.1:%d", port);
    return rueda_address_find(text, out, 1, &error);
}

/* ---- The keeper ---------------------------------------------------------- */

static int keep(struct test_rank *me)
{
    struct rueda_address address;
    struct rueda_keeper_args args = {.size = RANKS,
                                     .key = &board->key,
                                     .addresses = &address,
                                     .address_count = address_at(0, &address)};
    const struct rueda_address *bound;
    struct rueda_keeper *keeper;
    struct rueda_text error = {{0}};
    int count;

    if (rueda_keeper_open(&args, &keeper, &error) != RUEDA_OK)
        return rank_says(me, "no keeper: %s", error.chars);
    bound = rueda_keeper_addresses(keeper, &count);
    atomic_store(&board->keeper_port, rueda_address_port(bound));
    while (atomic_load(&board->phase) < DONE)
        rank_sleep_ms(2);
    rueda_keeper_close(keeper);
    return 0;
}

/* ---- Clients ---------------------------------------------------------- */

struct player {
    int client; /* from 0 */
    struct rueda_address address;
    struct rueda_client *connection;
    uint64_t seed;
    uint64_t seen[KEYS]; /* the revision of each key, as last heard */
    struct rueda_text error;
};

static uint64_t draw(struct player *player, uint64_t below)
{
    player->seed = player->seed * 6364136223846793005u + 1442695040888963407u;
    return (player->seed >> 33) % below;
}

static rueda_status join(struct player *player)
{
    const struct rueda_client_args args = {
        .rank = player->client + 1,
        .size = RANKS,
        .key = &board->key,
        .addresses = &player->address,
        .address_count =
            address_at(atomic_load(&board->port), &player->address),
    };

    return rueda_client_open(&args, rueda_clock_ns() + PATIENCE_NS,
                             &player->connection, &player->error);
}

static void draw_op(struct player *player, int number, struct history_op *out)
{
    static const history_kind kinds[] = {
        HISTORY_GET, HISTORY_GET, HISTORY_SET,   HISTORY_CAS,
        HISTORY_CAS, HISTORY_ADD, HISTORY_DELETE};

    *out = (struct history_op){
        .kind = kinds[draw(player, sizeof(kinds) / sizeof(kinds[0]))],
        .client = player->client,
        .key = (int)draw(player, KEYS),
        .value = (uint64_t)(player->client + 1) << 32 | (uint64_t)number,
    };
    if (out->kind == HISTORY_ADD)
        out->key = SUM;
    if (out->kind == HISTORY_GET && draw(player, KEYS + 1) == 0)
        out->key = SUM;
    if (out->kind == HISTORY_CAS)
        out->expected = player->seen[out->key];
}

static rueda_status ask(struct player *player, const struct history_op *op,
                        struct rueda_store_reply *reply)
{
    static const rueda_store_kind kinds[] = {
        [HISTORY_GET] = RUEDA_STORE_GET, [HISTORY_SET] = RUEDA_STORE_SET,
        [HISTORY_CAS] = RUEDA_STORE_CAS, [HISTORY_DELETE] = RUEDA_STORE_DELETE,
        [HISTORY_ADD] = RUEDA_STORE_ADD,
    };
    unsigned char value[8];
    char key[16];
    struct rueda_store_request request = {
        .kind = kinds[op->kind],
        .key = key,
        .key_bytes = (size_t)snprintf(key, sizeof(key), "key/%d", op->key),
        .revision = op->expected,
        .count = (int64_t)HISTORY_PART(op->client),
    };

    rueda_put_u64(value, op->value);
    if (op->kind == HISTORY_SET || op->kind == HISTORY_CAS) {
        request.value = value;
        request.value_bytes = sizeof(value);
    }
    return rueda_client_ask(player->connection, &request,
                            rueda_clock_ns() + PATIENCE_NS, reply,
                            &player->error);
}

/* One request. When it was answered is written last, as the process may be
 * killed at any moment. Without an answer it may have been carried out. */
static rueda_status play(struct player *player, int number)
{
    struct history_op *op = &board->ops[player->client][number];
    struct rueda_store_reply reply = {.revision = 0};
    rueda_status status;

    draw_op(player, number, op);
    op->begin_ns = rueda_clock_ns();
    atomic_store(&board->counts[player->client], number + 1);
    status = ask(player, op, &reply);
    if (status == RUEDA_ERR_PEER_LOST || status == RUEDA_ERR_TIMEOUT)
        return RUEDA_OK;
    if (status != RUEDA_OK && status != RUEDA_ERR_MISMATCH)
        return status;
    op->status = status;
    op->revision = reply.revision;
    if (op->kind == HISTORY_ADD)
        op->found = (uint64_t)reply.count;
    else if (reply.value_bytes == sizeof(op->found))
        op->found = rueda_get_u64(reply.value);
    if (op->key != SUM)
        player->seen[op->key] = op->kind == HISTORY_DELETE ? 0 : reply.revision;
    atomic_thread_fence(memory_order_release);
    op->end_ns = rueda_clock_ns();
    return RUEDA_OK;
}

static bool is_doomed(int client)
{
    return client >= HISTORY_CLIENTS - KILLED;
}

static size_t will_of(int client, char *out, size_t bytes)
{
    return (size_t)snprintf(out, bytes, "will/%d", client);
}

static rueda_status leave_will(struct player *player)
{
    char key[16];
    struct rueda_store_request will = {
        .kind = RUEDA_STORE_WILL,
        .key = key,
        .key_bytes = will_of(player->client, key, sizeof(key)),
        .value = key,
        .value_bytes = strlen(key),
        .time_ms = is_doomed(player->client) ? SOON_MS : LATE_MS,
    };
    struct rueda_store_reply reply;
    rueda_status status = rueda_client_ask(player->connection, &will,
                                           rueda_clock_ns() + PATIENCE_NS,
                                           &reply, &player->error);

    if (status == RUEDA_OK)
        atomic_fetch_add(&board->wills, 1);
    return status;
}

static int be_client(struct test_rank *me)
{
    struct player player = {.client = me->rank - 1,
                            .seed = (uint64_t)me->rank * 1000003u};
    rueda_status status = join(&player);
    bool has_will = false;
    int number = 0;

    while (status == RUEDA_OK && atomic_load(&board->phase) < OVER) {
        if (!has_will && atomic_load(&board->phase) == RESTING) {
            status = leave_will(&player);
            has_will = true;
        }
        if (status == RUEDA_OK && number < MOST_OPS)
            status = play(&player, number++);
        rank_sleep_ms((int)draw(&player, MOST_NAP_MS));
    }
    if (status != RUEDA_OK)
        return rank_says(me, "request %d: %s (%s)", number,
                         rueda_status_str(status), player.error.chars);
    rueda_client_close(player.connection);
    return 0;
}

static int live(struct test_rank *me)
{
    rueda_log_set_sink(hush, NULL);
    if (me->rank == 0)
        return keep(me);
    while (atomic_load(&board->port) == 0)
        rank_sleep_ms(1);
    return be_client(me);
}

/* ---- The course of a run ---------------------------------------------- */

static void await(atomic_int *number, int least)
{
    const int64_t begin_ms = rank_now_ms();

    while (atomic_load(number) < least &&
           rank_now_ms() - begin_ms < RANK_DEADLINE_MS)
        rank_sleep_ms(1);
    assert_true(atomic_load(number) >= least);
}

static void disturb(struct processes *processes, struct cutter *cutter)
{
    const int64_t begin_ms = rank_now_ms();

    atomic_store(&cutter->one_in, ONE_IN);
    while (rank_now_ms() - begin_ms < CUT_MS) {
        rank_sleep_ms(MOST_STOP_MS);
        kill(processes->pids[0], SIGSTOP);
        rank_sleep_ms((int)(rank_now_ms() % MOST_STOP_MS));
        kill(processes->pids[0], SIGCONT);
    }
    atomic_store(&cutter->one_in, 0);
}

static void kill_some(struct processes *processes)
{
    atomic_store(&board->phase, RESTING);
    await(&board->wills, HISTORY_CLIENTS);
    for (int i = 0; i < HISTORY_CLIENTS; i++)
        if (is_doomed(i)) {
            rank_sleep_ms(KILL_MS);
            kill(processes->pids[i + 1], SIGKILL);
            processes->expected[i + 1] = PROCESS_SIGNAL - SIGKILL;
        }
    rank_sleep_ms(KILL_MS);
    atomic_store(&board->phase, OVER);
    for (int i = 1; i < RANKS; i++)
        assert_int_not_equal(processes_wait(processes, i, RANK_DEADLINE_MS),
                             PROCESS_RUNS);
}

/* As one that has seen nothing so far, when all others are gone. */
static struct rueda_client *look_in(struct rueda_address *address,
                                    struct rueda_text *error)
{
    const struct rueda_client_args args = {
        .rank = 0,
        .size = RANKS,
        .key = &board->key,
        .addresses = address,
        .address_count = address_at(atomic_load(&board->keeper_port), address),
    };
    struct rueda_client *client = NULL;

    assert_int_equal(rueda_client_open(&args, rueda_clock_ns() + PATIENCE_NS,
                                       &client, error),
                     RUEDA_OK);
    return client;
}

static void check_wills(struct rueda_client *client)
{
    for (int i = 0; i < HISTORY_CLIENTS; i++) {
        char key[16];
        struct rueda_store_request request = {
            .kind = is_doomed(i) ? RUEDA_STORE_WAIT : RUEDA_STORE_GET,
            .key = key,
            .key_bytes = will_of(i, key, sizeof(key)),
        };
        struct rueda_text error = {{0}};
        struct rueda_store_reply reply;

        assert_int_equal(rueda_client_ask(client, &request,
                                          rueda_clock_ns() + PATIENCE_NS,
                                          &reply, &error),
                         RUEDA_OK);
        if (!is_doomed(i)) {
            assert_int_equal(reply.revision, 0);
            continue;
        }
        assert_int_equal(reply.value_bytes, strlen(key));
        assert_memory_equal(reply.value, key, strlen(key));
    }
}

/* The revision of one more change. */
static uint64_t next_revision(struct rueda_client *client)
{
    struct rueda_store_request request = {
        .kind = RUEDA_STORE_SET, .key = "end", .key_bytes = 3};
    struct rueda_text error = {{0}};
    struct rueda_store_reply reply;

    assert_int_equal(rueda_client_ask(client, &request,
                                      rueda_clock_ns() + PATIENCE_NS, &reply,
                                      &error),
                     RUEDA_OK);
    return reply.revision;
}

static void check_history(uint64_t next, struct cutter *cutter)
{
    static struct history_op all[HISTORY_CLIENTS * MOST_OPS];
    struct rueda_text why = {{0}};
    size_t answers = 0;
    size_t count = 0;

    for (int i = 0; i < HISTORY_CLIENTS; i++) {
        const size_t mine = (size_t)atomic_load(&board->counts[i]);

        memcpy(all + count, board->ops[i], mine * sizeof(all[0]));
        count += mine;
    }
    for (size_t i = 0; i < count; i++)
        answers += all[i].end_ns != 0;
    if (!history_check(all, count, next, KILLED, &why))
        fail_msg("%s", why.chars);
    /* It was a trial. */
    print_message("%zu requests, %zu of them answered, %d cuts, %d changes\n",
                  count, answers, atomic_load(&cutter->cuts),
                  atomic_load(&cutter->changes));
    assert_true(count > 50);
    assert_true(answers > count / 2);
    assert_true(atomic_load(&cutter->cuts) > 2);
    assert_true(atomic_load(&cutter->changes) > 2);
}

static void what_clients_of_the_store_see_is_linearizable(void **state)
{
    struct rueda_address address;
    struct processes processes;
    struct cutter cutter;
    struct rueda_text error = {{0}};
    struct rueda_client *client;
    uint64_t next;

    (void)state;
    rank_skip_without_fork();
    rueda_log_set_sink(hush, NULL);
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(board, MAP_FAILED);
    assert_int_equal(rueda_key_create(&board->key), RUEDA_OK);
    processes_start(&processes, RANKS, processes_by_self, live, NULL);
    await(&board->keeper_port, 1);
    assert_true(cutter_open(&cutter, atomic_load(&board->keeper_port),
                            (uint64_t)rank_now_ms()));
    atomic_store(&board->port, cutter.port);

    disturb(&processes, &cutter);
    kill_some(&processes);
    client = look_in(&address, &error);
    check_wills(client);
    next = next_revision(client);
    rueda_client_close(client);
    atomic_store(&board->phase, DONE);
    cutter_close(&cutter);

    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
    check_history(next, &cutter);
    munmap(board, sizeof(*board));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_clients_of_the_store_see_is_linearizable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
