/* SPDX-License-Identifier: Apache-2.0 */
/* RUEDA_SELDOM: before a function that most turns of the engine do not call. It
 * is compiled apart, so that its caller saves no registers for it. */
#ifndef RUEDA_BASE_SELDOM_H
#define RUEDA_BASE_SELDOM_H

#define RUEDA_SELDOM __attribute__((noinline))

#endif /* RUEDA_BASE_SELDOM_H */
