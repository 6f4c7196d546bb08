/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's thread that writes the timeline's file ten times a second. */
#define RUEDA_LOG_TAG "trace"
#include "trace/timeline_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/log.h"
#include "os/capped.h"
#include "os/clock.h"
#include "os/thread.h"
#include "trace/timeline_json.h"

/* An event is in the file a tenth of a second later. While there are no events
 * the thread checks less often, since checking costs time, too. */
#define INTERVAL_NS      RUEDA_MS(25)
#define IDLE_INTERVAL_NS RUEDA_MS(90)

_Static_assert(RUEDA_TIMELINE_EVENT_MAX <= RUEDA_CAPPED_ITEM_MAX,
               "an event is one item of the file");

struct rueda_timeline_writer {
    struct rueda_timeline_ring *ring;
    char *path;
    struct rueda_timeline_json json;
    struct rueda_capped file;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_ending; /* under the lock */
    uint64_t lost;  /* the same; known at the end */
    _Atomic bool is_hurried;

    char block[RUEDA_TIMELINE_BLOCK_MAX];
};

static void complain(const struct rueda_timeline_writer *self,
                     rueda_status status)
{
    if (status == RUEDA_ERR_IO)
        log_error("the timeline ends here, as %s cannot be written: %s",
                  self->path, strerror(errno));
}

static void write_event(void *arg, const char *text, size_t len)
{
    struct rueda_timeline_writer *self = arg;

    complain(self, rueda_capped_add(&self->file, text, len));
}

/* True if there was anything. */
static bool drain(struct rueda_timeline_writer *self)
{
    bool has_come = false;
    size_t len;
    int rank;

    while (rueda_timeline_ring_peek(self->ring, &rank, &len)) {
        rueda_timeline_ring_take(self->ring, self->block, len);
        rueda_timeline_json_add(&self->json, rank, self->block, len);
        has_come = true;
    }
    complain(self, rueda_capped_flush(&self->file));
    return has_come;
}

/* Sleep until the time has come or another thread calls; true: to end. */
static bool wait_for_work(struct rueda_timeline_writer *self,
                          int64_t interval_ns)
{
    const int64_t deadline_ns = rueda_clock_ns() + interval_ns;
    bool is_ending;

    pthread_mutex_lock(&self->lock);
    while (!self->is_ending && rueda_clock_ns() < deadline_ns &&
           !atomic_load_explicit(&self->is_hurried, memory_order_relaxed))
        rueda_condition_wait(&self->changed, &self->lock, deadline_ns);
    is_ending = self->is_ending;
    pthread_mutex_unlock(&self->lock);
    atomic_store_explicit(&self->is_hurried, false, memory_order_relaxed);
    return is_ending;
}

static void *run(void *arg)
{
    struct rueda_timeline_writer *self = arg;
    bool has_come = true;
    bool is_ending;

    rueda_log_set_rank(0);
    do {
        is_ending =
            wait_for_work(self, has_come ? INTERVAL_NS : IDLE_INTERVAL_NS);
        has_come = drain(self);
    } while (!is_ending);
    rueda_timeline_json_end(&self->json, self->lost);
    complain(self, rueda_capped_flush(&self->file));
    return NULL;
}

static rueda_status open_file(struct rueda_timeline_writer *self,
                              struct rueda_text *error)
{
    rueda_status status = rueda_capped_open(&self->file, self->path, "[", ']');

    if (status != RUEDA_OK)
        rueda_text_set(error, "cannot write the timeline to %s: %s%s",
                       self->path, strerror(errno),
                       errno == ENOENT ? "; is its folder there?" : "");
    return status;
}

rueda_status rueda_timeline_writer_open(struct rueda_timeline_ring *ring,
                                        const char *path, int ranks,
                                        int64_t start_ns,
                                        struct rueda_timeline_writer **out,
                                        struct rueda_text *error)
{
    struct rueda_timeline_writer *self = calloc(1, sizeof(*self));
    rueda_status status = RUEDA_ERR_NOMEM;

    if (self == NULL)
        goto err;
    self->ring = ring;
    self->file.fd = -1;
    self->path = strdup(path);
    if (self->path == NULL)
        goto err_free;
    status = open_file(self, error);
    if (status != RUEDA_OK)
        goto err_free;
    status = RUEDA_ERR_NOMEM;
    if (!rueda_timeline_json_init(&self->json, ranks, start_ns,
                                  rueda_clock_epoch_us(), write_event, self))
        goto err_close;
    complain(self, rueda_capped_flush(&self->file));
    pthread_mutex_init(&self->lock, NULL);
    rueda_condition_init(&self->changed);
    status = rueda_thread_start(&self->thread, run, self);
    if (status != RUEDA_OK)
        goto err_fini;
    *out = self;
    return RUEDA_OK;

err_fini:
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    rueda_timeline_json_fini(&self->json);
err_close:
    rueda_capped_close(&self->file);
err_free:
    free(self->path);
    free(self);
err:
    rueda_text_set(error, "no memory or no thread for the timeline; see "
                          "`ulimit -u` and -v");
    return status;
}

void rueda_timeline_writer_close(struct rueda_timeline_writer *self,
                                 uint64_t lost)
{
    pthread_mutex_lock(&self->lock);
    self->is_ending = true;
    self->lost = lost;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
    rueda_thread_join(self->thread);

    rueda_capped_close(&self->file);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
    rueda_timeline_json_fini(&self->json);
    free(self->path);
    free(self);
}

void rueda_timeline_writer_hurry(struct rueda_timeline_writer *self)
{
    if (atomic_load_explicit(&self->is_hurried, memory_order_relaxed))
        return;
    atomic_store_explicit(&self->is_hurried, true, memory_order_relaxed);
    /* Without the lock, which the writer may hold: it checks again soon. */
    pthread_cond_signal(&self->changed);
}

void rueda_timeline_writer_leave(struct rueda_timeline_writer *self)
{
    rueda_capped_close(&self->file);
}
