/* SPDX-License-Identifier: MIT */
/*
 * runtable.h: the processes that a report is about, one after the other: those of a run, or the one
 * of a file and its light children. Called by analyze/report and analyze/query. Any thread.
 */
#ifndef ANALYZE_REPORT_RUNTABLE_H
#define ANALYZE_REPORT_RUNTABLE_H

#include "analyze/model/model.h"
#include "analyze/read/run.h"

/* run NULL: a file alone. */
size_t runtable_count(const struct run *run, const struct model *model);
/* Its texts are those of the run or the model. */
struct run_process runtable_at(const struct run *run, const struct model *model, size_t row);
/* "ended", "execed", "killed" or "running" */
const char *runtable_end(enum run_end end);

#endif
