/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reading side of a pipe. A channel's message is waiting (accepted, without
 * a receive), or busy (being read, or dropped), or there is none.
 */
#define RUEDA_LOG_TAG "shm"

#include <string.h>

#include "base/log.h"
#include "transport/shm/pipe.h"

void rueda_shm_reader_init(struct rueda_shm_reader *reader,
                           struct rueda_shm_pipe *pipe, struct rueda_term *term)
{
    *reader = (struct rueda_shm_reader){
        .pipe = pipe,
        .term = term,
        .next = 1,
    };
}

static rueda_status broken(const char *what, uint64_t value)
{
    log_error("shared memory is damaged: %s %llu", what,
              (unsigned long long)value);
    return RUEDA_ERR_PEER_LOST;
}

/* All bytes have been read: frees the channel, ends the receive. */
static void finish(struct rueda_shm_reader *reader, unsigned channel)
{
    struct rueda_shm_incoming *in = &reader->channels[channel];
    struct rueda_shm_pipe *pipe = reader->pipe;

    /* Relaxed: the ack publishes it. */
    if (in->len > RUEDA_SHM_RING)
        atomic_store_explicit(&pipe->flows[channel].read, 0,
                              memory_order_relaxed);
    /* Release: ring and notice have been read. Sequentially consistent for
     * is_stuck, see rueda_shm_writer_turn(). */
    atomic_store_explicit(&pipe->acks[channel], in->number,
                          memory_order_seq_cst);
    reader->has_acked = true;
    reader->busy &= ~(1u << channel);
    if (in->req != NULL) {
        in->req->done = in->len;
        in->req->status = RUEDA_OK;
        in->req = NULL;
    }
}

/* Learns how much has been written. */
static rueda_status refresh(struct rueda_shm_reader *reader, unsigned channel)
{
    struct rueda_shm_incoming *in = &reader->channels[channel];
    uint64_t written;

    if (in->written == in->len)
        return RUEDA_OK;
    /* Acquire: the bytes that are counted are there. */
    written = atomic_load_explicit(&reader->pipe->flows[channel].written,
                                   memory_order_acquire);
    if (written < in->written || written > in->len ||
        written - in->read > RUEDA_SHM_RING)
        return broken("bytes written", written);
    in->written = (size_t)written;
    return RUEDA_OK;
}

/* Copies, or drops, one piece of what is known to be there. */
static void read_piece(struct rueda_shm_reader *reader, unsigned channel)
{
    struct rueda_shm_incoming *in = &reader->channels[channel];
    size_t offset = in->read % RUEDA_SHM_RING;
    size_t len = in->written - in->read;

    if (len > RUEDA_SHM_RING - offset)
        len = RUEDA_SHM_RING - offset;
    if (len > RUEDA_SHM_PIECE)
        len = RUEDA_SHM_PIECE;
    if (in->req != NULL) {
        memcpy(in->req->buf + in->read, reader->pipe->rings[channel] + offset,
               len);
        in->req->done = in->read + len;
    }
    in->read += len;
    if (in->len > RUEDA_SHM_RING && in->read < in->len) {
        /* As the ack in finish(). */
        atomic_store_explicit(&reader->pipe->flows[channel].read, in->read,
                              memory_order_seq_cst);
        reader->has_acked = true;
    }
}

/* Reads what is there, one ringful at most: RUEDA_OK if there was any. */
static rueda_status read_more(struct rueda_shm_reader *reader, unsigned channel)
{
    struct rueda_shm_incoming *in = &reader->channels[channel];
    size_t start = in->read;
    size_t limit = start + RUEDA_SHM_RING;

    while (in->read < in->len && in->read < limit) {
        if (in->read == in->written) {
            rueda_status status = refresh(reader, channel);

            if (status != RUEDA_OK)
                return status;
            if (in->read == in->written)
                break;
        }
        read_piece(reader, channel);
    }
    if (in->read == start)
        return RUEDA_IN_PROGRESS;
    if (in->read == in->len)
        finish(reader, channel);
    return RUEDA_OK;
}

/* Joins a receive with the message on this channel; text is where the bytes
 * are if they came with the notice. */
static rueda_status match(struct rueda_shm_reader *reader, unsigned channel,
                          struct rueda_req *req, const char *text)
{
    struct rueda_shm_incoming *in = &reader->channels[channel];
    bool is_equal = req->len == in->len;

    in->req = is_equal ? req : NULL;
    if (!is_equal)
        req->status = RUEDA_ERR_MISMATCH;
    reader->busy |= 1u << channel;
    if (in->len <= RUEDA_SHM_INLINE) {
        if (is_equal && in->len > 0)
            memcpy(req->buf, text, in->len);
        finish(reader, channel);
        return RUEDA_OK;
    }
    return read_more(reader, channel);
}

/* Reads a message to its end for no receive. */
static rueda_status drop(struct rueda_shm_reader *reader, unsigned channel)
{
    struct rueda_shm_incoming *in = &reader->channels[channel];

    in->req = NULL;
    reader->busy |= 1u << channel;
    if (in->len <= RUEDA_SHM_INLINE) {
        finish(reader, channel);
        return RUEDA_OK;
    }
    return read_more(reader, channel);
}

/* Is this an announcement that a writer can have made? */
static rueda_status check(const struct rueda_shm_reader *reader, uint64_t len,
                          uint32_t channel, uint32_t ready)
{
    if (channel >= RUEDA_SHM_CHANNELS)
        return broken("channel", channel);
    if (((reader->waiting | reader->busy) >> channel & 1) != 0)
        return broken("two messages on channel", channel);
    if (len > SIZE_MAX)
        return broken("length", len);
    if (ready > len || ready > RUEDA_SHM_PIECE ||
        (len <= RUEDA_SHM_INLINE && ready != len) || (len > 0 && ready == 0))
        return broken("bytes ready", ready);
    return RUEDA_OK;
}

/* Accepts the next message, if it is there. */
static rueda_status accept(struct rueda_shm_reader *reader)
{
    /* Volatile: what was checked is what is used, each is read once. */
    volatile struct rueda_shm_notice *notice =
        rueda_shm_notice(reader->pipe, reader->next);
    const char *text = (const char *)notice->text;
    struct rueda_shm_incoming *in;
    struct rueda_req *req;
    rueda_status status;
    /* Acquire: what the writer stored before is there. */
    uint64_t number =
        atomic_load_explicit(&notice->number, memory_order_acquire);
    uint64_t len;
    uint32_t channel;
    uint32_t ready;

    if (number == rueda_shm_notice_before(reader->next))
        return RUEDA_IN_PROGRESS;
    if (number != reader->next)
        return broken("message number", number);
    len = notice->len;
    channel = notice->channel;
    ready = notice->ready;
    status = check(reader, len, channel, ready);
    if (status != RUEDA_OK)
        return status;

    in = &reader->channels[channel];
    in->number = reader->next++;
    in->tag.term = notice->tag.term;
    in->tag.set = notice->tag.set;
    in->tag.sequence = notice->tag.sequence;
    in->len = (size_t)len;
    in->written = ready;
    in->read = 0;
    in->req = NULL;
    if (rueda_term_drops(reader->term, in->tag))
        return drop(reader, channel);
    req = rueda_reqs_take(&reader->posted, in->tag);
    if (req != NULL)
        return match(reader, channel, req, text);
    reader->waiting |= 1u << channel;
    if (len <= RUEDA_SHM_INLINE)
        memcpy(in->text, text, len);
    return RUEDA_OK;
}

rueda_status rueda_shm_reader_turn(struct rueda_shm_reader *reader)
{
    rueda_status result = RUEDA_IN_PROGRESS;
    rueda_status status;

    for (unsigned busy = reader->busy; busy != 0; busy &= busy - 1) {
        status = read_more(reader, (unsigned)__builtin_ctz(busy));
        if (status < 0)
            return status;
        if (status == RUEDA_OK)
            result = RUEDA_OK;
    }
    do {
        status = accept(reader);
        if (status == RUEDA_OK)
            result = RUEDA_OK;
    } while (status == RUEDA_OK);
    return status < 0 ? status : result;
}

/* The oldest waiting message of this tag, or -1. */
static int find_waiting(const struct rueda_shm_reader *reader,
                        struct rueda_tag tag)
{
    uint64_t oldest = UINT64_MAX;
    int found = -1;

    for (unsigned rest = reader->waiting; rest != 0; rest &= rest - 1) {
        int i = __builtin_ctz(rest);
        const struct rueda_shm_incoming *in = &reader->channels[i];

        if (in->number < oldest && rueda_tag_equal(in->tag, tag)) {
            oldest = in->number;
            found = i;
        }
    }
    return found;
}

bool rueda_shm_reader_has(const struct rueda_shm_reader *reader,
                          struct rueda_tag tag, size_t *out_len)
{
    int channel = find_waiting(reader, tag);

    if (channel >= 0)
        *out_len = reader->channels[channel].len;
    return channel >= 0;
}

rueda_status rueda_shm_reader_recv(struct rueda_shm_reader *reader,
                                   struct rueda_req *req)
{
    int channel = find_waiting(reader, req->tag);

    if (channel >= 0) {
        reader->waiting &= ~(1u << channel);
        return match(reader, (unsigned)channel, req,
                     reader->channels[channel].text);
    }
    rueda_reqs_push(&reader->posted, req);
    return accept(reader);
}

void rueda_shm_reader_begin_term(struct rueda_shm_reader *reader)
{
    for (unsigned rest = reader->waiting; rest != 0; rest &= rest - 1) {
        unsigned channel = (unsigned)__builtin_ctz(rest);

        if (!rueda_term_drops(reader->term, reader->channels[channel].tag))
            continue;
        reader->waiting &= ~(1u << channel);
        reader->busy |= 1u << channel; /* the next turn reads what is in it */
        if (reader->channels[channel].len <= RUEDA_SHM_INLINE)
            finish(reader, channel);
    }
}

bool rueda_shm_reader_cancel(struct rueda_shm_reader *reader,
                             rueda_status status)
{
    bool is_half = false;

    rueda_reqs_end(&reader->posted, status);
    for (unsigned busy = reader->busy; busy != 0; busy &= busy - 1) {
        struct rueda_shm_incoming *in = &reader->channels[__builtin_ctz(busy)];

        /* What is being dropped goes on being dropped. */
        if (in->req == NULL)
            continue;
        in->req->status = status;
        in->req = NULL;
        is_half = true;
    }
    return is_half;
}

bool rueda_shm_reader_has_whole(struct rueda_shm_reader *reader)
{
    for (unsigned rest = reader->waiting; rest != 0; rest &= rest - 1) {
        unsigned channel = (unsigned)__builtin_ctz(rest);
        struct rueda_shm_incoming *in = &reader->channels[channel];

        if (refresh(reader, channel) != RUEDA_OK || in->written < in->len)
            reader->waiting &= ~(1u << channel);
    }
    return reader->waiting != 0;
}
