/* SPDX-License-Identifier: MIT */
/*
 * records.c: the threads, modules, pools and the timeline of a profile, checked. See model.h. How
 * one record becomes part of a model is here for recordings (recordingtables.c), too.
 */
#include "analyze/profile/load.h"
#include "analyze/profile/timepoints.h"

#include <stdlib.h>
#include <string.h>

enum {
    MODULE_LIMIT = MEMTRACE_FRAME_MODULE_MASK + 1,
    MODULE_PATH = sizeof(((struct memtrace_module *)0)->path),
    LONG_PATH = 4096,
    THREAD_LIMIT = 1 << MEMTRACE_THREAD_BITS,
    OWNERS_PER_LEAF = 256, /* see struct memtrace_foreign_frees */
};

static void copy_text(char *to, const char *from, size_t size) {
    memcpy(to, from, size);
    to[size - 1] = '\0';
}

/* ---- Modules ---- */

static size_t count_modules(const struct profile *profile) {
    size_t count = 1;
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        uint64_t end = (uint64_t)segment->index * segment->leaf_items + segment->item_count;
        if (segment->kind == MEMTRACE_SEGMENT_MODULES && end <= MODULE_LIMIT && end > count) {
            count = end;
        }
    }
    return count;
}

void records_reserve_modules(struct model *model, size_t count) {
    model->module_count = count;
    model->modules = job_array(count, sizeof *model->modules);
    model->strings = job_array(count, MODULE_PATH);
    for (size_t id = 0; id < count; id++) {
        model->modules[id].id = (uint32_t)id;
        model->modules[id].path = "";
    }
}

void records_take_module(struct model *model, const struct memtrace_module *record, uint32_t id) {
    struct model_module *module = &model->modules[id];
    char *path = model->strings + (size_t)id * MODULE_PATH;
    uint32_t size = profile_load_u32(&record->build_id_size);
    copy_text(path, record->path, sizeof record->path);
    *module = (struct model_module){
        .id = id,
        .build_id_size = size <= sizeof module->build_id ? size : 0,
        .start = record->start,
        .end = record->end,
        .bias = record->bias,
        .load_ns = record->load_ns,
        .unload_ns = profile_load_u64(&record->unload_ns),
        .path = path,
    };
    memcpy(module->build_id, record->build_id, sizeof module->build_id);
}

/* What the record at this place says of a longer path; 0: nothing. */
static uint32_t rest_of(const struct model *model, size_t id) {
    struct memtrace_module record = {0};
    memcpy(record.path, model->strings + id * MODULE_PATH, MODULE_PATH);
    return memtrace_module_rest(&record);
}

/* The whole path that begins with this record. Records that it goes on in are no modules. */
static void join_path(struct model *model, size_t id, char *path) {
    size_t length = 0;
    uint32_t rest;
    model->modules[id].path = path;
    do {
        rest = rest_of(model, id);
        const char *part = model->strings + id * MODULE_PATH;
        size_t more = strnlen(part, MODULE_PATH);
        more = length + more < LONG_PATH ? more : LONG_PATH - 1 - length;
        memcpy(path + length, part, more);
        length += more;
        id = rest;
    } while (rest != 0 && rest < model->module_count && length + 1 < LONG_PATH);
    path[length] = '\0';
}

void records_join_paths(struct model *model) {
    char *paths;
    size_t count = 0;
    for (size_t id = 1; id < model->module_count; id++) {
        count += model->modules[id].end != 0 && rest_of(model, id) != 0;
    }
    if (count == 0) {
        return;
    }
    paths = job_array(count, LONG_PATH);
    count = 0;
    for (size_t id = 1; id < model->module_count; id++) {
        if (model->modules[id].end != 0 && rest_of(model, id) != 0) {
            join_path(model, id, paths + count++ * LONG_PATH);
        }
    }
    for (size_t id = 1; id < model->module_count; id++) {
        if (model->modules[id].start == 0 && model->modules[id].end == 0) {
            model->modules[id].path = "";
        }
    }
}

static void load_modules(struct model *model, const struct profile *profile) {
    records_reserve_modules(model, count_modules(profile));
    for (struct profile_items at = {.kind = MEMTRACE_SEGMENT_MODULES};
         profile_next(profile, &at) != NULL;) {
        const struct memtrace_module *record = at.item;
        /* The id is written after the rest. */
        if (at.number < model->module_count && profile_load_u32(&record->id) == at.number) {
            records_take_module(model, record, (uint32_t)at.number);
        }
    }
    records_join_paths(model);
}

/* ---- Threads ---- */

void records_reserve_threads(struct model *model, size_t count) {
    model->threads = job_array(count + 1, sizeof *model->threads);
}

void records_take_thread(struct model *model, const struct memtrace_thread_record *record) {
    struct model_thread *thread = &model->threads[model->thread_count];
    uint32_t state = profile_load_u32(&record->state);
    uint64_t frees = profile_load_u64(&record->counts.free_count);
    *thread = (struct model_thread){
        .id = record->id,
        .tid = record->tid,
        .earlier = record->earlier,
        .alive = state == MEMTRACE_THREAD_ALIVE,
        .start_ns = record->start_ns,
        .end_ns = record->end_ns,
        .frees = frees,
        .freed_bytes = profile_load_u64(&record->counts.free_bytes),
        .foreign_frees = profile_load_u64(&record->foreign_free_count),
        .foreign_freed_bytes = profile_load_u64(&record->foreign_free_bytes),
        .allocations = profile_load_u64(&record->counts.alloc_count),
        .total_bytes = profile_load_u64(&record->counts.alloc_bytes),
    };
    copy_text(thread->name, record->name, sizeof thread->name);
    if (thread->name[0] == '\0' && thread->tid == model->header.pid) {
        strcpy(thread->name, "main");
    }
    if (state != MEMTRACE_THREAD_FREE || (thread->allocations | thread->frees) != 0) {
        model->thread_count++;
    }
}

static int by_thread_id(const void *left, const void *right) {
    const struct model_thread *a = left;
    const struct model_thread *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

static void load_threads(struct model *model, const struct profile *profile) {
    records_reserve_threads(model, profile_places(profile, MEMTRACE_SEGMENT_THREADS));
    for (struct profile_items at = {.kind = MEMTRACE_SEGMENT_THREADS};
         profile_next(profile, &at) != NULL;) {
        const struct memtrace_thread_record *record = at.item;
        if (record->id < THREAD_LIMIT) {
            records_take_thread(model, record);
        }
    }
}

static struct model_thread *find_thread(struct model *model, uint32_t id) {
    struct model_thread key = {.id = id};
    return bsearch(&key, model->threads, model->thread_count, sizeof key, by_thread_id);
}

/* Places 0..3 of a leaf lie under the segment's header: those owners stand behind place 255. */
static uint32_t owner_at(const struct profile_segment *segment, uint32_t place) {
    uint32_t owner = place < OWNERS_PER_LEAF ? place : place - OWNERS_PER_LEAF;
    return segment->index < THREAD_LIMIT ? segment->index * OWNERS_PER_LEAF + owner : THREAD_LIMIT;
}

/* Threads past the ids are all "others". */
static void load_foreign(struct model *model, const struct profile *profile) {
    struct foreign all = {0};
    for (struct profile_items at = {.kind = MEMTRACE_SEGMENT_FREES};
         profile_next(profile, &at) != NULL;) {
        const struct memtrace_foreign_frees *frees = at.item;
        struct model_foreign foreign = {.freer = at.segment->owner,
                                        .owner = owner_at(at.segment, at.place),
                                        .blocks = profile_load_u64(&frees->count),
                                        .bytes = profile_load_u64(&frees->bytes)};
        if (foreign.owner < THREAD_LIMIT && (foreign.blocks | foreign.bytes) != 0) {
            foreign_add(&all, foreign);
        }
    }
    foreign_give(&all, model);
    foreign_free(&all);
}

/* A thread holds what it allocated, less what it freed of its own, less what others freed of it.
 * Wraps like the file's counters; negative where frees by unknown threads are missing. */
static void set_live_bytes(struct model *model) {
    for (size_t i = 0; i < model->thread_count; i++) {
        struct model_thread *thread = &model->threads[i];
        thread->live_bytes =
            (int64_t)(thread->total_bytes - (thread->freed_bytes - thread->foreign_freed_bytes));
    }
    for (size_t i = 0; i < model->foreign_count; i++) {
        struct model_thread *owner = find_thread(model, model->foreign[i].owner);
        if (owner != NULL) {
            owner->live_bytes = (int64_t)((uint64_t)owner->live_bytes - model->foreign[i].bytes);
        }
    }
}

/* Those alive beyond the ids have records of their own with the id of "others". */
static void join_others(struct model *model) {
    struct model_thread *others = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < model->thread_count; i++) {
        const struct model_thread *thread = &model->threads[i];
        if (thread->id != MEMTRACE_THREAD_OTHERS || others == NULL) {
            model->threads[kept++] = *thread;
            if (thread->id == MEMTRACE_THREAD_OTHERS) {
                others = &model->threads[kept - 1];
            }
            continue;
        }
        strcpy(others->name, "others");
        others->tid = 0; /* of several */
        others->earlier = 0;
        others->alive |= thread->alive;
        others->start_ns = 0;
        others->end_ns = 0;
        others->allocations = model_add(others->allocations, thread->allocations);
        others->total_bytes = model_add(others->total_bytes, thread->total_bytes);
        others->frees = model_add(others->frees, thread->frees);
        others->freed_bytes = model_add(others->freed_bytes, thread->freed_bytes);
        others->foreign_frees = model_add(others->foreign_frees, thread->foreign_frees);
        others->foreign_freed_bytes =
            model_add(others->foreign_freed_bytes, thread->foreign_freed_bytes);
    }
    model->thread_count = kept;
}

void records_finish(struct model *model) {
    qsort(model->threads, model->thread_count, sizeof *model->threads, by_thread_id);
    join_others(model);
    set_live_bytes(model);
}

/* ---- Pools ---- */

void records_reserve_pools(struct model *model) {
    model->pools = job_array(MEMTRACE_FRAME_CLASSES, sizeof *model->pools);
}

void records_take_pool(struct model *model, uint64_t id, const char *name) {
    if (id < MEMTRACE_FRAME_CLASSES) {
        copy_text(model->pools[id], name, sizeof model->pools[id]);
        model->pool_count = id + 1 > model->pool_count ? id + 1 : model->pool_count;
    }
}

static void load_pools(struct model *model, const struct profile *profile) {
    records_reserve_pools(model);
    for (struct profile_items at = {.kind = MEMTRACE_SEGMENT_POOLS};
         profile_next(profile, &at) != NULL;) {
        const struct memtrace_pool *record = at.item;
        records_take_pool(model, at.number, record->name);
    }
}

/* Of several the last one counts. */
static void load_rooms(struct model *model, const struct profile *profile) {
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        if (segment->kind != MEMTRACE_SEGMENT_POOL_ROOM ||
            segment->item_count <= MEMTRACE_POOL_ROOM_FIRST) {
            continue;
        }
        model->pool_room_count = segment->item_count - MEMTRACE_POOL_ROOM_FIRST;
        model->pool_rooms = job_array(model->pool_room_count, sizeof *model->pool_rooms);
        for (uint32_t at = MEMTRACE_POOL_ROOM_FIRST; at < segment->item_count; at++) {
            const void *item = profile_item(profile, segment, at);
            if (item != NULL) {
                memcpy(&model->pool_rooms[at - MEMTRACE_POOL_ROOM_FIRST], item,
                       sizeof *model->pool_rooms);
            }
        }
    }
}

/* ---- Timeline ---- */

static void load_timeline(struct model *model, const struct profile *profile) {
    const size_t start = offsetof(struct memtrace_timeline, point);
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        const struct memtrace_timeline *timeline;
        uint64_t room;
        uint32_t count;
        if (segment->kind != MEMTRACE_SEGMENT_TIMELINE || segment->size < start) {
            continue;
        }
        timeline = (const void *)(profile->bytes + segment->offset);
        room = (segment->size - start) / sizeof(struct memtrace_point);
        count = profile_load_u32(&timeline->count);
        if (count > MEMTRACE_TIMELINE_POINTS) {
            count = MEMTRACE_TIMELINE_POINTS;
        }
        timepoints_take(model, (const void *)(profile->bytes + segment->offset + start),
                        count < room ? count : (uint32_t)room);
        return;
    }
}

void records_load(struct model *model, const struct profile *profile) {
    load_modules(model, profile);
    load_threads(model, profile);
    load_foreign(model, profile);
    load_pools(model, profile);
    load_rooms(model, profile);
    load_timeline(model, profile);
    records_finish(model);
}
