/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes in bytes as people write and read them. rueda_parse_size(), in base,
 * reads them. Pure.
 */
#ifndef RUEDA_TOOL_SIZE_H
#define RUEDA_TOOL_SIZE_H

#include <stddef.h>

#define RUEDA_SIZE_TEXT 32

/* "4k" where the size is a whole number of a unit, digits otherwise: what
 * rueda_parse_size() reads back. Returns out. */
const char *rueda_size_short(size_t bytes, char out[RUEDA_SIZE_TEXT]);

/* "4 KiB", "1.5 GiB": for people. Returns out. */
const char *rueda_size_words(size_t bytes, char out[RUEDA_SIZE_TEXT]);

#endif /* RUEDA_TOOL_SIZE_H */
