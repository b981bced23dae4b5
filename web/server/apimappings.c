/* SPDX-License-Identifier: MIT */
/*
 * apimappings.c: the mappings of the process over time, as the kernel told the collector: how much
 * of each was in memory, changed and swapped out, and who mapped it.
 *
 * A mapping is what has a name and lies where one of that name lay before: it may grow and shrink.
 */
#include "web/server/apicache.h"
#include "web/server/apidetail.h"
#include "web/server/apireport.h"

#include "analyze/base/array.h"
#include "analyze/replay/mappinglist.h"
#include "analyze/replay/smaps.h"
#include "analyze/report/reports.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct mapped {
    uint64_t id;
    uint64_t start, end; /* as they were last */
    uint64_t resident_bytes, dirty_bytes, swap_bytes;
    uint64_t peak_resident_bytes;
    uint64_t first_ns, last_ns; /* when it was seen */
    uint32_t protection;
    uint32_t node; /* of the path that mapped it; 0: not known */
    bool is_there; /* when the view ends */
    const char *kind;
    char *name;
    size_t samples; /* of all, in the order of time */
};

struct sample {
    uint64_t time_ns;
    uint64_t resident_bytes, dirty_bytes, swap_bytes;
    uint32_t mapped; /* place in items */
};

struct mapcache {
    struct mapped *items;
    size_t count, room;
    struct sample *samples; /* by time */
    size_t sample_count, sample_room;
    /* While it is made. */
    const struct api_view *view;
    size_t *there; /* places of those that the last moment had, by start */
    size_t there_count;
};

/* ---- Moments follow each other ---- */

/* The one of that name that lay there the last time, which may have grown. Of two that it was split
 * into the first goes on. NULL: it is new. */
static struct mapped *find_last(const struct mapcache *cache, const struct smaps_mapping *mapping,
                                uint64_t time_ns) {
    struct mapped *found;
    size_t low = 0;
    size_t high = cache->there_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cache->items[cache->there[middle]].end <= mapping->start) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    found = low < cache->there_count ? &cache->items[cache->there[low]] : NULL;
    return found != NULL && found->start < mapping->end && found->last_ns != time_ns &&
                   strcmp(found->name, mapping->name) == 0
               ? found
               : NULL;
}

static struct mapped *add_mapped(struct mapcache *cache, const struct smaps_mapping *mapping,
                                 uint64_t time_ns) {
    struct mapped *added;
    if (array_grow(&cache->items, &cache->room, cache->count, sizeof *cache->items) != 0) {
        return NULL;
    }
    added = &cache->items[cache->count];
    *added = (struct mapped){.id = cache->count + 1,
                             .first_ns = time_ns,
                             .kind = report_mapping_kind(mapping),
                             .name = strdup(mapping->name)};
    cache->count += added->name != NULL;
    return added->name != NULL ? added : NULL;
}

static int take_mapping(struct mapcache *cache, const struct smaps_mapping *mapping,
                        uint64_t time_ns, size_t *place) {
    struct mapped *mapped = find_last(cache, mapping, time_ns);
    mapped = mapped != NULL ? mapped : add_mapped(cache, mapping, time_ns);
    if (mapped == NULL || array_grow(&cache->samples, &cache->sample_room, cache->sample_count,
                                     sizeof *cache->samples) != 0) {
        return -1;
    }
    *place = (size_t)(mapped - cache->items);
    mapped->start = mapping->start;
    mapped->end = mapping->end;
    mapped->resident_bytes = mapping->resident_bytes;
    mapped->dirty_bytes = mapping->dirty_bytes;
    mapped->swap_bytes = mapping->swap_bytes;
    mapped->protection = mapping->protection;
    mapped->last_ns = time_ns;
    mapped->samples++;
    if (mapping->resident_bytes > mapped->peak_resident_bytes) {
        mapped->peak_resident_bytes = mapping->resident_bytes;
    }
    cache->samples[cache->sample_count++] =
        (struct sample){.time_ns = time_ns,
                        .resident_bytes = mapping->resident_bytes,
                        .dirty_bytes = mapping->dirty_bytes,
                        .swap_bytes = mapping->swap_bytes,
                        .mapped = (uint32_t)*place};
    return 0;
}

static int take_moment(void *context, const struct smaps *smaps) {
    struct mapcache *cache = context;
    size_t *there;
    if (smaps->time_ns >= cache->view->selection->view.to_ns) {
        return 1;
    }
    there = calloc(smaps->count + 1, sizeof *there);
    for (size_t i = 0; there != NULL && i < smaps->count; i++) {
        if (take_mapping(cache, &smaps->mappings[i], smaps->time_ns, &there[i]) != 0) {
            free(there);
            return -1;
        }
    }
    if (there == NULL) {
        return -1;
    }
    free(cache->there);
    cache->there = there;
    cache->there_count = smaps->count;
    return 0;
}

/* ---- Who mapped them ---- */

/* What the program has mapped when the view ends; a pass. */
struct callers {
    struct mappinglist mappings;
    uint64_t to_ns;
};

static int pass_over(void *context, const struct mapping *piece, const struct timeorder_event *by,
                     bool is_last) {
    (void)context;
    (void)piece;
    (void)by;
    (void)is_last;
    return 0;
}

static int take_event(void *context, const struct timeorder_event *event) {
    struct callers *callers = context;
    const struct mappinglist_visitor nobody = {.ended = pass_over};
    return event->event.kind == EVENT_MAP && event->event.time_ns < callers->to_ns
               ? mappinglist_take(&callers->mappings, event, &nobody)
               : 0;
}

/* The first piece that lies in it. */
static uint32_t find_caller(const struct mappinglist *mappings, const struct model *whole,
                            const struct mapped *mapped) {
    for (size_t i = 0; i < mappings->count; i++) {
        const struct mapping *piece = &mappings->items[i];
        if (piece->start < mapped->end && piece->end > mapped->start) {
            const struct model_context *context = model_find(whole, piece->context);
            return context != NULL ? context->path : 0;
        }
    }
    return 0;
}

static int find_callers(struct mapcache *cache, const struct replay_options *replay,
                        struct error *error) {
    const struct api_view *view = cache->view;
    struct callers callers = {.to_ns = view->selection->view.to_ns};
    const struct lives_visitor visitor = {.other = take_event, .context = &callers};
    struct replay_options options = *replay;
    int result;
    if (callers.to_ns != UINT64_MAX) {
        options.until_ns = callers.to_ns;
    }
    error_set(error, "out of memory");
    result = lives_visit(view->source->parts, view->whole, &visitor, &options, error);
    for (size_t i = 0; result == 0 && i < cache->count; i++) {
        if (cache->items[i].is_there) {
            cache->items[i].node = find_caller(&callers.mappings, view->whole, &cache->items[i]);
        }
    }
    mappinglist_free(&callers.mappings);
    return result == 0 ? 0 : -1;
}

/* ---- The cache ---- */

static void free_cache(void *value) {
    struct mapcache *cache = value;
    for (size_t i = 0; i < cache->count; i++) {
        free(cache->items[i].name);
    }
    free(cache->items);
    free(cache->samples);
    free(cache->there);
    free(cache);
}

static void *make_cache(const void *asked, const struct replay_options *replay,
                        struct error *error) {
    const struct api_view *view = asked;
    struct mapcache *cache = calloc(1, sizeof *cache);
    if (cache == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    cache->view = view;
    if (smaps_visit(view->source->parts, take_moment, cache) < 0) {
        error_set(error, "out of memory");
        free_cache(cache);
        return NULL;
    }
    for (size_t i = 0; i < cache->there_count; i++) {
        cache->items[cache->there[i]].is_there = true;
    }
    if (find_callers(cache, replay, error) != 0) {
        free_cache(cache);
        return NULL;
    }
    return cache;
}

static size_t cache_bytes(const void *value) {
    const struct mapcache *cache = value;
    return sizeof *cache + cache->room * sizeof *cache->items +
           cache->sample_room * sizeof *cache->samples;
}

static const struct apicache_kind kind = {
    .make = make_cache, .free = free_cache, .bytes = cache_bytes};

static const struct mapcache *get_cache(struct api_call *call, struct error *error) {
    bool was_there = false;
    const struct mapcache *cache = apicache_get(call->view->cache, "mappings", &kind, call->view,
                                                &call->replay, &was_there, error);
    call->told.via = was_there ? API_VIA_CACHE : API_VIA_PASS;
    return cache;
}

/* ---- The table ---- */

#define CELL(name, value)                                                                          \
    static struct table_cell mapped_##name(const struct rows_of *of, const void *record) {         \
        const struct mapped *mapped = record;                                                      \
        (void)of;                                                                                  \
        return value;                                                                              \
    }
CELL(size, table_number(mapped->end - mapped->start))
CELL(there, table_number(mapped->is_there))
CELL(caller, mapped->node != 0 ? table_path(mapped->node) : table_none())
#undef CELL

static struct table_cell mapped_permissions(const struct rows_of *of, const void *record) {
    static const char *const names[] = {"---p", "r--p", "-w-p", "rw-p", "--xp", "r-xp",
                                        "-wxp", "rwxp", "---s", "r--s", "-w-s", "rw-s",
                                        "--xs", "r-xs", "-wxs", "rwxs"};
    enum { SHARED = 8 };
    uint32_t protection = ((const struct mapped *)record)->protection;
    (void)of;
    return table_text(
        names[((protection & PROT_READ) != 0) | ((protection & PROT_WRITE) != 0) << 1 |
              ((protection & PROT_EXEC) != 0) << 2 | ((protection & SHARED) != 0) << 3]);
}

#define OF(member) ROWS_FIELD(struct mapped, member)
static const struct table_column columns[] = {
    {"id", "number", TABLE_COUNT, 0, "id", "", OF(id)},
    {"path", "name", TABLE_TEXT, 0, "path", "file, [heap], [stack]; none: anonymous", OF(name),
     .none = TABLE_ZERO},
    {"kind", "kind", TABLE_WORD, 0, "kind", "", OF(kind)},
    {"start", "from", TABLE_ADDRESS, 0, "start", "", OF(start)},
    {"end", "to", TABLE_ADDRESS, 0, "end", "", OF(end)},
    {"size", "size", TABLE_BYTES, 0, "size", "bytes of address space", .cell = mapped_size},
    {"permissions", "permissions", TABLE_WORD, 0, "permissions", "rwx, private or shared",
     .cell = mapped_permissions},
    {"rss", "resident", TABLE_BYTES, 0, "rss", "in memory, as it was seen last",
     OF(resident_bytes)},
    {"dirty", "dirty", TABLE_BYTES, 0, "dirty", "changed", OF(dirty_bytes)},
    {"swap", "swap", TABLE_BYTES, 0, "swap", "swapped out", OF(swap_bytes)},
    {"peak_rss", "most resident", TABLE_BYTES, 0, "peak_rss", "at any time it was looked at",
     OF(peak_resident_bytes)},
    {"first_ns", "first seen", TABLE_DURATION, 0, "first", "", OF(first_ns)},
    {"last_ns", "last seen", TABLE_DURATION, 0, "last", "", OF(last_ns)},
    {"mapped", "mapped", TABLE_COUNT, 0, "mapped", "1: still there when the window ends",
     .cell = mapped_there},
    {"mapped_by", "mapped by", TABLE_PATH, 0, "mapped_by", "call path of mmap, mremap or brk",
     .cell = mapped_caller},
};
#undef OF
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static const struct rows mapped_rows = {
    .name = "mapped", .about = "mappings of the process", ROWS_COLUMNS(columns)};

static int write_mapped(struct api_call *call, const struct mapcache *cache, bool all,
                        struct error *error) {
    static const unsigned char shown[COLUMNS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    const struct apitable_rows rows = {
        .rows = &mapped_rows, .shown = shown, .count = COLUMNS, .sort = "rss"};
    struct rows_of of = rows_of_report(&call->report);
    const void **records = calloc(cache->count + 1, sizeof *records);
    size_t count = 0;
    int result;
    if (records == NULL) {
        return error_set(error, "out of memory");
    }
    for (size_t i = 0; i < cache->count; i++) {
        if (all || cache->items[i].is_there) {
            records[count++] = &cache->items[i];
        }
    }
    of.whole = call->view->whole;
    result = apitable_records(call, NULL, &rows, &of, records, count, error);
    free(records);
    return result;
}

/* A profile knows only who called mmap. */
static int write_callers(struct api_call *call, struct error *error) {
    struct report report = call->report;
    return apireport_one(call, &report, report_mappings, "mapping-paths", error);
}

int api_mappings(struct api_call *call, struct error *error) {
    const struct mapcache *cache;
    bool all = false;
    api_command(call, "report --show-mappings");
    if (api_flag(call, "all", &all, error) != 0) {
        return -1;
    }
    if (call->view->source->parts.count == 0) {
        return write_callers(call, error);
    }
    cache = get_cache(call, error);
    if (cache != NULL && cache->sample_count == 0) {
        api_note(call, "The recording has no mappings of the process: it was too short.");
    }
    api_sql(call, "SELECT * FROM smaps");
    return cache != NULL ? write_mapped(call, cache, all, error) : -1;
}

/* ---- One mapping, or all together, over time ---- */

static const struct mapped *find_mapped(const struct mapcache *cache, const char *id) {
    char *end;
    unsigned long number = strtoul(id, &end, 10);
    return *id >= '0' && *id <= '9' && *end == '\0' && number != 0 && number <= cache->count
               ? &cache->items[number - 1]
               : NULL;
}

/* mapped NULL: sums of what each moment had. */
static void write_history(struct jsonwriter *json, const struct mapcache *cache,
                          const struct mapped *mapped, const char *name, size_t field) {
    jsonwriter_array(json, name);
    for (size_t i = 0; i < cache->sample_count;) {
        uint64_t time_ns = cache->samples[i].time_ns;
        uint64_t sum = 0;
        bool is_there = mapped == NULL;
        for (; i < cache->sample_count && cache->samples[i].time_ns == time_ns; i++) {
            uint64_t value;
            if (mapped == NULL || &cache->items[cache->samples[i].mapped] == mapped) {
                memcpy(&value, (const char *)&cache->samples[i] + field, sizeof value);
                sum += value;
                is_there = true;
            }
        }
        if (is_there) {
            jsonwriter_number(json, NULL, sum);
        }
    }
    jsonwriter_end_array(json);
}

static void write_times(struct jsonwriter *json, const struct mapcache *cache,
                        const struct mapped *mapped) {
    uint64_t last_ns = UINT64_MAX;
    jsonwriter_array(json, "time_ns");
    for (size_t i = 0; i < cache->sample_count; i++) {
        const struct sample *sample = &cache->samples[i];
        if (mapped == NULL ? sample->time_ns != last_ns : &cache->items[sample->mapped] == mapped) {
            jsonwriter_number(json, NULL, sample->time_ns);
            last_ns = sample->time_ns;
        }
    }
    jsonwriter_end_array(json);
}

int api_mapping(struct api_call *call, struct error *error) {
    const struct mapcache *cache;
    const struct mapped *mapped;
    bool are_all = strcmp(call->rest, "0") == 0;
    if (apidetail_check(call, "the history of a mapping", error) != 0) {
        return -1;
    }
    cache = get_cache(call, error);
    if (cache == NULL) {
        return -1;
    }
    mapped = find_mapped(cache, call->rest);
    if (mapped == NULL && !are_all) {
        return api_refuse(call, 404, error, "there is no mapping %s", call->rest);
    }
    jsonwriter_map(call->json, NULL);
    jsonwriter_string(call->json, "name", are_all ? "(all)" : mapped->name);
    jsonwriter_map(call->json, "history");
    write_times(call->json, cache, mapped);
    write_history(call->json, cache, mapped, "rss", offsetof(struct sample, resident_bytes));
    write_history(call->json, cache, mapped, "dirty", offsetof(struct sample, dirty_bytes));
    write_history(call->json, cache, mapped, "swap", offsetof(struct sample, swap_bytes));
    jsonwriter_end_map(call->json);
    jsonwriter_end_map(call->json);
    if (are_all) {
        api_sql(call,
                "SELECT time, sum(resident_bytes), sum(dirty_bytes), sum(swap_bytes) FROM smaps "
                "GROUP BY time");
    } else {
        api_sql(call,
                "SELECT time, resident_bytes, dirty_bytes, swap_bytes FROM smaps WHERE "
                "address = %" PRIu64,
                mapped->start);
    }
    return 0;
}
