/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python module rueda._core: the functions of rueda.h on the default
 * context, with numbers for pointers and enums, and statuses as exceptions. It
 * knows no framework.
 *
 *     Python                      here                        api/
 *     _core.wait(handle)    arguments to C                    default.h
 *                           enter the default context
 *                           let go of Python's lock
 *                           rueda_wait_for()                  rueda.h
 *                           take the lock again, leave
 *     a result, or an       statuses to exceptions
 *     exception             (raise.c)
 *
 * Everything is called with Python's lock held; what may block lets go of it. A
 * function that returns NULL, or false, has set an exception unless its comment
 * says otherwise. Each rueda_core_enter() that gives a context is paired with
 * one rueda_default_leave().
 *
 * A new function is a row of RUEDA_CORE_FUNCTIONS and its body in the file of
 * its subject; module.c registers all rows.
 *
 * Written against CPython's limited API of 3.9, so that one file serves all
 * later versions. Shapes and lists of numbers are tuples.
 */
#ifndef RUEDA_BIND_CORE_CORE_H
#define RUEDA_BIND_CORE_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <rueda/rueda.h>

#include "api/default.h"

/* ---- Errors: raise.c -------------------------------------------------- */

/* Set the exception that the status means; returns NULL. */
PyObject *rueda_core_raise(rueda_status status, const char *words);

/* None, or the exception that the status means, with rueda_last_error(). */
PyObject *rueda_core_answer(rueda_status status);

/* rueda_default_enter(), with an exception where there is no context: there is
 * nothing to leave then. */
rueda_ctx *rueda_core_enter(void);

/* Raise the exception of a call before init(); returns NULL. */
PyObject *rueda_core_raise_early(void);

static inline PyObject *rueda_core_none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

/* ---- Waiting: wait.c ---------------------------------------------------- */

/* Wait for an operation, in slices. False: an exception is set, and the handle
 * may still be there. */
bool rueda_core_finish(rueda_ctx *ctx, rueda_handle handle,
                       struct rueda_result *result);

/* The same, for at most timeout_ms; negative: without a limit. *out_is_late: it
 * has not ended, the handle is still there, and no exception is set. */
bool rueda_core_finish_in(rueda_ctx *ctx, rueda_handle handle, int timeout_ms,
                          struct rueda_result *result, bool *out_is_late);

/* ---- Numbers: numbers.c ------------------------------------------------ */

/* A tuple of integers, none negative, as an array of at most `room`. Returns
 * how many, or -1 with an exception. */
int rueda_core_sizes(PyObject *tuple, size_t *out, int room);

/* And back; NULL with an exception if there is no memory. */
PyObject *rueda_core_tuple(const size_t *numbers, int count);

/* ---- Results of unknown size: room.c ----------------------------------- */

/* For alloc and alloc_arg of struct rueda_submit_args. */
void *rueda_core_room_alloc(void *arg, size_t rows, size_t bytes);

/* The alloc_arg of such an object, or NULL with an exception. Borrowed. */
void *rueda_core_room_of(PyObject *capsule);

/* ---- Memory that ranks share: shared.c ---------------------------------- */

/* The context is about to end. */
void rueda_core_shared_end(void);

/* ---- Functions of the module ------------------------------------------- */

/* The signature of a function that scripts call, as Python's inspect reads
 * it from the help. */
#define RUEDA_CORE_PLAIN(name) name "($module, /)\n--\n\n"

/* What submit() takes, in this order or by name. Fields from reduction on are
 * optional, and None means their default; so does a name of None. */
#define RUEDA_CORE_SUBMIT_FIELDS(X)                                            \
    X(kind)                                                                    \
    X(name)                                                                    \
    X(set)                                                                     \
    X(dtype)                                                                   \
    X(send)                                                                    \
    X(recv)                                                                    \
    X(shape)                                                                   \
    X(reduction)                                                               \
    X(root)                                                                    \
    X(prescale)                                                                \
    X(postscale)                                                               \
    X(splits)                                                                  \
    X(room)                                                                    \
    X(compression)                                                             \
    X(priority)                                                                \
    X(device)                                                                  \
    X(stream)                                                                  \
    X(ordered)                                                                 \
    X(peer)                                                                    \
    X(tag)                                                                     \
    X(unpacked)                                                                \
    X(more)

#define RUEDA_CORE_SUBMIT_HELP                                                 \
    "submit(kind, name, set, dtype, send, recv, shape, reduction=0, root=0, "  \
    "prescale=1.0, postscale=1.0, splits=None, room=None, compression=0, "     \
    "priority=0, device=None, stream=None, ordered=0, peer=0, tag=0, "         \
    "unpacked=0, more=0) -> handle\n\n"                                        \
    "The caller keeps memory and room until the operation ends. Without a "    \
    "device the memory is the host's. If ordered is true, all members of "     \
    "the set submit their ordered operations in the same order, without a "    \
    "name, and nothing is negotiated."

PyObject *rueda_core_submit(PyObject *module, PyObject *tuple, PyObject *dict);

/* X(name in Python, calling convention, help) */
#define RUEDA_CORE_FUNCTIONS(X)                                                \
    X(init, METH_VARARGS,                                                      \
      "init(rank, size, timeout_ms, store, exchange, process_sets)")           \
    X(shutdown, METH_NOARGS, "shutdown()")                                     \
    X(is_initialized, METH_NOARGS,                                             \
      RUEDA_CORE_PLAIN("is_initialized") "Is there a job?")                    \
    X(rank, METH_NOARGS,                                                       \
      RUEDA_CORE_PLAIN("rank") "My place among the ranks of the job.")         \
    X(size, METH_NOARGS,                                                       \
      RUEDA_CORE_PLAIN("size") "The number of ranks of the job.")              \
    X(local_rank, METH_NOARGS,                                                 \
      RUEDA_CORE_PLAIN("local_rank") "My place among the ranks of this host.") \
    X(local_size, METH_NOARGS,                                                 \
      RUEDA_CORE_PLAIN("local_size") "The number of ranks of this host.")      \
    X(cross_rank, METH_NOARGS,                                                 \
      RUEDA_CORE_PLAIN("cross_rank") "My place among the ranks of all hosts "  \
                                     "that have my local rank.")               \
    X(cross_size, METH_NOARGS,                                                 \
      RUEDA_CORE_PLAIN("cross_size") "The number of ranks of all hosts that "  \
                                     "have my local rank.")                    \
    X(is_homogeneous, METH_NOARGS,                                             \
      RUEDA_CORE_PLAIN("is_homogeneous") "Has every host as many ranks?")      \
    X(elastic_term, METH_NOARGS,                                               \
      "elastic_term() -> which term of an elastic job this is; 0: there is "   \
      "none")                                                                  \
    X(elastic_is_refused, METH_NOARGS,                                         \
      "elastic_is_refused() -> has the launcher no place for this process?")   \
    X(elastic_set_progress, METH_O,                                            \
      "elastic_set_progress(n): how far the state has come that this process " \
      "keeps")                                                                 \
    X(elastic_change, METH_VARARGS,                                            \
      "elastic_change(timeout_ms) -> (term, flags) of a change, or None")      \
    X(elastic_leave, METH_NOARGS,                                              \
      "elastic_leave(): this process was told to end; the launcher leaves it " \
      "out of the next term")                                                  \
    X(elastic_add, METH_VARARGS,                                               \
      "elastic_add(key, n) -> a number in the launcher's store, with n added") \
    X(elastic_notice, METH_O,                                                  \
      "elastic_notice(agent) -> a descriptor that becomes readable when "      \
      "SIGTERM comes from another process than this one, or -1: the program "  \
      "has a handler of its own")                                              \
    X(fail, METH_O,                                                            \
      "fail(why): this rank cannot go on, and all hear why. False: it is not " \
      "the first.")                                                            \
    X(step, METH_NOARGS,                                                       \
      "step(): a boundary, at which rank and size may change")                 \
    X(check_every, METH_NOARGS,                                                \
      "check_every() -> what RUEDA_CHECK says: a number of steps, 0 for off, " \
      "-1 for first")                                                          \
    X(has_timeline, METH_NOARGS,                                               \
      "has_timeline() -> 1 if RUEDA_TIMELINE is set, else 0")                  \
    X(has_dynamic_sets, METH_NOARGS,                                           \
      "has_dynamic_sets() -> 1 if sets may change while the job runs, else 0") \
    X(repairs, METH_NOARGS,                                                    \
      "repairs() -> whether the others go on inside a step in which a rank "   \
      "dies")                                                                  \
    X(gpu_metrics, METH_NOARGS,                                                \
      "gpu_metrics() -> (list of a dict for each GPU of the host, why there "  \
      "are none or \"\")")                                                     \
    X(digest, METH_VARARGS,                                                    \
      "digest(address, bytes, seed) -> a signed number of 64 bits\n\n"         \
      "The caller keeps the memory as it is meanwhile.")                       \
    X(envelope_opener, METH_NOARGS,                                            \
      "envelope_opener() -> public key, secret key")                           \
    X(envelope_seal, METH_VARARGS,                                             \
      "envelope_seal(public key, secret) -> envelope")                         \
    X(envelope_open, METH_VARARGS,                                             \
      "envelope_open(public key, secret key, envelope) -> secret")             \
    X(timeline_start, METH_VARARGS, "timeline_start(path, mark_cycles)")       \
    X(timeline_stop, METH_NOARGS, "timeline_stop()")                           \
    X(set_create, METH_O, "set_create(ranks) -> id")                           \
    X(set_destroy, METH_O, "set_destroy(id)")                                  \
    X(set_ranks, METH_O, "set_ranks(id) -> ranks, or None")                    \
    X(set_open, METH_VARARGS,                                                  \
      "set_open(id, ranks) -> handle of the beginning of a private set")       \
    X(set_close, METH_O,                                                       \
      "set_close(id) -> handle of the end of a private set")                   \
    X(submit_group, METH_O,                                                    \
      "submit_group([fields of submit as tuple or dict, ...]) -> [handle, "    \
      "...]")                                                                  \
    X(poll, METH_O, "poll(handle) -> has it ended?")                           \
    X(wait, METH_O, "wait(handle), which is gone then")                        \
    X(wait_until, METH_VARARGS,                                                \
      "wait_until(handle, timeout_ms) -> has it ended? It is gone then.")      \
    X(wait_message, METH_VARARGS,                                              \
      "wait_message(handle, timeout_ms) -> who sent it, and its rows; None: "  \
      "it has not ended")                                                      \
    X(ends, METH_NOARGS, "ends() -> a list of operations that have ended")     \
    X(tell_end, METH_VARARGS,                                                  \
      "tell_end(ends, handle): put it there when it has ended")                \
    X(next_ends, METH_VARARGS,                                                 \
      "next_ends(ends, timeout_ms) -> [handle, ...], as soon as there are")    \
    X(ring_ends, METH_O, "ring_ends(ends): let next_ends() return now")        \
    X(wait_for, METH_VARARGS,                                                  \
      "wait_for(handle, members) -> (rows, last rank, rows from each)")        \
    X(forget, METH_O, "forget(handle), which is gone when it has ended")       \
    X(learn, METH_O,                                                           \
      "learn(type of tensors) -> can C read them without Python?\n\n"          \
      "Several frameworks may each teach their type.")                         \
    X(object_count, METH_VARARGS,                                              \
      "object_count(purpose, name, set) -> sequence of this call")             \
    X(seal_object, METH_VARARGS,                                               \
      "seal_object(purpose, name, set, sequence, memory, length) -> head\n\n"  \
      "Of an object that other ranks will unpickle, by this rank.")            \
    X(object_length, METH_VARARGS,                                             \
      "object_length(purpose, name, set, sequence, sender, head) -> length")   \
    X(open_object, METH_VARARGS,                                               \
      "open_object(purpose, name, set, sequence, sender, head, memory, "       \
      "length)\n\nRaises if that is not what the sender has sealed.")          \
    X(log_debug, METH_O,                                                       \
      "log_debug(words): a line of the log, at level debug")                   \
    X(shared, METH_O,                                                          \
      "shared(bytes) -> (a DLPack capsule, the address to submit it by)\n\n"   \
      "Zeroed memory that all ranks of the host reach without a copy.")        \
    X(room, METH_NOARGS, "room() -> where a result of any size can be made")   \
    X(take, METH_VARARGS,                                                      \
      "take(room, dtype, shape) -> a DLPack capsule, or None if it is empty\n" \
      "\nThe number of rows is found in the room, the rest in the shape.")

#define X(name, convention, help)                                              \
    PyObject *rueda_core_##name(PyObject *module, PyObject *args);
RUEDA_CORE_FUNCTIONS(X)
#undef X

#endif /* RUEDA_BIND_CORE_CORE_H */
