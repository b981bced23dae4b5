/* SPDX-License-Identifier: MIT */
/* reportshow.h: what a command line of `memtrace report` asks for, and writing it. Used by
 * cli/report.c. */
#ifndef CLI_REPORTSHOW_H
#define CLI_REPORTSHOW_H

#include "ask/reportmaking.h"

enum { REQUEST_PATH_DEPTH = 16, REQUEST_TABLE_DEPTH = 3 };

enum form { FORM_TREE, FORM_FLAT, FORM_PATHS };

struct request {
    struct report_wish wish;
    enum form form;
    regex_t regex; /* where wish.callers_of is one */
    bool has_regex;
    bool depth_given;
    bool percent_given;
    const char *color;
    const char *output;
    const char *source;
    struct question question;
};

/* Writes what was asked for to report->out. */
void reportshow_write(const struct report *report, const struct request *request);

#endif
