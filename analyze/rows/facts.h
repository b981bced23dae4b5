/* SPDX-License-Identifier: MIT */
/*
 * facts.h: what is told of a profile or recording as a whole, each fact once: what it is called in
 * JSON, SQL and HTTP, its label for people, its unit and where it is found: rows_summary, a thing
 * (rows.h) of which there is one. Its record is the model, or one with no more than a header.
 *
 * Called by analyze/report, cli/info and web/server; SQL has most of it as the table `summary`.
 * What one process of a run, one thread or one call path has of these is called the same there.
 */
#ifndef ANALYZE_ROWS_FACTS_H
#define ANALYZE_ROWS_FACTS_H

#include "analyze/rows/rows.h"

enum fact {
    FACT_PROGRAM,
    FACT_PID,
    FACT_DURATION,
    FACT_PEAK_BYTES,
    FACT_PEAK_ERROR_BYTES,
    FACT_LIVE_BYTES,
    FACT_LIVE_BLOCKS,
    FACT_TOTAL_BYTES,
    FACT_ALLOCATIONS,
    FACT_FREES,
    FACT_FREED_BYTES,
    FACT_TEMPORARY,
    FACT_CONTEXTS,
    FACT_LOST,
    FACT_EVENTS,
    FACT_DAMAGE,
    FACT_PEAK_RESIDENT,
    FACT_OWN_RESIDENT,
    FACT_SAMPLE_BYTES,
    FACT_PEAK_STANDARD_ERROR,
    FACT_LIVE_STANDARD_ERROR,
    FACT_TOTAL_STANDARD_ERROR,
    FACT_ALLOCATIONS_STANDARD_ERROR,
    FACT_PARENT_PID,
    FACT_MERGED,
    FACT_STARTED,
    FACT_END,
    FACT_PEAK_TIME,
    FACT_BEFORE_BYTES,
    FACT_BEFORE_FREED_BYTES,
    FACT_BEFORE_FREES,
    FACT_THREADS,
    FACT_COUNT
};

/* What people read before it. */
static inline const char *fact_label(enum fact fact) {
    return rows_summary.columns[fact].heading;
}

/* Some of them as members of the object that is open: rows_members(). */
void facts_put(struct jsonwriter *json, const struct model *model, const unsigned char *facts,
               size_t count);
/* "standard_errors" of a sample: an object that has them by the names of what they are errors of.
 */
void facts_put_errors(struct jsonwriter *json, const struct model *model);

#endif
