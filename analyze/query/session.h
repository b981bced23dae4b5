/* SPDX-License-Identifier: MIT */
/*
 * session.h: a session before anybody asks it something: for query.c, and for databasefile.c, which
 * has one beside the tables that it writes.
 */
#ifndef ANALYZE_QUERY_SESSION_H
#define ANALYZE_QUERY_SESSION_H

#include "analyze/query/vtable.h"

/* A connection to the database at `path` with all functions, and all tables in this schema of it.
 * Everything is allowed still. NULL: error is set. */
struct query *session_open(const struct query_source *source, const char *path, const char *schema,
                           struct error *error);

#endif
