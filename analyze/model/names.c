/* SPDX-License-Identifier: MIT */
/* names.c: symbolizes what is asked for of a model, once. See names.h. */
#include "analyze/model/names.h"

#include "analyze/base/arena.h"
#include "analyze/base/numbermap.h"
#include "analyze/base/pathname.h"
#include "analyze/base/thismachine.h"
#include "analyze/model/uncounted.h"
#include "analyze/symbol/debugfile.h"
#include "analyze/symbol/debuginfod.h"
#include "analyze/symbol/symbol.h"

#include <elf.h>
#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { SINGLES_MOST = 256 }; /* frames resolved one by one before all are at once */

/* The functions at one recorded frame. */
struct entry {
    size_t count;
    struct names_frame frames[];
};

/* What is resolved so far. */
struct resolved {
    struct numbermap entries; /* by recorded frame */
    struct arena memory;
    size_t singles;
    bool all;       /* of the model */
    bool warned;    /* each module was looked at: see names_warnings() */
    bool explained; /* `uncounted` says all there is to say */
    bool no_memory; /* for some names that were asked for */
    char uncounted[UNCOUNTED_SIZE];
    const char **warnings; /* made by names_warnings() */
    bool told;             /* there will be no others: nobody writes any more */
    const char *const *told_lines;
    size_t told_count;
};

struct names {
    const struct model *model;
    struct names_options options;
    struct symbolizer *symbolizer;
    struct symbol_module *modules;
    struct resolved *resolved;
    struct job_memory *memory; /* of all but what is resolved */
};

static const struct names_frame unknown = {.module = ""};

static uint64_t hash_text(const char *text, uint64_t seed) {
    return XXH3_64bits_withSeed(text, strlen(text), seed);
}

/* What follows from a name and a place. Unknown functions are told apart by their address. */
static void set_derived(struct names_frame *frame) {
    uint64_t seed = hash_text(frame->module, 0);
    uint64_t place[2] = {frame->line, frame->column};
    frame->function_key = frame->function != NULL
                              ? hash_text(frame->function, seed)
                              : XXH3_64bits_withSeed(&frame->offset, sizeof frame->offset, seed);
    frame->place_key = hash_text(frame->file != NULL ? frame->file : "", frame->function_key);
    frame->place_key = XXH3_64bits_withSeed(place, sizeof place[0], frame->place_key);
    frame->roles = roles_of(frame->function, frame->file);
}

static const struct framename *given_names(const struct names *names, uint64_t frame,
                                           size_t *count) {
    return names->options.given != NULL ? framenames_find(names->options.given, frame, count)
                                        : NULL;
}

/* The functions at a recorded frame: as the file itself names them, or as they are found. NULL: out
 * of memory. */
static struct entry *make_entry(const struct names *names, uint64_t frame) {
    struct model_place place = model_place(names->model, frame);
    bool is_before = frame == MEMTRACE_FRAME_BEFORE; /* no code, but what stands where that would */
    struct symbol_frames found = {0};
    size_t count = 0;
    const struct framename *given = is_before ? NULL : given_names(names, frame, &count);
    struct entry *entry;
    if (given == NULL && !is_before && place.module != 0) {
        names->resolved->no_memory |=
            symbolizer_resolve(names->symbolizer, &names->modules[place.module], place.offset,
                               &found) != 0;
    }
    if (given == NULL) {
        count = found.count != 0 ? found.count : 1;
    }
    entry = arena_alloc(&names->resolved->memory, sizeof *entry + count * sizeof entry->frames[0]);
    if (entry == NULL) {
        return NULL;
    }
    entry->count = count;
    for (size_t i = 0; i < count; i++) {
        struct names_frame *to = &entry->frames[i];
        *to = (struct names_frame){.function = is_before ? "[before attach]" : NULL,
                                   .module = names->model->modules[place.module].path,
                                   .offset = place.offset};
        if (given != NULL) {
            to->function = given[i].function;
            to->file = given[i].file;
            to->line = given[i].line;
            to->column = given[i].column;
            to->inlined = i + 1 < count;
        } else if (found.count != 0) {
            to->function = found.frames[i].function;
            to->file = found.frames[i].file;
            to->line = found.frames[i].line;
            to->column = found.frames[i].column;
            to->inlined = found.frames[i].inlined;
        }
        set_derived(to);
    }
    return entry;
}

static struct symbol_module module_of(const struct model_module *module) {
    return (struct symbol_module){
        .path = module->path, .build_id = module->build_id, .build_id_size = module->build_id_size};
}

static bool is_code(uint64_t frame) {
    return frame >= MEMTRACE_FRAME_CLASSES;
}

/* Many places at once, so that the symbolizer can share the work out. Repeats are welcome there. */
static int prepare(const struct names *names, const uint64_t *frames, size_t stride, size_t count,
                   const atomic_bool *cancel) {
    struct symbol_address *addresses = calloc(count + 1, sizeof *addresses);
    size_t wanted = 0;
    int result;
    if (addresses == NULL) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t frame = *(const uint64_t *)((const char *)frames + i * stride);
        struct model_place place = model_place(names->model, frame);
        size_t given;
        if (is_code(frame) && place.module != 0 && given_names(names, frame, &given) == NULL) {
            addresses[wanted++] = (struct symbol_address){place.module, place.offset};
        }
    }
    result =
        symbolizer_prepare(names->symbolizer, names->modules, names->model->module_count, addresses,
                           wanted, cancel, names->options.progress, names->options.context);
    free(addresses);
    return result;
}

int names_prepare(const struct names *names, const uint64_t *frames, size_t count) {
    return names->resolved->all ? 0 : prepare(names, frames, sizeof *frames, count, NULL);
}

static int prepare_all(const struct names *names, const atomic_bool *cancel) {
    const struct model *model = names->model;
    int result;
    if (names->resolved->all) {
        return 0;
    }
    result =
        prepare(names, &model->nodes[0].frame, sizeof model->nodes[0], model->node_count, cancel);
    names->resolved->all = result != SYMBOL_CANCELLED;
    return result;
}

int names_prepare_all(const struct names *names) {
    return prepare_all(names, NULL);
}

/* The entry of a frame, made if it is not there. NULL: out of memory. */
static const struct entry *find_entry(const struct names *names, uint64_t frame) {
    struct resolved *resolved = names->resolved;
    struct entry *entry = numbermap_get(&resolved->entries, frame);
    if (entry != NULL) {
        return entry;
    }
    if (!resolved->all && ++resolved->singles > SINGLES_MOST) {
        names_prepare_all(names); /* what it could not prepare is resolved one by one */
    }
    entry = make_entry(names, frame);
    if (entry == NULL || numbermap_put(&resolved->entries, frame, entry) != 0) {
        resolved->no_memory = true;
        return NULL;
    }
    return entry;
}

static void names_undo(void *what) {
    struct names *names = what;
    numbermap_free(&names->resolved->entries);
    arena_free(&names->resolved->memory);
    free(names->resolved->warnings);
    symbolizer_close(names->symbolizer);
}

struct opening {
    const struct model *model;
    const struct names_options *options;
    struct names *names;
};

static void names_open_in_job(void *what) {
    struct opening *opening = what;
    const struct model *model = opening->model;
    struct names *names = opening->names = job_alloc(sizeof *names);
    struct symbolizer_options symbol_options = {.cached = true};
    struct error error;
    names->model = model;
    if (opening->options != NULL) {
        symbol_options.debug_folders = opening->options->debug_folders;
        names->options = *opening->options;
        names->options.debug_folders = NULL; /* the symbolizer has its own copy */
    }
    names->resolved = job_alloc(sizeof *names->resolved);
    names->modules = job_array(model->module_count + 1, sizeof *names->modules);
    for (size_t i = 0; i < model->module_count; i++) {
        names->modules[i] = module_of(&model->modules[i]);
    }
    names->symbolizer = symbolizer_open(&symbol_options, &error);
    job_check(names->symbolizer != NULL ? 0 : -1, &error);
    job_undo(names_undo, names);
}

struct names *names_open(const struct model *model, const struct names_options *options,
                         struct error *error) {
    struct opening opening = {.model = model, .options = options};
    struct job_memory *memory = NULL;
    if (job_run(names_open_in_job, &opening, &memory, error) != 0) {
        return NULL;
    }
    opening.names->memory = memory;
    return opening.names;
}

void names_close(struct names *names) {
    struct job_memory *memory = names != NULL ? names->memory : NULL;
    job_free(&memory);
}

bool names_lacks_files(const struct model *model, const char *debug_folders) {
    bool lacks = false;
    for (size_t i = 1; !lacks && i < model->module_count; i++) {
        struct symbol_module module = module_of(&model->modules[i]);
        struct debugfile_paths paths;
        if (module.path[0] != '/') {
            continue;
        }
        if (debugfile_find(&module, debug_folders, &paths) == 0) {
            lacks = paths.object == NULL && paths.debug == NULL;
            debugfile_free(&paths);
        }
    }
    return lacks;
}

const struct names_frame *names_frames(const struct names *names, uint64_t frame, size_t *count) {
    const struct entry *entry = is_code(frame) ? find_entry(names, frame) : NULL;
    *count = entry != NULL ? entry->count : 1;
    return entry != NULL ? entry->frames : &unknown;
}

/* One frame of each module tells whether its files are there and whole. 0 or -1. */
static int look_at_modules(const struct names *names) {
    const struct model *model = names->model;
    bool *seen = calloc(model->module_count + 1, sizeof *seen);
    uint64_t *frames = calloc(model->module_count + 1, sizeof *frames);
    size_t count = 0;
    int result = -1;
    for (size_t i = 1; seen != NULL && frames != NULL && i < model->node_count; i++) {
        uint64_t frame = model->nodes[i].frame;
        struct model_place place = model_place(model, frame);
        size_t given;
        if (is_code(frame) && place.module != 0 && !seen[place.module] &&
            given_names(names, frame, &given) == NULL) {
            seen[place.module] = true;
            frames[count++] = frame;
        }
    }
    if (seen != NULL && frames != NULL) {
        result = names_prepare(names, frames, count);
    }
    free(seen);
    free(frames);
    return result;
}

const char *names_uncounted(const struct names *names) {
    if (!names->resolved->explained) {
        uncounted_explain(names->model, names->resolved->uncounted);
        names->resolved->explained = true;
    }
    return names->resolved->uncounted;
}

/* Files of another machine are seldom at their paths here; NULL: they are, or the user knows. */
static const char *elsewhere(const struct names *names, size_t problems) {
    unsigned machine = names->model->header.machine;
    return problems != 0 && machine != 0 && machine != thismachine() && !debugfile_has_copies()
               ? "the program ran on another machine: --root FOLDER says where copies of its files "
                 "are"
               : NULL;
}

static size_t list_warnings(const struct names *names, const char *const **lines) {
    struct resolved *resolved = names->resolved;
    const char *uncounted = names_uncounted(names);
    const char *hint;
    const char **all;
    size_t count;
    size_t filled = 0;
    if (!resolved->warned) {
        resolved->warned = look_at_modules(names) == 0;
    }
    count = symbolizer_warnings(names->symbolizer, lines);
    hint = elsewhere(names, count);
    all = realloc(resolved->warnings, (count + 3) * sizeof *all);
    if (all == NULL) {
        return count;
    }
    resolved->warnings = all;
    if (uncounted[0] != '\0') {
        all[filled++] = uncounted;
    }
    for (size_t i = 0; i < count; i++) {
        all[filled++] = (*lines)[i];
    }
    if (hint != NULL) {
        all[filled++] = hint;
    }
    if (resolved->no_memory) {
        all[filled++] = "out of memory while reading symbols: some names are missing";
    }
    *lines = all;
    return filled;
}

size_t names_warnings(const struct names *names, const char *const **lines) {
    const struct resolved *resolved = names->resolved;
    if (!resolved->told) {
        return list_warnings(names, lines);
    }
    *lines = resolved->told_lines;
    return resolved->told_count;
}

int names_settle(const struct names *names, const atomic_bool *cancel) {
    struct resolved *resolved = names->resolved;
    int result = prepare_all(names, cancel);
    if (result != 0) {
        return result == SYMBOL_CANCELLED ? NAMES_CANCELLED : -1;
    }
    for (size_t i = 0; i < names->model->node_count; i++) {
        uint64_t frame = names->model->nodes[i].frame;
        if (cancel != NULL && atomic_load(cancel)) {
            return NAMES_CANCELLED;
        }
        if (is_code(frame)) {
            find_entry(names, frame);
        }
        if (resolved->no_memory) {
            return -1;
        }
    }
    resolved->told_count = list_warnings(names, &resolved->told_lines);
    resolved->told = true;
    return 0;
}

const char *names_spell(const struct names_frame *frame, char *buffer, size_t size) {
    const char *name = basename(frame->module);
    if (frame->function != NULL) {
        snprintf(buffer, size, "%s", frame->function);
    } else if (name[0] != '\0') {
        snprintf(buffer, size, "%s+0x%" PRIx64, name, frame->offset);
    } else if (frame->offset != 0) {
        snprintf(buffer, size, "0x%" PRIx64, frame->offset);
    } else {
        snprintf(buffer, size, "(unknown)");
    }
    return buffer;
}

/* ---- What would name the functions of the system's libraries that have no name here ---- */

enum { LIST_MOST = 16 << 20 }; /* bytes of a package's list of files that are looked at */

/* A library of the system's. What starts and ends a program is not told: the loader, libc. */
static bool is_told(const char *path) {
    const char *name = strrchr(path, '/');
    return name != NULL && (strncmp(path, "/usr/lib", 8) == 0 || strncmp(path, "/lib", 4) == 0) &&
           strncmp(name, "/ld-", 4) != 0 && strcmp(name, "/libc.so.6") != 0;
}

/* Whether the list, a path a line, has one that ends so. */
static bool list_has(const char *list, const char *ending) {
    size_t length = strlen(ending);
    char line[4096];
    size_t bytes = 0;
    bool has = false;
    FILE *file = fopen(list, "re");
    while (file != NULL && !has && bytes < LIST_MOST && fgets(line, sizeof line, file) != NULL) {
        size_t end = strcspn(line, "\n");
        bytes += end;
        line[end] = '\0';
        has = end >= length && strcmp(line + end - length, ending) == 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return has;
}

/* The name of Debian's package that has the file, as lists of installed packages have it. */
static bool find_package(const char *path, char *package, size_t size) {
    const char *below =
        strncmp(path, "/usr/", 5) == 0 ? path + 4 : path; /* /lib is in /usr or not */
    glob_t lists = {0};
    bool found = false;
    if (glob("/var/lib/dpkg/info/*.list", 0, NULL, &lists) == 0) {
        for (size_t i = 0; !found && i < lists.gl_pathc; i++) {
            found = list_has(lists.gl_pathv[i], below);
            if (found) {
                const char *name = strrchr(lists.gl_pathv[i], '/') + 1;
                snprintf(package, size, "%.*s", (int)strcspn(name, ":"), name);
                package[strlen(package) - (strchr(name, ':') == NULL ? strlen(".list") : 0)] = '\0';
            }
        }
    }
    globfree(&lists);
    return found;
}

/* Places without a name in one library. */
struct unnamed {
    const char *module; /* its path */
    uint64_t offset;    /* of one of them: the first */
    size_t places;
};

/* The library that has most of them, of those that were asked for so far. */
static struct unnamed find_unnamed(const struct names *names) {
    const struct numbermap *entries = &names->resolved->entries;
    struct unnamed *all = calloc(names->model->module_count + 1, sizeof *all);
    struct unnamed most = {0};
    for (size_t i = 0; all != NULL && i < entries->places; i++) {
        const struct entry *entry = entries->entries[i].value;
        uint64_t module =
            entries->entries[i].key >> MEMTRACE_FRAME_MODULE_SHIFT & MEMTRACE_FRAME_MODULE_MASK;
        const struct names_frame *frame = entry != NULL ? &entry->frames[0] : NULL;
        if (frame == NULL || frame->function != NULL || module >= names->model->module_count ||
            !is_told(frame->module)) {
            continue;
        }
        struct unnamed *one = &all[module];
        one->module = frame->module;
        one->offset = one->places == 0 || frame->offset < one->offset ? frame->offset : one->offset;
        one->places++;
        if (one->places > most.places) {
            most = *one;
        }
    }
    free(all);
    return most;
}

bool names_explain_missing(const struct names *names, char *line, size_t size) {
    struct unnamed missing = find_unnamed(names);
    char package[128];
    char symbols[160] = "its debug symbols have";
    if (missing.places == 0) {
        return false;
    }
    if (find_package(missing.module, package, sizeof package)) {
        snprintf(symbols, sizeof symbols, "the package %s-dbgsym has", package);
    }
    snprintf(line, size, "%s+0x%" PRIx64 "%s no name here: %s %s, %s",
             pathname_base(missing.module), missing.offset,
             missing.places > 1 ? " and others have" : " has", symbols,
             missing.places > 1 ? "them" : "it",
             debuginfod_is_wanted() ? "the servers of DEBUGINFOD_URLS have not"
                                    : "or a server that DEBUGINFOD_URLS names");
    return true;
}

const char *shortname_of(const struct names_frame *frame, bool is_whole, char *buffer,
                         size_t size) {
    return frame->function == NULL || is_whole ? names_spell(frame, buffer, size)
                                               : shortname(frame->function, buffer, size);
}
