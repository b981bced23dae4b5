/* SPDX-License-Identifier: MIT */
/*
 * filters.h: the options that say which part of a file is meant (--from, --function, --size, ...),
 * the same in every command that takes them. docs/filters.md is their page.
 *
 * A command has filter_options as a part of its table, hands keys >= FILTER_KEYS to
 * filters_take() while it reads them, and calls filters_apply() (or filters_resolve()) when the
 * file is open.
 */
#ifndef ANALYZE_ASK_FILTERS_H
#define ANALYZE_ASK_FILTERS_H

#include "analyze/ask/option.h"
#include "analyze/ask/source.h"
#include "analyze/filter/selection.h"
#include "analyze/model/model.h"
#include "analyze/replay/options.h"

enum filter_key {
    FILTER_KEYS = 1000,
    FILTER_FROM = FILTER_KEYS,
    FILTER_TO,
    FILTER_AT,
    FILTER_BETWEEN,
    FILTER_FUNCTION,
    FILTER_NOT_FUNCTION,
    FILTER_FILE,
    FILTER_NOT_FILE,
    FILTER_MODULE,
    FILTER_NOT_MODULE,
    FILTER_PATH,
    FILTER_PATH_DEPTH,
    FILTER_CLASS,
    FILTER_POOL,
    FILTER_GROUP_ALLOCATIONS,
    FILTER_GROUP_BYTES,
    FILTER_GROUP_LIVE_BLOCKS,
    FILTER_GROUP_LIVE_BYTES,
    FILTER_SIZE,
    FILTER_FIRST_SIZE,
    FILTER_LAST_SIZE,
    FILTER_CHAIN_LENGTH,
    FILTER_CHAIN_LIFETIME,
    FILTER_LIFETIME,
    FILTER_ADDRESS,
    FILTER_ALLOCATED,
    FILTER_FREED,
    FILTER_LIVE_AT,
    FILTER_THREAD,
    FILTER_FREED_BY,
    FILTER_SCOPE,
    FILTER_LEAKED,
    FILTER_TEMPORARY,
    FILTER_FREED_BY_OTHERS,
};

extern const struct option filter_options[]; /* with headings of their own */

struct filters; /* what was given, as text */

struct filters *filters_new(void);          /* NULL: out of memory */
void filters_free(struct filters *filters); /* NULL is allowed */

/* Adds one of filter_options with its value (NULL: it takes none), which must live as long as the
 * filters. 0, or -1: error says what is wrong. */
int filters_take(struct filters *filters, const struct option *option, const char *value,
                 struct error *error);

/* The answer's threads and timeline are needed, though that may take longer. */
void filters_want_threads(struct filters *filters);

/* Whether any was given; and all of them, as they could be given again ("" if none): one line. */
bool filters_given(const struct filters *filters);
/* Whether it is said when to stop looking: --to, --at, --between. */
bool filters_have_end(const struct filters *filters);
const char *filters_text(const struct filters *filters);

/* Times such as "mark:loaded" and names of threads need the file. The selection's strings are the
 * filters'; the caller frees it first. 0 or -1. */
int filters_resolve(const struct filters *filters, const struct model *model,
                    struct selection *selection, struct error *error);

/* What they select of a source: start from a zeroed one. */
struct filtered {
    const struct model *model; /* the source's own where everything is selected */
    struct selection selection;
    struct model *own;
};

/* Resolves the filters (NULL: none) and makes the model of what they select. `names`: those of the
 * source. The caller calls filtered_close() in any case, before it closes names, source and
 * filters. 0 or -1. */
int filters_apply(const struct filters *filters, const struct source *source,
                  const struct names *names, const struct replay_options *options,
                  struct filtered *filtered, struct error *error);
void filtered_close(struct filtered *filtered);

#endif
