/* SPDX-License-Identifier: MIT */
/*
 * modulesymbols.c: puts DWARF and symbol tables together into frames. See modulesymbols.h.
 */
#include "analyze/symbol/modulesymbols.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct symbol_frames no_frames = {0, NULL};

struct modulesymbols *modulesymbols_new(const struct symbol_module *module, const char *folders,
                                        unsigned threads, bool cached) {
    struct modulesymbols *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    pthread_mutex_init(&made->lock, NULL);
    made->folders = folders;
    made->threads = threads;
    made->cached = cached;
    made->path = strdup(module->path);
    made->build_id_size = module->build_id_size;
    made->build_id = malloc(module->build_id_size + 1);
    if (!made->path || !made->build_id) {
        modulesymbols_free(made);
        return NULL;
    }
    if (module->build_id_size)
        memcpy(made->build_id, module->build_id, module->build_id_size);
    return made;
}

static void free_lookup(struct lookup *lookup) {
    dwarffile_close(&lookup->dwarf);
    numbermap_free(&lookup->names);
    chunks_free(&lookup->memory);
    free(lookup);
}

/* New answers are for others, too, unless more might be found another time: a file was missing, or
 * perhaps a .dwo file, which nobody would notice. */
static void save_answers(const struct modulesymbols *module) {
    if (module->cache_opened && module->fresh && !module->split && !module->paths.problem[0])
        symbolcache_store(&module->source, &module->answers);
}

void modulesymbols_free(struct modulesymbols *module) {
    save_answers(module);
    symbolcache_close(&module->cache);
    chunks_free(&module->cache_memory);
    while (module->lookups) {
        struct lookup *lookup = module->lookups;
        module->lookups = lookup->next;
        free_lookup(lookup);
    }
    debugimage_free(&module->image);
    symtab_free(&module->symtab);
    rangetable_free(&module->units);
    numbermap_free(&module->answers);
    debugfile_free(&module->paths);
    pthread_mutex_destroy(&module->lock);
    free(module->path);
    free(module->build_id);
    free(module);
}

/* Under the lock: which files there are. */
static int search(struct modulesymbols *module) {
    struct symbol_module wanted = {module->path, module->build_id, module->build_id_size};
    if (module->searched)
        return 0;
    if (debugfile_find(&wanted, module->folders, &module->paths) != 0)
        return -1;
    module->searched = true;
    return 0;
}

/* Under the lock, with a lookup whose files are open: the unit index, once. */
static int make_index(struct modulesymbols *module, struct lookup *lookup, const char *problem) {
    if (module->indexed)
        return 0;
    if (problem[0] && !module->paths.problem[0])
        snprintf(module->paths.problem, sizeof module->paths.problem, "%s", problem);
    if (lookup->dwarf.dwarf && dwarffile_index(&lookup->dwarf, &module->units, &module->split) != 0)
        return -1;
    module->indexed = true;
    return 0;
}

/* false: nothing is cached of this module. */
static bool open_cache(struct modulesymbols *module) {
    struct symbol_module wanted = {module->path, module->build_id, module->build_id_size};
    if (!module->cached || module->cache_opened)
        return module->cached;
    pthread_mutex_lock(&module->lock);
    module->cached = search(module) == 0 && !module->paths.problem[0];
    pthread_mutex_unlock(&module->lock);
    if (!module->cached)
        return false;
    module->source = symbolcache_source(&wanted, &module->paths);
    symbolcache_open(&module->cache, &module->source);
    module->cache_opened = true;
    return true;
}

const struct symbol_frames *modulesymbols_known(struct modulesymbols *module, uint64_t offset) {
    const struct symbol_frames *frames = numbermap_get(&module->answers, offset);
    if (frames || !open_cache(module))
        return frames;
    frames = symbolcache_find(&module->cache, offset, &module->cache_memory);
    if (frames && numbermap_put(&module->answers, offset, (void *)(uintptr_t)frames) != 0)
        return NULL;
    return frames;
}

int modulesymbols_keep(struct modulesymbols *module, uint64_t offset,
                       const struct symbol_frames *frames) {
    module->fresh++;
    return numbermap_put(&module->answers, offset, (void *)(uintptr_t)frames);
}

static struct lookup *take_idle(struct modulesymbols *module) {
    struct lookup *lookup = module->idle;
    if (lookup)
        module->idle = lookup->next_idle;
    return lookup;
}

/* Under the lock: what must be there before a file is opened. */
static int prepare_files(struct modulesymbols *module) {
    if (search(module) != 0)
        return -1;
    if (!module->unpacked && module->paths.debug)
        debugimage_make(&module->image, module->paths.debug, module->threads);
    module->unpacked = true;
    return 0;
}

static void open_dwarf(struct lookup *lookup, const struct debugimage *image, char *problem,
                       size_t size) {
    const struct modulesymbols *module = lookup->module;
    if (module->paths.debug)
        dwarffile_open(&lookup->dwarf, module->paths.debug, image, module->folders, problem, size);
}

/* The first one of a module makes the index. 0 or -1. */
static int open_lookup(struct lookup *lookup) {
    struct modulesymbols *module = lookup->module;
    char problem[512] = "";
    int status;
    open_dwarf(lookup, &module->image, problem, sizeof problem);
    pthread_mutex_lock(&module->lock);
    status = make_index(module, lookup, problem);
    lookup->next = module->lookups;
    module->lookups = lookup;
    pthread_mutex_unlock(&module->lock);
    /* Of memory libdw does not know in which folder .dwo files lie. */
    if (module->split && lookup->dwarf.image) {
        struct debugimage none = {0};
        dwarffile_close(&lookup->dwarf);
        open_dwarf(lookup, &none, problem, sizeof problem);
    }
    return status;
}

struct lookup *modulesymbols_take(struct modulesymbols *module) {
    pthread_mutex_lock(&module->lock);
    struct lookup *lookup = take_idle(module);
    int status = lookup ? 0 : prepare_files(module);
    pthread_mutex_unlock(&module->lock);
    if (lookup || status != 0)
        return lookup;
    lookup = calloc(1, sizeof *lookup);
    if (!lookup)
        return NULL;
    lookup->module = module;
    return open_lookup(lookup) == 0 ? lookup : NULL;
}

void modulesymbols_give_back(struct lookup *lookup) {
    struct modulesymbols *module = lookup->module;
    pthread_mutex_lock(&module->lock);
    lookup->next_idle = module->idle;
    module->idle = lookup;
    pthread_mutex_unlock(&module->lock);
}

/* The readable form of a mangled name; NULL: it is not mangled. */
static const char *readable(struct lookup *lookup, const char *name) {
    char *known = numbermap_get(&lookup->names, (uintptr_t)name);
    if (known)
        return known == name ? NULL : known;
    char *demangled = symbol_demangle(name);
    char *kept = demangled ? chunks_string(&lookup->memory, demangled) : NULL;
    free(demangled);
    /* Without memory to remember it the name is still right. */
    numbermap_put(&lookup->names, (uintptr_t)name, kept ? kept : (char *)(uintptr_t)name);
    return kept;
}

/* Takes out "." and "x/..": compilers name their own headers by long detours. */
static void shorten_path(char *path) {
    char *to = path;
    for (const char *from = path; *from;) {
        size_t length = 1 + strcspn(from + 1, "/"); /* one "/name" */
        bool up = length == 3 && memcmp(from, "/..", 3) == 0;
        char *slash = up ? memrchr(path, '/', (size_t)(to - path)) : NULL;
        if (slash && (to - slash != 3 || memcmp(slash, "/..", 3) != 0)) {
            to = slash;
        } else if (length != 2 || memcmp(from, "/.", 2) != 0) {
            memmove(to, from, length);
            to += length;
        }
        from += length;
    }
    *to = '\0';
}

/* The file's path as people write it: absolute if it can be told from where the unit was compiled,
 * without detours. */
static const char *path_of(struct lookup *lookup, const struct dwarfunit *unit, const char *path) {
    bool relative = path && path[0] != '/' && unit->folder && unit->folder[0] == '/';
    if (!path || (!relative && !strstr(path, "/.")))
        return path;
    char *known = numbermap_get(&lookup->names, (uintptr_t)path);
    if (known)
        return known;
    const char *folder = relative ? unit->folder : "";
    size_t size = strlen(folder) + 1 + strlen(path) + 1;
    char *made = chunks_alloc(&lookup->memory, size);
    if (!made)
        return path;
    snprintf(made, size, "%s%s%s", folder, relative ? "/" : "", path);
    shorten_path(made);
    numbermap_put(&lookup->names, (uintptr_t)path, made);
    return made;
}

static const struct symtab *load_symtab(struct lookup *lookup) {
    struct modulesymbols *module = lookup->module;
    pthread_mutex_lock(&module->lock);
    if (!module->symtab_loaded) {
        /* Half a table (no memory) is a table. */
        symtab_load(&module->symtab, &module->paths);
        module->symtab_loaded = true;
    }
    pthread_mutex_unlock(&module->lock);
    return &module->symtab;
}

static const char *symtab_function(struct lookup *lookup, uint64_t offset) {
    const char *name = symtab_name(load_symtab(lookup), offset);
    const char *demangled = name ? readable(lookup, name) : NULL;
    return demangled ? demangled : name;
}

/* The name of a function without mangled name; its DIEs all lead to one declaration. */
static const char *declared_name(struct lookup *lookup, Dwarf_Die *die) {
    Dwarf_Die declaration = dwarfname_declaration(die);
    char name[2048];
    char *kept = numbermap_get(&lookup->names, (uintptr_t)declaration.addr);
    if (kept)
        return kept;
    if (dwarfname_qualified(&declaration, name, sizeof name))
        kept = chunks_string(&lookup->memory, name);
    if (kept)
        numbermap_put(&lookup->names, (uintptr_t)declaration.addr, kept);
    return kept ? kept : dwarf_diename(die);
}

/* The name of a function at the offset; `inlined`: it has no symbol of its own. */
static const char *dwarf_function(struct lookup *lookup, Dwarf_Die *die, uint64_t offset,
                                  bool inlined) {
    const char *linkage = dwarfname_linkage(die);
    const char *mangled = linkage || inlined ? linkage : symtab_name(load_symtab(lookup), offset);
    const char *demangled = mangled ? readable(lookup, mangled) : NULL;
    if (demangled)
        return demangled;
    /* A linkage name that is not mangled is that of extern "C". */
    const char *name = linkage ? dwarf_diename(die) : declared_name(lookup, die);
    return name ? name : mangled;
}

static const struct symbol_frames *make_frames(struct lookup *lookup, size_t count,
                                               struct symbol_frame **array) {
    struct symbol_frames *frames = chunks_alloc(&lookup->memory, sizeof *frames);
    *array = chunks_alloc(&lookup->memory, count * sizeof **array);
    if (!frames || !*array)
        return NULL;
    *frames = (struct symbol_frames){count, *array};
    return frames;
}

/* The frames of an address whose functions (innermost first) are known. */
static const struct symbol_frames *chain_frames(struct lookup *lookup, struct dwarfunit *unit,
                                                uint64_t offset, Dwarf_Die *functions,
                                                size_t count) {
    struct symbol_frame *frame;
    const struct symbol_frames *frames = make_frames(lookup, count, &frame);
    if (!frames)
        return NULL;
    struct dwarfunit_place place = dwarfunit_line(unit, offset);
    for (size_t i = 0; i < count; i++) {
        frame[i] = (struct symbol_frame){
            .function = dwarf_function(lookup, &functions[i], offset, i + 1 < count),
            .file = path_of(lookup, unit, place.file),
            .line = place.line,
            .column = place.column,
            .inlined = i + 1 < count,
        };
        if (frame[i].inlined)
            place = dwarfunit_call(unit, &functions[i]);
    }
    return frames;
}

/* The frame of an address outside every DWARF function; place.file is as people write it. */
static const struct symbol_frames *plain_frame(struct lookup *lookup, uint64_t offset,
                                               struct dwarfunit_place place) {
    const char *name = symtab_function(lookup, offset);
    if (!name && !place.line)
        return &no_frames;
    struct symbol_frame *frame;
    const struct symbol_frames *frames = make_frames(lookup, 1, &frame);
    if (frames)
        *frame = (struct symbol_frame){name, place.file, place.line, place.column, false};
    return frames;
}

const struct symbol_frames *modulesymbols_frames(struct lookup *lookup, uint64_t offset) {
    struct dwarfunit_place place = {0};
    const struct range *range = NULL;
    while (lookup->dwarf.dwarf &&
           (range = rangetable_find(&lookup->module->units, offset, range))) {
        struct dwarfunit *unit = dwarffile_unit(&lookup->dwarf, range->value);
        Dwarf_Die functions[DWARFUNIT_DEPTH];
        int count = unit ? dwarfunit_functions(unit, offset, functions) : 0;
        if (count < 0)
            return NULL;
        if (count > 0)
            return chain_frames(lookup, unit, offset, functions, (size_t)count);
        if (unit && !place.line) {
            place = dwarfunit_line(unit, offset);
            place.file = path_of(lookup, unit, place.file);
        }
    }
    return plain_frame(lookup, offset, place);
}
