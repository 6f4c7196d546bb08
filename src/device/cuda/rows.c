/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of work with their streams, and marks: made when they are first needed,
 * and kept until the device is closed. */
#include <stdlib.h>

#include "device/cuda/cuda_state.h"

static rueda_cuda_result row_new(struct rueda_cuda *cuda,
                                 struct rueda_cuda_row **out)
{
    struct rueda_cuda_row *row = calloc(1, sizeof(*row));
    rueda_cuda_result result;

    if (row == NULL)
        return RUEDA_CUDA_OUT_OF_MEMORY;
    result = cuda->driver.stream_create(&row->stream, RUEDA_CUDA_NON_BLOCKING);
    if (result != RUEDA_CUDA_SUCCESS) {
        free(row);
        return result;
    }
    row->next = cuda->rows;
    cuda->rows = row;
    *out = row;
    return RUEDA_CUDA_SUCCESS;
}

rueda_cuda_result rueda_cuda_row_take(struct rueda_cuda *cuda,
                                      struct rueda_cuda_row **out)
{
    rueda_cuda_result result = RUEDA_CUDA_SUCCESS;

    pthread_mutex_lock(&cuda->lock);
    *out = cuda->free_rows;
    if (*out != NULL)
        cuda->free_rows = (*out)->next_free;
    else
        result = row_new(cuda, out);
    pthread_mutex_unlock(&cuda->lock);
    return result;
}

void rueda_cuda_row_give(struct rueda_cuda *cuda, struct rueda_cuda_row *row)
{
    pthread_mutex_lock(&cuda->lock);
    row->next_free = cuda->free_rows;
    cuda->free_rows = row;
    pthread_mutex_unlock(&cuda->lock);
}

void rueda_cuda_rows_fini(struct rueda_cuda *cuda)
{
    struct rueda_cuda_row *next;

    for (struct rueda_cuda_row *row = cuda->rows; row != NULL; row = next) {
        next = row->next;
        cuda->driver.stream_synchronize(row->stream);
        cuda->driver.stream_destroy(row->stream);
        if (row->sums != NULL)
            cuda->driver.free(row->sums);
        if (row->dots != NULL)
            cuda->driver.host_free(row->dots);
        free(row);
    }
    while (cuda->free_marks != NULL) {
        struct rueda_cuda_mark *mark = cuda->free_marks;

        cuda->free_marks = mark->next;
        cuda->driver.event_destroy(mark->event);
        free(mark);
    }
}

static rueda_cuda_result mark_new(const struct rueda_cuda *cuda,
                                  struct rueda_cuda_mark **out)
{
    struct rueda_cuda_mark *mark = calloc(1, sizeof(*mark));
    rueda_cuda_result result;

    if (mark == NULL)
        return RUEDA_CUDA_OUT_OF_MEMORY;
    result = cuda->driver.event_create(&mark->event, RUEDA_CUDA_NO_TIMING);
    if (result != RUEDA_CUDA_SUCCESS) {
        free(mark);
        return result;
    }
    *out = mark;
    return RUEDA_CUDA_SUCCESS;
}

rueda_cuda_result rueda_cuda_mark_take(struct rueda_cuda *cuda,
                                       struct rueda_cuda_mark **out)
{
    rueda_cuda_result result = RUEDA_CUDA_SUCCESS;

    pthread_mutex_lock(&cuda->lock);
    *out = cuda->free_marks;
    if (*out != NULL)
        cuda->free_marks = (*out)->next;
    pthread_mutex_unlock(&cuda->lock);
    if (*out == NULL)
        result = mark_new(cuda, out);
    if (result == RUEDA_CUDA_SUCCESS)
        atomic_store_explicit(&(*out)->holders, 1, memory_order_relaxed);
    return result;
}

void rueda_cuda_mark_give(struct rueda_cuda *cuda, struct rueda_cuda_mark *mark)
{
    if (atomic_fetch_sub_explicit(&mark->holders, 1, memory_order_acq_rel) > 1)
        return;
    pthread_mutex_lock(&cuda->lock);
    mark->next = cuda->free_marks;
    cuda->free_marks = mark;
    pthread_mutex_unlock(&cuda->lock);
}
