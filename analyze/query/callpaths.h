/* SPDX-License-Identifier: MIT */
/*
 * callpaths.h: names of functions and call paths as texts, for the tables and functions of a
 * session. A query may ask for the same ones millions of times: names are made once; of the paths
 * the latest are kept. callpaths.c has the SQL functions, too.
 *
 * Called by analyze/query, from the session's thread.
 */
#ifndef ANALYZE_QUERY_CALLPATHS_H
#define ANALYZE_QUERY_CALLPATHS_H

#include "analyze/model/model.h"
#include "analyze/query/vtable.h"

/* NULL: out of memory. */
struct callpaths *callpaths_new(void);
void callpaths_free(struct callpaths *paths); /* NULL is allowed */

/* What to show of a frame, in the form that the session wants; lasts as long as the session. NULL:
 * out of memory. */
const char *callpaths_name(const struct query *query, const struct names_frame *frame);

/* The functions of a node's path, outermost first, ';' between them, into out. */
void callpaths_put(const struct query *query, uint32_t node, sqlite3_context *out);

/* The rows of the model's contexts, those with the same path next to each other. NULL: out of
 * memory. */
const uint32_t *callpaths_grouped(const struct query *query);

#endif
