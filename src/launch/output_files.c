/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the files of the ranks' output on a thread. The loop adds records
 * (file, length, bytes) to one buffer; the thread takes the whole buffer, gives
 * an empty one for it, and writes. No lock is held while it writes.
 */
#include "launch/output_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/duration.h"
#include "launch/console.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/thread.h"

/* At the end, for a file system that hangs already. */
#define LAST_NS RUEDA_S(1)

#define CHECK_NS RUEDA_MS(200)

struct queued {
    int index;
    size_t len;
};

struct rueda_output_files {
    struct rueda_output_files_args args; /* `changed` is under the lock */
    bool were_there;
    bool is_error_told;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t news;  /* for the thread */
    pthread_cond_t done;  /* for the loop that waits for the thread */
    int *fds;             /* [count]; -1: closed */
    int count;
    int tee;
    struct rueda_buffer queue; /* what is added */
    size_t flying;             /* bytes that the thread has taken */
    int64_t moved_ns;          /* when it wrote something, or had all */
    bool is_given_up;
    bool is_closing;
    bool is_over; /* the thread uses nothing of this any more */
    uint64_t left_out;
    int error;
};

static size_t waiting(const struct rueda_output_files *files)
{
    return rueda_buffer_len(&files->queue) + files->flying;
}

/* ---- The thread --------------------------------------------------------- */

static int *place_of(struct rueda_output_files *files, int index)
{
    return index == RUEDA_OUTPUT_TEE ? &files->tee : &files->fds[index];
}

/* The lock is held, but not while writing. */
static void write_some(struct rueda_output_files *files, int index,
                       const char *bytes, size_t len)
{
    while (len > 0 && *place_of(files, index) >= 0) {
        const int fd = *place_of(files, index);
        ssize_t written;
        int error;

        pthread_mutex_unlock(&files->lock);
        written = write(fd, bytes, len);
        error = errno;
        pthread_mutex_lock(&files->lock);
        if (written >= 0) {
            files->moved_ns = rueda_clock_ns();
            bytes += written;
            len -= (size_t)written;
        } else if (error != EINTR) {
            rueda_fd_close(fd);
            *place_of(files, index) = -1;
            if (files->error == 0)
                files->error = error;
        }
    }
}

/* The lock is held. */
static void write_records(struct rueda_output_files *files,
                          struct rueda_buffer *taken)
{
    struct queued record;

    while (rueda_buffer_len(taken) >= sizeof(record)) {
        memcpy(&record, rueda_buffer_front(taken), sizeof(record));
        rueda_buffer_drop(taken, sizeof(record));
        write_some(files, record.index, (char *)rueda_buffer_front(taken),
                   record.len);
        rueda_buffer_drop(taken, record.len);
        files->flying = rueda_buffer_len(taken);
    }
}

static void close_all(struct rueda_output_files *files)
{
    for (int i = 0; i < files->count; i++)
        rueda_fd_close(files->fds[i]);
    rueda_fd_close(files->tee);
}

static void *write_all(void *arg)
{
    struct rueda_output_files *files = arg;
    struct rueda_buffer taken = {.bytes = NULL};

    pthread_mutex_lock(&files->lock);
    for (;;) {
        struct rueda_buffer empty = taken;

        while (rueda_buffer_len(&files->queue) == 0 && !files->is_closing)
            pthread_cond_wait(&files->news, &files->lock);
        if (rueda_buffer_len(&files->queue) == 0)
            break;
        taken = files->queue;
        files->queue = empty;
        files->flying = rueda_buffer_len(&taken);
        write_records(files, &taken);
        files->moved_ns = rueda_clock_ns();
        pthread_cond_broadcast(&files->done);
        if (files->args.changed != NULL)
            files->args.changed(files->args.arg);
    }
    close_all(files);
    files->is_over = true;
    pthread_cond_broadcast(&files->done);
    pthread_mutex_unlock(&files->lock);
    rueda_buffer_fini(&taken);
    return NULL;
}

/* ---- Opening ------------------------------------------------------------ */

/* Make a folder, and those above it. */
static bool make_folder(const char *path)
{
    char *copy = strdup(path);
    bool is_made = copy != NULL;

    for (char *at = copy; is_made && at != NULL;) {
        at = strchr(at + 1, '/');
        if (at != NULL)
            *at = '\0';
        is_made = mkdir(copy, 0777) == 0 || errno == EEXIST;
        if (at != NULL)
            *at = '/';
    }
    free(copy);
    return is_made;
}

/* A pipe that no process reads must not hold us up, here or later. */
static int open_file(struct rueda_output_files *files, const char *path,
                     bool is_tee)
{
    const int follow = is_tee ? 0 : O_NOFOLLOW;
    const int fd =
        open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | follow, 0666);
    struct stat what;

    if (fd < 0)
        return -1;
    if (fstat(fd, &what) < 0 || (!is_tee && !S_ISREG(what.st_mode))) {
        rueda_fd_close(fd);
        errno = EINVAL;
        return -1;
    }
    if (S_ISREG(what.st_mode)) {
        files->were_there |=
            what.st_size > 0 && !is_tee && !files->args.is_going_on;
        if (files->args.is_going_on)
            lseek(fd, 0, SEEK_END);
        else if (ftruncate(fd, 0) < 0) {
            rueda_fd_close(fd);
            return -1;
        }
    }
    fcntl(fd, F_SETFL, O_WRONLY);
    return fd;
}

/* FOLDER/rank.N/stdout or stderr; -1 with errno. */
static int open_one(struct rueda_output_files *files, int index, int digits)
{
    char *path = NULL;
    char *slash;
    int fd = -1;

    if (asprintf(&path, "%s/rank.%0*d/%s", files->args.folder, digits,
                 index / 2, index % 2 == 0 ? "stdout" : "stderr") < 0)
        return -1;
    slash = strrchr(path, '/');
    *slash = '\0';
    if (make_folder(path)) {
        *slash = '/';
        fd = open_file(files, path, false);
    }
    free(path);
    return fd;
}

/* Room for the descriptors of more processes; none is open yet. */
static bool make_room(struct rueda_output_files *files, int count)
{
    int *fds;

    pthread_mutex_lock(&files->lock);
    fds = reallocarray(files->fds, (size_t)count, sizeof(*fds));
    if (fds != NULL) {
        for (int i = files->count; i < count; i++)
            fds[i] = -1;
        files->fds = fds;
        files->count = count;
    }
    pthread_mutex_unlock(&files->lock);
    return fds != NULL;
}

bool rueda_output_files_grow(struct rueda_output_files *files, int size,
                             struct rueda_text *words)
{
    const int before = files->count;
    char last[16];
    const int digits = snprintf(last, sizeof(last), "%d", size - 1);

    if (2 * size <= before || !make_room(files, 2 * size))
        return 2 * size <= before;
    for (int i = before; files->args.folder != NULL && i < 2 * size; i++) {
        const int fd = open_one(files, i, digits);

        if (fd < 0) {
            rueda_text_set(words,
                           "cannot make the files of --output-filename in "
                           "%.300s: %s",
                           files->args.folder,
                           errno == EINVAL ? "there is something that is no "
                                             "file"
                                           : strerror(errno));
            return false;
        }
        pthread_mutex_lock(&files->lock);
        files->fds[i] = fd;
        pthread_mutex_unlock(&files->lock);
    }
    return true;
}

static bool open_tee(struct rueda_output_files *files, struct rueda_text *words)
{
    if (files->args.tee == NULL)
        return true;
    files->tee = open_file(files, files->args.tee, true);
    if (files->tee >= 0)
        return true;
    rueda_text_set(
        words, "cannot open the file of --tee, %.300s: %s", files->args.tee,
        errno == ENXIO ? "no process reads this pipe" : strerror(errno));
    return false;
}

static void free_files(struct rueda_output_files *files)
{
    pthread_mutex_destroy(&files->lock);
    pthread_cond_destroy(&files->news);
    pthread_cond_destroy(&files->done);
    rueda_buffer_fini(&files->queue);
    free(files->fds);
    free(files);
}

rueda_status rueda_output_files_open(const struct rueda_output_files_args *args,
                                     int size, struct rueda_output_files **out,
                                     struct rueda_text *words)
{
    struct rueda_output_files *files = calloc(1, sizeof(*files));

    if (files == NULL)
        return RUEDA_ERR_NOMEM;
    files->args = *args;
    files->tee = -1;
    files->moved_ns = rueda_clock_ns();
    pthread_mutex_init(&files->lock, NULL);
    pthread_cond_init(&files->news, NULL);
    rueda_condition_init(&files->done);
    if (rueda_output_files_grow(files, size, words) && open_tee(files, words)) {
        if (rueda_thread_start(&files->thread, write_all, files) == RUEDA_OK) {
            *out = files;
            return RUEDA_OK;
        }
        rueda_text_set(words, "no thread for the files of the output");
    }
    close_all(files);
    free_files(files);
    return RUEDA_ERR_IO;
}

bool rueda_output_files_were_there(const struct rueda_output_files *files)
{
    return files->were_there;
}

/* ---- The loop's side ---------------------------------------------------- */

/* The lock is held. */
static bool is_stuck(const struct rueda_output_files *files)
{
    return waiting(files) > 0 &&
           rueda_clock_ns() - files->moved_ns > RUEDA_CONSOLE_PATIENCE_NS;
}

/* The lock is held. */
static bool add(struct rueda_output_files *files, int index, const char *bytes,
                size_t len)
{
    const struct queued record = {.index = index, .len = len};
    unsigned char *room =
        rueda_buffer_reserve(&files->queue, sizeof(record) + len);

    if (room == NULL)
        return false;
    memcpy(room, &record, sizeof(record));
    memcpy(room + sizeof(record), bytes, len);
    rueda_buffer_added(&files->queue, sizeof(record) + len);
    return true;
}

void rueda_output_files_put(struct rueda_output_files *files, int index,
                            const char *bytes, size_t len)
{
    pthread_mutex_lock(&files->lock);
    if (len > 0 && *place_of(files, index) >= 0) {
        if (waiting(files) == 0)
            files->moved_ns = rueda_clock_ns();
        if ((files->is_given_up && waiting(files) >= RUEDA_CONSOLE_FULL) ||
            !add(files, index, bytes, len))
            files->left_out += len;
        pthread_cond_signal(&files->news);
    }
    pthread_mutex_unlock(&files->lock);
}

bool rueda_output_files_is_full(struct rueda_output_files *files)
{
    bool is_full;

    pthread_mutex_lock(&files->lock);
    is_full = !files->is_given_up && waiting(files) >= RUEDA_CONSOLE_FULL;
    pthread_mutex_unlock(&files->lock);
    return is_full;
}

int rueda_output_files_check(struct rueda_output_files *files, bool is_last,
                             uint64_t *out_left_out)
{
    int error = 0;

    *out_left_out = 0;
    pthread_mutex_lock(&files->lock);
    if (!is_last && is_stuck(files)) {
        files->is_given_up = true;
    } else if (is_last || waiting(files) < RUEDA_CONSOLE_FULL / 2) {
        files->is_given_up = false;
        *out_left_out = files->left_out;
        files->left_out = 0;
    }
    if (!files->is_error_told)
        error = files->error;
    files->is_error_told = files->error != 0;
    pthread_mutex_unlock(&files->lock);
    return error;
}

void rueda_output_files_finish(struct rueda_output_files *files)
{
    const int64_t least_ns =
        rueda_clock_ns() - RUEDA_CONSOLE_PATIENCE_NS + LAST_NS;

    pthread_mutex_lock(&files->lock);
    files->is_closing = true;
    if (files->moved_ns < least_ns)
        files->moved_ns = least_ns;
    pthread_cond_signal(&files->news);
    while (waiting(files) > 0 && !is_stuck(files))
        rueda_condition_wait(&files->done, &files->lock,
                             rueda_clock_ns() + CHECK_NS);
    files->left_out += waiting(files);
    pthread_mutex_unlock(&files->lock);
}

/* A thread that is stuck in write() or close() is abandoned together with the
 * memory that it uses. */
void rueda_output_files_close(struct rueda_output_files *files)
{
    const int64_t deadline = rueda_clock_ns() + LAST_NS;
    bool is_over;

    if (files == NULL)
        return;
    pthread_mutex_lock(&files->lock);
    files->is_closing = true;
    files->args.changed = NULL;
    pthread_cond_signal(&files->news);
    while (!files->is_over && rueda_clock_ns() < deadline)
        rueda_condition_wait(&files->done, &files->lock, deadline);
    is_over = files->is_over;
    pthread_mutex_unlock(&files->lock);
    if (!is_over)
        return;
    rueda_thread_join(files->thread);
    free_files(files);
}
