/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks of a host say to one another when they meet, from someone who says
 * anything, and sends as many descriptors as he likes.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "os/clock.h"
#include "os/unix_socket.h"
#include "segment/wire.h"

#define SECOND   ((int64_t)1000000000)
#define MOST_FDS 4

static void hear_kinds(const uint8_t *data, size_t size, char wanted)
{
    const int64_t deadline_ns = rueda_clock_ns() + SECOND;
    struct rueda_text error = {{0}};
    rueda_status status = RUEDA_OK;
    struct fuzz_stream stream;
    size_t heard = 0;

    fuzz_stream_open(&stream, data, size);
    while (status == RUEDA_OK) {
        status = rueda_meet_recv_kind(stream.ours, wanted, deadline_ns, &error);
        heard += status == RUEDA_OK;
    }
    must(heard <= size);
    must(status < 0 && strcmp(rueda_status_str(status), "unknown status") != 0);
    fuzz_stream_close(&stream);
}

/* A failure that is told is heard as it was. */
static void tell_failure(const uint8_t *data, size_t size, rueda_status status)
{
    struct rueda_text error = {{0}};
    struct rueda_text why = {{0}};
    char *words = fuzz_text(data, size);
    struct fuzz_stream stream;

    rueda_text_set(&why, "%s", words);
    fuzz_stream_open(&stream, "", 0);
    rueda_meet_fail(stream.ours, status, &why);
    must(rueda_meet_recv_kind(stream.theirs, RUEDA_MEET_GO,
                              rueda_clock_ns() + SECOND, &error) == status);
    must(strcmp(error.chars, why.chars) == 0);
    fuzz_stream_close(&stream);
    free(words);
}

/* Expect some descriptors and get others: all or none, and none is lost. */
static void take_descriptors(int wanted, int given)
{
    const int64_t deadline_ns = rueda_clock_ns() + SECOND;
    const int open_before = fuzz_descriptors();
    int given_fds[MOST_FDS] = {0, 1, 2, 0};
    int fds[MOST_FDS] = {-1, -1, -1, -1};
    int ends[2];
    rueda_status status;

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                    ends) == 0);
    if (given > 0)
        must(rueda_unix_send_fds(ends[1], given_fds, given) == RUEDA_OK);
    else
        must(send(ends[1], "f", 1, 0) == 1);
    status = rueda_meet_recv_fds(ends[0], fds, wanted, deadline_ns);
    must(status ==
         (wanted == given || wanted == 0 ? RUEDA_OK : RUEDA_ERR_INVALID));
    for (int i = 0; i < MOST_FDS; i++) {
        must((fds[i] >= 0) == (status == RUEDA_OK && i < wanted));
        if (fds[i] >= 0)
            close(fds[i]);
    }
    close(ends[0]);
    close(ends[1]);
    must(fuzz_descriptors() == open_before);
}

/* The choices: what is expected; how many descriptors are, and come. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char kinds[] = {RUEDA_MEET_START, RUEDA_MEET_READY,
                                 RUEDA_MEET_GO};
    struct fuzz_input input = {data, size};
    const unsigned choice = fuzz_choice(&input);
    const unsigned counts = fuzz_choice(&input);
    int rank;
    int all;

    if (rueda_meet_about_read(input.data, input.size, &rank, &all)) {
        unsigned char again[RUEDA_MEET_ABOUT_BYTES];

        rueda_meet_about_write(again, rank, all);
        must(memcmp(again, input.data, sizeof(again)) == 0);
    }
    hear_kinds(input.data, input.size, kinds[choice % 3]);
    tell_failure(input.data, input.size,
                 (rueda_status) - (1 + (int)(choice % -RUEDA_ERR_STALLED)));
    take_descriptors((int)(counts % (MOST_FDS + 1)),
                     (int)(counts / 16 % (MOST_FDS + 1)));
    return 0;
}
