/* SPDX-License-Identifier: Apache-2.0 */
/* What a core fetches at a time. Where ranks share memory they agree upon it;
 * elsewhere nothing but speed hangs on it. */
#ifndef RUEDA_BASE_LINE_H
#define RUEDA_BASE_LINE_H

#define RUEDA_CACHE_LINE 64

#endif /* RUEDA_BASE_LINE_H */
