/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/signal_name.h"

#include <signal.h>
#include <stddef.h>

#define NAME(name) [SIG##name] = #name

static const char *const names[] = {
    NAME(HUP),    NAME(INT),  NAME(QUIT),   NAME(ILL),  NAME(TRAP),  NAME(ABRT),
    NAME(BUS),    NAME(FPE),  NAME(KILL),   NAME(USR1), NAME(SEGV),  NAME(USR2),
    NAME(PIPE),   NAME(ALRM), NAME(TERM),   NAME(CHLD), NAME(CONT),  NAME(STOP),
    NAME(TSTP),   NAME(TTIN), NAME(TTOU),   NAME(URG),  NAME(XCPU),  NAME(XFSZ),
    NAME(PROF),   NAME(SYS),  NAME(VTALRM), NAME(POLL), NAME(WINCH), NAME(PWR),
#ifdef SIGSTKFLT
    NAME(STKFLT),
#endif
};

const char *rueda_signal_name(int number)
{
    if (number < 0 || (size_t)number >= sizeof(names) / sizeof(names[0]))
        return NULL;
    return names[number];
}
