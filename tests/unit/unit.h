/* SPDX-License-Identifier: Apache-2.0 */
/* What several unit tests need: a folder of their own, and a child process. */
#ifndef RUEDA_TESTS_UNIT_UNIT_H
#define RUEDA_TESTS_UNIT_UNIT_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNIT_THREAD_SANITIZER 1
#endif
#if __has_feature(address_sanitizer)
#define UNIT_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define UNIT_THREAD_SANITIZER 1
#endif
#ifdef __SANITIZE_ADDRESS__
#define UNIT_ADDRESS_SANITIZER 1
#endif

/* The thread sanitizer does not follow a fork. */
static inline void skip_where_forks_are_not_followed(void)
{
#ifdef UNIT_THREAD_SANITIZER
    print_message("skipped: the thread sanitizer does not follow fork()\n");
    skip();
#endif
}

/* Sanitizers need address space of their own at any time. */
static inline void skip_where_address_space_is_needed(void)
{
#if defined(UNIT_THREAD_SANITIZER) || defined(UNIT_ADDRESS_SANITIZER)
    print_message("skipped: a sanitizer needs address space\n");
    skip();
#endif
}

/* The descriptors that this process holds. */
static inline int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* Run act(arg) in a child and return what it returns, 0 to 100, or -1 if it
 * ended otherwise. act must not assert. */
static inline int in_child(int (*act)(void *arg), void *arg)
{
    pid_t child = fork();
    int how = 0;

    if (child == 0)
        _exit(act(arg));
    if (child < 0 || waitpid(child, &how, 0) != child || !WIFEXITED(how))
        return -1;
    return WEXITSTATUS(how);
}

#define FOLDER_FILES 8

struct folder {
    char name[64];
    char *files[FOLDER_FILES]; /* paths of what was written there */
    int count;
};

static inline int folder_make(void **state)
{
    struct folder *folder = calloc(1, sizeof(*folder));

    if (folder == NULL)
        return -1;
    snprintf(folder->name, sizeof(folder->name), "/tmp/rueda_unit_XXXXXX");
    *state = folder;
    return mkdtemp(folder->name) != NULL ? 0 : -1;
}

/* Write a file and return its path, valid as long as the folder. */
static inline const char *folder_write(struct folder *folder, const char *name,
                                       const char *text)
{
    char *path;
    FILE *file;

    assert_true(folder->count < FOLDER_FILES);
    assert_true(asprintf(&path, "%s/%s", folder->name, name) > 0);
    folder->files[folder->count++] = path;
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static inline void folder_empty(struct folder *folder)
{
    while (folder->count > 0) {
        folder->count--;
        remove(folder->files[folder->count]);
        free(folder->files[folder->count]);
    }
}

static inline int folder_drop(void **state)
{
    struct folder *folder = *state;
    int failed;

    folder_empty(folder);
    failed = rmdir(folder->name);
    free(folder);
    return failed;
}

#endif /* RUEDA_TESTS_UNIT_UNIT_H */
