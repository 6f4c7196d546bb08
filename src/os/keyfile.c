/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and writing a secret by one descriptor: what is checked (fstat) and
 * what is read are then the same file, whatever happens to its name meanwhile.
 */
#include "os/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/close.h"

/* By pread(), since the position of an inherited descriptor is shared with
 * other processes that read the same key. */
static rueda_status read_up_to(int fd, unsigned char *buf, size_t room,
                               size_t *out_bytes)
{
    size_t done = 0;

    while (done < room) {
        ssize_t got = pread(fd, buf + done, room - done, (off_t)done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return RUEDA_ERR_IO;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    *out_bytes = done;
    return RUEDA_OK;
}

static rueda_status write_all(int fd, const unsigned char *bytes, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t put = write(fd, bytes + done, len - done);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return RUEDA_ERR_IO;
        done += (size_t)put;
    }
    return RUEDA_OK;
}

rueda_status rueda_keyfile_read_fd(int fd, void *buf, size_t room,
                                   struct rueda_keyfile *out_file)
{
    struct rueda_keyfile file = {.bytes = 0};
    rueda_status status = RUEDA_OK;
    struct stat st;

    if (fstat(fd, &st) != 0)
        return RUEDA_ERR_IO;
    file.is_regular = S_ISREG(st.st_mode);
    file.has_name = st.st_nlink > 0;
    file.is_owner_trusted = st.st_uid == geteuid() || st.st_uid == 0;
    file.mode = (unsigned)st.st_mode & 07777;
    if (file.is_regular)
        status = read_up_to(fd, buf, room, &file.bytes);
    if (status == RUEDA_OK)
        *out_file = file;
    return status;
}

rueda_status rueda_keyfile_read(const char *path, void *buf, size_t room,
                                struct rueda_keyfile *out_file)
{
    rueda_status status;
    int fd;

    /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return RUEDA_ERR_IO;
    status = rueda_keyfile_read_fd(fd, buf, room, out_file);
    rueda_close_keeping_errno(fd);
    return status;
}

rueda_status rueda_keyfile_write(const char *path, const void *bytes,
                                 size_t len)
{
    rueda_status status;
    int cause;
    int fd;

    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return RUEDA_ERR_IO;
    /* The umask, or a default ACL of the folder, may have changed the mode. */
    if (fchmod(fd, 0600) != 0)
        goto err_remove;
    status = write_all(fd, bytes, len);
    if (status != RUEDA_OK)
        goto err_remove;
    /* A full disk or quota may show only here (NFS). */
    if (close(fd) != 0) {
        fd = -1;
        goto err_remove;
    }
    return RUEDA_OK;

err_remove:
    cause = errno;
    if (fd >= 0)
        close(fd);
    unlink(path);
    errno = cause;
    return RUEDA_ERR_IO;
}
