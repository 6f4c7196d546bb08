/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared libraries that are opened at run time, so that we use what a site has
 * and need none of it. Any thread.
 */
#ifndef RUEDA_OS_LIBRARY_H
#define RUEDA_OS_LIBRARY_H

#include <stddef.h>

#include <rueda/rueda.h>

/* One that the process has loaded already, or NULL; name as its own soname. */
void *rueda_library_find(const char *name);

/* Load by name, or by path if that has a slash. NULL: rueda_library_error()
 * says why. Its symbols stay out of the way of others. */
void *rueda_library_open(const char *name);

/* One that other packages of the same installation bring: what the process has
 * loaded already; else `folder/name` in a folder above our own library or
 * program, such as Python's site-packages; else by name, as
 * rueda_library_open(). out_path, if there is any, gets the path that was used,
 * or the name. */
void *rueda_library_open_beside(const char *folder, const char *name,
                                char *out_path, size_t path_bytes);

/* Does a library that the process has loaded, or the program itself, offer this
 * symbol to all others? */
bool rueda_library_has_symbol(const char *name);

/* Has the process loaded a library whose file name, without folders, begins so?
 * Also finds libraries that export nothing to others. */
bool rueda_library_is_mapped(const char *beginning);

/* Is this address in a loaded library whose path has these words in it? */
bool rueda_library_holds(const char *words, const void *address);

/* Undo one find or open. */
void rueda_library_close(void *library);

/* Put the address of a function into *out_function, which is a pointer to a
 * function of whatever type. RUEDA_ERR_UNSUPPORTED: there is no such. */
rueda_status rueda_library_function(void *library, const char *name,
                                    void *out_function);

/* What went wrong last in this thread; never NULL. */
const char *rueda_library_error(void);

#endif /* RUEDA_OS_LIBRARY_H */
