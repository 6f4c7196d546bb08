/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/verdict.h"

#include <string.h>

int rueda_verdict_code(const struct rueda_ending *ending)
{
    return ending->signal > 0 ? 128 + ending->signal : ending->code;
}

/* Codes that shells and this program give a meaning. */
static const char *hint_of(int code)
{
    switch (code) {
    case 126:
        return " (a command was found, but is not executable)";
    case 127:
        return " (a command or a library was not found)";
    default:
        return "";
    }
}

void rueda_verdict_words(const struct rueda_ending *ending, const char *host,
                         struct rueda_text *out)
{
    const char *name;

    rueda_text_add(out, "rank %d on %s ", ending->rank, host);
    if (ending->signal == 0) {
        rueda_text_add(out, "ended with exit code %d%s", ending->code,
                       hint_of(ending->code));
        return;
    }
    name = sigabbrev_np(ending->signal);
    rueda_text_add(out, "was killed by signal %d (SIG%s)", ending->signal,
                   name != NULL ? name : "?");
    if (ending->oom == RUEDA_OOM_CGROUP)
        rueda_text_add(out, ": out of memory, the limit of its cgroup (of the "
                            "container, say) was reached");
    else if (ending->oom == RUEDA_OOM_MACHINE)
        rueda_text_add(out, ": out of memory, the kernel killed processes of "
                            "this machine");
}
