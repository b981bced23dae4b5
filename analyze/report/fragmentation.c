/* SPDX-License-Identifier: MIT */
/*
 * fragmentation.c: what a heap takes beyond what was asked for: slack, pages that are partly empty,
 * holes, who keeps them, and a map of the addresses.
 */
#include "analyze/blocks/heapmap.h"
#include "analyze/report/reports.h"
#include "analyze/rows/number.h"
#include "analyze/rows/rows.h"
#include "analyze/rows/style.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- The address map ---- */

enum { MAP_COLUMNS = 64, MAP_LINES = 32, LEVELS = 8 };

/* The least power of two, not below a page, with which all regions take few lines. */
static uint64_t addressmap_step(const struct heapmap *map) {
    uint64_t step = HEAPMAP_PAGE;
    uint64_t lines;
    do {
        lines = 0;
        for (size_t i = 0; i < map->region_count; i++) {
            uint64_t size = map->regions[i].end - map->regions[i].start;
            lines += (size / step + MAP_COLUMNS) / MAP_COLUMNS;
        }
        step *= 2;
    } while (lines > MAP_LINES + map->region_count && step < UINT64_MAX / 4 / MAP_COLUMNS);
    return step / 2;
}

static void addressmap_put_cell(const struct report *report, uint64_t bytes, uint64_t step) {
    static const char *const drawn[LEVELS + 1] = {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char typed[LEVELS + 2] = "_.:-=+*%#";
    size_t level = (size_t)((double)bytes / (double)step * LEVELS + 0.5);
    level = level > LEVELS ? LEVELS : level == 0 && bytes != 0 ? 1 : level;
    if (report->options.unicode) {
        fputs(drawn[level], report->out);
    } else {
        fputc(typed[level], report->out);
    }
}

/* The line that starts at an address. Returns its number of cells; 0: nothing lives there. */
static size_t addressmap_read_line(const struct report *report, uint64_t start, uint64_t end,
                                   uint64_t step, uint64_t *cells) {
    uint64_t columns = (end - start + step - 1) / step;
    size_t count = columns < MAP_COLUMNS ? (size_t)columns : MAP_COLUMNS;
    uint64_t any = 0;
    memset(cells, 0, MAP_COLUMNS * sizeof *cells);
    heapmap_fill(report->detail, start, step, cells, count);
    for (size_t i = 0; i < count; i++) {
        any |= cells[i];
    }
    return any != 0 ? count : 0;
}

static void addressmap_draw_region(const struct report *report, const struct heapmap_region *region,
                                   uint64_t step) {
    uint64_t cells[MAP_COLUMNS];
    uint64_t skipped = 0;
    for (uint64_t at = region->start; at < region->end; at += step * MAP_COLUMNS) {
        size_t count = addressmap_read_line(report, at, region->end, step, cells);
        if (count == 0) {
            skipped++;
            continue;
        }
        if (skipped != 0) {
            struct number number;
            fprintf(report->out, "%14s  %s(%s)%s\n", "", style_on(report, STYLE_DIM),
                    number_items(&number, skipped, "empty line"), style_off(report));
            skipped = 0;
        }
        fprintf(report->out, "%14" PRIx64 "  ", at);
        for (size_t i = 0; i < count; i++) {
            addressmap_put_cell(report, cells[i], step);
        }
        fputc('\n', report->out);
    }
}

static void addressmap_draw(const struct report *report, const struct heapmap *map) {
    uint64_t step = addressmap_step(map);
    size_t limit = report->options.limit != 0 ? report->options.limit : SIZE_MAX;
    struct number number;
    table_drawing_begin(report, "Address map");
    fprintf(report->out, "%sone character for %s: '%s' nothing lives there, '%s' full%s\n",
            style_on(report, STYLE_DIM), number_bytes(&number, step),
            report->options.unicode ? "·" : "_", report->options.unicode ? "█" : "#",
            style_off(report));
    for (size_t i = 0; i < map->region_count && i < limit; i++) {
        addressmap_draw_region(report, &map->regions[i], step);
    }
    if (map->region_count > limit) {
        struct number more;
        fprintf(report->out, "(%s)\n",
                number_items(&more, map->region_count - limit, "more region"));
    }
    table_drawing_end(report);
}

/* ---- The whole heap ---- */

static void heap_put_whole(const struct report *report, const struct heapmap *map,
                           const struct smaps *smaps) {
    static const struct table_column columns[] = {
        {"time_ns", NULL, TABLE_DURATION, 0},
        {"live_blocks", "live blocks", TABLE_COUNT, 0},
        {"live_bytes", "live bytes", TABLE_BYTES, 0},
        {"slack_bytes", "slack", TABLE_BYTES, 0},
        {"pages", "pages with live blocks", TABLE_COUNT, 0},
        {"page_bytes", "bytes of these pages", TABLE_BYTES, 0},
        {"occupancy_percent", "of that in use", TABLE_PERCENT, 0},
        {"nearly_empty_pages", "nearly empty pages", TABLE_COUNT, 0},
        {"holes", "holes", TABLE_COUNT, 0},
        {"hole_bytes", "bytes in holes", TABLE_BYTES, 0},
    };
    const struct detail *detail = report->detail;
    uint64_t bytes = 0;
    uint64_t slack = 0;
    struct table table = table_open_record(report, "fragmentation", "Fragmentation", columns, 10);
    for (size_t i = 0; i < detail->live_count; i++) {
        bytes += detail->live[i].size;
        slack += detail->live[i].slack;
    }
    table_note(&table, "Of blocks that lived at %.9g s%s.", (double)detail->end_ns / 1e9,
               report->holes != NULL
                   ? ", when most bytes lay unused between them (--at chooses another moment)"
                   : "");
    if (smaps->mappings == NULL) {
        table_note(&table, "Where mappings begin and end is not in the file: what lies 1 MiB and "
                           "more apart is taken for two regions.");
    }
    if (report->model->recording.sampled) {
        table_note(&table,
                   "The recording is sampled: only those blocks that are in it are counted, "
                   "and the heap looks emptier than it was.");
    }
    if (detail->live_without_address != 0) {
        struct number blocks;
        table_note(&table, "Without an address in the file, and left out: %s.",
                   number_items(&blocks, detail->live_without_address, "block"));
    }
    table_row(&table, (struct table_cell[]){
                          table_number(detail->end_ns), table_number(detail->live_count),
                          table_number(bytes), table_number(slack), table_number(map->pages),
                          table_number(map->pages * HEAPMAP_PAGE),
                          table_share(map->page_bytes, map->pages * HEAPMAP_PAGE),
                          table_number(map->nearly_empty), table_number(map->all_holes),
                          table_number(map->all_hole_bytes)});
    table_close(&table);
}

static void heap_put_pages(const struct report *report, const struct heapmap *map) {
    static const struct table_column columns[] = {
        {"from_percent", NULL, TABLE_COUNT, 0}, {"to_percent", NULL, TABLE_COUNT, 0},
        {NULL, "filled", TABLE_TEXT, 12},       {"pages", "pages", TABLE_COUNT, 0},
        {"percent", "share", TABLE_PERCENT, 0},
    };
    struct table table = table_open(report, "pages", "Pages by how full they are", columns, 5);
    for (size_t i = 0; i < 10; i++) {
        char range[32];
        snprintf(range, sizeof range, "%zu-%zu%%", i * 10, (i + 1) * 10);
        table_row(&table,
                  (struct table_cell[]){table_number(i * 10), table_number((i + 1) * 10),
                                        table_text(range), table_number(map->pages_by_tenth[i]),
                                        table_share(map->pages_by_tenth[i], map->pages)});
    }
    table_close(&table);
}

static void heap_put_holes(const struct report *report, const struct heapmap *map) {
    static const struct table_column columns[] = {
        {"start", "from", TABLE_ADDRESS, 0},
        {"end", "to", TABLE_ADDRESS, 0},
        {"bytes", "size", TABLE_BYTES, 0},
    };
    struct table table = table_open(report, "holes", "Largest holes between blocks", columns, 3);
    for (size_t i = 0; i < map->hole_count && table_has_room(&table); i++) {
        const struct heapmap_hole *hole = &map->holes[i];
        table_row(&table, (struct table_cell[]){table_number(hole->start), table_number(hole->end),
                                                table_number(hole->end - hole->start)});
    }
    table.hidden = map->all_holes - table.rows;
    table_close(&table);
}

static void heap_put_regions(const struct report *report, const struct heapmap *map) {
    static const struct table_column columns[] = {
        {"start", "from", TABLE_ADDRESS, 0},     {"end", "to", TABLE_ADDRESS, 0},
        {"bytes", "size", TABLE_BYTES, 0},       {"live_bytes", "live", TABLE_BYTES, 0},
        {"percent", "in use", TABLE_PERCENT, 0}, {"blocks", "blocks", TABLE_COUNT, 0},
        {"name", "mapping", TABLE_TEXT, 0},
    };
    struct table table = table_open(report, "regions", "Regions of the heap", columns, 7);
    for (size_t i = 0; i < map->region_count && table_has_room(&table); i++) {
        const struct heapmap_region *region = &map->regions[i];
        uint64_t size = region->end - region->start;
        const char *name = region->name != NULL && region->name[0] != '\0' ? region->name : NULL;
        table_row(&table,
                  (struct table_cell[]){table_number(region->start), table_number(region->end),
                                        table_number(size), table_number(region->live_bytes),
                                        table_share(region->live_bytes, size),
                                        table_number(region->blocks), table_text(name)});
    }
    table.hidden = map->region_count - table.rows;
    table_close(&table);
}

/* ---- By context ---- */

static void heap_put_pins(const struct report *report, const struct heapmap *map) {
    static const struct table_column columns[] = {
        {"pages", "pages", TABLE_COUNT, 9},
        {"bytes", "bytes on them", TABLE_BYTES, 13},
        {"hash", "hash", TABLE_HASH, 0},
        {"path", "call path", TABLE_PATH, 0},
    };
    struct table table = table_open(report, "pins", "Who keeps nearly empty pages", columns, 4);
    table_note(&table,
               "Pages with less than %d live bytes; one with blocks of several call paths "
               "counts for each.",
               HEAPMAP_NEARLY_EMPTY);
    for (size_t i = 0; i < map->pin_count && table_has_room(&table); i++) {
        const struct heapmap_pin *pin = &map->pins[i];
        const struct model_context *context = model_find(report->model, pin->context);
        table_row(&table,
                  (struct table_cell[]){table_number(pin->pages), table_number(pin->bytes),
                                        table_number(model_hash(report->model, pin->context)),
                                        table_path(context != NULL ? context->path : 0)});
    }
    table.hidden = map->pin_count - table.rows;
    table_close(&table);
}

static bool heap_has_slack(const void *record) {
    return ((const struct detail_context *)record)->slack_bytes != 0;
}

static void heap_put_slack(const struct report *report) {
    static const unsigned char shown[] = {DETAIL_SLACK, DETAIL_LIVE_BYTES, DETAIL_LIVE_BLOCKS,
                                          DETAIL_HASH, DETAIL_PATH};
    struct rows_view view = rows_view(report, &rows_details, shown, sizeof shown);
    view.is_wanted = heap_has_slack;
    view.sort[view.sort_count++] = DETAIL_SLACK;
    rows_put_table(report, "slack", "Slack: usable bytes that nobody asked for", &view);
}

static void heap_put(const struct report *asked, bool is_brief) {
    struct report report = *asked;
    const struct smaps *smaps;
    struct heapmap map;
    if (report.holes != NULL) {
        report.model = report.holes->model;
        report.detail = report.holes->detail;
    }
    smaps = report_smaps(&report, report.model->to_ns);
    map = heapmap_make(report.detail, smaps);
    heap_put_whole(&report, &map, smaps);
    if (!is_brief) {
        heap_put_pages(&report, &map);
        heap_put_regions(&report, &map);
        if (report_is_for_people(&report)) {
            addressmap_draw(&report, &map);
        }
        heap_put_holes(&report, &map);
    }
    heap_put_pins(&report, &map);
    if (!is_brief) {
        heap_put_slack(&report);
    }
}

void report_fragmentation(const struct report *report) {
    heap_put(report, false);
}

void report_fragmentation_brief(const struct report *report) {
    heap_put(report, true);
}
