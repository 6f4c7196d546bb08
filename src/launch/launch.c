/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher from its first step to its exit code: store, listener, agents
 * and libuv's loop. launch_assignment.c, launch_events.c, launch_course.c and
 * launch_input.c have the parts.
 */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "job/introduce.h"
#include "launch/elastic.h"
#include "launch/elastic_run.h"
#include "launch/family.h"
#include "launch/launch_state.h"
#include "launch/limit.h"
#include "launch/locality.h"
#include "launch/repair.h"
#include "launch/signal_name.h"
#include "os/process.h"
#include "os/random.h"

/* For what is left on this host. */
#define END_NS RUEDA_S(3)

#define CHECK_MS    250
#define LOCALITY_MS 5000

/* ---- The user ----------------------------------------------------------- */

/* The first signal ends the job in order, with time for the ranks to finish;
 * the second one kills them. */
static void on_signal(uv_signal_t *handle, int number)
{
    struct rueda_launch *launch = handle->data;

    if (launch->signal != 0 || launch->is_ending) {
        rueda_launch_kill(launch);
        return;
    }
    launch->signal = number;
    rueda_output_say(launch->output, "SIG%s: the job is ended%s",
                     rueda_signal_name(number),
                     number == SIGINT ? "; once more ends it at once" : "");
    rueda_launch_end(launch, 128 + number, number == SIGINT ? SIGINT : SIGTERM);
}

static void pause_links(struct rueda_launch *launch, bool is_paused)
{
    if (launch->is_paused == is_paused)
        return;
    launch->is_paused = is_paused;
    for (int i = 0; i < launch->node_count; i++)
        if (launch->nodes[i].is_linked)
            rueda_link_pause(&launch->nodes[i].link, is_paused);
}

static void on_check(uv_timer_t *timer)
{
    struct rueda_launch *launch = timer->data;

    rueda_output_check(launch->output);
    rueda_launch_probe_master_port(launch);
    for (int i = 0; i < launch->node_count; i++)
        if (launch->nodes[i].is_linked)
            rueda_link_check(&launch->nodes[i].link);
    pause_links(launch, rueda_output_is_full(launch->output));
}

static void on_changed(uv_async_t *async)
{
    struct rueda_launch *launch = async->data;

    pause_links(launch, rueda_output_is_full(launch->output));
    if (rueda_output_error(launch->output) == EPIPE)
        rueda_launch_end(launch, 128 + SIGPIPE, SIGTERM);
}

/* On a console's thread. */
static void wake(void *arg)
{
    struct rueda_launch *launch = arg;

    uv_async_send(&launch->changed);
}

/* ---- Preparations ------------------------------------------------------- */

/* The handles of the loop that live as long as the job: timers, signals, and
 * the wake-up from other threads. */
static void open_loop(struct rueda_launch *launch)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

    uv_timer_init(&launch->loop, &launch->lingering);
    launch->lingering.data = launch;
    rueda_terminal_watch_stops(launch);

    uv_async_init(&launch->loop, &launch->changed, on_changed);
    uv_timer_init(&launch->loop, &launch->starting);
    uv_timer_init(&launch->loop, &launch->ending);
    uv_timer_init(&launch->loop, &launch->looking);
    launch->changed.data = launch;
    launch->starting.data = launch;
    launch->ending.data = launch;
    launch->looking.data = launch;
    uv_timer_start(&launch->looking, on_check, CHECK_MS, CHECK_MS);
    if (launch->elastic == NULL)
        uv_timer_start(&launch->starting, rueda_launch_on_start_timeout,
                       1000 * (uint64_t)launch->start_timeout_s, 0);
    for (int i = 0; i < 4; i++) {
        uv_signal_init(&launch->loop, &launch->signals[i]);
        launch->signals[i].data = launch;
        uv_signal_start(&launch->signals[i], on_signal, numbers[i]);
    }
}

static bool find_hosts(struct rueda_launch *launch, struct rueda_text *words)
{
    const char *const *values = launch->options->values;
    const int size = rueda_options_whole(launch->options, RUEDA_OPTION_NP, 1);

    return rueda_hosts_find(values[RUEDA_OPTION_HOSTS],
                            values[RUEDA_OPTION_HOSTFILE], size, &launch->hosts,
                            words) &&
           rueda_placement_make(&launch->hosts, size, &launch->placement,
                                words);
}

/* One node for each host that has ranks. Which hosts are this machine is found
 * out for all of them together, because asking takes time. */
static bool make_nodes(struct rueda_launch *launch)
{
    const int count = launch->placement.host_count;
    bool *is_local = calloc((size_t)count, sizeof(*is_local));

    launch->nodes = calloc((size_t)count, sizeof(*launch->nodes));
    if (is_local == NULL || launch->nodes == NULL) {
        free(is_local);
        return false;
    }
    launch->node_count = count;
    rueda_locality_find(&launch->hosts, count, LOCALITY_MS, is_local);
    for (int i = 0; i < count; i++)
        launch->nodes[i] =
            (struct rueda_node){.launch = launch,
                                .name = launch->hosts.list[i].name,
                                .is_local = is_local[i],
                                .first_rank = -1,
                                .errors = -1};
    for (int rank = 0; rank < launch->placement.size; rank++) {
        struct rueda_node *node =
            &launch->nodes[launch->placement.ranks[rank].host];

        if (node->first_rank < 0)
            node->first_rank = rank;
        node->count++;
    }
    free(is_local);
    return true;
}

/* The standard input goes to rank 0 unless it is a terminal, whose signals and
 * rights are those of the process group in front, which is ours. On this host
 * rank 0 gets the descriptor itself. */
static rueda_status start_local_agents(struct rueda_launch *launch)
{
    int input = -1;
    rueda_status status = RUEDA_OK;

    if (launch->terminal_rank >= 0 ||
        (!isatty(STDIN_FILENO) && !launch->nodes[0].is_local))
        status = rueda_launch_read_input(launch);
    else if (!isatty(STDIN_FILENO))
        input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    launch->has_input =
        launch->terminal_rank < 0 && (input >= 0 || launch->input >= 0);
    for (int i = 0; i < launch->node_count && status == RUEDA_OK; i++)
        if (launch->nodes[i].is_local)
            status = rueda_node_start_here(&launch->nodes[i], input);
    if (input >= 0)
        close(input);
    return status;
}

/* A key file that is not there is made: agents on hosts that share the folder
 * find it, and others are given it. */
static rueda_status find_key(struct rueda_launch *launch,
                             struct rueda_text *words)
{
    const char *file = launch->options->values[RUEDA_OPTION_KEY_FILE];

    if (file != NULL && access(file, F_OK) != 0 && errno == ENOENT) {
        rueda_status status = rueda_introduce_new_key(file, words);

        if (status != RUEDA_OK)
            return status;
        fprintf(stderr, "%s: made a key in %s, which agents are to have\n",
                launch->options->program, file);
    }
    if (file != NULL)
        return rueda_key_read_file(file, words, &launch->key);
    if (rueda_key_create(&launch->key) == RUEDA_OK)
        return RUEDA_OK;
    rueda_text_set(words, "no random numbers: %s", strerror(errno));
    return RUEDA_ERR_IO;
}

static rueda_prefix prefix_of(const struct rueda_options *options)
{
    const char *prefix = options->values[RUEDA_OPTION_PREFIX];

    if (prefix == NULL || strcmp(prefix, "rank") == 0)
        return RUEDA_PREFIX_RANK;
    return strcmp(prefix, "host") == 0 ? RUEDA_PREFIX_HOST : RUEDA_PREFIX_NONE;
}

/* The console or the files to which output goes. */
static rueda_status open_output(struct rueda_launch *launch,
                                struct rueda_text *words)
{
    struct rueda_output_args args = {
        .size = launch->elastic != NULL ? 1 : launch->placement.size,
        .program = launch->options->program,
        .folder = launch->options->values[RUEDA_OPTION_OUTPUT],
        .tee = launch->options->values[RUEDA_OPTION_TEE],
        .ranks = launch->options->values[RUEDA_OPTION_RANKS],
        .prefix = prefix_of(launch->options),
        .is_going_on = launch->restarts > 0,
        .has_timestamps =
            rueda_options_is_on(launch->options, RUEDA_OPTION_TIMESTAMP),
        .changed = wake,
        .arg = launch,
    };

    return rueda_output_open(&args, &launch->output, words);
}

/* Agents that connect by themselves have the key. */
static void reach_all(struct rueda_launch *launch)
{
    for (int i = 0; i < launch->node_count; i++) {
        struct rueda_node *node = &launch->nodes[i];

        if (node->is_local) {
            rueda_node_hello(node);
            continue;
        }
        if (launch->door != NULL || rueda_node_start_there(node) == RUEDA_OK)
            continue;
        rueda_output_say(launch->output, "%s: %s", node->name,
                         node->words[0] != '\0' ? node->words
                                                : strerror(errno));
        rueda_launch_fail_host(node, 1);
    }
    rueda_launch_start_if_ready(launch);
}

/* Everything that may fail before a rank is started. The order matters: the
 * agent of this host is forked while we have one thread. Returns the
 * exit code. */
static int prepare(struct rueda_launch *launch, struct rueda_text *words)
{
    const char *listen = launch->options->values[RUEDA_OPTION_LISTEN];
    unsigned number = 0;
    rueda_status status;

    if (!rueda_launch_find_timeout(launch, words) ||
        !(rueda_elastic_is_wanted(launch->options)
              ? rueda_elastic_open(launch, words)
              : find_hosts(launch, words)) ||
        !rueda_launch_find_folder(launch, words))
        return 2;
    if (find_key(launch, words) != RUEDA_OK)
        return 2;
    if (rueda_random_fill(&number, sizeof(number)) != RUEDA_OK) {
        rueda_text_set(words, "no random bytes: %s", strerror(errno));
        return 1;
    }
    snprintf(launch->job, sizeof(launch->job), "ruedarun-%d-%08x",
             rueda_process_id(), number);
    if ((launch->elastic == NULL && !make_nodes(launch)) ||
        uv_loop_init(&launch->loop) != 0) {
        rueda_text_set(words, "no memory");
        return 1;
    }
    launch->has_loop = true;
    if (launch->elastic == NULL && !rueda_terminal_choose(launch, words))
        return 2;
    rueda_limit_need(4 * launch->node_count + 2 * launch->placement.size);
    rueda_family_adopt();
    signal(SIGPIPE, SIG_IGN);
    if (launch->elastic == NULL && start_local_agents(launch) != RUEDA_OK) {
        rueda_text_set(words, "cannot start the agent: %s", strerror(errno));
        return 1;
    }
    open_loop(launch);
    if (open_output(launch, words) != RUEDA_OK)
        return 2;
    for (int i = 0; i < launch->placement.size; i++)
        rueda_output_host(launch->output, i,
                          launch->nodes[launch->placement.ranks[i].host].name);
    if (launch->terminal_rank >= 0)
        rueda_output_give_terminal(launch->output, launch->terminal_rank);
    if (launch->elastic != NULL)
        rueda_elastic_listen(launch);
    else
        rueda_launch_choose_master_port(launch);
    status = rueda_launch_open_store(launch, words);
    if (status != RUEDA_OK)
        return status == RUEDA_ERR_INVALID ? 2 : 1;
    if (listen != NULL && rueda_door_open(launch, listen, words) != RUEDA_OK)
        return 2;
    return 0;
}

/* ---- Life --------------------------------------------------------------- */

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Undo all of prepare(), in the order that threads and handles need. Nothing
 * that we started is left behind. */
static void fini(struct rueda_launch *launch)
{
    rueda_terminal_give_back();
    rueda_elastic_close(launch->elastic);
    rueda_door_close(launch->door);
    rueda_launch_close_input(launch);
    for (int i = 0; i < launch->node_count; i++)
        rueda_node_fini(&launch->nodes[i]);
    rueda_keeper_close(launch->keeper);
    rueda_repair_close(launch->repair);
    rueda_family_end(END_NS);
    /* Its threads may still wake the loop. */
    rueda_output_close(launch->output);
    if (launch->has_loop) {
        uv_walk(&launch->loop, close_handle, NULL);
        uv_run(&launch->loop, UV_RUN_DEFAULT);
        uv_loop_close(&launch->loop);
    }
    for (int i = 0; i < launch->node_count; i++)
        rueda_link_fini(&launch->nodes[i].link);
    rueda_door_free(launch->door);
    rueda_elastic_free(launch->elastic);
    free(launch->nodes);
    rueda_placement_fini(&launch->placement);
    rueda_hosts_fini(&launch->hosts);
    rueda_key_wipe(&launch->key);
}

/* One life of the job. *out_has_lost: it ended because a rank or a host was
 * lost, and not by a signal of the user's. */
static int run_once(struct rueda_options *options, int restarts,
                    bool *out_has_lost)
{
    struct rueda_launch launch = {.options = options,
                                  .input = -1,
                                  .terminal_rank = -1,
                                  .restarts = restarts};
    struct rueda_text words = {{0}};

    launch.code = prepare(&launch, &words);
    if (launch.code == 0 && launch.elastic != NULL &&
        !rueda_elastic_begin(&launch, &words))
        launch.code = 2;
    if (launch.code == 0) {
        if (launch.elastic == NULL)
            reach_all(&launch);
        uv_run(&launch.loop, UV_RUN_DEFAULT);
        rueda_launch_tell_lone_ranks(&launch);
    } else {
        fprintf(stderr, "%s: %s\n", options->program, words.chars);
    }
    fini(&launch);
    *out_has_lost = launch.has_lost && launch.signal == 0;
    return launch.code;
}

/* Ranks that failed begin again from what they have saved themselves. */
int rueda_launch_run(struct rueda_options *options)
{
    const int most = rueda_options_whole(options, RUEDA_OPTION_RESTARTS, 0);
    bool has_lost;

    for (int restarts = 0;; restarts++) {
        const int code = run_once(options, restarts, &has_lost);

        if (code == 0 || !has_lost || restarts == most) {
            if (code != 0 && has_lost && most > 0)
                fprintf(stderr,
                        "%s: the job has failed %d times, and --restarts is "
                        "%d\n",
                        options->program, restarts + 1, most);
            return code;
        }
        fprintf(stderr,
                "%s: the job is started again, from the checkpoint that the "
                "program finds: restart %d of %d\n",
                options->program, restarts + 1, most);
    }
}
