/* SPDX-License-Identifier: MIT */
/* runregions.c: see runregions.h. */
#include "ask/runregions.h"

#include <stdlib.h>
#include <string.h>

/* Its header is there already, and it is neither ended nor another program by now. */
static bool runs(const struct region *region, struct memtrace_header *header) {
    return region->alive && region_read_header(region->path, header) == REGION_HEADER &&
           header->state == MEMTRACE_STATE_RUNNING;
}

static bool is_of_run(const struct memtrace_header *header, const struct memtrace_header *of) {
    return of->run.id != 0
               ? header->run.id == of->run.id
               : header->pid == of->pid && header->process_start_ticks == of->process_start_ticks;
}

int runregions_find(const char *path, struct region **list, size_t *count, struct error *error) {
    struct memtrace_header of;
    struct memtrace_header header;
    size_t found = 0;
    size_t all;
    *list = NULL;
    *count = 0;
    if (region_read_header(path, &of) != REGION_HEADER) {
        return 0;
    }
    if (region_list(list, &all, error) != 0) {
        return -1;
    }
    for (size_t i = 0; i < all; i++) {
        if (runs(&(*list)[i], &header) && is_of_run(&header, &of)) {
            (*list)[found++] = (*list)[i];
        }
    }
    *count = found;
    return 0;
}
