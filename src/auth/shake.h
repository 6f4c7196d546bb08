/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake (handshake.h) over a stream socket. */
#ifndef RUEDA_AUTH_SHAKE_H
#define RUEDA_AUTH_SHAKE_H

#include "auth/handshake.h"

/*
 * Send and receive what can move without blocking. RUEDA_OK when both ends have
 * proven themselves, and not a byte of what follows has been read;
 * RUEDA_IN_PROGRESS: again when fd can be read; else it has failed, and
 * rueda_handshake_error() says why.
 */
rueda_status rueda_shake_step(int fd, struct rueda_handshake *shake);

#endif /* RUEDA_AUTH_SHAKE_H */
