/* SPDX-License-Identifier: MIT */
/* csv.c: one line for each context, with a heading (RFC 4180). */
#include "analyze/report/csvtext.h"

#include <inttypes.h>

int report_csv(const struct report *report) {
    const struct model *model = report->model;
    fputs("id,hash,class,live_bytes,live_blocks,peak_bytes,total_bytes,allocations,frees,temporary,"
          "path\r\n",
          report->out);
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        fprintf(report->out, "%" PRIu32 ",%016" PRIx64 ",", context->id,
                model_hash(model, context->id));
        csvtext_put(report->out, model_class_name(model, context));
        fprintf(report->out,
                ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                ",",
                context->live_bytes, context->live_blocks, context->peak_bytes,
                context->total_bytes, context->allocations, context->frees, context->temporary);
        csvtext_put_path(report->out, calltree_walk(report, context->path), report->options.depth);
        fputs("\r\n", report->out);
    }
    return 0;
}
