/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that ends with its cap, one character, after every addition: the array
 * of a JSON text that is closed at every moment.
 *
 * Additions overwrite the cap and put it behind them. That holds also when the
 * process is killed in the middle: the system carries out a write page by page,
 * and SIGKILL ends it between two of them (nine of ten files were torn when a
 * program was killed that did nothing but write 64 KiB at a time). So each
 * write stays within one page, and blanks fill up what an item leaves free at
 * its end. The cap steps over to the next page by one store of two bytes into a
 * mapping of both pages, which nothing can cut in half. Where a file cannot be
 * mapped it is written, and is torn if the kill comes in that very moment. Loss
 * of power is another matter.
 *
 * One thread at a time; may block as the file system does.
 */
#ifndef RUEDA_OS_CAPPED_H
#define RUEDA_OS_CAPPED_H

#include <rueda/rueda.h>

#include "os/memory.h"

/* An item with its cap has to fit in a page. */
#define RUEDA_CAPPED_ITEM_MAX (RUEDA_PAGE_BYTES - 1)

struct rueda_capped {
    int fd; /* -1: it is closed, or has failed */
    char cap;
    int64_t end; /* where the cap is */
    size_t used; /* of what is gathered to be written there */
    char gathered[RUEDA_PAGE_BYTES];
};

/*
 * Make the file, or empty the one that is there, and write the head and the
 * cap. RUEDA_ERR_IO leaves the cause in errno, and the file closed.
 */
rueda_status rueda_capped_open(struct rueda_capped *self, const char *path,
                               const char *head, char cap);

/*
 * Add up to RUEDA_CAPPED_ITEM_MAX bytes, which stay together. They are gathered
 * until a page is full or rueda_capped_flush(). On RUEDA_ERR_IO, with the cause
 * in errno, what was gathered is lost, the cap is where it was, and the file is
 * closed; a file that is closed takes nothing, and says RUEDA_ERR_CLOSED.
 */
rueda_status rueda_capped_add(struct rueda_capped *self, const void *item,
                              size_t len);
rueda_status rueda_capped_flush(struct rueda_capped *self);

/* What was not flushed is lost. */
void rueda_capped_close(struct rueda_capped *self);

#endif /* RUEDA_OS_CAPPED_H */
