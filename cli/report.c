/* SPDX-License-Identifier: MIT */
/* report.c: `memtrace report [FILE|PID]`. docs/report.md is its page. */
#include "analyze/report/report.h"
#include "cli/cli.h"
#include "cli/source.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char help_text[] =
    "usage: memtrace report [OPTION]... [FILE|PID]\n"
    "\n"
    "Shows a profile (*.mtp) or a recording (*.mtr), or what a running program holds now. Without\n"
    "an argument: the newest such file of this folder. Without a --show-... option: a summary,\n"
    "the call paths that held most, and the trees of maximum and leaked memory.\n"
    "\n"
    "what to show (several are possible):\n"
    "  --show-maximum       what was held when the program held most\n"
    "  --show-leaked        what was never freed; of a running program: what it holds\n"
    "  --show-cumulative    all that was ever allocated, by bytes\n"
    "  --show-allocations   the same by number of allocations\n"
    "  --show-temporary     allocations freed before their thread's next one\n"
    "  --show-threads       a table of threads\n"
    "\n"
    "how:\n"
    "  --top-down           trees from main to the allocating function (default)\n"
    "  --bottom-up          trees from the allocating function to main\n"
    "  --flat               a table by function instead of trees\n"
    "  --paths              the whole call paths instead of trees\n"
    "  --by function|line   what is one branch of a tree (default: function)\n"
    "  --full-names         C++ names with parameters, template arguments, return types\n"
    "  --min-percent P      leave out what is below P percent (default: 1)\n"
    "  --limit N            at most N branches of one function, N rows, N paths (default:\n"
    "                       20; 0: all)\n"
    "  --depth N            at most N frames (0: all; default: 64 of trees, 16 of paths)\n"
    "  --all-frames         show what the system runs before main and each level of a recursion\n"
    "  --color WHEN         auto, always or never\n"
    "  --debug-folders L    where separate debug files are, colon-separated (default:\n"
    "                       /usr/lib/debug)\n"
    "\n"
    "for programs (everything, no threshold):\n"
    "  --json               one JSON object\n"
    "  --csv                one line for each call path\n"
    "\n"
    "  --output FILE        write to FILE\n"
    "  --help               show this\n";

enum {
    KEY_HELP = 1,
    KEY_TOP_DOWN,
    KEY_BOTTOM_UP,
    KEY_FLAT,
    KEY_PATHS,
    KEY_BY,
    KEY_MIN_PERCENT,
    KEY_LIMIT,
    KEY_DEPTH,
    KEY_ALL_FRAMES,
    KEY_FULL_NAMES,
    KEY_COLOR,
    KEY_DEBUG_FOLDERS,
    KEY_JSON,
    KEY_CSV,
    KEY_OUTPUT,
    KEY_THREADS,
    KEY_SHOW /* + enum metric */
};

static const struct cli_option options[] = {
    {"help", 'h', false, KEY_HELP},
    {"show-maximum", 0, false, KEY_SHOW + METRIC_MAXIMUM},
    {"show-leaked", 0, false, KEY_SHOW + METRIC_LEAKED},
    {"show-cumulative", 0, false, KEY_SHOW + METRIC_CUMULATIVE},
    {"show-allocations", 0, false, KEY_SHOW + METRIC_ALLOCATIONS},
    {"show-temporary", 0, false, KEY_SHOW + METRIC_TEMPORARY},
    {"show-threads", 0, false, KEY_THREADS},
    {"top-down", 0, false, KEY_TOP_DOWN},
    {"bottom-up", 0, false, KEY_BOTTOM_UP},
    {"flat", 0, false, KEY_FLAT},
    {"paths", 0, false, KEY_PATHS},
    {"by", 0, true, KEY_BY},
    {"min-percent", 0, true, KEY_MIN_PERCENT},
    {"limit", 'n', true, KEY_LIMIT},
    {"depth", 'd', true, KEY_DEPTH},
    {"all-frames", 0, false, KEY_ALL_FRAMES},
    {"full-names", 0, false, KEY_FULL_NAMES},
    {"color", 0, true, KEY_COLOR},
    {"debug-folders", 0, true, KEY_DEBUG_FOLDERS},
    {"json", 0, false, KEY_JSON},
    {"csv", 0, false, KEY_CSV},
    {"output", 'o', true, KEY_OUTPUT},
    {NULL, 0, false, 0},
};

enum { DEFAULT_PATH_DEPTH = 16, DEFAULT_TREE_DEPTH = 64 };

enum form { FORM_TREE, FORM_FLAT, FORM_PATHS, FORM_JSON, FORM_CSV };

struct request {
    struct report_options options;
    enum form form;
    bool show[METRIC_COUNT];
    bool any_show;
    bool threads;
    bool help;
    bool depth_given;
    const char *color;
    const char *debug_folders;
    const char *output;
    const char *source;
};

/* ---- The command line ---- */

static int parse_size(const char *text, size_t *size) {
    uint64_t value;
    if (cli_parse_u64(text, &value) != 0 || value > SIZE_MAX) {
        return -1;
    }
    *size = (size_t)value;
    return 0;
}

static int bad_value(const struct cli_scan *scan) {
    return cli_usage("report", "%s does not take '%s'", scan->name, scan->value);
}

static int take_value(struct request *request, const struct cli_scan *scan, int key) {
    bool good = true;
    switch (key) {
    case KEY_BY:
        request->options.by_line = strcmp(scan->value, "line") == 0;
        good = request->options.by_line || strcmp(scan->value, "function") == 0;
        break;
    case KEY_MIN_PERCENT:
        good = cli_parse_percent(scan->value, &request->options.min_percent) == 0;
        break;
    case KEY_LIMIT:
        good = parse_size(scan->value, &request->options.limit) == 0;
        break;
    case KEY_DEPTH:
        good = parse_size(scan->value, &request->options.depth) == 0;
        request->depth_given = true;
        break;
    case KEY_COLOR:
        request->color = scan->value;
        good = cli_color(scan->value, STDOUT_FILENO) >= 0;
        break;
    case KEY_DEBUG_FOLDERS:
        request->debug_folders = scan->value;
        break;
    default:
        request->output = scan->value;
        break;
    }
    return good ? 0 : bad_value(scan);
}

static int take_option(struct request *request, const struct cli_scan *scan, int key) {
    switch (key) {
    case KEY_HELP:
        request->help = true;
        return 0;
    case KEY_TOP_DOWN:
    case KEY_BOTTOM_UP:
        request->options.bottom_up = key == KEY_BOTTOM_UP;
        return 0;
    case KEY_FLAT:
        request->form = FORM_FLAT;
        return 0;
    case KEY_PATHS:
        request->form = FORM_PATHS;
        return 0;
    case KEY_JSON:
        request->form = FORM_JSON;
        return 0;
    case KEY_CSV:
        request->form = FORM_CSV;
        return 0;
    case KEY_ALL_FRAMES:
        request->options.all_frames = true;
        return 0;
    case KEY_FULL_NAMES:
        request->options.full_names = true;
        return 0;
    case KEY_THREADS:
        request->threads = true;
        return 0;
    default:
        break;
    }
    if (key >= KEY_SHOW) {
        request->show[key - KEY_SHOW] = true;
        request->any_show = true;
        return 0;
    }
    return take_value(request, scan, key);
}

/* What is deep enough where nobody said how deep: mutual recursion would fill screens, and trees
 * from the bottom take time for each level. */
static void set_depth(struct request *request) {
    if (request->depth_given) {
        return;
    }
    if (request->form == FORM_PATHS) {
        request->options.depth = DEFAULT_PATH_DEPTH;
    } else if (request->form == FORM_TREE) {
        request->options.depth = DEFAULT_TREE_DEPTH;
    }
}

static int read_arguments(struct request *request, int argc, char **argv) {
    struct cli_scan scan = cli_scan_start("report", argc, argv, options);
    int key;
    scan.permute = true;
    while ((key = cli_scan_next(&scan)) > 0) {
        int status = take_option(request, &scan, key);
        if (status != 0) {
            return status;
        }
    }
    if (key < 0) {
        return CLI_USAGE;
    }
    if (argc - scan.index > 1) {
        return cli_usage("report", "one file at a time: what is '%s'?", argv[scan.index + 1]);
    }
    request->source = scan.index < argc ? argv[scan.index] : NULL;
    set_depth(request);
    return CLI_OK;
}

/* ---- The report ---- */

/* A line that is drawn over, where somebody watches. */
static void show_progress(const char *what, uint64_t done, uint64_t total) {
    fprintf(stderr, "\rmemtrace: reading %s, %" PRIu64 " of %" PRIu64 " ...", what, done, total);
    if (done >= total) {
        fputs("\r\033[K", stderr);
    }
    fflush(stderr);
}

static void show_symbols(void *context, size_t done, size_t total) {
    (void)context;
    show_progress("symbols", done, total);
}

static void show_events(void *context, uint64_t done, uint64_t total) {
    (void)context;
    show_progress("events", done, total);
}

static int write_metric(const struct report *report, const struct request *request,
                        enum metric metric) {
    switch (request->form) {
    case FORM_FLAT:
        return report_flat(report, metric);
    case FORM_PATHS:
        return report_paths(report, metric);
    default:
        return report_tree(report, metric);
    }
}

static int write_asked(const struct report *report, const struct request *request) {
    int result = 0;
    report_warnings(report);
    for (enum metric metric = 0; result == 0 && metric < METRIC_COUNT; metric++) {
        if (request->show[metric]) {
            result = write_metric(report, request, metric);
        }
    }
    if (result == 0 && request->threads) {
        result = report_threads(report);
    }
    return result;
}

static int write_default(const struct report *report, const struct request *request) {
    const struct model_totals *totals = &report->model->totals;
    struct report top = *report;
    int result = 0;
    report_summary(report);
    report_warnings(report);
    if (request->form == FORM_TREE && totals->maximum_bytes != 0) {
        top.options.limit = top.options.limit != 0 && top.options.limit < 5 ? top.options.limit : 5;
        top.options.min_percent = 0;
        top.options.depth = request->depth_given ? top.options.depth : DEFAULT_PATH_DEPTH;
        result = report_paths(&top, METRIC_MAXIMUM);
    }
    if (result == 0 && totals->maximum_bytes != 0) {
        result = write_metric(report, request, METRIC_MAXIMUM);
    }
    if (result == 0 && totals->live_bytes != 0) {
        result = write_metric(report, request, METRIC_LEAKED);
    }
    if (result == 0 && (request->threads || report->model->thread_count > 1)) {
        result = report_threads(report);
    }
    return result;
}

/* Forms for other programs carry no notes in their text: people see them on stderr. */
static void note_warnings(const struct report *report) {
    const char *const *lines;
    size_t count = names_warnings(report->names, &lines);
    for (size_t i = 0; i < count; i++) {
        fprintf(stderr, "memtrace: %s\n", lines[i]);
    }
}

static int write_report(const struct report *report, const struct request *request) {
    if (request->form == FORM_JSON) {
        int result = report_json(report);
        fputc('\n', report->out);
        note_warnings(report);
        return result;
    }
    if (request->form == FORM_CSV) {
        int result = report_csv(report);
        note_warnings(report);
        return result;
    }
    return request->any_show || request->threads ? write_asked(report, request)
                                                 : write_default(report, request);
}

static size_t terminal_width(void) {
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 60 ? size.ws_col : 0;
}

static void set_terminal(struct report *report, const struct request *request) {
    bool to_stdout = request->output == NULL;
    setlocale(LC_CTYPE, "");
    report->options.unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    report->options.width = to_stdout && isatty(STDOUT_FILENO) ? terminal_width() : 0;
    report->options.color =
        cli_color(request->color != NULL || to_stdout ? request->color : "never", STDOUT_FILENO) ==
        1;
}

static int write_to(struct report *report, const struct request *request) {
    int result;
    if (request->output == NULL) {
        report->out = stdout;
        if (write_report(report, request) != 0) {
            return cli_error("out of memory while writing the report");
        }
        return cli_finish(CLI_OK);
    }
    report->out = fopen(request->output, "we");
    if (report->out == NULL) {
        return cli_error("cannot write %s: %m", request->output);
    }
    result = write_report(report, request);
    if (result != 0) {
        fclose(report->out);
        return cli_error("out of memory while writing the report");
    }
    if ((ferror(report->out) | fclose(report->out)) != 0) {
        return cli_error("cannot write %s: %m", request->output);
    }
    return CLI_OK;
}

static int report_model(const struct source *source, const struct request *request) {
    struct report report = {
        .model = source->model, .options = request->options, .source = source->path};
    struct error error;
    struct names *names = source_names(source, request->debug_folders,
                                       isatty(STDERR_FILENO) ? show_symbols : NULL, &error);
    int status;
    if (names == NULL) {
        return cli_error("%s", error.message);
    }
    report.names = names;
    set_terminal(&report, request);
    status = write_to(&report, request);
    names_close(names);
    return status;
}

static int report_source(const char *name, const struct request *request) {
    struct replay_options replay = {.progress = isatty(STDERR_FILENO) ? show_events : NULL};
    struct error error;
    struct source source;
    int status;
    if (source_open(&source, name, request->debug_folders, &replay, &error) != 0) {
        return cli_error("%s", error.message);
    }
    status = report_model(&source, request);
    source_close(&source);
    return status;
}

int cmd_report(int argc, char **argv) {
    struct request request = {.options = {.min_percent = 1, .limit = 20}};
    int status = read_arguments(&request, argc, argv);
    char *newest;
    if (status != CLI_OK) {
        return status;
    }
    if (request.help) {
        fputs(help_text, stdout);
        return cli_finish(CLI_OK);
    }
    if (request.source != NULL) {
        return report_source(request.source, &request);
    }
    newest = source_newest();
    if (newest == NULL) {
        return cli_error(
            "there is no profile (*.mtp) and no recording (*.mtr) in this folder; name "
            "one or a PID, or make one with `memtrace run -- PROGRAM`");
    }
    status = report_source(newest, &request);
    free(newest);
    return status;
}
