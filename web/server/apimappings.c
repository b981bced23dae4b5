/* SPDX-License-Identifier: MIT */
/*
 * apimappings.c: the mappings of the process over time, as the kernel told the collector: how much
 * of each was in memory, changed and swapped out, and who mapped it.
 */
#include "web/server/apicache.h"
#include "web/server/apidetail.h"
#include "web/server/apireport.h"

#include "analyze/replay/mappinghistory.h"
#include "analyze/replay/mappinglist.h"
#include "analyze/report/reports.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

static void find_callers(const struct answer *view, struct mappinghistory *history,
                         const struct replay_options *replay) {
    struct callers callers = {.to_ns = view->selection->view.to_ns};
    const struct lives_visitor visitor = {.other = take_event, .context = &callers};
    struct replay_options options = *replay;
    struct error error = {"out of memory"};
    int result;
    if (callers.to_ns != UINT64_MAX) {
        options.until_ns = callers.to_ns;
    }
    result = lives_visit(view->source->parts, view->whole, &visitor, &options, &error);
    if (result == 0) {
        result = mappinghistory_name_callers(history, &callers.mappings, view->whole, replay);
    }
    if (result == REPLAY_CANCELLED) {
        error_set(&error, "cancelled");
    }
    job_check(result, &error);
}

/* ---- The cache ---- */

static void *apimappings_make_history(const void *asked, const struct replay_options *replay) {
    const struct answer *view = asked;
    struct mappinghistory *history = job_alloc(sizeof *history);
    mappinghistory_read(view->source->parts, view->selection->view.to_ns, history);
    find_callers(view, history, replay);
    return history;
}

static size_t apimappings_history_bytes(const void *value) {
    const struct mappinghistory *history = value;
    return sizeof *history + history->room * sizeof *history->items +
           history->sample_room * sizeof *history->samples;
}

static const struct apicache_kind history_kind = {apimappings_make_history,
                                                  apimappings_history_bytes, API_VIA_PASS};

static const struct mappinghistory *apimappings_get_history(struct api_call *call) {
    return apicache_get(call, call->view, "mappings", &history_kind, call->view);
}

/* ---- The table ---- */

#define CELL(name, value) ROWS_CELL(mapped_##name, struct mapping_seen, mapped, value)
CELL(size, table_number(mapped->end - mapped->start))
CELL(there, table_number(mapped->is_there))
CELL(kind, table_text(report_mapping_kind(mapped->name)))
CELL(permissions, table_text(mapping_permissions(mapped->protection)))
CELL(caller, mapped->node != 0 ? table_path(mapped->node) : table_none())
#undef CELL

#define OF(member) ROWS_FIELD(struct mapping_seen, member)
static const struct table_column columns[] = {
    {"id", "number", TABLE_COUNT, 0, "id", "", OF(id)},
    {"path", "name", TABLE_TEXT, 0, "path", "file, [heap], [stack]; none: anonymous", OF(name),
     .none = TABLE_ZERO},
    {"kind", "kind", TABLE_WORD, 0, "kind", "", .cell = mapped_kind},
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
static const struct rows mapped_rows = {
    .name = "mapped", .about = "mappings of the process", ROWS_COLUMNS(columns)};

static void write_mapped(struct api_call *call, const struct mappinghistory *history, bool all) {
    const struct apitable_rows rows = {.rows = &mapped_rows, .sort = "rss"};
    struct rows_of of = rows_of_report(&call->report);
    const struct selection_mappings *chosen = &call->view->selection->mappings;
    const void **records = job_array(history->count, sizeof *records);
    size_t count = 0;
    for (size_t i = 0; i < history->count; i++) {
        const struct mapping_seen *seen = &history->items[i];
        if ((all || seen->is_there) && selection_has_mapping(chosen, seen->id)) {
            records[count++] = seen;
        }
    }
    of.whole = call->view->whole;
    apitable_records(call, NULL, &rows, &of, records, count);
}

void api_mappings(struct api_call *call) {
    bool all = api_flag(call, "all");
    const struct mappinghistory *history;
    api_command(call, "report --show-mappings");
    if (call->view->source->parts.count == 0) { /* a profile knows only who called mmap */
        apireport_one(call, &call->report, report_mappings, "mapping-paths");
        return;
    }
    history = apimappings_get_history(call);
    if (history->sample_count == 0) {
        api_note(call, "The recording has no mappings of the process: it was too short.");
    }
    api_sql(call, "SELECT * FROM smaps");
    write_mapped(call, history, all);
}

/* ---- One mapping, or all together, over time ---- */

static const struct mapping_seen *find_mapped(const struct mappinghistory *history,
                                              const char *id) {
    char *end;
    unsigned long number = strtoul(id, &end, 10);
    return *id >= '0' && *id <= '9' && *end == '\0' ? mappinghistory_find(history, number) : NULL;
}

/* Of which mappings something is told: of one, or, where that is NULL, of all that are chosen. */
struct asked_mappings {
    const struct mappinghistory *history;
    const struct mapping_seen *mapped;
    const struct selection_mappings *chosen;
};

static bool apimappings_is_asked(const struct asked_mappings *asked,
                                 const struct mapping_sample *sample) {
    const struct mapping_seen *seen = &asked->history->items[sample->mapping];
    return asked->mapped != NULL ? seen == asked->mapped
                                 : selection_has_mapping(asked->chosen, seen->id);
}

/* Sums of what each moment had. */
static void write_history(struct jsonwriter *json, const struct asked_mappings *asked,
                          const char *name, size_t field) {
    const struct mappinghistory *history = asked->history;
    jsonwriter_array(json, name);
    for (size_t i = 0; i < history->sample_count;) {
        uint64_t time_ns = history->samples[i].time_ns;
        uint64_t sum = 0;
        bool is_there = false;
        for (; i < history->sample_count && history->samples[i].time_ns == time_ns; i++) {
            uint64_t value;
            if (apimappings_is_asked(asked, &history->samples[i])) {
                memcpy(&value, (const char *)&history->samples[i] + field, sizeof value);
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

static void write_times(struct jsonwriter *json, const struct asked_mappings *asked) {
    const struct mappinghistory *history = asked->history;
    uint64_t last_ns = UINT64_MAX;
    jsonwriter_array(json, "time_ns");
    for (size_t i = 0; i < history->sample_count; i++) {
        const struct mapping_sample *sample = &history->samples[i];
        if (sample->time_ns != last_ns && apimappings_is_asked(asked, sample)) {
            jsonwriter_number(json, NULL, sample->time_ns);
            last_ns = sample->time_ns;
        }
    }
    jsonwriter_end_array(json);
}

void api_mapping(struct api_call *call) {
    struct asked_mappings asked = {.chosen = &call->view->selection->mappings};
    bool are_all = strcmp(call->rest, "0") == 0;
    apidetail_check(call, "the history of a mapping");
    asked.history = apimappings_get_history(call);
    asked.mapped = find_mapped(asked.history, call->rest);
    if (asked.mapped == NULL && !are_all) {
        api_refuse(call, 404, "there is no mapping %s", call->rest);
    }
    jsonwriter_map(call->json, NULL);
    jsonwriter_string(call->json, "name", are_all ? "(all)" : asked.mapped->name);
    jsonwriter_map(call->json, "history");
    write_times(call->json, &asked);
    write_history(call->json, &asked, "rss", offsetof(struct mapping_sample, resident_bytes));
    write_history(call->json, &asked, "dirty", offsetof(struct mapping_sample, dirty_bytes));
    write_history(call->json, &asked, "swap", offsetof(struct mapping_sample, swap_bytes));
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
                asked.mapped->start);
    }
}
