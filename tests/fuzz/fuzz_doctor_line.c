/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the doctor's helpers on other hosts. What is accepted can be shown
 * on a terminal, and says the same when it is written and read again. */
#include "fuzz/fuzz.h"
#include "tool/doctor/line.h"

static char *written(const struct rueda_line *line)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    must(file != NULL);
    rueda_line_write(line, file);
    must(fclose(file) == 0);
    must(bytes > 0 && text[bytes - 1] == '\n');
    text[bytes - 1] = '\0';
    return text;
}

static void look_at(const char *text)
{
    for (; *text != '\0'; text++)
        must((unsigned char)*text >= 0x20 && *text != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct rueda_line line;
    struct rueda_line again;

    if (rueda_line_read(text, &line)) {
        char *first = written(&line);
        char *second;

        look_at(line.finding.name);
        look_at(line.finding.value);
        look_at(line.finding.fix);
        look_at(line.net.interface);
        look_at(line.net.network);
        look_at(line.half.way);
        look_at(line.words);
        must(rueda_line_read(first, &again));
        second = written(&again);
        must(strcmp(first, second) == 0);
        free(second);
        free(first);
    }
    free(text);
    return 0;
}
