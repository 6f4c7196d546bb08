/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process sets as text: "0,2;4-7" is a set of ranks 0 and 2 and one of ranks 4
 * to
 * 7. A text is read in one pass, with errors that quote the place. The word of
 * a text is what ranks compare to find out whether all were given the same
 * sets.
 */
#include "job/set_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static int refuse(const char *text, struct rueda_text *error)
{
    rueda_text_set(error,
                   "process sets are ranks separated by commas, and sets by "
                   "semicolons, such as 0,2;4-7; cannot read \"%.20s\"",
                   text);
    return -1;
}

/* A rank of the job, or -1. */
static int parse_rank(const char **at, int size, struct rueda_text *error)
{
    const char *begin = *at;
    char *end;
    long rank;

    if (*begin < '0' || *begin > '9')
        return refuse(begin, error);
    rank = strtol(begin, &end, 10);
    if (rank >= size) {
        rueda_text_set(error,
                       "a process set with rank %.10s in a job of %d ranks",
                       begin, size);
        return -1;
    }
    *at = end;
    return (int)rank;
}

/* "3" or "4-7", added to ranks[*count]. */
static bool parse_range(const char **at, int size, int *ranks, int *count,
                        struct rueda_text *error)
{
    const char *begin = *at;
    int first = parse_rank(at, size, error);
    int last = first;

    if (first >= 0 && **at == '-') {
        (*at)++;
        last = parse_rank(at, size, error);
        if (last >= 0 && last < first)
            last = refuse(begin, error);
    }
    if (first < 0 || last < 0)
        return false;
    for (int rank = first; rank <= last; rank++) {
        if (*count == size) {
            rueda_text_set(error, "a process set names a rank twice");
            return false;
        }
        ranks[(*count)++] = rank;
    }
    return true;
}

/* Read the ranks of the next set and move *text behind it. */
int rueda_set_text_next(const char **text, int size, int *ranks,
                        struct rueda_text *error)
{
    const char *at = *text;
    int count = 0;

    while (*at == ';' || *at == ' ')
        at++;
    while (*at != '\0' && *at != ';') {
        if (!parse_range(&at, size, ranks, &count, error))
            return -1;
        if (*at == ',')
            at++;
        else if (*at != ';' && *at != '\0')
            return refuse(at, error);
    }
    *text = at;
    return count;
}

/* ---- To compare ---------------------------------------------------------- */

#define DIGITS 16
#define SHOWN  (RUEDA_SET_WORD_BYTES - DIGITS - 2)
#define TAIL   40

/* Ranks of a set in any order, sets in theirs. */
static uint64_t hash_sets(const char *text, int size, int *ranks)
{
    struct rueda_text error = {{0}};
    const char *at = text;
    uint64_t hash = 0;
    int count = rueda_set_text_next(&at, size, ranks, &error);

    for (; count > 0; count = rueda_set_text_next(&at, size, ranks, &error)) {
        uint64_t sum = (uint64_t)count;

        for (int i = 0; i < count; i++)
            sum += rueda_hash_mix((uint64_t)ranks[i] + 1);
        hash = rueda_hash_mix(hash + rueda_hash_mix(sum) + 1);
    }
    return count == 0 ? hash : rueda_hash(text, strlen(text), 1);
}

/* The hash decides; the beginning of the text is there for messages. */
rueda_status rueda_set_word(const char *text, int size,
                            char out[RUEDA_SET_WORD_BYTES])
{
    int *ranks = calloc((size_t)size, sizeof(int));
    const size_t len = strlen(text);
    uint64_t hash;

    if (ranks == NULL)
        return RUEDA_ERR_NOMEM;
    hash = hash_sets(text, size, ranks);
    free(ranks);
    if (hash == 0)
        out[0] = '\0';
    else if (len <= SHOWN)
        snprintf(out, RUEDA_SET_WORD_BYTES, "%016" PRIx64 " %s", hash, text);
    else
        snprintf(out, RUEDA_SET_WORD_BYTES, "%016" PRIx64 " %.*s...%s", hash,
                 SHOWN - TAIL - 3, text, text + len - TAIL);
    return RUEDA_OK;
}

bool rueda_set_word_is_same(const char *a, const char *b)
{
    return strncmp(a, b, DIGITS) == 0;
}

/* Of a rank. */
static void tell(int rank, const char *word, struct rueda_text *error)
{
    if (strlen(word) > DIGITS)
        rueda_text_add(error, "rank %d has \"%s\"", rank, word + DIGITS + 1);
    else
        rueda_text_add(error, "rank %d has none", rank);
}

void rueda_set_word_explain(int rank_a, const char *a, int rank_b,
                            const char *b, struct rueda_text *error)
{
    rueda_text_set(error, "Mismatched process sets: ");
    tell(rank_a, a, error);
    rueda_text_add(error, ", but ");
    tell(rank_b, b, error);
    rueda_text_add(error, "; all ranks start with the same list of them");
}
