/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of a collective: from TensorFlow's tensors to submitted operations,
 * and back when they have ended. A group has several operations, and ends with
 * the last of them. Callbacks of the engine say when that is, except where the
 * kernel itself waits.
 *
 *     rueda_tf_call()
 *       run_and_wait()   start(), end_handle() of each part, deliver()
 *       run_later()      start(), then returns to TensorFlow
 *                          note_end() for each part, in the engine's callback
 *                          the last let_go(): deliver(), then done
 *
 * After `done` TensorFlow may free its context at any moment, so that comes
 * last, when nothing is left of the call.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/default.h"
#include "bind/tensorflow/done.h"
#include "bind/tensorflow/op.h"

#define WORDS_BYTES 2048

/* How long a thread waits for a call that is alone: many times what a small
 * operation takes, and little beside a step. */
#define MOMENT_MS 2

/* One operation. */
struct part {
    struct call *call;
    int index;
    tf_tensor *input; /* or NULL, if its memory is that of the result */
    rueda_dtype dtype;
    int type; /* TensorFlow's */
    int dims;
    size_t shape[RUEDA_MAX_DIMS];
    void *output; /* or NULL, until alloc is called */
    size_t output_rows;
    rueda_handle handle;
};

struct call {
    struct rueda_tf_kernel *kernel;
    tf_context *ctx;
    rueda_ctx *rueda;
    struct rueda_tf_done done;
    struct rueda_tf_flight flight;
    bool is_late;   /* its thread has waited a moment, and it has not ended */
    size_t *splits; /* of an alltoall, or NULL */
    size_t *rows_from;
    int members;
    int last_rank;
    atomic_int left; /* operations in flight, and one while they are started */
    atomic_bool has_failed;
    rueda_status status; /* of the first that failed, and its words */
    char words[WORDS_BYTES];
    int count;
    struct part parts[];
};

/* TensorFlow goes on in our callback, where nothing may wait. */
static _Thread_local bool is_in_callback;

/* ---- Words ------------------------------------------------------------ */

void rueda_tf_fail(tf_context *ctx, int code, const char *words)
{
    tf_status *status = rueda_tf.NewStatus();

    rueda_tf.SetStatus(status, code, words);
    rueda_tf.OpKernelContext_Failure(ctx, status);
    rueda_tf.DeleteStatus(status);
}

static int code_of(rueda_status status)
{
    switch (status) {
    case RUEDA_ERR_INVALID:
        return TF_INVALID_ARGUMENT;
    case RUEDA_ERR_MISMATCH:
        return TF_FAILED_PRECONDITION;
    case RUEDA_ERR_UNSUPPORTED:
        return TF_UNIMPLEMENTED;
    case RUEDA_ERR_NOMEM:
        return TF_RESOURCE_EXHAUSTED;
    case RUEDA_ERR_CANCELLED:
    case RUEDA_ERR_CLOSED:
        return TF_ABORTED;
    default:
        return TF_UNKNOWN;
    }
}

/* The first failure decides; the parts of a call may fail on several threads.
 */
static void note_failure(struct call *call, rueda_status status,
                         const char *words)
{
    if (atomic_exchange(&call->has_failed, true))
        return;
    call->status = status;
    snprintf(call->words, sizeof(call->words), "%s",
             words[0] != '\0' ? words : rueda_status_str(status));
}

/* ---- Tensors ---------------------------------------------------------- */

static bool find_dtype(int type, rueda_dtype *out)
{
    static const struct {
        int type;
        rueda_dtype dtype;
    } known[] = {
        {TF_FLOAT, RUEDA_FLOAT32}, {TF_DOUBLE, RUEDA_FLOAT64},
        {TF_HALF, RUEDA_FLOAT16},  {TF_BFLOAT16, RUEDA_BFLOAT16},
        {TF_INT32, RUEDA_INT32},   {TF_INT64, RUEDA_INT64},
        {TF_INT16, RUEDA_INT16},   {TF_INT8, RUEDA_INT8},
        {TF_UINT16, RUEDA_UINT16}, {TF_UINT8, RUEDA_UINT8},
        {TF_BOOL, RUEDA_BOOL},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].type == type) {
            *out = known[i].dtype;
            return true;
        }
    }
    return false;
}

/* An input, which the caller deletes; NULL with a failure noted. */
static tf_tensor *input_of(struct call *call, int index)
{
    tf_status *status = rueda_tf.NewStatus();
    tf_tensor *tensor = NULL;

    rueda_tf.GetInput(call->ctx, index, &tensor, status);
    if (rueda_tf.GetCode(status) != TF_OK) {
        note_failure(call, RUEDA_ERR_INVALID, rueda_tf.Message(status));
        tensor = NULL;
    }
    rueda_tf.DeleteStatus(status);
    return tensor;
}

static bool take_input(struct part *part)
{
    tf_tensor *input = input_of(part->call, part->index);

    if (input == NULL)
        return false;
    part->input = input;
    part->type = rueda_tf.TensorType(input);
    part->dims = rueda_tf.NumDims(input);
    if (!find_dtype(part->type, &part->dtype) || part->dims > RUEDA_MAX_DIMS) {
        note_failure(part->call, RUEDA_ERR_INVALID,
                     "a tensor has a type or a number of dimensions that "
                     "collectives do not know");
        return false;
    }
    for (int i = 0; i < part->dims; i++)
        part->shape[i] = (size_t)rueda_tf.Dim(input, i);
    return true;
}

/* Make the result of this many rows, or of the input's shape if they are the
 * input's; *in_place may take over the memory of the input. NULL with a failure
 * noted, or for a result without bytes. */
static void *make_output(struct part *part, size_t rows, bool *in_place)
{
    tf_status *status = rueda_tf.NewStatus();
    const int candidate = part->index;
    int64_t shape[RUEDA_MAX_DIMS];
    size_t bytes = rueda_dtype_size(part->dtype);
    tf_tensor *output;
    void *data = NULL;
    int forwarded = -1;

    for (int i = 0; i < part->dims; i++) {
        shape[i] = (int64_t)(i == 0 ? rows : part->shape[i]);
        bytes *= (size_t)shape[i];
    }
    if (in_place != NULL)
        output = rueda_tf.ForwardInputOrAllocateOutput(
            part->call->ctx, &candidate, 1, part->index, shape, part->dims,
            &forwarded, status);
    else
        output =
            rueda_tf.AllocateOutput(part->call->ctx, part->index, part->type,
                                    shape, part->dims, bytes, status);
    if (rueda_tf.GetCode(status) != TF_OK)
        note_failure(part->call, RUEDA_ERR_NOMEM, rueda_tf.Message(status));
    else
        data = rueda_tf.TensorData(output);
    if (output != NULL)
        rueda_tf.DeleteTensor(output);
    rueda_tf.DeleteStatus(status);
    if (in_place != NULL)
        *in_place = forwarded >= 0;
    return data;
}

/* For rueda_alloc_fn. A result without bytes has an address, too. */
static void *alloc_output(void *arg, size_t rows, size_t bytes)
{
    static char nothing;
    struct part *part = arg;
    void *data;

    if (part->output != NULL && part->output_rows == rows)
        return part->output;
    data = make_output(part, rows, NULL);
    if (data == NULL && bytes == 0 && !atomic_load(&part->call->has_failed))
        data = &nothing;
    part->output = data;
    part->output_rows = rows;
    return data;
}

/* A number, or a list of them; `count` is -1 for one. */
static void put_numbers(struct call *call, int index, const size_t *numbers,
                        int count)
{
    tf_status *status = rueda_tf.NewStatus();
    const int64_t shape = count;
    const int64_t total = count < 0 ? 1 : count;
    tf_tensor *output = rueda_tf.AllocateOutput(
        call->ctx, index, TF_INT32, &shape, count < 0 ? 0 : 1,
        (size_t)total * sizeof(int32_t), status);

    if (rueda_tf.GetCode(status) == TF_OK) {
        int32_t *data = rueda_tf.TensorData(output);

        for (int64_t i = 0; i < total; i++)
            data[i] = count < 0 ? call->last_rank : (int32_t)numbers[i];
    } else {
        note_failure(call, RUEDA_ERR_NOMEM, rueda_tf.Message(status));
    }
    if (output != NULL)
        rueda_tf.DeleteTensor(output);
    rueda_tf.DeleteStatus(status);
}

/* ---- Arguments -------------------------------------------------------- */

/* Reduced and broadcast tensors have their result in the input's memory where
 * that is used by nothing else. */
static bool fill_same_shape(struct part *part, struct rueda_submit_args *args)
{
    bool in_place = false;

    /* While we hold it something uses it. */
    rueda_tf.DeleteTensor(part->input);
    part->input = NULL;
    args->recv =
        make_output(part, part->dims > 0 ? part->shape[0] : 0, &in_place);
    if (atomic_load(&part->call->has_failed))
        return false;
    args->send = args->recv;
    if (in_place)
        return true;
    part->input = input_of(part->call, part->index);
    if (part->input == NULL)
        return false;
    args->send = rueda_tf.TensorData(part->input);
    return true;
}

/* My share of the rows; the lowest members have one more. */
static bool fill_share(struct part *part, struct rueda_submit_args *args)
{
    struct call *call = part->call;
    int set = call->kernel->set;
    int me = rueda_set_rank(call->rueda, set);
    size_t members, rows;

    if (part->dims == 0) {
        note_failure(call, RUEDA_ERR_INVALID,
                     "reducescatter takes tensors with rows, not single "
                     "numbers");
        return false;
    }
    if (me < 0) /* rueda_submit() has the words for that */
        return true;
    members = (size_t)rueda_set_size(call->rueda, set);
    rows = part->shape[0] / members + ((size_t)me < part->shape[0] % members);
    args->recv = make_output(part, rows, NULL);
    return !atomic_load(&call->has_failed);
}

/* The splits are the second input; none, if it is empty. */
static bool take_splits(struct call *call, struct rueda_submit_args *args)
{
    tf_tensor *tensor = input_of(call, 1);
    const int32_t *numbers;
    int64_t count;
    bool is_good = true;

    if (tensor == NULL)
        return false;
    numbers = rueda_tf.TensorData(tensor);
    count = rueda_tf.NumDims(tensor) == 1 ? rueda_tf.Dim(tensor, 0) : -1;
    if (count != 0 && count != call->members) {
        char words[WORDS_BYTES];

        snprintf(words, sizeof(words),
                 "rank %d: alltoall: %lld splits for a process set of %d "
                 "ranks; give one number for each, in a list",
                 rueda_rank(call->rueda), (long long)count, call->members);
        note_failure(call, RUEDA_ERR_INVALID, words);
        is_good = false;
    }
    if (is_good && count > 0) {
        call->splits = calloc((size_t)count, sizeof(size_t));
        is_good = call->splits != NULL;
        if (!is_good)
            note_failure(call, RUEDA_ERR_NOMEM, "");
    }
    for (int64_t i = 0; is_good && i < count; i++) {
        is_good = numbers[i] >= 0;
        call->splits[i] = (size_t)numbers[i];
        if (!is_good)
            note_failure(call, RUEDA_ERR_INVALID,
                         "alltoall: splits has a negative number");
    }
    args->splits = call->splits;
    rueda_tf.DeleteTensor(tensor);
    return is_good;
}

/* Memory of a tensor, by the kind of operation. */
static bool fill_memory(struct part *part, struct rueda_submit_args *args)
{
    struct call *call = part->call;

    args->send = rueda_tf.TensorData(part->input);
    switch (args->kind) {
    case RUEDA_ALLREDUCE:
    case RUEDA_BROADCAST:
        return fill_same_shape(part, args);
    case RUEDA_REDUCE_SCATTER:
        return fill_share(part, args);
    case RUEDA_ALLTOALL:
        call->members = rueda_set_size(call->rueda, call->kernel->set);
        call->rows_from =
            calloc((size_t)(call->members > 0 ? call->members : 0) + 1,
                   sizeof(size_t));
        if (call->rows_from == NULL) {
            note_failure(call, RUEDA_ERR_NOMEM, "");
            return false;
        }
        if (call->members > 0 && !take_splits(call, args))
            return false;
        break;
    default:
        break;
    }
    args->alloc = alloc_output;
    args->alloc_arg = part;
    return true;
}

static bool fill_in(struct part *part, struct rueda_submit_args *args,
                    char *name, size_t name_bytes)
{
    struct call *call = part->call;
    const struct rueda_tf_kernel *kernel = call->kernel;

    *args = (struct rueda_submit_args)RUEDA_SUBMIT_ARGS_INIT;
    args->kind = kernel->op->kind;
    args->set = kernel->set;
    args->root = kernel->root;
    args->reduction = kernel->reduction;
    args->prescale = (double)kernel->prescale;
    args->postscale = (double)kernel->postscale;
    args->name = kernel->name;
    if (kernel->name != NULL && kernel->op->is_group) {
        snprintf(name, name_bytes, "%s_%dof%d", kernel->name, part->index + 1,
                 call->count);
        args->name = name;
    }
    if (!kernel->op->has_token)
        return true;
    if (!take_input(part))
        return false;
    args->dtype = part->dtype;
    args->dims = part->dims;
    args->shape = part->shape;
    return fill_memory(part, args);
}

/* ---- Submitting ------------------------------------------------------- */

/* Iterations of a loop that run side by side share the op and its name. */
static void note_refusal(struct call *call, rueda_status status)
{
    char words[WORDS_BYTES];

    if (status != RUEDA_ERR_INVALID ||
        atomic_load(&call->kernel->running) < 2) {
        note_failure(call, status, rueda_last_error());
        return;
    }
    snprintf(words, sizeof(words),
             "%s. This op runs in several iterations of a loop at once: give "
             "tf.while_loop, tf.map_fn or set_loop_options "
             "parallel_iterations=1",
             rueda_last_error());
    note_failure(call, status, words);
}

static bool submit_all(struct call *call, const struct rueda_submit_args *args)
{
    rueda_handle *handles = calloc((size_t)call->count, sizeof(*handles));
    rueda_status status;

    if (handles == NULL) {
        note_failure(call, RUEDA_ERR_NOMEM, "");
        return false;
    }
    status = call->kernel->op->is_group
                 ? rueda_submit_group(call->rueda, args, call->count, handles)
                 : rueda_submit(call->rueda, args, handles);
    if (status != RUEDA_OK)
        note_refusal(call, status);
    for (int i = 0; i < call->count; i++)
        call->parts[i].handle = handles[i];
    free(handles);
    return status == RUEDA_OK;
}

/* Fill in the arguments of all and hand them over. */
static bool start(struct call *call)
{
    const char *name = call->kernel->name;
    const size_t name_bytes = (name != NULL ? strlen(name) : 0) + 32;
    const size_t count = (size_t)call->count;
    struct rueda_submit_args *args = calloc(count, sizeof(*args));
    char *names = calloc(count, name_bytes);
    bool is_good = args != NULL && names != NULL;

    if (!is_good)
        note_failure(call, RUEDA_ERR_NOMEM, "");
    for (size_t i = 0; i < count && is_good; i++)
        is_good = fill_in(&call->parts[i], &args[i], names + i * name_bytes,
                          name_bytes);
    if (is_good)
        is_good = submit_all(call, args);
    free(args);
    free(names);
    return is_good;
}

/* ---- The end ---------------------------------------------------------- */

/* False if the operation still runs after this time. */
static bool end_handle(struct part *part, int timeout_ms)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    struct call *call = part->call;
    char words[WORDS_BYTES];
    rueda_status status;

    words[0] = '\0';
    result.error = words;
    result.error_bytes = sizeof(words);
    result.rows_from = call->rows_from;
    result.rows_from_count = call->rows_from != NULL ? call->members : 0;
    status = rueda_wait_for(call->rueda, part->handle, timeout_ms, &result);
    if (timeout_ms > 0 && status == RUEDA_ERR_TIMEOUT)
        return false;
    if (status != RUEDA_OK)
        note_failure(call, status, words);
    call->last_rank = result.last_rank;
    return true;
}

/* Tell TensorFlow, but for `done`. */
static void deliver(struct call *call)
{
    const rueda_kind kind = call->kernel->op->kind;

    if (!atomic_load(&call->has_failed) && kind == RUEDA_ALLTOALL)
        put_numbers(call, 1, call->rows_from, call->members);
    if (!atomic_load(&call->has_failed) && kind == RUEDA_JOIN)
        put_numbers(call, 0, NULL, -1);
    if (atomic_load(&call->has_failed))
        rueda_tf_fail(call->ctx, code_of(call->status), call->words);
}

static void call_free(struct call *call)
{
    for (int i = 0; i < call->count; i++)
        if (call->parts[i].input != NULL)
            rueda_tf.DeleteTensor(call->parts[i].input);
    free(call->splits);
    free(call->rows_from);
    free(call);
}

/* One operation has ended, or all have been started. Each of them holds the
 * call, and so does the thread that starts them, or a part that ends at once
 * would free the call under that thread. */
static void let_go(struct call *call)
{
    struct rueda_tf_done done;

    if (atomic_fetch_sub(&call->left, 1) > 1)
        return;
    rueda_tf_flight_end(&call->flight, &call->kernel->habit);
    atomic_fetch_sub(&call->kernel->running, 1);
    deliver(call);
    done = call->done;
    call_free(call);
    rueda_tf_done_run(&done);
}

/* For rueda_then_fn. */
static void note_end(void *arg, rueda_status status)
{
    struct part *part = arg;
    bool was_in_callback = is_in_callback;

    (void)status;
    end_handle(part, 0);
    is_in_callback = true;
    let_go(part->call);
    is_in_callback = was_in_callback;
}

/* ---- A call ----------------------------------------------------------- */

static struct call *call_make(struct rueda_tf_kernel *kernel, tf_context *ctx)
{
    int count =
        kernel->op->is_group ? rueda_tf.NumInputs(ctx) - 1 /* token */ : 1;
    struct call *call =
        calloc(1, sizeof(*call) + (size_t)count * sizeof(call->parts[0]));

    if (call == NULL)
        return NULL;
    call->kernel = kernel;
    call->ctx = ctx;
    call->count = count;
    atomic_init(&call->left, count + 1);
    for (int i = 0; i < count; i++) {
        call->parts[i].call = call;
        call->parts[i].index = i;
    }
    return call;
}

/* On this thread, without any callback. */
static void run_and_wait(struct call *call)
{
    if (start(call))
        for (int i = 0; i < call->count; i++)
            end_handle(&call->parts[i], -1);
    deliver(call);
    call_free(call);
}

/* A part ends by its callback, or at once if its thread waits for it. */
static void end_part(struct part *part, bool waits)
{
    struct call *call = part->call;

    if (waits && !call->is_late) {
        if (end_handle(part, MOMENT_MS)) {
            let_go(call);
            return;
        }
        call->is_late = true;
    }
    if (rueda_handle_then(call->rueda, part->handle, note_end, part) !=
        RUEDA_OK)
        note_end(part, RUEDA_OK);
}

/* The callback is copied first: once something runs it is needed. */
static void run_later(struct call *call, tf_done *done)
{
    bool waits;

    if (!rueda_tf_done_copy(&call->done, done)) {
        run_and_wait(call);
        rueda_tf.RunAsyncOpKernelDoneCallback(done);
        return;
    }
    atomic_fetch_add(&call->kernel->running, 1);
    waits = rueda_tf_flight_begin(&call->flight, &call->kernel->habit) &&
            !is_in_callback;
    if (!start(call)) {
        atomic_store(&call->left, 1);
        let_go(call);
        return;
    }
    for (int i = 0; i < call->count; i++)
        end_part(&call->parts[i], waits);
    let_go(call);
}

/* The failure of a call that could not be made. */
static const char *why_not(const struct rueda_tf_kernel *kernel,
                           const rueda_ctx *rueda)
{
    if (rueda == NULL)
        return "Rueda has not been initialized; use hvd.init().";
    if (kernel->waits && is_in_callback)
        return "a collective that waits cannot run inside another one's end; "
               "let TensorFlow use threads of its own between ops";
    return NULL;
}

void rueda_tf_call(struct rueda_tf_kernel *kernel, tf_context *ctx,
                   tf_done *done)
{
    rueda_ctx *rueda = rueda_default_enter();
    const char *words = why_not(kernel, rueda);
    struct call *call = words == NULL ? call_make(kernel, ctx) : NULL;

    if (call == NULL) {
        rueda_tf_fail(ctx, TF_FAILED_PRECONDITION,
                      words != NULL ? words : "out of memory");
    } else {
        call->rueda = rueda;
        if (!kernel->waits && done != NULL) {
            run_later(call, done);
            rueda_default_leave();
            return;
        }
        run_and_wait(call);
    }
    if (rueda != NULL)
        rueda_default_leave();
    if (done != NULL)
        rueda_tf.RunAsyncOpKernelDoneCallback(done);
}
