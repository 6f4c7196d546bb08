/* SPDX-License-Identifier: Apache-2.0 */
/* What agents report to the launcher, and how it reacts. */
#include <signal.h>
#include <string.h>

#include "base/config.h"
#include "launch/elastic_run.h"
#include "launch/launch_state.h"
#include "launch/repair.h"

/* ---- What agents tell --------------------------------------------------- */

/* "host: " where there are several. */
static void say_of(struct rueda_node *node, const char *words)
{
    if (node->launch->node_count > 1 || !node->is_local)
        rueda_output_say(node->launch->output, "%s: %s", node->name, words);
    else
        rueda_output_say(node->launch->output, "%s", words);
}

/* Many hosts notice the same things: each is printed once. */
static void on_note(struct rueda_node *node, struct rueda_unpacker *unpacker)
{
    char words[RUEDA_TEXT_BYTES];

    rueda_frame_unpack_text(unpacker, words, sizeof(words));
    if (strcmp(words, node->launch->last_note) == 0)
        return;
    memcpy(node->launch->last_note, words, sizeof(words));
    say_of(node, words);
}

/* An agent is up. Its release must be ours, because the frames that follow may
 * differ between releases. */
static void on_ready(struct rueda_node *node, struct rueda_unpacker *unpacker)
{
    const uint32_t version = rueda_frame_unpack_number(unpacker);
    char host[256];
    char release[64];
    uint32_t slots;

    rueda_frame_unpack_text(unpacker, host, sizeof(host));
    rueda_frame_unpack_text(unpacker, release, sizeof(release));
    rueda_frame_unpack_text(unpacker, node->way, sizeof(node->way));
    slots = rueda_frame_unpack_number(unpacker);
    if (node->state != RUEDA_NODE_WAITING)
        return;
    if (unpacker->is_bad || version != RUEDA_AGENT_VERSION ||
        strcmp(release, rueda_version()) != 0) {
        rueda_output_say(node->launch->output,
                         "%s: its agent is version %s, this is %s; install "
                         "the same one",
                         node->name, release, rueda_version());
        rueda_launch_fail_host(node, 1);
        rueda_node_fini(node);
    } else {
        node->state = RUEDA_NODE_READY;
        if (rueda_options_is_on(node->launch->options, RUEDA_OPTION_VERBOSE))
            rueda_output_say(node->launch->output,
                             "%s: the agent is there (%s)", node->name, host);
    }
    if (node->launch->elastic != NULL && node->state == RUEDA_NODE_GONE)
        rueda_elastic_node_lost(node, "its agent is of another version");
    else if (node->launch->elastic != NULL && node->is_joined)
        rueda_elastic_joined(node, (int)slots);
    else if (node->launch->elastic != NULL)
        rueda_elastic_node_ready(node);
    else
        rueda_launch_start_if_ready(node->launch);
}

/* The ranks of a node run; with --verbose the user sees their process ids. */
static void on_started(struct rueda_node *node, struct rueda_unpacker *unpacker)
{
    const struct rueda_options *options = node->launch->options;
    struct rueda_text command = {{0}};

    if (!rueda_options_is_on(options, RUEDA_OPTION_VERBOSE))
        return;
    for (int i = 0; options->command[i] != NULL; i++)
        rueda_text_add(&command, " %s", options->command[i]);
    for (int i = 0; i < node->count; i++)
        rueda_output_say(node->launch->output, "%s: rank %d is process %u:%s",
                         node->name, node->first_rank + i,
                         rueda_frame_unpack_number(unpacker), command.chars);
}

/* A host of an elastic job goes, and takes its processes with it. */
static void lose_elastic(struct rueda_node *node, const char *why)
{
    struct rueda_text words = {{0}};

    rueda_text_set(&words, "%s is lost: %s", node->name, why);
    node->state = RUEDA_NODE_GONE;
    rueda_node_fini(node);
    rueda_elastic_node_lost(node, words.chars);
}

static void on_refused(struct rueda_node *node, struct rueda_unpacker *unpacker)
{
    const int code = (int)rueda_frame_unpack_number(unpacker);
    char words[RUEDA_TEXT_BYTES];

    rueda_frame_unpack_text(unpacker, words, sizeof(words));
    node->ended = node->count;
    if (node->launch->elastic != NULL && !node->launch->is_ending) {
        lose_elastic(node, words);
        return;
    }
    if (!node->launch->is_ending)
        say_of(node, words);
    rueda_launch_end(node->launch, code >= 1 && code <= 255 ? code : 1,
                     SIGTERM);
}

static bool is_of(const struct rueda_node *node, uint32_t rank)
{
    if (node->launch->elastic != NULL)
        return rueda_elastic_owns(node, rank);
    return rank >= (uint32_t)node->first_rank &&
           rank - (uint32_t)node->first_rank < (uint32_t)node->count;
}

static void on_output(struct rueda_node *node, struct rueda_unpacker *unpacker)
{
    const uint32_t rank = rueda_frame_unpack_number(unpacker);
    const uint32_t stream = rueda_frame_unpack_number(unpacker);
    size_t len;
    const char *bytes = rueda_frame_unpack_bytes(unpacker, &len);

    if (unpacker->is_bad || !is_of(node, rank) || (stream != 1 && stream != 2))
        return;
    rueda_output_host(node->launch->output, (int)rank, node->name);
    rueda_output_feed(node->launch->output, (int)rank, (int)stream, bytes, len);
    rueda_launch_heard(node->launch);
}

/* ---- Failures ----------------------------------------------------------- */

/* The last lines that the failed rank printed, and those of the rank that
 * raised the first exception if that was another one. */
static void show_tail(struct rueda_launch *launch, int rank)
{
    const struct rueda_tail *tail = rueda_output_tail(launch->output, rank);
    const int first = rueda_output_first_exception(launch->output);
    const char *line;

    if (rueda_tail_line(tail, 0) != NULL)
        rueda_output_say(launch->output,
                         "the last lines of rank %d on stderr:", rank);
    for (int i = 0; rueda_tail_first(tail) > 0 && i < 2; i++)
        if (tail->frame[i][0] != '\0')
            rueda_output_say_plainly(launch->output, "    %s", tail->frame[i]);
    for (unsigned i = rueda_tail_first(tail);
         (line = rueda_tail_line(tail, i)) != NULL; i++)
        rueda_output_say_plainly(launch->output, "    %s", line);
    if (first >= 0 && first != rank)
        rueda_output_say(launch->output, "before that rank %d raised %s", first,
                         rueda_output_tail(launch->output, first)->exception);
}

/* A rank has failed, which ends the job: report it with what it printed last.
 */
static void fail_by(struct rueda_node *node, const struct rueda_ending *ending)
{
    struct rueda_launch *launch = node->launch;
    struct rueda_text words = {{0}};

    rueda_ending_words(ending, node->name, &words);
    if (launch->options->is_horovodrun) {
        rueda_output_say_plainly(launch->output,
                                 "Process %d exit with status code %d.",
                                 ending->rank, rueda_ending_code(ending));
        rueda_output_say_plainly(launch->output,
                                 "Terminating remaining workers after failure "
                                 "of Process %d.",
                                 ending->rank);
    }
    rueda_output_say(launch->output, "%s%s", words.chars,
                     launch->placement.size > 1 ? "; the job is ended" : "");
    show_tail(launch, ending->rank);
    launch->has_lost = true;
    rueda_launch_linger(launch, rueda_ending_code(ending));
}

/* Do the others go on without it (engine/terms.h)? If they cannot, they fail,
 * and that ends the job. One that they have gone on without before is no loss,
 * however it ends. */
static bool do_without(struct rueda_node *node,
                       const struct rueda_ending *ending)
{
    struct rueda_launch *launch = node->launch;
    const bool is_removed =
        rueda_repair_has_removed(launch->repair, ending->rank);
    struct rueda_text words = {{0}};

    if (!is_removed && (ending->signal == 0 || !rueda_repair_can_go_on(launch)))
        return false;
    rueda_ending_words(ending, node->name, &words);
    rueda_output_say(launch->output,
                     is_removed ? "%s; the others have gone on without it "
                                  "(RUEDA_REPAIR=1)"
                                : "%s; the others go on without it if they can "
                                  "(RUEDA_REPAIR=1)",
                     words.chars);
    return true;
}

/* A rank has ended. The first one that failed decides how the job ends. */
static void on_exit_of_rank(struct rueda_node *node,
                            struct rueda_unpacker *unpacker)
{
    struct rueda_ending ending = {
        .rank = (int)rueda_frame_unpack_number(unpacker),
        .code = (int)(rueda_frame_unpack_number(unpacker) & 255),
        .signal = (int)(rueda_frame_unpack_number(unpacker) & 127),
        .oom = rueda_frame_unpack_number(unpacker),
    };
    bool is_news;

    if (unpacker->is_bad || !is_of(node, (uint32_t)ending.rank))
        return;
    rueda_output_end(node->launch->output, ending.rank);
    if (node->launch->elastic != NULL) {
        if (!node->launch->is_ending)
            rueda_elastic_ended(node, &ending);
        return;
    }
    node->ended++;
    is_news = !node->launch->is_ending && !node->launch->is_lingering &&
              rueda_ending_code(&ending) != 0;
    if (is_news && !do_without(node, &ending))
        fail_by(node, &ending);
    rueda_launch_heard(node->launch);
}

/* A frame of an agent. Frames that do not fit the state of the node are
 * ignored: they were sent before the agent knew of it. */
void rueda_launch_frame(struct rueda_node *node,
                        const struct rueda_frame *frame)
{
    struct rueda_unpacker unpacker;

    rueda_unpacker_begin(&unpacker, frame);
    switch (frame->kind) {
    case RUEDA_FRAME_READY:
        on_ready(node, &unpacker);
        break;
    case RUEDA_FRAME_PREPARED:
        node->is_prepared = node->state == RUEDA_NODE_RUNNING;
        if (node->launch->elastic != NULL && node->is_prepared)
            rueda_elastic_node_prepared(node);
        else
            rueda_launch_go_if_prepared(node->launch);
        break;
    case RUEDA_FRAME_STARTED:
        on_started(node, &unpacker);
        break;
    case RUEDA_FRAME_REFUSED:
        on_refused(node, &unpacker);
        break;
    case RUEDA_FRAME_OUTPUT:
        on_output(node, &unpacker);
        break;
    case RUEDA_FRAME_EXIT:
        on_exit_of_rank(node, &unpacker);
        break;
    case RUEDA_FRAME_NOTE:
        on_note(node, &unpacker);
        break;
    case RUEDA_FRAME_DRAIN:
        if (node->launch->elastic != NULL && !node->launch->is_ending)
            rueda_elastic_drain(node);
        break;
    case RUEDA_FRAME_TAKEN:
        if (node == &node->launch->nodes[node->launch->input_node])
            rueda_launch_input_taken(node->launch,
                                     rueda_frame_unpack_number(&unpacker));
        break;
    default:
        break;
    }
    if (rueda_output_is_full(node->launch->output))
        uv_async_send(&node->launch->changed);
}

/* A host that could not be reached: with ssh's own message, if there is one.
 * ssh decides which hosts are unknown, since it may know names that nothing
 * else resolves. */
static void lose_early(struct rueda_node *node, const char *why)
{
    static const char unknown[] = "Could not resolve hostname";
    const char *words = rueda_node_words(node);
    size_t len;
    const char *noise = rueda_link_noise(&node->link, &len);

    if (words[0] == '\0' && len > 0) {
        while (len > 0 && strchr("\r\n ", noise[len - 1]) != NULL)
            len--;
        rueda_output_say(node->launch->output, "%s: no agent, but: %.*s",
                         node->name, (int)(len < 200 ? len : 200), noise);
    } else {
        rueda_output_say(node->launch->output, "%s: %s", node->name,
                         words[0] != '\0' ? words : why);
    }
    rueda_launch_fail_host(node, strstr(words, unknown) != NULL ? 2 : 1);
    rueda_launch_start_if_ready(node->launch);
}

/* A host is lost with ranks that still ran. */
static void lose_ranks(struct rueda_node *node, const char *why)
{
    struct rueda_launch *launch = node->launch;
    const int lost = node->count - node->ended;
    const char *words = rueda_node_words(node);
    bool can_go_on;

    node->ended = node->count;
    can_go_on = rueda_repair_can_go_on(launch);
    rueda_output_say(launch->output,
                     "%s was lost with its agent (%s), and %d of its ranks; %s",
                     node->name, words[0] != '\0' ? words : why, lost,
                     can_go_on ? "the others go on without them if they can "
                                 "(RUEDA_REPAIR=1)"
                               : "the job is ended");
    if (can_go_on)
        return;
    launch->has_lost = true;
    rueda_launch_end(launch, 1, SIGTERM);
}

/* The link with an agent is gone. */
void rueda_launch_lost(struct rueda_node *node, const char *why)
{
    struct rueda_launch *launch = node->launch;
    const rueda_node_state state = node->state;

    node->state = RUEDA_NODE_GONE;
    if (launch->elastic != NULL && !launch->is_ending) {
        const char *words = rueda_node_words(node);

        lose_elastic(node, words[0] != '\0' ? words : why);
    } else if (!launch->is_ending && state == RUEDA_NODE_RUNNING &&
               node->ended < node->count) {
        lose_ranks(node, why);
    } else if (!launch->is_ending && state != RUEDA_NODE_RUNNING) {
        lose_early(node, why);
    }
    rueda_launch_stop_if_over(launch);
}
