/* SPDX-License-Identifier: MIT */
/* topn.c: choosing and spelling the largest call paths. See topn.h. */
#include "collect/topn.h"

#include "analyze/base/array.h"
#include "analyze/base/pathname.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"

#include <inttypes.h>
#include <stdlib.h>

/* From this many rows on, names are looked up in parallel. */
enum { PREPARE_ROWS = 200 };

static int largest_first(const void *left, const void *right) {
    const struct model_context *a = ((const struct topn_row *)left)->context;
    const struct model_context *b = ((const struct topn_row *)right)->context;
    if (a->live_bytes != b->live_bytes) {
        return a->live_bytes < b->live_bytes ? 1 : -1;
    }
    if (a->total_bytes != b->total_bytes) {
        return a->total_bytes < b->total_bytes ? 1 : -1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

/* A counter that seems to have shrunk (a context id used anew after exec) starts from zero. */
static uint64_t since(uint64_t now, uint64_t before) {
    return now >= before ? now - before : now;
}

static void fill_row(struct topn_row *row, const struct model_context *context,
                     const struct model *previous) {
    static const struct model_context nothing;
    const struct model_context *old = model_find(previous, context->id);
    old = old != NULL ? old : &nothing;
    row->context = context;
    row->interval_bytes = since(context->total_bytes, old->total_bytes);
    row->interval_allocations = since(context->allocations, old->allocations);
    row->interval_freed_bytes = since(context->freed_bytes, old->freed_bytes);
    row->interval_frees = since(context->frees, old->frees);
}

int topn_choose(const struct model *now, const struct model *previous, size_t limit,
                struct topn_row **rows, size_t *count, size_t *live) {
    *count = 0;
    *live = 0;
    *rows = malloc((now->context_count + 1) * sizeof **rows);
    if (*rows == NULL) {
        return -1;
    }
    for (size_t i = 0; i < now->context_count; i++) {
        if (now->contexts[i].live_bytes != 0) {
            (*rows)[(*live)++].context = &now->contexts[i];
        }
    }
    qsort(*rows, *live, sizeof **rows, largest_first);
    *count = limit != 0 && limit < *live ? limit : *live;
    for (size_t i = 0; i < *count; i++) {
        fill_row(&(*rows)[i], (*rows)[i].context, previous);
    }
    return 0;
}

static struct symbol_module symbol_module(const struct model_module *module) {
    return (struct symbol_module){
        .path = module->path, .build_id = module->build_id, .build_id_size = module->build_id_size};
}

static void print_frame(FILE *out, const struct model *model, uint64_t frame,
                        struct symbolizer *symbolizer) {
    struct model_place place = model_place(model, frame);
    struct symbol_frames frames = {0};
    const struct model_module *module = &model->modules[place.module];
    if (place.module != 0 && symbolizer != NULL) {
        struct symbol_module wanted = symbol_module(module);
        symbolizer_resolve(symbolizer, &wanted, place.offset, &frames);
    }
    if (frames.count == 0 && place.module != 0) {
        print_safe(out, "      %s+0x%" PRIx64 "\n", module->path[0] != '\0' ? module->path : "?",
                   place.offset);
    } else if (frames.count == 0) {
        fprintf(out, "      0x%" PRIx64 "\n", place.address);
    }
    for (size_t i = 0; i < frames.count; i++) {
        const struct symbol_frame *one = &frames.frames[i];
        print_safe(out, "      %s", one->function != NULL ? one->function : "?");
        if (one->file != NULL && one->line != 0) {
            print_safe(out, " at %s:%u", one->file, one->line);
        } else if (one->file != NULL) {
            print_safe(out, " at %s", one->file);
        } else {
            print_safe(out, " in %s", pathname_base(module->path));
        }
        fputs(one->inlined ? " (inlined)\n" : "\n", out);
    }
}

static void print_path(FILE *out, const struct model *model, const struct model_context *context,
                       struct symbolizer *symbolizer) {
    if (context->class != MODEL_HEAP) {
        print_safe(out, "      [%s]\n", model_class_name(model, context));
    }
    if (context->path == 0) {
        fputs("      [path unknown]\n", out);
    }
    for (uint32_t id = context->path; id != 0; id = model->nodes[id].parent) {
        print_frame(out, model, model->nodes[id].frame, symbolizer);
    }
}

static void print_row(FILE *out, const struct model *model, const struct topn_row *row, size_t rank,
                      struct symbolizer *symbolizer) {
    const struct model_context *context = row->context;
    struct number n[10];
    fprintf(out,
            "#%zu live %s in %s; interval +%s (%s) -%s (%s); total +%s (%s) -%s (%s); path "
            "%016" PRIx64 "\n",
            rank, number_bytes(&n[0], context->live_bytes),
            number_items(&n[1], context->live_blocks, "block"),
            number_bytes(&n[2], row->interval_bytes),
            number_count(&n[3], row->interval_allocations),
            number_bytes(&n[4], row->interval_freed_bytes),
            number_count(&n[5], row->interval_frees), number_bytes(&n[6], context->total_bytes),
            number_count(&n[7], context->allocations), number_bytes(&n[8], context->freed_bytes),
            number_count(&n[9], context->frees), model_hash(model, context->id));
    print_path(out, model, context, symbolizer);
}

/* Looks all places of the rows up at once. */
static void topn_prepare(const struct model *model, const struct topn_row *rows, size_t count,
                         struct symbolizer *symbolizer) {
    struct symbol_module *modules = malloc((model->module_count + 1) * sizeof *modules);
    struct symbol_address *addresses = NULL;
    size_t used = 0;
    size_t room = 0;
    bool whole = modules != NULL;
    for (size_t i = 0; whole && i < model->module_count; i++) {
        modules[i] = symbol_module(&model->modules[i]);
    }
    for (size_t i = 0; whole && i < count; i++) {
        for (uint32_t id = rows[i].context->path; id != 0; id = model->nodes[id].parent) {
            struct model_place place = model_place(model, model->nodes[id].frame);
            if (array_grow(&addresses, &room, used, sizeof *addresses) != 0) {
                whole = false;
                break;
            }
            if (place.module != 0) {
                addresses[used++] = (struct symbol_address){place.module, place.offset};
            }
        }
    }
    if (whole) {
        symbolizer_prepare(symbolizer, modules, model->module_count, addresses, used, NULL, NULL,
                           NULL);
    }
    free(addresses);
    free(modules);
}

void topn_print(FILE *out, const struct model *model, const struct topn_row *rows, size_t count,
                struct symbolizer *symbolizer) {
    if (symbolizer != NULL && count >= PREPARE_ROWS) {
        topn_prepare(model, rows, count, symbolizer);
    }
    for (size_t rank = count; rank >= 1; rank--) {
        print_row(out, model, &rows[rank - 1], rank, symbolizer);
    }
}
