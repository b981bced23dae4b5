/* SPDX-License-Identifier: MIT */
/* reportrequest.c: the options of `memtrace report`. See reportrequest.h. */
#include "cli/reportrequest.h"

#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char reportrequest_help[] =
    "usage: memtrace report [OPTION]... [FILE|RUN|PID]\n"
    "\n"
    "Shows a profile (*.mtp) or a recording (*.mtr), or what a running program holds now. Without\n"
    "an argument: the newest such file of this folder. Without a --show-... option: a summary,\n"
    "the call paths that held most, and the trees of peak and leaked memory.\n"
    "\n"
    "what to show (several are possible; R: of recordings only):\n"
    "  --show-peak          what was held when the program held most\n"
    "  --show-leaked        what was never freed; of a running program: what is live\n"
    "  --show-shutdown    R what was never freed, or only after the last allocation\n"
    "  --shutdown-at T    R the same: or only after T\n"
    "  --show-allocated     all that was ever allocated, by bytes\n"
    "  --show-allocations   the same by number of allocations\n"
    "  --show-temporary     allocations freed before their thread's next one\n"
    "  --show-maximum, --show-live, --show-total, --show-cumulative\n"
    "                       other names of peak, leaked and, twice, allocated\n"
    "  --temporary-within D R allocations freed within 10ms, 1s, ...\n"
    "  --show-caller-callee FUNCTION|/REGEX/\n"
    "                       who calls a function and what it calls, by the metrics above\n"
    "  --show-groups        a table of call paths: allocations, live, sizes, times\n"
    "  --show-lifetimes     how long blocks lived: p50, p90, p99, by call path\n"
    "  --show-sizes       R how large blocks are: a histogram, and by call path\n"
    "  --show-blocks      R single blocks: the largest ones\n"
    "  --blocks-by ORDER  R largest, oldest or first\n"
    "  --show-fragmentation R  slack, holes, pages and who keeps them, an address map\n"
    "  --show-mappings      mappings of the process, and who called mmap\n"
    "  --show-timeline      memory over time as a chart\n"
    "  --show-marks       R what the program marked\n"
    "  --show-threads       a table of threads, and who freed whose blocks\n"
    "  --show-processes     a table of the processes of a run, or of a profile's forked children\n"
    "\n"
    "of a run of several processes (a folder):\n"
    "  --process PID|NAME[:IMAGE]\n"
    "                       this one, and of those that replaced themselves by exec this image;\n"
    "                       default: the one that held most\n"
    "  --all-processes      the sum of all by call path, small forked children included\n"
    "  --processes N        lines of the tree of processes (default: 10; 0: all)\n"
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
    "  --depth N            at most N frames (0: all; default: 64 of trees, 16 of paths, 3 in\n"
    "                       tables, all in JSON and CSV of everything)\n"
    "  --nodes              in JSON of everything: the tree of call paths, each node once,\n"
    "                       instead of all frames of each path\n"
    "  --all-frames         show what the system runs before main, each level of a recursion, and\n"
    "                       what library functions (std::) call of their library\n"
    "  --color WHEN         auto, always or never\n"
    "  --debug-folders L    where separate debug files are, colon-separated (default:\n"
    "                       /usr/lib/debug)\n"
    "  --no-cache           keep nothing on disk for the next command\n"
    "\n"
    "form:\n"
    "  --format FORM        text, markdown, json or csv; json and csv are for programs: exact\n"
    "                       numbers, no threshold, no limit, and everything where no\n"
    "                       --show-... is given\n"
    "  --json, --csv        the same as --format json, --format csv\n"
    "  --output FILE        write to FILE\n"
    "  --help               show this\n"
    "\n";

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
    KEY_NODES,
    KEY_ALL_FRAMES,
    KEY_FULL_NAMES,
    KEY_NO_CACHE,
    KEY_COLOR,
    KEY_DEBUG_FOLDERS,
    KEY_FORMAT,
    KEY_JSON,
    KEY_CSV,
    KEY_OUTPUT,
    KEY_CALLERS,
    KEY_SHUTDOWN_AT,
    KEY_WITHIN,
    KEY_BLOCKS_BY,
    KEY_PROCESS,
    KEY_ALL_PROCESSES,
    KEY_PROCESSES,
    KEY_METRIC,                        /* + enum metric */
    KEY_SHOW = KEY_METRIC + METRIC_ALL /* + enum show */
};

static const struct cli_option known_options[] = {
    {"help", 'h', false, KEY_HELP},
    {"show-peak", 0, false, KEY_METRIC + METRIC_MAXIMUM},
    {"show-maximum", 0, false, KEY_METRIC + METRIC_MAXIMUM},
    {"show-leaked", 0, false, KEY_METRIC + METRIC_LEAKED},
    {"show-live", 0, false, KEY_METRIC + METRIC_LEAKED},
    {"show-shutdown", 0, false, KEY_METRIC + METRIC_SHUTDOWN},
    {"shutdown-at", 0, true, KEY_SHUTDOWN_AT},
    {"show-allocated", 0, false, KEY_METRIC + METRIC_CUMULATIVE},
    {"show-total", 0, false, KEY_METRIC + METRIC_CUMULATIVE},
    {"show-cumulative", 0, false, KEY_METRIC + METRIC_CUMULATIVE},
    {"show-allocations", 0, false, KEY_METRIC + METRIC_ALLOCATIONS},
    {"show-temporary", 0, false, KEY_METRIC + METRIC_TEMPORARY},
    {"temporary-within", 0, true, KEY_WITHIN},
    {"show-caller-callee", 0, true, KEY_CALLERS},
    {"show-groups", 0, false, KEY_SHOW + SHOW_GROUPS},
    {"show-lifetimes", 0, false, KEY_SHOW + SHOW_LIFETIMES},
    {"show-sizes", 0, false, KEY_SHOW + SHOW_SIZES},
    {"show-blocks", 0, false, KEY_SHOW + SHOW_BLOCKS},
    {"blocks-by", 0, true, KEY_BLOCKS_BY},
    {"show-fragmentation", 0, false, KEY_SHOW + SHOW_FRAGMENTATION},
    {"show-mappings", 0, false, KEY_SHOW + SHOW_MAPPINGS},
    {"show-timeline", 0, false, KEY_SHOW + SHOW_TIMELINE},
    {"show-marks", 0, false, KEY_SHOW + SHOW_MARKS},
    {"show-threads", 0, false, KEY_SHOW + SHOW_THREADS},
    {"show-processes", 0, false, KEY_SHOW + SHOW_PROCESSES},
    {"process", 0, true, KEY_PROCESS},
    {"all-processes", 0, false, KEY_ALL_PROCESSES},
    {"processes", 0, true, KEY_PROCESSES},
    {"top-down", 0, false, KEY_TOP_DOWN},
    {"bottom-up", 0, false, KEY_BOTTOM_UP},
    {"flat", 0, false, KEY_FLAT},
    {"paths", 0, false, KEY_PATHS},
    {"by", 0, true, KEY_BY},
    {"min-percent", 0, true, KEY_MIN_PERCENT},
    {"limit", 'n', true, KEY_LIMIT},
    {"depth", 'd', true, KEY_DEPTH},
    {"nodes", 0, false, KEY_NODES},
    {"all-frames", 0, false, KEY_ALL_FRAMES},
    {"full-names", 0, false, KEY_FULL_NAMES},
    {"no-cache", 0, false, KEY_NO_CACHE},
    {"color", 0, true, KEY_COLOR},
    {"debug-folders", 0, true, KEY_DEBUG_FOLDERS},
    {"format", 0, true, KEY_FORMAT},
    {"json", 0, false, KEY_JSON},
    {"csv", 0, false, KEY_CSV},
    {"output", 'o', true, KEY_OUTPUT},
    SUPPRESSING_OPTIONS,
    FILTER_OPTIONS,
    {NULL, 0, false, 0},
};

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
    case KEY_NODES:
        request->options.nodes = true;
        break;
    case KEY_PROCESS:
        request->choice.process = scan->value;
        break;
    case KEY_PROCESSES:
        good = parse_size(scan->value, &request->processes) == 0;
        break;
    case KEY_COLOR:
        request->color = scan->value;
        good = cli_color(scan->value, STDOUT_FILENO) >= 0;
        break;
    case KEY_DEBUG_FOLDERS:
        request->debug_folders = scan->value;
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
        good = cli_parse_duration(scan->value, &request->short_ns) == 0;
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
    case KEY_HELP:
        request->help = true;
        return 0;
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
    case KEY_ALL_PROCESSES:
        request->choice.all = true;
        return 0;
    case KEY_NO_CACHE:
        setenv("MEMTRACE_CACHE", "", 1);
        return 0;
    case KEY_FULL_NAMES:
        request->options.full_names = true;
        return 0;
    default:
        break;
    }
    if (key >= FILTER_KEYS) {
        return filters_take(request->filters, scan, key);
    }
    if (key >= SUPPRESSING_KEYS) {
        return suppressing_take(&request->suppressing, scan, key);
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
    struct cli_scan scan = cli_scan_start("report", argc, argv, known_options);
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
