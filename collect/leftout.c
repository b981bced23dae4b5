/* SPDX-License-Identifier: MIT */
/* leftout.c: see leftout.h. */
#include "collect/leftout.h"

#include "analyze/filter/suppressions.h"
#include "analyze/report/reports.h"

struct leftout leftout_find(const struct model *model) {
    struct leftout out = {0};
    struct suppressions list = {0};
    _Static_assert(sizeof out.note >= REPORT_LEFT_OUT_SIZE, "the note has room");
    if (suppressions_apply_usual(&list, model) == 0) {
        out.is_known = true;
        out.bytes = list.bytes;
        out.blocks = list.blocks;
        report_left_out(&list, out.note);
    }
    suppressions_free(&list);
    return out;
}
