/* SPDX-License-Identifier: Apache-2.0 */
/* `rueda bench step`: what named tensors cost beside bare collectives. */
#ifndef RUEDA_TOOL_STEP_H
#define RUEDA_TOOL_STEP_H

/* argv without "rueda bench step". Returns the exit code. */
int rueda_step_main(int argc, char **argv);

#endif /* RUEDA_TOOL_STEP_H */
