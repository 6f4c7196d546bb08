/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An endpoint whose peer has proved itself, and then sends what it likes. Every
 * request ends, and a message that is delivered has no byte that did not come.
 *
 * An input is a list of steps of 8 bytes. Zeros where a step could say
 * something odd make a frame that is right. If there is a byte more the streams
 * are sealed, and what it is not zero in is wrong with each third seal.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "transport/tcp/ep.h"

#define STREAMS  2
#define REQUESTS 12
#define TURNS    20 /* a quiet stream is looked at in one of 16 */
#define PATTERN  0x5a

struct request {
    struct rueda_req req;
    char *buf;
    size_t len;
    bool is_receive;
};

struct world {
    struct rueda_tcp_hub *hub;
    struct rueda_ep *ep;
    struct fuzz_stream streams[STREAMS];
    bool is_stuck[STREAMS]; /* a frame was sent in part only */
    struct rueda_tcp_sealing *sealings[STREAMS]; /* the peer's */
    unsigned char flaw;                          /* of a seal */
    unsigned sealed;                             /* frames, so far */
    uint64_t number;                             /* of the next piece */
    struct request requests[REQUESTS];
    int count;
};

static const size_t lengths[8] = {0,
                                  1,
                                  100,
                                  RUEDA_TCP_PIECE_BYTES,
                                  RUEDA_TCP_PIECE_BYTES + 1,
                                  2 * RUEDA_TCP_PIECE_BYTES + 5,
                                  3 * RUEDA_TCP_PIECE_BYTES,
                                  RUEDA_TCP_MOST_BYTES};

/* A stream of the endpoint, and the peer's end of it. */
static void open_stream(struct world *world, int i, rueda_tcp_shield shield)
{
    const struct rueda_ciphers ciphers = {.best = {&rueda_cipher_chacha}};
    const struct rueda_tcp_protection protection = {shield,
                                                    RUEDA_CHACHA20_POLY1305};
    const struct rueda_key session = {.bytes = {7}, .present = true};
    struct rueda_tcp_ep *ep = (struct rueda_tcp_ep *)world->ep;
    struct rueda_tcp_sealing *sealing = NULL;
    int fds[2];

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                    fds) == 0);
    world->streams[i] = (struct fuzz_stream){fds[0], fds[1]};
    must(rueda_tcp_sealing_new(&ciphers, protection, &session, RUEDA_ACCEPTOR,
                               &sealing) == RUEDA_OK &&
         rueda_tcp_sealing_new(&ciphers, protection, &session, RUEDA_INITIATOR,
                               &world->sealings[i]) == RUEDA_OK);
    must(rueda_tcp_stream_open(&ep->streams[i], fds[0], sealing) == RUEDA_OK);
    ep->stream_count++;
}

static void open_world(struct world *world, rueda_tcp_shield shield)
{
    struct rueda_key key = {.bytes = {1}, .present = true};
    const struct rueda_tcp_args args = {
        .rank = 1, .size = 2, .key = &key, .streams = STREAMS};
    struct rueda_text error = {{0}};

    memset(world, 0, sizeof(*world));
    must(rueda_tcp_hub_open(&args, &world->hub, &error) == RUEDA_OK);
    must(rueda_tcp_ep_open(world->hub, 0, &world->ep) == RUEDA_OK);
    for (int i = 0; i < STREAMS; i++)
        open_stream(world, i, shield);
}

/* A turn of the endpoint; what it sends is taken and not looked at. */
static void turn(struct world *world)
{
    static char dropped[1 << 16];

    rueda_ep_progress(world->ep);
    for (int i = 0; i < STREAMS; i++)
        while (recv(world->streams[i].theirs, dropped, sizeof(dropped), 0) > 0)
            ;
}

static struct rueda_tag tag_of(const uint8_t *step)
{
    const uint64_t number = step[2] % 4;

    return (struct rueda_tag){.sequence =
                                  number == 3 ? RUEDA_TAG_CONTROL : number};
}

static void ask(struct world *world, const uint8_t *step, bool is_receive)
{
    const struct rueda_tag tag = tag_of(step);
    struct request *request = &world->requests[world->count];

    if (world->count == REQUESTS)
        return;
    world->count++;
    request->is_receive = is_receive;
    request->len = lengths[step[6] % 7];
    request->buf = calloc(1, request->len + 1);
    must(request->buf != NULL);
    if (is_receive)
        rueda_ep_recv(world->ep, tag, request->buf, request->len,
                      &request->req);
    else
        rueda_ep_send(world->ep, tag, request->buf, request->len,
                      &request->req);
}

/* Send to the endpoint, which takes it while it has turns. */
static bool push(struct world *world, int stream, const void *bytes, size_t len)
{
    size_t sent = 0;

    for (int i = 0; i < TURNS && sent < len; i++) {
        ssize_t count =
            send(world->streams[stream].theirs, (const char *)bytes + sent,
                 len - sent, MSG_NOSIGNAL);

        if (count > 0)
            sent += (size_t)count;
        turn(world);
    }
    return sent == len;
}

static bool push_frame(struct world *world, int stream,
                       const struct rueda_tcp_frame *frame, const void *piece,
                       size_t bytes)
{
    struct rueda_tcp_sealing *sealing = world->sealings[stream];
    const bool is_whole = sealing->shield == RUEDA_TCP_SEALED;
    size_t len;

    must(rueda_tcp_sealing_close(sealing, frame, bytes > 0 ? piece : NULL,
                                 &len) == RUEDA_OK);
    if (world->sealed++ % 3 == 2)
        sealing->frame[len - 1] ^= world->flaw;
    return push(world, stream, sealing->frame, len) &&
           (is_whole || push(world, stream, piece, bytes));
}

static void send_frame(struct world *world, const uint8_t *step)
{
    static unsigned char piece[RUEDA_TCP_PIECE_BYTES];
    const int stream = step[0] >> 2 & 1;
    struct rueda_tcp_frame frame = {
        .kind = (rueda_tcp_kind)((step[1] + 1) % 4),
        .tag = tag_of(step),
        .total = lengths[step[6] % 8],
    };

    if (frame.kind == RUEDA_TCP_PIECE) {
        frame.number = world->number++ + (uint64_t)(int8_t)step[4];
        frame.offset = (step[5] % 8) * RUEDA_TCP_PIECE_BYTES;
        frame.first = frame.number - step[5] % 8 - step[3];
        frame.bytes = (uint32_t)RUEDA_TCP_PIECE_BYTES;
        if (frame.total - frame.offset < frame.bytes)
            frame.bytes = (uint32_t)(frame.total - frame.offset);
        frame.bytes += step[7];
    } else {
        frame.first = step[3];
        frame.total = step[6] * (uint64_t)1000;
    }
    if (world->is_stuck[stream])
        return;
    if (piece[0] != PATTERN)
        memset(piece, PATTERN, sizeof(piece));
    world->is_stuck[stream] =
        !push_frame(world, stream, &frame, piece,
                    frame.bytes <= sizeof(piece) ? frame.bytes : 0);
}

static void check_request(const struct request *request)
{
    const struct rueda_req *req = &request->req;

    must(req->status <= 0);
    must(req->done <= request->len);
    if (req->status != RUEDA_OK)
        return;
    must(req->done == request->len);
    for (size_t i = 0; i < request->len; i++)
        must(request->buf[i] == (request->is_receive ? PATTERN : 0));
}

static void close_world(struct world *world)
{
    for (int i = 0; i < TURNS; i++)
        turn(world);
    for (int i = 0; i < STREAMS; i++) {
        close(world->streams[i].theirs);
        rueda_tcp_sealing_free(world->sealings[i]);
    }
    rueda_ep_progress(world->ep);
    rueda_ep_close(world->ep);
    rueda_tcp_hub_close(world->hub);
    for (int i = 0; i < world->count; i++) {
        check_request(&world->requests[i]);
        free(world->requests[i].buf);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int descriptors = fuzz_descriptors();
    struct fuzz_input input = {data, size};
    struct world world;
    const uint8_t *step;

    open_world(&world, size % 8 == 1   ? RUEDA_TCP_SEALED
                       : size % 8 == 2 ? RUEDA_TCP_PROVEN
                                       : RUEDA_TCP_PLAIN);
    if (size % 8 == 1 || size % 8 == 2)
        world.flaw = data[size - 1];
    while (fuzz_take(&input, 8, &step) == 8) {
        switch (step[0] & 3) {
        case 0:
            ask(&world, step, true);
            break;
        case 1:
            ask(&world, step, false);
            break;
        default:
            send_frame(&world, step);
            break;
        }
        turn(&world);
    }
    close_world(&world);
    must(fuzz_descriptors() == descriptors);
    return 0;
}
