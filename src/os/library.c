/* SPDX-License-Identifier: Apache-2.0 */
#include "os/library.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

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
