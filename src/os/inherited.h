/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets that another program made and left open for us. Others may hold them
 * too, so their flags stay as they are. Functions that return RUEDA_ERR_IO
 * leave the cause in errno.
 */
#ifndef RUEDA_OS_INHERITED_H
#define RUEDA_OS_INHERITED_H

#include <rueda/rueda.h>

/*
 * Send all of len bytes, or receive some, at least one, len > 0. Both wait
 * until the clock of os/clock.h says deadline_ns, then RUEDA_ERR_TIMEOUT; what
 * can be done at once is done even then. RUEDA_ERR_PEER_LOST: the other end is
 * closed.
 */
rueda_status rueda_inherited_send(int fd, const void *buf, size_t len,
                                  int64_t deadline_ns);
rueda_status rueda_inherited_recv(int fd, void *buf, size_t len,
                                  int64_t deadline_ns, size_t *out_bytes);

#endif /* RUEDA_OS_INHERITED_H */
