/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing a job: find the seat, meet the ranks of this host, call
 * the roll where there are several hosts, take over what rank 0 decided, and
 * connect the mesh over shared memory, a network or threads.
 */
#define RUEDA_LOG_TAG "job"

#include "job/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/key.h"
#include "auth/object.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/log.h"
#include "job/agreement.h"
#include "job/council.h"
#include "job/failure_report.h"
#include "job/links.h"
#include "job/network.h"
#include "job/rendezvous.h"
#include "job/rollcall.h"
#include "os/clock.h"
#include "os/process.h"
#include "segment/meet.h"

/* ---- Where the ranks are ------------------------------------------------ */

/* All are here, by the launcher's word or by the way in which they meet. */
static void place_here(struct rueda_job *job, const struct rueda_seat *seat)
{
    job->formation->row = (struct rueda_topology_row){
        .index = seat->rank,
        .local_rank = seat->local_rank >= 0 ? seat->local_rank : seat->rank,
        .local_size = seat->local_size >= 0 ? seat->local_size : seat->size,
        .cross_size = 1,
    };
}

/* What a launcher says of cross ranks is not in the table. */
static void place_cross(struct rueda_job *job, const struct rueda_seat *seat)
{
    if (seat->cross_rank >= 0)
        job->formation->row.cross_rank = seat->cross_rank;
    if (seat->cross_size >= 0)
        job->formation->row.cross_size = seat->cross_size;
}

/* No rank sleeps before the ranks of this host have met. */
static void wake_by(void *arg, int fd)
{
    struct rueda_job *job = arg;

    if (job->segment != NULL &&
        rueda_segment_watch_fd(job->segment, fd) != RUEDA_OK)
        log_warn("cannot watch a connection, so wake-ups may be late: %s",
                 strerror(errno));
}

/* A change in the store. The end of the term ends the start of an elastic job;
 * once its ranks have met they see by themselves who is lost. */
static void on_event(void *arg, const struct rueda_store_reply *event)
{
    struct rueda_job *job = arg;

    if (rueda_store_council_event(job, event))
        return;
    if (!rueda_rendezvous_is_over(event)) {
        rueda_failure_event(arg, event);
    } else if (job->segment == NULL) {
        rueda_text_set(&job->over, "%.*s", (int)event->value_bytes,
                       (const char *)event->value);
        rueda_text_clean(&job->over);
        rueda_client_abandon(job->client, job->over.chars);
    }
}

/* While the ranks of this host meet. */
static bool is_over(void *arg, struct rueda_text *words)
{
    struct rueda_job *job = arg;

    if (job->client != NULL)
        rueda_client_reconnect(job->client);
    *words = job->over;
    return !rueda_text_is_empty(&job->over);
}

/* Reach the store. */
static rueda_status open_client(struct rueda_job *job,
                                const struct rueda_seat *seat,
                                int64_t deadline_ns, struct rueda_text *error)
{
    const struct rueda_contact *contact = &job->contact;
    const struct rueda_client_args args = {
        .rank = seat->rank,
        .size = seat->size,
        .socket = contact->socket[0] != '\0' ? contact->socket : NULL,
        .addresses = contact->addresses,
        .address_count = contact->address_count,
        .key = &contact->key,
        .questions = rueda_network_questions(&job->config),
        .on_event = on_event,
        .on_socket = wake_by,
        .arg = job,
    };

    rueda_status status =
        rueda_client_open(&args, deadline_ns, &job->client, error);

    if (status == RUEDA_OK && seat->term > 0)
        status =
            rueda_rendezvous_watch(job->client, seat->term, deadline_ns, error);
    return status;
}

/* Ranks that are all here, by the launcher's word, need not be reached. */
static rueda_status open_network(struct rueda_job *job,
                                 const struct rueda_seat *seat,
                                 char contact[RUEDA_CONTACT_BYTES],
                                 struct rueda_text *error)
{
    _Static_assert(RUEDA_NETWORK_TEXT <= RUEDA_CONTACT_BYTES,
                   "a rank's addresses are its contact");
    contact[0] = '\0';
    if (seat->local_size == seat->size || !job->contact.key.present)
        return RUEDA_OK;
    return rueda_network_open(&job->config, seat->rank, seat->size,
                              &job->contact.key, &job->network, contact, error);
}

/* The ranks of my host, in the job. */
static rueda_status list_ranks(struct rueda_job *job)
{
    const struct rueda_topology *topology = job->formation->topology;
    int size = topology->hosts[job->formation->row.host].size;

    job->ranks = calloc((size_t)size, sizeof(int));
    if (job->ranks == NULL)
        return RUEDA_ERR_NOMEM;
    for (int rank = 0; rank < topology->size; rank++)
        if (topology->rows[rank].host == job->formation->row.host)
            job->ranks[topology->rows[rank].index] = rank;
    return RUEDA_OK;
}

/* Rank 0's part of the roll call; arg is the job. */
static rueda_status decide(void *arg, const struct rueda_encrypt_vote *vote,
                           char out[RUEDA_ROLLCALL_DECISION_BYTES],
                           struct rueda_text *error)
{
    struct rueda_job *job = arg;
    struct rueda_text why = {{0}};
    struct rueda_text line = {{0}};
    rueda_status status =
        rueda_encrypt_decide(vote, &job->config.encrypt, &why);

    if (status != RUEDA_OK) {
        *error = why;
        return status;
    }
    rueda_encrypt_explain(job->config.encrypt, why.chars, &line);
    log_info("%s", line.chars);
    return rueda_agreement_decide(&job->config, out, error);
}

static rueda_status heed(struct rueda_job *job, const char *decision,
                         struct rueda_text *error)
{
    if (rueda_agreement_heed(decision, &job->config) == RUEDA_OK)
        return RUEDA_OK;
    rueda_text_set(error, "what rank 0 decides for all makes no sense; do all "
                          "run the same version of Rueda?");
    return RUEDA_ERR_INVALID;
}

static void close_network(struct rueda_job *job)
{
    if (job->network != NULL)
        job->network->ops->close(job->network);
    job->network = NULL;
}

/* Can ranks of several hosts repair the job? How they fare among themselves is
 * asked later (engine/terms.h). */
static bool repairs(const struct rueda_job *job, const struct rueda_seat *seat)
{
    return job->config.repair && job->config.servers == 0 && seat->worker < 0 &&
           job->formation->size <= RUEDA_SEGMENT_MAX;
}

/* Hear of failures of other hosts, and agree with them on how to go on. */
static rueda_status listen_to_others(struct rueda_job *job,
                                     const struct rueda_introduce_args *args,
                                     struct rueda_text *error)
{
    rueda_status status = RUEDA_OK;

    if (repairs(job, args->seat))
        status = rueda_store_council_open(job, args->deadline_ns, error);
    if (status == RUEDA_OK)
        status = rueda_failure_open(job, args->deadline_ns, error);
    return status;
}

/* Learn where all ranks are. Where all are on one host, none has to be reached
 * by TCP. */
static rueda_status call_together(struct rueda_job *job,
                                  const struct rueda_introduce_args *args,
                                  struct rueda_rollcall *call,
                                  struct rueda_text *error)
{
    char contact[RUEDA_CONTACT_BYTES];
    const struct rueda_rollcall_settings settings = {
        .fusion_bytes = job->config.fusion_bytes,
        .cache_capacity = (uint32_t)job->config.cache_capacity,
    };
    const struct rueda_rollcall_args roll = {.seat = args->seat,
                                             .settings = settings,
                                             .life = job->contact.life,
                                             .contact = contact,
                                             .sets = job->sets,
                                             .encrypt = job->config.encrypt,
                                             .deadline_ns = args->deadline_ns,
                                             .decide = decide,
                                             .arg = job};
    rueda_status status = open_network(job, args->seat, contact, error);

    if (status == RUEDA_OK)
        status = rueda_rollcall(job->client, &roll, call, error);
    if (status == RUEDA_OK)
        status = heed(job, call->decision, error);
    if (status != RUEDA_OK)
        return status;
    job->config.fusion_bytes = call->settings.fusion_bytes;
    job->config.cache_capacity = (int)call->settings.cache_capacity;
    if (call->topology->host_count > 1 && job->network != NULL) {
        status = listen_to_others(job, args, error);
        if (status != RUEDA_OK)
            return status;
        rueda_network_set_job(job->network, rueda_get_u64(call->nonce),
                              job->config.encrypt);
        rueda_network_mark_inside(job->network, call->topology,
                                  job->formation->rank);
        return rueda_network_locate(job->network, call->topology,
                                    call->contacts, call->contacts_bytes);
    }
    close_network(job);
    if (call->topology->host_count == 1)
        return RUEDA_OK;
    rueda_text_set(error,
                   "the launcher says that all %d ranks are on one host, and "
                   "%d were found (network namespaces count as hosts); set "
                   "RUEDA_STORE and RUEDA_KEY_FILE",
                   call->topology->size, call->topology->host_count);
    return RUEDA_ERR_MISMATCH;
}

/* Find the store, and through it all ranks. Writes how the ranks of this host
 * meet; meeting->job is held in `name`. */
static rueda_status find_all(struct rueda_job *job,
                             const struct rueda_introduce_args *args,
                             struct rueda_meeting *meeting,
                             char name[RUEDA_CONFIG_NAME_BYTES],
                             struct rueda_text *error)
{
    const struct rueda_seat *seat = args->seat;
    struct rueda_rollcall call = {.topology = NULL};
    char nonce[RUEDA_NONCE_TEXT];
    rueda_status status;

    status = rueda_introduce(args, &job->contact, error);
    if (status == RUEDA_OK)
        status = open_client(job, seat, args->deadline_ns, error);
    if (status == RUEDA_OK)
        status = call_together(job, args, &call, error);
    job->formation->topology = call.topology;
    call.topology = NULL;
    rueda_rollcall_fini(&call);
    if (status != RUEDA_OK)
        return status;
    job->formation->row = job->formation->topology->rows[seat->rank];
    status = list_ranks(job);
    /* Keys may serve several jobs, nonces do not. */
    if (job->formation->topology->host_count > 1)
        rueda_object_key(&job->contact.key, call.nonce, sizeof(call.nonce),
                         &job->object_key);
    rueda_nonce_text(call.nonce, nonce);
    snprintf(name, RUEDA_CONFIG_NAME_BYTES, "%s-%d", nonce,
             job->formation->row.host);
    meeting->job = name;
    meeting->title = seat->job;
    meeting->ranks = job->ranks;
    meeting->key = &job->contact.key;
    meeting->rank = job->formation->row.index;
    meeting->size =
        job->formation->topology->hosts[job->formation->row.host].size;
    return status;
}

/* The store has done its duty where all ranks share a segment, which knows who
 * dies. All have heard the roll, or they would not have met. */
static void leave_store(struct rueda_job *job)
{
    rueda_client_close(job->client);
    job->client = NULL;
    rueda_contact_fini(&job->contact);
}

/* ---- Opening ------------------------------------------------------------ */

static rueda_status open_messages(struct rueda_job *job)
{
    /* All ranks are here, and no other process can read the segment. */
    if (!job->object_key.present)
        rueda_object_key(&job->segment->common->key, "", 0, &job->object_key);
    return rueda_formation_open(job->formation);
}

/* Its formation is to be filled in and opened. */
static struct rueda_job *job_new(const struct rueda_config *config, int rank,
                                 int size)
{
    struct rueda_job *job = calloc(1, sizeof(*job));

    if (job == NULL)
        return NULL;
    job->formation = rueda_formation_new(job, rank, size);
    if (job->formation == NULL) {
        free(job);
        return NULL;
    }
    job->config = *config;
    pthread_mutex_init(&job->failure_lock, NULL);
    return job;
}

static void job_free(struct rueda_job *job)
{
    rueda_formation_release(job->formation);
    if (job->threads != NULL)
        job->threads->ops->close(job->threads);
    leave_store(job);
    rueda_store_council_close(job);
    close_network(job);
    free(job->ranks);
    rueda_key_wipe(&job->object_key);
    pthread_mutex_destroy(&job->failure_lock);
    free(job);
}

/* Called in every rank before others see its line. */
static rueda_status prepare(void *arg, struct rueda_segment *segment,
                            struct rueda_text *error)
{
    struct rueda_job *job = arg;
    rueda_status status;

    segment->members[segment->me].rank = job->formation->rank;
    _Static_assert(RUEDA_SEGMENT_SETS_BYTES == RUEDA_SET_WORD_BYTES,
                   "a member has room for its sets");
    memcpy(segment->members[segment->me].sets, job->sets, sizeof(job->sets));
    status = rueda_agreement_prepare(&job->config, segment, error);
    if (status != RUEDA_OK ||
        segment->common->transport != RUEDA_TRANSPORT_TCP ||
        job->network != NULL)
        return status;
    return rueda_network_open_local(&job->config, segment, &job->network,
                                    error);
}

static rueda_status check_host(const struct rueda_job *job,
                               const struct rueda_meeting *meeting,
                               struct rueda_text *error)
{
    if (meeting->size > RUEDA_SEGMENT_MAX) {
        rueda_text_set(error, "a job of %d ranks; up to %d can share a host",
                       meeting->size, RUEDA_SEGMENT_MAX);
        return RUEDA_ERR_LIMIT;
    }
    if (job->config.transport == RUEDA_TRANSPORT_LOOP) {
        rueda_text_set(error,
                       "RUEDA_TRANSPORT is \"loop\", which joins threads "
                       "of one process; take shm or auto");
        return RUEDA_ERR_INVALID;
    }
    return RUEDA_OK;
}

/* The ranks of this host have met. All look at the same lines, and so come to
 * the same end, without another word between them. */
static rueda_status compare_sets(const struct rueda_segment *segment,
                                 struct rueda_text *error)
{
    const struct rueda_member *first = &segment->members[0];

    for (int i = 1; i < segment->size; i++) {
        const struct rueda_member *other = &segment->members[i];

        if (rueda_set_word_is_same(first->sets, other->sets))
            continue;
        rueda_set_word_explain(first->rank, first->sets, other->rank,
                               other->sets, error);
        return RUEDA_ERR_MISMATCH;
    }
    return RUEDA_OK;
}

static rueda_status open_tcp(struct rueda_job *job)
{
    bool is_local = job->formation->topology == NULL ||
                    job->formation->topology->host_count == 1;

    if (job->network == NULL)
        return RUEDA_OK;
    job->network->ops->watch(job->network, wake_by, job);
    if (job->client != NULL)
        wake_by(job, rueda_client_fd(job->client));
    return is_local ? rueda_network_locate_local(job->network, job->segment)
                    : RUEDA_OK;
}

static bool needs_store(const struct rueda_seat *seat)
{
    return seat->introduction != RUEDA_INTRODUCE_NONE &&
           seat->introduction != RUEDA_INTRODUCE_SOCKET;
}

/*
 * Ranks in plain shells have nothing but the name of the job to find each other
 * by. Where that is the default, it stands for one program in one folder, so
 * that two jobs do not take each other's ranks.
 */
static void name_by_program(const struct rueda_seat *seat,
                            struct rueda_meeting *meeting,
                            char name[RUEDA_CONFIG_NAME_BYTES])
{
    char program[2048];

    rueda_process_program(program, sizeof(program));
    snprintf(name, RUEDA_CONFIG_NAME_BYTES, "%.40s-%016llx", seat->job,
             (unsigned long long)rueda_hash(program, strlen(program), 0));
    meeting->job = name;
    meeting->title = seat->job;
    meeting->is_by_program = true;
}

/* Find the others, meet those of this host. */
static rueda_status assemble(struct rueda_job *job,
                             const struct rueda_introduce_args *args,
                             struct rueda_text *error)
{
    const struct rueda_seat *seat = args->seat;
    char name[RUEDA_CONFIG_NAME_BYTES];
    struct rueda_meeting meeting = {
        .rank = seat->rank,
        .size = seat->size,
        .job = seat->job,
        .key = args->key,
        .deadline_ns = args->deadline_ns,
        .inherited = job->config.segment_fd,
        .prepare = prepare,
        .is_over = seat->term > 0 ? is_over : NULL,
        .arg = job,
    };
    rueda_status status = RUEDA_OK;

    place_here(job, seat);
    if (seat->is_job_default && seat->introduction == RUEDA_INTRODUCE_SOCKET)
        name_by_program(seat, &meeting, name);
    if (needs_store(seat))
        status = find_all(job, args, &meeting, name, error);
    place_cross(job, seat);
    if (status == RUEDA_OK)
        status = check_host(job, &meeting, error);
    if (status == RUEDA_OK)
        status = rueda_segment_meet(&meeting, &job->segment, error);
    if (status != RUEDA_OK)
        return status;
    if (job->formation->topology == NULL ||
        job->formation->topology->host_count == 1)
        leave_store(job);
    status = compare_sets(job->segment, error);
    if (status == RUEDA_OK)
        status = open_tcp(job);
    if (status == RUEDA_OK)
        status = open_messages(job);
    if (status != RUEDA_OK) {
        rueda_segment_close(job->segment);
        job->segment = NULL;
    }
    return status;
}

static rueda_status check_servers(const struct rueda_config *config,
                                  const struct rueda_seat *seat,
                                  struct rueda_text *error)
{
    if (config->servers >= seat->size) {
        rueda_text_set(error,
                       "%d of %d ranks are to be servers (RUEDA_SERVERS), and "
                       "at least one has to be a worker",
                       config->servers, seat->size);
        return RUEDA_ERR_INVALID;
    }
    if (config->servers == 0 || seat->worker < 0)
        return RUEDA_OK;
    rueda_text_set(error, "an elastic job has no servers so far; start one of "
                          "a fixed number of ranks, or unset RUEDA_SERVERS");
    return RUEDA_ERR_UNSUPPORTED;
}

/* What all ranks have to say alike: the sets that there are from the start, and
 * which ranks are servers. */
static rueda_status word_sets(struct rueda_job *job, const char *sets, int size)
{
    char text[RUEDA_PATH_BYTES + 40];

    if (job->config.servers == 0)
        return rueda_set_word(sets, size, job->sets);
    snprintf(text, sizeof(text), "%.*s%s%d servers", RUEDA_PATH_BYTES, sets,
             sets[0] != '\0' ? " and " : "", job->config.servers);
    return rueda_set_word(text, size, job->sets);
}

rueda_status rueda_job_open(const struct rueda_config *config,
                            const struct rueda_job_args *args,
                            struct rueda_job **out, struct rueda_text *error)
{
    struct rueda_key key = {.present = false};
    struct rueda_seat seat;
    struct rueda_introduce_args introduction = {
        .seat = &seat,
        .key = &key,
        .keeper = config->store_keeper,
        .questions = rueda_network_questions(config),
        .exchange = args->exchange,
        .exchange_arg = args->exchange_arg,
        .deadline_ns = rueda_clock_ns() + config->start_timeout_ms * 1000000,
    };
    struct rueda_job *job;
    rueda_status status;

    status = rueda_seat_find(&args->query, &seat, error);
    if (status != RUEDA_OK)
        return status;
    rueda_log_set_rank(seat.rank);
    log_info("%s", seat.why.chars);
    if (config->key_file[0] != '\0')
        status = rueda_key_read_file(config->key_file, error, &key);
    else if (config->key_fd >= 0)
        status = rueda_key_read_fd(config->key_fd, error, &key);
    if (status == RUEDA_OK && seat.worker >= 0) {
        status = rueda_rendezvous_take(&seat, &key, error);
        introduction.deadline_ns =
            rueda_clock_ns() + config->start_timeout_ms * 1000000;
        rueda_log_set_rank(seat.rank);
    }
    if (status != RUEDA_OK)
        return status;
    status = check_servers(config, &seat, error);
    if (status != RUEDA_OK)
        return status;
    job = job_new(config, seat.rank, seat.size);
    status = RUEDA_ERR_NOMEM;
    if (job != NULL) {
        status =
            word_sets(job, args->sets != NULL ? args->sets : "", seat.size);
        if (status == RUEDA_OK)
            status = assemble(job, &introduction, error);
        /* Other hosts may have begun to count on us. */
        if (status != RUEDA_OK && job->network != NULL) {
            rueda_failure_tell(job, error->chars);
            rueda_failure_await_told(job);
        }
    }
    rueda_key_wipe(&key);
    if (status != RUEDA_OK) {
        if (job != NULL)
            job_free(job);
        return status;
    }
    log_info("joined job \"%s\" as rank %d of %d; messages go by %s", seat.job,
             seat.rank, seat.size, rueda_links_name(job->formation));
    *out = job;
    return RUEDA_OK;
}

/* A rank that is a thread. */
static void place_thread(struct rueda_job *job, struct rueda_segment *segment,
                         struct rueda_hub *hub)
{
    struct rueda_formation *formation = job->formation;

    formation->row = (struct rueda_topology_row){.index = formation->rank,
                                                 .local_rank = formation->rank,
                                                 .local_size = formation->size,
                                                 .cross_size = 1};
    job->segment = segment;
    job->threads = hub;
}

static rueda_status check_threads(const struct rueda_config *config, int size,
                                  struct rueda_text *error)
{
    if (size < 1 || size > RUEDA_SEGMENT_MAX) {
        rueda_text_set(error, "%d ranks as threads; 1 to %d can share memory",
                       size, RUEDA_SEGMENT_MAX);
        return RUEDA_ERR_LIMIT;
    }
    if (config->servers >= size) {
        rueda_text_set(error, "%d of %d ranks are to be servers",
                       config->servers, size);
        return RUEDA_ERR_INVALID;
    }
    return RUEDA_OK;
}

/* A job takes its hub, and lets go of it with all else. The segments stay the
 * caller's on failure. */
static rueda_status open_thread_jobs(const struct rueda_config *config,
                                     int size, struct rueda_segment **segments,
                                     struct rueda_hub **hubs,
                                     struct rueda_job **out)
{
    rueda_status status = rueda_links_between_threads(size, hubs);
    int made = 0;

    if (status != RUEDA_OK)
        return status;
    while (made < size && status == RUEDA_OK) {
        status = RUEDA_ERR_NOMEM;
        out[made] = job_new(config, made, size);
        if (out[made] == NULL)
            break;
        place_thread(out[made], segments[made], hubs[made]);
        status = open_messages(out[made]);
        made++;
    }
    if (status == RUEDA_OK)
        return RUEDA_OK;
    for (int i = 0; i < made; i++)
        job_free(out[i]);
    for (int i = made; i < size; i++)
        hubs[i]->ops->close(hubs[i]);
    return status;
}

rueda_status rueda_job_open_threads(const struct rueda_config *config, int size,
                                    struct rueda_job **out,
                                    struct rueda_text *error)
{
    struct rueda_segment **segments;
    struct rueda_hub **hubs;
    rueda_status status = check_threads(config, size, error);

    if (status != RUEDA_OK)
        return status;
    segments = calloc((size_t)size, sizeof(struct rueda_segment *));
    hubs = calloc((size_t)size, sizeof(struct rueda_hub *));
    status = RUEDA_ERR_NOMEM;
    if (segments == NULL || hubs == NULL)
        goto out;
    status = rueda_segment_threads(size, segments, error);
    if (status != RUEDA_OK)
        goto out;
    for (int i = 0; i < size && status == RUEDA_OK; i++)
        status = rueda_agreement_prepare(config, segments[i], error);
    if (status == RUEDA_OK)
        status = open_thread_jobs(config, size, segments, hubs, out);
    for (int i = 0; i < size && status != RUEDA_OK; i++)
        rueda_segment_close(segments[i]);
out:
    free(hubs);
    free(segments);
    return status;
}

const char *rueda_job_host(const struct rueda_job *job, int rank)
{
    const struct rueda_formation *formation = job->formation;

    if (rank < 0 || rank >= formation->size)
        return "?";
    if (formation->topology != NULL)
        return formation->topology->hosts[rueda_formation_host(formation, rank)]
            .name;
    if (job->segment == NULL)
        return "?"; /* the start has not come so far */
    return job->segment->members[formation->members[rank]].host;
}

bool rueda_job_is_certain(const struct rueda_job *job, int rank)
{
    return rank >= 0 && rank < job->formation->size && job->network != NULL &&
           job->network->ops->why(job->network, job->formation->seats[rank]) !=
               NULL;
}

void rueda_job_why_lost(const struct rueda_job *job, int rank,
                        struct rueda_text *words)
{
    const char *host = rueda_job_host(job, rank);
    const int seat =
        rueda_job_is_certain(job, rank) ? job->formation->seats[rank] : -1;

    if (seat >= 0 && job->network->ops->is_silent(job->network, seat))
        rueda_text_set(words,
                       "host %s has been silent for %.1f s: rank %d (on host "
                       "%s) is lost",
                       host, (double)job->config.host_timeout_ms / 1e3, rank,
                       host);
    else if (seat >= 0)
        rueda_text_set(words, "rank %d cannot reach rank %d (on host %s): %s",
                       job->formation->rank, rank, host,
                       job->network->ops->why(job->network, seat));
    else
        rueda_text_set(words,
                       "the connection with rank %d (on host %s) is lost", rank,
                       host);
}

void rueda_job_hang_up(struct rueda_job *job, const char *words)
{
    /* To others the end of a rank that they go on without is no failure. */
    if (job->network != NULL)
        job->network->ops->hang_up(job->network, job->is_removed ? "" : words);
}

void rueda_job_follow(struct rueda_job *job, struct rueda_formation *next)
{
    rueda_formation_release(job->formation);
    job->formation = next;
}

void rueda_job_close(struct rueda_job *job)
{
    /* First, so that a rank that misses an endpoint finds out why. */
    rueda_segment_leave(job->segment);
    rueda_store_council_leave(job);
    rueda_formation_release(job->formation);
    job->formation = NULL;
    if (job->threads != NULL)
        job->threads->ops->hang_up(job->threads, "");
    /* Wakes the others, which then find everything closed. */
    rueda_segment_close(job->segment);
    job_free(job);
}

void rueda_job_forked(struct rueda_job *job)
{
    rueda_segment_forked(job->segment);
    if (job->network != NULL)
        job->network->ops->after_fork(job->network);
}
