/* SPDX-License-Identifier: Apache-2.0 */
/* `rueda info`: what the library and the machine are. */
#ifndef RUEDA_TOOL_INFO_H
#define RUEDA_TOOL_INFO_H

/* argv without "rueda info". Returns the exit code. */
int rueda_info_main(int argc, char **argv);

#endif /* RUEDA_TOOL_INFO_H */
