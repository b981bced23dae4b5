/* SPDX-License-Identifier: MIT */
/* top.c: `memtrace top`: a running program on the terminal. docs/top.md is its page. */
#include "top/toploop.h"
#include "top/topscreen.h"

#include "analyze/rows/report.h"
#include "analyze/symbol/debuginfod.h"
#include "ask/answer.h"
#include "ask/memorylimit.h"
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define LEAST  (SECOND / 20)

enum { WIDTH = 120, NARROWEST = 40, WIDEST = 1000, ROWS = 20 };

struct request {
    struct toploop_options wish;
    uint64_t rows;
    const char *color;
    bool once;
};

#define IN(member) OPTION_IN(struct request, member)

static const struct option options[] = {
    {"interval", 'i', "TIME", "between two looks (default: 1s)", OPTION_DURATION,
     IN(wish.interval_ns), .least = LEAST},
    {"sort", 's', "live|delta|total|rate|temporary|blocks|maximum",
     "what comes first (default: live)", OPTION_WORD, IN(wish.sort)},
    {"reverse", 'r', NULL, "what has least comes first", OPTION_FLAG, IN(wish.reverse)},
    {"function", 'f', "REGEX", "only call paths through a function that matches", OPTION_TEXT,
     IN(wish.filter)},
    {"paths", 'p', NULL, "call paths, not functions", OPTION_WORD, IN(wish.by),
     .words = "functions|paths", .implied = "paths"},
    {"once", '1', NULL, "print one screen as text, after two looks", OPTION_FLAG, IN(once)},
    {"limit", 'n', "N", "with --once: so many rows (default: 20)", OPTION_NUMBER, IN(rows),
     .least = 1, .most = 100000},
    {"debug-folders", 0, "FOLDERS",
     "where separate debug files are, colon-separated (default: /usr/lib/debug)", OPTION_TEXT,
     IN(wish.debug_folders)},
    {.part = debuginfod_options},
    {.part = root_options},
    {.part = memorylimit_options},
    {"color", 0, "auto|always|never", "colours (default: auto, which minds NO_COLOR)", OPTION_TEXT,
     IN(color)},
    OPTION_END};

static int run_top(int argc, char **argv) {
    struct request request = {.wish.interval_ns = SECOND, .rows = ROWS};
    struct toploop_options *wish = &request.wish;
    struct report_options style = {0};
    cli_read(&top_command, &argc, &argv, &request);
    wish->name = cli_one(&top_command, argc, argv, NULL);
    cli_style(&style, NULL, request.color);
    wish->color = style.color;
    wish->unicode = style.unicode;
    debuginfod_allow(NULL); /* the screen is its own progress */
    if (!request.once && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !topscreen_is_dumb()) {
        int number = toploop_run(wish);
        if (number != 0) { /* what ended us ends us as it would have without a screen */
            signal(number, SIG_DFL);
            raise(number);
        }
        return number == 0 ? CLI_OK : CLI_FAILURE;
    }
    toploop_once(wish, style.width >= NARROWEST && style.width <= WIDEST ? style.width : WIDTH,
                 request.rows, stdout);
    return cli_finish(CLI_OK);
}

const struct command top_command = {
    .name = "top",
    .run = run_top,
    .summary = "watch a running program on the terminal",
    .usage = "[OPTION]... [PID|RUN|FILE]",
    .about =
        "Shows what the functions of a running program hold and allocate, again and again, "
        "until q is pressed. Reads its shared memory: the program is not stopped and "
        "gets no signal. Without a name: your programs that are profiled now, to choose from, or "
        "the only one. A run or a folder: the same of its processes and files. A recording "
        "that grows is followed, too. ? shows the keys. Where there is no terminal (or TERM "
        "is dumb) it prints one screen, as with --once.",
    .options = options,
    .operands = "PROFILE",
};
