/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets from text, which is a setting's. Ranks are of the job, no set
 * has more of them than that has, and there is an end. */
#include "fuzz/fuzz.h"
#include "job/set_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const int ranks_of_job = 1 + (int)(fuzz_choice(&input) % 32);
    int *ranks = malloc((size_t)ranks_of_job * sizeof(*ranks));
    char *text = fuzz_text(input.data, input.size);
    struct rueda_text error = {{0}};
    const char *at = text;
    int count;

    must(ranks != NULL);
    do {
        const char *before = at;

        count = rueda_set_text_next(&at, ranks_of_job, ranks, &error);
        must(count <= ranks_of_job);
        must(count <= 0 || at > before);
        for (int i = 0; i < count; i++)
            must(ranks[i] >= 0 && ranks[i] < ranks_of_job);
    } while (count > 0);
    must((count < 0) == !rueda_text_is_empty(&error));
    must(count < 0 || *at == '\0');
    free(text);
    free(ranks);
    return 0;
}
