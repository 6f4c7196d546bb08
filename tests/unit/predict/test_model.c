/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/unit.h"

#include <math.h>

#include "predict/model.h"

static void a_model_is_read(void **state)
{
    struct rueda_text error = {""};
    struct rueda_model model;

    (void)state;
    assert_int_equal(rueda_model_parse("# a small one\n"
                                       "model two-layers\n"
                                       "sample\timage\r\n"
                                       "batch 32 # of a rank\n"
                                       "\n"
                                       "compute 2.5ms\n"
                                       "forward 0.25\n"
                                       "tensor b.bias 10\n"
                                       "tensor b.weight 10x20 300\n"
                                       "tensor a.weight 20x5x2 100",
                                       &model, &error),
                     RUEDA_OK);
    assert_string_equal(model.name, "two-layers");
    assert_string_equal(model.sample, "image");
    assert_true(model.batch == 32 && model.compute_ns == 2.5e6);
    assert_int_equal(model.gradient_count, 3);
    assert_string_equal(model.gradients[1].name, "b.weight");
    assert_int_equal(model.gradients[1].count, 200);
    assert_true(model.elements == 410);
    /* Three quarters of the backward pass are for b.weight. */
    assert_true(model.gradients[0].ready == 0.25);
    assert_true(model.gradients[1].ready == 0.25 + 0.75 * 0.75);
    assert_true(model.gradients[2].ready == 1);
    rueda_model_fini(&model);
}

static void without_work_elements_share_the_backward_pass(void **state)
{
    struct rueda_text error = {""};
    struct rueda_model model;

    (void)state;
    assert_int_equal(rueda_model_parse("forward 0\ntensor a 10\ntensor b 30",
                                       &model, &error),
                     RUEDA_OK);
    assert_true(model.gradients[0].ready == 0.25);
    assert_true(model.gradients[1].ready == 1);
    rueda_model_fini(&model);
}

static void what_is_wrong_is_named_with_its_line(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"", "no line with a tensor"},
        {"model a\nlayers 3\n", "line 2: unknown word \"layers\""},
        {"model\n", "line 1: \"model\" needs one word"},
        {"batch 0\n", "a number of samples above 0"},
        {"batch -1\n", "a number of samples above 0"},
        {"compute 5\n", "a time such as 250ms"},
        {"forward 1.5\n", "a part of the step"},
        {"tensor a\n", "a name, a shape"},
        {"tensor a 3x\n", "a name, a shape"},
        {"tensor a 0\n", "a name, a shape"},
        {"tensor a 3x0x2\n", "a name, a shape"},
        {"tensor a 99999999999999999999\n", "a name, a shape"},
        {"tensor a 1000000000x1000000000\n", "a name, a shape"},
        {"tensor a 3 1e9\n", "a name, a shape"},
        {"model a\033[31m\ntensor a 3\n", "line 1: a control character"},
        {"tensor a 3 4 5\n", "line 1: more than 4 words"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_text error = {""};
        struct rueda_model model;

        assert_int_equal(rueda_model_parse(cases[i].text, &model, &error),
                         RUEDA_ERR_INVALID);
        if (strstr(error.chars, cases[i].words) == NULL)
            fail_msg("\"%s\": %s", cases[i].text, error.chars);
    }
}

/* The published numbers of parameters: of torchvision's models of these
 * architectures, of Inception V3 without its auxiliary head, and of BERT-large
 * for pre-training with its output layer tied to the embedding. And about the
 * published multiplications of a forward pass. */
static void built_in_models_have_their_published_sizes(void **state)
{
    static const struct {
        const char *name;
        double elements;
        double work; /* in 1e9 */
    } published[] = {
        {"resnet50", 25557032, 4.09},    {"resnet101", 44549160, 7.80},
        {"inception3", 23834568, 5.71},  {"vgg16", 138357544, 15.47},
        {"bert-large", 336226108, 43.6},
    };
    size_t count = 0;

    (void)state;
    for (; rueda_model_names[count] != NULL; count++) {
        struct rueda_text error = {""};
        struct rueda_model model;
        double work = 0;

        assert_string_equal(rueda_model_names[count], published[count].name);
        assert_int_equal(
            rueda_model_parse(rueda_model_text(rueda_model_names[count]),
                              &model, &error),
            RUEDA_OK);
        for (int i = 0; i < model.gradient_count; i++)
            work += model.gradients[i].work;
        assert_string_equal(model.name, published[count].name);
        assert_true(model.elements == published[count].elements);
        assert_true(fabs(work / 1e9 / published[count].work - 1) < 0.01);
        assert_true(model.compute_ns > 0);
        rueda_model_fini(&model);
    }
    assert_int_equal(count, sizeof(published) / sizeof(published[0]));
    assert_null(rueda_model_text("resnet18"));
}

static void a_file_that_is_not_there_is_named(void **state)
{
    struct rueda_text error = {""};
    struct rueda_model model;

    (void)state;
    assert_int_equal(rueda_model_read("/nowhere/a.model", &model, &error),
                     RUEDA_ERR_IO);
    assert_non_null(strstr(error.chars, "/nowhere/a.model: No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_read),
        cmocka_unit_test(without_work_elements_share_the_backward_pass),
        cmocka_unit_test(what_is_wrong_is_named_with_its_line),
        cmocka_unit_test(built_in_models_have_their_published_sizes),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
