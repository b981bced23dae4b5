/* SPDX-License-Identifier: MIT */
/* uncounted.c: memory that went past the counters. See uncounted.h. */
#include "analyze/model/uncounted.h"

#include "analyze/base/pathname.h"
#include "analyze/symbol/debugfile.h"
#include "analyze/symbol/programfile.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_mappings(const struct model *model) {
    for (size_t i = 0; i < model->context_count; i++) {
        if (model->contexts[i].class == MODEL_MAPPING) {
            return true;
        }
    }
    return false;
}

/* ---- The program's own file ---- */

/* A program of the same path here is not that of another machine. */
static bool find_in_file(const struct memtrace_header *header, struct allocators *in_file) {
    char path[sizeof header->executable];
    char found[PATH_MAX];
    snprintf(path, sizeof path, "%.*s", (int)sizeof path - 1, header->executable);
    return path[0] == '/' && debugfile_locate(path, found) &&
           programfile_allocators(found, ALLOCATORS_ALL, in_file) == 0 &&
           (header->machine == 0 || header->machine == in_file->machine);
}

/* What the loader cannot see: functions of other names, or that only the program itself calls. */
static void find_hidden(const struct allocators *in_file, struct memtrace_malloc *found) {
    if (in_file->holds_runtime) {
        return;
    }
    if (in_file->another_name != NULL) {
        found->place = MEMTRACE_MALLOC_NAMED;
        snprintf(found->name, sizeof found->name, "%s", in_file->another_name);
    } else if ((in_file->defines_malloc && (in_file->name != NULL || !in_file->wraps_malloc)) ||
               (in_file->name != NULL && !in_file->calls_malloc)) {
        found->place = MEMTRACE_MALLOC_HIDDEN;
    }
}

static void find_in_program(const struct memtrace_header *header, struct memtrace_malloc *found) {
    struct allocators in_file;
    if (!find_in_file(header, &in_file)) {
        return;
    }
    if (found->place == MEMTRACE_MALLOC_COUNTED) {
        find_hidden(&in_file, found);
    } else if (in_file.wraps_malloc && in_file.name == NULL) { /* it ends in ours */
        found->place = MEMTRACE_MALLOC_COUNTED;
    }
    if ((found->place == MEMTRACE_MALLOC_PROGRAM || found->place == MEMTRACE_MALLOC_HIDDEN) &&
        in_file.name != NULL) {
        snprintf(found->name, sizeof found->name, "%s", in_file.name);
    }
}

/* ---- Libraries ---- */

enum { LIBRARIES = 1024 /* so many files are looked at */ };

struct libraries {
    const struct uncounted_objects *objects;
    bool *is_mapper; /* NULL: not known yet */
    size_t found;    /* so many of them have an allocator of their own */
};

/* What was mapped before MemTrace came nobody saw. */
static bool has_mapped(struct libraries *libraries, size_t id) {
    const struct uncounted_objects *objects = libraries->objects;
    if ((objects->header->flags & MEMTRACE_FLAG_ATTACHED) != 0 || objects->find_mappers == NULL) {
        return true;
    }
    if (libraries->is_mapper == NULL) {
        libraries->is_mapper = calloc(objects->module_count, sizeof *libraries->is_mapper);
        if (libraries->is_mapper != NULL) {
            objects->find_mappers(objects->context, libraries->is_mapper);
        }
    }
    return libraries->is_mapper != NULL && libraries->is_mapper[id];
}

/* What files say is kept by their build-ids: the processes of a run have mostly the same. */
enum { KEPT = 64 };
static _Thread_local struct kept {
    uint8_t build_id[32];
    size_t build_id_size; /* 0: nothing */
    enum allocators_symbols symbols;
    struct allocators found;
} kept[KEPT];

static struct kept *kept_of(const struct symbol_module *file, enum allocators_symbols symbols) {
    return file->build_id_size >= 8 && file->build_id_size <= sizeof kept[0].build_id
               ? &kept[(file->build_id[0] + (size_t)symbols) % KEPT]
               : NULL;
}

static int look(const struct symbol_module *file, enum allocators_symbols symbols,
                struct allocators *in_file) {
    struct kept *it = kept_of(file, symbols);
    int status;
    if (it != NULL && it->build_id_size == file->build_id_size && it->symbols == symbols &&
        memcmp(it->build_id, file->build_id, file->build_id_size) == 0) {
        *in_file = it->found;
        return 0;
    }
    status = programfile_allocators_of(file, symbols, in_file);
    if (it != NULL && status == 0) {
        *it = (struct kept){
            .build_id_size = file->build_id_size, .symbols = symbols, .found = *in_file};
        memcpy(it->build_id, file->build_id, file->build_id_size);
    }
    return status;
}

/* An allocator besides malloc counts where it is used: it has taken memory from the kernel then. */
static bool has_allocator(struct libraries *libraries, size_t id, struct allocators *in_file) {
    const struct memtrace_header *header = libraries->objects->header;
    const struct model_module *module = &libraries->objects->modules[id];
    struct symbol_module file = {.build_id = module->build_id,
                                 .build_id_size = module->build_id_size};
    bool is_named = (header->flags & MEMTRACE_FLAG_NAMED) != 0;
    char path[PATH_MAX];
    if (module->path[0] != '/' || !debugfile_locate(module->path, path)) {
        return false;
    }
    file.path = path;
    if (look(&file, ALLOCATORS_ALL, in_file) != 0 ||
        (header->machine != 0 && header->machine != in_file->machine)) {
        return false;
    }
    if (programfile_has_own_malloc(in_file)) {
        return !is_named || in_file->is_by_text;
    }
    if (in_file->exports_malloc || in_file->holds_runtime || in_file->is_libc ||
        !has_mapped(libraries, id)) {
        return in_file->another_name != NULL && !in_file->exports_malloc && !is_named &&
               !in_file->defines_another;
    }
    if (in_file->name == NULL) { /* constants are many: only of those that have mapped something */
        look(&file, ALLOCATORS_TEXTS, in_file);
    }
    return in_file->name != NULL && (!is_named || in_file->is_by_text);
}

static bool is_program(const struct uncounted_objects *objects, size_t id) {
    const struct memtrace_header *header = objects->header;
    return strncmp(objects->modules[id].path, header->executable, sizeof header->executable) == 0;
}

static void find_in_libraries(const struct uncounted_objects *objects,
                              struct memtrace_malloc *found) {
    struct libraries libraries = {.objects = objects};
    struct allocators in_file;
    for (size_t id = 1; id < objects->module_count && id < LIBRARIES; id++) {
        if (is_program(objects, id) || !has_allocator(&libraries, id, &in_file)) {
            continue;
        }
        if (libraries.found++ == 0) {
            found->place = MEMTRACE_MALLOC_INSIDE;
            snprintf(found->name, sizeof found->name, "%s in %.36s",
                     in_file.name != NULL ? in_file.name : "malloc",
                     pathname_base(objects->modules[id].path));
        }
    }
    if (libraries.found > 1) {
        size_t length = strlen(found->name);
        snprintf(found->name + length, sizeof found->name - length, " and %zu more",
                 libraries.found - 1);
    }
    free(libraries.is_mapper);
}

/* ---- Both ---- */

static const char all_counted[] = "all";

void uncounted_find(const struct uncounted_objects *objects, struct memtrace_malloc *found) {
    const struct memtrace_header *header = objects->header;
    *found = header->malloc_by;
    found->name[sizeof found->name - 1] = '\0';
    if (found->name[0] != '\0') {
        return;
    }
    if ((header->flags & MEMTRACE_FLAG_NAMED) != 0) {
        *found = (struct memtrace_malloc){0};
    } else {
        find_in_program(header, found);
    }
    if (found->place == MEMTRACE_MALLOC_COUNTED) {
        find_in_libraries(objects, found);
    }
    if (found->place == MEMTRACE_MALLOC_COUNTED) {
        snprintf(found->name, sizeof found->name, "%s", all_counted);
    }
}

static void find_mappers(const void *context, bool *is_mapper) {
    const struct model *model = context;
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *it = &model->contexts[i];
        if (it->class == MODEL_MAPPING && it->path < model->node_count) {
            is_mapper[model_place(model, model->nodes[it->path].frame).module] = true;
        }
    }
}

static void find(const struct model *model, struct memtrace_malloc *found) {
    uncounted_find(
        &(struct uncounted_objects){.header = &model->header,
                                    .modules = model->modules,
                                    .module_count = model->module_count,
                                    .find_mappers = model->node_count > 1 ? find_mappers : NULL,
                                    .context = model},
        found);
}

bool uncounted_is_all(const struct model *model) {
    struct memtrace_malloc found;
    find(model, &found);
    return found.place != MEMTRACE_MALLOC_COUNTED && found.place != MEMTRACE_MALLOC_NAMED;
}

/* ---- In words ---- */

static void explain_own(const struct memtrace_malloc *found, const char *program, char *line) {
    if (found->name[0] == '\0') {
        snprintf(line, UNCOUNTED_SIZE,
                 "%.100s has a malloc of its own: what it gives out is not counted; try "
                 "`memtrace run --alloc auto`, or link the allocator as a shared library",
                 program);
    } else {
        snprintf(line, UNCOUNTED_SIZE,
                 "%.100s has %s linked into it: what that gives out is not counted; %s", program,
                 found->name,
                 strstr(found->name, "Sanitizer") != NULL
                     ? "profile a build without the sanitizer"
                     : "try `memtrace run --alloc auto`, or link it as a shared library");
    }
}

/* The name is "jemalloc in libplug.so", of a file, or of nobody where names were taken away. */
static void explain_inside(const struct memtrace_malloc *found, char *line) {
    const char *in = strstr(found->name, " in ");
    int length = in != NULL ? (int)(in - found->name) : (int)strlen(found->name);
    bool is_known = length != 0 && strncmp(found->name, "malloc", (size_t)length) != 0;
    snprintf(line, UNCOUNTED_SIZE,
             "%s has %.*s%s: what that gives out is not counted; try `memtrace run --alloc auto`, "
             "or link %s",
             in != NULL ? in + 4 : "a library", is_known ? length : 0, found->name,
             is_known ? " linked into it" : "a malloc of its own, which it calls itself",
             is_known ? "it as a shared library" : "the allocator as a shared library");
}

/* No allocator that is known, but memory from somewhere, and nobody who was asked for it. */
static void explain_nothing(const struct model *model, const char *program, char *line) {
    struct allocators in_file;
    if (model->totals.allocations == 0 && has_mappings(model) &&
        find_in_file(&model->header, &in_file) && !in_file.calls_malloc) {
        snprintf(line, UNCOUNTED_SIZE,
                 "%.100s maps memory but calls no malloc of a library: an allocator that is linked "
                 "into it is not counted",
                 program);
    }
}

const char *uncounted_explain(const struct model *model, char line[UNCOUNTED_SIZE]) {
    const char *program = basename(model->header.executable);
    struct memtrace_malloc found;
    line[0] = '\0';
    find(model, &found);
    switch (found.place) {
    case MEMTRACE_MALLOC_COUNTED:
        explain_nothing(model, program, line);
        break;
    case MEMTRACE_MALLOC_LIBRARY:
        snprintf(line, UNCOUNTED_SIZE,
                 "malloc was that of %s, which was loaded before libmemtrace: what it gave out is "
                 "not counted; start the program with `memtrace run`",
                 found.name[0] != '\0' ? found.name : "a library");
        break;
    case MEMTRACE_MALLOC_NAMED:
        snprintf(line, UNCOUNTED_SIZE,
                 "%.100s calls an allocator by names of its own (%s): what that gives out is not "
                 "counted, only what malloc does; build without it, or tell of it by "
                 "memtrace/memtrace.h",
                 program, found.name);
        break;
    case MEMTRACE_MALLOC_INSIDE:
        explain_inside(&found, line);
        break;
    default:
        explain_own(&found, program, line);
    }
    return line;
}
