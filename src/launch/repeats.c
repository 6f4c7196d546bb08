/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the same traceback of several ranks. A block begins with Python's
 * "Traceback (most recent call last):", goes on with lines that begin with a
 * blank, and ends with the first other line, the exception. Blocks are compared
 * byte by byte; the words that chain two of them are left out with the second.
 * The log of ranks that report the failure of another has the block, too,
 * behind "rank 1 ... failed: "; of a known one the exception is enough.
 */
#include "launch/repeats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/duration.h"
#include "base/text.h"

#define MOST_BLOCKS 64 /* that are remembered */
#define MOST_BYTES  ((size_t)1 << 16)
#define MOST_AGE_NS RUEDA_S(2)    /* of a block that does not end */
#define REPORT_NS   RUEDA_MS(300) /* ranks that follow come together */

/* What a rank has begun to print. */
struct begun {
    int rank;
    struct rueda_buffer kept;
    int64_t since_ns;
    bool is_left_out; /* its last block was */
    struct begun *next;
};

/* A traceback that was shown. */
struct block {
    char *text;
    size_t len;
    int first;      /* the rank that printed it */
    bool is_report; /* it told of another rank's exception, in the log */
    int *others;    /* that printed the same, not reported yet */
    int count;
    int64_t since_ns; /* of the first of them */
};

struct rueda_repeats {
    rueda_repeats_show show;
    void *arg;
    struct begun *begun;
    struct block blocks[MOST_BLOCKS];
    int count;
};

struct rueda_repeats *rueda_repeats_new(rueda_repeats_show show, void *arg)
{
    struct rueda_repeats *repeats = calloc(1, sizeof(*repeats));

    if (repeats == NULL)
        return NULL;
    repeats->show = show;
    repeats->arg = arg;
    return repeats;
}

void rueda_repeats_free(struct rueda_repeats *repeats)
{
    if (repeats == NULL)
        return;
    while (repeats->begun != NULL) {
        struct begun *begun = repeats->begun;

        repeats->begun = begun->next;
        rueda_buffer_fini(&begun->kept);
        free(begun);
    }
    for (int i = 0; i < repeats->count; i++) {
        free(repeats->blocks[i].text);
        free(repeats->blocks[i].others);
    }
    free(repeats);
}

/* ---- Lines -------------------------------------------------------------- */

static bool begins_with(const char *bytes, size_t len, const char *words)
{
    return len >= strlen(words) && memcmp(bytes, words, strlen(words)) == 0;
}

static const char head[] = "Traceback (most recent call last):";

static bool is_head(const char *bytes, size_t len)
{
    const char *at = memmem(bytes, len, head, strlen(head));

    return at == bytes ||
           (at != NULL && memmem(bytes, len, " failed: ", 9) == at - 9);
}

static bool is_blank(const char *bytes, size_t len)
{
    return len == 0 || bytes[0] == '\n' || bytes[0] == '\r';
}

/* Between a traceback and the next one of the same exception, or what a rank
 * adds to the failure of another. */
static bool is_chain(const char *bytes, size_t len)
{
    return is_blank(bytes, len) || begins_with(bytes, len, " while rank ") ||
           begins_with(bytes, len, "During handling of the above exception") ||
           begins_with(bytes, len, "The above exception was the direct cause");
}

static struct begun *find_begun(struct rueda_repeats *repeats, int rank)
{
    for (struct begun *begun = repeats->begun; begun != NULL;
         begun = begun->next)
        if (begun->rank == rank)
            return begun;
    return NULL;
}

static struct begun *add_begun(struct rueda_repeats *repeats, int rank)
{
    struct begun *begun = calloc(1, sizeof(*begun));

    if (begun == NULL)
        return NULL;
    begun->rank = rank;
    begun->next = repeats->begun;
    repeats->begun = begun;
    return begun;
}

static void show_kept(struct rueda_repeats *repeats, struct begun *begun)
{
    size_t left = rueda_buffer_len(&begun->kept);
    const char *at;

    if (left == 0)
        return;
    at = (char *)rueda_buffer_front(&begun->kept);
    while (left > 0) {
        const char *feed = memchr(at, '\n', left);
        const size_t len = feed != NULL ? (size_t)(feed - at) + 1 : left;

        repeats->show(repeats->arg, begun->rank, at, len, true);
        at += len;
        left -= len;
    }
    rueda_buffer_drop(&begun->kept, rueda_buffer_len(&begun->kept));
}

/* ---- Blocks ------------------------------------------------------------- */

/* A report may be of what a rank has printed; a rank's own exception is shown
 * although it was reported before. */
static struct block *find_block(struct rueda_repeats *repeats, const void *text,
                                size_t len, bool is_report)
{
    for (int i = 0; i < repeats->count; i++)
        if (repeats->blocks[i].len == len &&
            (is_report || !repeats->blocks[i].is_report) &&
            memcmp(repeats->blocks[i].text, text, len) == 0)
            return &repeats->blocks[i];
    return NULL;
}

static bool has_rank(const struct block *block, int rank)
{
    for (int i = 0; i < block->count; i++)
        if (block->others[i] == rank)
            return true;
    return false;
}

/* False: no memory to remember it, so the block is shown. */
static bool add_rank(struct block *block, int rank, int64_t now_ns)
{
    int *others;

    if (has_rank(block, rank))
        return true;
    others =
        reallocarray(block->others, (size_t)block->count + 1, sizeof(*others));
    if (others == NULL)
        return false;
    if (block->count == 0)
        block->since_ns = now_ns;
    block->others = others;
    block->others[block->count++] = rank;
    return true;
}

static void remember(struct rueda_repeats *repeats, int rank, const void *text,
                     size_t len, bool is_report)
{
    char *copy;

    if (repeats->count == MOST_BLOCKS)
        return;
    copy = malloc(len);
    if (copy == NULL)
        return;
    memcpy(copy, text, len);
    repeats->blocks[repeats->count++] = (struct block){
        .text = copy, .len = len, .first = rank, .is_report = is_report};
}

/* The last line of a block. */
static const char *find_exception(const char *text, size_t len)
{
    const char *feed = memrchr(text, '\n', len - 1);

    return feed != NULL ? feed + 1 : text;
}

/* A report of a known exception: one line. */
static void show_report(struct rueda_repeats *repeats, struct begun *begun,
                        size_t words)
{
    const char *text = (char *)rueda_buffer_front(&begun->kept);
    const size_t len = rueda_buffer_len(&begun->kept);
    const char *exception = find_exception(text, len);

    repeats->show(repeats->arg, begun->rank, text, words, true);
    repeats->show(repeats->arg, begun->rank, exception,
                  (size_t)(text + len - exception), false);
    rueda_buffer_drop(&begun->kept, len);
}

/* A block is complete. The rank that was first may print its own again. */
static void end_block(struct rueda_repeats *repeats, struct begun *begun,
                      int64_t now_ns)
{
    const char *text = (char *)rueda_buffer_front(&begun->kept);
    const size_t len = rueda_buffer_len(&begun->kept);
    const char *at = memmem(text, len, head, strlen(head));
    const size_t words = at != NULL ? (size_t)(at - text) : 0;
    struct block *block =
        find_block(repeats, text + words, len - words, words > 0);

    if (words > 0 && block != NULL) {
        show_report(repeats, begun, words);
        return;
    }
    begun->is_left_out = block != NULL && block->first != begun->rank &&
                         add_rank(block, begun->rank, now_ns);
    if (begun->is_left_out) {
        rueda_buffer_drop(&begun->kept, len);
        return;
    }
    if (block == NULL)
        remember(repeats, begun->rank, text + words, len - words, words > 0);
    show_kept(repeats, begun);
}

/* A line of a rank that has begun a block. */
static void go_on(struct rueda_repeats *repeats, struct begun *begun,
                  const char *bytes, size_t len, int64_t now_ns)
{
    const bool is_end =
        bytes[0] != ' ' && bytes[0] != '\t' && !is_head(bytes, len);

    if (rueda_buffer_len(&begun->kept) + len > MOST_BYTES ||
        !rueda_buffer_add(&begun->kept, bytes, len)) {
        show_kept(repeats, begun);
        repeats->show(repeats->arg, begun->rank, bytes, len, true);
    } else if (is_end) {
        end_block(repeats, begun, now_ns);
    }
}

void rueda_repeats_line(struct rueda_repeats *repeats, int rank,
                        const char *bytes, size_t len, bool is_begin,
                        int64_t now_ns)
{
    struct begun *begun = find_begun(repeats, rank);

    if (begun != NULL && rueda_buffer_len(&begun->kept) > 0 && is_begin) {
        go_on(repeats, begun, bytes, len, now_ns);
        return;
    }
    if (begun != NULL)
        show_kept(repeats, begun);
    if (is_begin && is_head(bytes, len)) {
        if (begun == NULL)
            begun = add_begun(repeats, rank);
        if (begun != NULL && rueda_buffer_add(&begun->kept, bytes, len)) {
            begun->since_ns = now_ns;
            return;
        }
    }
    if (begun != NULL && begun->is_left_out && is_chain(bytes, len))
        return;
    if (begun != NULL)
        begun->is_left_out = false;
    repeats->show(repeats->arg, rank, bytes, len, is_begin);
}

/* Does another rank's traceback, which was shown, begin with what is kept? */
static bool is_known_beginning(struct rueda_repeats *repeats,
                               struct begun *begun)
{
    const size_t len = rueda_buffer_len(&begun->kept);

    for (int i = 0; i < repeats->count && len > 0; i++)
        if (repeats->blocks[i].len > len &&
            repeats->blocks[i].first != begun->rank &&
            memcmp(repeats->blocks[i].text, rueda_buffer_front(&begun->kept),
                   len) == 0)
            return true;
    return false;
}

/* Nothing more comes. A rank that was ended while it printed what another had
 * printed before says nothing new. */
static void show_rest(struct rueda_repeats *repeats, struct begun *begun)
{
    if (is_known_beginning(repeats, begun))
        rueda_buffer_drop(&begun->kept, rueda_buffer_len(&begun->kept));
    else
        show_kept(repeats, begun);
}

void rueda_repeats_end(struct rueda_repeats *repeats, int rank)
{
    struct begun *begun = find_begun(repeats, rank);

    if (begun != NULL)
        show_rest(repeats, begun);
}

/* ---- The report --------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const int one = *(const int *)a;
    const int other = *(const int *)b;

    return (one > other) - (one < other);
}

/* "rank 3" or "ranks 1-3, 7". */
static void add_ranks(struct rueda_text *out, int *ranks, int count)
{
    qsort(ranks, (size_t)count, sizeof(*ranks), by_number);
    rueda_text_add(out, "rank%s", count > 1 ? "s" : "");
    for (int i = 0; i < count; i++) {
        const int first = ranks[i];

        rueda_text_add(out, "%s %d", i > 0 ? "," : "", first);
        while (i + 1 < count && ranks[i + 1] == ranks[i] + 1)
            i++;
        if (ranks[i] > first)
            rueda_text_add(out, "-%d", ranks[i]);
    }
}

static void add_exception(struct rueda_text *out, const struct block *block)
{
    const char *line = find_exception(block->text, block->len);
    size_t len = (size_t)(block->text + block->len - line);

    while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
        len--;
    rueda_text_add(out, "%.*s", (int)(len < 200 ? len : 200), line);
}

static void report(struct block *block, rueda_repeats_say say, void *arg)
{
    struct rueda_text words = {{0}};

    add_ranks(&words, block->others, block->count);
    rueda_text_add(&words, " raised the same as rank %d: ", block->first);
    add_exception(&words, block);
    say(arg, words.chars);
    block->count = 0;
}

void rueda_repeats_check(struct rueda_repeats *repeats, int64_t now_ns,
                         rueda_repeats_say say, void *arg)
{
    for (struct begun *begun = repeats->begun; begun != NULL;
         begun = begun->next)
        if (now_ns == INT64_MAX)
            show_rest(repeats, begun);
        else if (rueda_buffer_len(&begun->kept) > 0 &&
                 now_ns - begun->since_ns > MOST_AGE_NS)
            show_kept(repeats, begun);
    for (int i = 0; i < repeats->count; i++)
        if (repeats->blocks[i].count > 0 &&
            now_ns - repeats->blocks[i].since_ns > REPORT_NS)
            report(&repeats->blocks[i], say, arg);
}
