/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memfds, mappings, and how much memory the machine and the cgroups have left.
 *
 * Mappings are sparse (MAP_NORESERVE): a segment has far more addresses than
 * any job touches, and a page takes memory when it is first written to. So the
 * limit that counts is what may still be touched, and rueda_memory_available()
 * says that.
 */
#include "os/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Sealed before any other process gets it: a file that shrinks under a mapping
 * would kill its readers by SIGBUS. */
rueda_status rueda_memfd_create(const char *name, size_t bytes, int *out_fd)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int cause;

    if (fd < 0)
        return RUEDA_ERR_IO;
    if (ftruncate(fd, (off_t)bytes) < 0 ||
        fcntl(fd, F_ADD_SEALS, SIZE_SEALS) < 0) {
        cause = errno;
        close(fd);
        errno = cause;
        return RUEDA_ERR_IO;
    }
    *out_fd = fd;
    return RUEDA_OK;
}

size_t rueda_memfd_sealed_bytes(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat about;

    /* -1, of what cannot be sealed at all, has all bits set. */
    if (seals < 0 || (seals & SIZE_SEALS) != SIZE_SEALS ||
        fstat(fd, &about) < 0 || about.st_size < 0)
        return 0;
    return (size_t)about.st_size;
}

bool rueda_memfd_is_sealed(int fd, size_t bytes)
{
    return bytes > 0 && rueda_memfd_sealed_bytes(fd) == bytes;
}

rueda_status rueda_memory_map_part(int fd, uint64_t offset, size_t bytes,
                                   void **out)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);

    if (at == MAP_FAILED)
        return RUEDA_ERR_IO;
    /* A core dump must not try to write a terabyte. */
    madvise(at, bytes, MADV_DONTDUMP);
    *out = at;
    return RUEDA_OK;
}

rueda_status rueda_memory_map_shared(int fd, size_t bytes, void **out)
{
    return rueda_memory_map_part(fd, 0, bytes, out);
}

void *rueda_memory_map_private(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

void rueda_memory_unmap(void *at, size_t bytes)
{
    munmap(at, bytes);
}

void rueda_memory_punch(int fd, uint64_t offset, size_t bytes)
{
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
              (off_t)bytes);
}

size_t rueda_memory_of_machine(const char *meminfo_path)
{
    size_t available = SIZE_MAX;
    unsigned long long kib;
    char line[256];
    FILE *file = fopen(meminfo_path, "re");

    if (file == NULL)
        return SIZE_MAX;
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
            available = (size_t)kib << 10;
            break;
        }
    }
    fclose(file);
    return available;
}

static bool read_number(const char *folder, const char *name, size_t *out)
{
    unsigned long long number;
    char path[1024];
    FILE *file;
    int found;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    found = fscanf(file, "%llu", &number);
    fclose(file);
    if (found != 1)
        return false;
    *out = (size_t)number;
    return true;
}

/* Bytes of files that the cgroup's memory holds and can drop, as the system
 * counts them into what a machine has available. Without them a process that
 * has read many files would seem to have no memory left. */
static size_t droppable(const char *folder, const char *prefix)
{
    size_t sum = 0;
    char line[256];
    char path[1024];
    FILE *file;

    snprintf(path, sizeof(path), "%s/memory.stat", folder);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        const size_t skipped = strlen(prefix);
        unsigned long long bytes;

        if (strncmp(line, prefix, skipped) == 0 &&
            (sscanf(line + skipped, "inactive_file %llu", &bytes) == 1 ||
             sscanf(line + skipped, "active_file %llu", &bytes) == 1))
            sum += (size_t)bytes;
    }
    fclose(file);
    return sum;
}

/* The names are those of cgroup v2, then of v1, whose plain counts leave out
 * the cgroups below. A v2 file says "max" where there is no limit. */
size_t rueda_memory_of_cgroup(const char *folder)
{
    size_t cached;
    size_t limit;
    size_t used;

    if (read_number(folder, "memory.max", &limit) &&
        read_number(folder, "memory.current", &used))
        cached = droppable(folder, "");
    else if (read_number(folder, "memory.limit_in_bytes", &limit) &&
             read_number(folder, "memory.usage_in_bytes", &used))
        cached = droppable(folder, "total_");
    else
        return SIZE_MAX;
    used -= cached < used ? cached : used;
    return limit > used ? limit - used : 0;
}

/* Limits of every cgroup from ours up to the root hold at once. */
static size_t least_of_cgroups(char *path, size_t prefix)
{
    size_t least = SIZE_MAX;

    for (;;) {
        size_t here = rueda_memory_of_cgroup(path);
        char *slash;

        if (here < least)
            least = here;
        if (strlen(path) <= prefix)
            return least;
        slash = strrchr(path, '/');
        if (slash == NULL)
            return least;
        *slash = '\0';
    }
}

/* Each line of /proc/self/cgroup is "number:controllers:path": of v1 the line
 * of the controller "memory" counts, of v2 the one without controllers. */
size_t rueda_memory_available(void)
{
    size_t least = rueda_memory_of_machine("/proc/meminfo");
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[768];
    char path[1024];

    if (file == NULL)
        return least;
    while (fgets(line, sizeof(line), file) != NULL) {
        const char *root = "/sys/fs/cgroup";
        char *where = strchr(line, ':');
        char *below;
        size_t limit;

        below = where != NULL ? strchr(where + 1, ':') : NULL;
        if (below == NULL)
            continue;
        if (strncmp(where, ":memory:", 8) == 0)
            root = "/sys/fs/cgroup/memory";
        else if (below != where + 1)
            continue;
        below[strcspn(below, "\n")] = '\0';
        if (strcmp(below + 1, "/") == 0)
            below[1] = '\0';
        snprintf(path, sizeof(path), "%s%s", root, below + 1);
        limit = least_of_cgroups(path, strlen(root));
        if (limit < least)
            least = limit;
    }
    fclose(file);
    return least;
}
