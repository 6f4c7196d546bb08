/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models from text: one thing a line, words between blanks, the rest after a #
 * is for people.
 *
 *     model vgg16
 *     sample image
 *     batch 64
 *     compute 415ms
 *     forward 0.333
 *     tensor classifier.6.bias 1000 0
 *     tensor classifier.6.weight 1000x4096 4096000
 *
 * A backward pass makes the gradients in this order, and takes for each of them
 * a share of its time as large as the tensor's share of the multiplications;
 * where a file has none, as large as its share of the elements.
 */
#include "predict/model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"
#include "transport/sim/net.h"

#define FILE_BYTES ((size_t)8 << 20)
#define WORDS      4
#define MOST_COUNT ((size_t)1 << 40)
#define MOST_WORK  1e18

struct model_reader {
    struct rueda_model model;
    int room;
    int line;
    char words[WORDS][RUEDA_MODEL_WORD];
    int count; /* of words in the line */
    struct rueda_text *error;
};

static rueda_status refuse(struct model_reader *reader, const char *expected)
{
    rueda_text_set(reader->error, "line %d: \"%.64s\" needs %s", reader->line,
                   reader->words[0], expected);
    return RUEDA_ERR_INVALID;
}

/* ---- Words ------------------------------------------------------------ */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Names are printed on terminals. */
static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

/* Cut a line in words of this reader. Words are copied: the text may be a file
 * of any user, and what is too long or not printable is refused here, once. */
static rueda_status cut(struct model_reader *reader, const char *line,
                        size_t length)
{
    size_t at = 0;

    reader->count = 0;
    memset(reader->words, 0, sizeof(reader->words));
    while (at < length) {
        size_t len = 0;

        if (is_blank(line[at])) {
            at++;
            continue;
        }
        while (at + len < length && !is_blank(line[at + len]))
            if (is_control(line[at + len++])) {
                rueda_text_set(reader->error,
                               "line %d: a control character in a word",
                               reader->line);
                return RUEDA_ERR_INVALID;
            }
        if (reader->count == WORDS || len >= RUEDA_MODEL_WORD) {
            rueda_text_set(reader->error,
                           "line %d: more than %d words, or one of more than "
                           "%d letters",
                           reader->line, WORDS, RUEDA_MODEL_WORD - 1);
            return RUEDA_ERR_INVALID;
        }
        memcpy(reader->words[reader->count++], line + at, len);
        at += len;
    }
    return RUEDA_OK;
}

/* A number in plain digits, whatever the locale says, from 0 to most. */
static bool number(const char *word, double most, double *out)
{
    double value = 0.0;
    double place = 1.0;
    bool has_point = false;
    int digits = 0;

    for (; *word != '\0'; word++) {
        if (*word == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (*word < '0' || *word > '9')
            return false;
        value = value * 10.0 + (*word - '0');
        place *= has_point ? 10.0 : 1.0;
        digits++;
    }
    *out = value / place;
    return digits > 0 && digits <= 18 && *out <= most;
}

/* 64x3x7x7 */
static bool shape(const char *word, size_t *out)
{
    size_t count = 1;

    while (*word != '\0') {
        size_t side = 0;

        if (*word < '0' || *word > '9')
            return false;
        for (; *word >= '0' && *word <= '9'; word++) {
            side = side * 10 + (size_t)(*word - '0');
            if (side > MOST_COUNT)
                return false;
        }
        if (side == 0 || count > MOST_COUNT / side)
            return false;
        count *= side;
        if (*word == 'x' && word[1] != '\0')
            word++;
        else if (*word != '\0')
            return false;
    }
    *out = count;
    return count <= MOST_COUNT;
}

/* ---- Lines ------------------------------------------------------------ */

/* Room for one more gradient. */
static rueda_status grow(struct model_reader *reader)
{
    struct rueda_model_gradient *gradients;
    const int room = reader->room > 0 ? 2 * reader->room : 64;

    if (reader->model.gradient_count < reader->room)
        return RUEDA_OK;
    gradients =
        realloc(reader->model.gradients, (size_t)room * sizeof(*gradients));
    if (gradients == NULL) {
        rueda_text_set(reader->error, "no memory for %d tensors", room);
        return RUEDA_ERR_NOMEM;
    }
    reader->model.gradients = gradients;
    reader->room = room;
    return RUEDA_OK;
}

static rueda_status read_tensor(struct model_reader *reader)
{
    struct rueda_model_gradient gradient = {.work = 0};
    rueda_status status;

    if (reader->count < 3 || !shape(reader->words[2], &gradient.count) ||
        (reader->count == 4 &&
         !number(reader->words[3], MOST_WORK, &gradient.work)))
        return refuse(reader, "a name, a shape such as 64x3x7x7, and the "
                              "multiplications of the forward pass (0)");
    if (reader->model.gradient_count == RUEDA_MODEL_TENSORS) {
        rueda_text_set(reader->error, "line %d: more than %d tensors",
                       reader->line, RUEDA_MODEL_TENSORS);
        return RUEDA_ERR_INVALID;
    }
    status = grow(reader);
    if (status != RUEDA_OK)
        return status;
    memcpy(gradient.name, reader->words[1], sizeof(gradient.name));
    reader->model.elements += (double)gradient.count;
    reader->model.gradients[reader->model.gradient_count++] = gradient;
    return RUEDA_OK;
}

static rueda_status read_line(struct model_reader *reader)
{
    struct rueda_model *model = &reader->model;
    const char *first = reader->words[0];
    const char *second = reader->words[1];

    if (reader->count == 0)
        return RUEDA_OK;
    if (strcmp(first, "tensor") == 0)
        return read_tensor(reader);
    if (reader->count != 2)
        return refuse(reader, "one word");
    if (strcmp(first, "model") == 0) {
        memcpy(model->name, second, sizeof(model->name));
    } else if (strcmp(first, "sample") == 0) {
        memcpy(model->sample, second, sizeof(model->sample));
    } else if (strcmp(first, "batch") == 0) {
        if (!number(second, 1e9, &model->batch) || model->batch <= 0.0)
            return refuse(reader, "a number of samples above 0");
    } else if (strcmp(first, "compute") == 0) {
        if (!rueda_sim_time_parse(second, &model->compute_ns))
            return refuse(reader, "a time such as 250ms");
    } else if (strcmp(first, "forward") == 0) {
        if (!number(second, 1.0, &model->forward))
            return refuse(reader, "a part of the step, from 0 to 1");
    } else {
        rueda_text_set(reader->error,
                       "line %d: unknown word \"%.64s\"; expected model, "
                       "sample, batch, compute, forward or tensor",
                       reader->line, first);
        return RUEDA_ERR_INVALID;
    }
    return RUEDA_OK;
}

/* When the backward pass has which gradient: its share of the backward time has
 * passed for it and all before it. fmin() takes away what rounding adds to 1.
 */
static void set_ready(struct rueda_model *model)
{
    double all = 0.0;
    double done = 0.0;

    for (int i = 0; i < model->gradient_count; i++)
        all += model->gradients[i].work;
    for (int i = 0; i < model->gradient_count; i++) {
        struct rueda_model_gradient *gradient = &model->gradients[i];

        done += all > 0.0 ? gradient->work / all
                          : (double)gradient->count / model->elements;
        gradient->ready =
            model->forward + (1.0 - model->forward) * fmin(done, 1.0);
    }
}

rueda_status rueda_model_parse(const char *text, struct rueda_model *out,
                               struct rueda_text *error)
{
    struct model_reader reader = {
        .model = {.name = "model",
                  .sample = "sample",
                  .batch = 1,
                  .forward = 1.0 / 3},
        .error = error,
    };
    rueda_status status = RUEDA_OK;

    while (*text != '\0' && status == RUEDA_OK) {
        const size_t length = strcspn(text, "\n");

        reader.line++;
        status = cut(&reader, text, strcspn(text, "#\n"));
        if (status == RUEDA_OK)
            status = read_line(&reader);
        text += length + (text[length] == '\n' ? 1 : 0);
    }
    if (status == RUEDA_OK && reader.model.gradient_count == 0) {
        rueda_text_set(error, "there is no line with a tensor");
        status = RUEDA_ERR_INVALID;
    }
    if (status != RUEDA_OK) {
        rueda_model_fini(&reader.model);
        return status;
    }
    set_ready(&reader.model);
    *out = reader.model;
    return RUEDA_OK;
}

rueda_status rueda_model_read(const char *path, struct rueda_model *out,
                              struct rueda_text *error)
{
    struct rueda_text why = {""};
    char *text = malloc(FILE_BYTES);
    rueda_status status;

    if (text == NULL) {
        rueda_text_set(error, "no memory to read %s", path);
        return RUEDA_ERR_NOMEM;
    }
    status = rueda_file_read(path, text, FILE_BYTES);
    if (status == RUEDA_ERR_IO)
        rueda_text_set(error, "%s: %s", path, strerror(errno));
    else if (status != RUEDA_OK)
        rueda_text_set(error, "%s: longer than %zu bytes", path,
                       FILE_BYTES - 1);
    if (status == RUEDA_OK) {
        status = rueda_model_parse(text, out, &why);
        if (status != RUEDA_OK)
            rueda_text_set(error, "%s: %s", path, why.chars);
    }
    free(text);
    return status;
}

void rueda_model_fini(struct rueda_model *model)
{
    free(model->gradients);
    model->gradients = NULL;
    model->gradient_count = 0;
}
