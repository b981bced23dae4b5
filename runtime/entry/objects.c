/* SPDX-License-Identifier: MIT */
/* objects.c: see objects.h. */
#define _GNU_SOURCE
#include "runtime/entry/objects.h"

#include <stddef.h>

struct hold {
    void (*function)(void *argument);
    void *argument;
};

/* Called for the first object; that was all. */
static int call(struct dl_phdr_info *info, size_t size, void *argument) {
    const struct hold *hold = argument;
    (void)info;
    (void)size;
    hold->function(hold->argument);
    return 1;
}

void objects_hold(void (*function)(void *argument), void *argument) {
    struct hold hold = {function, argument};
    dl_iterate_phdr(call, &hold);
}

struct visit {
    void (*function)(void *argument, struct link_map *map);
    void *argument;
};

static void visit_all(void *argument) {
    const struct visit *visit = argument;
    const struct r_debug_extended *list = (const struct r_debug_extended *)&_r_debug;
    while (list != NULL) {
        for (struct link_map *map = list->base.r_map; map != NULL; map = map->l_next) {
            visit->function(visit->argument, map);
        }
        list = _r_debug.r_version >= 2 ? list->r_next : NULL;
    }
}

void objects_visit(void (*function)(void *argument, struct link_map *map), void *argument) {
    struct visit visit = {function, argument};
    objects_hold(visit_all, &visit);
}
