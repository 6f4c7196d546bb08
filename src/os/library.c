/* SPDX-License-Identifier: Apache-2.0 */
#include "os/library.h"

#include <dlfcn.h>
#include <string.h>

void *rueda_library_find(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
}

void *rueda_library_open(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
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
