/* SPDX-License-Identifier: MIT */
/*
 * metric.h: what a tree or table is about: which count of a context it adds up, and which it shows
 * beside it.
 */
#ifndef ANALYZE_REPORT_METRIC_H
#define ANALYZE_REPORT_METRIC_H

#include "analyze/rows/table.h"

enum metric {
    METRIC_MAXIMUM,     /* bytes held when the program held most */
    METRIC_LEAKED,      /* bytes held at the end (or now) */
    METRIC_CUMULATIVE,  /* bytes ever allocated */
    METRIC_ALLOCATIONS, /* number of allocations */
    METRIC_TEMPORARY,   /* number of allocations freed before the thread's next allocation */
    METRIC_COUNT,
    /* Of models that detail_submodel() (model/detail.h) made, and of them alone. */
    METRIC_SHUTDOWN = METRIC_COUNT, /* bytes never freed, or freed only when the program ended */
    METRIC_SHORT,                   /* number of allocations freed within some time */
    METRIC_ALL
};

/* main orders and gives the percentage; side stands beside it. */
struct cost {
    uint64_t main;
    uint64_t side;
};

struct cost metric_cost(enum metric metric, const struct model_context *context);
/* The heap's totals as one context, without a call path. */
struct model_context metric_whole(const struct model *model);
struct cost metric_total(enum metric metric, const struct model *model);
/* Of a sample: the standard error of the total's main number; 0: counted, or not known. */
double metric_error(enum metric metric, const struct model *model);
void metric_add(struct cost *to, struct cost cost);

/* In JSON and CSV: "maximum", "leaked", "cumulative", ... */
const char *metric_name(enum metric metric);
/* What is added up, as a fact of the whole and as a column of call paths: "peak_bytes", ... */
const char *metric_fact(enum metric metric);
/* For people: "peak", "leaked", "allocated", ... */
const char *metric_word(enum metric metric);
/* What options and budgets call it: its word or a synonym. false: there is none such, *metric is
 * as it was. */
bool metric_named(const char *text, enum metric *metric);
/* The words, for messages. */
#define METRIC_WORDS   "peak, leaked, allocated, allocations or temporary"
#define METRIC_CHOICES "peak|leaked|allocated|allocations|temporary"
/* "Leaked: what was never freed"; of a running program "Live: ..." */
const char *metric_title(enum metric metric, const struct model *model);
/* The columns of the two numbers in a table. */
struct table_column metric_main_column(enum metric metric);
struct table_column metric_side_column(enum metric metric);
/* Their headings: "bytes", "blocks" */
const char *metric_main_heading(enum metric metric);
const char *metric_side_heading(enum metric metric);
/* What the column of the second number is wide for people: table_column.width. */
unsigned char metric_side_width(enum metric metric);

bool metric_main_is_bytes(enum metric metric);
bool metric_side_is_bytes(enum metric metric);
static inline enum table_kind metric_main_kind(enum metric metric) {
    return metric_main_is_bytes(metric) ? TABLE_BYTES : TABLE_COUNT;
}
static inline enum table_kind metric_side_kind(enum metric metric) {
    return metric_side_is_bytes(metric) ? TABLE_BYTES : TABLE_COUNT;
}

struct number;
/* The two numbers, spelled: bytes as "1.2 MiB", counts as "1,234". */
const char *metric_main_text(enum metric metric, struct number *buffer, struct cost cost);
const char *metric_side_text(enum metric metric, struct number *buffer, struct cost cost);

#endif
