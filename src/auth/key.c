/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys: made of random bytes, read from a file or a descriptor, written to a
 * file, wiped. A key file is refused if users other than its owner may read it,
 * and the message says which command changes that.
 */
#include "auth/key.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "os/keyfile.h"
#include "os/random.h"

#define HEX_DIGITS ((size_t)2 * RUEDA_KEY_BYTES)

/* The digits, a newline, and one byte more to find files that are too long. */
#define FILE_ROOM (HEX_DIGITS + 2)

rueda_status rueda_key_create(struct rueda_key *out_key)
{
    struct rueda_key key = {.present = true};
    rueda_status status;

    status = rueda_random_fill(key.bytes, sizeof(key.bytes));
    if (status == RUEDA_OK)
        *out_key = key;
    rueda_key_wipe(&key);
    return status;
}

/* Can this file keep a secret? The path comes last in each text, so that a
 * long one is cut before the advice is. */
static rueda_status check_file(const char *path,
                               const struct rueda_keyfile *file,
                               struct rueda_text *why)
{
    if (!file->is_regular) {
        rueda_text_set(why,
                       "the key file is not a regular file; set "
                       "RUEDA_KEY_FILE to a plain file, not to %s",
                       path);
        return RUEDA_ERR_AUTH;
    }
    if (!file->is_owner_trusted) {
        rueda_text_set(why,
                       "the key file belongs to another user, who could "
                       "change it; run: chown $(id -u) %s",
                       path);
        return RUEDA_ERR_AUTH;
    }
    if ((file->mode & 077) != 0) {
        rueda_text_set(why,
                       "the key file has mode %04o and so is open to other "
                       "users; run: chmod 600 %s",
                       file->mode, path);
        return RUEDA_ERR_AUTH;
    }
    return RUEDA_OK;
}

/* sodium_hex2bin() takes the same time for every digit. */
static rueda_status parse(const char *digits, size_t len,
                          struct rueda_key *out_key)
{
    struct rueda_key key = {.present = true};
    rueda_status status = RUEDA_ERR_INVALID;
    size_t bytes = 0;

    if (len == HEX_DIGITS + 1 && digits[HEX_DIGITS] == '\n')
        len--;
    if (len == HEX_DIGITS &&
        sodium_hex2bin(key.bytes, sizeof(key.bytes), digits, len, NULL, &bytes,
                       NULL) == 0 &&
        bytes == sizeof(key.bytes) &&
        !sodium_is_zero(key.bytes, sizeof(key.bytes))) {
        *out_key = key;
        status = RUEDA_OK;
    }
    rueda_key_wipe(&key);
    return status;
}

rueda_status rueda_key_read_file(const char *path, struct rueda_text *why,
                                 struct rueda_key *out_key)
{
    char digits[FILE_ROOM];
    struct rueda_keyfile file;
    rueda_status status;

    status = rueda_keyfile_read(path, digits, sizeof(digits), &file);
    if (status != RUEDA_OK) {
        rueda_text_set(why,
                       "cannot read the key file: %s; %s RUEDA_KEY_FILE, "
                       "which is %s",
                       strerror(errno),
                       errno == ELOOP ? "links are not followed, name the "
                                        "file itself in"
                                      : "check",
                       path);
        goto wipe;
    }
    status = check_file(path, &file, why);
    if (status != RUEDA_OK)
        goto wipe;
    status = parse(digits, file.bytes, out_key);
    if (status != RUEDA_OK)
        rueda_text_set(why,
                       "the key file does not hold a key, which is %zu "
                       "hexadecimal digits, not all zero, and a newline; for "
                       "a new one run: umask 077; openssl rand -hex %d > %s",
                       HEX_DIGITS, RUEDA_KEY_BYTES, path);
wipe:
    sodium_memzero(digits, sizeof(digits));
    return status;
}

/* The same for a file that was open before. A file without a name can only be
 * read by processes that were given a descriptor, whatever its mode. */
static rueda_status check_fd(int fd, const struct rueda_keyfile *file,
                             struct rueda_text *why)
{
    if (!file->is_regular) {
        rueda_text_set(why,
                       "RUEDA_KEY_FD is %d, which is neither a file nor a "
                       "memfd; a pipe or a socket could not be read again, so "
                       "let the launcher write the key to a memfd",
                       fd);
        return RUEDA_ERR_AUTH;
    }
    if (file->has_name &&
        (!file->is_owner_trusted || (file->mode & 077) != 0)) {
        rueda_text_set(why,
                       "RUEDA_KEY_FD is %d, a file of mode %04o that other "
                       "users can open or change; let the launcher make it "
                       "its own with mode 0600, or write the key to a memfd",
                       fd, file->mode);
        return RUEDA_ERR_AUTH;
    }
    return RUEDA_OK;
}

rueda_status rueda_key_read_fd(int fd, struct rueda_text *why,
                               struct rueda_key *out_key)
{
    char digits[FILE_ROOM];
    struct rueda_keyfile file;
    rueda_status status;

    status = rueda_keyfile_read_fd(fd, digits, sizeof(digits), &file);
    if (status != RUEDA_OK) {
        rueda_text_set(why,
                       "cannot read the key from descriptor %d, which "
                       "RUEDA_KEY_FD names: %s; does the launcher leave it "
                       "open for reading, and does nothing between close it?",
                       fd, strerror(errno));
        goto wipe;
    }
    status = check_fd(fd, &file, why);
    if (status != RUEDA_OK)
        goto wipe;
    status = parse(digits, file.bytes, out_key);
    if (status != RUEDA_OK)
        rueda_text_set(why,
                       "descriptor %d, which RUEDA_KEY_FD names, does not hold "
                       "a key, which is %zu hexadecimal digits, not all zero, "
                       "and a newline",
                       fd, HEX_DIGITS);
wipe:
    sodium_memzero(digits, sizeof(digits));
    return status;
}

rueda_status rueda_key_write_file(const char *path, const struct rueda_key *key,
                                  struct rueda_text *why)
{
    /* sodium_bin2hex() ends the digits with a zero, where the newline goes. */
    char digits[HEX_DIGITS + 1];
    rueda_status status;

    if (!key->present) {
        rueda_text_set(why, "there is no key to write to %s", path);
        return RUEDA_ERR_INVALID;
    }
    sodium_bin2hex(digits, sizeof(digits), key->bytes, sizeof(key->bytes));
    digits[HEX_DIGITS] = '\n';
    status = rueda_keyfile_write(path, digits, sizeof(digits));
    if (status != RUEDA_OK)
        rueda_text_set(why, "cannot write the key file: %s; %s %s",
                       strerror(errno),
                       errno == EEXIST ? "choose another name than"
                                       : "check the folder and the space of",
                       path);
    sodium_memzero(digits, sizeof(digits));
    return status;
}

void rueda_hidden_name(const char *text, char out[RUEDA_HIDDEN_NAME_BYTES])
{
    unsigned char digest[RUEDA_HIDDEN_NAME_BYTES / 2];

    crypto_generichash(digest, sizeof(digest), (const unsigned char *)text,
                       strlen(text), NULL, 0);
    sodium_bin2hex(out, RUEDA_HIDDEN_NAME_BYTES, digest, sizeof(digest));
}

void rueda_secret_wipe(void *bytes, size_t len)
{
    sodium_memzero(bytes, len);
}

void rueda_key_wipe(struct rueda_key *key)
{
    sodium_memzero(key, sizeof(*key));
}
