/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How patient the engine is: how long a thread waits awake, how long the
 * background thread leaves work to the threads that submit, when those help,
 * and when a thread checks whether other ranks wait for this one.
 *
 * Pure arithmetic: the caller tells the time, and reads a clock only for the
 * functions that want it. The simulator's programs ask it in virtual time
 * (tests/sim/program_drive.c). Fields that several threads touch are atomic and
 * relaxed: an old value makes a decision worse, never wrong.
 */
#ifndef RUEDA_ENGINE_POLICY_H
#define RUEDA_ENGINE_POLICY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/duration.h"

/* ---- The numbers ------------------------------------------------------- */

/*
 * Each with the measurement that set it, all on machines of 2 to 16 cores:
 *
 *   SPIN, YIELD      a ring of 4 ranks on 2 cores took 16 ms for 1 kB when
 *                    waits only spun, and 17 us when they yielded; a wake-up
 *                    by a doorbell costs 6 to 12 us
 *   YIELD_UNASKED,   8 ranks on 16 cores, 400 small gradients: 0.22 to 0.29 of
 *   has_room         the overhead of DDP, and 0.36 to 0.41 where idle threads
 *                    stayed awake for 1 ms and hooks took turns
 *   LONG_YIELD,      beside two busy loops a test of mixed operations ended in
 *   BUSY             29 s, and missed its deadline of 60 s while waits yielded
 *   GRACE, HELP      400 small gradients on 2 cores: 6 changes of threads in a
 *                    step, and 170 while the background thread took over
 *   GRACE_ALONE,     a transformer of 2 ranks on 2 cores: 0.08 and 0.21 of the
 *   LIGHT_ALONE      overhead of DDP, and 0.27 and 0.33 with 3.2 ms and 4 MiB
 *   RUSH, AWAKE      400 tensors of 4 KiB: the first of a step no longer runs
 *                    as a batch of its own, and no step wakes a thread
 *   LEFT             an allreduce of 4 KiB in a tf.function on 2 busy cores:
 *                    1 to 3 ms, and 24 ms while callbacks had a grace
 *   CHECK            none: they bound how late a stall is reported
 *   SILENT           none: it bounds how late a rank that sleeps sees that a
 *                    GPU is done, which comes on top of the 50 ms at least that
 *                    it has watched NCCL awake (device/cuda/nccl.c): 2 %
 */

/* How long to wait awake, where there are cores enough and where not. */
#define RUEDA_POLICY_SPIN_NS          RUEDA_US(5)
#define RUEDA_POLICY_YIELD_NS         RUEDA_MS(1)
#define RUEDA_POLICY_YIELD_CROWDED_NS RUEDA_MS(2)

/* The same where no thread waits for the result: a core that is awake without
 * need slows down the cores at work that share its power and its caches. */
#define RUEDA_POLICY_YIELD_UNASKED_NS RUEDA_US(50)

/* A core that comes back only after this long is at work for another thread,
 * and is likely to be for a while. A thread that sleeps then is woken sooner
 * than one that yields, so waits do not yield for BUSY_NS. */
#define RUEDA_POLICY_LONG_YIELD_NS RUEDA_US(500)
#define RUEDA_POLICY_BUSY_NS       RUEDA_MS(100)

/* How often a thread checks whether other ranks wait for this one: several
 * times before a stall is reported, within these limits, and never twice within
 * APART_NS, however soon a lane wants it. */
#define RUEDA_POLICY_CHECKS_A_STALL 4
#define RUEDA_POLICY_CHECK_LEAST_NS RUEDA_MS(50)
#define RUEDA_POLICY_CHECK_MOST_NS  RUEDA_S(10)
#define RUEDA_POLICY_CHECK_APART_NS RUEDA_MS(10)

/* A thread that submits usually waits soon, and drives then. The background
 * thread leaves the work to it for a grace, since taking over, or only
 * checking, costs both a change of threads, and the thread that computes there
 * its cache. The grace doubles up to MOST_NS while threads that submit have
 * always driven. It is long from the start (CROWDED_NS) where the background
 * thread has no core of its own, and longest (ALONE_NS) where there is no
 * network either that could work meanwhile: starting early ends no sooner. */
#define RUEDA_POLICY_GRACE_NS         RUEDA_US(250)
#define RUEDA_POLICY_GRACE_MOST_NS    RUEDA_US(3200)
#define RUEDA_POLICY_GRACE_CROWDED_NS RUEDA_POLICY_GRACE_MOST_NS
#define RUEDA_POLICY_GRACE_ALONE_NS   RUEDA_MS(20)

/* Where the background thread has no core of its own, a thread that submits one
 * operation after another takes a turn now and then, and the background thread
 * stays away meanwhile: that costs no change of threads. Where it has a core,
 * it takes all turns: the rank that submits last finds all others ready, and
 * they would wait for what it did itself. */
#define RUEDA_POLICY_HELP_APART_NS RUEDA_US(50)

/* Operations that follow one another this closely are a rush: they go together.
 * Some microseconds at most. */
#define RUEDA_POLICY_RUSH_TICKS ((uint64_t)8192)

/* Help is for operations up to this size, with and without a network, so that
 * submitting stays short. */
#define RUEDA_POLICY_LIGHT_BYTES       ((size_t)4 << 20)
#define RUEDA_POLICY_LIGHT_ALONE_BYTES ((size_t)64 << 10)

/* The background thread wakes by itself for this long after the last operation
 * was submitted, where threads that submit drive: waking it in every step costs
 * them more. */
#define RUEDA_POLICY_AWAKE_NS RUEDA_MS(50)

/* How long the holder sleeps at most while a device works that rings no bell:
 * it has to ask the device. */
#define RUEDA_POLICY_SILENT_NS RUEDA_MS(1)

/* A thread that asks for a callback does not wait. For this long after one did
 * there is no grace: the background thread takes over at once. */
#define RUEDA_POLICY_LEFT_NS RUEDA_S(1)

/* ---- The state --------------------------------------------------------- */

struct rueda_policy {
    /* Set once: */
    int64_t spin_ns;
    int64_t yield_ns;
    bool has_room; /* a core for each rank and one for its background thread */
    size_t light_bytes;
    int64_t grace_least_ns;
    int64_t check_period_ns; /* checks are no further apart */

    /* The holder's of the token: */
    int64_t busy_until_ns; /* other work is on my core: do not yield to it */
    int64_t last_check_ns;

    /* The background thread's: */
    int64_t grace_ns; /* how long it leaves work to threads that submit */
    int64_t used_ns;  /* when it last found is_used */
    int64_t back_ns;  /* until then it leaves checks to another thread */

    /* Any thread's: */
    _Atomic int64_t check_ns; /* when the next check is due */
    atomic_bool is_used;      /* something was submitted since used_ns */
    atomic_bool is_heavy;     /* an operation that is not light is in flight */
    atomic_bool is_rush;      /* the last operation came in a rush */
    _Atomic uint64_t came_ticks; /* when one last came that was not in a rush */
    _Atomic int64_t helped_ns;   /* when a thread last helped, or wished to */
    _Atomic int64_t left_ns;     /* when one last asked for a callback, or 0 */
};

/* ---- At the start ------------------------------------------------------ */

struct rueda_policy_host {
    int cpus;     /* that the ranks of this host may use */
    int ranks;    /* of this host */
    double quota; /* of the CPUs' time, in CPUs; 0 or less: none */
    bool has_network;
    int64_t spin_us; /* as the user wants it; negative: as the host is */
    int64_t yield_us;
};

/* All else of the policy is zero. */
void rueda_policy_set_patience(struct rueda_policy *policy,
                               const struct rueda_policy_host *host);

/* Stalls are reported, or end the job, after this long (0: never); the first
 * check is one period from now. */
void rueda_policy_set_checks(struct rueda_policy *policy, int64_t stall_ns,
                             int64_t now_ns);

/* ---- Checks ------------------------------------------------------------ */

static inline int64_t rueda_policy_check_ns(const struct rueda_policy *policy)
{
    return atomic_load_explicit(&policy->check_ns, memory_order_relaxed);
}

static inline bool rueda_policy_is_check_due(const struct rueda_policy *policy,
                                             int64_t now_ns)
{
    return now_ns >= rueda_policy_check_ns(policy);
}

/* A lane wants the next check at this time. True if that makes it sooner. Only
 * by the holder. */
static inline bool rueda_policy_plan_check(struct rueda_policy *policy,
                                           int64_t wanted_ns)
{
    const int64_t first = policy->last_check_ns + RUEDA_POLICY_CHECK_APART_NS;

    if (wanted_ns < first)
        wanted_ns = first;
    if (wanted_ns >= rueda_policy_check_ns(policy))
        return false;
    atomic_store_explicit(&policy->check_ns, wanted_ns, memory_order_relaxed);
    return true;
}

/* Another thread drives, and checks while it does: the background thread leaves
 * that to it for a period. It does not move check_ns, which that thread sleeps
 * until: both wake then, and the one that drives would never find it due. */
void rueda_policy_stand_back(struct rueda_policy *policy, int64_t now_ns);

/* When the background thread looks whether it has to check. */
static inline int64_t
rueda_policy_background_ns(const struct rueda_policy *policy)
{
    const int64_t check_ns = rueda_policy_check_ns(policy);

    return check_ns > policy->back_ns ? check_ns : policy->back_ns;
}

/* The holder has checked. */
void rueda_policy_has_checked(struct rueda_policy *policy, int64_t now_ns);

/* ---- Waiting: the holder's --------------------------------------------- */

/* How long to sleep at most: until the next check, the deadline (negative:
 * none), or as long as the network (negative: for ever) or a device that is
 * silent when it is done may be left alone. */
int64_t rueda_policy_sleep_ns(const struct rueda_policy *policy, int64_t now_ns,
                              int64_t deadline_ns, int64_t network_ns,
                              bool is_silent);

/* Does awake_ns() want the time? */
static inline bool rueda_policy_wants_time(const struct rueda_policy *policy)
{
    return policy->busy_until_ns > 0;
}

/* How long to yield before sleeping. now_ns is used only if it is wanted. */
int64_t rueda_policy_awake_ns(struct rueda_policy *policy, bool is_waited_for,
                              int64_t now_ns);

/* Was the core gone for so long that another thread may be at work on it? */
static inline bool rueda_policy_is_long_yield(int64_t away_ns)
{
    return away_ns >= RUEDA_POLICY_LONG_YIELD_NS;
}

/* It was: do not yield to that for a while. */
static inline void rueda_policy_be_busy(struct rueda_policy *policy,
                                        int64_t now_ns)
{
    policy->busy_until_ns = now_ns + RUEDA_POLICY_BUSY_NS;
}

/* ---- The background thread's ------------------------------------------- */

/* Threads that submitted have driven what they had; or no thread did. */
void rueda_policy_be_patient(struct rueda_policy *policy, bool have_driven);

/* Does the background thread wake by itself, told or not? */
bool rueda_policy_stays_awake(struct rueda_policy *policy, int64_t now_ns);

/* Until when work that came, or was helped with, at this time is left to
 * threads that submit. */
static inline int64_t
rueda_policy_grace_until_ns(const struct rueda_policy *policy, int64_t came_ns)
{
    const int64_t left_ns =
        atomic_load_explicit(&policy->left_ns, memory_order_relaxed);

    if (left_ns > 0 && came_ns - left_ns < RUEDA_POLICY_LEFT_NS)
        return came_ns;
    return came_ns + policy->grace_ns;
}

/* The same for threads that have helped lately. */
static inline int64_t
rueda_policy_help_until_ns(const struct rueda_policy *policy)
{
    return rueda_policy_grace_until_ns(
        policy, atomic_load_explicit(&policy->helped_ns, memory_order_relaxed));
}

/* ---- Helping: any thread that submits ----------------------------------- */

/* An operation of this size is about to be pushed. */
static inline void rueda_policy_weigh(struct rueda_policy *policy, size_t bytes)
{
    if (bytes > policy->light_bytes)
        atomic_store_explicit(&policy->is_heavy, true, memory_order_relaxed);
}

/* No operation is in flight. Only by the holder. */
static inline void rueda_policy_be_light(struct rueda_policy *policy)
{
    atomic_store_explicit(&policy->is_heavy, false, memory_order_relaxed);
}

/* Something was pushed. */
static inline void rueda_policy_be_used(struct rueda_policy *policy)
{
    if (!atomic_load_explicit(&policy->is_used, memory_order_relaxed))
        atomic_store_explicit(&policy->is_used, true, memory_order_relaxed);
}

/* A thread leaves what it has submitted to the background thread. */
static inline void rueda_policy_be_left(struct rueda_policy *policy,
                                        int64_t now_ns)
{
    atomic_store_explicit(&policy->left_ns, now_ns, memory_order_relaxed);
}

/* A thread that has submitted asks these three in a row, and takes a turn if
 * all of them allow it; a clock is read only for the next one. */
static inline bool rueda_policy_may_help(const struct rueda_policy *policy)
{
    return !policy->has_room &&
           !atomic_load_explicit(&policy->is_heavy, memory_order_relaxed);
}

/* Do many operations come at once? Then the first has no turn of its own. */
static inline bool rueda_policy_is_rush(struct rueda_policy *policy,
                                        uint64_t now_ticks)
{
    const uint64_t before =
        atomic_load_explicit(&policy->came_ticks, memory_order_relaxed);
    const bool is_near = now_ticks - before < RUEDA_POLICY_RUSH_TICKS;
    const bool was_near =
        atomic_load_explicit(&policy->is_rush, memory_order_relaxed);

    if (!is_near)
        atomic_store_explicit(&policy->came_ticks, now_ticks,
                              memory_order_relaxed);
    if (is_near != was_near)
        atomic_store_explicit(&policy->is_rush, is_near, memory_order_relaxed);
    return is_near || was_near;
}

/* Remembers the wish: if the background thread has the token, it lets go. */
static inline bool rueda_policy_should_help(struct rueda_policy *policy,
                                            int64_t now_ns)
{
    if (now_ns -
            atomic_load_explicit(&policy->helped_ns, memory_order_relaxed) <
        RUEDA_POLICY_HELP_APART_NS)
        return false;
    atomic_store_explicit(&policy->helped_ns, now_ns, memory_order_relaxed);
    return true;
}

#endif /* RUEDA_ENGINE_POLICY_H */
