/* SPDX-License-Identifier: Apache-2.0 */
/* What a shell needs to complete ruedarun's options, from their table. */
#ifndef RUEDA_LAUNCH_COMPLETION_H
#define RUEDA_LAUNCH_COMPLETION_H

#include <stdio.h>

/* shell: "bash", "zsh" or "fish". */
void rueda_launch_completion(const char *shell, FILE *out);

#endif /* RUEDA_LAUNCH_COMPLETION_H */
