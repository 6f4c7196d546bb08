/* SPDX-License-Identifier: Apache-2.0 */
#include "base/near.h"

#include <limits.h>
#include <string.h>

/* Longer words are not taken for typing errors; the limit bounds the table. */
#define LETTERS 40

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* The distance of Damerau and Levenshtein, with swaps of neighbours only.
 * cost[i][j]: how far the first i letters of a are from the first j of b. The
 * table is on the stack, as nothing calls this but messages of failures. */
int rueda_near_distance(const char *a, const char *b)
{
    const int len_a = (int)strnlen(a, LETTERS + 1);
    const int len_b = (int)strnlen(b, LETTERS + 1);
    int cost[LETTERS + 1][LETTERS + 1];

    if (len_a > LETTERS || len_b > LETTERS)
        return INT_MAX;
    for (int i = 0; i <= len_a; i++)
        cost[i][0] = i;
    for (int j = 0; j <= len_b; j++)
        cost[0][j] = j;
    for (int i = 1; i <= len_a; i++) {
        for (int j = 1; j <= len_b; j++) {
            const int change = a[i - 1] == b[j - 1] ? 0 : 1;
            int best = least(cost[i - 1][j], cost[i][j - 1]) + 1;

            best = least(best, cost[i - 1][j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = least(best, cost[i - 2][j - 2] + 1);
            cost[i][j] = best;
        }
    }
    return cost[len_a][len_b];
}

/* Two mistakes, or a word begun and not ended, are near; but no more than half
 * of a short word may be wrong. */
const char *rueda_near_match(const char *word, const char *const *known)
{
    const char *best = NULL;
    int best_distance = 3;
    const size_t len = strlen(word);

    for (; *known != NULL; known++) {
        const int distance = rueda_near_distance(word, *known);

        if (distance < best_distance && (size_t)distance * 2 <= len) {
            best = *known;
            best_distance = distance;
        } else if (best == NULL && len >= 3 &&
                   strncmp(word, *known, len) == 0) {
            best = *known;
        }
    }
    return best;
}

void rueda_near_suggest(const char *word, const char *const *known,
                        struct rueda_text *words)
{
    const char *near = rueda_near_match(word, known);

    if (near != NULL)
        rueda_text_add(words, "; did you mean '%s'?", near);
}

/* Where no word is near all of them are named: lists are short. */
int rueda_near_find(const char *what, const char *word,
                    const char *const *known, struct rueda_text *words)
{
    for (int i = 0; known[i] != NULL; i++)
        if (strcmp(word, known[i]) == 0)
            return i;
    rueda_text_set(words, "unknown %s '%.64s'", what, word);
    rueda_near_suggest(word, known, words);
    if (rueda_near_match(word, known) == NULL) {
        rueda_text_add(words, "; there are");
        for (int i = 0; known[i] != NULL; i++)
            rueda_text_add(words, "%s %s", i == 0 ? "" : ",", known[i]);
    }
    return -1;
}
