/* SPDX-License-Identifier: MIT */
/*
 * addressmap.c: the heap as a map: one character for some bytes, the fuller these are the darker.
 * Lines without a live byte are left out, and said to be.
 */
#include "analyze/report/fragmentation.h"
#include "analyze/rows/number.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <inttypes.h>
#include <string.h>

enum { MAP_COLUMNS = 64, MAP_LINES = 32, LEVELS = 8 };

/* The least power of two, not below a page, with which all regions take few lines. */
static uint64_t step_of(const struct heapmap *map) {
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

static void put_cell(const struct report *report, uint64_t bytes, uint64_t step) {
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
static size_t read_line(const struct report *report, uint64_t start, uint64_t end, uint64_t step,
                        uint64_t *cells) {
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

static void draw_region(const struct report *report, const struct heapmap_region *region,
                        uint64_t step) {
    uint64_t cells[MAP_COLUMNS];
    uint64_t skipped = 0;
    for (uint64_t at = region->start; at < region->end; at += step * MAP_COLUMNS) {
        size_t count = read_line(report, at, region->end, step, cells);
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
            put_cell(report, cells[i], step);
        }
        fputc('\n', report->out);
    }
}

void addressmap_draw(const struct report *report, const struct heapmap *map) {
    uint64_t step = step_of(map);
    size_t limit = report->options.limit != 0 ? report->options.limit : SIZE_MAX;
    struct number number;
    table_drawing_begin(report, "Address map");
    fprintf(report->out, "%sone character for %s: '%s' nothing lives there, '%s' full%s\n",
            style_on(report, STYLE_DIM), number_bytes(&number, step),
            report->options.unicode ? "·" : "_", report->options.unicode ? "█" : "#",
            style_off(report));
    for (size_t i = 0; i < map->region_count && i < limit; i++) {
        draw_region(report, &map->regions[i], step);
    }
    if (map->region_count > limit) {
        struct number more;
        fprintf(report->out, "(%s)\n",
                number_items(&more, map->region_count - limit, "more region"));
    }
    table_drawing_end(report);
}
