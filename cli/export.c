/* SPDX-License-Identifier: MIT */
/* export.c: `memtrace export`: files for other tools. docs/export.md is its page. */
#include "analyze/export/export.h"
#include "analyze/base/job.h"
#include "cli/outfile.h"
#include "cli/reading.h"
#ifdef MEMTRACE_WEB
#include "web/server/onefile.h"
#endif

#include <string.h>
#include <unistd.h>

/* ---- The command line ---- */

static void print_traits(void) {
    puts("formats (*: --cost chooses the one it holds, or shows first; f: needs --output):");
    for (size_t i = 0; exportformats[i].name != NULL; i++) {
        const struct exportformat *format = &exportformats[i];
        printf("  %-11s %c%c  %s\n", format->name,
               (format->traits & EXPORTFORMAT_COST) != 0 ? '*' : ' ',
               (format->traits & EXPORTFORMAT_FILE) != 0 ? 'f' : ' ', format->help);
    }
}

static void print_formats(void) {
    for (size_t i = 0; exportformats[i].name != NULL; i++) {
        printf("  %-11s %s\n", exportformats[i].name, exportformats[i].help);
    }
}

static bool offer_formats(const char *value) {
    bool is_format = strcmp(value, "FORMAT") == 0;
    for (size_t i = 0; is_format && exportformats[i].name != NULL; i++) {
        printf("%s\t%s\n", exportformats[i].name, exportformats[i].help);
    }
    return is_format;
}

struct request {
    const struct exportformat *format;
    const char *format_name;
    const char *output;
    struct question question;
    struct export export; /* what is asked for of it */
    bool has_cost;
    bool list;
};

static int take_cost(void *member, const struct option *option, const char *value,
                     struct error *error) {
    struct request *request = member;
    request->has_cost = true;
    return metric_named(value, &request->export.cost)
               ? 0
               : option_refuse(option, value, METRIC_WORDS, error);
}

#define IN(member) OPTION_IN(struct request, member)

static const struct option options[] = {
    {"format", 'f', "FORMAT",
     "one of those below; not needed where the name of the output tells it", OPTION_TEXT,
     IN(format_name), .is_choice = true},
    {"output", 'o', "FILE", "write to FILE; - or without it: to stdout", OPTION_TEXT, IN(output)},
    {"cost", 'c', METRIC_CHOICES,
     "what is counted, where a format holds only one cost, or shows one first (default: peak)",
     OPTION_CALL, .call = take_cost},
    {"by", 0, "function|line", "what is told apart where call paths are merged (default: function)",
     OPTION_WORD, IN(export.by_line)},
    {"depth", 'd', "N",
     "at most N frames of each call path, where a format writes whole paths (0: all)",
     OPTION_NUMBER, IN(export.depth), OPTION_GIVEN(struct request, export.is_depth_given)},
    {"full-names", 0, NULL, "C++ names with parameters, template arguments, return types",
     OPTION_FLAG, IN(export.full_names)},
    {"all-frames", 0, NULL, "also what the system runs before main and each level of a recursion",
     OPTION_FLAG, IN(export.all_frames)},
    {"list", 'l', NULL, "only list the names of the formats", OPTION_FLAG, IN(list)},
    {.part = question_options, IN(question)},
    {.part = filter_options, IN(question.filters)},
    OPTION_END};

static noreturn void refuse_format(const char *name) {
    struct nearest nearest = nearest_to(name, strlen(name));
    for (size_t i = 0; exportformats[i].name != NULL; i++) {
        nearest_offer(&nearest, exportformats[i].name);
    }
    cli_usage("export", "there is no format '%s'%s%s%s", name,
              nearest.name != NULL ? ": did you mean " : "",
              nearest.name != NULL ? nearest.name : "", nearest.name != NULL ? "?" : "");
}

static void choose_format(struct request *request) {
    const char *output = request->output;
    bool to_stdout = output == NULL || strcmp(output, "-") == 0;
    unsigned traits;
    if (request->format_name != NULL) {
        request->format = exportformat_named(request->format_name);
        if (request->format == NULL) {
            refuse_format(request->format_name);
        }
    } else {
        request->format = to_stdout ? NULL : exportformat_of_file(output);
        if (request->format == NULL) {
            cli_usage("export", "which format? name it with --format FORMAT");
        }
    }
    traits = request->format->traits;
    if (request->has_cost && (traits & EXPORTFORMAT_COST) == 0) {
        cli_usage("export", "--format %s holds all costs: --cost has no effect",
                  request->format->name);
    }
    if (request->export.is_depth_given && (traits & EXPORTFORMAT_DEPTH) == 0) {
        cli_usage("export",
                  "--format %s does not write each call path whole: --depth has no effect",
                  request->format->name);
    }
    if ((traits & EXPORTFORMAT_FILE) != 0 && to_stdout) {
        cli_usage("export", "--format %s needs --output FILE", request->format->name);
    }
    if ((traits & EXPORTFORMAT_BINARY) != 0 && to_stdout && isatty(STDOUT_FILENO)) {
        cli_usage("export", "--format %s is not for a terminal: use --output FILE",
                  request->format->name);
    }
}

/* ---- The work ---- */

/* The page of `memtrace serve` with its data inside. */
static void write_page(const struct answer *answer, const struct export *export) {
#ifdef MEMTRACE_WEB
    struct onefile page = {.metric = export->cost,
                           .full_names = export->full_names,
                           .by_line = export->by_line,
                           .all_frames = export->all_frames,
                           .replay = reading_replay()};
    struct error error;
    job_check(onefile_write_answer(&page, answer, export->out, &error), &error);
#else
    (void)answer;
    (void)export;
    job_fail("this memtrace was built without the page: no html");
#endif
}

static void export_answer(const struct answer *answer, const struct request *request) {
    const struct replay_options progress = reading_replay();
    bool given = filters_given(&request->question.filters);
    struct export export = request->export;
    struct outfile *file;
    export.model = answer->model;
    export.names = answer->names;
    export.parts = answer->source->parts;
    export.whole = answer->whole;
    export.selection = given ? answer->selection : NULL;
    export.selected = given ? request->question.filters.text : NULL;
    export.progress = &progress;
    export.source = answer->source->path;
    exportformat_choose(request->format, answer->selection, &export);
    file = outfile_open(request->output);
    export.out = file->stream;
    export.path = file->path;
    export.name = file->target != NULL ? request->output : NULL;
    if (request->format->write != NULL) {
        request->format->write(&export);
    } else {
        write_page(answer, &export);
    }
    outfile_keep(file);
}

static int run_export(int argc, char **argv) {
    struct request request = {.export.cost = METRIC_MAXIMUM};
    struct answer answer;
    const char *name;
    cli_read(&export_command, &argc, &argv, &request);
    name = cli_one(&export_command, argc, argv, NULL);
    if (request.list) {
        print_formats();
        return cli_finish(CLI_OK);
    }
    choose_format(&request);
    reading_open(&answer, name, &request.question);
    export_answer(&answer, &request);
    reading_note(&answer);
    return CLI_OK;
}

const struct command export_command = {
    .name = "export",
    .run = run_export,
    .summary = "write files for other tools: flame graphs, JSON, CSV, ...",
    .usage = "--format FORMAT [OPTION]... [FILE|RUN|PID]",
    .about = "Writes a profile (*.mtp), a recording (*.mtr) or what a running program "
             "holds now in the format of another tool. Without an argument: the newest "
             "such file of this folder.",
    .options = options,
    .operands = "PROFILE",
    .offer = offer_formats,
    .more = print_traits,
};
