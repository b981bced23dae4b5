/* SPDX-License-Identifier: MIT */
/*
 * htmldata.h: the JSON that the page of html.c shows (html/data.js reads it). Used inside
 * analyze/export.
 */
#ifndef ANALYZE_EXPORT_HTMLDATA_H
#define ANALYZE_EXPORT_HTMLDATA_H

#include "analyze/export/callforest.h"

/* 0, or -1: out of memory. */
int htmldata_write(const struct export *export, const struct callforest *forest, FILE *out);

#endif
