/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of PMIx that we use, declared here because a site has the library
 * and seldom its headers; and how the library is found.
 */
#ifndef RUEDA_JOB_PMIX_H
#define RUEDA_JOB_PMIX_H

#include <assert.h>
#include <rueda/rueda.h>

#include "job/exchange.h"

/* Its soname since PMIx 2. */
#define RUEDA_PMIX_LIBRARY "libpmix.so.2"

/*
 * As in PMIx 3 to 6: numbers, names and layouts of what crosses the border.
 * The union is as large as its largest member, three pointers.
 */
#define RUEDA_PMIX_SUCCESS   0
#define RUEDA_PMIX_TIMED_OUT (-24)
#define RUEDA_PMIX_UNREACHED (-25)
#define RUEDA_PMIX_NOT_FOUND (-46)
/* Done already: there will be no call back. */
#define RUEDA_PMIX_DONE_NOW (-157)

#define RUEDA_PMIX_BOOL  1
#define RUEDA_PMIX_INT   6
#define RUEDA_PMIX_BYTES 27

#define RUEDA_PMIX_GLOBAL   3
#define RUEDA_PMIX_ANY_RANK (UINT32_MAX - 1)

struct rueda_pmix_proc {
    char space[256];
    uint32_t rank;
};

struct rueda_pmix_value {
    uint16_t type;
    union {
        bool flag;
        int integer;
        struct {
            char *bytes;
            size_t size;
        } object;
        void *room[3];
    } data;
};

struct rueda_pmix_info {
    char key[512];
    uint32_t flags;
    struct rueda_pmix_value value;
};

static_assert(sizeof(struct rueda_pmix_proc) == 260, "as pmix_proc_t");
static_assert(sizeof(void *) != 8 || sizeof(struct rueda_pmix_info) == 552,
              "as pmix_info_t");

typedef void rueda_pmix_op_done(int status, void *arg);
typedef void rueda_pmix_value_done(int status, struct rueda_pmix_value *value,
                                   void *arg);

struct rueda_pmix_functions {
    const char *(*get_version)(void);
    const char *(*error_string)(int status);
    int (*init)(struct rueda_pmix_proc *me, struct rueda_pmix_info *info,
                size_t count);
    int (*put)(uint8_t scope, const char *key, struct rueda_pmix_value *value);
    int (*commit)(void);
    int (*fence_nb)(const struct rueda_pmix_proc *who, size_t who_count,
                    const struct rueda_pmix_info *info, size_t count,
                    rueda_pmix_op_done *done, void *arg);
    int (*get_nb)(const struct rueda_pmix_proc *who, const char *key,
                  const struct rueda_pmix_info *info, size_t count,
                  rueda_pmix_value_done *done, void *arg);
    int (*finalize)(const struct rueda_pmix_info *info, size_t count);
};

/*
 * Open the library and fill in its functions. RUEDA_ERR_UNSUPPORTED: there is
 * no library, or it is of a version that we do not know, or the launcher offers
 * no PMIx; error says which, and nothing stays open.
 *
 * After success it stays loaded for good: its thread has had values of its
 * own, whose destructors the C library may call at any later time.
 */
rueda_status
rueda_pmix_load(const struct rueda_business_card_exchange *exchange,
                struct rueda_pmix_functions *out, struct rueda_text *error);

#endif /* RUEDA_JOB_PMIX_H */
