/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network to be trained, as far as communication is concerned: its gradients
 * in the order in which a backward pass makes them, and when it does. From
 * text, which docs/scaling.md describes; the built-in ones are the files of
 * predict/models/. Pure, but for rueda_model_read(); any thread.
 */
#ifndef RUEDA_PREDICT_MODEL_H
#define RUEDA_PREDICT_MODEL_H

#include <rueda/rueda.h>

#include "base/text.h"

#define RUEDA_MODEL_WORD    96 /* bytes of a name, its end included */
#define RUEDA_MODEL_TENSORS 100000

struct rueda_model_gradient {
    char name[RUEDA_MODEL_WORD];
    size_t count; /* elements */
    double work;  /* multiplications of the forward pass for it */
    double ready; /* part of the step's computation after which it is there */
};

struct rueda_model {
    char name[RUEDA_MODEL_WORD];
    char sample[RUEDA_MODEL_WORD]; /* what a batch consists of: "image" */
    double batch;                  /* samples of a rank in a step */
    double compute_ns;             /* of a step; 0: not said */
    double forward;                /* the part of it before the backward pass */
    struct rueda_model_gradient *gradients; /* owned */
    int gradient_count;
    double elements; /* of all */
};

/* On failure, RUEDA_ERR_INVALID with the line in error or RUEDA_ERR_NOMEM,
 * nothing is left. */
rueda_status rueda_model_parse(const char *text, struct rueda_model *out,
                               struct rueda_text *error);

/* The same from a file; error names it. */
rueda_status rueda_model_read(const char *path, struct rueda_model *out,
                              struct rueda_text *error);

void rueda_model_fini(struct rueda_model *model);

/* ---- Built-in ones (models.c) ----------------------------------------- */

/* Their names, ended by NULL. */
extern const char *const rueda_model_names[];

/* The text of one, or NULL. */
const char *rueda_model_text(const char *name);

#endif /* RUEDA_PREDICT_MODEL_H */
