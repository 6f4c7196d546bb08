/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a benchmark as a JSON array of objects, for programs. */
#ifndef RUEDA_TOOL_JSON_H
#define RUEDA_TOOL_JSON_H

#include <stdio.h>

#include "tool/bench.h"

/* All zero writes nothing anywhere. */
struct rueda_json {
    FILE *file;
    int count;
};

/* False with errno. */
bool rueda_json_open(struct rueda_json *json, const char *path);
void rueda_json_row(struct rueda_json *json, const struct rueda_bench *bench,
                    const struct rueda_row *row);

/* End the array. False with errno if anything could not be written. */
bool rueda_json_close(struct rueda_json *json);

/* Text in quotes, with what JSON wants escaped; null for NULL. */
void rueda_json_text(FILE *file, const char *text);

/* A number; null for what JSON has no number for. */
void rueda_json_number(FILE *file, double number);

#endif /* RUEDA_TOOL_JSON_H */
