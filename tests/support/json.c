/* SPDX-License-Identifier: Apache-2.0 */
#include "support/json.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *blanks(const char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
        at++;
    return at;
}

/* Past one character, which must be this one, and blanks. */
static const char *past(const char *at, char c)
{
    return at != NULL && *at == c ? blanks(at + 1) : NULL;
}

/* Past the escape behind a backslash. */
static const char *skip_escape(const char *at)
{
    if (*at == '\0' || strchr("\"\\/bfnrtu", *at) == NULL)
        return NULL;
    if (*at++ != 'u')
        return at;
    for (int i = 0; i < 4; i++)
        if (!isxdigit((unsigned char)*at++))
            return NULL;
    return at;
}

/* Past a character of UTF-8 of several bytes. */
static const char *skip_wide(const char *at)
{
    const unsigned char first = (unsigned char)*at++;
    const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;

    if (first < 0xc2 || first > 0xf4)
        return NULL;
    for (int i = 0; i < more; i++)
        if (((unsigned char)*at++ & 0xc0) != 0x80)
            return NULL;
    return at;
}

static const char *skip_text(const char *at)
{
    at++;
    while (at != NULL && *at != '"') {
        if ((unsigned char)*at < 0x20)
            return NULL;
        if (*at == '\\')
            at = skip_escape(at + 1);
        else
            at = (unsigned char)*at < 0x80 ? at + 1 : skip_wide(at);
    }
    return at != NULL ? blanks(at + 1) : NULL;
}

static const char *skip_word(const char *at)
{
    static const char *const words[] = {"null", "true", "false"};
    char *end;

    for (int i = 0; i < 3; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0)
            return blanks(at + strlen(words[i]));
    /* strtod() knows more than JSON: "inf", "nan", hexadecimal, "+1", ".5". */
    if (*at != '-' && !isdigit((unsigned char)*at))
        return NULL;
    strtod(at, &end);
    for (const char *c = at; c < end; c++)
        if (strchr("+-.0123456789eE", *c) == NULL)
            return NULL;
    return end == at ? NULL : blanks(end);
}

/* Past the name and the colon before a value of an object. */
static const char *skip_name(const char *at)
{
    return *at == '"' ? past(skip_text(at), ':') : NULL;
}

/* Past the first `count` members of an array or object, -1 for all of it; NULL
 * if it has fewer, or is none. */
static const char *skip_members(const char *at, int count)
{
    const bool is_object = *at == '{';
    const char close = is_object ? '}' : ']';

    at = blanks(at + 1);
    for (int i = 0; i != count; i++) {
        if (i == 0 && *at == close)
            return count < 0 ? blanks(at + 1) : NULL;
        if (is_object)
            at = skip_name(at);
        at = json_skip(at);
        if (at == NULL)
            return NULL;
        if (*at == close)
            return count < 0 ? blanks(at + 1) : NULL;
        at = past(at, ',');
        if (at == NULL)
            return NULL;
    }
    return *at != close ? at : NULL;
}

const char *json_skip(const char *value)
{
    if (value == NULL)
        return NULL;
    value = blanks(value);
    if (*value == '{' || *value == '[')
        return skip_members(value, -1);
    return *value == '"' ? skip_text(value) : skip_word(value);
}

bool json_is_valid(const char *text)
{
    const char *end = json_skip(text);

    return end != NULL && *end == '\0';
}

const char *json_element(const char *array, int index)
{
    if (array == NULL || *blanks(array) != '[')
        return NULL;
    return skip_members(blanks(array), index);
}

const char *json_field(const char *object, const char *name)
{
    const size_t len = strlen(name);

    if (object == NULL || *blanks(object) != '{')
        return NULL;
    for (int i = 0;; i++) {
        const char *at = skip_members(blanks(object), i);

        if (at == NULL || *at != '"')
            return NULL;
        if (strncmp(at + 1, name, len) == 0 && at[len + 1] == '"')
            return skip_name(at);
    }
}

double json_number(const char *value)
{
    if (value == NULL || (*value != '-' && !isdigit((unsigned char)*value)))
        return NAN;
    return strtod(value, NULL);
}

bool json_is_text(const char *value, const char *text)
{
    const size_t len = strlen(text);

    return value != NULL && value[0] == '"' &&
           strncmp(value + 1, text, len) == 0 && value[len + 1] == '"';
}
