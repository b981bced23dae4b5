/* SPDX-License-Identifier: MIT */
/* leftout.c: see leftout.h. */
#include "collect/leftout.h"

#include "analyze/base/job.h"
#include "analyze/filter/suppressions.h"
#include "analyze/report/reports.h"

struct leftout_finding {
    const struct model *model;
    struct leftout out;
};

static void leftout_work(void *what) {
    struct leftout_finding *finding = what;
    struct suppressions list = {0};
    _Static_assert(sizeof finding->out.note >= REPORT_LEFT_OUT_SIZE, "the note has room");
    suppressions_apply_usual(&list, finding->model);
    finding->out = (struct leftout){.is_known = true, .bytes = list.bytes, .blocks = list.blocks};
    report_left_out(&list, finding->out.note);
}

struct leftout leftout_find(const struct model *model) {
    struct leftout_finding finding = {.model = model};
    job_run(leftout_work, &finding, NULL, NULL);
    return finding.out;
}
