/* SPDX-License-Identifier: MIT */
/*
 * symbolnone.c: symbol.h where nothing is named: in the build for devices (MEMTRACE_TOOLS=agent),
 * which has neither elfutils' libdw nor libiberty. What it prints itself are modules and offsets;
 * names are found where its recordings and profiles go.
 */
#include "analyze/symbol/symbol.h"

#include <stdlib.h>

struct symbolizer {
    char nothing;
};

struct symbolizer *symbolizer_open(const struct symbolizer_options *options, struct error *error) {
    static struct symbolizer none;
    (void)options;
    (void)error;
    return &none;
}

void symbolizer_close(struct symbolizer *symbolizer) {
    (void)symbolizer;
}

int symbolizer_resolve(struct symbolizer *symbolizer, const struct symbol_module *module,
                       uint64_t offset, struct symbol_frames *out) {
    (void)symbolizer;
    (void)module;
    (void)offset;
    *out = (struct symbol_frames){0};
    return 0;
}

int symbolizer_prepare(struct symbolizer *symbolizer, const struct symbol_module *modules,
                       size_t module_count, const struct symbol_address *addresses,
                       size_t address_count, const atomic_bool *cancel, symbol_progress progress,
                       void *context) {
    (void)symbolizer;
    (void)modules;
    (void)module_count;
    (void)addresses;
    (void)cancel;
    if (progress != NULL) {
        progress(context, address_count, address_count);
    }
    return 0;
}

size_t symbolizer_warnings(const struct symbolizer *symbolizer, const char *const **lines) {
    (void)symbolizer;
    *lines = NULL;
    return 0;
}

char *symbol_demangle(const char *name) {
    (void)name;
    return NULL;
}
