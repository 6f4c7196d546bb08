/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Key files of any content and mode. What is taken for a key is one by another
 * reading of the same rules, too, and is written as it was read.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/key.h"
#include "fuzz/fuzz.h"

#define DIGITS ((size_t)2 * RUEDA_KEY_BYTES)

static void write_file(const char *path, const uint8_t *data, size_t size,
                       mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    must(fd >= 0);
    must(write(fd, data, size) == (ssize_t)size);
    must(fchmod(fd, mode) == 0);
    close(fd);
}

/* Read size digits back; any is as good as the other. */
static bool is_key(const char *text, size_t size)
{
    bool is_zero = true;

    if (size == DIGITS + 1 && text[DIGITS] == '\n')
        size--;
    if (size != DIGITS)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\0' ||
            strchr("0123456789abcdefABCDEF", text[i]) == NULL)
            return false;
        is_zero = is_zero && text[i] == '0';
    }
    return !is_zero;
}

static void check_written(const char *path, const struct rueda_key *key,
                          const uint8_t *data)
{
    struct rueda_text why = {{0}};
    char text[DIGITS + 1];
    int fd;

    must(unlink(path) == 0);
    must(rueda_key_write_file(path, key, &why) == RUEDA_OK);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    must(fd >= 0);
    must(read(fd, text, sizeof(text)) == (ssize_t)sizeof(text));
    close(fd);
    must(strncasecmp(text, (const char *)data, DIGITS) == 0);
    must(text[DIGITS] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const mode_t modes[] = {0600, 0400, 0640, 0604, 0620, 01777};
    struct fuzz_input input = {data, size};
    const mode_t mode = modes[fuzz_choice(&input) % 6];
    const char *folder = getenv("TMPDIR");
    struct rueda_text why = {{0}};
    struct rueda_key key;
    rueda_status status;
    char path[256];

    snprintf(path, sizeof(path), "%s/rueda_fuzz_key_%d",
             folder != NULL ? folder : "/tmp", (int)getpid());
    write_file(path, input.data, input.size, mode);
    status = rueda_key_read_file(path, &why, &key);
    if ((mode & 077) != 0)
        must(status == RUEDA_ERR_AUTH);
    else if (is_key((const char *)input.data, input.size))
        must(status == RUEDA_OK);
    else
        must(status == RUEDA_ERR_INVALID);
    must(rueda_text_is_empty(&why) == (status == RUEDA_OK));
    if (status == RUEDA_OK)
        check_written(path, &key, input.data);
    must(unlink(path) == 0);
    return 0;
}
