/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two endpoints that talk to each other over a network which is this program:
 * it carries bytes when the input says so, as many as that says, and changes,
 * loses, repeats or exchanges some, or cuts a stream. Checked: where nothing
 * was done to the bytes, every message arrives; a message that arrives is the
 * one that was sent, unless streams are plain and bytes were changed; every
 * request ends.
 *
 * An input is a list of steps of 3 bytes: what and on which way; the tag, the
 * fault or the place; how many bytes. One or two bytes more choose how streams
 * are protected. There are four ways: two streams in two directions.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "transport/tcp/ep.h"

#define STREAMS    2
#define SIDES      2
#define REQUESTS   8 /* of each side, of each kind */
#define TAGS       3
#define STEP_BYTES 3
#define CARRIED    ((size_t)64 << 10)
#define QUIET      20 /* a quiet stream is looked at in one of 16 turns */
#define MOST_TURNS 5000

struct request {
    struct rueda_req req;
    unsigned char *buf;
    size_t len;
    int tag;
    int count; /* of those with that tag before it */
};

struct side {
    struct rueda_tcp_hub *hub;
    struct rueda_ep *ep;
    int theirs[STREAMS]; /* the network's end of its streams; -1: cut */
    struct request sends[REQUESTS];
    struct request recvs[REQUESTS];
    int send_count;
    int recv_count;
};

typedef enum fault {
    NONE,
    FLIP,
    LOSE,
    REPEAT,
    EXCHANGE,
    FAULTS
} fault;

/* From one side to the other. */
struct way {
    unsigned char bytes[2 * CARRIED]; /* that the receiver had no room for */
    size_t len;
    fault fault; /* of the next bytes */
    size_t place;
    bool is_over;
};

struct world {
    struct side sides[SIDES];
    struct way ways[SIDES][STREAMS];
    rueda_tcp_shield shield;
    bool is_faulty; /* something was done to bytes, or a stream was cut */
};

/* ---- Messages ----------------------------------------------------------- */

/* Both sides know how long the n-th message of a tag is. */
static size_t length_of(int tag, int count)
{
    static const size_t lengths[] = {100,  0,
                                     1,    RUEDA_TCP_PIECE_BYTES + 1,
                                     5000, 2 * RUEDA_TCP_PIECE_BYTES + 5,
                                     70000};

    return lengths[(tag * 3 + count * 5) % 7];
}

static unsigned char byte_of(int side, const struct request *request, size_t i)
{
    return (unsigned char)(i * 7 + i / 251 + (size_t)side * 101 +
                           (size_t)request->tag * 31 +
                           (size_t)request->count * 13 + 1);
}

static void ask(struct world *world, int side, int tag, bool is_receive)
{
    struct side *self = &world->sides[side];
    struct request *all = is_receive ? self->recvs : self->sends;
    int *count = is_receive ? &self->recv_count : &self->send_count;
    const struct rueda_tag where = {.sequence = (uint64_t)tag};
    struct request *request = &all[*count];

    if (*count == REQUESTS)
        return;
    *request = (struct request){.tag = tag};
    for (int i = 0; i < *count; i++)
        request->count += all[i].tag == tag;
    (*count)++;
    request->len = length_of(tag, request->count);
    request->buf = calloc(1, request->len + 1);
    must(request->buf != NULL);
    if (is_receive) {
        rueda_ep_recv(self->ep, where, request->buf, request->len,
                      &request->req);
        return;
    }
    for (size_t i = 0; i < request->len; i++)
        request->buf[i] = byte_of(side, request, i);
    rueda_ep_send(self->ep, where, request->buf, request->len, &request->req);
}

/* ---- The network -------------------------------------------------------- */

/* What stays of `len` new bytes. */
static size_t spoil(struct world *world, struct way *way, unsigned char *bytes,
                    size_t len)
{
    const size_t at = way->place % len;
    const size_t half = len / 2;

    if (way->fault == NONE)
        return len;
    world->is_faulty = true;
    switch (way->fault) {
    case FLIP:
        bytes[at] ^= (unsigned char)(1u << (way->place & 7));
        break;
    case LOSE:
        len = at;
        break;
    case REPEAT:
        memcpy(bytes + len, bytes, len);
        len *= 2;
        break;
    default:
        for (size_t i = 0; i < half; i++) {
            unsigned char byte = bytes[i];

            bytes[i] = bytes[len - half + i];
            bytes[len - half + i] = byte;
        }
        break;
    }
    way->fault = NONE;
    return len;
}

/* Carry up to `most` bytes of the way that begins at this side; did any go? */
static bool carry(struct world *world, int side, int stream, size_t most)
{
    struct way *way = &world->ways[side][stream];
    const int from = world->sides[side].theirs[stream];
    const int to = world->sides[1 - side].theirs[stream];
    ssize_t count;

    if (from < 0 || way->is_over)
        return false;
    if (way->len == 0) {
        count = recv(from, way->bytes, most < CARRIED ? most : CARRIED, 0);
        if (count == 0) {
            way->is_over = true;
            shutdown(to, SHUT_WR);
        }
        if (count <= 0)
            return false;
        way->len = spoil(world, way, way->bytes, (size_t)count);
    }
    count = send(to, way->bytes, way->len, MSG_NOSIGNAL);
    if (count <= 0)
        return false;
    way->len -= (size_t)count;
    memmove(way->bytes, way->bytes + count, way->len);
    return true;
}

static void cut(struct world *world, int stream)
{
    world->is_faulty = true;
    for (int side = 0; side < SIDES; side++) {
        if (world->sides[side].theirs[stream] >= 0)
            close(world->sides[side].theirs[stream]);
        world->sides[side].theirs[stream] = -1;
    }
}

/* Carry all there is, until nothing moves. */
static void calm_down(struct world *world)
{
    int quiet = 0;

    for (int turn = 0; turn < MOST_TURNS && quiet < QUIET; turn++) {
        bool has_moved = false;

        for (int side = 0; side < SIDES; side++) {
            if (rueda_ep_progress(world->sides[side].ep) == RUEDA_OK)
                has_moved = true;
            for (int i = 0; i < STREAMS; i++)
                if (carry(world, side, i, CARRIED))
                    has_moved = true;
        }
        quiet = has_moved ? 0 : quiet + 1;
    }
    must(quiet == QUIET);
}

/* ---- The world ---------------------------------------------------------- */

static void open_stream(struct world *world, int side, int i)
{
    const struct rueda_ciphers ciphers = {.best = {&rueda_cipher_chacha}};
    const struct rueda_tcp_protection protection = {world->shield,
                                                    RUEDA_CHACHA20_POLY1305};
    const struct rueda_key session = {.bytes = {(unsigned char)(7 + i)},
                                      .present = true};
    struct rueda_tcp_ep *ep = (struct rueda_tcp_ep *)world->sides[side].ep;
    struct rueda_tcp_sealing *sealing = NULL;
    int fds[2];

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                    fds) == 0);
    world->sides[side].theirs[i] = fds[1];
    must(rueda_tcp_sealing_new(&ciphers, protection, &session,
                               side == 0 ? RUEDA_INITIATOR : RUEDA_ACCEPTOR,
                               &sealing) == RUEDA_OK);
    must(rueda_tcp_stream_open(&ep->streams[i], fds[0], sealing) == RUEDA_OK);
    ep->stream_count++;
}

/* Each side takes itself for rank 1, which waits until rank 0 connects. */
static void open_side(struct world *world, int side)
{
    struct side *self = &world->sides[side];
    struct rueda_key key = {.bytes = {1}, .present = true};
    const struct rueda_tcp_args args = {
        .rank = 1, .size = 2, .key = &key, .streams = STREAMS};
    struct rueda_text error = {{0}};

    must(rueda_tcp_hub_open(&args, &self->hub, &error) == RUEDA_OK);
    must(rueda_tcp_ep_open(self->hub, 0, &self->ep) == RUEDA_OK);
    for (int i = 0; i < STREAMS; i++)
        open_stream(world, side, i);
}

/* The message that a receive is to get, or NULL: it was not sent. */
static const struct request *sent_for(const struct world *world, int receiver,
                                      const struct request *request)
{
    const struct side *sender = &world->sides[1 - receiver];

    for (int i = 0; i < sender->send_count; i++)
        if (sender->sends[i].tag == request->tag &&
            sender->sends[i].count == request->count)
            return &sender->sends[i];
    return NULL;
}

static void check_recv(const struct world *world, int side,
                       const struct request *request)
{
    const struct request *sent = sent_for(world, side, request);
    const bool is_certain =
        world->shield != RUEDA_TCP_PLAIN || !world->is_faulty;

    if (!world->is_faulty)
        must((request->req.status == RUEDA_OK) == (sent != NULL));
    if (request->req.status != RUEDA_OK)
        return;
    must(request->req.done == request->len);
    /* Heads are authenticated whatever the setting. */
    must(sent != NULL);
    for (size_t i = 0; i < request->len && is_certain; i++)
        must(request->buf[i] == sent->buf[i]);
}

/* While both ends are open; what has not ended may still. */
static void check_all(const struct world *world)
{
    for (int side = 0; side < SIDES; side++)
        for (int i = 0; i < world->sides[side].recv_count; i++)
            check_recv(world, side, &world->sides[side].recvs[i]);
}

static void close_side(struct side *side)
{
    rueda_ep_progress(side->ep);
    rueda_ep_close(side->ep);
    rueda_tcp_hub_close(side->hub);
    for (int i = 0; i < side->send_count; i++) {
        must(side->sends[i].req.status <= 0);
        free(side->sends[i].buf);
    }
    for (int i = 0; i < side->recv_count; i++) {
        must(side->recvs[i].req.status <= 0);
        free(side->recvs[i].buf);
    }
}

/* ---- Steps -------------------------------------------------------------- */

static void take_step(struct world *world, const uint8_t *step)
{
    static const size_t amounts[] = {1, 17, 64, 300, 4096, CARRIED};
    const int side = step[0] >> 4 & 1;
    const int stream = step[0] >> 5 & 1;
    struct way *way = &world->ways[side][stream];

    switch (step[0] & 7) {
    case 0:
        ask(world, side, step[1] % TAGS, false);
        break;
    case 1:
        ask(world, side, step[1] % TAGS, true);
        break;
    case 2:
        rueda_ep_progress(world->sides[side].ep);
        break;
    case 3:
        way->fault = (fault)(step[1] % FAULTS);
        way->place = step[2] * (size_t)37;
        break;
    case 4:
        if (step[1] == 0xcc) /* rarely: little happens afterwards */
            cut(world, stream);
        break;
    case 5:
        calm_down(world);
        break;
    default:
        carry(world, side, stream,
              amounts[step[2] % (sizeof(amounts) / sizeof(amounts[0]))]);
        rueda_ep_progress(world->sides[1 - side].ep);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world;
    const int descriptors = fuzz_descriptors();
    struct fuzz_input input = {data, size};
    const uint8_t *step;

    memset(&world, 0, sizeof(world));
    world.shield = size % STEP_BYTES == 1   ? RUEDA_TCP_SEALED
                   : size % STEP_BYTES == 2 ? RUEDA_TCP_PROVEN
                                            : RUEDA_TCP_PLAIN;
    for (int side = 0; side < SIDES; side++)
        open_side(&world, side);
    while (fuzz_take(&input, STEP_BYTES, &step) == STEP_BYTES)
        take_step(&world, step);
    calm_down(&world);
    check_all(&world);
    for (int i = 0; i < STREAMS; i++)
        cut(&world, i);
    for (int side = 0; side < SIDES; side++)
        close_side(&world.sides[side]);
    must(fuzz_descriptors() == descriptors);
    return 0;
}
