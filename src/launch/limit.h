/* SPDX-License-Identifier: Apache-2.0 */
/* How many descriptors we may have. */
#ifndef RUEDA_LAUNCH_LIMIT_H
#define RUEDA_LAUNCH_LIMIT_H

/* Raise the limit of this process, which its children inherit, if this many
 * more descriptors might not fit, as far as it may be raised. */
void rueda_limit_need(int descriptors);

#endif /* RUEDA_LAUNCH_LIMIT_H */
