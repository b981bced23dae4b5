/* SPDX-License-Identifier: MIT */
/*
 * spill.h: the temporary files of one SQLite connection (sorts, temporary tables), which together
 * grow up to a limit: a layer before SQLite's own access to files, which counts.
 *
 * Called by query. A spill belongs to the thread of its session.
 */
#ifndef ANALYZE_QUERY_SPILL_H
#define ANALYZE_QUERY_SPILL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

struct spill {
    sqlite3_vfs vfs; /* SQLite's own, but for xOpen */
    sqlite3_vfs *own;
    char name[32];
    char folder[256]; /* where the files are, as far as can be known */
    uint64_t bytes_most;
    uint64_t bytes; /* of all that are open */
    bool was_full;  /* a write was refused; whoever reads it resets it */
};

/* As sqlite3_open(), but with half of what the disk of the temporary files has free for them. The
 * spill is the connection's until that is closed. An SQLite error, or SQLITE_OK. */
int spill_open(struct spill *spill, const char *path, sqlite3 **db);
/* No more than that from now on. */
void spill_limit(struct spill *spill, uint64_t bytes_most);

#endif
