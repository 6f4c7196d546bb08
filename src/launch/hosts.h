/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts of a job and how many ranks each has room for, as -H and hostfiles
 * give them. The texts come from the user and may contain anything. Pure except
 * for reading the file; any thread.
 */
#ifndef RUEDA_LAUNCH_HOSTS_H
#define RUEDA_LAUNCH_HOSTS_H

#include "base/text.h"

#define RUEDA_LAUNCH_HOST_BYTES 256
#define RUEDA_HOSTS_MOST        8192
#define RUEDA_HOSTS_MOST_SLOTS  65536

struct rueda_hosts_entry {
    char name[RUEDA_LAUNCH_HOST_BYTES]; /* as written, IPv6 without its brackets
                                         */
    int slots;
};

/* A host that is named twice is there once, with the slots of both. */
struct rueda_hosts {
    struct rueda_hosts_entry *list;
    int count;
};

/* "a:4,[fd00::1]:2". On a mistake false with a message, and out is empty. */
bool rueda_hosts_parse(const char *text, struct rueda_hosts *out,
                       struct rueda_text *words);

/* Lines "a slots=4" or "a:4"; "#" begins a remark. path is for messages. */
bool rueda_hosts_parse_file(const char *path, const char *text,
                            struct rueda_hosts *out, struct rueda_text *words);

/* The same from a file. */
bool rueda_hosts_read(const char *path, struct rueda_hosts *out,
                      struct rueda_text *words);

/* Add a host, or slots to one that is there, to a list that may be empty (all
 * zero). On a mistake false with a message; the list is then good for nothing
 * but rueda_hosts_fini(). */
bool rueda_hosts_add(struct rueda_hosts *hosts, const char *name,
                     const char *slots, struct rueda_text *words);

/* A copy, and one more at the end, which is not looked for. False: no memory.
 */
bool rueda_hosts_copy(const struct rueda_hosts *hosts, struct rueda_hosts *out);
bool rueda_hosts_append(struct rueda_hosts *hosts,
                        const struct rueda_hosts_entry *host);

/* "a:4,b:4", or without slots "a,b"; to be freed. NULL: no memory. */
char *rueda_hosts_text(const struct rueda_hosts *hosts, bool has_slots);

/* This host with a number of slots. */
bool rueda_hosts_local(int slots, struct rueda_hosts *out);

/* Those of a list, or of a file, or else this one; list or file may be NULL. */
bool rueda_hosts_find(const char *list, const char *file, int slots,
                      struct rueda_hosts *out, struct rueda_text *words);

int rueda_hosts_slots(const struct rueda_hosts *hosts);

void rueda_hosts_fini(struct rueda_hosts *hosts);

#endif /* RUEDA_LAUNCH_HOSTS_H */
