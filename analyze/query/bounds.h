/* SPDX-License-Identifier: MIT */
/*
 * bounds.h: what constraints of SQL (size >= 100, thread = 2, id IN (...)) leave of the numbers of
 * a column. A constraint that a bound cannot hold exactly makes it wider, never narrower: SQLite
 * looks at every row again.
 *
 * Called by analyze/query/allocations. Values.
 */
#ifndef ANALYZE_QUERY_BOUNDS_H
#define ANALYZE_QUERY_BOUNDS_H

#include "analyze/filter/selection.h"

#include <sqlite3.h>

/* least <= value <= most; nothing if least > most. */
#define BOUNDS_ANY ((struct selection_range){0, UINT64_MAX})

static inline bool bounds_hold(struct selection_range range, uint64_t value) {
    return range.least <= value && value <= range.most;
}
static inline bool bounds_are_empty(struct selection_range range) {
    return range.least > range.most;
}
static inline bool bounds_are_any(struct selection_range range) {
    return range.least == 0 && range.most == UINT64_MAX;
}

struct selection_range bounds_both(struct selection_range left, struct selection_range right);

/* One letter for an operator of SQLITE_INDEX_CONSTRAINT_*: "=", "<", "l" (<=), ">", "g" (>=); 0:
 * none that bounds. */
char bounds_letter(unsigned char operator);

/* What `letter value` leaves of the range. */
struct selection_range bounds_narrow(struct selection_range range, char letter,
                                     sqlite3_value *value);
/* What `IN (values)` leaves: from the least of them to the most. */
struct selection_range bounds_narrow_in(struct selection_range range, sqlite3_value *values);

#endif
