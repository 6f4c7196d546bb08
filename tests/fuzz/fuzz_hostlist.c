/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's lists of hosts and of tasks. */
#include "fuzz/fuzz.h"
#include "job/hostlist.h"

static void try_first(const char *list, size_t room)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-._"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char *name = calloc(1, room + 1); /* exactly: a byte more is noticed */

    must(name != NULL);
    if (rueda_hostlist_first(list, name, room)) {
        must(name[0] != '\0' && strlen(name) < room);
        must(strspn(name, allowed) == strlen(name));
    } else {
        must(name[0] == '\0');
    }
    free(name);
}

/* The choices: room for the name; the node. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const size_t room = fuzz_choice(&input);
    const int node = (int)fuzz_choice(&input) - 1;
    char *list = fuzz_text(input.data, input.size);
    int tasks = rueda_hostlist_tasks(list, node);

    must(tasks == -1 || (tasks > 0 && node >= 0));
    /* A list has no node after one that it has not. */
    if (tasks == -1 && node >= 0)
        must(rueda_hostlist_tasks(list, node + 1) == -1);
    try_first(list, room);
    free(list);
    return 0;
}
