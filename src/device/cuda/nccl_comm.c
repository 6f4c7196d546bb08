/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The communicator of a place: its members find out whether all of them can use
 * NCCL, make it, and tell each other whether they have it (nccl_state.h has the
 * steps).
 *
 *     what a member knows        what all members decide from the cards
 *     its library, GPU, setting  CARDS:   the same version, no shared GPU
 *     the first member's id      TELL_ID: has it been made?
 *     its communicator, or none  VERDICT: have all of them theirs?
 *
 * What a member decides depends only on what all have told, so all decide
 * alike: either each of them uses NCCL from here on, or none does. Nothing here
 * blocks: calls that would are chores.
 */
#define RUEDA_LOG_TAG "device"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/cuda/nccl_state.h"
#include "os/clock.h"

/* ---- Life ------------------------------------------------------------- */

struct rueda_nccl *rueda_nccl_new(const struct rueda_config *config)
{
    struct rueda_nccl *nccl = calloc(1, sizeof(*nccl));

    if (nccl != NULL)
        nccl->config = config;
    return nccl;
}

void rueda_nccl_free(struct rueda_cuda *cuda)
{
    struct rueda_cuda_scope scope;

    if (cuda->nccl == NULL)
        return;
    rueda_cuda_begin(&cuda->super, NULL, &scope);
    if (cuda->nccl->stream != NULL && scope.result == RUEDA_CUDA_SUCCESS)
        cuda->driver.stream_destroy(cuda->nccl->stream);
    rueda_cuda_end(&scope, RUEDA_CUDA_SUCCESS, "cuStreamDestroy");
    free(cuda->nccl);
    cuda->nccl = NULL;
}

struct rueda_nccl_comm *rueda_nccl_find(const struct rueda_place *place)
{
    struct rueda_nccl_comm *self = rueda_cuda_of(place->device)->nccl->comms;

    while (self != NULL && self->place != place)
        self = self->next;
    return self;
}

struct rueda_nccl_comm *rueda_nccl_need(struct rueda_task *task)
{
    struct rueda_nccl *nccl = rueda_cuda_of(task->place->device)->nccl;
    struct rueda_nccl_comm *self = rueda_nccl_find(task->place);
    struct rueda_nccl_report *reports;

    if (self != NULL)
        return self;
    self = calloc(1, sizeof(*self));
    if (self == NULL)
        return NULL;
    reports = calloc((size_t)task->place->mesh->size, sizeof(*reports));
    if (reports == NULL) {
        free(self);
        return NULL;
    }
    self->talk.entries = (char *)reports;
    self->place = task->place;
    self->tag_set = task->tag.set;
    self->next = nccl->comms;
    nccl->comms = self;
    return self;
}

rueda_status rueda_nccl_fail(struct rueda_nccl_comm *self)
{
    struct rueda_text words = {{0}};

    rueda_text_set(&words, "GPU %d: %s", rueda_nccl_cuda(self)->number,
                   self->words.chars);
    log_error("%s", words.chars);
    rueda_cuda_keep(rueda_nccl_cuda(self), &words);
    return RUEDA_ERR_IO;
}

void rueda_nccl_stop(struct rueda_nccl_comm *self, bool is_gentle)
{
    void *comm = self->comm;

    self->comm = NULL;
    self->turn.step = RUEDA_NCCL_OUT;
    rueda_nccl_chore_drop(self->chore);
    self->chore = NULL;
    rueda_nccl_end_comm(rueda_nccl_cuda(self), comm, is_gentle);
}

/* ---- What this member tells ------------------------------------------- */

static struct rueda_nccl_report report_of(const struct rueda_nccl_comm *self,
                                          bool can)
{
    struct rueda_cuda *cuda = rueda_nccl_cuda(self);
    struct rueda_nccl_report report;

    memset(&report, 0, sizeof(report));
    report.can = can;
    report.member = self->place->mesh->rank;
    report.choice = (int32_t)cuda->nccl->config->nccl;
    report.version = cuda->nccl->lib.version;
    report.id = self->id;
    cuda->driver.device_uuid(report.uuid, cuda->ordinal);
    if (!can)
        snprintf(report.words, sizeof(report.words), "%.*s",
                 (int)sizeof(report.words) - 1, self->words.chars);
    return report;
}

static void tell(struct rueda_nccl_comm *self, rueda_nccl_step step, bool can)
{
    const struct rueda_nccl_report report = report_of(self, can);

    self->step = step;
    rueda_nccl_talk_begin(&self->talk, &report, sizeof(report));
}

static const struct rueda_nccl_report *
report_from(const struct rueda_nccl_comm *self, int member)
{
    return rueda_nccl_talk_entry(&self->talk, self->place->mesh, member);
}

/* Bytes of another member. */
static void quote(const struct rueda_nccl_report *report,
                  struct rueda_text *out)
{
    rueda_text_add(out, "member %d: %.*s", report->member,
                   (int)sizeof(report->words) - 1, report->words);
    rueda_text_clean(out);
}

/* ---- What follows from what all have told ----------------------------- */

/* Do all of them want it whatever it takes? */
static bool is_forced(const struct rueda_nccl_comm *self)
{
    for (int i = 0; i < self->place->mesh->size; i++)
        if (report_from(self, i)->choice != (int32_t)RUEDA_NCCL_ALWAYS)
            return false;
    return true;
}

/* The first member that cannot, or -1. */
static int find_unable(const struct rueda_nccl_comm *self)
{
    for (int i = 0; i < self->place->mesh->size; i++)
        if (report_from(self, i)->can == 0)
            return i;
    return -1;
}

/* Two members with one GPU. */
static bool find_shared(const struct rueda_nccl_comm *self, int *out_a,
                        int *out_b)
{
    const int size = self->place->mesh->size;

    for (int a = 0; a < size; a++)
        for (int b = a + 1; b < size; b++)
            if (memcmp(report_from(self, a)->uuid, report_from(self, b)->uuid,
                       sizeof(report_from(self, a)->uuid)) == 0) {
                *out_a = a;
                *out_b = b;
                return true;
            }
    return false;
}

/* Why they cannot, as it follows from their reports; false: they can. */
static bool find_reason(const struct rueda_nccl_comm *self,
                        struct rueda_text *why)
{
    const struct rueda_nccl_report *mine = report_from(self, 0);
    const int unable = find_unable(self);
    int a;
    int b;

    if (unable >= 0) {
        quote(report_from(self, unable), why);
        return true;
    }
    for (int i = 0; i < self->place->mesh->size; i++) {
        const struct rueda_nccl_report *report = report_from(self, i);

        if (report->version != mine->version) {
            rueda_text_set(why,
                           "members 0 and %d have different versions of NCCL, "
                           "%d and %d",
                           i, mine->version, report->version);
            return true;
        }
    }
    if (is_forced(self) || !find_shared(self, &a, &b))
        return false;
    rueda_text_set(why,
                   "members %d and %d share a GPU; RUEDA_NCCL=always uses NCCL "
                   "all the same, if each rank has its own NCCL_HOSTID",
                   a, b);
    return true;
}

/* For good. What was asked for whatever it takes fails, on all members. */
static rueda_status refuse(struct rueda_nccl_comm *self,
                           const struct rueda_text *why, bool is_odd)
{
    const bool is_error = is_forced(self);

    self->step = RUEDA_NCCL_REFUSED;
    rueda_nccl_turn_end(self);
    rueda_nccl_stop(self, false);
    self->words = (struct rueda_text){{0}};
    rueda_text_set(&self->words, "NCCL cannot be used between %d ranks: %s",
                   self->place->mesh->size, why->chars);
    if (is_error)
        return rueda_nccl_fail(self);
    if (is_odd)
        log_warn("%s; tensors on GPUs go another way", self->words.chars);
    else
        log_debug("%s; tensors on GPUs go another way", self->words.chars);
    return RUEDA_OK;
}

/* ---- Steps ------------------------------------------------------------ */

static rueda_status begin_chore(struct rueda_nccl_comm *self,
                                void (*run)(struct rueda_nccl_chore *self))
{
    self->chore = rueda_nccl_chore_new(rueda_nccl_cuda(self), run);
    if (self->chore == NULL)
        return RUEDA_ERR_NOMEM;
    self->chore->id = self->id;
    self->chore->size = self->place->mesh->size;
    self->chore->rank = self->place->mesh->rank;
    self->since_ns = rueda_clock_ns();
    rueda_nccl_chore_start(self->chore);
    return RUEDA_OK;
}

/* Once for a GPU; later communicators take the result. A member that must not
 * use NCCL says so and does not load it. */
static rueda_status open_library(struct rueda_nccl_comm *self)
{
    struct rueda_nccl *nccl = rueda_nccl_cuda(self)->nccl;

    if (nccl->config->nccl == RUEDA_NCCL_NEVER) {
        rueda_text_set(&self->words, "RUEDA_NCCL is never");
        tell(self, RUEDA_NCCL_REPORTS, false);
        return RUEDA_OK;
    }
    if (!nccl->is_tried && self->chore == NULL)
        return begin_chore(self, rueda_nccl_chore_open) == RUEDA_OK
                   ? RUEDA_IN_PROGRESS
                   : RUEDA_ERR_NOMEM;
    if (self->chore != NULL && !rueda_nccl_chore_is_done(self->chore))
        return RUEDA_IN_PROGRESS;
    if (self->chore != NULL) {
        nccl->is_tried = true;
        nccl->status = self->chore->status;
        nccl->words = self->chore->error;
        nccl->lib = self->chore->lib;
        rueda_nccl_chore_drop(self->chore);
        self->chore = NULL;
    }
    self->words = nccl->words;
    tell(self, RUEDA_NCCL_REPORTS, nccl->status == RUEDA_OK);
    return RUEDA_OK;
}

static rueda_status hear_cards(struct rueda_nccl_comm *self,
                               struct rueda_task *task)
{
    struct rueda_text why = {{0}};

    (void)task;
    if (find_reason(self, &why))
        return refuse(self, &why, false);
    self->step = RUEDA_NCCL_ID;
    if (self->place->mesh->rank == 0)
        return begin_chore(self, rueda_nccl_chore_id);
    tell(self, RUEDA_NCCL_TELL_ID, true);
    return RUEDA_OK;
}

/* The first member's. */
static rueda_status take_id(struct rueda_nccl_comm *self)
{
    bool can;

    if (!rueda_nccl_chore_is_done(self->chore))
        return RUEDA_IN_PROGRESS;
    can = self->chore->status == RUEDA_OK;
    self->id = self->chore->id;
    self->words = self->chore->error;
    rueda_nccl_chore_drop(self->chore);
    self->chore = NULL;
    tell(self, RUEDA_NCCL_TELL_ID, can);
    return RUEDA_OK;
}

/* The call that starts it, where NCCL has one that does not block. */
static rueda_status join_at_once(struct rueda_nccl_comm *self)
{
    const struct rueda_device *device = self->place->device;
    const struct rueda_nccl_lib *lib = &rueda_nccl_cuda(self)->nccl->lib;
    const struct rueda_mesh *mesh = self->place->mesh;
    struct rueda_nccl_config config = {
        .size = sizeof(config),
        .magic = RUEDA_NCCL_CONFIG_MAGIC,
        .version = RUEDA_NCCL_CONFIG_VERSION,
        .blocking = 0,
    };
    rueda_nccl_result result = RUEDA_NCCL_CUDA_ERROR;
    struct rueda_cuda_scope scope;

    rueda_cuda_begin(device, NULL, &scope);
    if (scope.result == RUEDA_CUDA_SUCCESS)
        result = lib->comm_init_config(&self->comm, mesh->size, self->id,
                                       mesh->rank, &config);
    rueda_cuda_end(&scope, scope.result, "ncclCommInitRankConfig");
    self->since_ns = rueda_clock_ns();
    if (result == RUEDA_NCCL_SUCCESS || result == RUEDA_NCCL_IN_PROGRESS)
        return RUEDA_OK;
    rueda_nccl_explain(lib, NULL, result, "ncclCommInitRankConfig",
                       &self->words);
    tell(self, RUEDA_NCCL_RESULT, false);
    return RUEDA_OK;
}

static rueda_status hear_id(struct rueda_nccl_comm *self,
                            struct rueda_task *task)
{
    struct rueda_text why = {{0}};

    (void)task;
    if (report_from(self, 0)->can == 0) {
        quote(report_from(self, 0), &why);
        return refuse(self, &why, true);
    }
    self->id = report_from(self, 0)->id;
    self->words = (struct rueda_text){{0}};
    self->step = RUEDA_NCCL_LINE;
    rueda_nccl_turn_begin(self);
    return RUEDA_OK;
}

/* All launches of this rank must have ended: NCCL allocates memory, which waits
 * for what runs on the GPU (nccl_turn.c). */
static rueda_status begin_join(struct rueda_nccl_comm *self,
                               struct rueda_task *task)
{
    const rueda_status status = rueda_nccl_turn_wait(self, task);

    if (status != RUEDA_OK)
        return status;
    if (rueda_nccl_cuda(self)->nccl->running > 0)
        return RUEDA_IN_PROGRESS;
    self->step = RUEDA_NCCL_JOIN;
    rueda_nccl_talk_listen(&self->talk, task, sizeof(struct rueda_nccl_report));
    if (rueda_nccl_cuda(self)->nccl->lib.comm_init_config != NULL)
        return join_at_once(self);
    return begin_chore(self, rueda_nccl_chore_join);
}

/* RUEDA_NCCL_IN_PROGRESS, or how it ended. */
static rueda_nccl_result ask_join(struct rueda_nccl_comm *self)
{
    const struct rueda_nccl_lib *lib = &rueda_nccl_cuda(self)->nccl->lib;
    rueda_nccl_result result = RUEDA_NCCL_SUCCESS;

    if (self->chore != NULL) {
        if (!rueda_nccl_chore_is_done(self->chore))
            return RUEDA_NCCL_IN_PROGRESS;
        self->comm = self->chore->comm;
        self->chore->comm = NULL;
        self->words = self->chore->error;
        result = self->chore->status == RUEDA_OK ? RUEDA_NCCL_SUCCESS
                                                 : RUEDA_NCCL_INTERNAL_ERROR;
        rueda_nccl_chore_drop(self->chore);
        self->chore = NULL;
        return result;
    }
    if (lib->comm_error(self->comm, &result) != RUEDA_NCCL_SUCCESS)
        result = RUEDA_NCCL_INTERNAL_ERROR;
    if (result != RUEDA_NCCL_SUCCESS && result != RUEDA_NCCL_IN_PROGRESS)
        rueda_nccl_explain(lib, self->comm, result, "ncclCommInitRankConfig",
                           &self->words);
    return result;
}

/* NCCL waits for a member that has failed. So the member behind it, which hears
 * of that first, fails as well, and so on. */
static bool hears_failure(struct rueda_nccl_comm *self)
{
    const struct rueda_nccl_report *report =
        (const struct rueda_nccl_report *)self->talk.entries + 1;
    struct rueda_nccl_report mine;

    if (self->talk.heard.status != RUEDA_OK || report->can != 0)
        return false;
    mine = report_of(self, false);
    mine.member = report->member;
    memcpy(mine.words, report->words, sizeof(mine.words));
    mine.words[sizeof(mine.words) - 1] = '\0';
    self->step = RUEDA_NCCL_RESULT;
    rueda_nccl_talk_begin(&self->talk, &mine, sizeof(mine));
    return true;
}

static rueda_status wait_for_join(struct rueda_nccl_comm *self)
{
    const int64_t limit_ms =
        rueda_nccl_cuda(self)->nccl->config->nccl_timeout_ms;
    const rueda_nccl_result result = ask_join(self);

    if (result == RUEDA_NCCL_IN_PROGRESS) {
        if (self->talk.heard.status < 0)
            return self->talk.heard.status;
        if (hears_failure(self))
            return RUEDA_OK;
        if (rueda_clock_ns() - self->since_ns < limit_ms * 1000000)
            return RUEDA_IN_PROGRESS;
        rueda_text_set(&self->words,
                       "NCCL has not connected the ranks in %lld s "
                       "(RUEDA_NCCL_TIMEOUT); NCCL_DEBUG=INFO tells where it "
                       "waits",
                       (long long)limit_ms / 1000);
    }
    tell(self, RUEDA_NCCL_RESULT, result == RUEDA_NCCL_SUCCESS);
    return RUEDA_OK;
}

static rueda_status hear_result(struct rueda_nccl_comm *self,
                                struct rueda_task *task)
{
    const struct rueda_nccl_lib *lib = &rueda_nccl_cuda(self)->nccl->lib;
    const int unable = find_unable(self);
    struct rueda_text words = {{0}};

    (void)task;
    if (unable >= 0) {
        quote(report_from(self, unable), &words);
        return refuse(self, &words, true);
    }
    self->step = RUEDA_NCCL_READY;
    rueda_nccl_turn_end(self);
    rueda_nccl_name(lib, &words);
    log_debug("%s of %s carries tensors on GPUs between %d ranks", words.chars,
              lib->path, self->place->mesh->size);
    return RUEDA_OK;
}

/* All steps that hear something are alike: go on with the talk, and when all
 * entries are there with the step. */
static rueda_status hear(struct rueda_nccl_comm *self, struct rueda_task *task,
                         rueda_status (*next)(struct rueda_nccl_comm *self,
                                              struct rueda_task *task))
{
    const rueda_status status = rueda_nccl_talk_turn(&self->talk, task);

    return status == RUEDA_OK ? next(self, task) : status;
}

static rueda_status take_step(struct rueda_nccl_comm *self,
                              struct rueda_task *task)
{
    switch (self->step) {
    case RUEDA_NCCL_OPEN:
        return open_library(self);
    case RUEDA_NCCL_REPORTS:
        return hear(self, task, hear_cards);
    case RUEDA_NCCL_ID:
        return take_id(self);
    case RUEDA_NCCL_TELL_ID:
        return hear(self, task, hear_id);
    case RUEDA_NCCL_LINE:
        return begin_join(self, task);
    case RUEDA_NCCL_JOIN:
        return wait_for_join(self);
    case RUEDA_NCCL_RESULT:
        return hear(self, task, hear_result);
    case RUEDA_NCCL_READY:
    case RUEDA_NCCL_REFUSED:
        break;
    }
    return RUEDA_OK;
}

/* Threads and NCCL ring no bell when they are done. */
rueda_status rueda_nccl_comm_turn(struct rueda_nccl_comm *self,
                                  struct rueda_task *task)
{
    rueda_status status = RUEDA_OK;

    while (status == RUEDA_OK && self->step < RUEDA_NCCL_READY)
        status = take_step(self, task);
    task->is_silent = self->step < RUEDA_NCCL_READY;
    return status;
}
