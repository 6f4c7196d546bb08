/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object and its head, which an attacker on the way has written: it is
 * never taken for the sender's. The last byte is 0 for a pair that was not
 * changed, else which byte of the head is another one, or 255 for a
 * head that is all of the input.
 */
#include "auth/object.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct rueda_object_id id = {
        .purpose = 1, .sender = 2, .set = 0, .sequence = 3, .name = "state"};
    const struct rueda_key secret = {.bytes = {9}, .present = true};
    struct fuzz_input input = {data, size};
    const unsigned choice = fuzz_choice(&input);
    unsigned char head[RUEDA_OBJECT_HEAD_BYTES] = {0};
    const bool is_right = choice == 0;
    struct rueda_key key;
    uint64_t len = 0;

    must(rueda_object_key(&secret, "job", 3, &key) == RUEDA_OK);
    must(rueda_object_seal(&key, &id, input.data, input.size, head) ==
         RUEDA_OK);
    if (choice == 255) {
        memset(head, 0, sizeof(head));
        memcpy(head, input.data,
               input.size < sizeof(head) ? input.size : sizeof(head));
    }
    if (!is_right && choice != 255)
        head[choice % sizeof(head)] ^= (unsigned char)(1 + choice / 128);
    must((rueda_object_length(&key, &id, head, &len) == RUEDA_OK) == is_right);
    must(len == (is_right ? input.size : 0));
    must((rueda_object_check(&key, &id, head, input.data, input.size) ==
          RUEDA_OK) == is_right);
    return 0;
}
