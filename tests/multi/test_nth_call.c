/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call fails once. Two ranks start, run a step, make a process set, use
 * and remove it, and leave; in one of them the n-th system call or allocation
 * fails. Whatever n is, each rank succeeds, or gets errors with words; none
 * hangs, crashes or keeps a descriptor.
 *
 * The linker directs the calls of the library to the functions below
 * (--wrap, in CMakeLists.txt); calls inside other libraries are left alone.
 *
 * There are some thousands of such calls, so `make test` takes a sample of
 * them, another one each day. RUEDA_NTH_CALLS=all runs every one (`make
 * nth-calls`), and RUEDA_NTH_CALLS=tcp:1:77 that of rank 1 over TCP. By "store"
 * they meet at a store over TCP, which rank 0 keeps, with a key.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rueda/rueda.h>

#include "auth/key.h"
#include "support/test_rank.h"

enum {
    RANKS = 2,
    AT_ONCE = 6, /* cases; most of their time they wait */
    SAMPLE = 40,
    DEADLINE_MS = 60000,
};

/* What a rank leaves for the test; in shared memory. */
struct report {
    atomic_int calls;    /* so far */
    atomic_int is_ended; /* it has come to the end of its life */
    const char *call;    /* that failed */
    const void *caller;
    rueda_status status;
    int descriptors; /* more than at first */
    char words[RANK_WORDS];
};

/* ---- The call that fails ------------------------------------------------- */

static int fail_at; /* 0: none */
static struct report *mine;

static bool fails(const char *call, const void *caller)
{
    if (mine == NULL || atomic_fetch_add(&mine->calls, 1) + 1 != fail_at)
        return false;
    mine->call = call;
    mine->caller = caller;
    return true;
}

/* A wrapper: type, name, parameters, arguments, what failure returns, errno. */
#define WRAP(type, name, params, args, failed, code)                           \
    type __real_##name params;                                                 \
    type __wrap_##name params;                                                 \
    type __wrap_##name params                                                  \
    {                                                                          \
        if (fails(#name, __builtin_return_address(0))) {                       \
            errno = (code);                                                    \
            return failed;                                                     \
        }                                                                      \
        return __real_##name args;                                             \
    }

/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
WRAP(void *, malloc, (size_t bytes), (bytes), NULL, ENOMEM)
WRAP(void *, calloc, (size_t n, size_t bytes), (n, bytes), NULL, ENOMEM)
WRAP(void *, realloc, (void *at, size_t bytes), (at, bytes), NULL, ENOMEM)
WRAP(void *, aligned_alloc, (size_t to, size_t bytes), (to, bytes), NULL,
     ENOMEM)
WRAP(char *, strdup, (const char *text), (text), NULL, ENOMEM)
WRAP(void *, mmap,
     (void *at, size_t bytes, int prot, int flags, int fd, off_t from),
     (at, bytes, prot, flags, fd, from), MAP_FAILED, ENOMEM)
WRAP(int, ftruncate, (int fd, off_t bytes), (fd, bytes), -1, ENOSPC)
WRAP(int, fallocate, (int fd, int mode, off_t from, off_t bytes),
     (fd, mode, from, bytes), -1, ENOSPC)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1,
     EMFILE)
WRAP(int, socket, (int domain, int type, int protocol),
     (domain, type, protocol), -1, EMFILE)
WRAP(int, bind, (int fd, const struct sockaddr *to, socklen_t bytes),
     (fd, to, bytes), -1, EADDRINUSE)
WRAP(int, listen, (int fd, int room), (fd, room), -1, EADDRINUSE)
WRAP(int, connect, (int fd, const struct sockaddr *to, socklen_t bytes),
     (fd, to, bytes), -1, ENOBUFS)
WRAP(int, accept4, (int fd, struct sockaddr *of, socklen_t *bytes, int flags),
     (fd, of, bytes, flags), -1, EMFILE)
WRAP(ssize_t, send, (int fd, const void *at, size_t bytes, int flags),
     (fd, at, bytes, flags), -1, ENOBUFS)
WRAP(ssize_t, recv, (int fd, void *at, size_t bytes, int flags),
     (fd, at, bytes, flags), -1, EINTR)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *what, int flags),
     (fd, what, flags), -1, ENOBUFS)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *what, int flags),
     (fd, what, flags), -1, EINTR)
WRAP(ssize_t, read, (int fd, void *at, size_t bytes), (fd, at, bytes), -1, EIO)
WRAP(ssize_t, write, (int fd, const void *at, size_t bytes), (fd, at, bytes),
     -1, EIO)
WRAP(ssize_t, pread, (int fd, void *at, size_t bytes, off_t from),
     (fd, at, bytes, from), -1, EIO)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL,
     EMFILE)
WRAP(int, eventfd, (unsigned count, int flags), (count, flags), -1, EMFILE)
WRAP(int, epoll_create1, (int flags), (flags), -1, EMFILE)
WRAP(int, epoll_ctl, (int of, int what, int fd, struct epoll_event *event),
     (of, what, fd, event), -1, ENOSPC)
WRAP(int, epoll_wait,
     (int of, struct epoll_event *events, int room, int timeout),
     (of, events, room, timeout), -1, EINTR)
WRAP(int, poll, (struct pollfd * fds, nfds_t count, int timeout),
     (fds, count, timeout), -1, EINTR)
WRAP(ssize_t, getrandom, (void *at, size_t bytes, unsigned flags),
     (at, bytes, flags), -1, ENOSYS)
WRAP(int, stat, (const char *path, struct stat *out), (path, out), -1, EACCES)
WRAP(int, fstat, (int fd, struct stat *out), (fd, out), -1, EIO)
WRAP(int, getsockopt, (int fd, int level, int name, void *at, socklen_t *bytes),
     (fd, level, name, at, bytes), -1, ENOBUFS)
WRAP(int, setsockopt,
     (int fd, int level, int name, const void *at, socklen_t bytes),
     (fd, level, name, at, bytes), -1, ENOBUFS)
WRAP(int, getsockname, (int fd, struct sockaddr *of, socklen_t *bytes),
     (fd, of, bytes), -1, ENOBUFS)

/* Those whose parameters vary: all that the library passes fit here. */
int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode)
{
    if (fails("open", __builtin_return_address(0))) {
        errno = EMFILE;
        return -1;
    }
    return __real_open(path, flags, mode);
}

int __real_fcntl(int fd, int what, long arg);
int __wrap_fcntl(int fd, int what, long arg);
int __wrap_fcntl(int fd, int what, long arg)
{
    if (fails("fcntl", __builtin_return_address(0))) {
        errno = EMFILE;
        return -1;
    }
    return __real_fcntl(fd, what, arg);
}

long __real_syscall(long number, long a, long b, long c, long d, long e,
                    long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e,
                    long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (fails("syscall", __builtin_return_address(0))) {
        errno = EMFILE;
        return -1;
    }
    return __real_syscall(number, a, b, c, d, e, f);
}

int __real_pthread_create(pthread_t *out, const pthread_attr_t *how,
                          void *(*fn)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how,
                          void *(*fn)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how,
                          void *(*fn)(void *arg), void *arg)
{
    if (fails("pthread_create", __builtin_return_address(0)))
        return EAGAIN;
    return __real_pthread_create(out, how, fn, arg);
}
/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

/* ---- A rank -------------------------------------------------------------- */

static int count_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += __real_fcntl(fd, F_GETFD, 0) >= 0;
    return count;
}

static rueda_status add_by_name(rueda_ctx *ctx, int set, const char *name,
                                float *number)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    rueda_handle handle;
    rueda_status status;

    args.kind = RUEDA_ALLREDUCE;
    args.name = name;
    args.set = set;
    args.send = number;
    args.recv = number;
    status = rueda_submit(ctx, &args, &handle);
    return status == RUEDA_OK ? rueda_wait(ctx, handle, DEADLINE_MS / 2)
                              : status;
}

/* From rank 1 to whichever rank receives. */
static rueda_status pass_message(rueda_ctx *ctx)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    rueda_handle handle;
    float number = 1;
    rueda_status status;

    args.kind = rueda_rank(ctx) == 0 ? RUEDA_RECV : RUEDA_SEND;
    args.peer = rueda_rank(ctx) == 0 ? RUEDA_ANY_PEER : 0;
    args.set = RUEDA_WHOLE_JOB;
    args.send = &number;
    args.recv = &number;
    status = rueda_submit(ctx, &args, &handle);
    return status == RUEDA_OK ? rueda_wait(ctx, handle, DEADLINE_MS / 2)
                              : status;
}

/* One that all ranks make, of one rank. */
static rueda_status make_set(rueda_ctx *ctx)
{
    static const int rank = 1;
    rueda_status status;
    int set;

    status = rueda_set_create(ctx, &rank, 1, &set);
    return status == RUEDA_OK ? rueda_set_destroy(ctx, set) : status;
}

/* A step, and all else but private sets. */
static rueda_status work(rueda_ctx *ctx)
{
    float sums[2000] = {1};
    rueda_status status;
    void *memory;

    status = rueda_allreduce(ctx, sums, sums, 2000, RUEDA_FLOAT32, RUEDA_SUM);
    if (status == RUEDA_OK)
        status = add_by_name(ctx, RUEDA_ALL_RANKS, "a", sums);
    if (status == RUEDA_OK)
        status = add_by_name(ctx, RUEDA_ALL_RANKS, "b", sums);
    if (status == RUEDA_OK)
        status = rueda_alloc(ctx, 100000, &memory);
    if (status == RUEDA_OK)
        status = pass_message(ctx);
    if (status == RUEDA_OK)
        status = make_set(ctx);
    if (status == RUEDA_OK)
        status = rueda_barrier(ctx);
    if (status == RUEDA_OK && sums[0] != 8)
        status = RUEDA_ERR_MISMATCH;
    return status;
}

static rueda_status make_set_and_work(rueda_ctx *ctx)
{
    static const int ranks[RANKS] = {1, 0};
    struct rueda_result result = RUEDA_RESULT_INIT;
    rueda_handle handle;
    rueda_status status =
        rueda_set_open_async(ctx, ranks, RANKS, RUEDA_PRIVATE_SETS, &handle);
    float one = 1;

    if (status == RUEDA_OK)
        status = rueda_wait_for(ctx, handle, DEADLINE_MS / 2, &result);
    if (status == RUEDA_OK)
        status = add_by_name(ctx, RUEDA_PRIVATE_SETS, "c", &one);
    if (status == RUEDA_OK)
        status = work(ctx);
    if (status == RUEDA_OK)
        status = rueda_set_close_async(ctx, RUEDA_PRIVATE_SETS, &handle);
    if (status == RUEDA_OK)
        status = rueda_wait(ctx, handle, DEADLINE_MS / 2);
    /* So it ends where the other rank has left before this one has heard of
     * the end of the set. */
    return status == RUEDA_ERR_CANCELLED ? RUEDA_OK : status;
}

static void live(int rank, const char *job, struct report *report, int n)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    const int before = count_descriptors();
    rueda_ctx *ctx = NULL;

    args.rank = rank;
    args.size = RANKS;
    args.job = job;
    args.timeout_ms = 2000;
    args.error = report->words;
    args.error_bytes = sizeof(report->words);
    fail_at = n;
    mine = report;
    report->status = rueda_init(&args, &ctx);
    if (report->status == RUEDA_OK) {
        report->status = make_set_and_work(ctx);
        if (report->status != RUEDA_OK)
            snprintf(report->words, sizeof(report->words), "%s",
                     rueda_last_error());
        rueda_shutdown(ctx);
    }
    mine = NULL;
    report->descriptors = count_descriptors() - before;
    atomic_store(&report->is_ended, 1);
}

/* ---- A store ------------------------------------------------------------- */

static char key_file[64];

static int make_key(void **state)
{
    struct rueda_text error = {{0}};
    struct rueda_key key;

    (void)state;
    snprintf(key_file, sizeof(key_file), "/tmp/rueda_nth_%d", (int)getpid());
    return rueda_key_create(&key) == RUEDA_OK &&
                   rueda_key_write_file(key_file, &key, &error) == RUEDA_OK
               ? 0
               : -1;
}

static int remove_key(void **state)
{
    (void)state;
    return unlink(key_file);
}

/* An address with a port that was free a moment ago. */
static void name_store(char *out, size_t bytes)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = __real_socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(__real_bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(__real_getsockname(fd, (struct sockaddr *)&at, &len), 0);
    close(fd);
    snprintf(out, bytes, "127.0.0.1:%d", ntohs(at.sin_port));
}

/* ---- A case -------------------------------------------------------------- */

struct nth_case {
    const char *transport;
    int victim;
    int n;
    bool is_quiet; /* what its ranks log is not shown */
    pid_t pids[RANKS];
    bool is_over[RANKS];
    int how[RANKS];
    int64_t began_ms;
    struct report *reports; /* [RANKS], shared */
};

/* What happened to the cases. */
struct tally {
    int faults;
    int failed; /* with words, as they should */
};

static void begin(struct nth_case *one)
{
    static int count;
    char store[32];
    char job[64];

    name_store(store, sizeof(store));
    snprintf(job, sizeof(job), "nth-%d-%d", (int)getpid(), count++);
    one->began_ms = rank_now_ms();
    one->reports =
        mmap(NULL, sizeof(struct report) * RANKS, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(one->reports, MAP_FAILED);
    for (int i = 0; i < RANKS; i++) {
        one->is_over[i] = false;
        one->pids[i] = fork();
        assert_true(one->pids[i] >= 0);
        if (one->pids[i] > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        if (strcmp(one->transport, "store") == 0) {
            setenv("RUEDA_STORE", store, 1);
            setenv("RUEDA_KEY_FILE", key_file, 1);
        } else {
            setenv("RUEDA_TRANSPORT", one->transport, 1);
        }
        setenv("RUEDA_DYNAMIC_SETS", "1", 1);
        if (one->is_quiet)
            (void)!freopen("/dev/null", "w", stderr);
        live(i, job, &one->reports[i], i == one->victim ? one->n : 0);
        _exit(0);
    }
}

static bool is_over(struct nth_case *one)
{
    bool all = true;

    for (int i = 0; i < RANKS; i++) {
        if (!one->is_over[i] &&
            waitpid(one->pids[i], &one->how[i], WNOHANG) == one->pids[i])
            one->is_over[i] = true;
        if (!one->is_over[i] && rank_now_ms() - one->began_ms > DEADLINE_MS) {
            kill(one->pids[i], SIGKILL);
            waitpid(one->pids[i], &one->how[i], 0);
            one->is_over[i] = true;
        }
        all = all && one->is_over[i];
    }
    return all;
}

/* What is wrong with how a rank ended, or NULL. */
static const char *fault_of(const struct nth_case *one, int rank)
{
    const struct report *report = &one->reports[rank];

    if (WIFSIGNALED(one->how[rank]))
        return WTERMSIG(one->how[rank]) == SIGKILL ? "hung" : "crashed";
    if (!atomic_load(&report->is_ended))
        return "ended too soon";
    if (report->descriptors != 0)
        return "kept descriptors";
    if (report->status != RUEDA_OK && report->words[0] == '\0')
        return "failed without words";
    return NULL;
}

/* Lets go of the case. */
static void judge(struct nth_case *one, struct tally *tally)
{
    const struct report *failed = &one->reports[one->victim];

    tally->failed += failed->status != RUEDA_OK;

    for (int i = 0; i < RANKS; i++) {
        const char *fault = fault_of(one, i);

        if (fault == NULL)
            continue;
        tally->faults++;
        print_message("RUEDA_NTH_CALLS=%s:%d:%d: %s() of %p failed in rank %d, "
                      "and rank %d %s (%s, \"%s\", %d descriptors)\n",
                      one->transport, one->victim, one->n,
                      failed->call != NULL ? failed->call : "no call",
                      failed->caller, one->victim, i, fault,
                      rueda_status_str(one->reports[i].status),
                      one->reports[i].words, one->reports[i].descriptors);
    }
    munmap(one->reports, sizeof(struct report) * RANKS);
}

/* How many calls the victim makes where none fails; about, since waiting
 * takes more or fewer. */
static int count_calls(const char *transport, int victim)
{
    struct nth_case one = {
        .transport = transport, .victim = victim, .is_quiet = true};
    struct tally tally = {0};
    int calls;

    begin(&one);
    while (!is_over(&one))
        rank_sleep_ms(1);
    calls = atomic_load(&one.reports[victim].calls);
    assert_int_equal(one.reports[0].status, RUEDA_OK);
    assert_int_equal(one.reports[1].status, RUEDA_OK);
    judge(&one, &tally);
    assert_int_equal(tally.faults, 0);
    return calls;
}

/* Some at a time. */
static void run_from(const char *transport, int victim, int first, int step,
                     struct tally *tally)
{
    struct nth_case running[AT_ONCE] = {{.n = 0}};
    const int last = count_calls(transport, victim);
    int busy = 0;

    for (int n = first; n <= last || busy > 0;) {
        busy = 0;
        for (int i = 0; i < AT_ONCE; i++) {
            struct nth_case *one = &running[i];

            if (one->n > 0 && is_over(one)) {
                judge(one, tally);
                one->n = 0;
            }
            if (one->n == 0 && n <= last) {
                *one = (struct nth_case){
                    .transport = transport,
                    .victim = victim,
                    .n = n,
                    .is_quiet = true,
                };
                begin(one);
                n += step;
            }
            busy += one->n > 0;
        }
        rank_sleep_ms(2);
    }
}

/* ---- Tests --------------------------------------------------------------- */

static const char *const transports[] = {"auto", "tcp", "store"};

static int run_one(const char *wanted)
{
    char transport[8] = "";
    struct nth_case one = {.transport = transport};
    struct tally tally = {0};

    if (sscanf(wanted, "%7[a-z]:%d:%d", transport, &one.victim, &one.n) != 3)
        return -1;
    begin(&one);
    while (!is_over(&one))
        rank_sleep_ms(1);
    judge(&one, &tally);
    return tally.faults;
}

/* Another place to begin each day, so that all calls have their turn. */
static int first_of_today(int step)
{
    return 1 + (int)(time(NULL) / 86400 % step);
}

static void a_call_that_fails_ends_in_words_or_success(void **state)
{
    const char *wanted = getenv("RUEDA_NTH_CALLS");
    const bool is_all = wanted != NULL && strcmp(wanted, "all") == 0;
    struct tally tally = {0};

    (void)state;
    rank_skip_without_fork();
    if (RANK_IS_SLOW)
        skip(); /* a sanitizer makes calls of its own */
    if (wanted != NULL && !is_all) {
        assert_int_equal(run_one(wanted), 0);
        return;
    }
    for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
        for (int victim = 0; victim < RANKS; victim++) {
            const int calls = count_calls(transports[i], victim);
            const int step = is_all || calls < SAMPLE ? 1 : calls / SAMPLE;

            print_message("%d calls of rank %d over %s, every %d\n", calls,
                          victim, transports[i], step);
            run_from(transports[i], victim, is_all ? 1 : first_of_today(step),
                     step, &tally);
        }
    print_message("%d of them ended in an error with words\n", tally.failed);
    assert_int_equal(tally.faults, 0);
    assert_true(tally.failed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_fails_ends_in_words_or_success),
    };

    return cmocka_run_group_tests(tests, make_key, remove_key);
}
