/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and replies of the store as frames of bytes. Numbers are
 * little-endian:
 *
 *      at   bytes
 *       0       4   length of the frame, these four included
 *       4       1   kind
 *       5       1   length of the key
 *       6       2   status, two's complement; 0 in a request
 *       8       4   time in ms; 0 in a reply
 *      12       4   length of the value
 *      16       8   number of the request, or of the WATCH
 *      24       8   revision
 *      32       8   id of a lease; UNWATCH: number of the WATCH
 *      40       8   count, two's complement
 *      48           key, then value; the frame ends with it
 *
 * Fields that a kind does not use hold what the struct holds, so make it with
 * an initialiser. Events and nothing else among the replies have a key.
 *
 * The bytes may be hostile: the first 48 tell whether a frame will be within
 * the limits, before a receiver makes room for the rest. Pure functions, for
 * any thread; nothing is allocated or logged.
 */
#ifndef RUEDA_JOB_STORE_WIRE_H
#define RUEDA_JOB_STORE_WIRE_H

#include "job/store/store.h"

#define RUEDA_STORE_HEAD_BYTES 48

/* What an encoder writes at most: head and key. */
#define RUEDA_STORE_START_BYTES (RUEDA_STORE_HEAD_BYTES + RUEDA_STORE_KEY_BYTES)

/* The longest frame. */
#define RUEDA_STORE_FRAME_BYTES                                                \
    (RUEDA_STORE_START_BYTES + RUEDA_STORE_VALUE_BYTES)

/*
 * Write all of a frame but its value, and return the length of that; the
 * value_bytes of the value follow it as they are, from where they are. The
 * request has passed rueda_store_request_check(), the reply is the store's.
 */
size_t rueda_store_request_encode(const struct rueda_store_request *request,
                                  unsigned char out[RUEDA_STORE_START_BYTES]);
size_t rueda_store_reply_encode(const struct rueda_store_reply *reply,
                                unsigned char out[RUEDA_STORE_START_BYTES]);

/*
 * Read the frame at the beginning of len bytes.
 *
 *      RUEDA_OK            *out_bytes is its length; key and value point into
 *                          bytes, so they are borrowed as long as these stay
 *      RUEDA_IN_PROGRESS   come back with *out_bytes bytes at least: those of
 *                          a head, or of the whole frame; nothing else is
 *                          written
 *      RUEDA_ERR_INVALID   this is no frame and never will be: close the
 *                          connection; nothing is written
 */
rueda_status rueda_store_request_decode(const void *bytes, size_t len,
                                        struct rueda_store_request *out_request,
                                        size_t *out_bytes);
rueda_status rueda_store_reply_decode(const void *bytes, size_t len,
                                      struct rueda_store_reply *out_reply,
                                      size_t *out_bytes);

#endif /* RUEDA_JOB_STORE_WIRE_H */
