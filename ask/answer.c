/* SPDX-License-Identifier: MIT */
/* answer.c: see answer.h. */
#include "ask/answer.h"

#include "analyze/base/job.h"
#include "analyze/window/view.h"

/* What is to be closed; the rest belongs to the job. */
struct opened {
    struct source source;
    struct names *names;
};

struct selected {
    struct selection selection;
    struct model *own;
    struct model whole; /* in place of sums that need not be made: with its window, the rest is the
                           file's */
};

static void opened_close(void *what) {
    struct opened *opened = what;
    names_close(opened->names);
    source_close(&opened->source);
}

static void selected_close(void *what) {
    struct selected *selected = what;
    model_free(selected->own);
}

/* A window's sums may take longer than a pass takes to its first word, and who asks for single
 * blocks does not see them. Filters of call paths are told by the sums, though. */
static bool may_lack_sums(const struct source *source, const struct selection *selection) {
    return source->parts.count != 0 && !selection_asks_contexts(selection);
}

void answer_select(struct answer *answer, const struct source *source, const struct names *names,
                   const struct question *question, unsigned terms,
                   const struct replay_options *replay) {
    struct selected *selected = job_alloc(sizeof *selected);
    struct selection *selection = &selected->selection;
    struct error error;
    *selection = selection_all();
    *answer = (struct answer){.source = source,
                              .whole = source->model,
                              .model = source->model,
                              .names = names,
                              .selection = selection,
                              .question = question};
    job_undo(selected_close, selected);
    job_check(filters_select(&question->filters, source, names, replay, selection, &error), &error);
    if ((terms & ANSWER_SNAPS) != 0 && selection_has_view(selection)) {
        answer->is_snapped =
            model_view_snap(source->model, &selection->view.from_ns, &selection->view.to_ns);
    }
    if ((terms & ANSWER_OF_BLOCKS) != 0 && may_lack_sums(source, selection)) {
        selected->whole = *source->model;
        selected->whole.from_ns = selection->view.from_ns;
        selected->whole.to_ns = selection->view.to_ns;
        answer->model = &selected->whole;
        answer->lacks_sums = true;
    } else if (!selection_is_all(selection)) {
        selected->own =
            selection_model(selection, source->model, source->parts, names, replay, &error);
        if (selected->own == NULL) {
            job_fail_as(&error);
        }
        answer->model = selected->own;
    }
}

void answer_open(struct answer *answer, const char *name, const struct question *question,
                 const struct answer_progress *progress) {
    struct opened *opened = job_alloc(sizeof *opened);
    struct source *source = &opened->source;
    struct error error;
    job_undo(opened_close, opened);
    job_check(source_open(source, name, &question->choice, question->debug_folders,
                          &progress->replay, &error),
              &error);
    opened->names = source_names(source, question->debug_folders, progress->symbols, &error);
    if (opened->names == NULL) {
        job_fail_as(&error);
    }
    answer_select(answer, source, opened->names, question, 0, &progress->replay);
    if (question->has_leaks) {
        answer->suppressions = question_suppressions(question, source->model);
    }
}

const struct model *answer_counted(const struct answer *answer) {
    uint32_t classes = selection_classes(answer->selection);
    return classes == 0 || classes == 1u << MODEL_HEAP ? answer->model
                                                       : selection_as_heap(answer->model, classes);
}

struct report answer_report(const struct answer *answer, size_t processes) {
    const struct source *source = answer->source;
    struct report report = {
        .model = answer->model,
        .names = answer->names,
        .source = source->path,
        .selected = answer->question->filters.text,
        .definitions.shutdown_ns = UINT64_MAX,
        .parts = source->parts,
        .suppressions = model_has_leaks(answer->model) ? answer->suppressions : NULL,
    };
    if (source->run != NULL) {
        struct report_run *run = job_alloc(sizeof *run);
        *run = (struct report_run){source->run, source->process, processes};
        report.run = run;
    }
    return report;
}
