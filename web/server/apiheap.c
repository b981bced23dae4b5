/* SPDX-License-Identifier: MIT */
/*
 * apiheap.c: where the blocks lie that live when the view ends: a map of addresses, pages by how
 * full they are, holes, and who keeps nearly empty pages; and how that was over the run.
 *
 * `at` is a filter: the view ends there, and what is shown is exact. `moment` is for who drags
 * through time: the map comes from the coarse history, which one pass makes for all moments.
 */
#include "web/server/apicache.h"
#include "web/server/apidetail.h"
#include "web/server/apimetric.h"
#include "web/server/apireport.h"

#include "analyze/blocks/heaphistory.h"
#include "analyze/blocks/heapmap.h"
#include "analyze/report/reports.h"

#include <inttypes.h>
#include <string.h>

enum { CELLS_USUAL = 16384, CELLS_MOST = 65536 };

/* ---- History ---- */

static void close_history(void *value) {
    heaphistory_free(value);
}

static void *apiheap_make_history(const void *asked, const struct replay_options *replay) {
    const struct answer *view = asked;
    struct selection_times window = apidetail_window(view);
    struct replay_options options = *replay;
    struct heaphistory *history;
    struct error error;
    if (view->selection->view.to_ns != UINT64_MAX) {
        options.until_ns = window.to_ns;
    }
    history = heaphistory_make(view->whole, view->source->parts, window.from_ns, window.to_ns,
                               &options, &error);
    if (history == NULL) {
        job_fail_as(&error);
    }
    job_undo(close_history, history);
    return history;
}

static size_t apiheap_history_bytes(const void *value) {
    const struct heaphistory *history = value;
    return sizeof *history + history->cell_room * sizeof *history->cells;
}

static const struct apicache_kind history_kind = {apiheap_make_history, apiheap_history_bytes,
                                                  API_VIA_PASS};

static const struct heaphistory *apiheap_get_history(struct api_call *call) {
    const struct heaphistory *history =
        apicache_get(call, call->view, "heap history", &history_kind, call->view);
    if (selection_needs_lives(call->view->selection) ||
        selection_asks_contexts(call->view->selection)) {
        api_note(call, "Of all blocks of the heap, whatever is selected.");
    }
    return history;
}

static void write_series(struct jsonwriter *json, const char *name,
                         const struct heaphistory *history, size_t field) {
    jsonwriter_array(json, name);
    for (size_t i = 0; i < history->count; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&history->moments[i] + field, sizeof value);
        jsonwriter_number(json, NULL, value);
    }
    jsonwriter_end_array(json);
}

/* As the kernel said last before each moment. */
static void write_resident(struct jsonwriter *json, const struct heaphistory *history,
                           const struct model *model) {
    size_t point = 0;
    jsonwriter_array(json, "resident");
    for (size_t i = 0; i < history->count; i++) {
        while (point < model->timeline_count &&
               model->timeline[point].time_ns <= history->moments[i].time_ns) {
            point++;
        }
        if (point != 0 && model->timeline[point - 1].resident_bytes != 0) {
            jsonwriter_number(json, NULL, model->timeline[point - 1].resident_bytes);
        } else {
            jsonwriter_string(json, NULL, NULL);
        }
    }
    jsonwriter_end_array(json);
}

void api_heap_history(struct api_call *call) {
    const struct heaphistory *history;
    apidetail_check(call, "the heap's history");
    history = apiheap_get_history(call);
    jsonwriter_map(call->json, NULL);
    write_series(call->json, "time_ns", history, offsetof(struct heaphistory_moment, time_ns));
    write_series(call->json, "live", history, offsetof(struct heaphistory_moment, live_bytes));
    write_resident(call->json, history, call->view->whole);
    jsonwriter_array(call->json, "spread");
    for (size_t i = 0; i < history->count; i++) {
        jsonwriter_number(call->json, NULL, history->moments[i].pages * HEAPMAP_PAGE);
    }
    jsonwriter_end_array(call->json);
    write_series(call->json, "holes", history, offsetof(struct heaphistory_moment, unused_bytes));
    jsonwriter_map(call->json, "most");
    jsonwriter_number(call->json, "time_ns", history->most.time_ns);
    jsonwriter_number(call->json, "unused_bytes", history->most.unused_bytes);
    jsonwriter_number(call->json, "live_bytes", history->most.live_bytes);
    jsonwriter_end_map(call->json);
    jsonwriter_end_map(call->json);
    api_command(call, "report --show-fragmentation");
}

/* ---- The map: what part of it, in which cells ---- */

struct part {
    uint64_t start, end; /* of addresses */
    uint64_t cells;      /* at most so many */
};

static uint64_t read_address(struct api_call *call, const char *name, uint64_t usual) {
    const char *text = api_param(call, name);
    uint64_t address = usual;
    if (text != NULL && !api_address(text, &address)) {
        api_refuse(call, 400, "%s: '%s' is not an address", name, text);
    }
    return address;
}

/* A region, cut to the part. false: nothing of it is in there. */
static bool apiheap_cut(uint64_t *start, uint64_t *end, const struct part *part) {
    *start = *start > part->start ? *start : part->start & ~(uint64_t)(HEAPMAP_PAGE - 1);
    *end = *end < part->end ? *end : part->end;
    return *start < *end;
}

static uint64_t apiheap_cells_of(uint64_t start, uint64_t end, uint64_t step) {
    return (end - start + step - 1) / step;
}

/* The least power of two, not below a page, with which all regions have few cells. Each has one at
 * least. */
static uint64_t apiheap_step_of(const struct heapmap *map, const struct part *part) {
    uint64_t step = HEAPMAP_PAGE;
    for (;; step *= 2) {
        uint64_t cells = 0;
        for (size_t i = 0; i < map->region_count; i++) {
            uint64_t start = map->regions[i].start;
            uint64_t end = map->regions[i].end;
            cells += apiheap_cut(&start, &end, part) ? apiheap_cells_of(start, end, step) : 0;
        }
        if (cells <= part->cells + map->region_count || step >= UINT64_C(1) << 50) {
            return step;
        }
    }
}

/* What is in use at all is not 0. */
static uint64_t level_of(uint64_t bytes, uint64_t step) {
    uint64_t level = bytes >= step ? 255 : bytes / (step / 256) * 255 / 256;
    return level != 0 || bytes == 0 ? level : 1;
}

static void write_region(struct api_call *call, const struct detail *detail,
                         const struct heapmap_region *region, const struct part *part,
                         uint64_t step) {
    uint64_t start = region->start;
    uint64_t end = region->end;
    uint64_t *cells;
    size_t count;
    if (!apiheap_cut(&start, &end, part)) {
        return;
    }
    count = (size_t)apiheap_cells_of(start, end, step);
    cells = job_array(count, sizeof *cells);
    heapmap_fill(detail, start, step, cells, count);
    jsonwriter_map(call->json, NULL);
    api_put_address(call->json, "start", start);
    api_put_address(call->json, "end", end);
    if (region->name != NULL && region->name[0] != '\0') {
        jsonwriter_string(call->json, "name", region->name);
    }
    jsonwriter_number(call->json, "live_bytes", region->live_bytes);
    jsonwriter_number(call->json, "blocks", region->blocks);
    jsonwriter_array(call->json, "cells");
    for (size_t i = 0; i < count; i++) {
        jsonwriter_number(call->json, NULL, level_of(cells[i], step));
    }
    jsonwriter_end_array(call->json);
    jsonwriter_end_map(call->json);
    job_release(cells);
}

/* ---- The exact map ---- */

static void write_exact(struct api_call *call, const struct part *part) {
    const struct detail *detail = apidetail_get(call, false)->detail;
    const struct heapmap map =
        heapmap_make(detail, report_smaps(&call->report, call->view->model->to_ns));
    uint64_t step = apiheap_step_of(&map, part);
    uint64_t live = 0;
    uint64_t slack = 0;
    for (size_t i = 0; i < detail->live_count; i++) {
        live += detail->live[i].size;
        slack += detail->live[i].slack;
    }
    jsonwriter_map(call->json, NULL);
    jsonwriter_number(call->json, "at_ns", detail->end_ns);
    jsonwriter_number(call->json, "live_blocks", detail->live_count);
    jsonwriter_number(call->json, "live_bytes", live);
    jsonwriter_number(call->json, "slack_bytes", slack);
    jsonwriter_number(call->json, "holes", map.all_holes);
    jsonwriter_number(call->json, "holes_bytes", map.all_hole_bytes);
    jsonwriter_number(call->json, "pages", map.pages);
    jsonwriter_number(call->json, "nearly_empty_pages", map.nearly_empty);
    jsonwriter_number(call->json, "cell_bytes", step);
    jsonwriter_array(call->json, "regions");
    for (size_t i = 0; i < map.region_count; i++) {
        write_region(call, detail, &map.regions[i], part, step);
    }
    jsonwriter_end_array(call->json);
    jsonwriter_end_map(call->json);
    if (detail->live_without_address != 0) {
        api_note(call, "Without an address in the file, and left out: %" PRIu64 " blocks.",
                 detail->live_without_address);
    }
}

/* ---- The coarse map ---- */

/* Cells that lie less than this apart are one region. */
static size_t region_end(const struct heaphistory *history, size_t first, size_t end) {
    size_t at = first + 1;
    uint64_t apart = history->step < HEAPMAP_APART ? HEAPMAP_APART / history->step : 1;
    while (at < end &&
           (uint64_t)history->cells[at].number - history->cells[at - 1].number <= apart) {
        at++;
    }
    return at;
}

static void write_coarse_region(struct jsonwriter *json, const struct heaphistory *history,
                                size_t first, size_t end, const struct part *part) {
    uint64_t step = history->step;
    uint64_t start = history->cells[first].number * step;
    uint64_t last = (history->cells[end - 1].number + UINT64_C(1)) * step;
    uint64_t number;
    if (!apiheap_cut(&start, &last, part)) {
        return;
    }
    number = start / step;
    jsonwriter_map(json, NULL);
    api_put_address(json, "start", number * step);
    api_put_address(json, "end", last);
    jsonwriter_array(json, "cells");
    for (size_t at = first; number * step < last; number++) {
        while (at < end && history->cells[at].number < number) {
            at++;
        }
        jsonwriter_number(json, NULL,
                          at < end && history->cells[at].number == number ? history->cells[at].level
                                                                          : 0);
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
}

static void write_coarse(struct api_call *call, uint64_t time_ns, const struct part *part) {
    const struct heaphistory *history = apiheap_get_history(call);
    const struct heaphistory_moment *moment = heaphistory_at(history, time_ns);
    size_t end;
    jsonwriter_map(call->json, NULL);
    jsonwriter_number(call->json, "at_ns", moment->time_ns);
    jsonwriter_number(call->json, "live_bytes", moment->live_bytes);
    jsonwriter_number(call->json, "holes_bytes", moment->unused_bytes);
    jsonwriter_number(call->json, "pages", moment->pages);
    jsonwriter_number(call->json, "cell_bytes", history->step);
    jsonwriter_array(call->json, "regions");
    for (size_t at = moment->first; at < moment->first + moment->count; at = end) {
        end = region_end(history, at, moment->first + moment->count);
        write_coarse_region(call->json, history, at, end, part);
    }
    jsonwriter_end_array(call->json);
    jsonwriter_end_map(call->json);
    call->told.exact = API_SNAPPED;
}

void api_heap(struct api_call *call) {
    const char *moment = api_param(call, "moment");
    struct part part;
    struct error why;
    uint64_t time_ns;
    apidetail_check(call, "the heap");
    part.start = read_address(call, "start", 0);
    part.end = read_address(call, "end", UINT64_MAX);
    part.cells = api_number(call, "cells", CELLS_USUAL, 1, CELLS_MOST);
    api_command(call, "report --show-fragmentation%s",
                call->view->selection->view.to_ns == UINT64_MAX && moment == NULL ? " --to end"
                                                                                  : "");
    if (moment == NULL) {
        write_exact(call, &part);
        return;
    }
    if (filtervalue_time(moment, call->view->whole, &time_ns, &why) != 0) {
        api_refuse(call, 400, "moment: %s", why.message);
    }
    write_coarse(call, time_ns, &part);
}

/* ---- The tables of the report ---- */

static void write_table(struct api_call *call, const char *name) {
    struct report report;
    apidetail_check(call, "the heap");
    report = apidetail_report(call, apidetail_get(call, false));
    api_command(call, "report --show-fragmentation%s",
                call->view->selection->view.to_ns == UINT64_MAX ? " --to end" : "");
    apireport_one(call, &report, report_fragmentation, name);
}

void api_heap_pages(struct api_call *call) {
    write_table(call, "pages");
}

void api_heap_holes(struct api_call *call) {
    write_table(call, "holes");
}

void api_heap_pins(struct api_call *call) {
    write_table(call, "pins");
}

/* It has what each call path holds, too. */
void api_heap_slack(struct api_call *call) {
    call->report.model = apimetric_sums(call);
    write_table(call, "slack");
}

void api_heap_regions(struct api_call *call) {
    write_table(call, "regions");
}
