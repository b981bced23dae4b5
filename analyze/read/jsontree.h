/* SPDX-License-Identifier: MIT */
/*
 * jsontree.h: JSON of others as a tree: summaries of runs, bodies of requests.
 *
 * yajl frees its tree by recursion, so that text of nothing but brackets would use up the stack:
 * what lies deeper in itself than any of ours does is refused before it is parsed.
 */
#ifndef ANALYZE_READ_JSONTREE_H
#define ANALYZE_READ_JSONTREE_H

#include <yajl/yajl_tree.h>

/* The caller frees it (yajl_tree_free). NULL: it is malformed, or nested more than 32 times. */
yajl_val jsontree_parse(const char *json);
/* The member of an object; NULL: it has none of that name, or is no object. */
yajl_val jsontree_member(yajl_val object, const char *name);

#endif
