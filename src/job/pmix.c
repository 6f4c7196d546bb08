/* SPDX-License-Identifier: Apache-2.0 */
#include "job/pmix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/library.h"

/* The versions that the declarations in pmix.h hold for. */
#define FIRST_MAJOR 3
#define LAST_MAJOR  6

static const struct {
    const char *name;
    size_t offset;
} names[] = {
    {"PMIx_Get_version", offsetof(struct rueda_pmix_functions, get_version)},
    {"PMIx_Error_string", offsetof(struct rueda_pmix_functions, error_string)},
    {"PMIx_Init", offsetof(struct rueda_pmix_functions, init)},
    {"PMIx_Put", offsetof(struct rueda_pmix_functions, put)},
    {"PMIx_Commit", offsetof(struct rueda_pmix_functions, commit)},
    {"PMIx_Fence_nb", offsetof(struct rueda_pmix_functions, fence_nb)},
    {"PMIx_Get_nb", offsetof(struct rueda_pmix_functions, get_nb)},
    {"PMIx_Finalize", offsetof(struct rueda_pmix_functions, finalize)},
};

/* One below this folder, where launchers are known to keep theirs. */
static void *open_below(const char *prefix)
{
    static const char *const folders[] = {"lib", "lib64", "lib/openmpi"};
    void *library = NULL;
    char path[512];

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (library == NULL &&
            (size_t)snprintf(path, sizeof(path), "%s/%s/%s", prefix, folders[i],
                             RUEDA_PMIX_LIBRARY) < sizeof(path))
            library = rueda_library_open(path);
    return library;
}

/*
 * A library that is loaded already, be it by an MPI, is the one to use: two in
 * a process would not know of one another. Then one beside the launcher, where
 * it has left a hint, because the two must fit; then what the system has.
 */
static void *open_library(const struct rueda_business_card_exchange *exchange)
{
    static const char *const hints[] = {"PMIX_PREFIX", "PMIX_INSTALL_PREFIX",
                                        "OPAL_PREFIX"};
    void *library = rueda_library_find(RUEDA_PMIX_LIBRARY);

    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        const char *prefix = exchange->environment(exchange->arg, hints[i]);

        if (library == NULL && prefix != NULL && prefix[0] == '/')
            library = open_below(prefix);
    }
    return library != NULL ? library : rueda_library_open(RUEDA_PMIX_LIBRARY);
}

/* "OpenPMIx 4.2.2 (...)", "PMIx 3.1.5", "3.2.0": the first number counts. */
static int major_of(const char *version)
{
    size_t start = strcspn(version, "0123456789");

    return (int)strtol(version + start, NULL, 10);
}

static rueda_status find_functions(void *library,
                                   struct rueda_pmix_functions *out,
                                   struct rueda_text *error)
{
    const char *version;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *place = (char *)out + names[i].offset;

        if (rueda_library_function(library, names[i].name, place) != RUEDA_OK) {
            rueda_text_set(error, "%s has no %s; is it PMIx %d to %d?",
                           RUEDA_PMIX_LIBRARY, names[i].name, FIRST_MAJOR,
                           LAST_MAJOR);
            return RUEDA_ERR_UNSUPPORTED;
        }
    }
    version = out->get_version();
    if (major_of(version) < FIRST_MAJOR || major_of(version) > LAST_MAJOR) {
        rueda_text_set(error, "%s is \"%.80s\"; we know PMIx %d to %d",
                       RUEDA_PMIX_LIBRARY, version, FIRST_MAJOR, LAST_MAJOR);
        return RUEDA_ERR_UNSUPPORTED;
    }
    return RUEDA_OK;
}

rueda_status
rueda_pmix_load(const struct rueda_business_card_exchange *exchange,
                struct rueda_pmix_functions *out, struct rueda_text *error)
{
    rueda_status status;
    void *library;

    /* Without these PMIx would make us a job of one. */
    if (exchange->environment(exchange->arg, "PMIX_NAMESPACE") == NULL ||
        exchange->environment(exchange->arg, "PMIX_RANK") == NULL) {
        rueda_text_set(error, "PMIX_NAMESPACE and PMIX_RANK are not set: this "
                              "process was not started by a launcher that "
                              "offers PMIx (mpirun of Open MPI, srun "
                              "--mpi=pmix)");
        return RUEDA_ERR_UNSUPPORTED;
    }
    library = open_library(exchange);
    if (library == NULL) {
        rueda_text_set(error,
                       "the launcher offers PMIx, but there is no %s (%s); "
                       "install it (Debian: libpmix2), or name its folder in "
                       "LD_LIBRARY_PATH",
                       RUEDA_PMIX_LIBRARY, rueda_library_error());
        return RUEDA_ERR_UNSUPPORTED;
    }
    status = find_functions(library, out, error);
    if (status != RUEDA_OK)
        rueda_library_close(library);
    return status;
}
