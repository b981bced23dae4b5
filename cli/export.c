/* SPDX-License-Identifier: MIT */
/* export.c: `memtrace export`: files for other tools. docs/export.md is its page. */
#include "analyze/export/export.h"
#include "cli/cli.h"
#include "cli/filters.h"
#include "cli/outfile.h"
#include "cli/progress.h"
#include "cli/source.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The formats ---- */

enum format_trait {
    FORMAT_COST = 1,      /* holds one cost: --cost chooses */
    FORMAT_BINARY = 2,    /* nothing for terminals */
    FORMAT_RECORDING = 4, /* made of events: a profile has none */
    FORMAT_FILE = 8       /* no stream: needs --output */
};

struct format {
    const char *name;
    const char *ending; /* of files: --output with it needs no --format */
    const char *help;
    int (*write)(const struct export *export, struct error *error);
    unsigned traits; /* enum format_trait */
};

static const struct format formats[] = {
    {"folded", ".folded", "folded stacks, for flamegraph.pl, inferno, speedscope", export_folded,
     FORMAT_COST},
    {"flamegraph", ".svg", "a flame graph to look at in a browser", export_flamegraph, FORMAT_COST},
    {"html", ".html", "a report in one file, to mail around and open anywhere", export_html,
     FORMAT_COST},
    {"gprof2dot", ".gprof2dot.json", "call graph, for gprof2dot --format=json", export_gprof2dot,
     FORMAT_COST},
    {"speedscope", ".speedscope.json", "speedscope, a profile for each cost", export_speedscope,
     FORMAT_COST},
    {"callgrind", ".callgrind", "call graph by line, for kcachegrind and callgrind_annotate",
     export_callgrind, FORMAT_COST},
    {"heaptrack", ".zst", "every event, for heaptrack_gui and heaptrack_print", export_heaptrack,
     FORMAT_BINARY},
    {"massif", ".massif", "the heap over time, with call trees, for ms_print", export_massif, 0},
    {"pprof", ".pb.gz", "for go tool pprof, sample types as of Go's heap profiles", export_pprof,
     FORMAT_COST | FORMAT_BINARY},
    {"sqlite", ".sqlite", "the tables of memtrace query, to be kept", export_sqlite,
     FORMAT_BINARY | FORMAT_FILE},
    {"json", ".json", "all contexts, threads, modules: that of memtrace report", export_json, 0},
    {"csv", ".csv", "one line for each call path: that of memtrace report", export_csv, 0},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static const struct format *format_named(const char *name) {
    for (size_t i = 0; i < FORMATS; i++) {
        if (strcmp(formats[i].name, name) == 0) {
            return &formats[i];
        }
    }
    return NULL;
}

/* The format with the longest ending that the file has. NULL: none. */
static const struct format *format_of_file(const char *path) {
    const struct format *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < FORMATS; i++) {
        size_t length = strlen(formats[i].ending);
        size_t whole = strlen(path);
        if (whole > length && length > longest &&
            strcmp(path + whole - length, formats[i].ending) == 0) {
            found = &formats[i];
            longest = length;
        }
    }
    return found;
}

static void print_formats(void) {
    for (size_t i = 0; i < FORMATS; i++) {
        printf("  %-11s %s\n", formats[i].name, formats[i].help);
    }
}

/* ---- The command line ---- */

static const char help_text[] =
    "usage: memtrace export --format FORMAT [OPTION]... [FILE|PID]\n"
    "\n"
    "Writes a profile (*.mtp), a recording (*.mtr) or what a running program holds now in the\n"
    "format of another tool. Without an argument: the newest such file of this folder.\n"
    "\n"
    "  --format FORMAT      one of those below; not needed where the name of the output tells it\n"
    "  --output FILE        write to FILE; default and -: to stdout\n"
    "  --cost COST          what is counted, in formats that hold one cost (marked *):\n"
    "                       peak         bytes held when the program held most (default)\n"
    "                       live         bytes never freed; of a running program: held now\n"
    "                       total        bytes ever allocated\n"
    "                       allocations  how many allocations\n"
    "                       temporary    how many were freed before their thread's next one\n"
    "  --by function|line   what is told apart where call paths are merged (default: function)\n"
    "  --full-names         C++ names with parameters, template arguments, return types\n"
    "  --all-frames         also what the system runs before main and each level of a recursion\n"
    "  --debug-folders L    where separate debug files are, colon-separated (default:\n"
    "                       /usr/lib/debug)\n"
    "  --list               only the names of the formats\n"
    "  --help               show this\n";

static void print_help(void) {
    fputs(help_text, stdout);
    fputs(filters_help, stdout);
    puts("\nformats (* holds one cost, r needs a recording, f needs --output):");
    for (size_t i = 0; i < FORMATS; i++) {
        const struct format *format = &formats[i];
        char marks[4] = "   ";
        marks[0] = (format->traits & FORMAT_COST) != 0 ? '*' : ' ';
        marks[1] = (format->traits & FORMAT_RECORDING) != 0 ? 'r' : ' ';
        marks[2] = (format->traits & FORMAT_FILE) != 0 ? 'f' : ' ';
        printf("  %-11s %s  %s\n", format->name, marks, format->help);
    }
}

struct request {
    struct filters *filters;
    const struct format *format;
    const char *format_name;
    const char *output;
    const char *cost_name;
    const char *debug_folders;
    const char *source;
    enum metric cost;
    bool by_line;
    bool full_names;
    bool all_frames;
    bool help;
    bool list;
};

enum {
    KEY_HELP = 1,
    KEY_FORMAT,
    KEY_OUTPUT,
    KEY_COST,
    KEY_BY,
    KEY_FULL_NAMES,
    KEY_ALL_FRAMES,
    KEY_DEBUG_FOLDERS,
    KEY_LIST
};

static const struct cli_option options[] = {
    {"help", 'h', false, KEY_HELP},
    {"format", 'f', true, KEY_FORMAT},
    {"output", 'o', true, KEY_OUTPUT},
    {"cost", 'c', true, KEY_COST},
    {"by", 0, true, KEY_BY},
    {"full-names", 0, false, KEY_FULL_NAMES},
    {"all-frames", 0, false, KEY_ALL_FRAMES},
    {"debug-folders", 0, true, KEY_DEBUG_FOLDERS},
    {"list", 'l', false, KEY_LIST},
    FILTER_OPTIONS,
    {NULL, 0, false, 0},
};

static int read_cost(struct request *request, const struct cli_scan *scan) {
    static const struct {
        const char *name;
        enum metric metric;
    } costs[] = {{"peak", METRIC_MAXIMUM},
                 {"live", METRIC_LEAKED},
                 {"total", METRIC_CUMULATIVE},
                 {"allocations", METRIC_ALLOCATIONS},
                 {"temporary", METRIC_TEMPORARY}};
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        if (strcmp(scan->value, costs[i].name) == 0) {
            request->cost_name = scan->value;
            request->cost = costs[i].metric;
            return CLI_OK;
        }
    }
    return cli_usage("export", "%s is live, peak, total, allocations or temporary, not '%s'",
                     scan->name, scan->value);
}

static int take_option(struct request *request, const struct cli_scan *scan, int key) {
    if (key >= FILTER_KEYS) {
        return filters_take(request->filters, scan, key);
    }
    switch (key) {
    case KEY_FORMAT:
        request->format_name = scan->value;
        return CLI_OK;
    case KEY_OUTPUT:
        request->output = scan->value;
        return CLI_OK;
    case KEY_COST:
        return read_cost(request, scan);
    case KEY_BY:
        request->by_line = strcmp(scan->value, "line") == 0;
        return request->by_line || strcmp(scan->value, "function") == 0
                   ? CLI_OK
                   : cli_usage("export", "--by is function or line, not '%s'", scan->value);
    case KEY_DEBUG_FOLDERS:
        request->debug_folders = scan->value;
        return CLI_OK;
    default:
        request->help |= key == KEY_HELP;
        request->list |= key == KEY_LIST;
        request->full_names |= key == KEY_FULL_NAMES;
        request->all_frames |= key == KEY_ALL_FRAMES;
        return CLI_OK;
    }
}

static int choose_format(struct request *request) {
    const char *output = request->output;
    bool to_stdout = output == NULL || strcmp(output, "-") == 0;
    if (request->format_name != NULL) {
        request->format = format_named(request->format_name);
        if (request->format == NULL) {
            return cli_usage("export", "there is no format '%s'", request->format_name);
        }
    } else {
        request->format = to_stdout ? NULL : format_of_file(output);
        if (request->format == NULL) {
            return cli_usage("export", "which format? --format FORMAT tells it");
        }
    }
    if (request->cost_name != NULL && (request->format->traits & FORMAT_COST) == 0) {
        return cli_usage("export", "--format %s holds all costs: --cost says nothing",
                         request->format->name);
    }
    if ((request->format->traits & FORMAT_FILE) != 0 && to_stdout) {
        return cli_usage("export", "--format %s needs --output FILE", request->format->name);
    }
    if ((request->format->traits & FORMAT_BINARY) != 0 && to_stdout && isatty(STDOUT_FILENO)) {
        return cli_usage("export", "--format %s is nothing for a terminal: --output FILE",
                         request->format->name);
    }
    return CLI_OK;
}

static int read_arguments(struct request *request, int argc, char **argv) {
    struct cli_scan scan = cli_scan_start("export", argc, argv, options);
    int key;
    scan.permute = true;
    while ((key = cli_scan_next(&scan)) > 0) {
        int status = take_option(request, &scan, key);
        if (status != CLI_OK) {
            return status;
        }
    }
    if (key < 0) {
        return CLI_USAGE;
    }
    if (argc - scan.index > 1) {
        return cli_usage("export", "one file at a time: what is '%s'?", argv[scan.index + 1]);
    }
    request->source = scan.index < argc ? argv[scan.index] : NULL;
    return request->help || request->list ? CLI_OK : choose_format(request);
}

/* ---- The work ---- */

/* Formats of other tools have no place for what is wrong with a file. */
static void note_warnings(const struct source *source, const struct names *names) {
    const char *const *lines;
    size_t count = names_warnings(names, &lines);
    if (source->model->damage[0] != '\0') {
        cli_error("%s: %s", source->path, source->model->damage);
    }
    for (size_t i = 0; i < count; i++) {
        cli_error("%s", lines[i]);
    }
}

static int write_file(struct export *export, const struct request *request) {
    struct outfile file;
    struct error error = {""};
    if (outfile_open(&file, request->output, &error) != 0) {
        return cli_error("%s", error.message);
    }
    export->out = file.stream;
    export->path = file.path;
    export->name = file.target != NULL ? request->output : NULL;
    if (request->format->write(export, &error) != 0) {
        outfile_drop(&file);
        return cli_error("%s", error.message);
    }
    if (outfile_keep(&file, &error) != 0) {
        return error.message[0] != '\0' ? cli_error("%s", error.message) : CLI_FAILURE;
    }
    return CLI_OK;
}

static int export_selected(const struct source *source, const struct names *names,
                           const struct request *request) {
    const struct replay_options progress = progress_replay();
    struct export export = {.names = names,
                            .parts = source->parts,
                            .cost = request->cost,
                            .full_names = request->full_names,
                            .by_line = request->by_line,
                            .all_frames = request->all_frames,
                            .whole = source->model,
                            .progress = &progress,
                            .source = source->path};
    struct filtered filtered = {0};
    struct error error;
    int status;
    if (filters_apply(request->filters, source, names, &progress, &filtered, &error) == 0) {
        bool given = filters_given(request->filters);
        export.model = filtered.model;
        export.selection = given ? &filtered.selection : NULL;
        export.selected = given ? filters_text(request->filters) : NULL;
        status = write_file(&export, request);
    } else {
        status = cli_error("%s", error.message);
    }
    filtered_close(&filtered);
    return status;
}

static int export_source(const struct source *source, const struct request *request) {
    struct error error;
    struct names *names = source_names(source, request->debug_folders,
                                       progress_wanted() ? progress_symbols : NULL, &error);
    int status;
    if (names == NULL) {
        return cli_error("%s", error.message);
    }
    status = export_selected(source, names, request);
    note_warnings(source, names);
    names_close(names);
    return status;
}

static int export_file(const char *name, const struct request *request) {
    const struct replay_options replay = progress_replay();
    struct error error;
    struct source source;
    int status;
    if (source_open(&source, name, request->debug_folders, &replay, &error) != 0) {
        return cli_error("%s", error.message);
    }
    if ((request->format->traits & FORMAT_RECORDING) != 0 && source.parts.count == 0) {
        status = cli_error("%s is a profile, and --format %s is made of events; make a recording "
                           "with `memtrace record`",
                           source.path, request->format->name);
    } else {
        status = export_source(&source, request);
    }
    source_close(&source);
    return status;
}

static int export_any(const struct request *request) {
    char *newest;
    int status;
    if (request->help || request->list) {
        request->help ? print_help() : print_formats();
        return cli_finish(CLI_OK);
    }
    if (request->source != NULL) {
        return export_file(request->source, request);
    }
    newest = source_newest();
    if (newest == NULL) {
        return cli_error("there is no profile (*.mtp) and no recording (*.mtr) in this folder");
    }
    status = export_file(newest, request);
    free(newest);
    return status;
}

int cmd_export(int argc, char **argv) {
    struct request request = {.cost = METRIC_MAXIMUM, .filters = filters_new()};
    int status;
    if (request.filters == NULL) {
        return cli_error("out of memory");
    }
    status = read_arguments(&request, argc, argv);
    if (status == CLI_OK) {
        status = export_any(&request);
    }
    filters_free(request.filters);
    return status;
}
