/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Horovod's variables: those that are another name of a setting of ours, and
 * those that mean nothing here. (The ones that say where a rank is are in
 * job/seat.h.)
 */
#ifndef RUEDA_BASE_HOROVOD_H
#define RUEDA_BASE_HOROVOD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/config.h"

struct rueda_horovod_alias {
    const char *setting;
    const char *name;
    bool (*parse)(const char *value, void *out); /* NULL: as the setting */
};

/* The other name of a setting, or NULL. */
const struct rueda_horovod_alias *rueda_horovod_alias(const char *setting);

struct rueda_horovod_variable {
    const char *name;
    const char *why;   /* it has no effect */
    const char *usual; /* values that are no news, with spaces between:
                          Horovod's default, and what launchers set; NULL:
                          whatever it is */
};

/* The table, for tools. */
const struct rueda_horovod_variable *rueda_horovod_variables(size_t *out_count);

/* Does one of them have an unknown value? RUEDA_ERR_INVALID with a message:
 * with Horovod a mistyped value would not have the wanted effect. */
rueda_status rueda_horovod_check(struct rueda_text *error);

/*
 * Log those that are set, each with its reason: a warning, or information where
 * the value is the usual one; and a setting that is ignored because of another.
 * Once a process, as the environment is the process's. For rank 0.
 */
void rueda_horovod_tell(const struct rueda_config *config);

#endif /* RUEDA_BASE_HOROVOD_H */
