/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/ending.h"

#include <signal.h>
#include <string.h>

#include "launch/signal_name.h"

int rueda_ending_code(const struct rueda_ending *ending)
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

static void add_signal(int number, struct rueda_text *out)
{
    const char *name = rueda_signal_name(number);

    rueda_text_add(out, "signal %d", number);
    if (name != NULL)
        rueda_text_add(out, " (SIG%s)", name);
    else if (number >= SIGRTMIN && number <= SIGRTMAX)
        rueda_text_add(out, " (SIGRTMIN+%d)", number - SIGRTMIN);
}

void rueda_ending_words(const struct rueda_ending *ending, const char *host,
                        struct rueda_text *out)
{
    rueda_text_add(out, "rank %d", ending->rank);
    rueda_ending_how(ending, host, out);
}

void rueda_ending_how(const struct rueda_ending *ending, const char *host,
                      struct rueda_text *out)
{
    rueda_text_add(out, " on %s ", host);
    if (ending->signal == 0) {
        rueda_text_add(out, "ended with exit code %d%s", ending->code,
                       hint_of(ending->code));
        return;
    }
    rueda_text_add(out, "was killed by ");
    add_signal(ending->signal, out);
    if (ending->oom == RUEDA_OOM_CGROUP)
        rueda_text_add(out, ": out of memory, the limit of its cgroup (of the "
                            "container, say) was reached");
    else if (ending->oom == RUEDA_OOM_MACHINE)
        rueda_text_add(out, ": out of memory, the kernel killed processes of "
                            "this machine");
}
