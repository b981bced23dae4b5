/* SPDX-License-Identifier: MIT */
/* metric.c: see metric.h. */
#include "analyze/report/metric.h"

#include "analyze/rows/number.h"

#include <string.h>

struct description {
    const char *name;
    const char *fact;
    const char *word;
    const char *synonyms[2];
    const char *title;
    const char *live_title; /* of a program that still runs */
    const char *main_heading;
    const char *side_heading;
    bool main_is_bytes;
    bool side_is_bytes;
};

static const struct description descriptions[METRIC_ALL] = {
    [METRIC_MAXIMUM] = {"maximum",
                        "peak_bytes",
                        "peak",
                        {"maximum"},
                        "Peak: held when the program held most",
                        "Peak: held when the program held most so far",
                        "bytes",
                        "total allocations", /* how many were held then is not known */
                        true,
                        false},
    [METRIC_LEAKED] = {"leaked",
                       "live_bytes",
                       "leaked",
                       {"live"},
                       "Leaked: never freed",
                       "Live: held now",
                       "bytes",
                       "blocks",
                       true,
                       false},
    [METRIC_CUMULATIVE] = {"cumulative",
                           "total_bytes",
                           "allocated",
                           {"cumulative", "total"},
                           "Allocated: all that was ever allocated",
                           "Allocated: all that was allocated so far",
                           "bytes",
                           "allocations",
                           true,
                           false},
    [METRIC_ALLOCATIONS] = {"allocations",
                            "allocations",
                            "allocations",
                            {NULL},
                            "Allocations: how many",
                            "Allocations: how many so far",
                            "allocations",
                            "bytes",
                            false,
                            true},
    [METRIC_TEMPORARY] = {"temporary",
                          "temporary",
                          "temporary",
                          {NULL},
                          "Temporary: freed before their thread's next allocation",
                          "Temporary: freed before their thread's next allocation",
                          "temporary",
                          "of",
                          false,
                          false},
    [METRIC_SHUTDOWN] = {"shutdown",
                         "live_bytes",
                         "shutdown",
                         {NULL},
                         "Shutdown: never freed, or only when the program ended",
                         "Shutdown: never freed, or only when the program ended",
                         "bytes",
                         "blocks",
                         true,
                         false},
    [METRIC_SHORT] = {"short-lived",
                      "temporary",
                      "short-lived",
                      {NULL},
                      "Short-lived: freed soon",
                      "Short-lived: freed soon",
                      "short-lived",
                      "of",
                      false,
                      false},
};

struct cost metric_cost(enum metric metric, const struct model_context *context) {
    switch (metric) {
    case METRIC_MAXIMUM:
        return (struct cost){context->peak_bytes, context->allocations};
    case METRIC_LEAKED:
    case METRIC_SHUTDOWN:
        return (struct cost){context->live_bytes, context->live_blocks};
    case METRIC_CUMULATIVE:
        return (struct cost){context->total_bytes, context->allocations};
    case METRIC_ALLOCATIONS:
        return (struct cost){context->allocations, context->total_bytes};
    default:
        return (struct cost){context->temporary, context->allocations};
    }
}

struct model_context metric_whole(const struct model *model) {
    const struct model_totals *totals = &model->totals;
    return (struct model_context){.peak_bytes = totals->maximum_bytes,
                                  .live_bytes = totals->live_bytes,
                                  .live_blocks = totals->live_blocks,
                                  .total_bytes = totals->total_bytes,
                                  .allocations = totals->allocations,
                                  .temporary = totals->temporary};
}

struct cost metric_total(enum metric metric, const struct model *model) {
    const struct model_context all = metric_whole(model);
    return metric_cost(metric, &all);
}

double metric_error(enum metric metric, const struct model *model) {
    const struct model_errors *errors = &model->recording.errors;
    switch (metric) {
    case METRIC_MAXIMUM:
        return errors->maximum_bytes;
    case METRIC_LEAKED:
        return errors->live_bytes;
    case METRIC_CUMULATIVE:
        return errors->total_bytes;
    case METRIC_ALLOCATIONS:
        return errors->allocations;
    default:
        return 0;
    }
}

static uint64_t add(uint64_t left, uint64_t right) {
    uint64_t sum;
    return __builtin_add_overflow(left, right, &sum) ? UINT64_MAX : sum;
}

void metric_add(struct cost *to, struct cost cost) {
    to->main = add(to->main, cost.main);
    to->side = add(to->side, cost.side);
}

const char *metric_name(enum metric metric) {
    return descriptions[metric].name;
}

const char *metric_fact(enum metric metric) {
    return descriptions[metric].fact;
}

const char *metric_word(enum metric metric) {
    return descriptions[metric].word;
}

bool metric_named(const char *text, enum metric *metric) {
    for (enum metric i = 0; i < METRIC_COUNT; i++) {
        const struct description *one = &descriptions[i];
        if (strcmp(text, one->word) == 0 ||
            (one->synonyms[0] != NULL && strcmp(text, one->synonyms[0]) == 0) ||
            (one->synonyms[1] != NULL && strcmp(text, one->synonyms[1]) == 0)) {
            *metric = i;
            return true;
        }
    }
    return false;
}

const char *metric_title(enum metric metric, const struct model *model) {
    if (metric == METRIC_LEAKED && model_is_left(model)) {
        return "Live: held when the program was detached from";
    }
    return model->live ? descriptions[metric].live_title : descriptions[metric].title;
}

const char *metric_main_heading(enum metric metric) {
    return descriptions[metric].main_heading;
}

const char *metric_side_heading(enum metric metric) {
    return descriptions[metric].side_heading;
}

unsigned char metric_side_width(enum metric metric) {
    enum { USUAL = 12 };
    size_t needed = strlen(metric_side_heading(metric)) + 1;
    return needed > USUAL ? (unsigned char)needed : USUAL;
}

struct table_column metric_main_column(enum metric metric) {
    return (struct table_column){"cost", metric_main_heading(metric), metric_main_kind(metric), 0};
}

struct table_column metric_side_column(enum metric metric) {
    bool is_share = metric == METRIC_TEMPORARY || metric == METRIC_SHORT;
    const char *heading = metric_side_heading(metric);
    return (struct table_column){is_share                   ? "allocations"
                                 : metric == METRIC_MAXIMUM ? "total_allocations"
                                                            : heading,
                                 heading, metric_side_kind(metric), metric_side_width(metric)};
}

bool metric_main_is_bytes(enum metric metric) {
    return descriptions[metric].main_is_bytes;
}

bool metric_side_is_bytes(enum metric metric) {
    return descriptions[metric].side_is_bytes;
}

const char *metric_main_text(enum metric metric, struct number *buffer, struct cost cost) {
    return descriptions[metric].main_is_bytes ? number_bytes(buffer, cost.main)
                                              : number_count(buffer, cost.main);
}

const char *metric_side_text(enum metric metric, struct number *buffer, struct cost cost) {
    return descriptions[metric].side_is_bytes ? number_bytes(buffer, cost.side)
                                              : number_count(buffer, cost.side);
}
