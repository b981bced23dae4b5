/* SPDX-License-Identifier: MIT */
/* reportrequest.c: the options of `memtrace report`. See reportrequest.h. */
#include "cli/reportrequest.h"

#include "cli/cli.h"

#include <string.h>
#include <unistd.h>

const char reportrequest_help[] =
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
    FILTER_OPTIONS,
    {NULL, 0, false, 0},
};

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
    if (key >= FILTER_KEYS) {
        return filters_take(request->filters, scan, key);
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
        request->options.depth = REQUEST_PATH_DEPTH;
    } else if (request->form == FORM_TREE) {
        request->options.depth = REQUEST_TREE_DEPTH;
    }
}

int reportrequest_read(struct request *request, int argc, char **argv) {
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
