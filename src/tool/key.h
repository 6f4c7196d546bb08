/* SPDX-License-Identifier: Apache-2.0 */
/* `rueda key FILE`: a new key for a job. */
#ifndef RUEDA_TOOL_KEY_H
#define RUEDA_TOOL_KEY_H

/* argv without "rueda key". Returns the exit code. */
int rueda_tool_key_main(int argc, char **argv);

#endif /* RUEDA_TOOL_KEY_H */
