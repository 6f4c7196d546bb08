/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default context of a process, which bindings share: the one piece of
 * global state, so that all frameworks of a program are the same rank. Any
 * thread. Exported for the modules beside the library, not for programs: those
 * hold contexts of their own.
 */
#ifndef RUEDA_API_DEFAULT_H
#define RUEDA_API_DEFAULT_H

#include <rueda/rueda.h>

/* Asked every now and then while a start takes its time. */
typedef bool (*rueda_default_goes_on_fn)(void *arg);

/*
 * rueda_init() for the default context; nothing if there is one, unless that is
 * a parent's from before a fork().
 *
 * It runs on a thread of its own, and goes_on(arg), which may be NULL, is asked
 * on this one; so is the exchange of the arguments, if any. If it says no,
 * RUEDA_ERR_CANCELLED is returned and the start goes on without us: the next
 * call waits for it, whatever its arguments, and rueda_default_close() has it
 * end in nothing.
 */
RUEDA_API rueda_status rueda_default_open(const struct rueda_init_args *args,
                                          rueda_default_goes_on_fn goes_on,
                                          void *arg);

/*
 * Shut it down once all calls that have entered have left: calls that wait for
 * an operation check rueda_default_is() now and then; after half a second
 * operations are ended. Nothing if there is none.
 */
RUEDA_API void rueda_default_close(void);

/* The default context, which stays until rueda_default_leave(); NULL, with
 * nothing to leave, if there is none. */
RUEDA_API rueda_ctx *rueda_default_enter(void);
RUEDA_API void rueda_default_leave(void);

/* What RUEDA_CHECK says (base/config.h) for this context. */
RUEDA_API int rueda_default_check_every(const rueda_ctx *ctx);

/* Is RUEDA_TIMELINE set, and may process sets change while the job runs? 1 or
 * 0, as the library has read the settings. */
RUEDA_API int rueda_default_has_timeline(const rueda_ctx *ctx);
RUEDA_API int rueda_default_has_dynamic_sets(const rueda_ctx *ctx);

/* Do the others go on inside a step in which a rank dies (engine/terms.h)? 1 or
 * 0. */
RUEDA_API int rueda_default_repairs(const rueda_ctx *ctx);

/* What RUEDA_TENSORFLOW_WAITS says, for a module that is loaded before there is
 * a context. False where a setting is wrong, of which rueda_default_open() will
 * speak. */
RUEDA_API bool rueda_default_tensorflow_waits(void);

/*
 * Map memory from rueda_alloc() once more: the same pages, which stay while
 * they are mapped, whatever becomes of the context. bytes are those allocated.
 * RUEDA_ERR_IO leaves the cause in errno.
 */
RUEDA_API rueda_status rueda_default_map(const rueda_ctx *ctx,
                                         const void *memory, size_t bytes,
                                         void **out);
RUEDA_API void rueda_default_unmap(void *at, size_t bytes);

/* A line of the log of this rank, at level debug. */
RUEDA_API void rueda_default_debug(const rueda_ctx *ctx, const char *words);

/* Is this still the default context? If not, calls that have entered should
 * leave. */
RUEDA_API bool rueda_default_is(const rueda_ctx *ctx);

#endif /* RUEDA_API_DEFAULT_H */
