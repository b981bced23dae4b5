/* SPDX-License-Identifier: MIT */
/* modelcache.c: models and indices as files of the cache. See modelcache.h. */
#include "analyze/window/modelcache.h"

#include "analyze/replay/marks.h"
#include "analyze/window/index.h"
#include "analyze/window/sums.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

enum { NAME_BYTES = 40, LAYOUT = 3 };
#define MOST_BYTES ((uint64_t)1 << 30)

static const struct cachefolder_kind kind = {
    .name = "index", .version = LAYOUT, .most_bytes = MOST_BYTES};

/* ---- The file ---- */

/* Pieces, in this order; each begins at a multiple of 8. */
enum piece {
    PIECE_HEAD,
    PIECE_NODES, /* those that there are: ids may be far apart */
    PIECE_THREADS,
    PIECE_MODULES, /* path: where it is in the strings */
    PIECE_STRINGS,
    PIECE_POOLS,
    PIECE_TIMELINE,
    PIECE_MARKS, /* name: the same */
    PIECE_MARK_NAMES,
    PIECE_ALL, /* bytes of the slice of everything */
    PIECE_ENTRIES,
    PIECE_BYTES, /* of the entries */
    PIECES
};

struct kept_node {
    uint64_t frame;
    uint32_t parent;
    uint32_t id;
};

/* A slice of the index; its bytes follow each other in PIECE_BYTES. */
struct kept_entry {
    uint64_t start_ns;
    uint64_t place_size, state_size, waited_size;
    struct slice slice;
};

struct head {
    uint64_t sizes[PIECES];      /* in bytes */
    uint64_t item_sizes[PIECES]; /* of a program with other structures the file is not read */
    struct memtrace_header header;
    struct model_totals totals;
    struct model_recording recording;
    struct slice all;
    uint64_t now_ns;
    uint64_t mark_total;
    uint64_t node_count; /* of the model */
    char damage[sizeof((struct model *)NULL)->damage];
};

static const uint64_t item_sizes[PIECES] = {
    [PIECE_HEAD] = sizeof(struct head),
    [PIECE_NODES] = sizeof(struct kept_node),
    [PIECE_THREADS] = sizeof(struct model_thread),
    [PIECE_MODULES] = sizeof(struct model_module),
    [PIECE_STRINGS] = 1,
    [PIECE_POOLS] = sizeof(*((struct model *)NULL)->pools),
    [PIECE_TIMELINE] = sizeof(struct memtrace_point),
    [PIECE_MARKS] = sizeof(struct model_mark),
    [PIECE_MARK_NAMES] = 1,
    [PIECE_ALL] = 1,
    [PIECE_ENTRIES] = sizeof(struct kept_entry),
    [PIECE_BYTES] = 1,
};

static size_t padded(uint64_t size) {
    return (size + 7) & ~(uint64_t)7;
}

/* ---- Which recording ---- */

static void name_of(struct timeorder_parts parts, char name[NAME_BYTES]) {
    XXH3_state_t *state = XXH3_createState();
    XXH128_hash_t hash = {0};
    if (state == NULL) {
        name[0] = '\0';
        return;
    }
    XXH3_128bits_reset(state);
    for (size_t i = 0; i < parts.count; i++) {
        const struct recording *recording = parts.items[i];
        struct stat status;
        if (fstat(recording->fd, &status) == 0) {
            XXH3_128bits_update(state, &status.st_mtim, sizeof status.st_mtim);
        }
        XXH3_128bits_update(state, &recording->header, sizeof recording->header);
        XXH3_128bits_update(state, &recording->size, sizeof recording->size);
        XXH3_128bits_update(state, &recording->closed, sizeof recording->closed);
        XXH3_128bits_update(state, recording->damage, strlen(recording->damage) + 1);
        XXH3_128bits_update(state, recording->blocks,
                            recording->block_count * sizeof *recording->blocks);
    }
    hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    snprintf(name, NAME_BYTES, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

/* ---- Storing ---- */

/* The pieces while they are put together; some are copies of the model's with offsets. */
struct storing {
    struct head head;
    struct cachefolder_piece pieces[2 * PIECES + 4 * INDEX_SLICES];
    size_t count;
    struct kept_node *nodes;
    struct model_module *modules;
    char *strings;
    struct model_mark *marks;
    struct kept_entry *entries;
};

static void add(struct storing *storing, const void *bytes, size_t size) {
    storing->pieces[storing->count++] = (struct cachefolder_piece){bytes, size};
}

static void add_piece(struct storing *storing, enum piece piece, const void *items, size_t count) {
    static const char zeros[8];
    size_t size = count * item_sizes[piece];
    storing->head.sizes[piece] = size;
    add(storing, items, size);
    add(storing, zeros, padded(size) - size);
}

static int add_modules(struct storing *storing, const struct model *model) {
    size_t size = 0;
    for (size_t i = 0; i < model->module_count; i++) {
        size += strlen(model->modules[i].path) + 1;
    }
    storing->modules = calloc(model->module_count + 1, sizeof *storing->modules);
    storing->strings = malloc(size + 1);
    if (storing->modules == NULL || storing->strings == NULL) {
        return -1;
    }
    size = 0;
    for (size_t i = 0; i < model->module_count; i++) {
        size_t length = strlen(model->modules[i].path) + 1;
        storing->modules[i] = model->modules[i];
        storing->modules[i].path = (const char *)(uintptr_t)size;
        memcpy(storing->strings + size, model->modules[i].path, length);
        size += length;
    }
    add_piece(storing, PIECE_MODULES, storing->modules, model->module_count);
    add_piece(storing, PIECE_STRINGS, storing->strings, size);
    return 0;
}

/* Offset of the name, plus one; 0: it has none. */
static int add_marks(struct storing *storing, const struct model *model) {
    storing->marks = calloc(model->mark_count + 1, sizeof *storing->marks);
    if (storing->marks == NULL) {
        return -1;
    }
    for (size_t i = 0; i < model->mark_count; i++) {
        const char *name = model->marks[i].name;
        storing->marks[i] = model->marks[i];
        storing->marks[i].name =
            (const char *)(uintptr_t)(name[0] != '\0' ? name - model->mark_names + 1 : 0);
    }
    add_piece(storing, PIECE_MARKS, storing->marks, model->mark_count);
    add_piece(storing, PIECE_MARK_NAMES, model->mark_names, model->mark_names_size);
    return 0;
}

static void add_bytes(struct storing *storing, const void *bytes, size_t size) {
    storing->head.sizes[PIECE_BYTES] += size;
    add(storing, bytes, size);
}

static int add_index(struct storing *storing, const struct index *index) {
    storing->entries = calloc(index->count + 1, sizeof *storing->entries);
    if (storing->entries == NULL) {
        return -1;
    }
    for (size_t i = 0; i < index->count; i++) {
        const struct index_entry *entry = &index->entries[i];
        storing->entries[i] =
            (struct kept_entry){entry->start_ns, entry->place.size, entry->state.size,
                                entry->waited.size, entry->slice};
        storing->entries[i].slice.bytes = NULL;
    }
    add_piece(storing, PIECE_ENTRIES, storing->entries, index->count);
    for (size_t i = 0; i < index->count; i++) {
        const struct index_entry *entry = &index->entries[i];
        add_bytes(storing, entry->place.bytes, entry->place.size);
        add_bytes(storing, entry->state.bytes, entry->state.size);
        add_bytes(storing, entry->waited.bytes, entry->waited.size);
        add_bytes(storing, entry->slice.bytes, entry->slice.size);
    }
    return 0;
}

static int add_nodes(struct storing *storing, const struct model *model) {
    size_t count = 0;
    for (size_t id = 0; id < model->node_count; id++) {
        count += model->nodes[id].frame != 0;
    }
    storing->nodes = malloc((count + 1) * sizeof *storing->nodes);
    if (storing->nodes == NULL) {
        return -1;
    }
    count = 0;
    for (size_t id = 0; id < model->node_count; id++) {
        const struct model_node *node = &model->nodes[id];
        if (node->frame != 0) {
            storing->nodes[count++] = (struct kept_node){node->frame, node->parent, (uint32_t)id};
        }
    }
    add_piece(storing, PIECE_NODES, storing->nodes, count);
    return 0;
}

static int collect(struct storing *storing, const struct model *model) {
    struct head *head = &storing->head;
    add_piece(storing, PIECE_HEAD, head, 1);
    memcpy(head->item_sizes, item_sizes, sizeof item_sizes);
    head->header = model->header;
    head->totals = model->totals;
    head->recording = model->recording;
    head->all = model->index->all;
    head->all.bytes = NULL;
    head->now_ns = model->now_ns;
    head->mark_total = model->mark_total;
    memcpy(head->damage, model->damage, sizeof head->damage);
    head->node_count = model->node_count;
    if (add_nodes(storing, model) != 0) {
        return -1;
    }
    add_piece(storing, PIECE_THREADS, model->threads, model->thread_count);
    if (add_modules(storing, model) != 0) {
        return -1;
    }
    add_piece(storing, PIECE_POOLS, model->pools, model->pool_count);
    add_piece(storing, PIECE_TIMELINE, model->timeline, model->timeline_count);
    if (add_marks(storing, model) != 0) {
        return -1;
    }
    add_piece(storing, PIECE_ALL, model->index->all.bytes, model->index->all.size);
    return add_index(storing, model->index);
}

int modelcache_store(struct timeorder_parts parts, struct model *model) {
    struct storing *storing = calloc(1, sizeof *storing);
    char name[NAME_BYTES];
    int result = -1;
    name_of(parts, name);
    if (storing != NULL && name[0] != '\0' && model->index->all.bytes != NULL &&
        collect(storing, model) == 0) {
        result = cachefolder_store(&kind, name, storing->pieces, storing->count);
    }
    if (storing != NULL) {
        free(storing->nodes);
        free(storing->modules);
        free(storing->strings);
        free(storing->marks);
        free(storing->entries);
        free(storing);
    }
    slice_free(&model->index->all);
    return result;
}

/* ---- Loading ---- */

/* The pieces of a file that was checked: its bytes are those that were stored. */
struct loading {
    const struct head *head;
    const unsigned char *pieces[PIECES];
    struct model *model;
};

static size_t count_of(const struct loading *loading, enum piece piece) {
    return (size_t)(loading->head->sizes[piece] / item_sizes[piece]);
}

static int find_pieces(struct loading *loading, const struct cachefolder_file *file) {
    const struct head *head = (const void *)file->bytes;
    size_t at = 0;
    if (file->size < sizeof *head || memcmp(head->item_sizes, item_sizes, sizeof item_sizes) != 0) {
        return -1;
    }
    loading->head = head;
    for (size_t piece = 0; piece < PIECES; piece++) {
        if (head->sizes[piece] > file->size - at) {
            return -1;
        }
        loading->pieces[piece] = file->bytes + at;
        at += padded(head->sizes[piece]);
        at = at < file->size ? at : file->size;
    }
    return 0;
}

/* A copy of the piece, never NULL but where memory is out. */
static void *copy_piece(const struct loading *loading, enum piece piece) {
    size_t size = (size_t)loading->head->sizes[piece];
    void *copy = malloc(size + 1);
    if (copy != NULL) {
        memcpy(copy, loading->pieces[piece], size);
    }
    return copy;
}

static int load_nodes(const struct loading *loading) {
    struct model *model = loading->model;
    const struct kept_node *kept = (const void *)loading->pieces[PIECE_NODES];
    size_t count = count_of(loading, PIECE_NODES);
    model->node_count = (size_t)loading->head->node_count;
    model->nodes = calloc(model->node_count + 1, sizeof *model->nodes);
    for (size_t i = 0; model->nodes != NULL && i < count; i++) {
        model->nodes[kept[i].id] = (struct model_node){kept[i].frame, kept[i].parent};
    }
    return model->nodes != NULL ? 0 : -1;
}

static int load_modules(const struct loading *loading) {
    struct model *model = loading->model;
    model->modules = copy_piece(loading, PIECE_MODULES);
    model->strings = copy_piece(loading, PIECE_STRINGS);
    model->module_count = count_of(loading, PIECE_MODULES);
    if (model->modules == NULL || model->strings == NULL) {
        return -1;
    }
    for (size_t i = 0; i < model->module_count; i++) {
        model->modules[i].path = model->strings + (uintptr_t)model->modules[i].path;
    }
    return 0;
}

static int load_marks(const struct loading *loading) {
    struct model *model = loading->model;
    model->mark_count = count_of(loading, PIECE_MARKS);
    model->mark_total = loading->head->mark_total;
    if (model->mark_count == 0) {
        return 0;
    }
    model->marks = copy_piece(loading, PIECE_MARKS);
    model->mark_names = copy_piece(loading, PIECE_MARK_NAMES);
    model->mark_names_size = count_of(loading, PIECE_MARK_NAMES);
    if (model->marks == NULL || model->mark_names == NULL) {
        return -1;
    }
    for (size_t i = 0; i < model->mark_count; i++) {
        uintptr_t place = (uintptr_t)model->marks[i].name;
        model->marks[i].name = place != 0 ? model->mark_names + place - 1 : "";
    }
    return 0;
}

static int load_contexts(const struct loading *loading) {
    struct model *model = loading->model;
    struct slice all = loading->head->all;
    struct sums sums;
    int result;
    all.bytes = (unsigned char *)loading->pieces[PIECE_ALL];
    result = sums_start(&sums, model);
    if (result == 0) {
        result = sums_add(&sums, &all) == 0 && sums_finish(&sums) == 0 ? 0 : -1;
    }
    sums_end(&sums);
    return result;
}

/* The next bytes of the entries. */
static struct varint_writer take_bytes(unsigned char **at, uint64_t size) {
    struct varint_writer bytes = {.bytes = *at, .size = (size_t)size, .capacity = (size_t)size};
    *at += size;
    return bytes;
}

static int load_index(const struct loading *loading, const struct cachefolder_file *file) {
    const struct kept_entry *kept = (const void *)loading->pieces[PIECE_ENTRIES];
    unsigned char *at = (unsigned char *)loading->pieces[PIECE_BYTES];
    struct index *index = calloc(1, sizeof *index);
    size_t count = count_of(loading, PIECE_ENTRIES);
    if (index == NULL || (index->entries = calloc(count + 1, sizeof *index->entries)) == NULL) {
        free(index);
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        struct index_entry *entry = &index->entries[i];
        entry->start_ns = kept[i].start_ns;
        entry->place = take_bytes(&at, kept[i].place_size);
        entry->state = take_bytes(&at, kept[i].state_size);
        entry->waited = take_bytes(&at, kept[i].waited_size);
        entry->slice = kept[i].slice;
        entry->slice.bytes = take_bytes(&at, kept[i].slice.size).bytes;
    }
    index->count = count;
    index->file = *file; /* its bytes are used from here on */
    loading->model->index = index;
    loading->model->free_index = index_free;
    return 0;
}

static int load_all(const struct loading *loading) {
    struct model *model = loading->model;
    const struct head *head = loading->head;
    model->header = head->header;
    model->recording = head->recording;
    model->threads = copy_piece(loading, PIECE_THREADS);
    model->thread_count = count_of(loading, PIECE_THREADS);
    model->pools = copy_piece(loading, PIECE_POOLS);
    model->pool_count = count_of(loading, PIECE_POOLS);
    model->timeline = copy_piece(loading, PIECE_TIMELINE);
    model->timeline_count = count_of(loading, PIECE_TIMELINE);
    if (load_nodes(loading) != 0 || model->threads == NULL || model->pools == NULL ||
        model->timeline == NULL || load_modules(loading) != 0 || load_marks(loading) != 0 ||
        load_contexts(loading) != 0) {
        return -1;
    }
    model->header = head->header;
    model->totals = head->totals;
    model->recording = head->recording;
    model->to_ns = UINT64_MAX;
    model->now_ns = head->now_ns;
    memcpy(model->damage, head->damage, sizeof model->damage);
    return 0;
}

struct model *modelcache_load(struct timeorder_parts parts) {
    struct loading loading = {.model = calloc(1, sizeof *loading.model)};
    struct cachefolder_file file = {0};
    char name[NAME_BYTES];
    name_of(parts, name);
    if (loading.model != NULL && name[0] != '\0' && cachefolder_load(&kind, name, &file) == 0 &&
        find_pieces(&loading, &file) == 0 && load_all(&loading) == 0 &&
        load_index(&loading, &file) == 0) {
        return loading.model;
    }
    cachefolder_unload(&file);
    model_free(loading.model);
    return NULL;
}

struct model *modelcache_replay(struct timeorder_parts parts, const struct replay_options *options,
                                struct error *error) {
    struct model *model = modelcache_load(parts);
    if (model != NULL) {
        return model;
    }
    model = model_replay(parts, options, error);
    if (model != NULL && !model->live) { /* what still grows is another recording soon */
        modelcache_store(parts, model);
    }
    return model;
}
