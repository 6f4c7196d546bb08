/* SPDX-License-Identifier: Apache-2.0 */
/* Sets as those who submit see them. */
#include "engine/engine.h"

/* Only the global set, which is made with the engine and never changes, so that
 * any thread may look at it. */
const struct rueda_set *rueda_engine_set(struct rueda_engine *engine, int id)
{
    return id == RUEDA_SET_GLOBAL ? rueda_set_find(engine->sets, id) : NULL;
}
