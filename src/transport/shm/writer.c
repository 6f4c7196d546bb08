/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writing side of a pipe. A channel is free, or busy (its message is not
 * all written, and a request belongs to it), or neither: written and not yet
 * acknowledged.
 */
#define RUEDA_LOG_TAG "shm"

#include <string.h>

#include "base/log.h"
#include "transport/shm/pipe.h"

void rueda_shm_writer_init(struct rueda_shm_writer *writer,
                           struct rueda_shm_pipe *pipe)
{
    *writer = (struct rueda_shm_writer){
        .pipe = pipe,
        .next = 1,
        .free = RUEDA_SHM_ALL_CHANNELS,
    };
}

static void break_lane(struct rueda_shm_writer *writer, const char *what,
                       uint64_t value)
{
    if (!writer->is_broken)
        log_error("shared memory is damaged: %s %llu", what,
                  (unsigned long long)value);
    writer->is_broken = true;
}

/* Learns which channels have become free. */
static void collect_acks(struct rueda_shm_writer *writer)
{
    unsigned open = RUEDA_SHM_ALL_CHANNELS & ~(writer->free | writer->busy);

    while (open != 0) {
        unsigned i = (unsigned)__builtin_ctz(open);
        struct rueda_shm_outgoing *channel = &writer->channels[i];
        uint64_t ack;

        open &= open - 1;
        /* Acquire: the reader has read the ring and the notice before it
         * acknowledged, so they may be written again. Sequentially consistent
         * for the sake of is_stuck, see rueda_shm_writer_turn(). */
        ack =
            atomic_load_explicit(&writer->pipe->acks[i], memory_order_seq_cst);
        if (ack == channel->number)
            writer->free |= 1u << i;
        else if (ack != channel->before)
            break_lane(writer, "acknowledged message", ack);
    }
}

/*
 * The channel for a message of this length, or -1. Long messages take the
 * lowest one, whose ring is most likely to be in the cache. Short ones leave
 * those alone, and do not look for acks, which costs a cache miss, unless they
 * must.
 */
static int choose_channel(struct rueda_shm_writer *writer, size_t len)
{
    if (writer->free == 0 || len > RUEDA_SHM_PIECE)
        collect_acks(writer);
    if (writer->free == 0 || writer->is_broken)
        return -1;
    if (len <= RUEDA_SHM_INLINE)
        return 31 - __builtin_clz(writer->free);
    return __builtin_ctz(writer->free);
}

/* Puts the first piece in its place; returns its length. */
static size_t write_first(struct rueda_shm_pipe *pipe, unsigned channel,
                          struct rueda_shm_notice *notice,
                          const struct rueda_req *req)
{
    size_t first = req->len < RUEDA_SHM_PIECE ? req->len : RUEDA_SHM_PIECE;

    if (req->len > RUEDA_SHM_INLINE)
        memcpy(pipe->rings[channel], req->buf, first);
    else if (req->len > 0)
        memcpy(notice->text, req->buf, req->len);
    /* Relaxed: the number of the notice, stored later, publishes it. */
    if (first < req->len)
        atomic_store_explicit(&pipe->flows[channel].written, first,
                              memory_order_relaxed);
    return first;
}

/* Announces the message on this channel, with its first piece. */
static void announce(struct rueda_shm_writer *writer, unsigned channel,
                     struct rueda_req *req)
{
    struct rueda_shm_outgoing *out = &writer->channels[channel];
    struct rueda_shm_notice *notice =
        rueda_shm_notice(writer->pipe, writer->next);
    size_t first = write_first(writer->pipe, channel, notice, req);

    notice->tag = req->tag;
    notice->len = req->len;
    notice->channel = channel;
    notice->ready = (uint32_t)first;
    /* Release: a reader that sees it sees notice, ring and `written` complete.
     */
    atomic_store_explicit(&notice->number, writer->next, memory_order_release);

    out->before = out->number;
    out->number = writer->next++;
    out->written = first;
    out->read = 0;
    writer->free &= ~(1u << channel);
    req->done = first;
    if (first == req->len) {
        req->status = RUEDA_OK;
    } else {
        out->req = req;
        writer->busy |= 1u << channel;
    }
}

/* How much is to be written behind `written`, without a break, and may be. */
static size_t room_for(struct rueda_shm_writer *writer, unsigned channel)
{
    struct rueda_shm_outgoing *out = &writer->channels[channel];
    size_t offset = out->written % RUEDA_SHM_RING;
    size_t room = RUEDA_SHM_RING - (out->written - out->read);
    size_t rest = out->req->len - out->written;
    uint64_t read;

    /* The reader sets its count back when it has read everything, so it is
     * looked at only while something is left to write. */
    if (room == 0 && rest > 0) {
        /* Acquire: the reader is done with those bytes. Sequentially
         * consistent for is_stuck, as in collect_acks(). */
        read = atomic_load_explicit(&writer->pipe->flows[channel].read,
                                    memory_order_seq_cst);
        if (read < out->read || read > out->written) {
            break_lane(writer, "bytes read", read);
            return 0;
        }
        room = (size_t)read - out->read;
        out->read = (size_t)read;
    }
    if (room > RUEDA_SHM_RING - offset)
        room = RUEDA_SHM_RING - offset;
    if (room > RUEDA_SHM_PIECE)
        room = RUEDA_SHM_PIECE;
    return room < rest ? room : rest;
}

/* Writes pieces while there is room, one ringful at most. Returns whether
 * there was room for any. */
static bool write_more(struct rueda_shm_writer *writer, unsigned channel)
{
    struct rueda_shm_outgoing *out = &writer->channels[channel];
    struct rueda_req *req = out->req;
    char *ring = writer->pipe->rings[channel];
    size_t limit = out->written + RUEDA_SHM_RING;
    size_t room = room_for(writer, channel);
    bool has_moved = room > 0;

    while (room > 0) {
        memcpy(ring + out->written % RUEDA_SHM_RING, req->buf + out->written,
               room);
        out->written += room;
        /* Release: a reader that sees the count sees the piece, too. */
        atomic_store_explicit(&writer->pipe->flows[channel].written,
                              out->written, memory_order_release);
        req->done = out->written;
        room = out->written < limit ? room_for(writer, channel) : 0;
    }
    if (out->written == req->len) {
        out->req = NULL;
        writer->busy &= ~(1u << channel);
        req->status = RUEDA_OK;
    }
    return has_moved;
}

/* Announces the oldest waiting send, if a channel is free. */
static bool announce_next(struct rueda_shm_writer *writer)
{
    struct rueda_req *req = writer->waiting.head;
    int channel = choose_channel(writer, req->len);

    if (channel < 0)
        return false;
    rueda_reqs_pop(&writer->waiting);
    announce(writer, (unsigned)channel, req);
    return true;
}

static bool write_all(struct rueda_shm_writer *writer)
{
    bool has_moved = false;

    for (unsigned busy = writer->busy; busy != 0; busy &= busy - 1)
        has_moved |= write_more(writer, (unsigned)__builtin_ctz(busy));
    while (writer->waiting.head != NULL && announce_next(writer))
        has_moved = true;
    return has_moved;
}

static bool has_work(const struct rueda_shm_writer *writer)
{
    return writer->busy != 0 || writer->waiting.head != NULL;
}

static void set_stuck(struct rueda_shm_writer *writer, bool is_stuck)
{
    writer->is_stuck = is_stuck;
    atomic_store_explicit(&writer->pipe->is_stuck, is_stuck,
                          memory_order_seq_cst);
}

static rueda_status result(const struct rueda_shm_writer *writer,
                           bool has_moved)
{
    if (writer->is_broken)
        return RUEDA_ERR_PEER_LOST;
    return has_moved ? RUEDA_OK : RUEDA_IN_PROGRESS;
}

rueda_status rueda_shm_writer_send(struct rueda_shm_writer *writer,
                                   struct rueda_req *req)
{
    /* Sends that came first go first. */
    bool is_first = writer->waiting.head == NULL;

    rueda_reqs_push(&writer->waiting, req);
    return result(writer, is_first && announce_next(writer));
}

rueda_status rueda_shm_writer_turn(struct rueda_shm_writer *writer)
{
    bool has_moved;

    if (!has_work(writer))
        return result(writer, false);
    has_moved = write_all(writer);
    if (!has_moved && !writer->is_stuck) {
        /*
         * This rank may sleep now, and the reader notifies it only if it sees
         * is_stuck after an ack. We store is_stuck and then look for acks; the
         * reader stores the ack and then looks at is_stuck. All four are
         * sequentially consistent, so one of the two sees the other's store.
         */
        set_stuck(writer, true);
        has_moved = write_all(writer);
    }
    if (writer->is_stuck && !has_work(writer))
        set_stuck(writer, false);
    return result(writer, has_moved);
}

bool rueda_shm_writer_cancel(struct rueda_shm_writer *writer,
                             rueda_status status)
{
    bool is_half = writer->busy != 0;

    rueda_reqs_end(&writer->waiting, status);
    for (unsigned busy = writer->busy; busy != 0; busy &= busy - 1) {
        unsigned channel = (unsigned)__builtin_ctz(busy);

        writer->channels[channel].req->status = status;
        writer->channels[channel].req = NULL;
    }
    writer->busy = 0;
    return is_half;
}
