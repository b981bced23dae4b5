/* SPDX-License-Identifier: MIT */
/* heapmap.c: see heapmap.h. */
#include "analyze/blocks/heapmap.h"

#include "analyze/base/array.h"
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
    bool out_of_memory;
};

static uint64_t end_of(uint64_t start, uint64_t size) {
    uint64_t end;
    return __builtin_add_overflow(start, size, &end) ? UINT64_MAX : end;
}

static uint64_t page_of(uint64_t address) {
    return address & ~(uint64_t)(HEAPMAP_PAGE - 1);
}

/* ---- Regions and holes ---- */

static void note_hole(struct heapmap *map, uint64_t start, uint64_t end) {
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

static bool goes_on(const struct making *making, const struct heapmap_region *region, uint64_t end,
                    const struct detail_live *block) {
    const struct smaps_mapping *mapping = smaps_find(making->smaps, block->address);
    if (mapping != NULL) {
        return mapping == smaps_find(making->smaps, region->start);
    }
    return block->address < end_of(end, HEAPMAP_APART);
}

static struct heapmap_region *new_region(struct making *making, const struct detail_live *block) {
    struct heapmap *map = making->map;
    const struct smaps_mapping *mapping = smaps_find(making->smaps, block->address);
    if (array_grow(&map->regions, &making->region_room, map->region_count, sizeof *map->regions) !=
        0) {
        making->out_of_memory = true;
        return NULL;
    }
    map->regions[map->region_count] =
        (struct heapmap_region){.start = page_of(block->address),
                                .end = page_of(block->address),
                                .name = mapping != NULL ? mapping->name : NULL};
    return &map->regions[map->region_count++];
}

static void find_regions(struct making *making) {
    const struct detail *detail = making->detail;
    struct heapmap_region *region = NULL;
    uint64_t end = 0; /* of what is usable so far */
    for (size_t i = 0; i < detail->live_count; i++) {
        const struct detail_live *block = &detail->live[i];
        uint64_t block_end = end_of(block->address, block->size + block->slack);
        if (region == NULL || !goes_on(making, region, end, block)) {
            region = new_region(making, block);
            if (region == NULL) {
                return;
            }
        } else if (block->address >= end_of(end, HEAPMAP_HOLE_LEAST)) {
            note_hole(making->map, end, block->address);
        }
        end = block_end > end || region->blocks == 0 ? block_end : end;
        region->blocks++;
        region->live_bytes += block->size;
        region->end = page_of(end_of(end, HEAPMAP_PAGE - 1));
    }
}

/* ---- Pages ---- */

static void note_pin(struct making *making, struct heapmap_pin pin) {
    struct heapmap *map = making->map;
    if (array_grow(&map->pins, &making->pin_room, map->pin_count, sizeof *map->pins) != 0) {
        making->out_of_memory = true;
        return;
    }
    map->pins[map->pin_count++] = pin;
}

static uint64_t overlap(const struct detail_live *block, uint64_t start, uint64_t end) {
    uint64_t from = block->address > start ? block->address : start;
    uint64_t to = end_of(block->address, block->size);
    to = to < end ? to : end;
    return to > from ? to - from : 0;
}

/* The contexts of a page that holds little: each once. */
static void note_pins(struct making *making) {
    size_t before = making->map->pin_count;
    for (size_t i = making->first; i <= making->last && !making->out_of_memory; i++) {
        const struct detail_live *block = &making->detail->live[i];
        uint64_t bytes = overlap(block, making->page, making->page + HEAPMAP_PAGE);
        size_t at = before;
        while (at < making->map->pin_count && making->map->pins[at].context != block->context) {
            at++;
        }
        if (bytes != 0 && at == making->map->pin_count) {
            note_pin(making, (struct heapmap_pin){block->context, 1, bytes});
        } else if (bytes != 0) {
            making->map->pins[at].bytes += bytes;
        }
    }
}

static void count_pages(struct heapmap *map, uint64_t pages, uint64_t bytes_each) {
    size_t tenth = (size_t)(bytes_each * 10 / HEAPMAP_PAGE);
    map->pages += pages;
    map->page_bytes += pages * bytes_each;
    map->pages_by_tenth[tenth < 10 ? tenth : 9] += pages;
}

static void close_page(struct making *making) {
    uint64_t bytes = making->bytes < HEAPMAP_PAGE ? making->bytes : HEAPMAP_PAGE;
    if (bytes == 0) {
        return;
    }
    count_pages(making->map, 1, bytes);
    if (bytes < HEAPMAP_NEARLY_EMPTY) {
        making->map->nearly_empty++;
        note_pins(making);
    }
    making->bytes = 0;
}

/* Fills pages with [from, to) of a block; whole pages inside of it are counted at once. */
static void fill_pages(struct making *making, size_t block, uint64_t from, uint64_t to) {
    while (from < to) {
        uint64_t page = page_of(from);
        uint64_t page_end = end_of(page, HEAPMAP_PAGE);
        uint64_t until = to < page_end ? to : page_end;
        if (page != making->page) {
            close_page(making);
            making->page = page;
            making->first = block;
        }
        if (from == page && to >= page_end && to - from >= 2 * HEAPMAP_PAGE) {
            uint64_t whole = (to - from) / HEAPMAP_PAGE;
            count_pages(making->map, whole - 1, HEAPMAP_PAGE);
            from += (whole - 1) * HEAPMAP_PAGE;
            continue;
        }
        making->bytes += until - from;
        making->last = block;
        from = until;
    }
}

/* What two blocks claim (a damaged file) counts once. */
static void find_pages(struct making *making) {
    const struct detail *detail = making->detail;
    uint64_t done = 0;
    making->page = UINT64_MAX;
    for (size_t i = 0; i < detail->live_count; i++) {
        uint64_t from = detail->live[i].address > done ? detail->live[i].address : done;
        uint64_t to = end_of(detail->live[i].address, detail->live[i].size);
        fill_pages(making, i, from, to);
        done = to > done ? to : done;
    }
    close_page(making);
}

static int by_context(const void *left, const void *right) {
    const struct heapmap_pin *a = left;
    const struct heapmap_pin *b = right;
    return (a->context > b->context) - (a->context < b->context);
}

static int most_pages_first(const void *left, const void *right) {
    const struct heapmap_pin *a = left;
    const struct heapmap_pin *b = right;
    return a->pages != b->pages ? (a->pages < b->pages) - (a->pages > b->pages)
                                : by_context(left, right);
}

static void merge_pins(struct heapmap *map) {
    size_t kept = 0;
    if (map->pin_count == 0) {
        return;
    }
    qsort(map->pins, map->pin_count, sizeof *map->pins, by_context);
    for (size_t i = 0; i < map->pin_count; i++) {
        if (kept != 0 && map->pins[kept - 1].context == map->pins[i].context) {
            map->pins[kept - 1].pages += map->pins[i].pages;
            map->pins[kept - 1].bytes += map->pins[i].bytes;
        } else {
            map->pins[kept++] = map->pins[i];
        }
    }
    map->pin_count = kept;
    qsort(map->pins, map->pin_count, sizeof *map->pins, most_pages_first);
}

int heapmap_make(struct heapmap *map, const struct detail *detail, const struct smaps *smaps) {
    struct making making = {.map = map, .detail = detail, .smaps = smaps};
    find_regions(&making);
    find_pages(&making);
    merge_pins(map);
    if (making.out_of_memory) {
        heapmap_free(map);
        return -1;
    }
    return 0;
}

void heapmap_free(struct heapmap *map) {
    free(map->regions);
    free(map->pins);
    *map = (struct heapmap){0};
}

/* The first block whose successor begins behind `address`: all before end earlier, unless blocks
 * overlap. */
static size_t block_before(const struct detail *detail, uint64_t address) {
    size_t place = search_below(detail->live, detail->live_count, sizeof *detail->live,
                                offsetof(struct detail_live, address), address);
    return place != 0 ? place - 1 : 0;
}

void heapmap_fill(const struct detail *detail, uint64_t start, uint64_t step, uint64_t *cells,
                  size_t count) {
    uint64_t end = end_of(start, step * count);
    for (size_t i = block_before(detail, start);
         i < detail->live_count && detail->live[i].address < end; i++) {
        const struct detail_live *block = &detail->live[i];
        uint64_t from = block->address > start ? block->address : start;
        uint64_t to = end_of(block->address, block->size);
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
