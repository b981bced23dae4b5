/* SPDX-License-Identifier: MIT */
/* heapmap.c: see heapmap.h. */
#include "analyze/blocks/heapmap.h"

#include "analyze/base/job.h"
#include "analyze/base/search.h"

#include <stdlib.h>
#include <string.h>

struct making {
    struct heapmap *map;
    const struct detail *detail;
    const struct smaps *smaps;
    size_t region_room;
    size_t pin_room;
    /* The page that is being filled. */
    uint64_t page;
    uint64_t bytes;
    size_t first; /* the blocks that touch it */
    size_t last;
};

static uint64_t heapmap_end(uint64_t start, uint64_t size) {
    uint64_t end;
    return __builtin_add_overflow(start, size, &end) ? UINT64_MAX : end;
}

static uint64_t heapmap_page(uint64_t address) {
    return address & ~(uint64_t)(HEAPMAP_PAGE - 1);
}

/* ---- Regions and holes ---- */

static void heapmap_note_hole(struct heapmap *map, uint64_t start, uint64_t end) {
    struct heapmap_hole hole = {start, end};
    size_t at = map->hole_count;
    map->all_holes++;
    map->all_hole_bytes += end - start;
    while (at != 0 && end - start > map->holes[at - 1].end - map->holes[at - 1].start) {
        at--;
    }
    if (at == HEAPMAP_HOLES) {
        return;
    }
    map->hole_count += map->hole_count < HEAPMAP_HOLES;
    memmove(&map->holes[at + 1], &map->holes[at], (map->hole_count - 1 - at) * sizeof hole);
    map->holes[at] = hole;
}

static bool heapmap_goes_on(const struct making *making, const struct heapmap_region *region,
                            uint64_t end, const struct detail_live *block) {
    const struct smaps_mapping *mapping = smaps_find(making->smaps, block->address);
    if (mapping != NULL) {
        return mapping == smaps_find(making->smaps, region->start);
    }
    return block->address < heapmap_end(end, HEAPMAP_APART);
}

static void heapmap_find_regions(struct making *making) {
    const struct detail *detail = making->detail;
    struct heapmap *map = making->map;
    struct heapmap_region *region = NULL;
    uint64_t end = 0; /* of what is usable so far */
    for (size_t i = 0; i < detail->live_count; i++) {
        const struct detail_live *block = &detail->live[i];
        uint64_t block_end = heapmap_end(block->address, block->size + block->slack);
        if (region == NULL || !heapmap_goes_on(making, region, end, block)) {
            const struct smaps_mapping *mapping = smaps_find(making->smaps, block->address);
            job_grow(&map->regions, &making->region_room, map->region_count, sizeof *map->regions);
            region = &map->regions[map->region_count++];
            *region = (struct heapmap_region){.start = heapmap_page(block->address),
                                              .end = heapmap_page(block->address),
                                              .name = mapping != NULL ? mapping->name : NULL};
        } else if (block->address >= heapmap_end(end, HEAPMAP_HOLE_LEAST)) {
            heapmap_note_hole(map, end, block->address);
        }
        end = block_end > end || region->blocks == 0 ? block_end : end;
        region->blocks++;
        region->live_bytes += block->size;
        region->end = heapmap_page(heapmap_end(end, HEAPMAP_PAGE - 1));
    }
}

/* ---- Pages ---- */

static uint64_t heapmap_overlap(const struct detail_live *block, uint64_t start, uint64_t end) {
    uint64_t from = block->address > start ? block->address : start;
    uint64_t to = heapmap_end(block->address, block->size);
    to = to < end ? to : end;
    return to > from ? to - from : 0;
}

/* The contexts of a page that holds little: each once. */
static void heapmap_note_pins(struct making *making) {
    struct heapmap *map = making->map;
    size_t before = map->pin_count;
    for (size_t i = making->first; i <= making->last; i++) {
        const struct detail_live *block = &making->detail->live[i];
        uint64_t bytes = heapmap_overlap(block, making->page, making->page + HEAPMAP_PAGE);
        size_t at = before;
        while (at < map->pin_count && map->pins[at].context != block->context) {
            at++;
        }
        if (bytes != 0 && at == map->pin_count) {
            job_grow(&map->pins, &making->pin_room, map->pin_count, sizeof *map->pins);
            map->pins[map->pin_count++] = (struct heapmap_pin){block->context, 1, bytes};
        } else if (bytes != 0) {
            map->pins[at].bytes += bytes;
        }
    }
}

static void heapmap_count_pages(struct heapmap *map, uint64_t pages, uint64_t bytes_each) {
    size_t tenth = (size_t)(bytes_each * 10 / HEAPMAP_PAGE);
    map->pages += pages;
    map->page_bytes += pages * bytes_each;
    map->pages_by_tenth[tenth < 10 ? tenth : 9] += pages;
}

static void heapmap_close_page(struct making *making) {
    uint64_t bytes = making->bytes < HEAPMAP_PAGE ? making->bytes : HEAPMAP_PAGE;
    if (bytes == 0) {
        return;
    }
    heapmap_count_pages(making->map, 1, bytes);
    if (bytes < HEAPMAP_NEARLY_EMPTY) {
        making->map->nearly_empty++;
        heapmap_note_pins(making);
    }
    making->bytes = 0;
}

/* Fills pages with [from, to) of a block; whole pages inside of it are counted at once. */
static void heapmap_fill_pages(struct making *making, size_t block, uint64_t from, uint64_t to) {
    while (from < to) {
        uint64_t page = heapmap_page(from);
        uint64_t page_end = heapmap_end(page, HEAPMAP_PAGE);
        uint64_t until = to < page_end ? to : page_end;
        if (page != making->page) {
            heapmap_close_page(making);
            making->page = page;
            making->first = block;
        }
        if (from == page && to >= page_end && to - from >= 2 * HEAPMAP_PAGE) {
            uint64_t whole = (to - from) / HEAPMAP_PAGE;
            heapmap_count_pages(making->map, whole - 1, HEAPMAP_PAGE);
            from += (whole - 1) * HEAPMAP_PAGE;
            continue;
        }
        making->bytes += until - from;
        making->last = block;
        from = until;
    }
}

/* What two blocks claim (a damaged file) counts once. */
static void heapmap_find_pages(struct making *making) {
    const struct detail *detail = making->detail;
    uint64_t done = 0;
    making->page = UINT64_MAX;
    for (size_t i = 0; i < detail->live_count; i++) {
        uint64_t from = detail->live[i].address > done ? detail->live[i].address : done;
        uint64_t to = heapmap_end(detail->live[i].address, detail->live[i].size);
        heapmap_fill_pages(making, i, from, to);
        done = to > done ? to : done;
    }
    heapmap_close_page(making);
}

static int heapmap_by_context(const void *left, const void *right) {
    const struct heapmap_pin *a = left;
    const struct heapmap_pin *b = right;
    return (a->context > b->context) - (a->context < b->context);
}

static int heapmap_most_pages_first(const void *left, const void *right) {
    const struct heapmap_pin *a = left;
    const struct heapmap_pin *b = right;
    return a->pages != b->pages ? (a->pages < b->pages) - (a->pages > b->pages)
                                : heapmap_by_context(left, right);
}

static void heapmap_merge_pins(struct heapmap *map) {
    size_t kept = 0;
    if (map->pin_count == 0) {
        return;
    }
    qsort(map->pins, map->pin_count, sizeof *map->pins, heapmap_by_context);
    for (size_t i = 0; i < map->pin_count; i++) {
        if (kept != 0 && map->pins[kept - 1].context == map->pins[i].context) {
            map->pins[kept - 1].pages += map->pins[i].pages;
            map->pins[kept - 1].bytes += map->pins[i].bytes;
        } else {
            map->pins[kept++] = map->pins[i];
        }
    }
    map->pin_count = kept;
    qsort(map->pins, map->pin_count, sizeof *map->pins, heapmap_most_pages_first);
}

struct heapmap heapmap_make(const struct detail *detail, const struct smaps *smaps) {
    struct heapmap map = {0};
    struct making making = {.map = &map, .detail = detail, .smaps = smaps};
    heapmap_find_regions(&making);
    heapmap_find_pages(&making);
    heapmap_merge_pins(&map);
    return map;
}

/* The first block whose successor begins behind `address`: all before end earlier, unless blocks
 * heapmap_overlap. */
static size_t heapmap_block_before(const struct detail *detail, uint64_t address) {
    size_t place = search_below(detail->live, detail->live_count, sizeof *detail->live,
                                offsetof(struct detail_live, address), address);
    return place != 0 ? place - 1 : 0;
}

void heapmap_fill(const struct detail *detail, uint64_t start, uint64_t step, uint64_t *cells,
                  size_t count) {
    uint64_t end = heapmap_end(start, step * count);
    for (size_t i = heapmap_block_before(detail, start);
         i < detail->live_count && detail->live[i].address < end; i++) {
        const struct detail_live *block = &detail->live[i];
        uint64_t from = block->address > start ? block->address : start;
        uint64_t to = heapmap_end(block->address, block->size);
        to = to < end ? to : end;
        while (from < to) {
            size_t cell = (size_t)((from - start) / step);
            uint64_t until = start + (uint64_t)(cell + 1) * step;
            until = until < to ? until : to;
            cells[cell] += until - from;
            from = until;
        }
    }
}
