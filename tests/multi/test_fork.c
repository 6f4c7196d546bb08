/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that forks: the child has no context, the parent keeps its own. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/coll_check.h"
#include "support/processes.h"

/* How many descriptors are open. */
static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    if (folder == NULL)
        return -1;
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* Does any lead to something that a context holds? */
static bool has_ours(void)
{
    static const char *const ours[] = {"/memfd:rueda", "anon_inode:[eventfd]",
                                       "anon_inode:[eventpoll]",
                                       "anon_inode:[pidfd]"};
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    bool found = false;

    for (entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char target[PATH_MAX] = "";

        if (readlinkat(dirfd(folder), entry->d_name, target,
                       sizeof(target) - 1) < 0)
            continue;
        for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
            if (strncmp(target, ours[i], strlen(ours[i])) == 0)
                found = true;
    }
    closedir(folder);
    return found;
}

/* Run body in a child and return what it returned. */
static int in_child(struct test_rank *me, rank_fn body)
{
    int how = -1;
    pid_t child = fork();

    if (child == 0)
        _exit(body(me));
    if (child < 0 || waitpid(child, &how, 0) != child)
        return rank_says(me, "no child");
    if (!WIFEXITED(how))
        return rank_says(me, "the child was killed");
    return WEXITSTATUS(how);
}

static int check_sum(struct test_rank *me)
{
    const struct coll_what what = {
        .kind = RUEDA_ALLREDUCE, .dtype = RUEDA_FLOAT32, .count = 50000};

    return coll_check(me, &what);
}

/* ---- The child ------------------------------------------------------- */

static int forbidden(struct test_rank *me)
{
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;
    rueda_handle handle;
    void *memory;

    args.kind = RUEDA_BARRIER;
    if (rank_expect(me, rueda_run(me->ctx, &args), RUEDA_ERR_FORKED, "run") ||
        rank_expect(me, rueda_start(me->ctx, &args, &handle), RUEDA_ERR_FORKED,
                    "start") ||
        rank_expect(me, rueda_wait(me->ctx, 1 << 16, -1), RUEDA_ERR_FORKED,
                    "wait") ||
        rank_expect(me, rueda_poll(me->ctx, 1 << 16), RUEDA_ERR_FORKED,
                    "poll") ||
        rank_expect(me, rueda_alloc(me->ctx, 10, &memory), RUEDA_ERR_FORKED,
                    "alloc"))
        return 1;
    if (strcmp(rueda_last_error(), rueda_error(me->ctx)) != 0)
        return rank_says(me, "said last \"%s\"", rueda_last_error());
    if (strstr(rueda_error(me->ctx), "fork()") == NULL ||
        strstr(rueda_error(me->ctx), "rueda_init()") == NULL)
        return rank_says(me, "said \"%s\"", rueda_error(me->ctx));
    rueda_free(me->ctx, NULL);
    rueda_shutdown(me->ctx);
    return 0;
}

static int child_is_refused(struct test_rank *me)
{
    for (int i = 0; i < 3; i++)
        if (check_sum(me) != 0 || in_child(me, forbidden) != 0)
            return 1;
    return check_sum(me);
}

static void a_child_is_refused_with_words_and_the_parent_goes_on(void **state)
{
    rank_skip_without_fork();
    rank_run(*state, 2, child_is_refused, NULL);
}

static int has_no_descriptors(struct test_rank *me)
{
    const int *before = me->arg;

    if (has_ours())
        return rank_says(me, "a descriptor of the context is open");
    if (count_descriptors() != *before)
        return rank_says(me, "%d descriptors instead of %d",
                         count_descriptors(), *before);
    return 0;
}

/* Joins by itself, to know what was open before. */
static int descriptors_in_child(struct test_rank *me)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    int before = count_descriptors();
    int failed;

    args.rank = me->rank;
    args.size = me->size;
    args.job = me->job;
    if (rank_expect(me, rueda_init(&args, &me->ctx), RUEDA_OK, "init") != 0)
        return 1;
    me->arg = &before;
    failed = check_sum(me);
    if (failed == 0)
        failed = in_child(me, has_no_descriptors);
    if (failed == 0)
        failed = check_sum(me);
    rueda_shutdown(me->ctx);
    me->arg = NULL;
    if (failed == 0 && count_descriptors() != before)
        return rank_says(me, "shutdown leaves %d descriptors",
                         count_descriptors() - before);
    return failed;
}

static void a_child_holds_no_descriptor_of_the_context(void **state)
{
    struct processes processes;

    (void)state;
    processes_start(&processes, 2, processes_by_self, descriptors_in_child,
                    NULL);
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

/* ---- The parent ------------------------------------------------------ */

static int ends_at_once(struct test_rank *me)
{
    (void)me;
    return 0;
}

/* The background thread is at work while this one forks. */
static int forks_at_work(struct test_rank *me)
{
    struct coll_run runs[20];
    rueda_handle handles[20];

    for (int i = 0; i < 20; i++) {
        const struct coll_what what = {.kind = RUEDA_ALLREDUCE,
                                       .dtype = RUEDA_FLOAT32,
                                       .count = 60000,
                                       .salt = (unsigned)i};

        if (coll_prepare(me, &what, &runs[i]) != 0 ||
            rank_expect(me, rueda_start(me->ctx, &runs[i].args, &handles[i]),
                        RUEDA_OK, "start") != 0)
            return 1;
        if (i % 5 == 0 && in_child(me, ends_at_once) != 0)
            return rank_says(me, "the child failed");
    }
    for (int i = 0; i < 20; i++) {
        if (rank_expect(me, rueda_wait(me->ctx, handles[i], -1), RUEDA_OK,
                        "wait") != 0 ||
            coll_verify(me, &runs[i]) != 0)
            return 1;
        coll_release(me, &runs[i]);
    }
    return 0;
}

static void a_fork_in_the_middle_of_work_does_not_disturb_it(void **state)
{
    rank_skip_without_fork();
    rank_run(*state, 2, forks_at_work, NULL);
}

/* ---- A job of the child's own ---------------------------------------- */

static int own_job(struct test_rank *me)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    struct test_rank alone = *me;
    char name[64];
    int failed;

    rank_job_name(name, sizeof(name));
    args.rank = 0;
    args.size = 1;
    args.job = name;
    if (rank_expect(me, rueda_init(&args, &alone.ctx), RUEDA_OK,
                    "init in the child") != 0)
        return 1;
    alone.size = 1;
    alone.rank = 0;
    failed = check_sum(&alone);
    rueda_shutdown(alone.ctx);
    return failed;
}

static int child_joins(struct test_rank *me)
{
    return in_child(me, own_job) != 0 ? 1 : check_sum(me);
}

static void a_child_may_join_another_job(void **state)
{
    rank_skip_without_fork();
    rank_run(*state, 2, child_joins, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_IN_PROCESSES(a_child_is_refused_with_words_and_the_parent_goes_on),
        RANK_TEST(a_child_is_refused_with_words_and_the_parent_goes_on,
                  threads),
        RANK_TEST(a_child_holds_no_descriptor_of_the_context, processes),
        RANK_IN_PROCESSES(a_fork_in_the_middle_of_work_does_not_disturb_it),
        RANK_IN_PROCESSES(a_child_may_join_another_job),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
