/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of this process and its host, fork hooks, and parents.
 *
 * fork() in a program with threads leaves a child that has one thread and a
 * copy of everything, locks that other threads held included. Hooks mark what
 * must not be used there:
 *
 *     before_fork()   takes the lock of the list
 *       fork()
 *     after_fork_in_parent()    releases it
 *     after_fork_in_child()     calls all hooks, empties the list, releases it
 */
#include "os/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "os/file.h"

int rueda_process_id(void)
{
    return getpid();
}

/* In containers two processes may have the same number. */
void rueda_process_identity(uint64_t out[2])
{
    struct stat about = {.st_ino = 0};

    if (stat("/proc/self/ns/pid", &about) != 0)
        about.st_ino = 0;
    out[0] = (uint64_t)getpid();
    out[1] = about.st_ino;
}

int rueda_process_parent(void)
{
    return getppid();
}

/* Name and parent of a process: "7 (a name) S 3 ..."; the name may have any
 * character in it. False: it cannot be seen. */
static bool look_at(int id, char *text, size_t bytes, const char **out_name,
                    int *out_parent)
{
    char path[32];
    char *end;

    snprintf(path, sizeof(path), "/proc/%d/stat", id);
    if (rueda_file_read(path, text, bytes) != RUEDA_OK)
        return false;
    *out_name = strchr(text, '(');
    end = strrchr(text, ')');
    if (*out_name == NULL || end == NULL || strlen(end) < 4)
        return false;
    (*out_name)++;
    *end = '\0';
    *out_parent = (int)strtol(end + 3, NULL, 10);
    return true;
}

int rueda_process_ancestor(const char *beginning)
{
    int id = getppid();
    char text[1024];
    const char *name;
    int parent;

    /* Ids are used again: a chain that changes while we climb could be a ring,
     * so it is not climbed for ever. */
    for (int step = 0; step < 64 && id > 0; step++) {
        if (!look_at(id, text, sizeof(text), &name, &parent))
            return 0;
        if (strncmp(name, beginning, strlen(beginning)) == 0)
            return id;
        id = parent;
    }
    return 0;
}

/* The script or module among Python's arguments, each of which ends with a
 * zero. "-c": its text is left out, since multiprocessing has numbers in it. */
static const char *script_of(const char *at, const char *end)
{
    const char *last = "";

    for (at += strlen(at) + 1; at < end; at += strlen(at) + 1) {
        bool is_value = strcmp(last, "-W") == 0 || strcmp(last, "-X") == 0;

        if (strcmp(at, "-c") == 0 || strcmp(last, "-m") == 0 ||
            (at[0] != '-' && !is_value))
            return at;
        last = at;
    }
    return "";
}

void rueda_process_program(char *out, size_t bytes)
{
    char path[1024] = "";
    char words[4096] = "";
    char folder[1024] = "";
    const char *script = "";
    const char *name;
    ssize_t count = readlink("/proc/self/exe", path, sizeof(path) - 1);
    int fd;

    path[count > 0 ? count : 0] = '\0';
    name = strrchr(path, '/');
    if (name != NULL && strncmp(name, "/python", 7) == 0) {
        fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
        count = fd >= 0 ? read(fd, words, sizeof(words) - 1) : -1;
        if (fd >= 0)
            close(fd);
        if (count > 0)
            script = script_of(words, words + count);
    }
    if (getcwd(folder, sizeof(folder)) == NULL)
        folder[0] = '\0';
    snprintf(out, bytes, "%s %s in %s", path, script, folder);
}

char rueda_process_state(int pid)
{
    char path[48];
    char line[512];
    const char *end;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (pid <= 0 || rueda_file_read(path, line, sizeof(line)) != RUEDA_OK)
        return 0;
    /* The name before it may have any characters. */
    end = strrchr(line, ')');
    if (end == NULL || end[1] != ' ')
        return 0;
    return end[2];
}

unsigned rueda_process_user(void)
{
    return geteuid();
}

void rueda_process_host(char *out, size_t bytes)
{
    memset(out, 0, bytes);
    if (gethostname(out, bytes - 1) < 0)
        memcpy(out, "?", 2);
}

/* Two halves of 16 bytes: the boot id without its dashes, packed, and the
 * network namespace. */
void rueda_process_host_id(unsigned char out[RUEDA_PROCESS_HOST_ID])
{
    struct stat net;
    char boot[64];
    int digits = 0;

    memset(out, 0, RUEDA_PROCESS_HOST_ID);
    if (rueda_file_read("/proc/sys/kernel/random/boot_id", boot,
                        sizeof(boot)) != RUEDA_OK)
        rueda_process_host((char *)out, RUEDA_PROCESS_BOOT_ID);
    else
        for (const char *at = boot; *at != '\0' && digits < 32; at++) {
            if (*at == '-' || *at == '\n')
                continue;
            out[digits / 2] =
                (unsigned char)(out[digits / 2] << 4 |
                                (*at <= '9' ? *at - '0'
                                            : (*at | 32) - 'a' + 10));
            digits++;
        }
    if (stat("/proc/self/ns/net", &net) < 0)
        return;
    rueda_put_u64(out + RUEDA_PROCESS_BOOT_ID, (uint64_t)net.st_ino);
    rueda_put_u64(out + RUEDA_PROCESS_BOOT_ID + 8, (uint64_t)net.st_dev);
}

static pthread_mutex_t hooks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rueda_fork_hook *hooks; /* under hooks_lock */
static pthread_once_t hooks_once = PTHREAD_ONCE_INIT;

/* The lock is held across the fork, so the child finds a whole list. */
static void before_fork(void)
{
    pthread_mutex_lock(&hooks_lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&hooks_lock);
}

static void after_fork_in_child(void)
{
    for (struct rueda_fork_hook *hook = hooks; hook != NULL; hook = hook->next)
        hook->in_child(hook);
    hooks = NULL;
    pthread_mutex_unlock(&hooks_lock);
}

static void install_hooks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void rueda_fork_hook_add(struct rueda_fork_hook *hook)
{
    pthread_once(&hooks_once, install_hooks);
    pthread_mutex_lock(&hooks_lock);
    hook->next = hooks;
    hooks = hook;
    pthread_mutex_unlock(&hooks_lock);
}

bool rueda_fork_hook_remove(struct rueda_fork_hook *hook)
{
    bool is_found = false;

    pthread_mutex_lock(&hooks_lock);
    for (struct rueda_fork_hook **at = &hooks; *at != NULL; at = &(*at)->next) {
        if (*at == hook) {
            *at = hook->next;
            is_found = true;
            break;
        }
    }
    pthread_mutex_unlock(&hooks_lock);
    return is_found;
}

/* The mutex is made again instead of unlocked: the thread that held it does not
 * exist here, and POSIX lets no other one unlock it. */
static void free_in_child(struct rueda_fork_hook *hook)
{
    struct rueda_fork_lock *lock =
        (struct rueda_fork_lock *)((char *)hook -
                                   offsetof(struct rueda_fork_lock, hook));

    pthread_mutex_init(&lock->mutex, NULL);
    lock->is_hooked = false; /* the child's list is empty */
    if (lock->in_child != NULL)
        lock->in_child();
}

/* A fork waits for the lock of the list, so it finds the hook there before the
 * mutex is taken for the first time. */
static void hook_once(struct rueda_fork_lock *lock)
{
    pthread_once(&hooks_once, install_hooks);
    pthread_mutex_lock(&hooks_lock);
    if (!lock->is_hooked) {
        lock->hook.in_child = free_in_child;
        lock->hook.next = hooks;
        hooks = &lock->hook;
        lock->is_hooked = true;
    }
    pthread_mutex_unlock(&hooks_lock);
}

void rueda_fork_lock_take(struct rueda_fork_lock *lock)
{
    hook_once(lock);
    pthread_mutex_lock(&lock->mutex);
}

void rueda_fork_lock_release(struct rueda_fork_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}
