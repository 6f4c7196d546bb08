/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/introduce.h"
#include "tool/help.h"

/* `rueda key FILE`: a new key, in a file that only its owner can read. */
int rueda_tool_key_main(int argc, char **argv)
{
    struct rueda_text error = {{0}};

    if (argc == 1 && strcmp(argv[0], "--help") == 0) {
        fputs(rueda_tool_key_help(), stdout);
        return EXIT_SUCCESS;
    }
    if (argc != 1 || argv[0][0] == '-') {
        fputs(rueda_tool_key_help(), stderr);
        return 2;
    }
    if (rueda_introduce_new_key(argv[0], &error) == RUEDA_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "rueda: %s\n", error.chars);
    return EXIT_FAILURE;
}
