/* SPDX-License-Identifier: MIT */
/* option.c: tables of options, row by row. See option.h. */
#include "analyze/ask/option.h"

#include <stddef.h>

/* The last row of every walk. */
static const struct option help_table[] = {OPTION("help", 'h', OPTION_HELP, NULL, "show this"),
                                           OPTION_END};

bool option_is_end(const struct option *option) {
    return option->name == NULL && option->help == NULL && option->part == NULL;
}

struct option_walk option_walk_start(const struct option *options) {
    return options != NULL ? (struct option_walk){.next = {help_table, options}, .depth = 1}
                           : (struct option_walk){.next = {help_table}, .depth = 0};
}

const struct option *option_walk_next(struct option_walk *walk) {
    while (walk->depth >= 0) {
        const struct option *option = walk->next[walk->depth];
        if (option_is_end(option)) {
            walk->depth--;
            continue;
        }
        walk->next[walk->depth]++;
        if (option->part == NULL) {
            return option;
        }
        walk->next[++walk->depth] = option->part;
    }
    return NULL;
}

bool option_is_heading(const struct option *option) {
    return option->name == NULL;
}

bool option_is_alias(const struct option *option) {
    return option->name != NULL && option->help == NULL;
}
