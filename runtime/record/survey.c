/* SPDX-License-Identifier: MIT */
/* survey.c: adding up the ledger inside the program. See survey.h. */
#include "runtime/record/survey.h"

#include "runtime/base/sys.h"

enum { LONGEST_PATH = 256 };

int survey_is_heap(struct context_tree *tree, uint32_t context) {
    uint64_t frame = context_read(tree, (struct context_id){context}).frame;
    return frame >= MEMTRACE_FRAME_CLASSES || frame == MEMTRACE_FRAME_UNKNOWN;
}

/* The cells of a segment: of `count` contexts from `first` on. */
static void survey_add_cells(struct survey *survey, const struct memtrace_cell *cells,
                             uint32_t first, uint32_t count, uint32_t epoch) {
    for (uint32_t i = 0; i < count && first + i < survey->count; i++) {
        const struct memtrace_cell *cell = &cells[i];
        struct survey_item *item = &survey->item[first + i];
        if (cell->alloc_count == 0 && cell->free_count == 0) {
            continue;
        }
        item->free_bytes += LOAD_RELAXED(&cell->free_bytes);
        item->free_count += LOAD_RELAXED(&cell->free_count);
        item->alloc_bytes += LOAD_RELAXED(&cell->alloc_bytes);
        item->alloc_count += LOAD_RELAXED(&cell->alloc_count);
        item->peak_bytes += (epoch & 1) == 0 && cell->peak_epoch == epoch
                                ? cell->saved_live
                                : (int64_t)(cell->alloc_bytes - cell->free_bytes);
    }
}

int survey_make(struct survey *survey, struct space *space, struct context_tree *tree) {
    const struct memtrace_header *header = space->header;
    struct survey_item *total = &survey->total;
    uint64_t end = LOAD_ACQUIRE(&header->end);
    uint64_t at = MEMTRACE_HEADER_SIZE;
    const struct memtrace_segment *segment;
    *survey = (struct survey){.count = LOAD_RELAXED(&tree->leaves) * MEMTRACE_LEAF_ITEMS};
    survey->item = sys_map(survey->count * sizeof *survey->item);
    if (survey->item == NULL) {
        return -1;
    }
    while ((segment = space_next(space, &at, end)) != NULL) {
        const struct memtrace_cell *cells = (const struct memtrace_cell *)segment;
        uint32_t epoch = LOAD_RELAXED(&header->peak_epoch);
        if (segment->kind == MEMTRACE_SEGMENT_LEDGER) {
            survey_add_cells(survey, cells + MEMTRACE_FIRST_CONTEXT,
                             segment->index * MEMTRACE_LEAF_ITEMS + MEMTRACE_FIRST_CONTEXT,
                             MEMTRACE_LEAF_ITEMS - MEMTRACE_FIRST_CONTEXT, epoch);
        } else if (segment->kind == MEMTRACE_SEGMENT_CELLS) {
            survey_add_cells(survey, cells + MEMTRACE_GROUP_FIRST,
                             segment->index * MEMTRACE_GROUP_ITEMS, MEMTRACE_GROUP_ITEMS, epoch);
        }
    }
    for (uint32_t id = 0; id < survey->count; id++) {
        const struct survey_item *item = &survey->item[id];
        if (item->alloc_count != 0 && survey_is_heap(tree, id)) {
            total->alloc_bytes += item->alloc_bytes;
            total->alloc_count += item->alloc_count;
            total->free_bytes += item->free_bytes;
            total->free_count += item->free_count;
            total->peak_bytes += item->peak_bytes > 0 ? item->peak_bytes : 0;
            survey->contexts++;
        }
    }
    return 0;
}

void survey_free(struct survey *survey) {
    if (survey->item != NULL) {
        sys_unmap(survey->item, survey->count * sizeof *survey->item);
    }
    survey->item = NULL;
}

uint32_t survey_frames(struct context_tree *tree, uint32_t context, uint64_t *frames,
                       uint32_t capacity) {
    uint32_t count = 0;
    while (context != 0) {
        struct memtrace_node node = context_read(tree, (struct context_id){context});
        if (node.frame >= MEMTRACE_FRAME_CLASSES) {
            if (count < capacity) {
                frames[count] = node.frame;
            }
            count++;
        }
        context = node.parent;
    }
    return count;
}

void survey_add_frame(struct text *text, const struct modules *modules, uint64_t frame) {
    uint32_t id = (frame >> MEMTRACE_FRAME_MODULE_SHIFT) & MEMTRACE_FRAME_MODULE_MASK;
    const struct memtrace_module *module = module_get(modules, id);
    uint64_t address = frame & MEMTRACE_FRAME_ADDRESS_MASK;
    address -= (frame & MEMTRACE_FRAME_EXACT) == 0; /* into the call */
    text_format(text, "    %s+%#" PRIx64 "\n", module != NULL ? module->path : "[unknown]",
                module != NULL ? address - module->bias : address);
}

int survey_write_frames(int fd, struct context_tree *tree, const struct modules *modules,
                        uint32_t context) {
    uint64_t frames[LONGEST_PATH];
    uint32_t count = survey_frames(tree, context, frames, LONGEST_PATH);
    char buffer[4096];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    for (uint32_t i = 0; i < count && i < LONGEST_PATH; i++) {
        if (text.length + sizeof(struct memtrace_module) + 64 > text.capacity) {
            if (write_all(fd, text.start, text.length) != 0) {
                return -1;
            }
            text_init(&text, buffer, sizeof buffer);
        }
        survey_add_frame(&text, modules, frames[i]);
    }
    if (count > LONGEST_PATH) {
        text_format(&text, "    ... %u older frames\n", count - LONGEST_PATH);
    }
    return write_all(fd, text.start, text.length) == 0 ? 0 : -1;
}

int survey_write(int fd, struct context_tree *tree, const struct modules *modules, uint32_t context,
                 const struct survey_item *item) {
    char buffer[256];
    text_print(buffer, sizeof buffer,
               "%'" PRIu64 " bytes live in %'" PRIu64 " blocks; in total %'" PRIu64
               " bytes in %'" PRIu64 " allocations\n",
               item->alloc_bytes - item->free_bytes, item->alloc_count - item->free_count,
               item->alloc_bytes, item->alloc_count);
    if (write_all(fd, buffer, text_length(buffer)) != 0) {
        return -1;
    }
    return survey_write_frames(fd, tree, modules, context);
}

/* --- the largest, by a heap of ids ------------------------------------------------------------ */

static uint64_t live_of(const struct survey *survey, uint32_t id) {
    const struct survey_item *item = &survey->item[id];
    return item->alloc_bytes > item->free_bytes ? item->alloc_bytes - item->free_bytes : 0;
}

/* Restores the order of a binary heap whose smallest is on top, from place i down. */
static void survey_sift(const struct survey *survey, uint32_t *ids, uint32_t count, uint32_t i) {
    for (;;) {
        uint32_t least = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < count; child++) {
            least = live_of(survey, ids[child]) < live_of(survey, ids[least]) ? child : least;
        }
        if (least == i) {
            return;
        }
        uint32_t swap = ids[i];
        ids[i] = ids[least];
        ids[least] = swap;
        i = least;
    }
}

long survey_write_top(int fd, const struct survey *survey, struct context_tree *tree,
                      const struct modules *modules, uint32_t top,
                      int (*accept)(void *argument, uint32_t context,
                                    const struct survey_item *item),
                      void *argument) {
    size_t size = survey->count * sizeof(uint32_t);
    uint32_t *ids = sys_map(size);
    uint32_t count = 0;
    long written = 0;
    if (ids == NULL) {
        return -1;
    }
    for (uint32_t id = 0; id < survey->count; id++) {
        if (live_of(survey, id) != 0 &&
            (accept == NULL || accept(argument, id, &survey->item[id]))) {
            ids[count++] = id;
        }
    }
    for (uint32_t i = count / 2; i-- > 0;) {
        survey_sift(survey, ids, count, i);
    }
    for (; count > 0 && written >= 0; survey_sift(survey, ids, count, 0)) { /* smallest first */
        if (top == 0 || count <= top) {
            written = survey_write(fd, tree, modules, ids[0], &survey->item[ids[0]]) == 0
                          ? written + 1
                          : -1;
        }
        ids[0] = ids[--count];
    }
    sys_unmap(ids, size);
    return written;
}
