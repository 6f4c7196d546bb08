/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launcher's end of PMI_FD that follows a script, in a thread of the test. It
 * never asserts: what it did not expect is kept, for the test to look at.
 */
#ifndef RUEDA_TESTS_UNIT_FAKE_PMI_H
#define RUEDA_TESTS_UNIT_FAKE_PMI_H

#include <pthread.h>
#include <sys/socket.h>

#include "job/exchange.h"
#include "os/clock.h"
#include "unit/unit.h"

#define MS ((int64_t)1000000)

/* Longer than any test waits, short enough for one that hangs to be noticed. */
#define LONG_MS 20000

/*
 * What the other side is to say, and what it is told then. A script ends with
 * all NULL; the end of the stream is to follow.
 *
 * reply: NULL is silence. One that begins with '!' is sent as it stands, others
 * as a message: a line, or counted if what they answer was.
 */
struct step {
    const char *hears;
    const char *reply;
};

struct fake {
    int mine;
    int theirs;
    char theirs_text[16];
    const struct step *script;
    bool is_slow;     /* replies go byte by byte */
    bool hangs_up;    /* closes after the last step */
    char wrong[1200]; /* the first thing that the script does not have */
    pthread_t thread;
    int time_ms; /* for the exchange; LONG_MS unless the test says otherwise */
    struct rueda_business_card_exchange exchange;
    struct rueda_text error;
};

typedef rueda_status
fake_exchange(const struct rueda_business_card_exchange *exchange, void *card,
              size_t bytes, struct rueda_text *error);

static inline bool fake_read(struct fake *fake, char *to, size_t bytes)
{
    return recv(fake->mine, to, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

/* One message without its newline or length; false at the end of the stream.
 * Counted ones are known by their first digit. */
static inline bool fake_hear(struct fake *fake, char *text, size_t room,
                             bool *out_counted)
{
    size_t len = 0;

    if (!fake_read(fake, text, 1))
        return false;
    *out_counted = text[0] >= '0' && text[0] <= '9';
    if (*out_counted) {
        char count[7] = {text[0]};

        if (!fake_read(fake, count + 1, 5))
            return false;
        len = strtoul(count, NULL, 10);
        if (len >= room || !fake_read(fake, text, len))
            return false;
    } else {
        while (text[len] != '\n')
            if (++len + 1 >= room || !fake_read(fake, text + len, 1))
                return false;
    }
    text[len] = '\0';
    return true;
}

static inline void fake_say(struct fake *fake, const char *reply,
                            bool is_counted)
{
    char message[8192];
    size_t len;

    if (reply[0] == '!')
        snprintf(message, sizeof(message), "%s", reply + 1);
    else if (is_counted)
        snprintf(message, sizeof(message), "%-6zu%s", strlen(reply), reply);
    else
        snprintf(message, sizeof(message), "%s\n", reply);
    len = strlen(message);
    for (size_t i = 0; fake->is_slow && i < len; i++)
        send(fake->mine, message + i, 1, MSG_NOSIGNAL);
    if (!fake->is_slow)
        send(fake->mine, message, len, MSG_NOSIGNAL);
}

static inline void *fake_run(void *arg)
{
    struct fake *fake = arg;
    const struct step *step = fake->script;
    char heard[1100];
    bool is_counted = false;

    for (; step->hears != NULL; step++) {
        if (!fake_hear(fake, heard, sizeof(heard), &is_counted))
            snprintf(heard, sizeof(heard), "(the end)");
        if (strcmp(heard, step->hears) != 0) {
            snprintf(fake->wrong, sizeof(fake->wrong), "%s", heard);
            shutdown(fake->mine, SHUT_RDWR);
            return NULL;
        }
        if (step->reply != NULL)
            fake_say(fake, step->reply, is_counted);
    }
    if (fake->hangs_up)
        shutdown(fake->mine, SHUT_RDWR);
    else if (fake_hear(fake, heard, sizeof(heard), &is_counted))
        snprintf(fake->wrong, sizeof(fake->wrong), "%s", heard);
    return NULL;
}

static inline const char *fake_environment(void *arg, const char *name)
{
    struct fake *fake = arg;

    if (strcmp(name, "PMI_FD") == 0)
        return fake->theirs_text;
    return strcmp(name, "PMI_JOBID") == 0 ? "7" : NULL;
}

static inline int fake_open(void **state)
{
    static struct fake fake;
    int ends[2];

    *state = &fake;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return -1;
    memset(&fake, 0, sizeof(fake));
    fake.mine = ends[0];
    fake.theirs = ends[1];
    fake.time_ms = LONG_MS;
    snprintf(fake.theirs_text, sizeof(fake.theirs_text), "%d", ends[1]);
    fake.exchange = (struct rueda_business_card_exchange){
        .size = 4, .environment = fake_environment, .arg = &fake};
    return 0;
}

static inline int fake_close(void **state)
{
    struct fake *fake = *state;

    close(fake->mine);
    close(fake->theirs);
    return 0;
}

/* Exchange a card as this rank, and check that the script was followed to its
 * end. */
static inline rueda_status fake_meet(struct fake *fake, fake_exchange *act,
                                     const struct step *script, int rank,
                                     char *card, size_t bytes)
{
    rueda_status status;

    fake->script = script;
    fake->exchange.rank = rank;
    fake->exchange.deadline_ns = rueda_clock_ns() + fake->time_ms * MS;
    assert_int_equal(pthread_create(&fake->thread, NULL, fake_run, fake), 0);
    status = act(&fake->exchange, card, bytes, &fake->error);
    shutdown(fake->theirs, SHUT_WR);
    pthread_join(fake->thread, NULL);
    assert_string_equal(fake->wrong, "");
    assert_true((status == RUEDA_OK) == (fake->error.chars[0] == '\0'));
    return status;
}

/* The words of the last failure. */
static inline void assert_said(const struct fake *fake, const char *words)
{
    if (strstr(fake->error.chars, words) == NULL)
        assert_string_equal(fake->error.chars, words);
}

#endif /* RUEDA_TESTS_UNIT_FAKE_PMI_H */
