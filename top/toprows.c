/* SPDX-License-Identifier: MIT */
/* toprows.c: see toprows.h. */
#include "top/toprows.h"

#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/rows/pathwalk.h"

#include <string.h>

enum { DEEPEST = 256 }; /* rows below rows */

/* ---- Along a path, outwards ---- */

static uint64_t row_frame(const struct toprows *rows, uint32_t node) {
    return rows->costs->nodes[node].frame;
}

static struct topnames_found row_names(const struct toprows *rows, uint32_t node) {
    return topnames_find(rows->names, row_frame(rows, node));
}

static const struct names_frame *row_name_of(struct topnames_found found, uint32_t index) {
    return index < found.count ? &found.frames[index] : NULL;
}

static const struct names_frame *row_name(const struct toprows *rows, struct toprows_place place) {
    return row_name_of(row_names(rows, place.node), place.index);
}

/* The next function outwards; none beyond main, or where the system's own code begins. */
static struct toprows_place row_step(const struct toprows *rows, struct toprows_place place) {
    struct topnames_found found = row_names(rows, place.node);
    const struct names_frame *name = row_name_of(found, place.index);
    if (name != NULL && pathwalk_is_main(name)) {
        return (struct toprows_place){0};
    }
    place.index++;
    if (place.index >= found.count) {
        place = (struct toprows_place){.node = rows->costs->nodes[place.node].parent};
    }
    name = place.node != 0 ? row_name(rows, place) : NULL;
    return name != NULL && pathwalk_is_startup(name) ? (struct toprows_place){0} : place;
}

static bool row_is_library(const struct toprows *rows, struct toprows_place place) {
    const struct names_frame *name = place.node != 0 ? row_name(rows, place) : NULL;
    return name != NULL && pathwalk_is_library(name);
}

/* Of a run of frames of a language's library the outermost: what the program's own code called. */
static struct toprows_place row_fold(const struct toprows *rows, struct toprows_place place) {
    while (row_is_library(rows, place)) {
        struct toprows_place next = row_step(rows, place);
        if (!row_is_library(rows, next)) {
            break;
        }
        place = next;
    }
    return place;
}

/* Whose a path is: of what a language's library allocates, who called it, as in reports. */
static struct toprows_place row_owner(const struct toprows *rows, struct toprows_place place) {
    struct toprows_place next;
    place = row_fold(rows, place);
    next = row_is_library(rows, place) ? row_step(rows, place) : place;
    return next.node != 0 ? next : place;
}

struct toprows_place toprows_caller(const struct toprows *rows, struct toprows_place place) {
    struct toprows_place next = row_step(rows, place);
    return next.node != 0 ? row_fold(rows, next) : next;
}

/* The same for the same function. */
static uint64_t toprow_key(const struct toprows *rows, struct toprows_place place) {
    const struct names_frame *name;
    if (place.node == 0) {
        return 0;
    }
    name = row_name(rows, place);
    return name != NULL ? name->function_key : row_frame(rows, place.node);
}

/* ---- What is kept while names are the same ---- */

static void row_firsts(struct toprows *rows) {
    const struct livecosts *costs = rows->costs;
    for (; rows->first_count < costs->count; rows->first_count++) {
        struct toprows_first *first = &rows->firsts[rows->first_count];
        first->place = row_owner(
            rows, (struct toprows_place){.node = costs->contexts[rows->first_count].path});
        first->key = toprow_key(rows, first->place);
    }
}

enum { PASSES = 1, PASSES_NOT = 2 };

static bool match_names(const struct toprows *rows, uint64_t frame) {
    struct topnames_found found = topnames_find(rows->names, frame);
    for (size_t i = 0; i < found.count; i++) {
        const char *function = found.frames[i].function;
        if (function != NULL && regexec(rows->filter, function, 0, NULL, 0) == 0) {
            return true;
        }
    }
    return false;
}

/* A frame stands at many nodes. */
static bool row_matches(struct toprows *rows, uint32_t node) {
    static char yes;
    static char no;
    uint64_t frame = row_frame(rows, node);
    void *known = numbermap_get(&rows->matches, frame);
    if (known == NULL) {
        known = match_names(rows, frame) ? &yes : &no;
        numbermap_put(&rows->matches, frame, known);
    }
    return known == &yes;
}

static void forget_passes(struct toprows *rows) {
    numbermap_free(&rows->matches);
    rows->matches = (struct numbermap){0};
    if (rows->passes != NULL) {
        memset(rows->passes, 0, rows->pass_room);
    }
}

/* What is found for a node holds for all that was met on the way to it. */
static bool does_pass(struct toprows *rows, uint32_t node) {
    uint32_t at = node;
    unsigned char found;
    if (rows->filter == NULL) {
        return true;
    }
    while (at != 0 && rows->passes[at] == 0 && !row_matches(rows, at)) {
        at = rows->costs->nodes[at].parent;
    }
    found = at == 0 ? PASSES_NOT : rows->passes[at] != 0 ? rows->passes[at] : PASSES;
    for (uint32_t back = node; back != at; back = rows->costs->nodes[back].parent) {
        rows->passes[back] = found;
    }
    rows->passes[at] = at != 0 ? found : 0;
    return found == PASSES;
}

/* The arrays that stay from one time to the next. */
static void row_reserve(void *what) {
    struct toprows *rows = what;
    const struct livecosts *costs = rows->costs;
    size_t before = rows->pass_room;
    job_reserve(&rows->rows, &rows->room, 1, sizeof *rows->rows);
    job_reserve(&rows->firsts, &rows->first_room, costs->count, sizeof *rows->firsts);
    job_reserve(&rows->passes, &rows->pass_room, costs->node_count, 1);
    memset(rows->passes + before, 0, rows->pass_room - before);
}

/* Begun anew where there was no memory for one of them. */
static void row_forget(struct toprows *rows) {
    job_free(&rows->memory);
    rows->rows = NULL;
    rows->firsts = NULL;
    rows->passes = NULL;
    rows->room = rows->first_room = rows->pass_room = rows->count = rows->first_count = 0;
}

/* ---- Costs ---- */

static struct toprows_costs row_costs(const struct livecosts_context *context) {
    return (struct toprows_costs){
        .now = context->now,
        .columns = context->columns,
        .delta_bytes = (int64_t)(context->now.live_bytes - context->live_marked),
        .new_bytes = context->now.total_bytes - context->total_before,
        .new_blocks = context->now.allocations - context->allocations_before,
    };
}

static void costs_add(struct toprows_costs *to, const struct toprows_costs *more) {
    to->now.live_bytes += more->now.live_bytes;
    to->now.live_blocks += more->now.live_blocks;
    to->now.maximum_bytes += more->now.maximum_bytes;
    to->now.total_bytes += more->now.total_bytes;
    to->now.allocations += more->now.allocations;
    to->now.temporary += more->now.temporary;
    to->columns |= more->columns;
    to->delta_bytes += more->delta_bytes;
    to->new_bytes += more->new_bytes;
    to->new_blocks += more->new_blocks;
}

/* What rows are sorted by: the highest comes first. */
static int64_t row_worth(const struct toprows *rows, const struct toprows_costs *costs) {
    switch (rows->sort) {
    case TOPROWS_LIVE:
        return (int64_t)costs->now.live_bytes;
    case TOPROWS_DELTA:
        return costs->delta_bytes;
    case TOPROWS_TOTAL:
        return (int64_t)costs->now.total_bytes;
    case TOPROWS_RATE:
        return (int64_t)costs->new_blocks;
    case TOPROWS_TEMPORARY:
        return (int64_t)costs->now.temporary;
    case TOPROWS_BLOCKS:
        return (int64_t)costs->now.live_blocks;
    case TOPROWS_MAXIMUM:
        return (int64_t)costs->now.maximum_bytes;
    }
    return 0;
}

/* ---- Groups: the rows of one depth under one row ---- */

/* A path, as far as it is opened. */
struct item {
    uint32_t context; /* its place in costs */
    uint32_t group;
    uint64_t key;
    struct toprows_place place;
};

struct group {
    uint64_t key;
    struct toprows_place place;
    struct toprows_costs costs;
    size_t paths;
    uint32_t number; /* as items know it */
    int64_t worth;
};

struct groups {
    struct group *all;
    size_t count;
    size_t room;
};

static int by_worth(const void *left, const void *right) {
    const struct group *a = left;
    const struct group *b = right;
    if (a->worth != b->worth) {
        return a->worth < b->worth ? 1 : -1;
    }
    return (a->key > b->key) - (a->key < b->key);
}

/* By paths each is a group of its own: places is NULL. */
static void put_item(const struct toprows *rows, struct groups *groups, struct numbermap *places,
                     struct item *item) {
    const struct livecosts_context *context = &rows->costs->contexts[item->context];
    struct toprows_costs costs = row_costs(context);
    struct group *group;
    size_t number = places != NULL ? (size_t)(uintptr_t)numbermap_get(places, item->key) : 0;
    item->group = (uint32_t)number - 1;
    if (number == 0) {
        job_grow(&groups->all, &groups->room, groups->count, sizeof *groups->all);
        item->group = (uint32_t)groups->count;
        groups->all[groups->count++] =
            (struct group){.key = places != NULL ? item->key : context->id,
                           .place = item->place,
                           .number = item->group};
        if (places != NULL) {
            numbermap_set(places, item->key, (void *)(uintptr_t)groups->count);
        }
    }
    group = &groups->all[item->group];
    costs_add(&group->costs, &costs);
    group->paths++;
}

static struct groups group_items(const struct toprows *rows, struct item *items, size_t count) {
    struct groups groups = {0};
    struct numbermap places = {0};
    for (size_t i = 0; i < count; i++) {
        put_item(rows, &groups, rows->by == TOPROWS_PATHS ? NULL : &places, &items[i]);
    }
    for (size_t i = 0; i < groups.count; i++) {
        int64_t value = row_worth(rows, &groups.all[i].costs);
        groups.all[i].worth = rows->reverse ? -value : value;
    }
    return groups;
}

/* Moves the dearest to the front, in no order: a part of quicksort. */
static void select_dearest(struct group *groups, size_t count, size_t most) {
    size_t low = 0;
    size_t high = count;
    while (count > most && high - low > 1) {
        struct group pivot = groups[low + (high - low - 1) / 2];
        size_t left = low;
        size_t right = high - 1;
        for (;;) {
            while (by_worth(&groups[left], &pivot) < 0) {
                left++;
            }
            while (by_worth(&groups[right], &pivot) > 0) {
                right--;
            }
            if (left >= right) {
                break;
            }
            struct group other = groups[left];
            groups[left++] = groups[right];
            groups[right--] = other;
        }
        if (most <= right) {
            high = right + 1;
        } else {
            low = right + 1;
        }
    }
}

/* ---- Rows ---- */

static uint64_t row_id(uint64_t parent, uint64_t key) {
    uint64_t mixed = (parent ^ key) * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 29) * UINT64_C(0xbf58476d1ce4e5b9) + parent;
    return mixed != 0 ? mixed : 1;
}

static struct toprow *row_new(struct toprows *rows) {
    job_grow(&rows->rows, &rows->room, rows->count, sizeof *rows->rows);
    rows->rows[rows->count] = (struct toprow){0};
    return &rows->rows[rows->count++];
}

static void put_level(struct toprows *rows, struct item *items, size_t count, unsigned depth,
                      uint64_t parent);

/* The callers of a group's paths. */
static void put_callers(struct toprows *rows, const struct item *items, size_t count,
                        uint32_t number, unsigned depth, uint64_t parent) {
    struct item *callers = job_array(count, sizeof *callers);
    size_t called = 0;
    for (size_t i = 0; i < count; i++) {
        struct toprows_place place = items[i].group == number ? toprows_caller(rows, items[i].place)
                                                              : (struct toprows_place){0};
        if (place.node != 0) {
            callers[called++] = (struct item){
                .context = items[i].context, .place = place, .key = toprow_key(rows, place)};
        }
    }
    put_level(rows, callers, called, depth, parent);
    job_release(callers);
}

/* The frames of one path: what it costs stands above them. */
static void put_frames(struct toprows *rows, struct toprows_place place, uint64_t parent) {
    for (unsigned depth = 1; depth < DEEPEST; depth++) {
        struct toprow *row;
        place = toprows_caller(rows, place);
        if (place.node == 0) {
            break;
        }
        row = row_new(rows);
        row->id = row_id(parent, depth);
        row->depth = 1;
        row->place = place;
    }
}

static void put_level(struct toprows *rows, struct item *items, size_t count, unsigned depth,
                      uint64_t parent) {
    struct groups groups = group_items(rows, items, count);
    size_t shown = groups.count < TOPROWS_MOST ? groups.count : TOPROWS_MOST;
    select_dearest(groups.all, groups.count, TOPROWS_MOST);
    array_sort(groups.all, shown, sizeof *groups.all, by_worth);
    for (size_t i = 0; i < shown; i++) {
        const struct group *group = &groups.all[i];
        uint64_t id = row_id(parent, group->key);
        bool is_open = numbermap_get(&rows->open, id) != NULL && depth + 1 < DEEPEST;
        *row_new(rows) = (struct toprow){
            .id = id,
            .depth = depth,
            .place = group->place,
            .costs = group->costs,
            .paths = group->paths,
            .can_open = group->place.node != 0 && toprows_caller(rows, group->place).node != 0,
            .is_open = is_open,
        };
        if (is_open && rows->by == TOPROWS_PATHS) {
            put_frames(rows, group->place, id);
        } else if (is_open) {
            put_callers(rows, items, count, group->number, depth + 1, id);
        }
    }
    if (groups.count > shown) {
        struct toprow *row = row_new(rows);
        *row = (struct toprow){
            .id = row_id(parent, UINT64_MAX), .depth = depth, .rest = groups.count - TOPROWS_MOST};
        for (size_t i = TOPROWS_MOST; i < groups.count; i++) {
            costs_add(&row->costs, &groups.all[i].costs);
            row->paths += groups.all[i].paths;
        }
    }
    job_release(groups.all);
}

/* Of one thread all that others did is 0. */
static bool row_is_shown(struct toprows *rows, const struct livecosts_context *context) {
    bool is_used =
        rows->costs->only == 0 || context->now.allocations != 0 || context->now.total_bytes != 0;
    return context->class == MODEL_HEAP && is_used && does_pass(rows, context->path);
}

static size_t choose_paths(struct toprows *rows, struct item *items) {
    const struct livecosts *costs = rows->costs;
    size_t count = 0;
    for (size_t i = 0; i < rows->first_count; i++) {
        const struct livecosts_context *context = &costs->contexts[i];
        if (row_is_shown(rows, context)) {
            struct toprows_costs its = row_costs(context);
            costs_add(&rows->totals, &its);
            items[count++] = (struct item){
                .context = (uint32_t)i, .key = rows->firsts[i].key, .place = rows->firsts[i].place};
        }
    }
    return count;
}

static void row_make(void *what) {
    struct toprows *rows = what;
    struct item *items = job_array(rows->costs->count, sizeof *items);
    if (rows->generation != topnames_generation(rows->names)) {
        rows->generation = topnames_generation(rows->names);
        rows->first_count = 0;
        forget_passes(rows);
    }
    row_firsts(rows);
    rows->paths = choose_paths(rows, items);
    put_level(rows, items, rows->paths, 0, 0);
}

int toprows_make(struct toprows *rows) {
    rows->count = 0;
    rows->has_lifetimes = false;
    rows->paths = 0;
    rows->totals = (struct toprows_costs){0};
    if (job_run(row_reserve, rows, &rows->memory, NULL) != 0) {
        row_forget(rows);
        return -1;
    }
    return job_run(row_make, rows, NULL, NULL);
}

void toprows_refilter(struct toprows *rows, const regex_t *filter) {
    rows->filter = filter;
    forget_passes(rows);
}

void toprows_open(struct toprows *rows, const struct toprow *row, bool open) {
    if (!open) {
        numbermap_take(&rows->open, row->id);
    } else if (row->can_open) {
        numbermap_put(&rows->open, row->id, rows);
    }
}

bool toprows_covers(struct toprows *rows, const struct toprow *row, size_t context) {
    struct toprows_place place;
    uint64_t id = 0;
    if (context >= rows->first_count || !row_is_shown(rows, &rows->costs->contexts[context])) {
        return false;
    }
    if (row == NULL) {
        return true;
    }
    if (rows->by == TOPROWS_PATHS) {
        return row_id(0, rows->costs->contexts[context].id) == row->id;
    }
    place = rows->firsts[context].place;
    for (unsigned depth = 0;; depth++) {
        id = row_id(id, toprow_key(rows, place));
        if (depth == row->depth) {
            return id == row->id;
        }
        place = toprows_caller(rows, place);
        if (place.node == 0) {
            return false;
        }
    }
}

/* ---- Lifetimes ---- */

bool toprows_wants_lifetimes(struct toprows *rows) {
    bool had = rows->has_lifetimes;
    rows->has_lifetimes = true;
    if (!had) {
        numbermap_free(&rows->places);
        rows->places = (struct numbermap){0};
        for (size_t i = 0; i < rows->count; i++) {
            numbermap_put(&rows->places, rows->rows[i].id, (void *)(uintptr_t)(i + 1));
        }
    }
    return !had;
}

/* The row of this id, or that which stands for many beside it; NULL: there is none. */
static struct toprow *row_at(const struct toprows *rows, uint64_t parent, uint64_t key) {
    size_t place = (size_t)(uintptr_t)numbermap_get(&rows->places, row_id(parent, key));
    if (place == 0) {
        place = (size_t)(uintptr_t)numbermap_get(&rows->places, row_id(parent, UINT64_MAX));
    }
    return place != 0 ? &rows->rows[place - 1] : NULL;
}

void toprows_take_lifetimes(void *context, size_t at,
                            const uint64_t buckets[MEMTRACE_LIFETIME_BUCKETS]) {
    struct toprows *rows = context;
    bool by_paths = rows->by == TOPROWS_PATHS;
    struct toprows_place place;
    struct toprow *row;
    if (at >= rows->first_count || !row_is_shown(rows, &rows->costs->contexts[at])) {
        return;
    }
    place = rows->firsts[at].place;
    row = row_at(rows, 0, by_paths ? rows->costs->contexts[at].id : toprow_key(rows, place));
    while (row != NULL) {
        for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
            row->lifetimes[i] += buckets[i];
        }
        place = row->is_open && !by_paths ? toprows_caller(rows, place) : (struct toprows_place){0};
        row = place.node != 0 ? row_at(rows, row->id, toprow_key(rows, place)) : NULL;
    }
}

const struct names_frame *toprows_frame(const struct toprows *rows, struct toprows_place place,
                                        const struct model *model, struct names_frame *unknown) {
    const struct names_frame *name = place.node != 0 ? row_name(rows, place) : NULL;
    struct model_place where;
    if (name != NULL || place.node == 0) {
        return name;
    }
    where = model_place(model, row_frame(rows, place.node));
    *unknown = (struct names_frame){
        .module = where.module < model->module_count ? model->modules[where.module].path : "",
        .offset = where.offset};
    return unknown;
}

void toprows_free(struct toprows *rows) {
    numbermap_free(&rows->open);
    numbermap_free(&rows->matches);
    numbermap_free(&rows->places);
    job_free(&rows->memory);
    *rows = (struct toprows){0};
}
