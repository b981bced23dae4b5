/* SPDX-License-Identifier: MIT */
/* reportrequest.c: the options of `memtrace report`. See reportrequest.h. */
#include "cli/reportrequest.h"

#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEY_TOP_DOWN = 1,
    KEY_BOTTOM_UP,
    KEY_FLAT,
    KEY_PATHS,
    KEY_BY,
    KEY_MIN_PERCENT,
    KEY_LIMIT,
    KEY_DEPTH,
    KEY_NODES,
    KEY_ALL_FRAMES,
    KEY_FULL_NAMES,
    KEY_COLOR,
    KEY_FORMAT,
    KEY_JSON,
    KEY_CSV,
    KEY_OUTPUT,
    KEY_CALLERS,
    KEY_SHUTDOWN_AT,
    KEY_WITHIN,
    KEY_BLOCKS_BY,
    KEY_PROCESSES,
    KEY_METRIC,                        /* + enum metric */
    KEY_SHOW = KEY_METRIC + METRIC_ALL /* + enum show */
};

const struct option reportrequest_options[] = {
    OPTION_HEADING("what to show (several are possible; [R]: of recordings only)"),
    OPTION("show-peak", 0, KEY_METRIC + METRIC_MAXIMUM, NULL,
           "what was held when the program held most"),
    OPTION_ALIAS("show-maximum", KEY_METRIC + METRIC_MAXIMUM, NULL),
    OPTION("show-leaked", 0, KEY_METRIC + METRIC_LEAKED, NULL,
           "what was never freed; of a running program: what is live"),
    OPTION_ALIAS("show-live", KEY_METRIC + METRIC_LEAKED, NULL),
    OPTION("show-shutdown", 0, KEY_METRIC + METRIC_SHUTDOWN, NULL,
           "what was never freed, or only after the last allocation [R]"),
    OPTION("shutdown-at", 0, KEY_SHUTDOWN_AT, "T", "the same: or only after T [R]"),
    OPTION("show-allocated", 0, KEY_METRIC + METRIC_CUMULATIVE, NULL,
           "all that was ever allocated, by bytes"),
    OPTION_ALIAS("show-total", KEY_METRIC + METRIC_CUMULATIVE, NULL),
    OPTION_ALIAS("show-cumulative", KEY_METRIC + METRIC_CUMULATIVE, NULL),
    OPTION("show-allocations", 0, KEY_METRIC + METRIC_ALLOCATIONS, NULL,
           "the same by number of allocations"),
    OPTION("show-temporary", 0, KEY_METRIC + METRIC_TEMPORARY, NULL,
           "allocations freed before their thread's next one"),
    OPTION("temporary-within", 0, KEY_WITHIN, "D", "allocations freed within 10ms, 1s, ... [R]"),
    OPTION("show-caller-callee", 0, KEY_CALLERS, "FUNCTION|/REGEX/",
           "who calls a function and what it calls, by the metrics above"),
    OPTION("show-groups", 0, KEY_SHOW + SHOW_GROUPS, NULL,
           "a table of call paths: allocations, live, sizes, times"),
    OPTION("show-lifetimes", 0, KEY_SHOW + SHOW_LIFETIMES, NULL,
           "how long blocks lived: p50, p90, p99, by call path"),
    OPTION("show-sizes", 0, KEY_SHOW + SHOW_SIZES, NULL,
           "how large blocks are: a histogram, and by call path [R]"),
    OPTION("show-blocks", 0, KEY_SHOW + SHOW_BLOCKS, NULL, "single blocks: the largest ones [R]"),
    OPTION("blocks-by", 0, KEY_BLOCKS_BY, "largest|oldest|first", "which of them come first [R]"),
    OPTION("show-fragmentation", 0, KEY_SHOW + SHOW_FRAGMENTATION, NULL,
           "slack, holes, pages and who keeps them, an address map [R]"),
    OPTION("show-mappings", 0, KEY_SHOW + SHOW_MAPPINGS, NULL,
           "mappings of the process, and who called mmap"),
    OPTION("show-timeline", 0, KEY_SHOW + SHOW_TIMELINE, NULL, "memory over time as a chart"),
    OPTION("show-marks", 0, KEY_SHOW + SHOW_MARKS, NULL, "what the program marked [R]"),
    OPTION("show-threads", 0, KEY_SHOW + SHOW_THREADS, NULL,
           "a table of threads, and who freed whose blocks"),
    OPTION("show-processes", 0, KEY_SHOW + SHOW_PROCESSES, NULL,
           "a table of the processes of a run, or of a profile's forked children"),
    OPTION_HEADING("how"),
    OPTION("top-down", 0, KEY_TOP_DOWN, NULL,
           "trees from main to the allocating function (default)"),
    OPTION("bottom-up", 0, KEY_BOTTOM_UP, NULL, "trees from the allocating function to main"),
    OPTION("flat", 0, KEY_FLAT, NULL, "a table by function instead of trees"),
    OPTION("paths", 0, KEY_PATHS, NULL, "the whole call paths instead of trees"),
    OPTION("by", 0, KEY_BY, "function|line", "what is one branch of a tree (default: function)"),
    OPTION("full-names", 0, KEY_FULL_NAMES, NULL,
           "C++ names with parameters, template arguments, return types"),
    OPTION("min-percent", 0, KEY_MIN_PERCENT, "P",
           "leave out what is below P percent (default: 1)"),
    OPTION("limit", 'n', KEY_LIMIT, "N",
           "at most N branches of one function, N rows, N paths (default: 20; 0: all)"),
    OPTION("depth", 'd', KEY_DEPTH, "N",
           "at most N frames (0: all; default: 64 of trees, 16 of paths, 3 in tables, all in JSON "
           "and CSV of everything)"),
    OPTION(
        "nodes", 0, KEY_NODES, NULL,
        "in JSON of everything: the tree of call paths, each node once, instead of all frames of "
        "each path"),
    OPTION("all-frames", 0, KEY_ALL_FRAMES, NULL,
           "show what the system runs before main, each level of a recursion, and what library "
           "functions (std::) call of their library"),
    OPTION("color", 0, KEY_COLOR, "auto|always|never", "colours; auto: at a terminal"),
    OPTION("processes", 0, KEY_PROCESSES, "N",
           "of a run: lines of the tree of processes (default: 10; 0: all)"),
    OPTION_PART(question_options),
    OPTION_HEADING("form"),
    OPTION("format", 'f', KEY_FORMAT, "text|markdown|json|csv",
           "json and csv are for programs: exact numbers, no threshold, no limit, and everything "
           "where "
           "no --show-... is given"),
    OPTION("json", 0, KEY_JSON, NULL, "the same as --format json"),
    OPTION("csv", 0, KEY_CSV, NULL, "the same as --format csv"),
    OPTION("output", 'o', KEY_OUTPUT, "FILE", "write to FILE"),
    OPTION_PART(suppressing_options),
    OPTION_PART(filter_options),
    OPTION_END};

/* The place of a word in a list; -1: it is none of them. */
static int word_in(const char *text, const char *const *words, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static const char *const format_names[] = {[REPORT_TEXT] = "text",
                                           [REPORT_MARKDOWN] = "markdown",
                                           [REPORT_CSV] = "csv",
                                           [REPORT_JSON] = "json"};
enum { FORMATS = sizeof format_names / sizeof format_names[0] };

static int take_format(struct request *request, const struct cli_scan *scan, int format) {
    if (format < 0) {
        return cli_usage(scan->command, "--format is text, markdown, json or csv, not '%s'",
                         scan->value);
    }
    request->options.format = (enum report_format)format;
    return cli_choose(scan, &request->format_name, format_names[format]);
}

static bool take_order(struct request *request, const char *text) {
    static const char *const names[] = {"largest", "oldest", "first"};
    int order = word_in(text, names, 3);
    request->block_order = order >= 0 ? (enum detail_order)order : DETAIL_LARGEST;
    request->shows[SHOW_BLOCKS] = true;
    return order >= 0;
}

/* A name, or a regex between slashes. */
static bool take_callers(struct request *request, const char *text) {
    size_t size = strlen(text);
    char *regex;
    reportrequest_free(request);
    request->callers_of = text;
    if (size < 2 || text[0] != '/' || text[size - 1] != '/') {
        return size != 0;
    }
    regex = strndup(text + 1, size - 2);
    request->has_regex =
        regex != NULL && regcomp(&request->regex, regex, REG_EXTENDED | REG_NOSUB) == 0;
    free(regex);
    return request->has_regex;
}

static int parse_size(const char *text, size_t *size) {
    uint64_t value;
    if (quantity_u64(text, &value) != 0 || value > SIZE_MAX) {
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
        good = quantity_percent(scan->value, &request->options.min_percent) == 0;
        request->percent_given = true;
        break;
    case KEY_LIMIT:
        good = parse_size(scan->value, &request->options.limit) == 0;
        request->limit_given = true;
        break;
    case KEY_DEPTH:
        good = parse_size(scan->value, &request->options.depth) == 0;
        request->depth_given = true;
        break;
    case KEY_PROCESSES:
        good = parse_size(scan->value, &request->processes) == 0;
        break;
    case KEY_COLOR:
        request->color = scan->value;
        good = cli_color(scan->value, STDOUT_FILENO) >= 0;
        break;
    case KEY_FORMAT:
        return take_format(request, scan, word_in(scan->value, format_names, FORMATS));
    case KEY_CALLERS:
        good = take_callers(request, scan->value);
        break;
    case KEY_SHUTDOWN_AT:
        request->shutdown_at = scan->value;
        request->metrics[METRIC_SHUTDOWN] = true;
        break;
    case KEY_WITHIN:
        good = quantity_duration(scan->value, &request->short_ns) == 0;
        request->metrics[METRIC_SHORT] = true;
        break;
    case KEY_BLOCKS_BY:
        good = take_order(request, scan->value);
        break;
    default:
        request->output = scan->value;
        break;
    }
    return good ? 0 : bad_value(scan);
}

static int take_option(void *context, const struct cli_scan *scan, int key) {
    struct request *request = context;
    switch (key) {
    case KEY_TOP_DOWN:
    case KEY_BOTTOM_UP:
        request->options.bottom_up = key == KEY_BOTTOM_UP;
        return cli_choose(scan, &request->direction, scan->name);
    case KEY_FLAT:
    case KEY_PATHS:
        request->form = key == KEY_FLAT ? FORM_FLAT : FORM_PATHS;
        return cli_choose(scan, &request->form_option, scan->name);
    case KEY_JSON:
        return take_format(request, scan, REPORT_JSON);
    case KEY_CSV:
        return take_format(request, scan, REPORT_CSV);
    case KEY_ALL_FRAMES:
        request->options.all_frames = true;
        return 0;
    case KEY_FULL_NAMES:
        request->options.full_names = true;
        return 0;
    case KEY_NODES:
        request->options.nodes = true;
        return 0;
    default:
        break;
    }
    if (key >= QUESTION_KEYS) {
        return asking_take(&request->question, scan);
    }
    if (key >= KEY_SHOW && key < KEY_SHOW + SHOW_COUNT) {
        request->shows[key - KEY_SHOW] = true;
        return 0;
    }
    if (key >= KEY_METRIC && key < KEY_SHOW) {
        request->metrics[key - KEY_METRIC] = true;
        return 0;
    }
    return take_value(request, scan, key);
}

/* What is deep enough where nobody said how deep: mutual recursion would fill screens, and trees
 * from the bottom take time for each level. */
static void set_depth(struct request *request) {
    struct report_options *options = &request->options;
    options->table_depth = request->depth_given ? options->depth : REQUEST_TABLE_DEPTH;
    if (!request->depth_given && request->form == FORM_PATHS) {
        options->depth = REQUEST_PATH_DEPTH;
    } else if (!request->depth_given && request->form == FORM_TREE) {
        options->depth = REQUEST_TREE_DEPTH;
    }
}

/* Programs get everything, but for what a depth costs in trees from the bottom. */
static void set_bounds(struct request *request) {
    struct report_options *options = &request->options;
    bool for_programs = options->format == REPORT_JSON || options->format == REPORT_CSV;
    set_depth(request);
    if (for_programs && !request->limit_given) {
        options->limit = 0;
    }
    if (for_programs && !request->percent_given) {
        options->min_percent = 0;
    }
    if (for_programs && !request->depth_given && !options->bottom_up) {
        options->depth = 0;
    }
}

void reportrequest_free(struct request *request) {
    if (request->has_regex) {
        regfree(&request->regex);
        request->has_regex = false;
    }
}

bool reportrequest_is_special(const struct request *request) {
    bool is_special = request->callers_of != NULL;
    for (size_t i = 0; i < METRIC_ALL; i++) {
        is_special |= request->metrics[i];
    }
    for (size_t i = 0; i < SHOW_COUNT; i++) {
        is_special |= request->shows[i];
    }
    return is_special;
}

int reportrequest_read(struct request *request, int argc, char **argv) {
    struct cli_scan scan = cli_scan_start("report", argc, argv, reportrequest_options);
    int status = cli_scan_all(&scan, take_option, request);
    if (status != CLI_OK) {
        return status;
    }
    if (argc - scan.index > 1) {
        return cli_usage("report", "one file at a time: '%s' is one too many",
                         argv[scan.index + 1]);
    }
    request->source = scan.index < argc ? argv[scan.index] : NULL;
    if (request->options.nodes &&
        (request->options.format != REPORT_JSON || reportrequest_is_special(request))) {
        return cli_usage("report", "--nodes goes with --json of everything, without --show-...");
    }
    if (request->metrics[METRIC_SHORT]) { /* the other definition of temporary */
        request->metrics[METRIC_TEMPORARY] = false;
    }
    set_bounds(request);
    return CLI_OK;
}
