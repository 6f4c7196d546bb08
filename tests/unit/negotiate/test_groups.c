/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups that are not the same on all members: all of them fail, also what
 * only some have, and names can be used again at once. Members take turns in an
 * order that a number decides.
 */
#include "base/hash.h"
#include "negotiate/negotiator.h"
#include "transport/loop/loop.h"
#include "unit/unit.h"

#define RANKS  7
#define MOST   8 /* of a group */
#define ROUNDS 6
#define SEEDS  400
#define TURNS  20000

/* What a member has of a round. */
struct part {
    int count;
    int ended;
    struct rueda_request requests[MOST];
    rueda_decision_kind ends[MOST];
    char words[MOST][200];
};

struct member {
    struct rueda_mesh mesh;
    struct rueda_negotiator *negotiator;
    struct part parts[ROUNDS];
    int done; /* all rounds before this one */
    int next; /* to submit */
    int last; /* it has no more than these */
};

struct fixture {
    struct rueda_loop_hub *hub;
    struct member members[RANKS];
    int rounds;
    int ahead; /* rounds that a member may have begun, whatever the others
                  have done; 0: it waits for all of them */
    uint64_t dice;
};

static int64_t no_time(void *arg)
{
    (void)arg;
    return 1;
}

static int below(struct fixture *fixture, int limit)
{
    fixture->dice = rueda_hash_mix(fixture->dice + 0x9e3779b97f4a7c15u);
    return (int)(fixture->dice % (uint64_t)limit);
}

/* Two members a host, so that there are some between the others and the
 * coordinator. */
static void open_fixture(struct fixture *fixture, uint64_t seed)
{
    static const int ranks[RANKS] = {0, 1, 2, 3, 4, 5, 6};
    static const int hosts[RANKS] = {0, 1, 1, 2, 2, 3, 3};
    struct rueda_negotiator_args args = {
        .tag = {1, 1, 0},
        .ranks = ranks,
        .hosts = hosts,
        .cache_capacity = (int)(seed % 9),
        .fusion_bytes = 1024,
        .now_ns = no_time,
    };

    memset(fixture, 0, sizeof(*fixture));
    fixture->dice = seed;
    assert_int_equal(rueda_loop_hub_open(RANKS, &fixture->hub), RUEDA_OK);
    for (int i = 0; i < RANKS; i++) {
        struct member *member = &fixture->members[i];

        assert_int_equal(rueda_mesh_init(&member->mesh, i, RANKS,
                                         rueda_loop_connect, fixture->hub),
                         RUEDA_OK);
        member->last = ROUNDS;
        args.mesh = &member->mesh;
        assert_int_equal(rueda_negotiator_new(&args, &member->negotiator),
                         RUEDA_OK);
    }
}

static void close_fixture(struct fixture *fixture)
{
    for (int i = 0; i < RANKS; i++) {
        struct member *member = &fixture->members[i];

        rueda_mesh_cancel(&member->mesh, RUEDA_ERR_CANCELLED);
        rueda_negotiator_free(member->negotiator);
        rueda_mesh_fini(&member->mesh);
        rueda_loop_hub_leave(fixture->hub, i);
        rueda_loop_hub_release(fixture->hub);
    }
}

/* Letters are names; digits are operations without one. */
static void plan(struct fixture *fixture, int rank, int round,
                 const char *names, bool is_grouped)
{
    static char letters[26][2];
    struct part *part = &fixture->members[rank].parts[round];
    uint64_t group = 0;

    part->count = (int)strlen(names);
    for (int i = 0; i < part->count; i++) {
        struct rueda_request *request = &part->requests[i];

        rueda_request_init(request, RUEDA_ALLREDUCE);
        request->dtype = RUEDA_FLOAT32;
        request->dims = 1;
        request->shape[0] = 16;
        if (names[i] >= 'a') {
            letters[names[i] - 'a'][0] = names[i];
            request->name = letters[names[i] - 'a'];
        } else {
            request->number = (uint64_t)(names[i] - '0');
        }
        group += rueda_hash_mix((uint64_t)names[i]);
    }
    for (int i = 0; i < part->count && is_grouped; i++) {
        part->requests[i].group = group;
        part->requests[i].group_count = (uint32_t)part->count;
    }
}

static void take_ended(struct member *member)
{
    const struct rueda_decision *decision;

    while ((decision = rueda_negotiator_next(member->negotiator)) != NULL) {
        for (int i = 0; i < decision->count; i++) {
            struct rueda_request *mine = decision->items[i].mine;
            struct part *part = &member->parts[member->done];
            long which;

            if (mine == NULL)
                continue; /* an error of what others have */
            while ((char *)mine >= (char *)(part + 1))
                part++;
            which = mine - part->requests;
            assert_in_range(which, 0, part->count - 1);
            part->ends[which] = decision->kind;
            if (decision->kind == RUEDA_DECIDED_ERROR)
                snprintf(part->words[which], sizeof(part->words[which]), "%s",
                         decision->words);
            part->ended++;
        }
        rueda_negotiator_done(member->negotiator);
    }
}

/* Has the member one of the same name in flight? */
static bool has_name_of(const struct member *member, const struct part *part)
{
    for (int i = member->done; i < member->next; i++)
        for (int k = 0; k < member->parts[i].count * part->count; k++)
            if (part->requests[k % part->count].name != NULL &&
                member->parts[i].ended < member->parts[i].count &&
                member->parts[i].requests[k / part->count].name ==
                    part->requests[k % part->count].name)
                return true;
    return false;
}

static bool may_submit(const struct fixture *fixture,
                       const struct member *member)
{
    if (member->next >= fixture->rounds || member->next >= member->last)
        return false;
    if (fixture->ahead > 0)
        return member->next < member->done + fixture->ahead &&
               !has_name_of(member, &member->parts[member->next]);
    for (int i = 0; i < RANKS; i++)
        if (fixture->members[i].done < member->next)
            return false;
    return true;
}

static void submit_next(struct member *member)
{
    struct part *part = &member->parts[member->next++];

    for (int i = 0; i < part->count; i++)
        assert_int_equal(rueda_negotiator_submit(member->negotiator,
                                                 &part->requests[i],
                                                 &part->requests[i]),
                         RUEDA_OK);
}

/* One turn of a member; how many rounds it is done with by that. */
static int take_turn(struct fixture *fixture, struct member *member)
{
    const int done = member->done;
    struct rueda_text error = {{0}};
    int peer;

    if (may_submit(fixture, member))
        submit_next(member);
    rueda_mesh_progress(&member->mesh, &peer);
    assert_true(rueda_negotiator_turn(member->negotiator, &error) >= 0);
    take_ended(member);
    while (member->done < member->next && member->parts[member->done].ended ==
                                              member->parts[member->done].count)
        member->done++;
    return member->done - done;
}

static void run_all(struct fixture *fixture)
{
    int left = 0;

    for (int i = 0; i < RANKS; i++)
        left += fixture->rounds - fixture->members[i].done;
    for (int i = 0; i < TURNS && left > 0; i++)
        left -= take_turn(fixture, &fixture->members[below(fixture, RANKS)]);
    assert_int_equal(left, 0);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(
            rueda_negotiator_pending(fixture->members[i].negotiator), 0);
}

static void assert_failed(const struct part *part, int which, const char *words)
{
    assert_int_equal(part->ends[which], RUEDA_DECIDED_ERROR);
    if (strstr(part->words[which], words) == NULL)
        print_error("%s\n", part->words[which]);
    assert_non_null(strstr(part->words[which], words));
}

/* With groups in between that all have, of the same names. */
static void groups_that_differ_fail_and_leave_names_free(void **state)
{
    static const char *const others[] = {"ac", "ca", "acd", "a", "da"};

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct fixture fixture;
        int odd;

        open_fixture(&fixture, seed);
        fixture.rounds = ROUNDS;
        odd = below(&fixture, RANKS);
        for (int round = 0; round < ROUNDS; round++) {
            const char *other = others[below(&fixture, 5)];

            for (int i = 0; i < RANKS; i++)
                plan(&fixture, i, round,
                     round % 2 == 1 ? "abcd"
                     : i == odd     ? other
                                    : "ab",
                     true);
        }
        run_all(&fixture);
        for (int i = 0; i < RANKS * ROUNDS; i++) {
            const struct part *part =
                &fixture.members[i / ROUNDS].parts[i % ROUNDS];

            for (int k = 0; k < part->count; k++) {
                if (i % ROUNDS % 2 == 1)
                    assert_int_equal(part->ends[k], RUEDA_DECIDED_RUN);
                else if (part->requests[k].name[0] == 'a')
                    assert_failed(part, k, "Mismatched groups");
                else
                    assert_failed(part, k,
                                  "another tensor of its group failed: "
                                  "Mismatched groups");
            }
        }
        close_fixture(&fixture);
    }
}

/* A member that has had one number more than the others has failed with it, and
 * so do they when they come to it. */
static void groups_without_names_that_differ_get_in_step(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct fixture fixture;
        int odd;

        open_fixture(&fixture, seed);
        fixture.rounds = 3;
        odd = below(&fixture, RANKS);
        for (int i = 0; i < RANKS; i++) {
            plan(&fixture, i, 0, i == odd ? "012" : "01", true);
            plan(&fixture, i, 1, i == odd ? "" : "2", false);
            plan(&fixture, i, 2, "34", true);
        }
        run_all(&fixture);
        for (int i = 0; i < RANKS; i++) {
            const struct member *member = &fixture.members[i];

            assert_failed(&member->parts[0], 0, "Mismatched groups");
            assert_failed(&member->parts[0], 1, "Mismatched groups");
            assert_failed(&member->parts[i == odd ? 0 : 1], i == odd ? 2 : 0,
                          "group");
            for (int k = 0; k < 2; k++)
                assert_int_equal(member->parts[2].ends[k], RUEDA_DECIDED_RUN);
        }
        close_fixture(&fixture);
    }
}

/* Longer than anything moves. */
static void run_some(struct fixture *fixture)
{
    for (int i = 0; i < TURNS / 4; i++)
        take_turn(fixture, &fixture->members[below(fixture, RANKS)]);
}

/* Of a group all end alike, or all wait. */
static void assert_is_whole(const struct part *part)
{
    assert_true(part->ended == 0 || part->ended == part->count);
    for (int i = 1; i < part->ended; i++)
        assert_int_equal(part->ends[i], part->ends[0]);
}

/* All that the member does not have, one by one. */
static void submit_rest(struct fixture *fixture, int rank, const char *names)
{
    struct member *member = &fixture->members[rank];
    char rest[MOST + 1] = "";
    int count = 0;

    for (; *names != '\0'; names++) {
        struct part *one = &member->parts[member->next];

        plan(fixture, rank, member->next, (const char[]){*names, '\0'}, false);
        if (!has_name_of(member, one))
            rest[count++] = *names;
    }
    plan(fixture, rank, member->next, rest, false);
    submit_next(member);
}

#define RACING (ROUNDS - 2)

/* In that round, which is the member's last. */
static void plan_join(struct member *member, int round)
{
    struct part *part = &member->parts[round];

    memset(&member->parts[round], 0,
           (size_t)(ROUNDS - round) * sizeof(member->parts[0]));
    rueda_request_init(&part->requests[0], RUEDA_JOIN);
    part->count = 1;
    member->last = round + 1;
}

/* No member waits for the others between groups, so what is new here meets what
 * fails there, and much of it waits for what others do not bring. */
static void race(struct fixture *fixture, uint64_t seed, bool is_joining)
{
    static const char *const others[] = {"", "a", "b", "ab", "bc", "cab"};

    open_fixture(fixture, seed);
    fixture->rounds = RACING;
    fixture->ahead = RACING;
    for (int i = 0; i < RANKS * RACING; i++) {
        char names[MOST + 1];

        snprintf(names, sizeof(names), "%c%s", 'p' + i % RACING,
                 others[below(fixture, below(fixture, 6) + 1)]);
        plan(fixture, i / RACING, i % RACING, names, true);
    }
    for (int i = 0; i < RANKS && is_joining; i++)
        plan_join(&fixture->members[i], below(fixture, RACING));
    run_some(fixture);
    for (int i = 0; i < RANKS * RACING && !is_joining; i++)
        assert_is_whole(&fixture->members[i / RACING].parts[i % RACING]);
}

/* Everything has ended; now they all have the same. */
static void end_race(struct fixture *fixture)
{
    fixture->ahead = 0;
    fixture->rounds = ROUNDS;
    for (int i = 0; i < RANKS; i++) {
        struct member *member = &fixture->members[i];

        assert_int_equal(member->done, member->next);
        member->done = ROUNDS - 1;
        member->next = ROUNDS - 1;
        member->last = ROUNDS;
        memset(&member->parts[ROUNDS - 1], 0, sizeof(member->parts[0]));
        plan(fixture, i, ROUNDS - 1, "abcp", true);
    }
    run_all(fixture);
    for (int i = 0; i < RANKS; i++) {
        const struct part *part = &fixture->members[i].parts[ROUNDS - 1];

        assert_is_whole(part);
        assert_int_equal(part->ends[0], RUEDA_DECIDED_RUN);
    }
    close_fixture(fixture);
}

static void groups_of_who_goes_on_stay_whole(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct fixture fixture;

        race(&fixture, seed, false);
        for (int i = 0; i < RANKS; i++)
            submit_rest(&fixture, i, "abcpqrs");
        fixture.rounds = 0;
        run_some(&fixture);
        end_race(&fixture);
    }
}

/* Some join early and others late, with what they have in flight. */
static void groups_that_differ_end_with_a_join(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct fixture fixture;

        race(&fixture, seed, true);
        end_race(&fixture);
    }
}

/* Each has the same numbers, but in groups of its own: all of them end. */
static void numbers_in_other_groups_end(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const char *const numbers = "01234567";
        struct fixture fixture;

        open_fixture(&fixture, seed);
        fixture.rounds = RACING + 1;
        fixture.ahead = RACING;
        for (int i = 0; i < RANKS; i++) {
            int first = 0;

            for (int round = 0; round < fixture.rounds; round++) {
                int count = round < RACING ? below(&fixture, MOST + 1 - first)
                                           : MOST - first;
                char names[MOST + 1];

                snprintf(names, sizeof(names), "%.*s", count, numbers + first);
                plan(&fixture, i, round, names, true);
                first += count;
            }
        }
        run_all(&fixture);
        end_race(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_that_differ_fail_and_leave_names_free),
        cmocka_unit_test(groups_without_names_that_differ_get_in_step),
        cmocka_unit_test(groups_of_who_goes_on_stay_whole),
        cmocka_unit_test(groups_that_differ_end_with_a_join),
        cmocka_unit_test(numbers_in_other_groups_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
