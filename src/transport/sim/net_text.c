/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text form of a network: one thing a line, words between blanks, the rest
 * after a # is for people.
 *
 *     hosts 8
 *     uplink latency 5us bandwidth 100Gbit/s jitter 1us
 */
#include <errno.h>
#include <string.h>

#include "os/file.h"
#include "transport/sim/net.h"

#define FILE_BYTES 16384
#define MOST_NS    1e15

/* Part of the text, not ended by a zero. */
struct net_span {
    const char *at;
    size_t length;
};

struct net_reader {
    int line;
    struct net_span rest; /* of the line */
    struct rueda_sim_net net;
    struct rueda_text *error;
};

struct unit {
    const char *name;
    double factor;
};

static const struct unit times[] = {
    {"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0.0}};

static const struct unit rates[] = {
    {"B/s", 1.0},        {"kB/s", 1e3},        {"MB/s", 1e6},
    {"GB/s", 1e9},       {"kbit/s", 1e3 / 8},  {"Mbit/s", 1e6 / 8},
    {"Gbit/s", 1e9 / 8}, {"Tbit/s", 1e12 / 8}, {"kbit", 1e3 / 8},
    {"mbit", 1e6 / 8},   {"gbit", 1e9 / 8},    {"tbit", 1e12 / 8},
    {NULL, 0.0},
};

/* ---- Words ------------------------------------------------------------ */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; of no length at its end. */
static struct net_span next_word(struct net_reader *reader)
{
    struct net_span *rest = &reader->rest;
    struct net_span word;

    while (rest->length > 0 && is_blank(*rest->at)) {
        rest->at++;
        rest->length--;
    }
    word = (struct net_span){rest->at, 0};
    while (rest->length > 0 && !is_blank(*rest->at)) {
        rest->at++;
        rest->length--;
        word.length++;
    }
    return word;
}

static bool is_word(struct net_span word, const char *text)
{
    return strlen(text) == word.length &&
           memcmp(word.at, text, word.length) == 0;
}

static rueda_status refuse(struct net_reader *reader, const char *what,
                           struct net_span word, const char *expected)
{
    rueda_text_set(reader->error, "line %d: %s \"%.*s\"; expected %s",
                   reader->line, what, (int)word.length, word.at, expected);
    return RUEDA_ERR_INVALID;
}

/* ---- Numbers ---------------------------------------------------------- */

/* Digits, perhaps with a point, off the front of the word; whatever the
 * locale says. False: there are none, or far too many. */
static bool take_number(struct net_span *word, double *out)
{
    double number = 0.0;
    double place = 1.0;
    bool is_fraction = false;
    int digits = 0;

    while (word->length > 0) {
        const char c = *word->at;

        if (c == '.' && !is_fraction) {
            is_fraction = true;
        } else if (c >= '0' && c <= '9') {
            number = number * 10.0 + (c - '0');
            place *= is_fraction ? 10.0 : 1.0;
            digits++;
        } else {
            break;
        }
        word->at++;
        word->length--;
    }
    *out = number / place;
    return digits > 0 && digits <= 15;
}

static rueda_status read_count(struct net_reader *reader, const char *what,
                               int *out)
{
    const struct net_span word = next_word(reader);
    struct net_span rest = word;
    double number;

    if (!take_number(&rest, &number) || rest.length > 0 || number < 1.0 ||
        number > 65536.0 || number != (double)(int)number)
        return refuse(reader, what, word, "a whole number from 1 to 65536");
    *out = (int)number;
    return RUEDA_OK;
}

static rueda_status read_factor(struct net_reader *reader, double *out)
{
    const struct net_span word = next_word(reader);
    struct net_span rest = word;

    if (!take_number(&rest, out) || rest.length > 0 || *out <= 0.0)
        return refuse(reader, "oversubscription", word, "a number above 0");
    return RUEDA_OK;
}

static bool read_quantity(struct net_span word, const struct unit *units,
                          double *out)
{
    double number;

    if (!take_number(&word, &number))
        return false;
    for (; units->name != NULL; units++)
        if (is_word(word, units->name)) {
            *out = number * units->factor;
            return true;
        }
    return false;
}

bool rueda_sim_time_parse(const char *text, double *out_ns)
{
    const struct net_span word = {text, strlen(text)};
    double ns;

    if (!read_quantity(word, times, &ns) || ns > MOST_NS)
        return false;
    *out_ns = ns;
    return true;
}

bool rueda_sim_rate_parse(const char *text, double *out_bytes_per_s)
{
    const struct net_span word = {text, strlen(text)};
    double rate;

    if (!read_quantity(word, rates, &rate) || rate < 1.0)
        return false;
    *out_bytes_per_s = rate;
    return true;
}

/* ---- Lines ------------------------------------------------------------ */

static rueda_status read_time(struct net_reader *reader, const char *what,
                              uint64_t *out_ns)
{
    const struct net_span word = next_word(reader);
    double ns;

    if (!read_quantity(word, times, &ns) || ns > MOST_NS)
        return refuse(reader, what, word, "a time such as 5us (ns, us, ms, s)");
    *out_ns = (uint64_t)(ns + 0.5);
    return RUEDA_OK;
}

static rueda_status read_rate(struct net_reader *reader, double *out)
{
    const struct net_span word = next_word(reader);

    if (!read_quantity(word, rates, out) || *out < 1.0)
        return refuse(reader, "bandwidth", word,
                      "a rate such as 12.5GB/s or 100Gbit/s");
    return RUEDA_OK;
}

static rueda_status read_wire(struct net_reader *reader,
                              struct rueda_sim_wire *wire, bool has_rate)
{
    rueda_status status = RUEDA_OK;

    while (status == RUEDA_OK) {
        const struct net_span word = next_word(reader);

        if (word.length == 0)
            break;
        if (is_word(word, "latency"))
            status = read_time(reader, "latency", &wire->latency_ns);
        else if (is_word(word, "jitter"))
            status = read_time(reader, "jitter", &wire->jitter_ns);
        else if (is_word(word, "bandwidth") && has_rate)
            status = read_rate(reader, &wire->bytes_per_s);
        else
            status = refuse(reader, "unknown word", word,
                            has_rate ? "latency, bandwidth or jitter"
                                     : "latency or jitter");
    }
    return status;
}

static rueda_status read_line(struct net_reader *reader)
{
    struct rueda_sim_net *net = &reader->net;
    const struct net_span word = next_word(reader);
    rueda_status status;
    struct net_span rest;

    if (word.length == 0)
        return RUEDA_OK;
    if (is_word(word, "hosts"))
        status = read_count(reader, "hosts", &net->hosts);
    else if (is_word(word, "ranks-per-host"))
        status = read_count(reader, "ranks-per-host", &net->ranks_per_host);
    else if (is_word(word, "hosts-per-rack"))
        status = read_count(reader, "hosts-per-rack", &net->hosts_per_rack);
    else if (is_word(word, "oversubscription"))
        status = read_factor(reader, &net->oversubscription);
    else if (is_word(word, "port"))
        status = read_wire(reader, &net->port, true);
    else if (is_word(word, "uplink"))
        status = read_wire(reader, &net->uplink, true);
    else if (is_word(word, "spine"))
        status = read_wire(reader, &net->spine, false);
    else
        return refuse(reader, "unknown word", word,
                      "hosts, ranks-per-host, hosts-per-rack, "
                      "oversubscription, port, uplink or spine");
    rest = next_word(reader);
    if (status == RUEDA_OK && rest.length > 0)
        return refuse(reader, "too much:", rest, "the end of the line");
    return status;
}

/* The line at text, less its comment; returns where the next one begins. */
static const char *cut_line(const char *text, struct net_span *out_line)
{
    const size_t length = strcspn(text, "\n");

    *out_line = (struct net_span){text, strcspn(text, "#\n")};
    return text + length + (text[length] == '\n' ? 1 : 0);
}

rueda_status rueda_sim_net_parse(const char *text, struct rueda_sim_net *out,
                                 struct rueda_text *error)
{
    struct net_reader reader = {
        .net = {.hosts = 1,
                .ranks_per_host = 1,
                .oversubscription = 1.0,
                .port = {.latency_ns = 500, .bytes_per_s = 20e9},
                .uplink = {.latency_ns = 5000, .bytes_per_s = 12.5e9},
                .spine = {.latency_ns = 1000, .bytes_per_s = 1.0}},
        .error = error,
    };

    while (*text != '\0') {
        rueda_status status;

        reader.line++;
        text = cut_line(text, &reader.rest);
        status = read_line(&reader);
        if (status != RUEDA_OK)
            return status;
    }
    if (reader.net.hosts_per_rack == 0)
        reader.net.hosts_per_rack = reader.net.hosts;
    if (rueda_sim_net_check(&reader.net, error) != RUEDA_OK)
        return RUEDA_ERR_INVALID;
    *out = reader.net;
    return RUEDA_OK;
}

rueda_status rueda_sim_net_read(const char *path, struct rueda_sim_net *out,
                                struct rueda_text *error)
{
    char text[FILE_BYTES];
    struct rueda_text why = {""};
    rueda_status status = rueda_file_read(path, text, sizeof(text));

    if (status == RUEDA_ERR_IO)
        rueda_text_set(error, "%s: %s", path, strerror(errno));
    else if (status != RUEDA_OK)
        rueda_text_set(error, "%s: longer than %d bytes", path, FILE_BYTES - 1);
    if (status != RUEDA_OK)
        return status;
    status = rueda_sim_net_parse(text, out, &why);
    if (status != RUEDA_OK)
        rueda_text_set(error, "%s: %s", path, why.chars);
    return status;
}
