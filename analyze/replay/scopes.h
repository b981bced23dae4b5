/* SPDX-License-Identifier: MIT */
/*
 * scopes.h: which scopes (memtrace_scope_begin and _end) each thread is in while a recording is
 * replayed. The scopes that a thread is in, outermost first, are a path; paths are numbered, and
 * the same names in the same order have the same number.
 *
 * Called by analyze/replay/lives. Belongs to the job that it was made in. Memory grows with the
 * different paths and with the scopes that are open.
 */
#ifndef ANALYZE_REPLAY_SCOPES_H
#define ANALYZE_REPLAY_SCOPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCOPES_NONE = 0 }; /* the number of the path of no scope */

struct scopes;

struct scopes *scopes_new(void);

/* A stream's thread enters the scope `id`, or leaves it: wherever in the path it stands, the others
 * stay. One that is not open is no matter. */
void scopes_enter(struct scopes *scopes, uint32_t stream, uint64_t id, const char *name,
                  size_t name_size);
void scopes_leave(struct scopes *scopes, uint32_t stream, uint64_t id);

/* The path that the stream's thread is in. */
uint32_t scopes_path(const struct scopes *scopes, uint32_t stream);

/* The innermost scope's name of a path that is not SCOPES_NONE. */
const char *scopes_name(const struct scopes *scopes, uint32_t path);
/* Whether some scope of the path has this name. */
bool scopes_has(const struct scopes *scopes, uint32_t path, const char *name);

#endif
