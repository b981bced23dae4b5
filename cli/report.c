/* SPDX-License-Identifier: MIT */
/* report.c: `memtrace report [FILE|PID]`. docs/report.md is its page. */
#include "analyze/ask/source.h"
#include "analyze/filter/asheap.h"
#include "analyze/report/findings.h"
#include "cli/cli.h"
#include "cli/outfile.h"
#include "cli/progress.h"
#include "cli/reportrequest.h"
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>

static int write_to(struct report *report, const struct request *request) {
    struct outfile file;
    struct error error;
    bool is_everything = !report_is_for_people(report) && !reportrequest_is_special(request);
    if (is_everything && !request->depth_given && report_refuse_bulk(report, &error) != 0) {
        return cli_error("%s", error.message);
    }
    if (outfile_open(&file, request->output, &error) != 0) {
        return cli_error("%s", error.message);
    }
    report->out = file.stream;
    error_set(&error, "out of memory while writing the report");
    return outfile_end(&file, reportshow_write(report, request), &error);
}

/* Which part of which source it is. */
struct part {
    const struct source *source;
    const struct filtered *filtered;
};

static int report_found(struct report *report, const struct part *part,
                        const struct request *request) {
    struct replay_options replay = progress_replay();
    const struct findings_wish wish = {.report = report,
                                       .whole = part->source->model,
                                       .selection = &part->filtered->selection,
                                       .has_passes = true,
                                       .replay = &replay};
    struct findings findings;
    struct error error;
    int status;
    if (!request->shows[SHOW_FINDINGS]) {
        return write_to(report, request);
    }
    report->findings = &findings;
    status = findings_make(&findings, &wish, &error) == 0 ? write_to(report, request)
                                                          : cli_error("%s", error.message);
    report->findings = NULL;
    findings_free(&findings);
    return status;
}

/* What is held while the program runs, or was held once, is no leak. */
static int report_unsuppressed(struct report *report, const struct part *part,
                               const struct request *request) {
    struct suppressions suppressions;
    struct error error;
    int status;
    if (suppressing_load(&request->question.suppressing, report->model,
                         request->question.debug_folders, &suppressions, &error) == 0) {
        bool are_leaks = !report->model->live && report->model->to_ns == UINT64_MAX;
        asking_note_suppressions(&suppressions);
        report->suppressions = are_leaks ? &suppressions : NULL;
        terminal_style(&report->options, request->output, request->color);
        status = report_found(report, part, request);
    } else {
        status = cli_error("%s", error.message);
    }
    suppressions_free(&suppressions);
    return status;
}

/* Where filters ask for pools or mappings, trees and tables are of those. What is written without a
 * --show-... option for programs has all classes, each in its place. */
static int report_classes(struct report *report, const struct part *part,
                          const struct request *request) {
    const struct model *model = report->model;
    uint32_t classes = reportdetail_classes(&part->filtered->selection);
    bool is_everything = !report_is_for_people(report) && !reportrequest_is_special(request);
    struct model heap;
    int status;
    if (classes == 0 || classes == 1u << MODEL_HEAP || is_everything) {
        return report_unsuppressed(report, part, request);
    }
    if (asheap_make(model, classes, &heap) != 0) {
        return cli_error("out of memory");
    }
    report->model = &heap;
    status = report_unsuppressed(report, part, request);
    report->model = model;
    asheap_free(&heap);
    return status;
}

/* What is selected is in the model; what single blocks tell comes beside it. */
static int report_part(struct report *report, const struct source *source,
                       const struct filtered *filtered, const struct request *request) {
    struct replay_options replay = progress_replay();
    const struct part part = {source, filtered};
    struct report_holes holes;
    struct detail *detail;
    struct error error;
    int status;
    report->model = filtered->model;
    report->parts = source->parts;
    report->selected =
        filters_given(&request->question.filters) ? request->question.filters.text : NULL;
    if (reportholes_find(&holes, request, source, filtered, report->names, &replay, &error) != 0 ||
        reportdetail_gather(report, request, source, filtered, &replay, &detail, &error) != 0) {
        reportholes_free(&holes);
        return cli_error("%s", error.message);
    }
    report->detail = detail;
    report->holes = holes.model != NULL ? &holes : NULL;
    status = report_classes(report, &part, request);
    detail_free(detail);
    reportholes_free(&holes);
    return status;
}

/* A profile does not know which thread did a part of it, nor when. */
static int apply_filters(const struct source *source, const struct names *names,
                         const struct request *request, struct filtered *filtered,
                         struct error *error) {
    struct replay_options replay = progress_replay();
    bool is_asked = request->shows[SHOW_THREADS] || request->shows[SHOW_TIMELINE];
    if (is_asked && filters_given(&request->question.filters) && source->parts.count == 0) {
        return error_set(error,
                         "%s with filters needs a recording; make one with `memtrace record`",
                         request->shows[SHOW_THREADS] ? "--show-threads" : "--show-timeline");
    }
    return filters_apply(&request->question.filters, source, names, &replay, filtered, error);
}

static int report_model(const struct source *source, const struct request *request) {
    const struct report_run run = {source->run, source->process, request->processes};
    struct report report = {.options = request->options,
                            .source = source->path,
                            .run = source->run != NULL ? &run : NULL};
    struct filtered filtered = {0};
    struct error error;
    struct names *names = source_names(source, request->question.debug_folders,
                                       progress_wanted() ? progress_symbols : NULL, &error);
    int status;
    if (names == NULL) {
        return cli_error("%s", error.message);
    }
    report.names = names;
    if (apply_filters(source, names, request, &filtered, &error) == 0) {
        status = report_part(&report, source, &filtered, request);
    } else {
        status = cli_error("%s", error.message);
    }
    filtered_close(&filtered);
    names_close(names);
    return status;
}

static int report_source(const char *name, const struct request *request) {
    struct replay_options replay = progress_replay();
    struct error error;
    struct source source;
    int status;
    if (source_open(&source, name, &request->question.choice, request->question.debug_folders,
                    &replay, &error) != 0) {
        return cli_error("%s", error.message);
    }
    status = reportdetail_check(request, &source, &error) == 0 ? report_model(&source, request)
                                                               : cli_error("%s", error.message);
    source_close(&source);
    return status;
}

static int run_report(int argc, char **argv) {
    struct request request = {.options = {.min_percent = 1, .limit = 20}, .processes = 10};
    int status = reportrequest_read(&request, argc, argv);
    if (status == CLI_OK) {
        status = report_source(request.source, &request);
    }
    reportrequest_free(&request);
    return status;
}

const struct command report_command = {
    .name = "report",
    .run = run_report,
    .summary = "show a profile, or that of a running program",
    .usage = "[OPTION]... [FILE|RUN|PID]",
    .about = "Shows a profile (*.mtp) or a recording (*.mtr), or what a running program "
             "holds now. Without an argument: the newest such file of this folder. "
             "Without a --show-... option: a summary, the call paths that held most, and"
             " the trees of peak and leaked memory.",
    .options = reportrequest_options,
    .operands = "PROFILE",
};
