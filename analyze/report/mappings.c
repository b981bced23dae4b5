/* SPDX-License-Identifier: MIT */
/*
 * mappings.c: what the process has mapped: by name as the kernel told the collector (resident,
 * dirty, swapped), and by the call paths that called mmap and friends.
 */
#include "analyze/replay/mappinghistory.h"
#include "analyze/report/reports.h"
#include "analyze/rows/number.h"
#include "analyze/rows/rows.h"

#include <stdlib.h>
#include <string.h>

/* Mappings of one name, or of one kind where they have none. */
struct named {
    const char *name;
    const char *kind;
    uint64_t mappings, size, resident, dirty, swap;
};

const char *report_mapping_kind(const char *name) {
    if (strncmp(name, "[heap]", 6) == 0) {
        return "heap";
    }
    if (strncmp(name, "[stack", 6) == 0) {
        return "stack";
    }
    if (name[0] == '[') {
        return "kernel";
    }
    return name[0] == '\0' ? "anonymous" : "file";
}

static int by_name(const void *left, const void *right) {
    const struct named *a = left;
    const struct named *b = right;
    int order = strcmp(a->kind, b->kind);
    return order != 0 ? order : strcmp(a->name, b->name);
}

static int most_resident_first(const void *left, const void *right) {
    const struct named *a = left;
    const struct named *b = right;
    if (a->resident != b->resident) {
        return a->resident < b->resident ? 1 : -1;
    }
    if (a->size != b->size) {
        return a->size < b->size ? 1 : -1;
    }
    return by_name(left, right);
}

static size_t merge_names(struct named *all, size_t count) {
    size_t kept = 0;
    qsort(all, count, sizeof *all, by_name);
    for (size_t i = 0; i < count; i++) {
        if (kept != 0 && by_name(&all[kept - 1], &all[i]) == 0) {
            all[kept - 1].mappings++;
            all[kept - 1].size += all[i].size;
            all[kept - 1].resident += all[i].resident;
            all[kept - 1].dirty += all[i].dirty;
            all[kept - 1].swap += all[i].swap;
        } else {
            all[kept++] = all[i];
        }
    }
    qsort(all, kept, sizeof *all, most_resident_first);
    return kept;
}

static struct named *gather(const struct smaps *smaps, const struct selection_mappings *chosen,
                            size_t *count, struct named *sum) {
    struct named *all = calloc(smaps->count + 1, sizeof *all);
    size_t taken = 0;
    *sum = (struct named){.name = "(all)", .kind = ""};
    for (size_t i = 0; all != NULL && i < smaps->count; i++) {
        const struct smaps_mapping *mapping = &smaps->mappings[i];
        if (!selection_has_smaps(chosen, smaps->time_ns, mapping->start)) {
            continue;
        }
        all[taken] = (struct named){.name = mapping->name,
                                    .kind = report_mapping_kind(mapping->name),
                                    .mappings = 1,
                                    .size = mapping->end - mapping->start,
                                    .resident = mapping->resident_bytes,
                                    .dirty = mapping->dirty_bytes,
                                    .swap = mapping->swap_bytes};
        sum->mappings++;
        sum->size += all[taken].size;
        sum->resident += all[taken].resident;
        sum->dirty += all[taken].dirty;
        sum->swap += all[taken].swap;
        taken++;
    }
    *count = all != NULL ? merge_names(all, taken) : 0;
    return all;
}

static void put_named(struct table *table, const struct named *named) {
    table_row(table,
              (struct table_cell[]){table_number(named->mappings), table_number(named->size),
                                    table_number(named->resident), table_number(named->dirty),
                                    table_number(named->swap), table_text(named->kind),
                                    table_text(named->name[0] != '\0' ? named->name : "-")});
}

static int put_smaps(const struct report *report, const struct smaps *smaps) {
    static const struct table_column columns[] = {
        {"mappings", "mappings", TABLE_COUNT, 9},
        {"size", "size", TABLE_BYTES, 0},
        {"resident_bytes", "resident", TABLE_BYTES, 0},
        {"dirty_bytes", "dirty", TABLE_BYTES, 0},
        {"swap_bytes", "swap", TABLE_BYTES, 0},
        {"kind", "kind", TABLE_TEXT, 9},
        {"name", "name", TABLE_TEXT, 0},
    };
    struct named sum;
    size_t count;
    struct named *all = gather(smaps, report->mappings, &count, &sum);
    struct table table;
    if (all == NULL) {
        return -1;
    }
    table = table_open(report, "mappings", "Mappings of the process", columns, 7);
    if (smaps->mappings == NULL) {
        table_note(&table, "The recording has no mappings of the process: it was too short.");
    } else {
        table_note(&table, "As the kernel reported at %.9g s.", (double)smaps->time_ns / 1e9);
    }
    for (size_t i = 0; i < count && table_has_room(&table); i++) {
        put_named(&table, &all[i]);
    }
    table.hidden = count - table.rows;
    if (count > 1 && report_is_for_people(report)) {
        put_named(&table, &sum);
    }
    table_close(&table);
    free(all);
    return 0;
}

/* ---- Each of them ---- */

static int peak_first(const void *left, const void *right) {
    const struct mapping_seen *a = *(const struct mapping_seen *const *)left;
    const struct mapping_seen *b = *(const struct mapping_seen *const *)right;
    if (a->peak_resident_bytes != b->peak_resident_bytes) {
        return a->peak_resident_bytes < b->peak_resident_bytes ? 1 : -1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

static void put_seen(struct table *table, const struct mapping_seen *seen) {
    table_row(table,
              (struct table_cell[]){
                  table_number(seen->id), table_number(seen->end - seen->start),
                  table_number(seen->resident_bytes), table_number(seen->peak_resident_bytes),
                  table_text(mapping_permissions(seen->protection)), table_number(seen->start),
                  table_number(seen->end), table_text(seen->name[0] != '\0' ? seen->name : "-")});
}

static int put_each(const struct report *report, const struct mappinghistory *history) {
    static const struct table_column columns[] = {
        {"id", "number", TABLE_COUNT, 7},
        {"size", "size", TABLE_BYTES, 0},
        {"resident_bytes", "resident", TABLE_BYTES, 0},
        {"peak_resident_bytes", "at most", TABLE_BYTES, 0},
        {"permissions", "may", TABLE_TEXT, 5},
        {"start", "from", TABLE_ADDRESS, 0},
        {"end", "to", TABLE_ADDRESS, 0},
        {"name", "name", TABLE_TEXT, 0},
    };
    const struct mapping_seen **seen = calloc(history->count + 1, sizeof *seen);
    size_t count = 0;
    struct table table;
    for (size_t i = 0; seen != NULL && i < history->count; i++) {
        const struct mapping_seen *item = &history->items[i];
        if (item->is_there && selection_has_mapping(report->mappings, item->id)) {
            seen[count++] = item;
        }
    }
    if (seen == NULL) {
        return -1;
    }
    qsort(seen, count, sizeof(const struct mapping_seen *), peak_first);
    table = table_open(report, "each-mapping", "Each mapping, most resident at any time first",
                       columns, 8);
    for (size_t i = 0; i < count && table_has_room(&table); i++) {
        put_seen(&table, seen[i]);
    }
    table.hidden = count - table.rows;
    table_close(&table);
    free(seen);
    return 0;
}

/* ---- Who mapped them ---- */

static int most_held_first(const void *left, const void *right) {
    const struct model_context *a = *(const struct model_context *const *)left;
    const struct model_context *b = *(const struct model_context *const *)right;
    if (a->live_bytes != b->live_bytes) {
        return a->live_bytes < b->live_bytes ? 1 : -1;
    }
    if (a->total_bytes != b->total_bytes) {
        return a->total_bytes < b->total_bytes ? 1 : -1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

static bool is_mapping(const void *record) {
    return ((const struct model_context *)record)->frame == MEMTRACE_FRAME_MAPPING;
}

static int put_contexts(const struct report *report) {
    static const unsigned char shown[] = {CONTEXT_LIVE_BYTES,  CONTEXT_LIVE_BLOCKS,
                                          CONTEXT_TOTAL_BYTES, CONTEXT_ALLOCATIONS,
                                          CONTEXT_HASH,        CONTEXT_PATH};
    const char *const headings[] = {report_held(report->model), "in", "in total", "mapped", NULL};
    struct rows_view view = rows_view(report, &rows_contexts, shown, sizeof shown);
    size_t count = 0;
    const void **found;
    struct table table;
    view.is_wanted = is_mapping;
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++) {
        view.columns[i].heading = headings[i];
        view.columns[i].width = view.columns[i].kind == TABLE_COUNT ? 9 : 0;
    }
    found = rows_sorted(&view, most_held_first, &count);
    if (found == NULL) {
        return -1;
    }
    table = table_open(report, "mapping-paths", "Who called mmap", view.columns, view.count);
    rows_put_sorted(&table, &view, found, count);
    table_close(&table);
    free(found);
    return 0;
}

static int put_as_seen(const struct report *report) {
    struct smaps smaps = {0};
    struct mappinghistory history = {0};
    int result = smaps_at(report->parts, report->model->to_ns, &smaps);
    if (result == 0) {
        result = put_smaps(report, &smaps);
    }
    if (result == 0 && smaps.mappings != NULL) {
        result = mappinghistory_read(report->parts, report->model->to_ns, &history) != 0
                     ? -1
                     : put_each(report, &history);
    }
    mappinghistory_free(&history);
    smaps_free(&smaps);
    return result;
}

int report_mappings(const struct report *report) {
    int result = report->parts.count != 0 ? put_as_seen(report) : 0;
    return result == 0 ? put_contexts(report) : -1;
}
