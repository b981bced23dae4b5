/* SPDX-License-Identifier: MIT */
/*
 * bulk.h: call paths that are written whole, each with all of its frames, take contexts times
 * depth: a recursion 20,000 deep makes gigabytes. How much that would be is counted before anything
 * is written.
 *
 * Used by analyze/report and analyze/export.
 */
#ifndef ANALYZE_REPORT_BULK_H
#define ANALYZE_REPORT_BULK_H

#include "analyze/model/model.h"
#include "analyze/model/names.h"

struct bulk {
    uint64_t paths;
    uint64_t frames;
    uint64_t bytes;
};

/* How a frame is written: as a number; as function and file; with all members it has in JSON. */
enum bulk_form { BULK_NUMBERS, BULK_NAMES, BULK_OBJECTS };

/* -1, and error says so with the numbers, where more than 100 MB would be written. `advice`: what
 * follows in that line. */
int bulk_refuse(const struct bulk *bulk, const char *advice, struct error *error);

/* The same of all call paths of a model. */
int bulk_refuse_paths(const struct model *model, const struct names *names, enum bulk_form form,
                      const char *advice, struct error *error);

#endif
