/* SPDX-License-Identifier: MIT */
/* periodic.c: the periodic report. See periodic.h. */
#include "collect/periodic.h"

#include "analyze/rows/number.h"
#include "collect/topn.h"

#include <stdio.h>
#include <stdlib.h>

void periodic_start(struct periodic *periodic, const struct memtrace_header *header) {
    *periodic = (struct periodic){
        .every_ns = header->every_ns,
        .churn_limit_bytes = header->churn_limit_bytes,
        .top = header->top,
        .next_ns = header->every_ns,
    };
}

bool periodic_due(const struct periodic *periodic, const struct periodic_moment *moment) {
    return (periodic->every_ns != 0 && moment->time_ns >= periodic->next_ns) ||
           (periodic->churn_limit_bytes != 0 &&
            moment->churn_bytes - periodic->churn_bytes >= periodic->churn_limit_bytes) ||
           moment->requests != periodic->requests;
}

/* Live bytes of one class, with a word before it; nothing where the program has none. */
static void print_class(FILE *out, const struct model *model, enum model_class class,
                        const char *word) {
    uint64_t bytes = 0;
    struct number n;
    for (size_t i = 0; i < model->context_count; i++) {
        bytes += model->contexts[i].class == class ? model->contexts[i].live_bytes : 0;
    }
    if (bytes != 0) {
        fprintf(out, ", %s %s", word, number_bytes(&n, bytes));
    }
}

static void print_header(FILE *out, const struct periodic *periodic,
                         const struct periodic_moment *moment, const struct model *model,
                         size_t shown, size_t live) {
    struct number n[4];
    fprintf(out, "memtrace: snapshot %lu, pid %u, at %.1f s, churn %s", periodic->number,
            model->header.pid, (double)moment->time_ns / 1e9,
            number_bytes(&n[0], moment->churn_bytes - periodic->churn_bytes));
    if (periodic->churn_limit_bytes != 0) {
        fprintf(out, " / %s", number_bytes(&n[1], periodic->churn_limit_bytes));
    }
    fprintf(out, ", live %s", number_bytes(&n[2], model->totals.live_bytes));
    if (model->recording.sampled) {
        fprintf(out, " +- %s (sampled)",
                number_bytes(&n[3], (uint64_t)model->recording.errors.live_bytes));
    }
    print_class(out, model, MODEL_MAPPING, "mapped");
    print_class(out, model, MODEL_POOL, "in pools");
    fprintf(out, ", RSS %s, %zu of %zu live call paths, largest last\n",
            number_bytes(&n[3], moment->resident_bytes), shown, live);
}

char *periodic_report(struct periodic *periodic, const struct periodic_moment *moment,
                      struct model *model) {
    struct topn_row *rows = NULL;
    size_t count = 0;
    size_t live = 0;
    size_t size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);
    if (periodic->symbolizer == NULL) {
        periodic->symbolizer = symbolizer_open(NULL, NULL);
    }
    periodic->number++;
    if (out != NULL &&
        topn_choose(model, periodic->previous, periodic->top, &rows, &count, &live) == 0) {
        print_header(out, periodic, moment, model, count, live);
        topn_print(out, model, rows, count, periodic->symbolizer);
    }
    if (out != NULL && fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    free(rows);
    model_free(periodic->previous);
    periodic->previous = model;
    periodic->churn_bytes = moment->churn_bytes;
    periodic->requests = moment->requests;
    if (periodic->every_ns != 0 && moment->time_ns >= periodic->next_ns) {
        /* The next multiple of the interval, however long this report took. */
        periodic->next_ns = (moment->time_ns / periodic->every_ns + 1) * periodic->every_ns;
    }
    return text;
}

void periodic_end(struct periodic *periodic) {
    model_free(periodic->previous);
    symbolizer_close(periodic->symbolizer);
    *periodic = (struct periodic){0};
}
