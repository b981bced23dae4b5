/* SPDX-License-Identifier: MIT */
/* apifindings.c: what looks wrong, the gravest first. Listed in routes.c. */
#include "analyze/report/findings.h"

#include "analyze/rows/safetext.h"
#include "web/server/apicache.h"
#include "web/server/apilist.h"
#include "web/server/apimetric.h"
#include "web/server/hub.h"

#include <inttypes.h>
#include <stdio.h>

struct wish {
    const struct api_call *call;
    bool has_passes;
};

/* Leaks that are suppressed are none. */
static void *make_findings(const void *made_of, const struct replay_options *replay) {
    const struct wish *wish = made_of;
    const struct answer *view = wish->call->view;
    struct findings *findings = job_alloc(sizeof *findings);
    struct report report = wish->call->report;
    const struct findings_wish asked = {.report = &report,
                                        .whole = view->whole,
                                        .selection = view->selection,
                                        .has_passes = wish->has_passes,
                                        .replay = replay};
    report.suppressions = question_suppressions(view->question, view->model);
    findings_make(findings, &asked);
    return findings;
}

static size_t bytes_of_findings(const void *value) {
    const struct findings *findings = value;
    return sizeof *findings + findings->room * (sizeof *findings->items + 1024);
}

/* Those that single blocks tell, too, take a pass. */
static const struct apicache_kind findings_kinds[] = {
    {make_findings, bytes_of_findings, API_VIA_SLICES},
    {make_findings, bytes_of_findings, API_VIA_PASS},
};

/* As a command line has it: a running program by its number, of a run the process. */
static struct report report_as_asked(const struct api_call *call) {
    const struct answer *view = call->view;
    const struct question *question = view->question;
    struct report report = call->report;
    struct job_printing *selected;
    report.source = view->whole->live && view->source->parts.count == 0
                        ? job_text("%" PRIu32, view->whole->header.pid)
                        : hub_path(view->source);
    if (question->choice.process == NULL && !question->choice.all) {
        return report;
    }
    selected = job_print();
    fputs(question->choice.all ? "--all-processes" : "--process ", selected->out);
    if (!question->choice.all) {
        shellword_put(selected->out, question->choice.process);
    }
    if (question->filters.text != NULL) {
        fprintf(selected->out, " %s", question->filters.text);
    }
    report.selected = job_printed(selected);
    return report;
}

static void put_finding(struct api_call *call, const struct report *report,
                        const struct finding *finding) {
    struct jsonwriter *json = call->json;
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "kind", findings_kind_name(finding->kind));
    jsonwriter_string(json, "title", finding->title);
    jsonwriter_string(json, "sentence", finding->sentence);
    if (finding->bytes != 0) {
        jsonwriter_number(json, "bytes", finding->bytes);
    }
    if (finding->count != 0) {
        jsonwriter_number(json, "count", finding->count);
    }
    if (finding->share >= 0) {
        jsonwriter_double(json, "share", finding->share);
    }
    jsonwriter_string(json, "view", finding->view);
    jsonwriter_string(json, "command", findings_command(report, finding));
    if (finding->hash != 0) {
        const struct table_cell hash = table_number(finding->hash);
        tabledata_json_value(json, NULL, "hash", TABLE_HASH, &hash);
    }
    jsonwriter_end_map(json);
}

void api_findings(struct api_call *call) {
    uint64_t limit = api_number(call, "limit", 20, 1, 1000);
    const struct wish wish = {.call = call, .has_passes = api_flag(call, "passes")};
    const struct report report = report_as_asked(call);
    const struct findings *findings;
    char key[32];
    /* their sentences name functions */
    snprintf(key, sizeof key, "findings %d %d", wish.has_passes, call->report.options.full_names);
    findings = apicache_get(call, call->view, key, &findings_kinds[wish.has_passes], &wish);
    jsonwriter_map(call->json, NULL);
    jsonwriter_array(call->json, "findings");
    for (size_t i = 0; i < findings->count && i < limit; i++) {
        put_finding(call, &report, &findings->items[i]);
    }
    jsonwriter_end_array(call->json);
    jsonwriter_end_map(call->json);
    api_command(call, "report --show-findings");
}
