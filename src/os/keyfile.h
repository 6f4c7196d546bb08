/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small secret files, by name or inherited: the system calls under auth/key.c,
 * which decides what a file must be like. Any thread. May block as long as the
 * file system does.
 *
 * A function that returns RUEDA_ERR_IO leaves the cause in errno.
 */
#ifndef RUEDA_OS_KEYFILE_H
#define RUEDA_OS_KEYFILE_H

#include <stdbool.h>
#include <stddef.h>

#include <rueda/rueda.h>

/* What was found. All of it is about the one file that was opened, so no
 * process can replace it between the check and the read. */
struct rueda_keyfile {
    bool is_regular;       /* a memfd is, too */
    bool has_name;         /* in a folder, where others may find it */
    bool is_owner_trusted; /* the owner is the user we run as, or root */
    unsigned mode;         /* the permission bits, 07777 of them */
    size_t bytes;          /* how many bytes were read; none if not regular */
};

/*
 * Read at most room bytes from the start of the file. A symbolic link is not
 * followed (errno is ELOOP); a FIFO or a device is reported but not read. buf
 * may be written even on failure, so wipe it.
 */
rueda_status rueda_keyfile_read(const char *path, void *buf, size_t room,
                                struct rueda_keyfile *out_file);

/* The same from the start of an open file, whose position stays as it is. What
 * is not regular is reported but not read. fd is borrowed. */
rueda_status rueda_keyfile_read_fd(int fd, void *buf, size_t room,
                                   struct rueda_keyfile *out_file);

/*
 * Make a file that only its owner may read and write, whatever the umask.
 * Nothing may be at path yet (errno is EEXIST). On failure no file is left.
 */
rueda_status rueda_keyfile_write(const char *path, const void *bytes,
                                 size_t len);

#endif /* RUEDA_OS_KEYFILE_H */
