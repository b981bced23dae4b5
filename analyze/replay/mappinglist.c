/* SPDX-License-Identifier: MIT */
/* mappinglist.c: see mappinglist.h. */
#include "analyze/replay/mappinglist.h"

#include "analyze/base/job.h"
#include "analyze/base/search.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

/* ---- The array ---- */

/* The first one that ends above the address. */
static size_t first_above(const struct mappinglist *mappings, uint64_t address) {
    return search_to(mappings->items, mappings->count, sizeof *mappings->items,
                     offsetof(struct mapping, end), address);
}

const struct mapping *mappinglist_find(const struct mappinglist *mappings, uint64_t start,
                                       uint64_t end) {
    size_t at = first_above(mappings, start);
    return at < mappings->count && mappings->items[at].start < end ? &mappings->items[at] : NULL;
}

void mappinglist_add(struct mappinglist *mappings, const struct mapping *mapping) {
    size_t at = first_above(mappings, mapping->start);
    job_grow(&mappings->items, &mappings->room, mappings->count, sizeof *mapping);
    memmove(&mappings->items[at + 1], &mappings->items[at],
            (mappings->count - at) * sizeof *mapping);
    mappings->items[at] = *mapping;
    mappings->count++;
}

/* Takes the piece, which is not all of it, out of the mapping there. */
static void mappinglist_cut(struct mappinglist *mappings, size_t at, const struct mapping *piece) {
    struct mapping *item = &mappings->items[at];
    struct mapping right = *item;
    right.start = piece->end;
    right.is_rest = true;
    if (piece->start == item->start) {
        item->start = piece->end;
        return;
    }
    item->end = piece->start;
    if (right.start < right.end) {
        mappinglist_add(mappings, &right);
    }
}

/* ---- The rules ---- */

static uint64_t page_up(uint64_t size) {
    return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static int remove_range(struct mappinglist *mappings, const struct timeorder_event *by,
                        uint64_t start, uint64_t size, const struct mappinglist_visitor *visitor) {
    uint64_t end;
    int result = 0;
    size_t at;
    if (size == 0 || __builtin_add_overflow(start, page_up(size), &end)) {
        return 0;
    }
    while (result == 0 && (at = first_above(mappings, start)) < mappings->count &&
           mappings->items[at].start < end) {
        struct mapping whole = mappings->items[at];
        struct mapping piece = whole;
        bool is_all;
        piece.start = whole.start > start ? whole.start : start;
        piece.end = whole.end < end ? whole.end : end;
        is_all = piece.start == whole.start && piece.end == whole.end;
        if (is_all) {
            mappings->count--;
            memmove(&mappings->items[at], &mappings->items[at + 1],
                    (mappings->count - at) * sizeof *mappings->items);
        } else {
            mappinglist_cut(mappings, at, &piece);
        }
        result = visitor->ended(visitor->context, &piece, by, is_all && !whole.is_rest);
    }
    return result;
}

/* What mremap moves keeps what it had: where its old place is given, what was there (and the
 * event's flags are mremap's); else that was unmapped before, and the event says it. The break is
 * memory to read and write. */
static void set_protection(const struct mappinglist *mappings, const struct event *event,
                           struct mapping *mapping) {
    bool is_told = event->operation == MEMTRACE_MAP_MAP ||
                   (event->operation == MEMTRACE_MAP_REMAP && event->old_address == 0);
    if (is_told) {
        mapping->protection = event->protection;
        mapping->flags = event->flags;
    } else if (event->operation == MEMTRACE_MAP_BREAK) {
        mapping->protection = PROT_READ | PROT_WRITE;
    } else {
        size_t at = first_above(mappings, event->old_address);
        if (at < mappings->count && mappings->items[at].start <= event->old_address) {
            mapping->protection = mappings->items[at].protection;
            mapping->flags = mappings->items[at].flags;
        }
    }
}

static void add_made(struct mappinglist *mappings, struct mapping *mapping, uint64_t size_bytes,
                     const struct mappinglist_visitor *visitor) {
    uint64_t size = page_up(size_bytes);
    mapping->id = ++mappings->made;
    if (size == 0 || __builtin_add_overflow(mapping->start, size, &mapping->end) ||
        (visitor->made != NULL && !visitor->made(visitor->context, mapping))) {
        return;
    }
    mappinglist_add(mappings, mapping);
}

int mappinglist_take(struct mappinglist *mappings, const struct timeorder_event *entry,
                     const struct mappinglist_visitor *visitor) {
    const struct event *event = &entry->event;
    struct mapping made = {.start = event->address,
                           .born_ns = event->time_ns,
                           .context = event->context,
                           .thread = entry->thread,
                           .operation = event->operation};
    int result = 0;
    set_protection(mappings, event, &made);
    switch ((enum memtrace_map_operation)event->operation) {
    case MEMTRACE_MAP_UNMAP:
        return remove_range(mappings, entry, event->address, event->size, visitor);
    case MEMTRACE_MAP_MAP:
        if (event->flags & MAP_FIXED) {
            result = remove_range(mappings, entry, event->address, event->size, visitor);
        }
        break;
    case MEMTRACE_MAP_REMAP:
    case MEMTRACE_MAP_BREAK:
        result = remove_range(mappings, entry, event->old_address, event->old_size, visitor);
        if (result == 0) { /* MREMAP_FIXED */
            result = remove_range(mappings, entry, event->address, event->size, visitor);
        }
        break;
    default:
        return 0;
    }
    if (result == 0) {
        add_made(mappings, &made, event->size, visitor);
    }
    return result;
}
