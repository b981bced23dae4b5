/* SPDX-License-Identifier: MIT */
/*
 * mappings.c: what the process has mapped: by name as the kernel told the collector (resident,
 * dirty, swapped), and by the call paths that called mmap and friends.
 */
#include "analyze/base/job.h"
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

static int mappings_by_name(const void *left, const void *right) {
    const struct named *a = left;
    const struct named *b = right;
    int order = strcmp(a->kind, b->kind);
    return order != 0 ? order : strcmp(a->name, b->name);
}

static int mappings_most_resident_first(const void *left, const void *right) {
    const struct named *a = left;
    const struct named *b = right;
    if (a->resident != b->resident) {
        return a->resident < b->resident ? 1 : -1;
    }
    if (a->size != b->size) {
        return a->size < b->size ? 1 : -1;
    }
    return mappings_by_name(left, right);
}

static void mappings_add(struct named *sum, const struct named *more) {
    sum->mappings += more->mappings;
    sum->size += more->size;
    sum->resident += more->resident;
    sum->dirty += more->dirty;
    sum->swap += more->swap;
}

static size_t mappings_merge_names(struct named *all, size_t count) {
    size_t kept = 0;
    qsort(all, count, sizeof *all, mappings_by_name);
    for (size_t i = 0; i < count; i++) {
        if (kept != 0 && mappings_by_name(&all[kept - 1], &all[i]) == 0) {
            mappings_add(&all[kept - 1], &all[i]);
        } else {
            all[kept++] = all[i];
        }
    }
    qsort(all, kept, sizeof *all, mappings_most_resident_first);
    return kept;
}

static void mappings_put_named(struct table *table, const struct named *named) {
    table_row(table,
              (struct table_cell[]){table_number(named->mappings), table_number(named->size),
                                    table_number(named->resident), table_number(named->dirty),
                                    table_number(named->swap), table_text(named->kind),
                                    table_text(named->name[0] != '\0' ? named->name : "-")});
}

static void mappings_put_all(const struct report *report, const struct smaps *smaps) {
    static const struct table_column columns[] = {
        {"mappings", "mappings", TABLE_COUNT, 9},
        {"size", "size", TABLE_BYTES, 0},
        {"resident_bytes", "resident", TABLE_BYTES, 0},
        {"dirty_bytes", "dirty", TABLE_BYTES, 0},
        {"swap_bytes", "swap", TABLE_BYTES, 0},
        {"kind", "kind", TABLE_TEXT, 9},
        {"name", "name", TABLE_TEXT, 0},
    };
    struct named *all = job_array(smaps->count, sizeof *all);
    struct named sum = {.name = "(all)", .kind = ""};
    size_t count = 0;
    struct table table;
    for (size_t i = 0; i < smaps->count; i++) {
        const struct smaps_mapping *mapping = &smaps->mappings[i];
        if (selection_has_smaps(report->mappings, smaps->time_ns, mapping->start)) {
            all[count] = (struct named){.name = mapping->name,
                                        .kind = report_mapping_kind(mapping->name),
                                        .mappings = 1,
                                        .size = mapping->end - mapping->start,
                                        .resident = mapping->resident_bytes,
                                        .dirty = mapping->dirty_bytes,
                                        .swap = mapping->swap_bytes};
            mappings_add(&sum, &all[count++]);
        }
    }
    count = mappings_merge_names(all, count);
    table = table_open(report, "mappings", "Mappings of the process", columns, 7);
    if (smaps->mappings == NULL) {
        table_note(&table, "The recording has no mappings of the process: it was too short.");
    } else {
        table_note(&table, "As the kernel reported at %.9g s.", (double)smaps->time_ns / 1e9);
    }
    for (size_t i = 0; i < count && table_has_room(&table); i++) {
        mappings_put_named(&table, &all[i]);
    }
    table.hidden = count - table.rows;
    if (count > 1 && report_is_for_people(report)) {
        mappings_put_named(&table, &sum);
    }
    table_close(&table);
}

/* ---- Each of them ---- */

static int mappings_peak_first(const void *left, const void *right) {
    const struct mapping_seen *a = *(const struct mapping_seen *const *)left;
    const struct mapping_seen *b = *(const struct mapping_seen *const *)right;
    if (a->peak_resident_bytes != b->peak_resident_bytes) {
        return a->peak_resident_bytes < b->peak_resident_bytes ? 1 : -1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

static void mappings_put_each(const struct report *report, const struct mappinghistory *history) {
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
    const struct mapping_seen **seen = job_array(history->count, sizeof *seen);
    size_t count = 0;
    struct table table;
    for (size_t i = 0; i < history->count; i++) {
        const struct mapping_seen *item = &history->items[i];
        if (item->is_there && selection_has_mapping(report->mappings, item->id)) {
            seen[count++] = item;
        }
    }
    qsort(seen, count, sizeof(const struct mapping_seen *), mappings_peak_first);
    table = table_open(report, "each-mapping", "Each mapping, most resident at any time first",
                       columns, 8);
    for (size_t i = 0; i < count && table_has_room(&table); i++) {
        table_row(&table,
                  (struct table_cell[]){
                      table_number(seen[i]->id), table_number(seen[i]->end - seen[i]->start),
                      table_number(seen[i]->resident_bytes),
                      table_number(seen[i]->peak_resident_bytes),
                      table_text(mapping_permissions(seen[i]->protection)),
                      table_number(seen[i]->start), table_number(seen[i]->end),
                      table_text(seen[i]->name[0] != '\0' ? seen[i]->name : "-")});
    }
    table.hidden = count - table.rows;
    table_close(&table);
}

/* ---- Who mapped them ---- */

static bool mappings_are_mapped(const void *record) {
    return ((const struct model_context *)record)->frame == MEMTRACE_FRAME_MAPPING;
}

static void mappings_put_contexts(const struct report *report) {
    static const unsigned char shown[] = {CONTEXT_LIVE_BYTES,  CONTEXT_LIVE_BLOCKS,
                                          CONTEXT_TOTAL_BYTES, CONTEXT_ALLOCATIONS,
                                          CONTEXT_HASH,        CONTEXT_PATH};
    const char *const headings[] = {report_held(report->model), "in", "in total", "mapped", NULL};
    struct rows_view view = rows_view(report, &rows_contexts, shown, sizeof shown);
    view.is_wanted = mappings_are_mapped;
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++) {
        view.columns[i].heading = headings[i];
        view.columns[i].width = view.columns[i].kind == TABLE_COUNT ? 9 : 0;
    }
    view.sort[view.sort_count++] = CONTEXT_LIVE_BYTES;
    view.sort[view.sort_count++] = CONTEXT_TOTAL_BYTES;
    rows_put_table(report, "mapping-paths", "Who called mmap", &view);
}

const struct smaps *report_smaps(const struct report *report, uint64_t time_ns) {
    struct smaps *smaps = job_alloc(sizeof *smaps);
    smaps_at(report->parts, time_ns, smaps);
    return smaps;
}

void report_mappings(const struct report *report) {
    if (report->parts.count != 0) {
        const struct smaps *smaps = report_smaps(report, report->model->to_ns);
        mappings_put_all(report, smaps);
        if (smaps->mappings != NULL) {
            struct mappinghistory history;
            mappinghistory_read(report->parts, report->model->to_ns, &history);
            mappings_put_each(report, &history);
        }
    }
    mappings_put_contexts(report);
}
