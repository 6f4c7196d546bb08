/* SPDX-License-Identifier: Apache-2.0 */
/* How a job starts once all hosts are there, and how it is ended. */
#include <signal.h>
#include <stdio.h>

#include "base/config.h"
#include "base/duration.h"
#include "base/number.h"
#include "launch/launch_state.h"
#include "os/clock.h"

/* After SIGKILL, for hosts that do not answer any more. */
#define PATIENCE_MS 3000

#define START_TIMEOUT_S 30

/* ---- The end of the job ------------------------------------------------- */

void rueda_launch_stop_if_over(struct rueda_launch *launch)
{
    if (launch->elastic != NULL && !launch->is_ending)
        return; /* other hosts may come */
    for (int i = 0; i < launch->node_count; i++)
        if (launch->nodes[i].state != RUEDA_NODE_GONE)
            return;
    uv_stop(&launch->loop);
}

void rueda_launch_signal(struct rueda_launch *launch, int signal)
{
    for (int i = 0; i < launch->node_count; i++) {
        struct rueda_packer packer;

        if (launch->nodes[i].state != RUEDA_NODE_RUNNING)
            continue;
        rueda_packer_begin(&packer, RUEDA_FRAME_SIGNAL);
        rueda_frame_pack_number(&packer, (uint32_t)signal);
        rueda_link_send(&launch->nodes[i].link, &packer);
    }
}

static void on_patience(uv_timer_t *timer)
{
    struct rueda_launch *launch = timer->data;

    for (int i = 0; i < launch->node_count; i++)
        if (launch->nodes[i].state != RUEDA_NODE_GONE)
            rueda_output_say(launch->output,
                             "%s does not answer; processes may be left there",
                             launch->nodes[i].name);
    uv_stop(&launch->loop);
}

void rueda_launch_kill(struct rueda_launch *launch)
{
    if (launch->is_killing)
        return;
    launch->is_killing = true;
    rueda_launch_signal(launch, SIGKILL);
    uv_timer_start(&launch->ending, on_patience, PATIENCE_MS, 0);
}

static void on_grace(uv_timer_t *timer)
{
    rueda_launch_kill(timer->data);
}

/* Do the others wait for this host? */
static bool is_late(const struct rueda_node *node)
{
    return node->state == RUEDA_NODE_WAITING ||
           (node->state == RUEDA_NODE_RUNNING && !node->launch->is_going &&
            !node->is_prepared && node->ended < node->count);
}

/* End all ranks; the first call decides the code of the exit. Agents that have
 * no ranks yet go when their stream ends. */
void rueda_launch_end(struct rueda_launch *launch, int code, int signal)
{
    const double grace =
        rueda_options_decimal(launch->options, RUEDA_OPTION_GRACE, 5);

    if (launch->is_ending)
        return;
    launch->is_ending = true;
    launch->code = code;
    uv_timer_stop(&launch->starting);
    rueda_output_progress(launch->output, "");
    for (int i = 0; i < launch->node_count; i++) {
        struct rueda_node *node = &launch->nodes[i];

        if (node->state == RUEDA_NODE_GONE ||
            (launch->is_started && !is_late(node)))
            continue;
        node->state = RUEDA_NODE_GONE;
        rueda_node_fini(node);
    }
    rueda_launch_signal(launch, signal);
    uv_timer_start(&launch->ending, on_grace, (uint64_t)(1000 * grace), 0);
    rueda_launch_stop_if_over(launch);
}

/* ---- The others of a rank that has failed ------------------------------- */

/* An exception that came earlier than this has nothing to do with the failure.
 */
#define SAME_NS RUEDA_S(5)

/* For the rest of what a rank prints behind its exception. */
#define REST_MS 100

static void on_linger(uv_timer_t *timer)
{
    struct rueda_launch *launch = timer->data;

    rueda_launch_end(launch, launch->code, SIGTERM);
}

/* Ranks that never met have no story to tell. */
void rueda_launch_linger(struct rueda_launch *launch, int code)
{
    const double linger =
        rueda_options_decimal(launch->options, RUEDA_OPTION_LINGER, 1);

    if (launch->placement.size == 1 || linger <= 0 ||
        (!rueda_keeper_has_met(launch->keeper) && !launch->was_used)) {
        rueda_launch_end(launch, code, SIGTERM);
        return;
    }
    launch->is_lingering = true;
    launch->code = code;
    launch->failed_ns = rueda_clock_ns();
    uv_timer_start(&launch->lingering, on_linger, (uint64_t)(1000 * linger), 0);
    rueda_launch_heard(launch);
}

void rueda_launch_heard(struct rueda_launch *launch)
{
    if (!launch->is_lingering || launch->is_ending)
        return;
    for (int rank = 0; rank < launch->placement.size; rank++) {
        const struct rueda_tail *tail = rueda_output_tail(launch->output, rank);

        if (!tail->is_over &&
            (tail->exception[0] == '\0' ||
             tail->exception_ns < launch->failed_ns - SAME_NS))
            return;
    }
    if (uv_timer_get_due_in(&launch->lingering) > REST_MS)
        uv_timer_start(&launch->lingering, on_linger, REST_MS, 0);
}

/* ---- The start ---------------------------------------------------------- */

static int count_state(const struct rueda_launch *launch,
                       rueda_node_state state)
{
    int count = 0;

    for (int i = 0; i < launch->node_count; i++)
        count += launch->nodes[i].state == state;
    return count;
}

static void show_progress(struct rueda_launch *launch)
{
    char words[80];

    if (launch->node_count == 1 || launch->is_ending)
        return;
    snprintf(words, sizeof(words), "%d of %d hosts are there",
             count_state(launch, RUEDA_NODE_READY), launch->node_count);
    rueda_output_progress(launch->output, launch->is_started ? "" : words);
}

void rueda_launch_fail_host(struct rueda_node *node, int code)
{
    struct rueda_launch *launch = node->launch;

    node->state = RUEDA_NODE_GONE;
    if (launch->start_code != 1)
        launch->start_code = code;
}

/* Once every host has answered, one way or the other: go, or give up. */
void rueda_launch_start_if_ready(struct rueda_launch *launch)
{
    show_progress(launch);
    if (launch->is_started || launch->is_ending ||
        count_state(launch, RUEDA_NODE_WAITING) > 0)
        return;
    if (launch->start_code != 0) {
        rueda_launch_end(launch, launch->start_code, SIGTERM);
        return;
    }
    launch->is_started = true;
    show_progress(launch);
    for (int i = 0; i < launch->node_count; i++) {
        launch->nodes[i].state = RUEDA_NODE_RUNNING;
        if (!rueda_launch_send_assignment(&launch->nodes[i])) {
            rueda_output_say(launch->output, "no memory for the assignment");
            rueda_launch_end(launch, 1, SIGTERM);
            return;
        }
    }
    if (launch->node_count > 1)
        return;
    launch->is_going = true;
    rueda_terminal_take(launch);
    rueda_launch_pass_input(launch);
}

/* When the last agent has prepared, tell all of them to start their ranks. */
void rueda_launch_go_if_prepared(struct rueda_launch *launch)
{
    if (launch->is_going || launch->is_ending)
        return;
    for (int i = 0; i < launch->node_count; i++)
        if (!launch->nodes[i].is_prepared)
            return;
    launch->is_going = true;
    for (int i = 0; i < launch->node_count; i++) {
        struct rueda_packer packer;

        rueda_packer_begin(&packer, RUEDA_FRAME_GO);
        rueda_link_send(&launch->nodes[i].link, &packer);
    }
    rueda_terminal_take(launch);
    rueda_launch_pass_input(launch);
}

/* The time to start in, from the option or from Horovod's variable. */
bool rueda_launch_find_timeout(struct rueda_launch *launch,
                               struct rueda_text *words)
{
    static const char name[] = "HOROVOD_START_TIMEOUT";
    const struct rueda_option *option =
        &rueda_options_table[RUEDA_OPTION_START_TIMEOUT];
    const char *wish = rueda_environment(name);
    int seconds = START_TIMEOUT_S;

    if (launch->options->values[RUEDA_OPTION_START_TIMEOUT] != NULL) {
        seconds = rueda_options_whole(launch->options,
                                      RUEDA_OPTION_START_TIMEOUT, seconds);
    } else if (wish != NULL && wish[0] != '\0' &&
               (!rueda_parse_int(wish, &seconds) || seconds < option->low ||
                seconds > option->high)) {
        rueda_text_set(words,
                       "%s is a whole number from %.0f to %.0f, not '%.64s'",
                       name, option->low, option->high, wish);
        return false;
    }
    launch->start_timeout_s = seconds;
    return true;
}

/* The time to start in is over: name every host that is late, and end the job.
 */
void rueda_launch_on_start_timeout(uv_timer_t *timer)
{
    struct rueda_launch *launch = timer->data;
    bool is_somebody_late = false;

    for (int i = 0; i < launch->node_count; i++) {
        if (!is_late(&launch->nodes[i]))
            continue;
        is_somebody_late = true;
        rueda_output_say(launch->output,
                         "%s: did not come within %d seconds; more time is "
                         "given by --start-timeout",
                         launch->nodes[i].name, launch->start_timeout_s);
    }
    if (is_somebody_late)
        rueda_launch_end(launch, 1, SIGTERM);
}
