/* SPDX-License-Identifier: MIT */
/*
 * filters.h: the options that say which part of a file is meant (--from, --function, --size, ...),
 * the same in every command that takes them. docs/filters.md is their page.
 *
 * A command puts FILTER_OPTIONS into its table of options, hands keys >= FILTER_KEYS to
 * filters_take() while it reads them, and calls filters_resolve() when the file is open.
 */
#ifndef CLI_FILTERS_H
#define CLI_FILTERS_H

#include "analyze/model/selection.h"
#include "cli/cli.h"
#include "cli/source.h"

enum { FILTER_KEYS = 1000 };

struct filters; /* what was given, as text */

struct filters *filters_new(void);          /* NULL: out of memory */
void filters_free(struct filters *filters); /* NULL is allowed */

/* The option that cli_scan_next() just returned. CLI_OK, or the status after a line was printed. */
int filters_take(struct filters *filters, const struct cli_scan *scan, int key);

/* Times such as "mark:loaded" and names of threads need the file. The selection's strings are the
 * filters'; the caller frees it first. 0 or -1. */
int filters_resolve(const struct filters *filters, const struct model *model,
                    struct selection *selection, struct error *error);

/* The part of a help text that explains them. */
extern const char filters_help[];

#endif
