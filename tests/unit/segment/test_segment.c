/* SPDX-License-Identifier: Apache-2.0 */
/* Views of one segment, most of them of ranks that are threads. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/log.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/memory.h"
#include "os/process.h"
#include "os/thread.h"
#include "os/unix_socket.h"
#include "segment/segment.h"
#include "unit/unit.h"

#define MS     ((int64_t)1000000)
#define SECOND (1000 * MS)
#define RANKS  3

struct views {
    struct rueda_segment *of[RANKS];
    struct rueda_text error;
};

static int views_open(void **state)
{
    static struct views views;

    memset(&views, 0, sizeof(views));
    *state = &views;
    return rueda_segment_threads(RANKS, views.of, &views.error) == RUEDA_OK
               ? 0
               : -1;
}

static int views_close(void **state)
{
    struct views *views = *state;

    for (int i = 0; i < RANKS; i++)
        rueda_segment_close(views->of[i]);
    return 0;
}

/* ---- News ------------------------------------------------------------ */

/* How long a wait of a view takes, in nanoseconds. */
static int64_t wait_of(struct rueda_segment *segment, int64_t timeout_ns)
{
    int64_t before = rueda_clock_ns();

    rueda_segment_wait(segment, timeout_ns);
    return rueda_clock_ns() - before;
}

static void who_is_armed_is_woken_by_a_notice(void **state)
{
    struct views *views = *state;

    rueda_segment_arm(views->of[0]);
    rueda_segment_notify(views->of[1], 0);
    assert_true(wait_of(views->of[0], 20 * SECOND) < 10 * SECOND);

    rueda_segment_arm(views->of[0]);
    rueda_segment_arm(views->of[2]);
    rueda_segment_notify_all(views->of[1]);
    assert_true(wait_of(views->of[0], 20 * SECOND) < 10 * SECOND);
    assert_true(wait_of(views->of[2], 20 * SECOND) < 10 * SECOND);
}

static void who_is_not_armed_is_not_rung(void **state)
{
    struct views *views = *state;

    rueda_segment_notify_all(views->of[1]);
    rueda_segment_arm(views->of[0]);
    rueda_segment_disarm(views->of[0]);
    rueda_segment_notify(views->of[1], 0);

    assert_true(wait_of(views->of[0], 2 * MS) >= 2 * MS);
}

static void a_notice_to_all_leaves_out_who_gives_it(void **state)
{
    struct views *views = *state;

    rueda_segment_arm(views->of[1]);
    rueda_segment_notify_all(views->of[1]);
    assert_true(wait_of(views->of[1], 2 * MS) >= 2 * MS);
}

static void a_notice_to_some_wakes_these_alone(void **state)
{
    static const int some[] = {1, 2};
    struct views *views = *state;

    for (int i = 0; i < 3; i++)
        rueda_segment_arm(views->of[i]);
    rueda_segment_notify_some(views->of[1], some, 2);
    assert_true(wait_of(views->of[2], 20 * SECOND) < 10 * SECOND);
    assert_true(wait_of(views->of[0], 2 * MS) >= 2 * MS);
    assert_true(wait_of(views->of[1], 2 * MS) >= 2 * MS);
}

static void another_thread_of_a_rank_can_wake_it(void **state)
{
    struct views *views = *state;

    rueda_segment_arm(views->of[2]);
    rueda_segment_notify(views->of[2], 2);
    assert_true(wait_of(views->of[2], 20 * SECOND) < 10 * SECOND);
    assert_true(wait_of(views->of[2], 2 * MS) >= 2 * MS);
}

/* One of two players: waits for its turn, asleep whenever it has to wait, and
 * gives the turn to the other. */
struct player {
    struct rueda_segment *segment;
    _Atomic uint64_t *turn;
    int me;
    uint64_t rounds;
    rueda_status status;
};

static bool is_my_turn(const struct player *player, uint64_t round)
{
    return atomic_load_explicit(player->turn, memory_order_acquire) ==
           2 * round + (uint64_t)player->me;
}

static void *play(void *arg)
{
    struct player *player = arg;

    for (uint64_t round = 0; round < player->rounds; round++) {
        while (!is_my_turn(player, round)) {
            rueda_segment_arm(player->segment);
            if (is_my_turn(player, round)) {
                rueda_segment_disarm(player->segment);
                continue;
            }
            if (wait_of(player->segment, 10 * SECOND) >= 10 * SECOND) {
                player->status = RUEDA_ERR_TIMEOUT;
                return NULL;
            }
        }
        atomic_fetch_add_explicit(player->turn, 1, memory_order_release);
        rueda_segment_notify(player->segment, 1 - player->me);
    }
    return NULL;
}

static void no_wake_up_is_lost_between_two_threads(void **state)
{
    struct views *views = *state;
    struct player players[2];
    _Atomic uint64_t turn = 0;
    pthread_t threads[2];

    for (int i = 0; i < 2; i++) {
        players[i] = (struct player){
            .segment = views->of[i], .turn = &turn, .me = i, .rounds = 20000};
        assert_int_equal(rueda_thread_start(&threads[i], play, &players[i]),
                         RUEDA_OK);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);

    assert_int_equal(players[0].status, RUEDA_OK);
    assert_int_equal(players[1].status, RUEDA_OK);
    assert_int_equal(turn, 40000);
}

/* ---- Ranks that are gone ---------------------------------------------- */

static void who_shuts_down_is_named(void **state)
{
    struct views *views = *state;
    struct rueda_text words = {{0}};
    char host[RUEDA_SEGMENT_HOST_BYTES];
    char wanted[256];

    rueda_process_host(host, sizeof(host));
    snprintf(wanted, sizeof(wanted), "rank 1 (pid %d on host %s) shut down",
             (int)getpid(), host);
    assert_int_equal(rueda_segment_first_gone(views->of[0], &words), -1);
    assert_true(rueda_text_is_empty(&words));
    rueda_segment_arm(views->of[0]);

    rueda_segment_close(views->of[1]);
    views->of[1] = NULL;

    assert_true(wait_of(views->of[0], 20 * SECOND) < 10 * SECOND);
    assert_true(rueda_segment_is_gone(views->of[0], 1));
    assert_false(rueda_segment_is_gone(views->of[0], 2));
    assert_int_equal(rueda_segment_first_gone(views->of[0], &words), 1);
    assert_string_equal(words.chars, wanted);
}

static void who_was_gone_first_is_named(void **state)
{
    struct views *views = *state;
    struct rueda_text failed = {{0}};
    struct rueda_text still = {{0}};

    assert_false(rueda_segment_has_gone(views->of[0], true));
    rueda_segment_arm(views->of[0]);
    rueda_segment_fail(views->of[2], "no more paper");
    assert_true(wait_of(views->of[0], 20 * SECOND) < 10 * SECOND);
    assert_true(rueda_segment_has_gone(views->of[0], false));
    assert_int_equal(rueda_segment_first_gone(views->of[0], &failed), 2);
    assert_non_null(strstr(failed.chars, ") failed: no more paper"));

    rueda_segment_close(views->of[1]);
    views->of[1] = NULL;
    assert_int_equal(rueda_segment_first_gone(views->of[0], &still), 2);
}

static void who_died_is_named_before_all_others(void **state)
{
    struct views *views = *state;
    struct rueda_text words = {{0}};

    rueda_segment_fail(views->of[1], "no more ink");
    views->of[0]->dead[2] = true; /* as its pidfd would tell */
    assert_int_equal(rueda_segment_first_gone(views->of[0], &words), 2);
    assert_non_null(strstr(words.chars, ") died"));
}

static void who_left_in_good_order_counts_only_if_asked_for(void **state)
{
    struct views *views = *state;

    rueda_segment_close(views->of[1]);
    views->of[1] = NULL;
    assert_true(rueda_segment_has_gone(views->of[0], true));
    assert_false(rueda_segment_has_gone(views->of[0], false));
}

static void a_view_does_not_miss_itself(void **state)
{
    struct views *views = *state;
    struct rueda_text words = {{0}};

    views->of[0]->dead[0] = true;
    assert_int_equal(rueda_segment_first_gone(views->of[0], &words), -1);
}

/* ---- Memory ---------------------------------------------------------- */

static void memory_of_one_view_is_seen_by_another(void **state)
{
    struct views *views = *state;
    uint64_t offset;
    char *there;
    char *mine;

    assert_int_equal(
        rueda_segment_alloc(views->of[0], 10000, (void **)&mine, &views->error),
        RUEDA_OK);
    assert_int_equal((uintptr_t)mine % RUEDA_PAGE_BYTES, 0);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(mine[i], 0);
    memcpy(mine + 9000, "news", 5);
    offset = rueda_segment_offset(views->of[0], mine);
    there = rueda_segment_at(views->of[1], offset);
    assert_string_equal(there + 9000, "news");
    rueda_segment_free(views->of[0], mine);
}

static void ranges_of_members_do_not_meet(void **state)
{
    struct views *views = *state;
    uint64_t range =
        views->of[0]->bytes / RANKS / RUEDA_PAGE_BYTES * RUEDA_PAGE_BYTES;
    uint64_t offsets[RANKS];

    range -= 16 * RUEDA_PAGE_BYTES; /* head and members */
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(rueda_segment_reserve(views->of[i], range, &offsets[i],
                                               &views->error),
                         RUEDA_OK);
    for (int i = 1; i < RANKS; i++)
        assert_true(offsets[i] >= offsets[i - 1] + range);
    assert_true(offsets[RANKS - 1] + range <= views->of[0]->bytes);
    assert_true(offsets[0] >= rueda_segment_offset(
                                  views->of[0], views->of[0]->members + RANKS));
}

static void memory_that_was_freed_is_zero_again(void **state)
{
    struct views *views = *state;
    char *first;
    char *again;

    assert_int_equal(
        rueda_segment_alloc(views->of[1], 8192, (void **)&first, &views->error),
        RUEDA_OK);
    memset(first, 9, 8192);
    rueda_segment_free(views->of[1], first);
    assert_int_equal(
        rueda_segment_alloc(views->of[1], 8192, (void **)&again, &views->error),
        RUEDA_OK);
    assert_ptr_equal(again, first);
    for (int i = 0; i < 8192; i++)
        assert_int_equal(again[i], 0);
}

static void more_than_the_machine_has_is_refused_in_words(void **state)
{
    struct views *views = *state;
    void *out = state;

    assert_int_equal(
        rueda_segment_alloc(views->of[1], (size_t)1 << 50, &out, &views->error),
        RUEDA_ERR_LIMIT);
    assert_ptr_equal(out, state);
    assert_non_null(strstr(views->error.chars,
                           "rank 1 asks for 1073741824 MiB of shared memory"));
    assert_non_null(strstr(views->error.chars, "are left in this machine"));
}

static void more_than_the_range_has_is_refused_in_words(void **state)
{
    struct views *views = *state;
    uint64_t offset = 7;

    assert_int_equal(rueda_segment_reserve(views->of[2], views->of[2]->bytes,
                                           &offset, &views->error),
                     RUEDA_ERR_LIMIT);
    assert_int_equal(offset, 7);
    assert_non_null(strstr(views->error.chars, "rank 2 asks for"));
    assert_non_null(strstr(views->error.chars, "part of the segment has left"));
}

static void nothing_at_all_still_has_an_address(void **state)
{
    struct views *views = *state;
    uint64_t a;
    uint64_t b;

    assert_int_equal(rueda_segment_reserve(views->of[0], 0, &a, &views->error),
                     RUEDA_OK);
    assert_int_equal(rueda_segment_reserve(views->of[0], 0, &b, &views->error),
                     RUEDA_OK);
    assert_int_not_equal(a, b);
}

static void count_line(void *arg, rueda_log_level level, const char *line)
{
    if (level == RUEDA_LOG_WARN && strstr(line, "was not allocated here"))
        ++*(int *)arg;
}

static void what_was_not_allocated_is_not_freed(void **state)
{
    struct views *views = *state;
    int warnings = 0;
    char *mine;

    assert_int_equal(
        rueda_segment_alloc(views->of[0], 8192, (void **)&mine, &views->error),
        RUEDA_OK);
    memcpy(mine, "kept", sizeof("kept"));
    rueda_log_set_sink(count_line, &warnings);
    rueda_segment_free(views->of[0], NULL);
    rueda_segment_free(views->of[0], mine + 4096);
    rueda_segment_free(views->of[0], &warnings);
    rueda_segment_free(views->of[1], mine);
    rueda_log_set_sink(NULL, NULL);

    assert_int_equal(warnings, 3);
    assert_string_equal(mine, "kept");
}

static void a_segment_holds_what_lies_in_it_whole(void **state)
{
    struct views *views = *state;
    const struct rueda_segment *segment = views->of[0];
    char *end = segment->base + segment->bytes;

    assert_true(rueda_segment_holds(segment, segment->base, segment->bytes));
    assert_true(rueda_segment_holds(segment, end - 8, 8));
    assert_true(rueda_segment_holds(segment, end, 0));
    assert_false(rueda_segment_holds(segment, end - 8, 9));
    assert_false(rueda_segment_holds(segment, segment->base - 1, 2));
    assert_false(rueda_segment_holds(segment, end, SIZE_MAX));
    assert_false(rueda_segment_holds(segment, &views, 1));
}

static void the_cpus_of_all_members_are_counted_once(void **state)
{
    struct views *views = *state;
    struct rueda_cpus mine;

    rueda_machine_cpus(&mine);
    assert_int_equal(rueda_segment_cpus(views->of[0]), rueda_cpus_count(&mine));
    for (int i = 0; i < RANKS; i++)
        views->of[0]->members[i].cpus = (struct rueda_cpus){{3u << i}};
    assert_int_equal(rueda_segment_cpus(views->of[1]), 4);
}

/* ---- Opening and closing --------------------------------------------- */

static void only_1_to_1024_ranks_share_memory(void **state)
{
    static const int bad[] = {-1, 0, RUEDA_SEGMENT_MAX + 1};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct rueda_segment *none[1] = {NULL};
        struct rueda_text error = {{0}};

        assert_int_equal(rueda_segment_threads(bad[i], none, &error),
                         RUEDA_ERR_LIMIT);
        assert_null(none[0]);
        assert_non_null(strstr(error.chars, "1 to 1024 can share memory"));
    }
    rueda_segment_close(NULL);
}

static void closing_leaves_no_descriptors(void **state)
{
    struct views views = {.error = {{0}}};
    int before = count_descriptors();

    (void)state;
    assert_int_equal(rueda_segment_threads(RANKS, views.of, &views.error),
                     RUEDA_OK);
    assert_true(count_descriptors() > before);
    for (int i = 0; i < RANKS; i++)
        rueda_segment_close(views.of[i]);
    assert_int_equal(count_descriptors(), before);
}

/* A doorbell must not be closed, and its number be another file's, while some
 * other rank may still ring it. */
static void a_doorbell_lives_as_long_as_anybody_who_may_ring_it(void **state)
{
    struct views *views = *state;
    int bell = views->of[1]->doorbells[0];

    rueda_segment_close(views->of[0]);
    views->of[0] = NULL;
    assert_true(fcntl(bell, F_GETFD) >= 0);
    rueda_segment_close(views->of[1]);
    views->of[1] = NULL;
    assert_true(fcntl(bell, F_GETFD) >= 0);
    rueda_segment_close(views->of[2]);
    views->of[2] = NULL;
    assert_int_equal(fcntl(bell, F_GETFD), -1);
}

static void without_descriptors_nothing_is_left_behind(void **state)
{
    int before = count_descriptors();
    int next = dup(STDIN_FILENO); /* the number of the next one */
    struct rlimit usual;

    (void)state;
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    for (int more = 0; more < 2 * RANKS + 1; more++) {
        struct rlimit few = {.rlim_cur = (rlim_t)(next + more),
                             .rlim_max = usual.rlim_max};
        struct views views = {.error = {{0}}};
        rueda_status status;

        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        status = rueda_segment_threads(RANKS, views.of, &views.error);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
        assert_int_equal(status, RUEDA_ERR_IO);
        assert_non_null(strstr(views.error.chars, strerror(EMFILE)));
        assert_int_equal(count_descriptors(), before);
    }
}

static void without_address_space_the_words_name_the_limit(void **state)
{
    struct rlimit little = {.rlim_cur = (rlim_t)64 << 20};
    struct views views = {.error = {{0}}};
    int before = count_descriptors();
    struct rlimit usual;
    rueda_status status;

    (void)state;
    skip_where_address_space_is_needed();
    assert_int_equal(getrlimit(RLIMIT_AS, &usual), 0);
    little.rlim_max = usual.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
    status = rueda_segment_threads(RANKS, views.of, &views.error);
    assert_int_equal(setrlimit(RLIMIT_AS, &usual), 0);

    assert_int_equal(status, RUEDA_ERR_LIMIT);
    assert_non_null(strstr(views.error.chars, "is `ulimit -v` set?"));
    assert_int_equal(count_descriptors(), before);
}

/* The descriptors of a job of two, for one of them. */
static void own_two(int doorbells[2], int pidfds[2])
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rueda_doorbell_open(&doorbells[i]), RUEDA_OK);
        assert_int_equal(rueda_death_open_self(&pidfds[i]), RUEDA_OK);
    }
}

static void who_looks_sees_what_rank_0_made(void **state)
{
    struct rueda_text error = {{0}};
    int before = count_descriptors();
    struct rueda_segment *made;
    struct rueda_segment *seen;
    int doorbells[2];
    int pidfds[2];

    (void)state;
    assert_int_equal(rueda_segment_make(2, -1, &made, &error), RUEDA_OK);
    made->common->slab_offset = 12345;
    assert_int_equal(
        rueda_segment_attach(1, 2, dup(rueda_segment_fd(made)), &seen, &error),
        RUEDA_OK);
    assert_ptr_not_equal(seen->base, made->base);
    assert_int_equal(seen->common->slab_offset, 12345);
    assert_int_equal(made->members[1].presence, RUEDA_ABSENT);

    own_two(doorbells, pidfds);
    assert_int_equal(rueda_segment_enter(seen, doorbells, pidfds, &error),
                     RUEDA_OK);
    assert_int_equal(made->members[1].presence, RUEDA_PRESENT);
    assert_int_equal(made->members[1].pid, getpid());
    rueda_segment_watch(seen);
    assert_false(rueda_segment_is_gone(seen, 0));
    rueda_segment_close(seen);
    assert_int_equal(made->members[1].presence, RUEDA_LEFT);
    rueda_segment_close(made);
    assert_int_equal(count_descriptors(), before);
}

static void what_is_not_the_segment_is_refused(void **state)
{
    struct rueda_text mismatch = {{0}};
    struct rueda_text version = {{0}};
    struct rueda_text error = {{0}};
    int before = count_descriptors();
    struct rueda_segment *made;
    struct rueda_segment *seen = NULL;
    int fd;

    (void)state;
    assert_int_equal(rueda_segment_make(2, -1, &made, &error), RUEDA_OK);
    assert_int_equal(rueda_segment_attach(1, 3, dup(rueda_segment_fd(made)),
                                          &seen, &mismatch),
                     RUEDA_ERR_MISMATCH);
    assert_non_null(strstr(mismatch.chars, "of a job of 3 ranks"));
    /* Behind the magic is what its structs look like. */
    made->base[8] ^= 1;
    assert_int_equal(rueda_segment_attach(1, 2, dup(rueda_segment_fd(made)),
                                          &seen, &version),
                     RUEDA_ERR_VERSION);
    assert_non_null(strstr(version.chars, "one release"));
    version.chars[0] = '\0';
    made->base[8] ^= 1;
    assert_int_equal(rueda_memfd_create("other", made->bytes, &fd), RUEDA_OK);
    assert_int_equal(rueda_segment_attach(1, 2, fd, &seen, &version),
                     RUEDA_ERR_VERSION);
    assert_non_null(strstr(version.chars, "of another version"));
    assert_int_equal(rueda_segment_attach(1, 2, memfd_create("x", MFD_CLOEXEC),
                                          &seen, &mismatch),
                     RUEDA_ERR_MISMATCH);
    assert_null(seen);
    rueda_segment_close(made);
    assert_int_equal(count_descriptors(), before);
}

static void a_memfd_that_rank_0_inherited_is_taken_and_emptied(void **state)
{
    struct rueda_text error = {{0}};
    int before = count_descriptors();
    struct rueda_segment *made;
    char *page;
    int fd;

    (void)state;
    assert_int_equal(
        rueda_memfd_create("inherited", rueda_segment_bytes(2), &fd), RUEDA_OK);
    assert_int_equal(rueda_segment_make(2, fd, &made, &error), RUEDA_OK);
    page = made->base + made->bytes - 1;
    *page = 'x';
    rueda_segment_close(made);

    assert_int_equal(rueda_segment_make(2, fd, &made, &error), RUEDA_OK);
    page = made->base + made->bytes - 1;
    assert_int_equal(*page, 0);
    rueda_segment_close(made);
    assert_int_equal(rueda_segment_make(3, fd, &made, &error),
                     RUEDA_ERR_MISMATCH);
    assert_non_null(strstr(error.chars, "RUEDA_SEGMENT_FD"));
    close(fd);
    assert_int_equal(count_descriptors(), before);
}

/* ---- Processes ------------------------------------------------------- */

/* In the child: pass a pidfd, then wait for the parent to close its end. */
static int live_until_told(int socket)
{
    char byte;
    int fd;

    if (rueda_death_open_self(&fd) != RUEDA_OK ||
        rueda_unix_send_fds(socket, &fd, 1) != RUEDA_OK)
        return 1;
    return read(socket, &byte, 1) == 1 ? 0 : 1;
}

static void a_death_is_learned_by_its_pidfd(void **state)
{
    struct rueda_text words = {{0}};
    struct rueda_segment *made;
    char wanted[64];
    int doorbells[2];
    int pidfds[2];
    int ends[2];
    int how;
    pid_t child;

    (void)state;
    skip_where_forks_are_not_followed();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    child = fork();
    if (child == 0)
        _exit(live_until_told(ends[1]));
    own_two(doorbells, pidfds);
    close(pidfds[1]);
    assert_int_equal(rueda_unix_recv_fds(ends[0], &pidfds[1], 1), RUEDA_OK);
    assert_int_equal(rueda_segment_make(2, -1, &made, &words), RUEDA_OK);
    assert_int_equal(rueda_segment_enter(made, doorbells, pidfds, &words),
                     RUEDA_OK);
    made->members[1].pid = child;
    strcpy(made->members[1].host, "far");
    rueda_segment_watch(made);
    assert_int_equal(rueda_segment_first_gone(made, &words), -1);

    assert_int_equal(write(ends[0], "x", 1), 1);

    assert_true(wait_of(made, 20 * SECOND) < 10 * SECOND);
    assert_int_equal(rueda_segment_first_gone(made, &words), 1);
    snprintf(wanted, sizeof(wanted), "rank 1 (pid %d on host far) died",
             (int)child);
    assert_string_equal(words.chars, wanted);
    assert_int_equal(waitpid(child, &how, 0), child);
    rueda_segment_close(made);
    close(ends[0]);
    close(ends[1]);
}

static int forget_all(void *arg)
{
    struct views *views = arg;

    for (int i = 0; i < RANKS; i++)
        rueda_segment_forked(views->of[i]);
    return count_descriptors();
}

static void a_child_holds_no_descriptors_of_its_parents_views(void **state)
{
    struct views views = {.error = {{0}}};
    int before = count_descriptors();

    (void)state;
    skip_where_forks_are_not_followed();
    assert_int_equal(rueda_segment_threads(RANKS, views.of, &views.error),
                     RUEDA_OK);
    assert_int_equal(in_child(forget_all, &views), before);
    rueda_segment_arm(views.of[0]);
    rueda_segment_notify(views.of[1], 0);
    assert_true(wait_of(views.of[0], 20 * SECOND) < 10 * SECOND);
    for (int i = 0; i < RANKS; i++)
        rueda_segment_close(views.of[i]);
}

#define VIEWS(test)                                                            \
    cmocka_unit_test_setup_teardown(test, views_open, views_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        VIEWS(who_is_armed_is_woken_by_a_notice),
        VIEWS(who_is_not_armed_is_not_rung),
        VIEWS(a_notice_to_all_leaves_out_who_gives_it),
        VIEWS(a_notice_to_some_wakes_these_alone),
        VIEWS(another_thread_of_a_rank_can_wake_it),
        VIEWS(no_wake_up_is_lost_between_two_threads),
        VIEWS(who_shuts_down_is_named),
        VIEWS(who_was_gone_first_is_named),
        VIEWS(who_died_is_named_before_all_others),
        VIEWS(who_left_in_good_order_counts_only_if_asked_for),
        VIEWS(a_view_does_not_miss_itself),
        VIEWS(memory_of_one_view_is_seen_by_another),
        VIEWS(ranges_of_members_do_not_meet),
        VIEWS(memory_that_was_freed_is_zero_again),
        VIEWS(more_than_the_machine_has_is_refused_in_words),
        VIEWS(more_than_the_range_has_is_refused_in_words),
        VIEWS(nothing_at_all_still_has_an_address),
        VIEWS(what_was_not_allocated_is_not_freed),
        VIEWS(a_segment_holds_what_lies_in_it_whole),
        VIEWS(the_cpus_of_all_members_are_counted_once),
        cmocka_unit_test(only_1_to_1024_ranks_share_memory),
        cmocka_unit_test(closing_leaves_no_descriptors),
        VIEWS(a_doorbell_lives_as_long_as_anybody_who_may_ring_it),
        cmocka_unit_test(without_descriptors_nothing_is_left_behind),
        cmocka_unit_test(without_address_space_the_words_name_the_limit),
        cmocka_unit_test(who_looks_sees_what_rank_0_made),
        cmocka_unit_test(what_is_not_the_segment_is_refused),
        cmocka_unit_test(a_memfd_that_rank_0_inherited_is_taken_and_emptied),
        cmocka_unit_test(a_death_is_learned_by_its_pidfd),
        cmocka_unit_test(a_child_holds_no_descriptors_of_its_parents_views),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
