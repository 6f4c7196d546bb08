/* SPDX-License-Identifier: Apache-2.0 */
/* Words are counted one by one; no result depends on when that is done. */
#include "job/ballot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

struct rueda_ballot_member {
    bool is_candidate; /* in the term that is formed, like the next three */
    bool is_frozen;
    bool survives;
    bool has_offered;
    bool survived; /* the term before */
    bool is_gone;
    uint64_t has[RUEDA_MEMBER_LANES];
    uint64_t boundaries;
};

/* ---- Words as bytes ----------------------------------------------------- */

size_t rueda_ballot_write_key(const struct rueda_ballot_word *word,
                              char out[RUEDA_BALLOT_KEY_BYTES])
{
    int len = 0;

    switch (word->kind) {
    case RUEDA_BALLOT_FROZEN:
        len = snprintf(out, RUEDA_BALLOT_KEY_BYTES, "frozen/%u/%d", word->term,
                       word->member);
        break;
    case RUEDA_BALLOT_GONE:
        len = snprintf(out, RUEDA_BALLOT_KEY_BYTES, "gone/%d/%d", word->member,
                       word->speaker);
        break;
    case RUEDA_BALLOT_OFFERED:
        len = snprintf(out, RUEDA_BALLOT_KEY_BYTES, "offered/%u/%d", word->term,
                       word->member);
        break;
    }
    return (size_t)len;
}

size_t rueda_ballot_write_value(const struct rueda_ballot_word *word,
                                unsigned char out[RUEDA_BALLOT_VALUE_BYTES])
{
    if (word->kind != RUEDA_BALLOT_FROZEN)
        return 0;
    for (int lane = 0; lane < RUEDA_MEMBER_LANES; lane++)
        rueda_put_u64(out + (ptrdiff_t)lane * 8, word->has[lane]);
    rueda_put_u64(out + (ptrdiff_t)RUEDA_MEMBER_LANES * 8, word->boundaries);
    return RUEDA_BALLOT_VALUE_BYTES;
}

/* The number at *text, of decimal digits; leaves *text behind it. */
static bool take_number(const char **text, uint64_t limit, uint64_t *out)
{
    const char *at = *text;
    uint64_t number = 0;

    while (*at >= '0' && *at <= '9' && number < limit)
        number = number * 10 + (uint64_t)(*at++ - '0');
    if (at == *text || number >= limit)
        return false;
    *text = at;
    *out = number;
    return true;
}

static bool take_prefix(const char **text, const char *prefix)
{
    const size_t len = strlen(prefix);

    if (strncmp(*text, prefix, len) != 0)
        return false;
    *text += len;
    return true;
}

static bool read_key(const char *text, int size, struct rueda_ballot_word *out)
{
    uint64_t first_limit = UINT32_MAX;
    uint64_t first;
    uint64_t second;

    if (take_prefix(&text, "frozen/")) {
        out->kind = RUEDA_BALLOT_FROZEN;
    } else if (take_prefix(&text, "offered/")) {
        out->kind = RUEDA_BALLOT_OFFERED;
    } else if (take_prefix(&text, "gone/")) {
        out->kind = RUEDA_BALLOT_GONE;
        first_limit = (uint64_t)size;
    } else {
        return false;
    }
    if (!take_number(&text, first_limit, &first) || *text++ != '/' ||
        !take_number(&text, (uint64_t)size, &second) || *text != '\0')
        return false;
    if (out->kind == RUEDA_BALLOT_GONE) {
        out->member = (int)first;
        out->speaker = (int)second;
    } else {
        out->term = (uint32_t)first;
        out->member = (int)second;
        out->speaker = out->member;
    }
    return true;
}

bool rueda_ballot_read(const void *key, size_t key_bytes, const void *value,
                       size_t value_bytes, int size,
                       struct rueda_ballot_word *out)
{
    struct rueda_ballot_word word = {.kind = RUEDA_BALLOT_GONE};
    char text[RUEDA_BALLOT_KEY_BYTES];

    if (key_bytes >= sizeof(text))
        return false;
    memcpy(text, key, key_bytes);
    text[key_bytes] = '\0';
    if (strlen(text) != key_bytes || !read_key(text, size, &word))
        return false;
    if (word.kind == RUEDA_BALLOT_FROZEN) {
        const unsigned char *bytes = value;

        if (value_bytes != RUEDA_BALLOT_VALUE_BYTES)
            return false;
        for (int lane = 0; lane < RUEDA_MEMBER_LANES; lane++)
            word.has[lane] = rueda_get_u64(bytes + (ptrdiff_t)lane * 8);
        word.boundaries =
            rueda_get_u64(bytes + (ptrdiff_t)RUEDA_MEMBER_LANES * 8);
    }
    *out = word;
    return true;
}

/* ---- Life --------------------------------------------------------------- */

rueda_status rueda_ballot_init(struct rueda_ballot *ballot, int size)
{
    *ballot = (struct rueda_ballot){.size = size, .now = {.term = 2}};
    ballot->members = calloc((size_t)size, sizeof(*ballot->members));
    if (ballot->members == NULL)
        return RUEDA_ERR_NOMEM;
    for (int i = 0; i < size; i++)
        ballot->members[i].is_candidate = true;
    return RUEDA_OK;
}

void rueda_ballot_fini(struct rueda_ballot *ballot)
{
    free(ballot->members);
    ballot->members = NULL;
}

/* ---- Counting ----------------------------------------------------------- */

/* All have said what they have: who goes on, and from where. */
static void end_vote(struct rueda_ballot *ballot)
{
    struct rueda_ballot_result *now = &ballot->now;
    bool is_alone = true;

    for (int lane = 0; lane < RUEDA_MEMBER_LANES; lane++)
        now->limits[lane] = UINT64_MAX;
    for (int i = 0; i < ballot->size; i++) {
        struct rueda_ballot_member *member = &ballot->members[i];

        member->survives = member->is_candidate && !member->is_gone;
        if (!member->survives)
            continue;
        is_alone = false;
        for (int lane = 0; lane < RUEDA_MEMBER_LANES; lane++)
            if (member->has[lane] < now->limits[lane])
                now->limits[lane] = member->has[lane];
        if (member->boundaries > now->last_boundary)
            now->last_boundary = member->boundaries;
    }
    ballot->has_voted = !is_alone;
}

static void try_vote(struct rueda_ballot *ballot)
{
    for (int i = 0; i < ballot->size; i++) {
        const struct rueda_ballot_member *member = &ballot->members[i];

        if (member->is_candidate && !member->is_frozen && !member->is_gone)
            return;
    }
    end_vote(ballot);
}

/* On to the vote for the next term, whose candidates are the survivors. */
static void conclude(struct rueda_ballot *ballot, bool has_begun)
{
    ballot->before = ballot->now;
    ballot->before.has_begun = has_begun;
    ballot->now = (struct rueda_ballot_result){.term = ballot->now.term + 1};
    ballot->has_voted = false;
    ballot->frozen = 0;
    for (int i = 0; i < ballot->size; i++) {
        struct rueda_ballot_member *member = &ballot->members[i];

        member->survived = member->survives;
        member->is_candidate = member->survives;
        member->is_frozen = false;
        member->survives = false;
        member->has_offered = false;
    }
}

static void try_begin(struct rueda_ballot *ballot)
{
    bool have_all = true;

    for (int i = 0; i < ballot->size; i++) {
        const struct rueda_ballot_member *member = &ballot->members[i];

        have_all = have_all && (!member->survives || member->has_offered);
    }
    if (have_all)
        conclude(ballot, true);
}

static void count_gone(struct rueda_ballot *ballot,
                       const struct rueda_ballot_word *word)
{
    if (word->speaker != word->member && ballot->members[word->speaker].is_gone)
        return;
    ballot->members[word->member].is_gone = true;
    /* The end of a term that has not begun, even if that one has offered. */
    if (ballot->has_voted && ballot->members[word->member].survives)
        conclude(ballot, false);
}

void rueda_ballot_count(struct rueda_ballot *ballot,
                        const struct rueda_ballot_word *word)
{
    struct rueda_ballot_member *member = &ballot->members[word->member];
    const bool is_now = word->term == ballot->now.term;

    switch (word->kind) {
    case RUEDA_BALLOT_GONE:
        count_gone(ballot, word);
        break;
    case RUEDA_BALLOT_FROZEN:
        if (!is_now || ballot->has_voted || member->is_frozen)
            return;
        member->is_frozen = true;
        memcpy(member->has, word->has, sizeof(member->has));
        member->boundaries = word->boundaries;
        ballot->frozen++;
        break;
    case RUEDA_BALLOT_OFFERED:
        if (!is_now)
            return;
        member->has_offered = true;
        break;
    }
    if (ballot->has_voted)
        try_begin(ballot);
    else
        try_vote(ballot);
}

/* ---- Questions ---------------------------------------------------------- */

bool rueda_ballot_is_gone(const struct rueda_ballot *ballot, int member)
{
    return ballot->members[member].is_gone;
}

bool rueda_ballot_is_called(const struct rueda_ballot *ballot, uint32_t term)
{
    return ballot->now.term == term + 1 ? ballot->frozen > 0
                                        : ballot->now.term > term + 1;
}

bool rueda_ballot_has_lost(const struct rueda_ballot *ballot)
{
    for (int i = 0; i < ballot->size; i++)
        if (ballot->members[i].is_candidate && ballot->members[i].is_gone)
            return true;
    return false;
}

bool rueda_ballot_is_frozen(const struct rueda_ballot *ballot, int member)
{
    return ballot->members[member].is_frozen;
}

const struct rueda_ballot_result *
rueda_ballot_vote(const struct rueda_ballot *ballot, uint32_t term)
{
    if (ballot->now.term == term && ballot->has_voted)
        return &ballot->now;
    return ballot->before.term == term ? &ballot->before : NULL;
}

bool rueda_ballot_survives(const struct rueda_ballot *ballot, uint32_t term,
                           int member)
{
    return ballot->now.term == term ? ballot->members[member].survives
                                    : ballot->members[member].survived;
}

rueda_status rueda_ballot_begin(const struct rueda_ballot *ballot,
                                uint32_t term)
{
    if (ballot->before.term != term)
        return RUEDA_IN_PROGRESS;
    return ballot->before.has_begun ? RUEDA_OK : RUEDA_ERR_PEER_LOST;
}
