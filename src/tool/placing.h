/* SPDX-License-Identifier: Apache-2.0 */
/* On which core a rank runs. */
#ifndef RUEDA_TOOL_PLACING_H
#define RUEDA_TOOL_PLACING_H

/* As --bind has them; the names are in options.c. */
typedef enum rueda_placing {
    RUEDA_PLACING_START, /* "none": each turn begins there */
    RUEDA_PLACING_BOUND, /* "core": it stays there */
    RUEDA_PLACING_FREE,  /* "free": nowhere in particular */
} rueda_placing;

/*
 * Move the calling thread to the rank-th core that it may use (they are counted
 * round if there are fewer), and leave it free to go elsewhere, or bind it
 * there, or leave it where it is.
 *
 * Ranks that wait for a command are all woken by one process, the coordinator,
 * and the scheduler likes to put them beside it, on one core; spinning ranks
 * then need many milliseconds to part. So every turn begins with this.
 */
void rueda_placing_apply(int rank, rueda_placing placing);

#endif /* RUEDA_TOOL_PLACING_H */
