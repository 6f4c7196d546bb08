/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and ending all descendants of this process by walking /proc. */
#include "launch/family.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/duration.h"
#include "os/clock.h"
#include "os/file.h"

/* Pauses between two checks of what is left. */
#define LEAST_PAUSE_NS RUEDA_US(50)
#define MOST_PAUSE_NS  RUEDA_MS(2)

/* Until the pauses are this long, processes that are about to end are left
 * alone: a walk through all processes of the machine takes longer than
 * an exit. */
#define PATIENT_NS RUEDA_MS(1)

struct process {
    int id;
    int parent;
    unsigned long long begun; /* the clock tick in which it began */
    bool is_ours;
};

void rueda_family_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Fields of /proc/ID/stat, counted from the first one behind the name. */
#define FIELD_PARENT 1
#define FIELD_BEGUN  19

/* What stands in a field, or NULL. By hand: a machine has thousands of
 * processes, and sscanf() would be most of what a walk through them costs. */
static const char *find_field(const char *text, int field)
{
    while (text != NULL && field-- >= 0) {
        text = strchr(text, ' ');
        text = text == NULL ? NULL : text + 1;
    }
    return text;
}

/* The name, in parentheses, may have anything in it. Parent -1: there is no
 * such process. */
static struct process look_at(int id)
{
    struct process process = {.id = id, .parent = -1};
    char path[48];
    char text[1024];
    const char *name_end;
    const char *begun;

    snprintf(path, sizeof(path), "/proc/%d/stat", id);
    if (rueda_file_read(path, text, sizeof(text)) != RUEDA_OK)
        return process;
    name_end = strrchr(text, ')');
    begun = find_field(name_end, FIELD_BEGUN);
    if (begun != NULL) {
        process.parent =
            (int)strtol(find_field(name_end, FIELD_PARENT), NULL, 10);
        process.begun = strtoull(begun, NULL, 10);
    }
    return process;
}

/* All processes that can be seen; to be freed. */
static struct process *list_processes(int *out_count)
{
    DIR *folder = opendir("/proc");
    struct process *list = NULL;
    const struct dirent *entry;
    int room = 0;
    int count = 0;

    *out_count = 0;
    if (folder == NULL)
        return NULL;
    while ((entry = readdir(folder)) != NULL) {
        const int id = atoi(entry->d_name);

        if (id <= 0)
            continue;
        if (count == room) {
            struct process *bigger;

            room = room == 0 ? 256 : 2 * room;
            bigger = realloc(list, (size_t)room * sizeof(*list));
            if (bigger == NULL)
                break;
            list = bigger;
        }
        list[count++] = look_at(id);
    }
    closedir(folder);
    *out_count = count;
    return list;
}

static int by_parent(const void *a, const void *b)
{
    const struct process *one = a;
    const struct process *other = b;

    return (one->parent > other->parent) - (one->parent < other->parent);
}

/* The first child of this parent, or the process after it in order. */
static int first_child(const struct process *list, int count, int parent)
{
    int low = 0;

    while (low < count) {
        const int middle = low + (count - low) / 2;

        if (list[middle].parent < parent)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* Put our children, theirs and so on at the head of `out`, which has room for
 * all; returns how many. Each is searched for once: a machine may have very
 * many processes that are not ours. */
static int find_ours(struct process *list, int count, struct process *out)
{
    int parent = getpid();
    int found = 0;

    if (count > 0)
        qsort(list, (size_t)count, sizeof(*list), by_parent);
    for (int next = 0;; parent = out[next++].id) {
        int i = first_child(list, count, parent);

        for (; i < count && list[i].parent == parent; i++) {
            /* Numbers may be given again while the list is made. */
            if (!list[i].is_ours)
                out[found++] = list[i];
            list[i].is_ours = true;
        }
        if (next == found)
            return found;
    }
}

unsigned long long rueda_family_begun(int id)
{
    return look_at(id).begun;
}

/* A descriptor holds on to the process that has the number by now; that is ours
 * if it began when ours did. */
void rueda_family_signal_one(int id, unsigned long long begun, int signal)
{
    const int fd = (int)syscall(SYS_pidfd_open, id, 0);

    if (fd < 0 && errno != ESRCH)
        kill(id, signal); /* an old kernel */
    if (fd < 0)
        return;
    if (look_at(id).begun == begun)
        syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
    close(fd);
}

/* Signal all descendants of this process, whatever session or group they are
 * in. Returns how many there were. */
int rueda_family_signal(int signal)
{
    int count;
    struct process *list = list_processes(&count);
    struct process *ours = malloc((size_t)(count + 1) * sizeof(*ours));
    int found = 0;

    if (ours != NULL)
        found = find_ours(list, count, ours);
    for (int i = 0; i < found; i++)
        rueda_family_signal_one(ours[i].id, ours[i].begun, signal);
    free(ours);
    free(list);
    return found;
}

/* Reap all children that have ended. False: there is no child at all. */
static bool reap(void)
{
    for (;;) {
        const pid_t id = waitpid(-1, NULL, WNOHANG);

        if (id == 0)
            return true;
        if (id < 0 && errno != EINTR)
            return false;
    }
}

/* Kill and reap until no child is left. Children that die hand their own
 * children to us, so this takes several rounds. */
bool rueda_family_end(int64_t timeout_ns)
{
    const int64_t deadline = rueda_clock_ns() + timeout_ns;
    int64_t pause_ns = LEAST_PAUSE_NS;

    while (reap()) {
        if (rueda_clock_ns() >= deadline)
            return false;
        if (pause_ns >= PATIENT_NS)
            rueda_family_signal(SIGKILL);
        rueda_sleep_ns(pause_ns);
        pause_ns = 2 * pause_ns < MOST_PAUSE_NS ? 2 * pause_ns : MOST_PAUSE_NS;
    }
    return true;
}
