/* SPDX-License-Identifier: MIT */
/*
 * module_filter.h: a recording of what some modules allocate (MEMTRACE_RECORD_MODULES).
 *
 * Called by entry/event_record.c. Any thread: what is decided of a module never changes.
 */
#ifndef RUNTIME_ENTRY_MODULE_FILTER_H
#define RUNTIME_ENTRY_MODULE_FILTER_H

#include "runtime/stack/context.h"
#include "runtime/stack/module.h"

/* What is decided, by module id. */
struct module_filter {
    uint8_t verdict[MODULE_LIMIT]; /* 0: not yet, 1: wanted, 2: not */
};

/* Whether `list`, "NAME,NAME,..." or "!NAME,..." for all but these, names the module of the code
 * that called the allocator in this context. A name is a file's, or its beginning up to a dot:
 * "libssl" is libssl.so.3. */
int module_filter_wants(struct module_filter *filter, const char *list,
                        const struct modules *modules, struct context_tree *tree,
                        struct context_id context);

#endif
