/* SPDX-License-Identifier: MIT */
/* lifepass.c: see lifepass.h. */
#include "analyze/export/lifepass.h"

bool lifepass_possible(const struct export *export) {
    return export->parts.count != 0 &&
           (export->selection == NULL || !selection_asks_ends(export->selection));
}

int lifepass_visit(const struct export *export, const struct lives_visitor *visitor,
                   struct error *error) {
    return export->selection == NULL
               ? lives_visit(export->parts, export->whole, visitor, export->progress, error)
               : selection_visit(export->selection, export->whole, export->parts, export->names,
                                 visitor, export->progress, error);
}

bool lifepass_is_heap(const struct model *model, uint32_t context) {
    uint64_t frame = model->nodes[context].frame;
    return frame == 0 || frame == MEMTRACE_FRAME_UNKNOWN || frame >= MEMTRACE_FRAME_CLASSES;
}
