/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files of the launcher: what is accepted is what the table of
 * options allows. */
#include "fuzz/fuzz.h"
#include "launch/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rueda_options options = {.program = "x"};
    struct rueda_text words = {{0}};
    const bool is_good =
        rueda_yaml_parse("f", (const char *)data, size, &options, &words);

    must(is_good == rueda_text_is_empty(&words));
    for (int id = 0; id < RUEDA_OPTION_COUNT; id++) {
        const struct rueda_option *option = &rueda_options_table[id];
        const char *value = options.values[id];
        double number;

        if (value == NULL)
            continue;
        must(option->key != NULL && options.is_from_file[id]);
        if (option->kind == RUEDA_TAKES_NOTHING)
            must(strcmp(value, "0") == 0 || strcmp(value, "1") == 0);
        if (option->kind == RUEDA_TAKES_WHOLE ||
            option->kind == RUEDA_TAKES_DECIMAL) {
            number = strtod(value, NULL);
            must(number >= option->low && number <= option->high);
        }
    }
    rueda_options_fini(&options);
    return 0;
}
