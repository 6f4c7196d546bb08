/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buffer for the message of a failure, passed down to the function that finds
 * the error, so that the caller and the log get the same text. It keeps the
 * first message it is given. Not for several threads at once.
 */
#ifndef RUEDA_BASE_TEXT_H
#define RUEDA_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define RUEDA_TEXT_BYTES 1024

struct rueda_text {
    char chars[RUEDA_TEXT_BYTES];
};

static inline bool rueda_text_is_empty(const struct rueda_text *text)
{
    return text->chars[0] == '\0';
}

/* Keep this message unless there is one already. Cut, never overrun. */
void rueda_text_set(struct rueda_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Add to the message. */
void rueda_text_add(struct rueda_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Words that came from another process: what a terminal could take for a
 * command becomes a blank. */
void rueda_text_clean(struct rueda_text *text);

#endif /* RUEDA_BASE_TEXT_H */
