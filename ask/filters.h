/* SPDX-License-Identifier: MIT */
/*
 * filters.h: the options that say which part of a file is meant (--from, --function, --size, ...),
 * the same in every command that takes them. docs/filters.md is their page.
 *
 * A command has filter_options as a part of its table, which fill a struct filters; answer_open()
 * calls filters_select() when the file is open.
 */
#ifndef ASK_FILTERS_H
#define ASK_FILTERS_H

#include "analyze/filter/selection.h"
#include "analyze/model/model.h"
#include "analyze/replay/options.h"
#include "ask/option.h"
#include "ask/source.h"

extern const struct option filter_options[]; /* with headings of their own */

/* What was given, as text that must live as long; the rest belongs to the job. Start from {0}. */
struct filters {
    struct filter_given {
        const struct option *option;
        const char *value; /* NULL of flags */
    } * items;
    size_t count, room;
    char *text;         /* all of them, as they could be given again; NULL: none */
    bool wants_threads; /* the answer's threads and timeline are needed, though that may take longer
                         */
};

/* What a filter looks at: the time, call paths, or single blocks, which takes a pass. */
enum filters_kind { FILTERS_TIME, FILTERS_PATHS, FILTERS_BLOCKS };
enum filters_kind filters_kind(const struct option *filter);
/* Whether it may be given more than once. */
bool filters_is_repeated(const struct option *filter);

/* " --PREFIXNAME VALUE", as a shell reads it. */
void filters_put_option(FILE *out, const char *prefix, const struct filter_given *given);

/* Whether any was given. */
bool filters_given(const struct filters *filters);
/* Whether it is said when to stop looking: --to, --at, --between. */
bool filters_have_end(const struct filters *filters);

/* The selection of this source. Times such as "mark:loaded" and names of threads need the file;
 * what is asked of groups of blocks, and an expression of SQL, take a pass each. The selection's
 * strings are the filters'; the caller frees it first. 0, or -1: it is as selection_all(). */
int filters_select(const struct filters *filters, const struct source *source,
                   const struct names *names, const struct replay_options *options,
                   struct selection *selection, struct error *error);

/* ---- Their values (filtervalue.c). Each returns 0, or -1 with the reason in error, which does not
 * name the option. ---- */

/* 1.5s, 40%, start, end, peak, mark:NAME, mark:NAME#2. Without a model only what it looks like is
 * checked, and *time_ns is 0. */
int filtervalue_time(const char *text, const struct model *model, uint64_t *time_ns,
                     struct error *error);
/* `T..U`, `T..`, `..U`. */
int filtervalue_times(const char *text, const struct model *model, struct selection_times *times,
                      struct error *error);
/* NAME1,NAME2: from the first such mark to the first of the other name behind it. */
int filtervalue_marks(const char *text, const struct model *model, struct selection_times *times,
                      struct error *error);
/* `A..B`, both included, `A..`, `..B`, or `A` alone, of what parse() reads; what: "sizes". */
int filtervalue_range(const char *text, int (*parse)(const char *text, uint64_t *value),
                      const char *what, struct selection_range *range, struct error *error);

/* The same of percentages: `10%..50%`, `..5%` or `100%`; least 0 and most INFINITY: any. */
int filtervalue_percents(const char *text, double *least, double *most, struct error *error);

#endif
