/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of work with their streams, and events: made when they are first needed,
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
    for (int i = 0; i < cuda->event_count; i++)
        cuda->driver.event_destroy(cuda->events[i]);
    free(cuda->events);
}

rueda_cuda_result rueda_cuda_event_take(struct rueda_cuda *cuda, void **out)
{
    void *event = NULL;

    pthread_mutex_lock(&cuda->lock);
    if (cuda->event_count > 0)
        event = cuda->events[--cuda->event_count];
    pthread_mutex_unlock(&cuda->lock);
    if (event == NULL)
        return cuda->driver.event_create(out, RUEDA_CUDA_NO_TIMING);
    *out = event;
    return RUEDA_CUDA_SUCCESS;
}

/* Room for one more event; false: no memory. Under the lock. */
static bool has_room(struct rueda_cuda *cuda)
{
    const int room = 2 * cuda->event_room + 64;
    void **events;

    if (cuda->event_count < cuda->event_room)
        return true;
    events = realloc(cuda->events, (size_t)room * sizeof(void *));
    if (events == NULL)
        return false;
    cuda->events = events;
    cuda->event_room = room;
    return true;
}

void rueda_cuda_event_give(struct rueda_cuda *cuda, void *event)
{
    bool is_kept;

    pthread_mutex_lock(&cuda->lock);
    is_kept = has_room(cuda);
    if (is_kept)
        cuda->events[cuda->event_count++] = event;
    pthread_mutex_unlock(&cuda->lock);
    if (!is_kept)
        cuda->driver.event_destroy(event);
}
