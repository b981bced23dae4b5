/* SPDX-License-Identifier: MIT */
/* mappinghistory.c: see mappinghistory.h. */
#include "analyze/replay/mappinghistory.h"

#include "analyze/base/job.h"

#include <string.h>
#include <sys/mman.h>

struct reading {
    struct mappinghistory *history;
    uint64_t to_ns;
    size_t *there; /* places of those that the last moment had, by start */
    size_t there_count;
};

/* The one of that name that lay there the last time, which may have grown. Of two that it was split
 * into the first goes on. NULL: it is new. */
static struct mapping_seen *find_last(const struct reading *reading,
                                      const struct smaps_mapping *mapping, uint64_t time_ns) {
    struct mapping_seen *found;
    struct mapping_seen *items = reading->history->items;
    size_t low = 0;
    size_t high = reading->there_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (items[reading->there[middle]].end <= mapping->start) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    found = low < reading->there_count ? &items[reading->there[low]] : NULL;
    return found != NULL && found->start < mapping->end && found->last_ns != time_ns &&
                   strcmp(found->name, mapping->name) == 0
               ? found
               : NULL;
}

/* Its place. */
static size_t take_mapping(struct reading *reading, const struct smaps_mapping *mapping,
                           uint64_t time_ns) {
    struct mappinghistory *history = reading->history;
    struct mapping_seen *seen = find_last(reading, mapping, time_ns);
    if (seen == NULL) {
        job_grow(&history->items, &history->room, history->count, sizeof *history->items);
        seen = &history->items[history->count++];
        *seen = (struct mapping_seen){.id = history->count,
                                      .least = mapping->start,
                                      .first_ns = time_ns,
                                      .there_from_ns = history->last_ns,
                                      .there_to_ns = UINT64_MAX,
                                      .name = job_string(mapping->name)};
    }
    job_grow(&history->samples, &history->sample_room, history->sample_count,
             sizeof *history->samples);
    seen->start = mapping->start;
    seen->end = mapping->end;
    seen->least = mapping->start < seen->least ? mapping->start : seen->least;
    seen->most = mapping->end > seen->most ? mapping->end : seen->most;
    seen->resident_bytes = mapping->resident_bytes;
    seen->dirty_bytes = mapping->dirty_bytes;
    seen->swap_bytes = mapping->swap_bytes;
    seen->protection = mapping->protection;
    seen->last_ns = time_ns;
    seen->samples++;
    if (mapping->resident_bytes > seen->peak_resident_bytes) {
        seen->peak_resident_bytes = mapping->resident_bytes;
    }
    history->samples[history->sample_count++] =
        (struct mapping_sample){.time_ns = time_ns,
                                .start = mapping->start,
                                .resident_bytes = mapping->resident_bytes,
                                .dirty_bytes = mapping->dirty_bytes,
                                .swap_bytes = mapping->swap_bytes,
                                .mapping = (uint32_t)(seen - history->items)};
    return (size_t)(seen - history->items);
}

static bool take_moment(void *context, const struct smaps *smaps) {
    struct reading *reading = context;
    struct mappinghistory *history = reading->history;
    size_t *there;
    if (smaps->time_ns >= reading->to_ns) {
        return false;
    }
    there = job_array(smaps->count + 1, sizeof *there);
    for (size_t i = 0; i < smaps->count; i++) {
        there[i] = take_mapping(reading, &smaps->mappings[i], smaps->time_ns);
    }
    /* Those that the moment before had and this one has not are gone. */
    for (size_t i = 0; i < reading->there_count; i++) {
        struct mapping_seen *seen = &history->items[reading->there[i]];
        if (seen->last_ns != smaps->time_ns) {
            seen->there_to_ns = smaps->time_ns;
        }
    }
    history->last_ns = smaps->time_ns;
    job_release(reading->there);
    reading->there = there;
    reading->there_count = smaps->count;
    return true;
}

void mappinghistory_read(struct timeorder_parts parts, uint64_t to_ns,
                         struct mappinghistory *history) {
    struct reading reading = {.history = history, .to_ns = to_ns};
    *history = (struct mappinghistory){0};
    smaps_visit(parts, take_moment, &reading);
    for (size_t i = 0; i < reading.there_count; i++) {
        history->items[reading.there[i]].is_there = true;
    }
    job_release(reading.there);
}

int mappinghistory_name_callers(struct mappinghistory *history, const struct mappinglist *mappings,
                                const struct model *whole, const struct replay_options *options) {
    for (size_t i = 0; i < history->count; i++) {
        struct mapping_seen *seen = &history->items[i];
        const struct mapping *piece =
            seen->is_there ? mappinglist_find(mappings, seen->start, seen->end) : NULL;
        const struct model_context *context =
            piece != NULL ? model_find(whole, piece->context) : NULL;
        if (replay_is_cancelled(options)) {
            return REPLAY_CANCELLED;
        }
        seen->node = context != NULL ? context->path : 0;
    }
    return 0;
}

const struct mapping_seen *mappinghistory_find(const struct mappinghistory *history, uint64_t id) {
    return id != 0 && id <= history->count ? &history->items[id - 1] : NULL;
}

const char *mapping_permissions(uint32_t protection) {
    static const char *const names[] = {"---p", "r--p", "-w-p", "rw-p", "--xp", "r-xp",
                                        "-wxp", "rwxp", "---s", "r--s", "-w-s", "rw-s",
                                        "--xs", "r-xs", "-wxs", "rwxs"};
    enum { SHARED = 8 };
    return names[((protection & PROT_READ) != 0) | ((protection & PROT_WRITE) != 0) << 1 |
                 ((protection & PROT_EXEC) != 0) << 2 | ((protection & SHARED) != 0) << 3];
}
