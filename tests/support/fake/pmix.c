/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libpmix for tests/unit/test_exchange_pmix.c: a launcher whose job has
 * rank 1 of 4, whose rank 0 has put the card "card", and which misbehaves as
 * the variable FAKE_PMIX says.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/pmix.h"

#define VISIBLE __attribute__((visibility("default")))

/* A call that is to be answered, or that never will be. */
struct call {
    rueda_pmix_op_done *op_done;
    rueda_pmix_value_done *value_done;
    void *arg;
};

static int sessions;
static struct call forgotten;

static bool is_told(const char *what)
{
    const char *told = getenv("FAKE_PMIX");

    return told != NULL && strcmp(told, what) == 0;
}

/* How many have come and not gone. */
VISIBLE int fake_pmix_sessions(void);
VISIBLE int fake_pmix_sessions(void)
{
    return sessions;
}

VISIBLE const char *PMIx_Get_version(void);
VISIBLE const char *PMIx_Get_version(void)
{
    return is_told("future") ? "OpenPMIx 97.1.0 (of the future)"
                             : "OpenPMIx 4.2.2";
}

VISIBLE const char *PMIx_Error_string(int status);
VISIBLE const char *PMIx_Error_string(int status)
{
    return status == RUEDA_PMIX_UNREACHED ? "UNREACHABLE" : "SOME-ERROR";
}

VISIBLE int PMIx_Init(struct rueda_pmix_proc *me, struct rueda_pmix_info *info,
                      size_t count);
VISIBLE int PMIx_Init(struct rueda_pmix_proc *me, struct rueda_pmix_info *info,
                      size_t count)
{
    (void)info;
    (void)count;
    if (is_told("stopped"))
        sleep(3600);
    if (is_told("gone"))
        return RUEDA_PMIX_UNREACHED;
    memset(me, 0, sizeof(*me));
    memcpy(me->space, "job", 4);
    me->rank = is_told("rank 0") ? 0 : 1;
    sessions++;
    return RUEDA_PMIX_SUCCESS;
}

VISIBLE int PMIx_Put(uint8_t scope, const char *key,
                     struct rueda_pmix_value *value);
VISIBLE int PMIx_Put(uint8_t scope, const char *key,
                     struct rueda_pmix_value *value)
{
    bool is_right =
        scope == RUEDA_PMIX_GLOBAL && strcmp(key, "rueda.card") == 0 &&
        value->type == RUEDA_PMIX_BYTES && value->data.object.size == 4 &&
        memcmp(value->data.object.bytes, "card", 4) == 0;

    return is_right ? RUEDA_PMIX_SUCCESS : -1;
}

VISIBLE int PMIx_Commit(void);
VISIBLE int PMIx_Commit(void)
{
    return RUEDA_PMIX_SUCCESS;
}

/* Answer from a thread of the library, as the true one does. */
static void *answer(void *arg)
{
    struct call call = *(struct call *)arg;
    struct rueda_pmix_value value = {
        .type = is_told("type") ? RUEDA_PMIX_INT : RUEDA_PMIX_BYTES};

    free(arg);
    value.data.object.bytes = (char *)"card";
    value.data.object.size = is_told("short") ? 3 : 4;
    if (call.op_done != NULL)
        call.op_done(is_told("fence") ? -1 : RUEDA_PMIX_SUCCESS, call.arg);
    else if (is_told("missing"))
        call.value_done(RUEDA_PMIX_NOT_FOUND, NULL, call.arg);
    else
        call.value_done(RUEDA_PMIX_SUCCESS, &value, call.arg);
    return NULL;
}

static int take(struct call call)
{
    struct call *copy;
    pthread_t thread;

    if (is_told("late")) {
        forgotten = call;
        return RUEDA_PMIX_SUCCESS;
    }
    copy = malloc(sizeof(*copy));
    if (copy == NULL)
        return -1;
    *copy = call;
    if (pthread_create(&thread, NULL, answer, copy) != 0) {
        free(copy);
        return -1;
    }
    return pthread_detach(thread);
}

VISIBLE int PMIx_Fence_nb(const struct rueda_pmix_proc *who, size_t who_count,
                          const struct rueda_pmix_info *info, size_t count,
                          rueda_pmix_op_done *done, void *arg);
VISIBLE int PMIx_Fence_nb(const struct rueda_pmix_proc *who, size_t who_count,
                          const struct rueda_pmix_info *info, size_t count,
                          rueda_pmix_op_done *done, void *arg)
{
    if (who_count != 1 || who->rank != RUEDA_PMIX_ANY_RANK ||
        strcmp(who->space, "job") != 0 || count != 2 ||
        strcmp(info[0].key, "pmix.timeout") != 0 ||
        info[0].value.data.integer < 1)
        return -1;
    if (is_told("at once"))
        return RUEDA_PMIX_DONE_NOW;
    return take((struct call){.op_done = done, .arg = arg});
}

VISIBLE int PMIx_Get_nb(const struct rueda_pmix_proc *who, const char *key,
                        const struct rueda_pmix_info *info, size_t count,
                        rueda_pmix_value_done *done, void *arg);
VISIBLE int PMIx_Get_nb(const struct rueda_pmix_proc *who, const char *key,
                        const struct rueda_pmix_info *info, size_t count,
                        rueda_pmix_value_done *done, void *arg)
{
    (void)info;
    if (who->rank != 0 || strcmp(key, "rueda.card") != 0 || count != 1)
        return -1;
    return take((struct call){.value_done = done, .arg = arg});
}

VISIBLE int PMIx_Finalize(const struct rueda_pmix_info *info, size_t count);
VISIBLE int PMIx_Finalize(const struct rueda_pmix_info *info, size_t count)
{
    (void)info;
    (void)count;
    sessions--;
    return RUEDA_PMIX_SUCCESS;
}
