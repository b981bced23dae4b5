/* SPDX-License-Identifier: MIT */
/* facts.c: see facts.h. */
#include "analyze/rows/facts.h"

#include "analyze/rows/jsonwriter.h"

ROWS_CELL(fact_events, struct model, model,
          table_number_if(model->recording.present, model->recording.events))

ROWS_CELL(fact_sample, struct model, model,
          table_number_if(model_is_estimate(model), model->recording.sample_bytes))

ROWS_CELL(fact_end, struct model, model, table_text(model_end_word(model)))

#define OF(member) ROWS_FIELD(struct model, member)
static const struct table_column fact_columns[FACT_COUNT] = {
    [FACT_PROGRAM] = {"program", "program", TABLE_TEXT, 0, "program", "the executable",
                      OF(header.executable)},
    [FACT_PID] = {"pid", "process", TABLE_COUNT, 0, "pid", "", OF(header.pid)},
    [FACT_DURATION] = {"duration_ns", "ran for", TABLE_DURATION, 0, "duration",
                       "ns from the start to the latest time known", OF(now_ns)},
    [FACT_PEAK_BYTES] = {"peak_bytes", "peak", TABLE_BYTES, 0, "peak_bytes",
                         "held when the program held most", OF(totals.maximum_bytes)},
    [FACT_PEAK_ERROR_BYTES] = {"peak_error_bytes", NULL, TABLE_BYTES, 0, "peak_error_bytes",
                               "bound of its error; 0 with one thread",
                               OF(totals.maximum_error_bytes)},
    [FACT_LIVE_BYTES] = {"live_bytes", "live", TABLE_BYTES, 0, "live_bytes", "not freed at the end",
                         OF(totals.live_bytes)},
    [FACT_LIVE_BLOCKS] = {"live_blocks", NULL, TABLE_COUNT, 0, "live_blocks", "",
                          OF(totals.live_blocks)},
    [FACT_TOTAL_BYTES] = {"total_bytes", NULL, TABLE_BYTES, 0, "total_bytes", "ever allocated",
                          OF(totals.total_bytes)},
    [FACT_ALLOCATIONS] = {"allocations", "allocations", TABLE_COUNT, 0, "allocations",
                          "reallocations included", OF(totals.allocations)},
    [FACT_FREES] = {"frees", "frees", TABLE_COUNT, 0, "frees", "reallocations included",
                    OF(totals.frees)},
    [FACT_FREED_BYTES] = {"freed_bytes", NULL, TABLE_BYTES, 0, "freed_bytes", "",
                          OF(totals.freed_bytes)},
    [FACT_TEMPORARY] = {"temporary", "temporary", TABLE_COUNT, 0, "temporary",
                        "freed by their thread before its next allocation", OF(totals.temporary)},
    [FACT_CONTEXTS] = {"contexts", "call paths", TABLE_COUNT, 0, "contexts",
                       "call paths of the heap", OF(totals.context_count)},
    [FACT_LOST] = {"lost", "lost", TABLE_COUNT, 0, "lost",
                   "what could not be kept; 0: everything is exact", OF(totals.lost)},
    [FACT_EVENTS] = {"events", "events", TABLE_COUNT, 0, "events",
                     "of a recording; NULL: a profile", .cell = fact_events},
    [FACT_DAMAGE] = {"damage", "file", TABLE_TEXT, 0, "damage",
                     "where the file breaks; NULL: it is whole", OF(damage), .none = TABLE_ZERO},
    [FACT_PEAK_RESIDENT] = {"peak_resident_bytes", "resident", TABLE_BYTES, 0,
                            "peak_resident_bytes",
                            "the process's, as the kernel counts; NULL: not known",
                            OF(header.peak_resident_bytes), .none = TABLE_ZERO},
    [FACT_OWN_RESIDENT] =
        {"own_resident_bytes", NULL, TABLE_BYTES, 0, "own_resident_bytes",
         "MemTrace's own part of what is resident, when looked at last; NULL: not known",
         OF(header.own_resident_bytes), .none = TABLE_ZERO},
    [FACT_SAMPLE_BYTES] = {"sample_bytes", "sampled", TABLE_BYTES, 0, "sample_bytes",
                           "of a sample: one allocation in so many bytes; NULL: all counted",
                           .cell = fact_sample},
    [FACT_PEAK_STANDARD_ERROR] = {"peak_bytes", NULL, TABLE_REAL, 0, "peak_bytes_error",
                                  "of a sample: standard errors of the sums; else 0",
                                  OF(recording.errors.maximum_bytes)},
    [FACT_LIVE_STANDARD_ERROR] = {"live_bytes", NULL, TABLE_REAL, 0, "live_bytes_error", "",
                                  OF(recording.errors.live_bytes)},
    [FACT_TOTAL_STANDARD_ERROR] = {"total_bytes", NULL, TABLE_REAL, 0, "total_bytes_error", "",
                                   OF(recording.errors.total_bytes)},
    [FACT_ALLOCATIONS_STANDARD_ERROR] = {"allocations", NULL, TABLE_REAL, 0, "allocations_error",
                                         "", OF(recording.errors.allocations)},
    [FACT_PARENT_PID] = {"parent_pid", NULL, TABLE_COUNT, 0, OF(header.parent_pid)},
    [FACT_MERGED] = {"merged", "profiles in it", TABLE_COUNT, 0, OF(header.merged)},
    [FACT_STARTED] = {"start_realtime_ns", "started", TABLE_COUNT, 0, OF(header.start_realtime_ns)},
    [FACT_END] = {"end", NULL, TABLE_WORD, 0, .cell = fact_end},
    [FACT_PEAK_TIME] = {"peak_ns", NULL, TABLE_DURATION, 0, OF(totals.maximum_ns)},
    [FACT_BEFORE_BYTES] = {"before_bytes", "before attach", TABLE_BYTES, 0,
                           OF(totals.before_bytes)},
    [FACT_BEFORE_FREED_BYTES] = {"before_freed_bytes", NULL, TABLE_BYTES, 0,
                                 OF(totals.before_freed_bytes)},
    [FACT_BEFORE_FREES] = {"before_frees", NULL, TABLE_COUNT, 0, OF(totals.before_frees)},
    [FACT_THREADS] = {"threads", "threads", TABLE_COUNT, 0, OF(header.thread_count)},
};
#undef OF

static size_t count_facts_rows(const struct rows_of *of) {
    (void)of;
    return 1;
}

static const void *facts_record(const struct rows_of *of, size_t row, void *room) {
    (void)row;
    (void)room;
    return of->model;
}

const struct rows rows_summary = {
    .name = "summary",
    .about = "the totals of the heap, in one row",
    ROWS_COLUMNS(fact_columns),
    .count = count_facts_rows,
    .record = facts_record,
};

void facts_put(struct jsonwriter *json, const struct model *model, const unsigned char *facts,
               size_t count) {
    const struct rows_of of = {.whole = model, .model = model};
    rows_members(json, &rows_summary, &of, model, facts, count);
}

void facts_put_errors(struct jsonwriter *json, const struct model *model) {
    static const unsigned char errors[] = {FACT_PEAK_STANDARD_ERROR, FACT_LIVE_STANDARD_ERROR,
                                           FACT_TOTAL_STANDARD_ERROR,
                                           FACT_ALLOCATIONS_STANDARD_ERROR};
    jsonwriter_map(json, "standard_errors");
    facts_put(json, model, errors, sizeof errors);
    jsonwriter_end_map(json);
}
