/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared and private memory by the page, and how much of it there is. Any
 * thread. Functions that return RUEDA_ERR_IO leave the cause in errno.
 */
#ifndef RUEDA_OS_MEMORY_H
#define RUEDA_OS_MEMORY_H

#include <rueda/rueda.h>

#define RUEDA_PAGE_BYTES ((size_t)4096)

/* A sparse memfd of this size, sealed so that no process can change its size
 * under a reader. */
rueda_status rueda_memfd_create(const char *name, size_t bytes, int *out_fd);

/* The size of a memfd that cannot shrink or grow; 0: it is none. */
size_t rueda_memfd_sealed_bytes(int fd);

/* Is this a memfd of exactly that size that cannot shrink or grow? Check this
 * for a descriptor from another process. */
bool rueda_memfd_is_sealed(int fd, size_t bytes);

rueda_status rueda_memory_map_shared(int fd, size_t bytes, void **out);

/* Private zeroed pages that cost nothing until touched; NULL if there are
 * none. */
void *rueda_memory_map_private(size_t bytes);

void rueda_memory_unmap(void *at, size_t bytes);

/* Give the pages of a range of a memfd back; they read as zero afterwards. */
void rueda_memory_punch(int fd, uint64_t offset, size_t bytes);

/*
 * How many bytes this process could still touch: the least of what the machine
 * has available and what the cgroups above it leave. SIZE_MAX if nothing tells.
 */
size_t rueda_memory_available(void);

/* The parts of that: /proc/meminfo, and one cgroup folder's limit less its
 * use, in which pages of files that can be dropped do not count. SIZE_MAX if
 * there is no such limit. For tests and tools. */
size_t rueda_memory_of_machine(const char *meminfo_path);
size_t rueda_memory_of_cgroup(const char *folder);

#endif /* RUEDA_OS_MEMORY_H */
