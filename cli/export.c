/* SPDX-License-Identifier: MIT */
/* export.c: `memtrace export`: files for other tools. docs/export.md is its page. */
#include "cli/asking.h"
#include "cli/cli.h"
#include "cli/exportformat.h"
#include "cli/nearest.h"
#include "cli/outfile.h"
#include "cli/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The command line ---- */

static void print_traits(void) {
    puts("formats (*: --cost chooses the one it holds, or shows first; f: needs --output):");
    for (size_t i = 0; i < exportformat_count; i++) {
        const struct exportformat *format = &exportformats[i];
        printf("  %-11s %c%c  %s\n", format->name,
               (format->traits & EXPORTFORMAT_COST) != 0 ? '*' : ' ',
               (format->traits & EXPORTFORMAT_FILE) != 0 ? 'f' : ' ', format->help);
    }
}

static void print_formats(void) {
    for (size_t i = 0; i < exportformat_count; i++) {
        printf("  %-11s %s\n", exportformats[i].name, exportformats[i].help);
    }
}

struct request {
    const struct exportformat *format;
    const char *format_name;
    const char *output;
    const char *cost_name;
    struct question question;
    const char *source;
    enum metric cost;
    bool by_line;
    bool full_names;
    bool all_frames;
    bool list;
    bool is_depth_given;
    size_t depth;
};

enum {
    KEY_FORMAT = 1,
    KEY_OUTPUT,
    KEY_COST,
    KEY_BY,
    KEY_DEPTH,
    KEY_FULL_NAMES,
    KEY_ALL_FRAMES,
    KEY_LIST
};

static const struct option options[] = {
    OPTION("format", 'f', KEY_FORMAT, "FORMAT",
           "one of those below; not needed where the name of the output says it"),
    OPTION("output", 'o', KEY_OUTPUT, "FILE", "write to FILE; default and -: to stdout"),
    OPTION("cost", 'c', KEY_COST, METRIC_CHOICES,
           "what is counted, where a format holds one, or shows one first (default: peak)"),
    OPTION("by", 0, KEY_BY, "function|line",
           "what is told apart where call paths are merged (default: function)"),
    OPTION("depth", 'd', KEY_DEPTH, "N",
           "at most N frames of each call path where a format writes them whole (0: all)"),
    OPTION("full-names", 0, KEY_FULL_NAMES, NULL,
           "C++ names with parameters, template arguments, return types"),
    OPTION("all-frames", 0, KEY_ALL_FRAMES, NULL,
           "also what the system runs before main and each level of a recursion"),
    OPTION("list", 'l', KEY_LIST, NULL, "only the names of the formats"),
    OPTION_PART(question_options),
    OPTION_PART(filter_options),
    OPTION_END};

static int read_cost(struct request *request, const struct cli_scan *scan) {
    request->cost_name = scan->value;
    return metric_named(scan->value, &request->cost)
               ? CLI_OK
               : cli_usage("export", "%s is " METRIC_WORDS ", not '%s'", scan->name, scan->value);
}

static int read_depth(struct request *request, const struct cli_scan *scan) {
    char *end;
    errno = 0;
    request->depth = strtoul(scan->value, &end, 10);
    request->is_depth_given = true;
    return scan->value[0] >= '0' && scan->value[0] <= '9' && *end == '\0' && errno == 0
               ? CLI_OK
               : cli_usage("export", "%s is a number of frames, not '%s'", scan->name, scan->value);
}

static int take_option(void *context, const struct cli_scan *scan, int key) {
    struct request *request = context;
    if (key >= QUESTION_KEYS) {
        return asking_take(&request->question, scan);
    }
    switch (key) {
    case KEY_FORMAT:
        return cli_choose(scan, &request->format_name, scan->value);
    case KEY_OUTPUT:
        request->output = scan->value;
        return CLI_OK;
    case KEY_COST:
        return read_cost(request, scan);
    case KEY_DEPTH:
        return read_depth(request, scan);
    case KEY_BY:
        request->by_line = strcmp(scan->value, "line") == 0;
        return request->by_line || strcmp(scan->value, "function") == 0
                   ? CLI_OK
                   : cli_usage("export", "--by is function or line, not '%s'", scan->value);
    default:
        request->list |= key == KEY_LIST;
        request->full_names |= key == KEY_FULL_NAMES;
        request->all_frames |= key == KEY_ALL_FRAMES;
        return CLI_OK;
    }
}

static int refuse_format(const char *name) {
    struct nearest nearest = nearest_to(name, strlen(name));
    for (size_t i = 0; i < exportformat_count; i++) {
        nearest_offer(&nearest, exportformats[i].name);
    }
    return nearest.name != NULL ? cli_usage("export", "there is no format '%s': did you mean %s?",
                                            name, nearest.name)
                                : cli_usage("export", "there is no format '%s'", name);
}

static int choose_format(struct request *request) {
    const char *output = request->output;
    bool to_stdout = output == NULL || strcmp(output, "-") == 0;
    if (request->format_name != NULL) {
        request->format = exportformat_named(request->format_name);
        if (request->format == NULL) {
            return refuse_format(request->format_name);
        }
    } else {
        request->format = to_stdout ? NULL : exportformat_of_file(output);
        if (request->format == NULL) {
            return cli_usage("export", "which format? name it with --format FORMAT");
        }
    }
    if (request->cost_name != NULL && (request->format->traits & EXPORTFORMAT_COST) == 0) {
        return cli_usage("export", "--format %s holds all costs: --cost has no effect",
                         request->format->name);
    }
    if (request->is_depth_given && (request->format->traits & EXPORTFORMAT_DEPTH) == 0) {
        return cli_usage("export",
                         "--format %s does not write each call path whole: --depth has no "
                         "effect",
                         request->format->name);
    }
    if ((request->format->traits & EXPORTFORMAT_FILE) != 0 && to_stdout) {
        return cli_usage("export", "--format %s needs --output FILE", request->format->name);
    }
    if ((request->format->traits & EXPORTFORMAT_BINARY) != 0 && to_stdout &&
        isatty(STDOUT_FILENO)) {
        return cli_usage("export", "--format %s is not for a terminal: use --output FILE",
                         request->format->name);
    }
    return CLI_OK;
}

static int read_arguments(struct request *request, int argc, char **argv) {
    struct cli_scan scan = cli_scan_start("export", argc, argv, options);
    int status = cli_scan_all(&scan, take_option, request);
    if (status != CLI_OK) {
        return status;
    }
    if (argc - scan.index > 1) {
        return cli_usage("export", "one file at a time: '%s' is one too many",
                         argv[scan.index + 1]);
    }
    request->source = scan.index < argc ? argv[scan.index] : NULL;
    return request->list ? CLI_OK : choose_format(request);
}

/* ---- The work ---- */

static bool is_same_file(const char *left, const char *right) {
    struct stat a;
    struct stat b;
    return stat(left, &a) == 0 && stat(right, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static int write_file(struct export *export, const struct request *request) {
    struct outfile file;
    struct error error = {""};
    if (request->output != NULL && is_same_file(request->output, export->source)) {
        return cli_error("%s is the file that is exported: name another --output", request->output);
    }
    if (outfile_open(&file, request->output, &error) != 0) {
        return cli_error("%s", error.message);
    }
    export->out = file.stream;
    export->path = file.path;
    export->name = file.target != NULL ? request->output : NULL;
    return outfile_end(&file, request->format->write(export, &error), &error);
}

static int export_answer(const struct answer *answer, const struct request *request) {
    const struct replay_options progress = progress_replay();
    bool given = filters_given(request->question.filters);
    struct export export = {.model = answer->filtered.model,
                            .names = answer->names,
                            .parts = answer->source.parts,
                            .cost = request->cost,
                            .full_names = request->full_names,
                            .by_line = request->by_line,
                            .all_frames = request->all_frames,
                            .depth = request->depth,
                            .is_depth_given = request->is_depth_given,
                            .whole = answer->source.model,
                            .selection = given ? &answer->filtered.selection : NULL,
                            .selected = given ? filters_text(request->question.filters) : NULL,
                            .progress = &progress,
                            .source = answer->source.path};
    return write_file(&export, request);
}

static int export_source(const struct request *request) {
    struct answer answer;
    struct error error;
    int status;
    if (asking_open(&answer, request->source, &request->question, &error) != 0) {
        return cli_error("%s", error.message);
    }
    status = export_answer(&answer, request);
    asking_note(&answer);
    answer_close(&answer);
    return status;
}

static int export_any(const struct request *request) {
    if (request->list) {
        print_formats();
        return cli_finish(CLI_OK);
    }
    return export_source(request);
}

static int run_export(int argc, char **argv) {
    struct request request = {.cost = METRIC_MAXIMUM, .question.filters = filters_new()};
    int status;
    if (request.question.filters == NULL) {
        return cli_error("out of memory");
    }
    status = read_arguments(&request, argc, argv);
    if (status == CLI_OK) {
        status = export_any(&request);
    }
    filters_free(request.question.filters);
    return status;
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
    .more = print_traits,
};
