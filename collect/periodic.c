/* SPDX-License-Identifier: MIT */
/* periodic.c: the periodic report: when it is due, what it says, and where it goes. See periodic.h.
 */
#include "collect/periodic.h"

#include "analyze/base/array.h"
#include "analyze/base/filemode.h"
#include "analyze/base/pathname.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The call paths ---- */

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

/* ---- The report ---- */

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

/* ---- Where it goes ---- */

void logfile_start(struct logfile *log, const char *path, uint64_t most_bytes) {
    *log = (struct logfile){.fd = -1, .most_bytes = most_bytes};
    snprintf(log->path, sizeof log->path, "%s", path);
}

static void logfile_open(struct logfile *log) {
    log->fd = open(log->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, filemode());
    if (log->fd < 0) {
        char line[sizeof log->path + 200];
        snprintf(line, sizeof line, "memtrace: cannot write the log %s: %s; reports go to stderr",
                 log->path, strerror(errno));
        dprintf(STDERR_FILENO, "%s\n", make_safe(line));
        log->fd = STDERR_FILENO;
    }
}

/* Another program with the same log may have begun it anew: then that one is gone on with. */
static void logfile_begin_anew(struct logfile *log, const struct stat *ours) {
    char old[sizeof log->path + 2];
    struct stat named;
    snprintf(old, sizeof old, "%s.1", log->path);
    if (stat(log->path, &named) == 0 && named.st_ino == ours->st_ino &&
        named.st_dev == ours->st_dev && rename(log->path, old) != 0) {
        return;
    }
    close(log->fd);
    logfile_open(log);
}

static void logfile_make_room(struct logfile *log, size_t size) {
    struct stat status;
    if (log->most_bytes != 0 && log->fd != STDERR_FILENO && fstat(log->fd, &status) == 0 &&
        S_ISREG(status.st_mode) && status.st_size > 0 &&
        (uint64_t)status.st_size + size > log->most_bytes) {
        logfile_begin_anew(log, &status);
    }
}

int logfile_descriptor(struct logfile *log, size_t size) {
    if (log->fd < 0 && log->path[0] != '\0') {
        logfile_open(log);
    } else if (log->fd < 0) {
        log->fd = STDERR_FILENO;
    }
    logfile_make_room(log, size);
    return log->fd;
}

void logfile_end(struct logfile *log) {
    if (log->fd > STDERR_FILENO) {
        close(log->fd);
    }
    log->fd = -1;
}
