/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of a timeline's records, as rank 0 gets them from other ranks. What is
 * accepted is written in no other way, and whatever comes the file is JSON, in
 * which each line of a tensor has no more ends than begins.
 */
#include "fuzz/fuzz.h"
#include "support/json.h"
#include "trace/timeline_json.h"

/* More would only be slow. */
#define TEXT_BYTES ((size_t)1 << 20)

struct text {
    char *bytes;
    size_t len;
    int64_t open;
};

static void take_event(void *arg, const char *event, size_t len)
{
    struct text *text = arg;

    must(len <= RUEDA_TIMELINE_EVENT_MAX);
    if (strncmp(event, ",\n{\"ph\": \"B\"", 12) == 0)
        text->open++;
    if (strncmp(event, ",\n{\"ph\": \"E\"", 12) == 0)
        text->open--;
    must(text->open >= 0);
    if (len + 2 > TEXT_BYTES - text->len)
        return;
    memcpy(text->bytes + text->len, event, len);
    text->len += len;
}

static void check_records(const uint8_t *data, size_t size)
{
    unsigned char again[RUEDA_TIMELINE_RECORD_MAX];
    struct rueda_timeline_record record;

    while (size > 0) {
        const size_t took = rueda_timeline_read(data, size, &record);

        if (took == 0)
            return;
        must(took <= size && rueda_timeline_write(&record, again) == took);
        must(memcmp(again, data, took) == 0);
        data += took;
        size -= took;
    }
}

/* The choices are whose records these are, and where the block is cut. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    const int rank = (int)(fuzz_choice(&input) % 3);
    const size_t cut = fuzz_choice(&input);
    struct text text = {.bytes = malloc(TEXT_BYTES), .len = 1};
    struct rueda_timeline_json json;
    const uint8_t *first;
    size_t len;

    must(text.bytes != NULL);
    text.bytes[0] = '[';
    must(rueda_timeline_json_init(&json, 3, 1000, 1, take_event, &text));
    len = fuzz_take(&input, cut, &first);
    check_records(first, len);
    rueda_timeline_json_add(&json, 0, first, len);
    check_records(input.data, input.size);
    rueda_timeline_json_add(&json, rank, input.data, input.size);
    rueda_timeline_json_end(&json, 0);
    memcpy(text.bytes + text.len, "]", 2);
    must(json_is_valid(text.bytes));
    rueda_timeline_json_fini(&json);
    free(text.bytes);
    return 0;
}
