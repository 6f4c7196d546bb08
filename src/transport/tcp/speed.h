/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a stream is, seen by its sender, so that streams of different speed
 * can share messages: none should hold a piece for longer than a few moments.
 *
 * Only a stream in whose socket bytes wait shows its speed, so bytes that leave
 * it are counted from one sample to the next as long as it is never seen empty
 * in between. Pure.
 */
#ifndef RUEDA_TRANSPORT_TCP_SPEED_H
#define RUEDA_TRANSPORT_TCP_SPEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: nothing is known. */
struct rueda_tcp_speed {
    size_t moment;   /* bytes that leave in a moment; 0: no limit was seen */
    int64_t seen_ns; /* when that was */
    int64_t busy_ns; /* bytes have waited since then; 0: none do */
    uint64_t left;   /* bytes that had left by then */
};

/* The stream was given `written` bytes so far, of which `unsent` wait in its
 * socket. */
void rueda_tcp_speed_sample(struct rueda_tcp_speed *speed, uint64_t written,
                            size_t unsent, int64_t now_ns);

/* May it take another piece, if this much waits in its socket? */
bool rueda_tcp_speed_has_room(const struct rueda_tcp_speed *speed,
                              size_t unsent);

/* The longest piece that it should take. */
size_t rueda_tcp_speed_piece(const struct rueda_tcp_speed *speed);

#endif /* RUEDA_TRANSPORT_TCP_SPEED_H */
