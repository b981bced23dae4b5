/* SPDX-License-Identifier: MIT */
/* suppressionlist.h: the built-in suppressions. Nobody else's business than suppressions.c's. */
#ifndef ANALYZE_FILTER_SUPPRESSIONLIST_H
#define ANALYZE_FILTER_SUPPRESSIONLIST_H

#include <stddef.h>

struct suppressionlist_item {
    const char *pattern; /* NULL ends the list */
    const char *caller;  /* NULL: any */
};

extern const struct suppressionlist_item suppressionlist[];

#endif
