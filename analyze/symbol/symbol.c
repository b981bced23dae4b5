/* SPDX-License-Identifier: MIT */
/*
 * symbol.c: the symbolizer: its modules, its answers, its warnings. See symbol.h.
 */
#include "analyze/symbol/symbol.h"

#include "analyze/read/error.h"
#include "analyze/symbol/batch.h"
#include "analyze/symbol/modulesymbols.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_THREADS_LIMIT = 8 };

struct symbolizer {
    char *folders;
    unsigned threads;
    bool cached;
    struct numbermap modules; /* hash of path and build-id -> struct modulesymbols */
    struct modulesymbols **list;
    size_t count;
    size_t room;
    const char **warnings; /* made by symbolizer_warnings, `room` places */
};

struct symbolizer *symbolizer_open(const struct symbolizer_options *options, struct error *error) {
    struct symbolizer *symbolizer = calloc(1, sizeof *symbolizer);
    const char *folders = options && options->debug_folders ? options->debug_folders : NULL;
    if (symbolizer)
        symbolizer->folders = strdup(folders ? folders : "/usr/lib/debug");
    if (!symbolizer || !symbolizer->folders) {
        free(symbolizer);
        error_set(error, "no memory for the symbolizer");
        return NULL;
    }
    symbolizer->cached = options && options->cached;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    symbolizer->threads = options ? options->threads : 0;
    if (symbolizer->threads == 0)
        symbolizer->threads = processors < 1                       ? 1
                              : processors > DEFAULT_THREADS_LIMIT ? DEFAULT_THREADS_LIMIT
                                                                   : (unsigned)processors;
    return symbolizer;
}

void symbolizer_close(struct symbolizer *symbolizer) {
    if (!symbolizer)
        return;
    for (size_t i = 0; i < symbolizer->count; i++)
        modulesymbols_free(symbolizer->list[i]);
    numbermap_free(&symbolizer->modules);
    free(symbolizer->warnings);
    free(symbolizer->list);
    free(symbolizer->folders);
    free(symbolizer);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static bool is_module(const struct modulesymbols *known, const struct symbol_module *module) {
    return known->build_id_size == module->build_id_size &&
           strcmp(known->path, module->path) == 0 &&
           (module->build_id_size == 0 ||
            memcmp(known->build_id, module->build_id, module->build_id_size) == 0);
}

static int add_module(struct symbolizer *symbolizer, uint64_t hash, struct modulesymbols *module) {
    if (symbolizer->count == symbolizer->room) {
        size_t room = symbolizer->room ? symbolizer->room * 2 : 16;
        struct modulesymbols **list = realloc(symbolizer->list, room * sizeof(*list));
        if (!list)
            return -1;
        symbolizer->list = list;
        const char **warnings = realloc(symbolizer->warnings, room * sizeof(*warnings));
        if (!warnings)
            return -1;
        symbolizer->warnings = warnings;
        symbolizer->room = room;
    }
    if (numbermap_put(&symbolizer->modules, hash, module) != 0)
        return -1;
    symbolizer->list[symbolizer->count++] = module;
    return 0;
}

/* The symbolizer's own record of the module; NULL: out of memory. */
static struct modulesymbols *find_module(struct symbolizer *symbolizer,
                                         const struct symbol_module *module) {
    uint64_t hash = hash_bytes(UINT64_C(0xcbf29ce484222325), module->path, strlen(module->path));
    hash = hash_bytes(hash, module->build_id, module->build_id_size);
    struct modulesymbols *known;
    /* Two modules with one hash: the later one takes the next number. */
    while ((known = numbermap_get(&symbolizer->modules, hash)) && !is_module(known, module))
        hash++;
    if (known)
        return known;
    known = modulesymbols_new(module, symbolizer->folders, symbolizer->threads, symbolizer->cached);
    if (known && add_module(symbolizer, hash, known) != 0) {
        modulesymbols_free(known);
        return NULL;
    }
    return known;
}

int symbolizer_resolve(struct symbolizer *symbolizer, const struct symbol_module *module,
                       uint64_t offset, struct symbol_frames *out) {
    *out = (struct symbol_frames){0};
    struct modulesymbols *known = find_module(symbolizer, module);
    if (!known)
        return -1;
    const struct symbol_frames *frames = modulesymbols_known(known, offset);
    if (!frames) {
        struct lookup *lookup = modulesymbols_take(known);
        if (!lookup)
            return -1;
        frames = modulesymbols_frames(lookup, offset);
        modulesymbols_give_back(lookup);
        if (!frames || modulesymbols_keep(known, offset, frames) != 0)
            return -1;
    }
    *out = *frames;
    return 0;
}

static int compare_items(const void *left, const void *right) {
    const struct batch_item *a = left, *b = right;
    if (a->module != b->module)
        return (uintptr_t)a->module < (uintptr_t)b->module ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Sorts the items and drops repeats. Returns how many are left. */
static size_t sort_items(struct batch_item *items, size_t count) {
    size_t kept = 0;
    qsort(items, count, sizeof *items, compare_items);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || compare_items(&items[kept - 1], &items[i]) != 0)
            items[kept++] = items[i];
    return kept;
}

/* Writes the items that have no answer yet. Returns their number, or -1. */
static ptrdiff_t collect_items(struct symbolizer *symbolizer, const struct symbol_module *modules,
                               size_t module_count, const struct symbol_address *addresses,
                               size_t address_count, struct batch_item *items) {
    struct modulesymbols **known = calloc(module_count, sizeof(*known));
    size_t count = 0;
    if (!known)
        return -1;
    for (size_t i = 0; i < address_count; i++) {
        size_t number = addresses[i].module;
        if (number >= module_count)
            continue;
        if (!known[number])
            known[number] = find_module(symbolizer, &modules[number]);
        if (!known[number]) {
            free(known);
            return -1;
        }
        if (!modulesymbols_known(known[number], addresses[i].offset))
            items[count++] = (struct batch_item){known[number], addresses[i].offset, NULL};
    }
    free(known);
    return (ptrdiff_t)count;
}

int symbolizer_prepare(struct symbolizer *symbolizer, const struct symbol_module *modules,
                       size_t module_count, const struct symbol_address *addresses,
                       size_t address_count, symbol_progress progress, void *context) {
    if (module_count == 0 || address_count == 0)
        return 0;
    struct batch_item *items = calloc(address_count, sizeof *items);
    if (!items)
        return -1;
    int status = -1;
    ptrdiff_t collected =
        collect_items(symbolizer, modules, module_count, addresses, address_count, items);
    if (collected >= 0) {
        size_t count = sort_items(items, (size_t)collected);
        status = batch_resolve(items, count, symbolizer->threads, progress, context);
        for (size_t i = 0; i < count; i++)
            if (items[i].frames &&
                modulesymbols_keep(items[i].module, items[i].offset, items[i].frames) != 0)
                status = -1;
    }
    free(items);
    return status;
}

size_t symbolizer_warnings(const struct symbolizer *symbolizer, const char *const **lines) {
    size_t count = 0;
    for (size_t i = 0; i < symbolizer->count; i++)
        if (symbolizer->list[i]->paths.problem[0])
            symbolizer->warnings[count++] = symbolizer->list[i]->paths.problem;
    *lines = symbolizer->warnings;
    return count;
}
