/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The function that finds an error is the first to write, and knows most about
 * it. What its callers set on the way up says less, and is dropped. */
void rueda_text_set(struct rueda_text *text, const char *format, ...)
{
    va_list args;

    if (!rueda_text_is_empty(text))
        return;
    va_start(args, format);
    vsnprintf(text->chars, sizeof(text->chars), format, args);
    va_end(args);
}

/* What does not fit is cut; the text always ends with a zero. */
void rueda_text_add(struct rueda_text *text, const char *format, ...)
{
    size_t used = strlen(text->chars);
    va_list args;

    va_start(args, format);
    vsnprintf(text->chars + used, sizeof(text->chars) - used, format, args);
    va_end(args);
}

void rueda_text_clean(struct rueda_text *text)
{
    for (char *at = text->chars; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = ' ';
}
