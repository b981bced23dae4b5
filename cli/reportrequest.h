/* SPDX-License-Identifier: MIT */
/* reportrequest.h: what a command line of `memtrace report` asks for. Used by cli/report*.c alone.
 */
#ifndef CLI_REPORTREQUEST_H
#define CLI_REPORTREQUEST_H

#include "analyze/report/report.h"
#include "cli/filters.h"

enum { REQUEST_PATH_DEPTH = 16, REQUEST_TREE_DEPTH = 64 };

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
    struct filters *filters;
};

extern const char reportrequest_help[];

/* request->filters are there, new. CLI_OK, or the status after a line was printed. */
int reportrequest_read(struct request *request, int argc, char **argv);

/* reportshow.c: writes what was asked for to report->out. 0, or -1: out of memory. */
int reportshow_write(const struct report *report, const struct request *request);

#endif
