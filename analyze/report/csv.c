/* SPDX-License-Identifier: MIT */
/* csv.c: one line for each context, with a heading (RFC 4180). */
#include "analyze/report/calltree.h"

#include <inttypes.h>

/* A field of any text: inside quotes, quotes doubled. */
static void put_text(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', out);
        }
        fputc(*text, out);
    }
}

static void put_path(const struct report *report, const struct model_context *context) {
    struct calltree_walk walk = calltree_walk(report, context->path);
    fputc('"', report->out);
    for (; walk.frame != NULL; calltree_walk_next(&walk)) {
        char name[2048];
        fputs(walk.steps != 0 ? "; " : "", report->out);
        put_text(report->out, names_spell(walk.frame, name, sizeof name));
        if (walk.frame->file != NULL) {
            fputs(" at ", report->out);
            put_text(report->out, walk.frame->file);
            fprintf(report->out, ":%u", walk.frame->line);
        }
    }
    fputc('"', report->out);
}

int report_csv(const struct report *report) {
    const struct model *model = report->model;
    fputs("id,hash,class,live_bytes,live_blocks,peak_bytes,total_bytes,allocations,frees,temporary,"
          "path\r\n",
          report->out);
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        fprintf(report->out, "%" PRIu32 ",%016" PRIx64 ",\"", context->id,
                model_hash(model, context->id));
        put_text(report->out, model_class_name(model, context));
        fprintf(report->out,
                "\",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                ",%" PRIu64 ",",
                context->live_bytes, context->live_blocks, context->peak_bytes,
                context->total_bytes, context->allocations, context->frees, context->temporary);
        put_path(report, context);
        fputs("\r\n", report->out);
    }
    return 0;
}
