/* SPDX-License-Identifier: MIT */
/* load.h: what the files of analyze/model share while a model is loaded. Nobody else's business. */
#ifndef ANALYZE_MODEL_LOAD_H
#define ANALYZE_MODEL_LOAD_H

#include "analyze/model/model.h"

/* Each returns 0, or -1: out of memory. What they have filled model_free() frees. */
int columns_load(struct model *model, const struct profile *profile);
int census_load(struct model *model, const struct profile *profile);

/* Notes the first thing that does not add up. */
__attribute__((format(printf, 2, 3))) void model_damage(struct model *model, const char *format,
                                                        ...);

/* A sum that stops at UINT64_MAX: damaged files may hold anything. */
uint64_t model_add(uint64_t left, uint64_t right);

#endif
