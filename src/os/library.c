/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that are loaded at run time, and where they are. */
#include "os/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void *rueda_library_find(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
}

void *rueda_library_open(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

bool rueda_library_has_symbol(const char *name)
{
    return dlsym(RTLD_DEFAULT, name) != NULL;
}

/* Not 0 ends the walk. */
/* For dl_iterate_phdr(), which also visits libraries that were loaded with
 * RTLD_LOCAL. */
static int begins_so(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    const char *beginning = arg;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *file = slash != NULL ? slash + 1 : info->dlpi_name;

    (void)bytes;
    return strncmp(file, beginning, strlen(beginning)) == 0;
}

bool rueda_library_is_mapped(const char *beginning)
{
    return dl_iterate_phdr(begins_so, (void *)beginning) != 0;
}

/* dladdr() is not in POSIX. */
struct search {
    const char *words;
    uintptr_t address;
};

static int holds(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    const struct search *search = arg;

    (void)bytes;
    if (strstr(info->dlpi_name, search->words) == NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;

        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0 &&
            search->address >= start && search->address - start < part->p_memsz)
            return 1;
    }
    return 0;
}

bool rueda_library_holds(const char *words, const void *address)
{
    struct search search = {words, (uintptr_t)address};

    return dl_iterate_phdr(holds, &search) != 0;
}

/* ---- Beside us -------------------------------------------------------- */

/* How many folders above our own file are looked into: it is in
 * site-packages/rueda/lib, or in bin/ beside lib/python3.x/site-packages. */
#define LEVELS 3

struct own_file {
    uintptr_t address;
    char path[PATH_MAX]; /* "": the program itself */
};

static int is_own(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    struct own_file *own = arg;

    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + part->p_vaddr;

        if (part->p_type == PT_LOAD && own->address >= start &&
            own->address - start < part->p_memsz) {
            snprintf(own->path, sizeof(own->path), "%s", info->dlpi_name);
            return 1;
        }
    }
    return 0;
}

/* The path of the file that this code is in; "" if it is not known. */
static void find_own(struct own_file *own)
{
    static const char here;
    ssize_t length;

    own->address = (uintptr_t)&here;
    own->path[0] = '\0';
    dl_iterate_phdr(is_own, own);
    if (own->path[0] != '\0')
        return;
    length = readlink("/proc/self/exe", own->path, sizeof(own->path) - 1);
    own->path[length > 0 ? length : 0] = '\0';
}

/* path is cut at each slash on the way up. */
static void *open_above(char *path, const char *folder, const char *name,
                        char *out_path, size_t path_bytes)
{
    char full[PATH_MAX];
    void *library = NULL;

    for (int i = 0; i <= LEVELS && library == NULL; i++) {
        char *slash = strrchr(path, '/');

        if (slash == NULL)
            return NULL;
        *slash = '\0';
        if (snprintf(full, sizeof(full), "%s/%s/%s", path, folder, name) >=
            (int)sizeof(full))
            continue;
        library = access(full, R_OK) == 0 ? rueda_library_open(full) : NULL;
        if (library != NULL && out_path != NULL)
            snprintf(out_path, path_bytes, "%s", full);
    }
    return library;
}

void *rueda_library_open_beside(const char *folder, const char *name,
                                char *out_path, size_t path_bytes)
{
    struct own_file own;
    void *library = rueda_library_find(name);

    if (out_path != NULL)
        snprintf(out_path, path_bytes, "%s", name);
    if (library != NULL)
        return library;
    find_own(&own);
    library = open_above(own.path, folder, name, out_path, path_bytes);
    return library != NULL ? library : rueda_library_open(name);
}

void rueda_library_close(void *library)
{
    if (library != NULL)
        dlclose(library);
}

rueda_status rueda_library_function(void *library, const char *name,
                                    void *out_function)
{
    void *address = dlsym(library, name);

    if (address == NULL)
        return RUEDA_ERR_UNSUPPORTED;
    /* C has no conversion from an object's address to a function's; POSIX
     * says that they look the same. */
    memcpy(out_function, &address, sizeof(address));
    return RUEDA_OK;
}

const char *rueda_library_error(void)
{
    const char *words = dlerror();

    return words != NULL ? words : "no cause is known";
}
