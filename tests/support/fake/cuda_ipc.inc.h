/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that processes share by handles (CUDA IPC); a part of cuda.c. */
/* Under the lock; NULL: an address of no allocation. */
static struct block *block_of(const void *at)
{
    const int place = find_block(at);

    return place >= 0 ? &blocks[place] : NULL;
}

EXPORT int cuMemGetAddressRange_v2(void **out_base, size_t *out_bytes,
                                   const void *at)
{
    const struct block *block;

    NEED_CONTEXT;
    pthread_mutex_lock(&lock);
    block = block_of(at);
    if (block != NULL) {
        *out_base = seen + block->at;
        *out_bytes = block->bytes;
    }
    pthread_mutex_unlock(&lock);
    return block != NULL ? 0 : 500;
}

/* Whatever its alignment is. */
EXPORT int cuIpcGetMemHandle(void *out, void *base)
{
    union any_handle handle = {.bytes = {0}};
    const struct block *block;
    bool is_base;

    NEED_CONTEXT;
    pthread_mutex_lock(&lock);
    block = block_of(base);
    is_base = block != NULL && seen + block->at == (char *)base;
    if (is_base)
        handle.own =
            (struct handle){getpid(), file, block->id, block->at, block->bytes};
    pthread_mutex_unlock(&lock);
    memcpy(out, &handle, sizeof(handle));
    return is_base ? 0 : 1;
}

/* Under the lock; the place of this handle, or a free one, or -1. */
static int find_mapped(const struct handle *handle)
{
    int place = -1;

    for (int i = 0; i < mapped_count; i++) {
        if (mapped[i].opened > 0 && mapped[i].handle.pid == handle->pid &&
            mapped[i].handle.id == handle->id)
            return i;
        if (mapped[i].opened == 0)
            place = i;
    }
    return place >= 0 || mapped_count == MAPPED_MOST ? place : mapped_count;
}

/* The file is mapped from the page on in which the allocation begins. */
static size_t before(const struct mapped *self)
{
    return self->handle.at % PAGE;
}

static int map_file(struct mapped *self)
{
    const size_t bytes = before(self) + self->handle.bytes;
    char path[64];
    char *there;
    int of;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", self->handle.pid,
             self->handle.file);
    of = open(path, O_RDWR | O_CLOEXEC);
    if (of < 0)
        return 1;
    there = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, of,
                 (off_t)(self->handle.at - before(self)));
    close(of);
    self->seen = mmap(NULL, self->handle.bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    self->real = there + before(self);
    return self->seen == MAP_FAILED || there == MAP_FAILED ? 2 : 0;
}

static void unmap_file(const struct mapped *self)
{
    munmap(self->seen, self->handle.bytes);
    munmap(self->real - before(self), before(self) + self->handle.bytes);
}

/* A handle of the process itself cannot be opened there. One that is open gives
 * the same address again, and is to be closed as often. */
EXPORT int cuIpcOpenMemHandle_v2(void **out, union any_handle handle,
                                 unsigned flags)
{
    int code = 0;
    int place;

    NEED_CONTEXT;
    if (flags != 1 || handle.own.pid == getpid())
        return 201;
    pthread_mutex_lock(&lock);
    place = find_mapped(&handle.own);
    if (place >= 0 && (place == mapped_count || mapped[place].opened == 0)) {
        mapped[place].handle = handle.own;
        code = map_file(&mapped[place]);
    }
    if (place >= 0 && code == 0) {
        mapped[place].opened++;
        *out = mapped[place].seen;
        if (place == mapped_count)
            __atomic_store_n(&mapped_count, place + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return place < 0 ? 2 : code;
}

EXPORT int cuIpcCloseMemHandle(void *at)
{
    int code = 1;

    NEED_CONTEXT;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < mapped_count && code != 0; i++) {
        if (mapped[i].opened == 0 || mapped[i].seen != at)
            continue;
        code = 0;
        if (--mapped[i].opened > 0)
            continue;
        unmap_file(&mapped[i]);
    }
    pthread_mutex_unlock(&lock);
    return code;
}
