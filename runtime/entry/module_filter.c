/* SPDX-License-Identifier: MIT */
/* module_filter.c: which modules are wanted. See module_filter.h. */
#include "runtime/entry/module_filter.h"

#include "runtime/base/text.h"

enum { WANTED = 1, UNWANTED = 2 };

/* Whether `name`, which ends at a comma, is this file's or its beginning up to a dot. */
static int is_name(const char *name, const char *file) {
    while (*name != '\0' && *name != ',' && *name == *file) {
        name++;
        file++;
    }
    return (*name == '\0' || *name == ',') && (*file == '\0' || *file == '.');
}

static int is_listed(const char *list, const char *file) {
    for (;;) {
        if (is_name(list, file)) {
            return 1;
        }
        while (*list != '\0' && *list != ',') {
            list++;
        }
        if (*list++ == '\0') {
            return 0;
        }
    }
}

static uint8_t decide(const char *list, const struct memtrace_module *module) {
    int all_but = *list == '!';
    int listed = module != NULL && is_listed(list + all_but, text_base_name(module->path));
    return listed != all_but ? WANTED : UNWANTED;
}

/* The class of what was allocated is no code; the frame below it is. */
static uint32_t module_of(struct context_tree *tree, struct context_id context) {
    struct memtrace_node node = context_read(tree, context);
    if (node.frame < MEMTRACE_FRAME_CLASSES && node.parent != 0) {
        node = context_read(tree, (struct context_id){node.parent});
    }
    return (uint32_t)(node.frame >> MEMTRACE_FRAME_MODULE_SHIFT) & MEMTRACE_FRAME_MODULE_MASK;
}

int module_filter_wants(struct module_filter *filter, const char *list,
                        const struct modules *modules, struct context_tree *tree,
                        struct context_id context) {
    uint32_t id = module_of(tree, context);
    uint8_t verdict;
    if (id >= MODULE_LIMIT) {
        return *list == '!';
    }
    verdict = LOAD_RELAXED(&filter->verdict[id]);
    if (UNLIKELY(verdict == 0)) {
        verdict = decide(list, id != 0 ? module_get(modules, id) : NULL);
        STORE_RELAXED(&filter->verdict[id], verdict);
    }
    return verdict == WANTED;
}
