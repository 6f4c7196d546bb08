/* SPDX-License-Identifier: Apache-2.0 */
/* Appending to a file so that it ends with its cap at every moment. */
#include "os/capped.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/close.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

static bool write_at(int fd, const void *bytes, size_t len, int64_t offset)
{
    ssize_t wrote;

    do
        wrote = pwrite(fd, bytes, len, offset);
    while (wrote < 0 && errno == EINTR);
    if (wrote >= 0 && (size_t)wrote < len)
        errno = ENOSPC; /* what a short write to a file means */
    return wrote == (ssize_t)len;
}

/* Leave the file as it was after the last write that worked. */
static rueda_status give_up(struct rueda_capped *self)
{
    const int cause = errno;

    (void)!pwrite(self->fd, &self->cap, 1, self->end);
    (void)!ftruncate(self->fd, self->end + 1);
    rueda_capped_close(self);
    errno = cause;
    return RUEDA_ERR_IO;
}

/* How much of the page of the cap is left, the cap included. */
static size_t left(const struct rueda_capped *self)
{
    return RUEDA_PAGE_BYTES - (size_t)self->end % RUEDA_PAGE_BYTES;
}

rueda_status rueda_capped_flush(struct rueda_capped *self)
{
    if (self->fd < 0)
        return RUEDA_ERR_CLOSED;
    if (self->used == 0)
        return RUEDA_OK;
    self->gathered[self->used] = self->cap;
    if (!write_at(self->fd, self->gathered, self->used + 1, self->end))
        return give_up(self);
    self->end += (int64_t)self->used;
    self->used = 0;
    return RUEDA_OK;
}

/*
 * Write two bytes on both sides of a page's beginning at once. False: they were
 * not written. Populating first turns what would be a SIGBUS into an error, on
 * a full disk for instance.
 */
static bool store_across(int fd, const char bytes[2], int64_t offset)
{
    struct __attribute__((packed)) two {
        uint16_t value;
    };
    const int64_t start = offset + 1 - (int64_t)RUEDA_PAGE_BYTES;
    const size_t len = 2 * RUEDA_PAGE_BYTES;
    char *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, start);
    bool is_there;
    uint16_t both;

    if (map == MAP_FAILED)
        return false;
    is_there = madvise(map, len, MADV_POPULATE_WRITE) == 0;
    if (is_there) {
        memcpy(&both, bytes, 2);
        ((volatile struct two *)(map + RUEDA_PAGE_BYTES - 1))->value = both;
    }
    munmap(map, len);
    return is_there;
}

/* The cap becomes the first byte of the next page. */
static rueda_status step_over(struct rueda_capped *self)
{
    const char steps[2] = {' ', self->cap};
    rueda_status status;

    memset(self->gathered + self->used, ' ', left(self) - 1 - self->used);
    self->used = left(self) - 1;
    status = rueda_capped_flush(self);
    if (status != RUEDA_OK)
        return status;
    /* A blank behind the cap does no harm, and makes the page. */
    if (!write_at(self->fd, " ", 1, self->end + 1))
        return give_up(self);
    if (!store_across(self->fd, steps, self->end) &&
        !write_at(self->fd, steps, 2, self->end))
        return give_up(self);
    self->end++;
    return RUEDA_OK;
}

rueda_status rueda_capped_add(struct rueda_capped *self, const void *item,
                              size_t len)
{
    rueda_status status;

    if (self->fd < 0)
        return RUEDA_ERR_CLOSED;
    if (len > RUEDA_CAPPED_ITEM_MAX)
        return RUEDA_ERR_INVALID;
    if (self->used + len + 1 > left(self)) {
        status = step_over(self);
        if (status != RUEDA_OK)
            return status;
    }
    memcpy(self->gathered + self->used, item, len);
    self->used += len;
    return RUEDA_OK;
}

/* A link that another user has put there would let that user choose which file
 * of ours is overwritten. Our own links, and root's, are followed. */
static int open_file(const char *path)
{
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC; /* read: to be mapped */
    struct stat link;
    int fd = open(path, flags | O_NOFOLLOW | O_TRUNC, 0666);

    if (fd >= 0 || errno != ELOOP)
        return fd;
    if (lstat(path, &link) < 0)
        return -1;
    if (link.st_uid == geteuid() || link.st_uid == 0)
        return open(path, flags | O_TRUNC, 0666);
    errno = ELOOP;
    return -1;
}

rueda_status rueda_capped_open(struct rueda_capped *self, const char *path,
                               const char *head, char cap)
{
    rueda_status status;

    self->cap = cap;
    self->end = 0;
    self->used = 0;
    self->fd = open_file(path);
    if (self->fd < 0)
        return RUEDA_ERR_IO;
    status = rueda_capped_add(self, head, strlen(head));
    if (status == RUEDA_OK)
        status = rueda_capped_flush(self);
    return status;
}

void rueda_capped_close(struct rueda_capped *self)
{
    if (self->fd >= 0)
        rueda_close_keeping_errno(self->fd);
    self->fd = -1;
    self->used = 0;
}
