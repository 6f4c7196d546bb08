/* SPDX-License-Identifier: Apache-2.0 */
/* Models from text. What is accepted has gradients in an order of time, and the
 * bound of a step can be computed. */
#include <math.h>

#include "fuzz/fuzz.h"
#include "predict/bound.h"

static void check_model(const struct rueda_model *model)
{
    const struct rueda_sim_wire wire = {.latency_ns = 1000, .bytes_per_s = 1e9};
    const struct rueda_sim_net net = rueda_sim_net_flat(4, wire);
    double before = 0.0;

    must(model->gradient_count > 0 &&
         model->gradient_count <= RUEDA_MODEL_TENSORS);
    must(model->batch > 0.0 && model->compute_ns >= 0.0);
    must(memchr(model->name, '\0', sizeof(model->name)) != NULL);
    for (int i = 0; i < model->gradient_count; i++) {
        const struct rueda_model_gradient *gradient = &model->gradients[i];

        must(gradient->count > 0);
        must(memchr(gradient->name, '\0', sizeof(gradient->name)) != NULL);
        must(gradient->ready >= before && gradient->ready <= 1.0 + 1e-9);
        before = gradient->ready;
    }
    must(isfinite(rueda_bound_ns(model, &net, 1e6, 4)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct rueda_model model = {.gradient_count = -7};
    struct rueda_text error = {{0}};
    rueda_status status = rueda_model_parse(text, &model, &error);

    must(rueda_text_is_empty(&error) == (status == RUEDA_OK));
    if (status == RUEDA_OK) {
        check_model(&model);
        rueda_model_fini(&model);
    } else {
        must(status == RUEDA_ERR_INVALID && model.gradient_count == -7);
    }
    free(text);
    return 0;
}
