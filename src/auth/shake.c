/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/shake.h"

#include "os/stream.h"

rueda_status rueda_shake_step(int fd, struct rueda_handshake *shake)
{
    unsigned char byte[1];
    rueda_status status = RUEDA_OK;
    size_t moved;

    for (;;) {
        const void *bytes;
        size_t waiting = rueda_handshake_output(shake, &bytes);

        if (waiting > 0) {
            status = rueda_stream_send(fd, bytes, waiting, &moved);
            rueda_handshake_sent(shake, moved);
            if (status == RUEDA_OK)
                continue;
        }
        if (rueda_handshake_done(shake))
            return RUEDA_OK;
        if (status < 0)
            break;
        /* Byte by byte, so that nothing after the handshake is swallowed:
         * descriptors ride on the bytes that follow. */
        status = rueda_stream_recv(fd, byte, 1, &moved);
        if (status != RUEDA_OK)
            break;
        status = rueda_handshake_input(shake, byte, 1, &moved);
        if (status < 0)
            return status;
    }
    if (status == RUEDA_ERR_PEER_LOST)
        return rueda_handshake_closed(shake);
    return status;
}
