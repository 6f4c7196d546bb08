/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/layout.h"

bool rueda_layout_total(const uint64_t *rows, int stride, int members,
                        size_t row_bytes, size_t *out_total)
{
    const size_t most = SIZE_MAX / 16 / (row_bytes > 0 ? row_bytes : 1);
    size_t total = 0;

    for (int i = 0; i < members; i++) {
        const uint64_t given = rows[(ptrdiff_t)i * stride];

        if (given > most || total + given > most)
            return false;
        total += given;
    }
    *out_total = total;
    return true;
}
