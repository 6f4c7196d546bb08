/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the seat: the nearest launcher that has set its variables, the
 * numbers that it gives, and how the ranks will be introduced. Everything that
 * was found is also explained in words, for `rueda doctor` and the log.
 */
#include "job/seat.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "job/seat_launchers.h"

/* ---- Names -------------------------------------------------------------- */

const char *rueda_launcher_str(rueda_launcher launcher)
{
    static const char *const names[] = {
#define X(name, text) text,
        RUEDA_LAUNCHER_MAP(X)
#undef X
    };

    if ((unsigned)launcher >= RUEDA_LAUNCHER_COUNT)
        return "unknown";
    return names[launcher];
}

const char *rueda_introduction_str(rueda_introduction introduction)
{
    static const char *const names[] = {
#define X(name, text) text,
        RUEDA_INTRODUCTION_MAP(X)
#undef X
    };

    if ((unsigned)introduction >= RUEDA_INTRODUCE_COUNT)
        return "unknown";
    return names[introduction];
}

/* ---- Numbers ------------------------------------------------------------ */

/* Add "A is set (3), B is set (4)". */
static void add_present(const struct rueda_seat_query *query,
                        const struct rueda_launcher_row *row,
                        struct rueda_text *words)
{
    const char *comma = "";
    char buf[RUEDA_SEAT_TEXT];

    for (int i = -1; i < RUEDA_SEAT_NUMBERS; i++) {
        const char *name = row->witness;
        const char *value = NULL;

        if (i >= 0) {
            name = rueda_launcher_name(query, row, i);
            value = rueda_launcher_value(query, row, i, buf);
        } else if (name != NULL) {
            value = rueda_seat_variable(query, name);
        }
        if (value == NULL)
            continue;
        rueda_text_add(words, "%s%s is set (%.30s)", comma, name, value);
        comma = ", ";
    }
}

/* Both rank and size have to be there. Says what is and what is not. */
static rueda_status check_both(const struct rueda_seat_query *query,
                               const struct rueda_launcher_row *row,
                               struct rueda_text *error)
{
    struct rueda_text words = {{0}};
    const char *missing[3];
    char buf[RUEDA_SEAT_TEXT];
    int count = 0;

    if (rueda_launcher_value(query, row, RUEDA_SEAT_RANK, buf) == NULL)
        missing[count++] = row->names[RUEDA_SEAT_RANK];
    if (rueda_launcher_value(query, row, RUEDA_SEAT_SIZE, buf) == NULL) {
        missing[count++] = row->names[RUEDA_SEAT_SIZE];
        if (row->other_size != NULL)
            missing[count++] = row->other_size;
    }
    if (count == 0)
        return RUEDA_OK;
    rueda_text_add(&words, "%s", row->owner);
    add_present(query, row, &words);
    for (int i = 0; i < count; i++)
        rueda_text_add(&words, " and %s", missing[i]);
    rueda_text_add(&words, "%s not; %s", count == 1 ? " is" : " are",
                   row->remedy);
    rueda_text_set(error, "%s", words.chars);
    return RUEDA_ERR_INVALID;
}

/* Rank, size and the local numbers, as the launcher's variables have them. */
static rueda_status read_numbers(const struct rueda_seat_query *query,
                                 const struct rueda_launcher_row *row,
                                 int *numbers, struct rueda_text *error)
{
    char buf[RUEDA_SEAT_TEXT];

    for (int i = 0; i < RUEDA_SEAT_NUMBERS; i++) {
        const char *value = rueda_launcher_value(query, row, i, buf);

        numbers[i] = -1;
        if (i == RUEDA_SEAT_LOCAL_SIZE && row->local_size != NULL) {
            numbers[i] = row->local_size(query);
        } else if (value != NULL && !rueda_parse_int(value, &numbers[i])) {
            rueda_text_set(error,
                           "%s%s is \"%.60s\"; it takes whole numbers from 0 "
                           "to %d",
                           row->owner, rueda_launcher_name(query, row, i),
                           value, INT32_MAX);
            return RUEDA_ERR_INVALID;
        }
    }
    return RUEDA_OK;
}

/* Numbers of the job itself. */
static rueda_status check_rank(const char *const *names, const int *numbers,
                               const char *owner, struct rueda_text *error)
{
    int rank = numbers[RUEDA_SEAT_RANK];
    int size = numbers[RUEDA_SEAT_SIZE];

    if (size == 0) {
        rueda_text_set(error, "%s%s is 0; a job has at least 1 rank", owner,
                       names[RUEDA_SEAT_SIZE]);
        return RUEDA_ERR_INVALID;
    }
    if (rank >= size) {
        rueda_text_set(error,
                       "%s%s is %d and %s is %d: rank %d in a job of %d; "
                       "ranks go from 0 to %d",
                       owner, names[RUEDA_SEAT_RANK], rank,
                       names[RUEDA_SEAT_SIZE], size, rank, size, size - 1);
        return RUEDA_ERR_INVALID;
    }
    return RUEDA_OK;
}

/* A part of the job, local or cross: neither number needs to be said. */
static rueda_status check_part(const char *const *names, const int *numbers,
                               int first, const char *owner,
                               struct rueda_text *error)
{
    int rank = numbers[first];
    int size = numbers[first + 1];
    int all = numbers[RUEDA_SEAT_SIZE];

    if (size == 0 || size > all) {
        rueda_text_set(
            error, "%s%s is %d and %s is %d; the former goes from 1 to %d",
            owner, names[first + 1], size, names[RUEDA_SEAT_SIZE], all, all);
        return RUEDA_ERR_INVALID;
    }
    if (rank >= (size > 0 ? size : all)) {
        rueda_text_set(error,
                       "%s%s is %d and %s is %d; the former goes from 0 to %d",
                       owner, names[first], rank,
                       names[size > 0 ? first + 1 : RUEDA_SEAT_SIZE],
                       size > 0 ? size : all, (size > 0 ? size : all) - 1);
        return RUEDA_ERR_INVALID;
    }
    return RUEDA_OK;
}

static rueda_status sit_down(const struct rueda_seat_query *query,
                             const struct rueda_launcher_row *row,
                             struct rueda_seat *seat, struct rueda_text *error)
{
    const char *names[RUEDA_SEAT_NUMBERS];
    int numbers[RUEDA_SEAT_NUMBERS];
    rueda_status status = check_both(query, row, error);

    for (int i = 0; i < RUEDA_SEAT_NUMBERS; i++)
        names[i] = rueda_launcher_name(query, row, i);
    if (status == RUEDA_OK)
        status = read_numbers(query, row, numbers, error);
    if (status == RUEDA_OK)
        status = check_rank(names, numbers, row->owner, error);
    for (int i = RUEDA_SEAT_LOCAL_RANK; i < RUEDA_SEAT_NUMBERS; i += 2)
        if (status == RUEDA_OK)
            status = check_part(names, numbers, i, row->owner, error);
    if (status != RUEDA_OK)
        return status;
    seat->launcher = row->launcher;
    seat->rank = numbers[RUEDA_SEAT_RANK];
    seat->size = numbers[RUEDA_SEAT_SIZE];
    seat->local_rank = numbers[RUEDA_SEAT_LOCAL_RANK];
    seat->local_size = numbers[RUEDA_SEAT_LOCAL_SIZE];
    seat->cross_rank = numbers[RUEDA_SEAT_CROSS_RANK];
    seat->cross_size = numbers[RUEDA_SEAT_CROSS_SIZE];
    rueda_text_add(&seat->why, "%s%s and %s say rank %d of %d", row->owner,
                   names[RUEDA_SEAT_RANK], names[RUEDA_SEAT_SIZE], seat->rank,
                   seat->size);
    return RUEDA_OK;
}

/* ---- Names of the job and of the store ---------------------------------- */

/* The query's word, else the variable's, else NULL. */
static const char *chosen(const struct rueda_seat_query *query,
                          const char *word, const char *name)
{
    if (word != NULL && word[0] != '\0')
        return word;
    return rueda_seat_variable(query, name);
}

/* FNV-1a: names that were cut stay apart. */
static uint64_t hash_of(const char *const *words, int count)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (int i = 0; i < count; i++)
        for (const char *at = words[i]; *at != '\0'; at++)
            hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    return hash;
}

/* The name of the job where no person has given one: from the ids that the
 * launcher gives to its ranks, else from their common parent. */
static void derive_job(const struct rueda_seat_query *query,
                       const struct rueda_launcher_row *row, char *out)
{
    const char *words[5] = {row->job, "", "", "", ""};
    const char *other = NULL;
    char parent[16];
    int length;

    for (int i = 0; i < 2 && row->parts[i] != NULL; i++) {
        const char *value = rueda_seat_variable(query, row->parts[i]);

        if (value == NULL)
            continue;
        words[1 + 2 * i] = i == 0 ? "-" : row->joint;
        words[2 + 2 * i] = value;
    }
    snprintf(parent, sizeof(parent), "%d", query->parent);
    if (row->has_parent)
        other = parent;
    else if (row->other_part != NULL)
        other = rueda_seat_variable(query, row->other_part);
    if (other != NULL && words[2][0] == '\0' && words[4][0] == '\0') {
        words[1] = "-";
        words[2] = other;
    }
    length = snprintf(out, RUEDA_CONFIG_NAME_BYTES, "%s%s%s%s%s", words[0],
                      words[1], words[2], words[3], words[4]);
    if (length < 0 || length >= RUEDA_CONFIG_NAME_BYTES)
        snprintf(out + RUEDA_CONFIG_NAME_BYTES - 18, 18, "-%016llx",
                 (unsigned long long)hash_of(words, 5));
}

/* What the caller or RUEDA_JOB says; else as the launcher has it. */
static rueda_status name_job(const struct rueda_seat_query *query,
                             const struct rueda_launcher_row *row,
                             struct rueda_seat *seat, struct rueda_text *error)
{
    const char *job = chosen(query, query->job, "RUEDA_JOB");

    if (job == NULL && row != NULL) {
        derive_job(query, row, seat->job);
        seat->is_job_default = row->parts[0] == NULL && !row->has_parent &&
                               row->other_part == NULL;
        return RUEDA_OK;
    }
    if (job == NULL)
        job = "rueda";
    if (strlen(job) >= sizeof(seat->job)) {
        rueda_text_set(error,
                       "the job's name (RUEDA_JOB) is \"%.80s\", over %d "
                       "characters",
                       job, RUEDA_CONFIG_NAME_BYTES - 1);
        return RUEDA_ERR_INVALID;
    }
    memcpy(seat->job, job, strlen(job) + 1);
    return RUEDA_OK;
}

/* Check "host:port" here, so that the message names the variable. */
static rueda_status take_store(const char *store, struct rueda_seat *seat,
                               struct rueda_text *error)
{
    const char *colon = strrchr(store, ':');
    uint64_t port;

    if (strlen(store) >= sizeof(seat->store) || colon == NULL ||
        colon == store || !rueda_parse_whole(colon + 1, UINT16_MAX, &port) ||
        port == 0) {
        rueda_text_set(error,
                       "the store (RUEDA_STORE) is \"%.80s\"; it takes "
                       "host:port, up to %d characters",
                       store, RUEDA_CONFIG_STORE_BYTES - 1);
        return RUEDA_ERR_INVALID;
    }
    memcpy(seat->store, store, strlen(store) + 1);
    seat->introduction = RUEDA_INTRODUCE_STORE;
    return RUEDA_OK;
}

static bool is_launchers(rueda_introduction introduction)
{
    return introduction == RUEDA_INTRODUCE_PMIX ||
           introduction == RUEDA_INTRODUCE_PMI1 ||
           introduction == RUEDA_INTRODUCE_PMI2;
}

/* The launcher's exchange is MPI's. */
static rueda_status introduce_beside_mpi(const struct rueda_seat_query *query,
                                         struct rueda_seat *seat,
                                         struct rueda_text *error)
{
    if (!rueda_launcher_is_one_host(query, seat)) {
        rueda_text_set(error,
                       "an MPI library is loaded in this process, and the "
                       "launcher introduces the ranks of MPI or ours, not "
                       "both. The %d ranks are not known to be on one host: "
                       "%s, or hand rueda_init() an exchange that uses "
                       "MPI_Bcast",
                       seat->size, RUEDA_SEAT_STORE_ADVICE);
        return RUEDA_ERR_INVALID;
    }
    seat->introduction = RUEDA_INTRODUCE_SOCKET;
    rueda_text_add(&seat->why, "; an MPI library is loaded in this process, so "
                               "the launcher's own exchange is left to it");
    return RUEDA_OK;
}

/* How the ranks will meet: what the caller or the user says comes before what
 * the launcher offers. */
static rueda_status introduce(const struct rueda_seat_query *query,
                              const struct rueda_launcher_row *row,
                              struct rueda_seat *seat, struct rueda_text *error)
{
    const char *store = chosen(query, query->store, "RUEDA_STORE");
    rueda_status status;

    seat->introduction = RUEDA_INTRODUCE_NONE;
    if (row == NULL || seat->size == 1)
        return RUEDA_OK;
    if (query->has_exchange) {
        seat->introduction = RUEDA_INTRODUCE_CALLER;
        return RUEDA_OK;
    }
    if (store != NULL)
        return take_store(store, seat, error);
    status = row->introduce(query, row, seat, error);
    if (status == RUEDA_OK && query->has_mpi &&
        is_launchers(seat->introduction))
        status = introduce_beside_mpi(query, seat, error);
    return status;
}

/* ---- Why ---------------------------------------------------------------- */

/* List launchers whose variables are set, but which did not start us. */
static void add_others(const struct rueda_seat_query *query,
                       const struct rueda_launcher_row *mine,
                       struct rueda_text *why)
{
    int count;
    const struct rueda_launcher_row *rows = rueda_launcher_rows(&count);

    for (const struct rueda_launcher_row *row = rows; row < rows + count;
         row++) {
        const char *name = rueda_launcher_trace(query, row);

        if (name == NULL || row == mine)
            continue;
        if (mine != NULL && mine < row)
            rueda_text_add(why, "; %s is there too, but %s", name, mine->claim);
        else if (row->doubt != NULL)
            rueda_text_add(why, "; %s is there, but %s", name, row->doubt);
    }
}

/* How the ranks meet, in words. */
static void add_introduction(const struct rueda_seat *seat,
                             struct rueda_text *why)
{
    switch (seat->introduction) {
    case RUEDA_INTRODUCE_SOCKET:
        rueda_text_add(why, "; the ranks meet on this host, at socket \"%s\"",
                       seat->job);
        break;
    case RUEDA_INTRODUCE_STORE:
        rueda_text_add(why, "; the ranks meet at the store %s", seat->store);
        break;
    case RUEDA_INTRODUCE_PMIX:
        rueda_text_add(why, "; the launcher introduces the ranks by PMIx");
        break;
    case RUEDA_INTRODUCE_PMI1:
        rueda_text_add(why, "; the launcher introduces the ranks by PMI-1");
        break;
    case RUEDA_INTRODUCE_PMI2:
        rueda_text_add(why, "; the launcher introduces the ranks by PMI-2");
        break;
    case RUEDA_INTRODUCE_CALLER:
        rueda_text_add(why, "; the caller introduces the ranks");
        break;
    case RUEDA_INTRODUCE_NONE:
    case RUEDA_INTRODUCE_COUNT:
        rueda_text_add(why, "; there is no other rank to be introduced to");
        break;
    }
}

/* ---- Elastic jobs ------------------------------------------------------- */

/* The launcher has numbered the processes of an elastic job, and each of them
 * asks it for a place. */
static rueda_status find_worker(const struct rueda_seat_query *query,
                                const struct rueda_launcher_row *row,
                                struct rueda_seat *seat,
                                struct rueda_text *error)
{
    const char *number = rueda_seat_variable(query, "RUEDA_ELASTIC_WORKER");
    const char *store = chosen(query, query->store, "RUEDA_STORE");

    if (number == NULL || row == NULL ||
        row->launcher != RUEDA_LAUNCHER_RUEDA || query->has_exchange)
        return RUEDA_OK;
    if (!rueda_parse_int(number, &seat->worker) || seat->worker < 0 ||
        store == NULL) {
        rueda_text_set(error,
                       "RUEDA_ELASTIC_WORKER is \"%.40s\"%s; only ruedarun "
                       "sets it",
                       number, store == NULL ? ", and no RUEDA_STORE" : "");
        return RUEDA_ERR_INVALID;
    }
    return take_store(store, seat, error);
}

/* ---- The seat ----------------------------------------------------------- */

static void sit_alone(struct rueda_seat *seat)
{
    seat->launcher = RUEDA_LAUNCHER_NONE;
    seat->size = 1;
    seat->local_size = 1;
    seat->cross_size = 1;
    rueda_text_add(&seat->why, "no launcher says a rank: a job of one");
}

static const struct rueda_launcher_row *
nearest(const struct rueda_seat_query *query)
{
    int count;
    const struct rueda_launcher_row *rows = rueda_launcher_rows(&count);

    for (int i = 0; i < count; i++)
        if (rueda_launcher_is_here(query, &rows[i]))
            return &rows[i];
    return NULL;
}

rueda_status rueda_seat_find(const struct rueda_seat_query *query,
                             struct rueda_seat *out, struct rueda_text *error)
{
    const struct rueda_launcher_row *row = nearest(query);
    rueda_status status = RUEDA_OK;
    struct rueda_seat seat;

    memset(&seat, 0, sizeof(seat));
    seat.worker = -1;
    if (row == NULL)
        sit_alone(&seat);
    else
        status = sit_down(query, row, &seat, error);
    if (status == RUEDA_OK)
        status = name_job(query, row, &seat, error);
    if (status == RUEDA_OK)
        status = introduce(query, row, &seat, error);
    if (status == RUEDA_OK)
        status = find_worker(query, row, &seat, error);
    if (status != RUEDA_OK)
        return status;
    add_others(query, row, &seat.why);
    add_introduction(&seat, &seat.why);
    *out = seat;
    return RUEDA_OK;
}
