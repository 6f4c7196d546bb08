/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of PMI, in both forms (pmi_wire.h): a command is written as pairs,
 * an answer is received into an inbox until it is whole, and a value is found
 * in it by its key. Lengths are bounded, because a launcher that answers too
 * much must not fill memory.
 */
#include "job/pmi_wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "auth/key.h"
#include "base/number.h"
#include "os/inherited.h"

/* A counted message begins with its length, so wide. */
#define COUNT_CHARS 6

void rueda_pmi_wire_init(struct rueda_pmi_wire *wire, int fd,
                         int64_t deadline_ns, struct rueda_text *error)
{
    memset(wire, 0, sizeof(*wire));
    wire->fd = fd;
    wire->deadline_ns = deadline_ns;
    wire->error = error;
    wire->silence = "the launcher did not answer in time; is it stopped, or "
                    "RUEDA_START_TIMEOUT too short?";
}

/* ---- Digits -------------------------------------------------------------- */

void rueda_pmi_hex_write(const void *bytes, size_t count, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;

    for (size_t i = 0; i < count; i++) {
        out[2 * i] = digits[from[i] >> 4];
        out[2 * i + 1] = digits[from[i] & 15];
    }
    out[2 * count] = '\0';
}

/* -1: not one of the digits that we write. */
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

bool rueda_pmi_hex_read(const char *text, void *out, size_t count)
{
    unsigned char *to = out;

    if (strnlen(text, 2 * count + 1) != 2 * count)
        return false;
    for (size_t i = 0; i < count; i++) {
        int high = hex_digit(text[2 * i]);
        int low = hex_digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        to[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* ---- Pairs --------------------------------------------------------------- */

bool rueda_pmi_value(const struct rueda_pmi_wire *wire, const char *key,
                     char *out, size_t bytes)
{
    const char *parting = wire->is_counted ? ";" : " ";
    const size_t key_len = strlen(key);
    const char *pair = wire->answer;

    while (*pair != '\0') {
        size_t len = strcspn(pair, parting);

        if (len > key_len && pair[key_len] == '=' &&
            strncmp(pair, key, key_len) == 0) {
            size_t value_len = len - key_len - 1;

            if (value_len >= bytes)
                return false;
            memcpy(out, pair + key_len + 1, value_len);
            out[value_len] = '\0';
            return true;
        }
        pair += len;
        pair += strspn(pair, parting);
    }
    return false;
}

bool rueda_pmi_number(const struct rueda_pmi_wire *wire, const char *key,
                      int *out)
{
    char text[16];

    return rueda_pmi_value(wire, key, text, sizeof(text)) &&
           rueda_parse_int(text, out);
}

/* ---- Messages in --------------------------------------------------------- */

/* Words for the failure of a system call or of the other side. */
static rueda_status lost(struct rueda_pmi_wire *wire, rueda_status status)
{
    if (status == RUEDA_ERR_TIMEOUT)
        rueda_text_set(wire->error, "%s", wire->silence);
    else if (status == RUEDA_ERR_PEER_LOST)
        rueda_text_set(wire->error,
                       "the launcher closed PMI_FD %d; it has ended, or this "
                       "process has used PMI before",
                       wire->fd);
    else
        rueda_text_set(wire->error, "the launcher's socket PMI_FD %d: %s",
                       wire->fd, strerror(errno));
    return status;
}

static rueda_status nonsense(struct rueda_pmi_wire *wire, const char *what)
{
    rueda_text_set(wire->error,
                   "the launcher's answer over PMI_FD %d makes no sense (%s); "
                   "start ranks with another launcher",
                   wire->fd, what);
    return RUEDA_ERR_INVALID;
}

/* Receive until the inbox holds at least this many bytes. */
static rueda_status hold(struct rueda_pmi_wire *wire, size_t bytes)
{
    while (wire->held < bytes) {
        size_t got;
        rueda_status status = rueda_inherited_recv(
            wire->fd, wire->inbox + wire->held,
            sizeof(wire->inbox) - wire->held, wire->deadline_ns, &got);

        if (status != RUEDA_OK)
            return lost(wire, status);
        wire->held += got;
    }
    return RUEDA_OK;
}

/* Move a message of len bytes, which begins skip bytes into the inbox and ends
 * tail bytes before the next one, to answer. */
static rueda_status take(struct rueda_pmi_wire *wire, size_t skip, size_t len,
                         size_t tail)
{
    const size_t all = skip + len + tail;

    if (memchr(wire->inbox + skip, '\0', len) != NULL)
        return nonsense(wire, "a zero in it");
    memcpy(wire->answer, wire->inbox + skip, len);
    wire->answer[len] = '\0';
    memmove(wire->inbox, wire->inbox + all, wire->held - all);
    wire->held -= all;
    return RUEDA_OK;
}

static rueda_status receive_line(struct rueda_pmi_wire *wire)
{
    for (;;) {
        const char *end = memchr(wire->inbox, '\n', wire->held);
        rueda_status status;

        if (end != NULL)
            return take(wire, 0, (size_t)(end - wire->inbox), 1);
        if (wire->held == sizeof(wire->inbox))
            return nonsense(wire, "a line without an end");
        status = hold(wire, wire->held + 1);
        if (status != RUEDA_OK)
            return status;
    }
}

/* The length is padded with spaces, on either side. */
static bool parse_count(const char *from, int *out)
{
    char text[COUNT_CHARS + 1];
    size_t start;
    size_t end;

    memcpy(text, from, COUNT_CHARS);
    text[COUNT_CHARS] = '\0';
    start = strspn(text, " ");
    end = start + strcspn(text + start, " ");
    if (end + strspn(text + end, " ") != COUNT_CHARS)
        return false;
    text[end] = '\0';
    return rueda_parse_int(text + start, out);
}

static rueda_status receive_counted(struct rueda_pmi_wire *wire)
{
    rueda_status status = hold(wire, COUNT_CHARS);
    int count;

    if (status != RUEDA_OK)
        return status;
    if (!parse_count(wire->inbox, &count))
        return nonsense(wire, "no length");
    if ((size_t)count > sizeof(wire->inbox) - COUNT_CHARS)
        return nonsense(wire, "too long");
    status = hold(wire, COUNT_CHARS + (size_t)count);
    if (status != RUEDA_OK)
        return status;
    return take(wire, COUNT_CHARS, (size_t)count, 0);
}

/* ---- Messages out -------------------------------------------------------- */

static rueda_status send_words(struct rueda_pmi_wire *wire, const char *words)
{
    char message[COUNT_CHARS + RUEDA_PMI_MOST_OUT + 2];
    size_t len = strnlen(words, RUEDA_PMI_MOST_OUT);
    rueda_status status;

    if (wire->is_counted)
        snprintf(message, sizeof(message), "%-*zu%.*s", COUNT_CHARS, len,
                 (int)len, words);
    else
        snprintf(message, sizeof(message), "%.*s\n", (int)len, words);
    status = rueda_inherited_send(wire->fd, message, strlen(message),
                                  wire->deadline_ns);
    rueda_secret_wipe(message, sizeof(message));
    return status;
}

static rueda_status say(struct rueda_pmi_wire *wire, const char *words)
{
    rueda_status status = send_words(wire, words);

    return status == RUEDA_OK ? RUEDA_OK : lost(wire, status);
}

/* Is the last answer the one that was hoped for? */
static rueda_status check_answer(struct rueda_pmi_wire *wire, const char *kind)
{
    char is[32] = "";
    char code[16];
    char reason[128] = "";

    if (!rueda_pmi_value(wire, "cmd", is, sizeof(is)) || strcmp(is, kind) != 0)
        return nonsense(wire, kind);
    if (!rueda_pmi_value(wire, "rc", code, sizeof(code)) ||
        strcmp(code, "0") == 0)
        return RUEDA_OK;
    if (!rueda_pmi_value(wire, "errmsg", reason, sizeof(reason)))
        (void)rueda_pmi_value(wire, "msg", reason, sizeof(reason));
    rueda_text_set(wire->error, "the launcher refused: %s, code %s%s%s", kind,
                   code, reason[0] != '\0' ? ", " : "", reason);
    return RUEDA_ERR_INVALID;
}

rueda_status rueda_pmi_ask(struct rueda_pmi_wire *wire, const char *kind,
                           const char *words, ...)
{
    char text[RUEDA_PMI_MOST_OUT];
    rueda_status status;
    va_list args;
    int len;

    va_start(args, words);
    len = vsnprintf(text, sizeof(text), words, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof(text))
        status = nonsense(wire, "too long a name");
    else
        status = say(wire, text);
    rueda_secret_wipe(text, sizeof(text));
    if (status != RUEDA_OK)
        return status;
    status = wire->is_counted ? receive_counted(wire) : receive_line(wire);
    if (status != RUEDA_OK)
        return status;
    return check_answer(wire, kind);
}
