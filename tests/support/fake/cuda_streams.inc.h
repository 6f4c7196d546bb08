/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events of the stand-in, for cuda.c: a thread for each stream
 * carries out its items one after another. Everything is under cuda.c's lock.
 */

/* Destroying one that a stream has yet to reach is allowed: it goes with the
 * last item that needs it. */
struct event {
    uint64_t recorded; /* times */
    uint64_t reached;
    int items; /* that are in streams */
    bool is_destroyed;
};

struct item {
    struct item *next;
    enum {
        COPY,
        LAUNCH,
        CALL, /* of the host, for other stand-ins */
        RECORD,
        WAIT,
        STOP
    } what;
    void *dst;
    const void *src;
    size_t bytes;
    struct event *event;
    uint64_t time;
    const struct kernel *kernel;
    unsigned grid;
    unsigned threads;
    union any_args args;
    void (*call)(void *arg);
    void *arg;
};

struct stream {
    pthread_t thread;
    struct item *first;
    struct item *last;
    int left;
    int failed;
    int is_capturing;
};

static struct stream *legacy; /* the stream NULL */

static void run_kernel(const struct item *item)
{
    thread_count = item->threads;
    grid_count = item->grid;
    for (block_now = 0; block_now < grid_count; block_now++)
        for (thread_now = 0; thread_now < thread_count; thread_now++)
            item->kernel->run(&item->args);
}

/* The code that a function is to fail with now, or 0. */
static int fails(const char *function)
{
    static int calls;
    const char *text = getenv("FAKE_CUDA_FAIL");
    const size_t length = strlen(function);
    const char *after;

    if (text == NULL || strncmp(text, function, length) != 0 ||
        text[length] != '=')
        return 0;
    after = strchr(text, '#');
    if (after != NULL && __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) <
                             strtol(after + 1, NULL, 10))
        return 0;
    return (int)strtol(text + length + 1, NULL, 10);
}

static int carry_out(struct item *item)
{
    const char *delay = getenv("FAKE_CUDA_DELAY_US");
    const bool is_work = item->what == COPY || item->what == LAUNCH;
    const int code = is_work ? fails("kernel") : 0;

    usleep(delay != NULL ? (useconds_t)strtoul(delay, NULL, 10) : 20);
    if (code != 0)
        return code;
    if (item->what == COPY)
        memcpy(translate(item->dst), translate(item->src), item->bytes);
    if (item->what == LAUNCH)
        run_kernel(item);
    if (item->what == CALL)
        item->call(item->arg);
    return 0;
}

static struct item *take(struct stream *stream)
{
    struct item *item;

    pthread_mutex_lock(&lock);
    while (stream->first == NULL)
        pthread_cond_wait(&changed, &lock);
    item = stream->first;
    while (item->what == WAIT && item->event->reached < item->time)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return item;
}

/* Under the lock. */
static void let_go(struct event *event)
{
    if (event->items == 0 && event->is_destroyed)
        free(event);
}

static void drop(struct stream *stream, struct item *item, int code)
{
    pthread_mutex_lock(&lock);
    if (code != 0 && stream->failed == 0)
        stream->failed = code;
    if (item->what == RECORD)
        item->event->reached = item->time;
    if (item->event != NULL) {
        item->event->items--;
        let_go(item->event);
    }
    stream->first = item->next;
    stream->left--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    free(item);
}

static void *work(void *arg)
{
    struct stream *stream = arg;
    bool is_over = false;

    while (!is_over) {
        struct item *item = take(stream);

        is_over = item->what == STOP;
        drop(stream, item,
             is_over || stream->failed != 0 ? 0 : carry_out(item));
    }
    return NULL;
}

static struct stream *stream_new(void)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (stream != NULL)
        pthread_create(&stream->thread, NULL, work, stream);
    return stream;
}

static struct stream *stream_of(void *given)
{
    if (given != NULL)
        return given;
    pthread_mutex_lock(&lock);
    if (legacy == NULL)
        legacy = stream_new();
    pthread_mutex_unlock(&lock);
    return legacy;
}

static int push(void *given, struct item item)
{
    struct stream *stream = stream_of(given);
    struct item *copy = malloc(sizeof(*copy));

    if (copy == NULL)
        return 2;
    pthread_mutex_lock(&lock);
    if (item.what == RECORD)
        item.time = ++item.event->recorded;
    if (item.what == WAIT)
        item.time = item.event->recorded;
    if (item.event != NULL)
        item.event->items++;
    *copy = item;
    copy->next = NULL;
    if (stream->first == NULL)
        stream->first = copy;
    else
        stream->last->next = copy;
    stream->last = copy;
    stream->left++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return stream->failed;
}
