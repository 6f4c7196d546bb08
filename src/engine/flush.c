/* SPDX-License-Identifier: Apache-2.0 */
/* Before shutdown: for a limited time, finish what other ranks may be waiting
 * for. */
#include "base/duration.h"
#include "engine/engine.h"
#include "os/clock.h"

/* How long to send what other ranks wait for. */
#define FLUSH_NS RUEDA_S(1)

/* After this long without timeline records of other ranks none are expected any
 * more; how often to look for them. */
#define RECORDS_QUIET_NS RUEDA_MS(500)
#define RECORDS_APART_NS RUEDA_MS(1)

/* Has the engine failed, or does it wait for the words of a failure? */
static bool is_failing(const struct rueda_engine *engine)
{
    return atomic_load(&engine->failed) != RUEDA_OK ||
           rueda_failing_is_on(engine);
}

/* Send what this rank has to pass on, because other ranks may wait for it; and
 * wait for those that still read memory which this rank will free. */
static void flush(struct rueda_engine *engine)
{
    int64_t until = rueda_clock_ns() + FLUSH_NS;

    rueda_relay_flush(&engine->lanes);
    while (!is_failing(engine) &&
           (rueda_lanes_are_sending(&engine->lanes) ||
            rueda_lanes_have_lent(&engine->lanes)) &&
           rueda_clock_ns() < until)
        if (!rueda_engine_check(engine))
            rueda_yield();
}

/* Ranks of other hosts count as here until their connections end. */
static bool have_all_gone(const struct rueda_engine *engine)
{
    const struct rueda_segment *segment = engine->job->segment;

    for (int i = 0; i < segment->size; i++)
        if (i != segment->me && !rueda_segment_is_gone(segment, i))
            return false;
    return segment->size == engine->formation->size;
}

/* Ranks that leave at about the same time send their last timeline records by
 * way of this rank: wait until none has come for a while. */
static void hear_records(struct rueda_engine *engine)
{
    int64_t now = rueda_clock_ns();
    const int64_t until = now + FLUSH_NS;
    int64_t quiet_ns = now + RECORDS_QUIET_NS;
    bool is_over = !rueda_relay_may_come(&engine->lanes);

    while (!is_failing(engine) && !is_over && now < until && now < quiet_ns) {
        /* What the ranks that are gone by now sent has arrived. */
        is_over = have_all_gone(engine);
        now = rueda_clock_ns();
        if (rueda_engine_check(engine)) {
            quiet_ns = now + RECORDS_QUIET_NS;
            is_over = false;
        } else if (!is_over) {
            rueda_sleep_ns(RECORDS_APART_NS);
        }
    }
}

void rueda_engine_flush(struct rueda_engine *engine)
{
    flush(engine);
    hear_records(engine);
    flush(engine); /* and pass them on */
}
