/* SPDX-License-Identifier: MIT */
/* reportrequest.h: what a command line of `memtrace report` asks for. Used by cli/report*.c alone.
 */
#ifndef CLI_REPORTREQUEST_H
#define CLI_REPORTREQUEST_H

#include "analyze/ask/source.h"
#include "analyze/replay/options.h"
#include "analyze/report/reports.h"
#include "cli/asking.h"

enum { REQUEST_PATH_DEPTH = 16, REQUEST_TREE_DEPTH = 64, REQUEST_TABLE_DEPTH = 3 };

enum form { FORM_TREE, FORM_FLAT, FORM_PATHS };

/* Reports that are no metric's. */
enum show {
    SHOW_FINDINGS,
    SHOW_GROUPS,
    SHOW_LIFETIMES,
    SHOW_SIZES,
    SHOW_BLOCKS,
    SHOW_FRAGMENTATION,
    SHOW_MAPPINGS,
    SHOW_TIMELINE,
    SHOW_MARKS,
    SHOW_THREADS,
    SHOW_PROCESSES,
    SHOW_COUNT
};

struct request {
    struct report_options options;
    enum form form;
    bool metrics[METRIC_ALL];
    bool shows[SHOW_COUNT];
    const char *callers_of; /* of --show-caller-callee; NULL: not asked for */
    regex_t regex;          /* where that is one */
    bool has_regex;
    const char *shutdown_at; /* NULL: after the last allocation */
    uint64_t short_ns;
    enum detail_order block_order;
    bool depth_given;
    bool limit_given;
    bool percent_given;
    const char *color;
    const char *output;
    const char *source;
    size_t processes; /* lines of their tree; 0: all */
    struct question question;
};

extern const struct option reportrequest_options[];

/* CLI_OK, or the status after a line was printed. */
int reportrequest_read(struct request *request, int argc, char **argv);
void reportrequest_free(struct request *request);

/* Whether some report was asked for by name: else the usual ones are written. */
bool reportrequest_is_special(const struct request *request);

/* reportdetail.c: the classes that filters ask for, as bits 1 << enum model_class; 0: none in
 * particular. */
uint32_t reportdetail_classes(const struct selection *selection);
/* Whether the source can answer: 0, or -1: error says what it lacks. */
int reportdetail_check(const struct request *request, const struct source *source,
                       struct error *error);
/* Fills *detail (NULL: nothing is asked for), which the caller frees, and report->definitions. 0 or
 * -1. */
int reportdetail_gather(struct report *report, const struct request *request,
                        const struct source *source, const struct filtered *filtered,
                        const struct replay_options *options, struct detail **detail,
                        struct error *error);

/* reportholes.c: finds the moment that fragmentation is shown of, where it is asked for without
 * one, or is what is wrong with the program. *held: free it; its model is NULL where there is none,
 * or the view's end is meant. 0 or -1. */
int reportholes_find(struct report_holes *held, const struct request *request,
                     const struct source *source, const struct filtered *filtered,
                     const struct names *names, const struct replay_options *options,
                     struct error *error);
void reportholes_free(struct report_holes *held);

/* reportshow.c: writes what was asked for to report->out. 0, or -1: out of memory. */
int reportshow_write(const struct report *report, const struct request *request);

#endif
