/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job's key: 32 random bytes that only the ranks of a job hold. It never
 * goes over a wire and never into the log; handshake.h proves that a peer has
 * it.
 *
 * A key file, or what a launcher left open in its place, holds the 64
 * hexadecimal digits of the key and, if you like, a newline. Calls base/ and
 * os/. Any thread, though one key belongs to one thread at a time. Failures are
 * put into words in the text the caller gives; the caller logs them.
 */
#ifndef RUEDA_AUTH_KEY_H
#define RUEDA_AUTH_KEY_H

#include <stdbool.h>

#include <rueda/rueda.h>

#include "base/text.h"

#define RUEDA_KEY_BYTES 32

/* All zero is a job without a key. */
struct rueda_key {
    unsigned char bytes[RUEDA_KEY_BYTES];
    bool present;
};

/* Make a fresh key. RUEDA_ERR_IO if the system has no random bytes for us. */
rueda_status rueda_key_create(struct rueda_key *out_key);

/*
 * Read the key at path. RUEDA_ERR_IO if the file cannot be read; RUEDA_ERR_AUTH
 * if it is no safe place for a secret: not a regular file, open to the group
 * or to others, or owned by a user other than ours and root;
 * RUEDA_ERR_INVALID if what it holds is not a key. why then says what is wrong
 * and how to mend it. May block as long as the file system does.
 */
rueda_status rueda_key_read_file(const char *path, struct rueda_text *why,
                                 struct rueda_key *out_key);

/*
 * Read the key from a file that a launcher left open: a memfd, or a file with a
 * name, which has to be as safe as one that rueda_key_read_file() takes. It is
 * read from its start and stays open, so that it can be read again. The same
 * statuses; why names RUEDA_KEY_FD.
 */
rueda_status rueda_key_read_fd(int fd, struct rueda_text *why,
                               struct rueda_key *out_key);

/*
 * Write the key to a new file that only its owner may read. A file that is
 * there already is left alone: RUEDA_ERR_IO, as for every failure of the
 * system. RUEDA_ERR_INVALID if there is no key to write.
 */
rueda_status rueda_key_write_file(const char *path, const struct rueda_key *key,
                                  struct rueda_text *why);

/* A name that stands for another one where all users can read it, such as that
 * of a socket: the same for the same text, and tells nothing else of it. */
#define RUEDA_HIDDEN_NAME_BYTES 33
void rueda_hidden_name(const char *text, char out[RUEDA_HIDDEN_NAME_BYTES]);

/* Zero bytes that held a secret; is not optimised away. Exported for the
 * modules beside the library. */
RUEDA_API void rueda_secret_wipe(void *bytes, size_t len);

/* Forget the key: its memory is zero afterwards, and says "no key". */
void rueda_key_wipe(struct rueda_key *key);

#endif /* RUEDA_AUTH_KEY_H */
