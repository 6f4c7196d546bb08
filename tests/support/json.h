/* SPDX-License-Identifier: Apache-2.0 */
/* Enough of JSON to look into what a program has written. A value is where its
 * text begins, and NULL what is not there or no JSON; all take NULL. */
#ifndef RUEDA_TESTS_SUPPORT_JSON_H
#define RUEDA_TESTS_SUPPORT_JSON_H

#include <stdbool.h>

/* Where the text behind a value begins. */
const char *json_skip(const char *value);

/* Is the whole text one value? */
bool json_is_valid(const char *text);

const char *json_element(const char *array, int index);
const char *json_field(const char *object, const char *name);

/* NAN if it is no number. */
double json_number(const char *value);
/* Is it this string? Only for strings without a backslash. */
bool json_is_text(const char *value, const char *text);

#endif /* RUEDA_TESTS_SUPPORT_JSON_H */
