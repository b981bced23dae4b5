/* SPDX-License-Identifier: MIT */
/* symbol.c: the symbolizer: its modules, its answers, its warnings. See symbol.h. */
#include "analyze/symbol/symbol.h"

#include "analyze/base/arena.h"
#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/base/numbermap.h"
#include "analyze/base/sort.h"
#include "analyze/base/timedwait.h"
#include "analyze/symbol/dwarffile.h"
#include "analyze/symbol/symbolcache.h"

#define XXH_INLINE_ALL
#include <dwarf.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* ---- One module: its files, tables and answers so far. The shared part (files, symbol table, unit
 * index) is made once, under the lock, and then only read. Whatever libdw changes while it reads is
 * in a `lookup`, which belongs to one thread at a time: module_take lends one, several may be out
 * at once. `answers` and what follows is touched only by the symbolizer's own thread ---- */

/* One thread's access to a module. Frames and names it makes live as long as the module. */
struct lookup {
    struct module *module;
    struct dwarffile dwarf;    /* dwarf.dwarf NULL: none */
    struct numbermap names;    /* address of a mangled name or long path -> the readable one */
    struct job_memory *memory; /* of all this, and of its answers */
    struct lookup *next_idle;
    struct lookup *next;
};

struct module {
    char *path;
    uint8_t *build_id;
    size_t build_id_size;
    const char *folders;
    unsigned threads; /* for what is read once */

    pthread_mutex_t lock; /* guards everything below, up to `answers` */
    bool searched;        /* paths are filled */
    bool unpacked;        /* image is what it is to be */
    bool indexed;         /* units is filled */
    bool symtab_loaded;
    bool split; /* some of its debug information is in .dwo files */
    struct debugfile_paths paths;
    struct debugimage image;
    struct symtab symtab;
    struct rangetable units;
    struct job_memory *memory; /* of both */
    struct lookup *idle;
    struct lookup *lookups;

    struct numbermap answers; /* offset -> struct symbol_frames */
    bool cached;              /* answers are kept on disk */
    bool cache_opened;
    struct symbolcache_source source;
    struct symbolcache cache;
    struct arena cache_memory; /* answers that came from the cache */
    size_t fresh;              /* answers that did not */
};

static const struct symbol_frames no_frames = {0, NULL};

/* What is new goes to the cache, for others, too, unless more might be found another time: a file
 * was missing, or perhaps a .dwo file, which nobody would notice. */
static void module_free(struct module *module) {
    if (module->cache_opened && module->fresh && !module->split && !module->paths.problem[0]) {
        symbolcache_store(&module->source, &module->answers);
    }
    symbolcache_close(&module->cache);
    arena_free(&module->cache_memory);
    while (module->lookups) {
        struct lookup *lookup = module->lookups;
        module->lookups = lookup->next;
        job_free(&lookup->memory);
        dwarffile_close(&lookup->dwarf);
        free(lookup);
    }
    debugimage_free(&module->image);
    symtab_close(&module->symtab);
    job_free(&module->memory);
    numbermap_free(&module->answers);
    debugfile_free(&module->paths);
    pthread_mutex_destroy(&module->lock);
    free(module->path);
    free(module->build_id);
    free(module);
}

/* NULL: out of memory. */
static struct module *module_new(const struct symbol_module *module, const char *folders,
                                 unsigned threads, bool cached) {
    struct module *made = calloc(1, sizeof *made);
    if (!made) {
        return NULL;
    }
    pthread_mutex_init(&made->lock, NULL);
    made->folders = folders;
    made->threads = threads;
    made->cached = cached;
    made->path = strdup(module->path);
    made->build_id_size = module->build_id_size;
    made->build_id = malloc(module->build_id_size + 1);
    if (!made->path || !made->build_id) {
        module_free(made);
        return NULL;
    }
    if (module->build_id_size) {
        memcpy(made->build_id, module->build_id, module->build_id_size);
    }
    return made;
}

/* Under the lock: which files there are. */
static int module_search(struct module *module) {
    struct symbol_module wanted = {module->path, module->build_id, module->build_id_size};
    if (module->searched) {
        return 0;
    }
    if (debugfile_find(&wanted, module->folders, &module->paths) != 0) {
        return -1;
    }
    debugfile_fetch(&wanted, &module->paths);
    module->searched = true;
    return 0;
}

static void index_units(void *what) {
    struct lookup *lookup = what;
    lookup->module->split = dwarffile_index(&lookup->dwarf, &lookup->module->units);
}

/* Under the lock, with a lookup whose files are open: the unit index, once. */
static int module_index(struct module *module, struct lookup *lookup, const char *problem) {
    if (module->indexed) {
        return 0;
    }
    if (problem[0] && !module->paths.problem[0]) {
        snprintf(module->paths.problem, sizeof module->paths.problem, "%s", problem);
    }
    if (lookup->dwarf.dwarf && job_run(index_units, lookup, &module->memory, NULL) != 0) {
        module->units = (struct rangetable){0};
        return -1;
    }
    module->indexed = true;
    return 0;
}

/* false: nothing is cached of this module. */
static bool open_cache(struct module *module) {
    struct symbol_module wanted = {module->path, module->build_id, module->build_id_size};
    if (!module->cached || module->cache_opened) {
        return module->cached;
    }
    pthread_mutex_lock(&module->lock);
    module->cached = module_search(module) == 0 && !module->paths.problem[0];
    pthread_mutex_unlock(&module->lock);
    if (!module->cached) {
        return false;
    }
    module->source = symbolcache_source(&wanted, &module->paths);
    symbolcache_open(&module->cache, &module->source);
    module->cache_opened = true;
    return true;
}

/* The answer that is known already, or that an earlier command found; NULL: none. */
static const struct symbol_frames *module_known(struct module *module, uint64_t offset) {
    const struct symbol_frames *frames = numbermap_get(&module->answers, offset);
    if (frames || !open_cache(module)) {
        return frames;
    }
    frames = symbolcache_find(&module->cache, offset, &module->cache_memory);
    return frames && numbermap_put(&module->answers, offset, (void *)(uintptr_t)frames) != 0
               ? NULL
               : frames;
}

/* Keeps a new answer. 0, or -1: out of memory. */
static int module_keep(struct module *module, uint64_t offset, const struct symbol_frames *frames) {
    module->fresh++;
    return numbermap_put(&module->answers, offset, (void *)(uintptr_t)frames);
}

static void open_dwarf(struct lookup *lookup, const struct debugimage *image, char *problem,
                       size_t size) {
    const struct module *module = lookup->module;
    if (module->paths.debug) {
        dwarffile_open(&lookup->dwarf, module->paths.debug, image, module->folders, problem, size);
    }
}

static void try_split(void *what) {
    dwarffile_try_split(&((struct lookup *)what)->dwarf);
}

/* The first one of a module makes the index. 0 or -1. */
static int open_lookup(struct lookup *lookup) {
    struct module *module = lookup->module;
    char problem[512] = "";
    int status;
    open_dwarf(lookup, &module->image, problem, sizeof problem);
    pthread_mutex_lock(&module->lock);
    status = module_index(module, lookup, problem);
    lookup->next = module->lookups;
    module->lookups = lookup;
    pthread_mutex_unlock(&module->lock);
    /* Of memory libdw does not know in which folder .dwo files lie. */
    if (module->split && lookup->dwarf.image) {
        struct debugimage none = {0};
        dwarffile_close(&lookup->dwarf);
        open_dwarf(lookup, &none, problem, sizeof problem);
    }
    if (status == 0 && module->split && lookup->dwarf.dwarf) {
        status = job_run(try_split, lookup, &lookup->memory, NULL);
    }
    return status;
}

/* Lends a lookup; NULL: out of memory. Any thread. */
static struct lookup *module_take(struct module *module) {
    int status = 0;
    pthread_mutex_lock(&module->lock);
    struct lookup *lookup = module->idle;
    if (lookup) {
        module->idle = lookup->next_idle;
    } else {
        /* What must be there before a file is opened. */
        status = module_search(module);
        if (status == 0 && !module->unpacked && module->paths.debug) {
            debugimage_make(&module->image, module->paths.debug, module->threads);
        }
        module->unpacked |= status == 0;
    }
    pthread_mutex_unlock(&module->lock);
    if (lookup || status != 0) {
        return lookup;
    }
    lookup = calloc(1, sizeof *lookup);
    if (!lookup) {
        return NULL;
    }
    lookup->module = module;
    if (open_lookup(lookup) != 0) {
        dwarffile_close(&lookup->dwarf); /* it has no answers; closing it again does nothing */
        return NULL;
    }
    return lookup;
}

static void module_give_back(struct lookup *lookup) {
    struct module *module = lookup->module;
    pthread_mutex_lock(&module->lock);
    if (lookup->dwarf.missing[0] && !module->paths.problem[0]) {
        snprintf(module->paths.problem, sizeof module->paths.problem,
                 "%.180s: debug information is missing, in %.180s or a .dwp beside the program: "
                 "inlined functions are not shown",
                 module->path, lookup->dwarf.missing);
    }
    lookup->next_idle = module->idle;
    module->idle = lookup;
    pthread_mutex_unlock(&module->lock);
}

/* The readable form of a mangled name; NULL: it is not mangled. */
static const char *readable(struct lookup *lookup, const char *name) {
    char *known = numbermap_get(&lookup->names, (uintptr_t)name);
    if (!known) {
        char *demangled = symbol_demangle(name);
        known = demangled ? job_take(demangled) : (char *)(uintptr_t)name;
        numbermap_set(&lookup->names, (uintptr_t)name, known);
    }
    return known == name ? NULL : known;
}

/* The file's path as people write it: absolute if it can be told from where the unit was compiled,
 * without detours. */
static const char *lookup_path(struct lookup *lookup, const struct dwarfunit *unit,
                               const char *path) {
    bool relative = path && path[0] != '/' && unit->folder && unit->folder[0] == '/';
    if (!path || (!relative && !strstr(path, "/."))) {
        return path;
    }
    char *known = numbermap_get(&lookup->names, (uintptr_t)path);
    if (known) {
        return known;
    }
    char *made = job_text("%s%s%s", relative ? unit->folder : "", relative ? "/" : "", path);
    symbol_shorten_path(made);
    numbermap_set(&lookup->names, (uintptr_t)path, made);
    return made;
}

static void load_symtab_in_job(void *what) {
    struct module *module = what;
    symtab_load(&module->symtab, &module->paths);
}

static const struct symtab *load_symtab(struct lookup *lookup) {
    struct module *module = lookup->module;
    struct error error;
    int status = 0;
    pthread_mutex_lock(&module->lock);
    if (!module->symtab_loaded) {
        status = job_run(load_symtab_in_job, module, &module->memory, &error);
    }
    if (status != 0) {
        symtab_close(&module->symtab);
    }
    module->symtab_loaded |= status == 0;
    pthread_mutex_unlock(&module->lock);
    job_check(status, &error);
    return &module->symtab;
}

/* The name of a function without mangled name; its DIEs all lead to one declaration. */
static const char *declared_name(struct lookup *lookup, Dwarf_Die *die) {
    Dwarf_Die declaration = dwarfname_declaration(die);
    char name[2048];
    char *kept = numbermap_get(&lookup->names, (uintptr_t)declaration.addr);
    if (!kept && dwarfname_qualified(&declaration, name, sizeof name)) {
        kept = job_string(name);
        numbermap_set(&lookup->names, (uintptr_t)declaration.addr, kept);
    }
    return kept ? kept : dwarf_diename(die);
}

/* The name of a function at the offset; `inlined`: it has no symbol of its own. */
static const char *dwarf_function(struct lookup *lookup, Dwarf_Die *die, uint64_t offset,
                                  bool inlined) {
    const char *linkage = dwarfname_linkage(die);
    const char *mangled = linkage || inlined ? linkage : symtab_name(load_symtab(lookup), offset);
    const char *demangled = mangled ? readable(lookup, mangled) : NULL;
    if (demangled) {
        return demangled;
    }
    /* A linkage name that is not mangled is that of extern "C". One that is may be newer than the
     * demangler: Clang 19's of constrained templates are. */
    bool plain = linkage && strncmp(linkage, "_Z", 2) != 0;
    const char *name = plain ? dwarf_diename(die) : declared_name(lookup, die);
    return name ? name : mangled;
}

static const struct symbol_frames *make_frames(size_t count, struct symbol_frame **array) {
    struct symbol_frames *frames = job_alloc(sizeof *frames);
    *array = job_alloc(count * sizeof **array);
    *frames = (struct symbol_frames){count, *array};
    return frames;
}

/* The frames of an address whose functions (innermost first) are known. */
static const struct symbol_frames *chain_frames(struct lookup *lookup, struct dwarfunit *unit,
                                                uint64_t offset, Dwarf_Die *functions,
                                                size_t count) {
    struct symbol_frame *frame;
    const struct symbol_frames *frames = make_frames(count, &frame);
    struct dwarfunit_place place = dwarfunit_line(unit, offset);
    for (size_t i = 0; i < count; i++) {
        frame[i] = (struct symbol_frame){
            .function = dwarf_function(lookup, &functions[i], offset, i + 1 < count),
            .file = lookup_path(lookup, unit, place.file),
            .line = place.line,
            .column = place.column,
            .inlined = i + 1 < count,
        };
        if (frame[i].inlined) {
            place = dwarfunit_call(unit, &functions[i]);
        }
    }
    return frames;
}

/* The frame of an address outside every DWARF function; place.file is as people write it. */
static const struct symbol_frames *plain_frame(struct lookup *lookup, uint64_t offset,
                                               struct dwarfunit_place place) {
    const char *name = symtab_name(load_symtab(lookup), offset);
    const char *demangled = name ? readable(lookup, name) : NULL;
    if (!name && !place.line) {
        return &no_frames;
    }
    struct symbol_frame *frame;
    const struct symbol_frames *frames = make_frames(1, &frame);
    *frame = (struct symbol_frame){demangled ? demangled : name, place.file, place.line,
                                   place.column, false};
    return frames;
}

/* The frames at the offset (perhaps none). */
static const struct symbol_frames *lookup_frames(struct lookup *lookup, uint64_t offset) {
    struct dwarfunit_place place = {0};
    const struct range *range = NULL;
    while (lookup->dwarf.dwarf &&
           (range = rangetable_find(&lookup->module->units, offset, range))) {
        struct dwarfunit *unit = dwarffile_unit(&lookup->dwarf, range->value);
        Dwarf_Die functions[DWARFUNIT_DEPTH];
        int count = unit ? dwarfunit_functions(unit, offset, functions) : 0;
        if (count > 0) {
            return chain_frames(lookup, unit, offset, functions, (size_t)count);
        }
        if (unit && !place.line) {
            place = dwarfunit_line(unit, offset);
            place.file = lookup_path(lookup, unit, place.file);
        }
    }
    return plain_frame(lookup, offset, place);
}

/* ---- Addresses of one module: in a job, whose memory becomes the lookup's ---- */

struct batch_item {
    struct module *module;
    uint64_t offset;
    const struct symbol_frames *frames; /* the answer; NULL: none yet */
};

struct resolving {
    struct lookup *lookup;
    struct batch_item *items;
    size_t count;
    const atomic_bool *cancel; /* NULL: never */
    atomic_size_t *done;
};

static bool is_cancelled(const atomic_bool *cancel) {
    return cancel && atomic_load_explicit(cancel, memory_order_relaxed);
}

static void resolve_items(void *what) {
    struct resolving *resolving = what;
    for (size_t i = 0; i < resolving->count && !is_cancelled(resolving->cancel); i++) {
        struct batch_item *item = &resolving->items[i];
        item->frames = lookup_frames(resolving->lookup, item->offset);
        atomic_fetch_add_explicit(resolving->done, 1, memory_order_relaxed);
    }
}

/* Any thread. 0, or -1: out of memory, and none has an answer. */
static int module_resolve(struct batch_item *items, size_t count, const atomic_bool *cancel,
                          atomic_size_t *done) {
    struct resolving resolving = {module_take(items[0].module), items, count, cancel, done};
    int result = 0;
    if (!resolving.lookup) {
        return -1;
    }
    if (job_run(resolve_items, &resolving, &resolving.lookup->memory, NULL) != 0) {
        /* What it had begun is gone; earlier answers and what they need stay. */
        resolving.lookup->names = (struct numbermap){0};
        resolving.lookup->dwarf.units = (struct numbermap){0};
        for (size_t i = 0; i < count; i++) {
            items[i].frames = NULL;
        }
        result = -1;
    }
    module_give_back(resolving.lookup);
    return result;
}

/* ---- All modules ---- */

enum { DEFAULT_THREADS_LIMIT = 8 };

struct symbolizer {
    char *folders;
    unsigned threads;
    bool cached;
    struct numbermap modules; /* hash of path and build-id -> struct module */
    struct module **list;
    size_t count;
    size_t room;
    const char **warnings; /* made by symbolizer_warnings */
    size_t warning_room;
};

struct symbolizer *symbolizer_open(const struct symbolizer_options *options, struct error *error) {
    struct symbolizer *symbolizer = calloc(1, sizeof *symbolizer);
    const char *folders = options && options->debug_folders ? options->debug_folders : NULL;
    if (symbolizer) {
        symbolizer->folders = strdup(folders ? folders : "/usr/lib/debug");
    }
    if (!symbolizer || !symbolizer->folders) {
        free(symbolizer);
        error_set(error, "no memory for the symbolizer");
        return NULL;
    }
    symbolizer->cached = options && options->cached;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    symbolizer->threads = options ? options->threads : 0;
    if (symbolizer->threads == 0) {
        symbolizer->threads = processors < 1                       ? 1
                              : processors > DEFAULT_THREADS_LIMIT ? DEFAULT_THREADS_LIMIT
                                                                   : (unsigned)processors;
    }
    return symbolizer;
}

void symbolizer_close(struct symbolizer *symbolizer) {
    if (!symbolizer) {
        return;
    }
    for (size_t i = 0; i < symbolizer->count; i++) {
        module_free(symbolizer->list[i]);
    }
    numbermap_free(&symbolizer->modules);
    free(symbolizer->warnings);
    free(symbolizer->list);
    free(symbolizer->folders);
    free(symbolizer);
}

static bool is_module(const struct module *known, const struct symbol_module *module) {
    return known->build_id_size == module->build_id_size &&
           strcmp(known->path, module->path) == 0 &&
           (module->build_id_size == 0 ||
            memcmp(known->build_id, module->build_id, module->build_id_size) == 0);
}

/* The symbolizer's own record of the module; NULL: out of memory. */
static struct module *symbolizer_module(struct symbolizer *symbolizer,
                                        const struct symbol_module *module) {
    uint64_t hash = XXH3_64bits(module->path, strlen(module->path));
    if (module->build_id_size) {
        hash = XXH3_64bits_withSeed(module->build_id, module->build_id_size, hash);
    }
    struct module *known;
    /* Two modules with one hash: the later one takes the next number. */
    while ((known = numbermap_get(&symbolizer->modules, hash)) && !is_module(known, module)) {
        hash++;
    }
    if (known) {
        return known;
    }
    known = module_new(module, symbolizer->folders, symbolizer->threads, symbolizer->cached);
    if (known && (array_grow(&symbolizer->list, &symbolizer->room, symbolizer->count,
                             sizeof(*symbolizer->list)) != 0 ||
                  array_reserve(&symbolizer->warnings, &symbolizer->warning_room, symbolizer->room,
                                sizeof(*symbolizer->warnings)) != 0 ||
                  numbermap_put(&symbolizer->modules, hash, known) != 0)) {
        module_free(known);
        return NULL;
    }
    if (known) {
        symbolizer->list[symbolizer->count++] = known;
    }
    return known;
}

int symbolizer_resolve(struct symbolizer *symbolizer, const struct symbol_module *module,
                       uint64_t offset, struct symbol_frames *out) {
    *out = (struct symbol_frames){0};
    struct module *known = symbolizer_module(symbolizer, module);
    if (!known) {
        return -1;
    }
    struct batch_item item = {known, offset, module_known(known, offset)};
    atomic_size_t done = 0;
    if (!item.frames && (module_resolve(&item, 1, NULL, &done) != 0 ||
                         module_keep(known, offset, item.frames) != 0)) {
        return -1;
    }
    *out = *item.frames;
    return 0;
}

/* ---- Many addresses of many modules: a few threads that take shares off a list. A share is a run
 * of addresses of one module. Large runs are cut, so that one large module keeps every thread busy;
 * each then has a handle of its own on the file ---- */

enum {
    SMALLEST_CUT = 512,     /* addresses; below this a second handle costs more than it saves */
    SMALLEST_THREADED = 64, /* addresses; below this threads are not worth starting */
    PROGRESS_EVERY_MS = 100,
    THREADS_LIMIT = 64
};

struct share {
    size_t first;
    size_t end;
};

struct batch {
    struct batch_item *items;
    const atomic_bool *cancel; /* NULL: never */
    struct share *shares;
    size_t share_count;
    atomic_size_t next_share;
    atomic_size_t done; /* items */
    atomic_bool failed;
    pthread_mutex_t lock; /* guards running */
    pthread_cond_t ended; /* running became 0 */
    unsigned running;
};

static void resolve_shares(struct batch *batch) {
    size_t share;
    while (!is_cancelled(batch->cancel) &&
           (share = atomic_fetch_add(&batch->next_share, 1)) < batch->share_count) {
        if (module_resolve(batch->items + batch->shares[share].first,
                           batch->shares[share].end - batch->shares[share].first, batch->cancel,
                           &batch->done) != 0) {
            atomic_store(&batch->failed, true);
        }
    }
}

static void *run_worker(void *argument) {
    struct batch *batch = argument;
    resolve_shares(batch);
    pthread_mutex_lock(&batch->lock);
    if (--batch->running == 0) {
        pthread_cond_signal(&batch->ended);
    }
    pthread_mutex_unlock(&batch->lock);
    return NULL;
}

/* Cuts the items into shares. */
static void make_shares(struct batch *batch, size_t count, unsigned threads) {
    size_t largest = count / (threads * 2) + 1;
    size_t room = 0;
    largest = largest < SMALLEST_CUT ? SMALLEST_CUT : largest;
    for (size_t first = 0; first < count;) {
        size_t end = first + 1;
        while (end < count && end - first < largest &&
               batch->items[end].module == batch->items[first].module) {
            end++;
        }
        job_grow(&batch->shares, &room, batch->share_count, sizeof *batch->shares);
        batch->shares[batch->share_count++] = (struct share){first, end};
        first = end;
    }
}

/* Until the last worker has ended: tells the caller how far it is. */
static void run_workers(struct batch *batch, unsigned threads, size_t count,
                        symbol_progress progress, void *context) {
    pthread_t workers[THREADS_LIMIT];
    unsigned started = 0;
    pthread_mutex_lock(&batch->lock);
    while (started < threads && pthread_create(&workers[started], NULL, run_worker, batch) == 0) {
        started++;
    }
    batch->running = started;
    if (started == 0) {
        pthread_mutex_unlock(&batch->lock);
        resolve_shares(batch);
        return;
    }
    while (batch->running > 0) {
        struct timespec until = timedwait_until(PROGRESS_EVERY_MS);
        if (pthread_cond_timedwait(&batch->ended, &batch->lock, &until) != ETIMEDOUT || !progress) {
            continue;
        }
        pthread_mutex_unlock(&batch->lock);
        progress(context, atomic_load(&batch->done), count);
        pthread_mutex_lock(&batch->lock);
    }
    pthread_mutex_unlock(&batch->lock);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(workers[i], NULL);
    }
}

/* What symbolizer_prepare() was given. */
struct preparing {
    struct symbolizer *symbolizer;
    const struct symbol_module *modules;
    size_t module_count;
    const struct symbol_address *addresses;
    size_t address_count;
    const atomic_bool *cancel;
    symbol_progress progress;
    void *context;
};

/* The items that have no answer yet; some, if it is cancelled. */
static struct batch_item *collect_items(const struct preparing *preparing, size_t *count) {
    struct module **known = job_array(preparing->module_count, sizeof(*known));
    struct batch_item *items = job_array(preparing->address_count, sizeof *items);
    for (size_t i = 0; i < preparing->address_count && !is_cancelled(preparing->cancel); i++) {
        const struct symbol_address *address = &preparing->addresses[i];
        size_t number = address->module;
        if (number >= preparing->module_count) {
            continue;
        }
        if (!known[number]) {
            known[number] = symbolizer_module(preparing->symbolizer, &preparing->modules[number]);
        }
        if (!known[number]) {
            job_fail_memory();
        }
        if (!module_known(known[number], address->offset)) {
            items[(*count)++] = (struct batch_item){known[number], address->offset, NULL};
        }
    }
    return items;
}

/* The items by module, those of a module by offset, without repeats. NULL: cancelled. */
static struct batch_item *sort_items(const struct batch_item *items, size_t count, size_t *kept,
                                     const atomic_bool *cancel) {
    struct sort_key *keys = job_array(count, sizeof *keys);
    struct batch_item *sorted = job_array(count, sizeof *sorted);
    enum sort_status status;
    for (size_t i = 0; i < count; i++) {
        keys[i] = (struct sort_key){items[i].offset, i};
    }
    status = sort_keys(keys, count, cancel);
    for (size_t i = 0; status == SORT_DONE && i < count; i++) {
        keys[i].key = (uintptr_t)items[keys[i].place].module;
    }
    if (status == SORT_DONE) {
        status = sort_keys(keys, count, cancel);
    }
    if (status == SORT_NO_MEMORY) {
        job_fail_memory();
    }
    for (size_t i = 0; status == SORT_DONE && i < count; i++) {
        const struct batch_item *item = &items[keys[i].place];
        const struct batch_item *last = *kept != 0 ? &sorted[*kept - 1] : NULL;
        if (!last || last->module != item->module || last->offset != item->offset) {
            sorted[(*kept)++] = *item;
        }
    }
    job_release(keys);
    return status == SORT_DONE ? sorted : NULL;
}

static void prepare_addresses(void *what) {
    const struct preparing *preparing = what;
    struct batch batch = {.cancel = preparing->cancel};
    unsigned threads = preparing->symbolizer->threads;
    size_t collected = 0, count = 0;
    struct batch_item *items = collect_items(preparing, &collected);
    batch.items = sort_items(items, collected, &count, preparing->cancel);
    if (!batch.items) {
        return;
    }
    threads = threads < THREADS_LIMIT ? threads : THREADS_LIMIT;
    make_shares(&batch, count, threads);
    pthread_mutex_init(&batch.lock, NULL);
    timedwait_init(&batch.ended);
    /* With a progress line the work needs a thread of its own even on one CPU. */
    if (count < SMALLEST_THREADED || (threads < 2 && !preparing->progress)) {
        resolve_shares(&batch);
    } else {
        run_workers(&batch, threads < batch.share_count ? threads : (unsigned)batch.share_count,
                    count, preparing->progress, preparing->context);
    }
    pthread_cond_destroy(&batch.ended);
    pthread_mutex_destroy(&batch.lock);
    if (preparing->progress) {
        preparing->progress(preparing->context, count, count);
    }
    if (is_cancelled(preparing->cancel)) {
        return;
    }
    /* Some may be missing for want of memory. */
    bool failed = atomic_load(&batch.failed);
    for (size_t i = 0; i < count; i++) {
        const struct batch_item *item = &batch.items[i];
        failed |= item->frames && module_keep(item->module, item->offset, item->frames) != 0;
    }
    if (failed) {
        job_fail_memory();
    }
}

int symbolizer_prepare(struct symbolizer *symbolizer, const struct symbol_module *modules,
                       size_t module_count, const struct symbol_address *addresses,
                       size_t address_count, const atomic_bool *cancel, symbol_progress progress,
                       void *context) {
    struct preparing preparing = {symbolizer,    modules, module_count, addresses,
                                  address_count, cancel,  progress,     context};
    if (module_count == 0 || address_count == 0) {
        return 0;
    }
    if (job_run(prepare_addresses, &preparing, NULL, NULL) != 0) {
        return -1;
    }
    return is_cancelled(cancel) ? SYMBOL_CANCELLED : 0;
}

size_t symbolizer_warnings(const struct symbolizer *symbolizer, const char *const **lines) {
    size_t count = 0;
    for (size_t i = 0; i < symbolizer->count; i++) {
        if (symbolizer->list[i]->paths.problem[0]) {
            symbolizer->warnings[count++] = symbolizer->list[i]->paths.problem;
        }
    }
    *lines = symbolizer->warnings;
    return count;
}
