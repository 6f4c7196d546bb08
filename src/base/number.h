/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers as text: decimal digits and nothing else, no sign, no blank, no
 * locale. Pure; any thread. */
#ifndef RUEDA_BASE_NUMBER_H
#define RUEDA_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Up to most. NULL is no number; out is written only on success. */
bool rueda_parse_whole(const char *text, uint64_t most, uint64_t *out);

/* The same up to INT_MAX. */
bool rueda_parse_int(const char *text, int *out);

#endif /* RUEDA_BASE_NUMBER_H */
