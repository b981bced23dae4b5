/* SPDX-License-Identifier: MIT */
/* uncounted.c: memory that went past the counters. See uncounted.h. */
#include "analyze/model/uncounted.h"

#include "analyze/symbol/allocators.h"

#include <stdio.h>
#include <string.h>

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

bool uncounted_is_all(const struct model *model) {
    return model->header.malloc_by.place != MEMTRACE_MALLOC_COUNTED;
}

static bool has_mappings(const struct model *model) {
    for (size_t i = 0; i < model->context_count; i++) {
        if (model->contexts[i].class == MODEL_MAPPING) {
            return true;
        }
    }
    return false;
}

static bool is_sanitizer(const char *name) {
    return strstr(name, "Sanitizer") != NULL;
}

static void explain_own(const struct allocators *found, const char *program, char *line) {
    if (found->name == NULL) {
        snprintf(
            line, UNCOUNTED_SIZE,
            "%.100s has a malloc of its own: what it gives out is not counted; link the allocator "
            "as a shared library, or build without it",
            program);
    } else {
        snprintf(line, UNCOUNTED_SIZE,
                 "%.100s has %s linked into it: what that gives out is not counted; %s", program,
                 found->name,
                 is_sanitizer(found->name) ? "profile a build without the sanitizer"
                                           : "link it as a shared library, or build without it");
    }
}

/* What the loader cannot see: functions of other names, or that are called inside the program only.
 */
static void explain_hidden(const struct model *model, const struct allocators *found,
                           const char *program, char *line) {
    if (found->another_name != NULL) {
        snprintf(
            line, UNCOUNTED_SIZE,
            "%.100s calls %s by names of its own (%s): what those give out is not counted, only "
            "what malloc does; build without it, or tell of it by memtrace/memtrace.h",
            program, found->name, found->another_name);
    } else if (found->defines_malloc || (found->name != NULL && !found->calls_malloc)) {
        explain_own(found, program, line);
    } else if (model->totals.allocations == 0 && !found->calls_malloc && has_mappings(model)) {
        snprintf(line, UNCOUNTED_SIZE,
                 "%.100s maps memory but calls no malloc of a library: an allocator that is linked "
                 "into it is not counted",
                 program);
    }
}

const char *uncounted_explain(const struct model *model, char line[UNCOUNTED_SIZE]) {
    const struct memtrace_header *header = &model->header;
    const char *program = base_name(header->executable);
    struct allocators found = {0};
    bool readable = header->executable[0] == '/' &&
                    allocators_find(header->executable, ALLOCATORS_ALL, &found) == 0;
    line[0] = '\0';
    if (header->malloc_by.place == MEMTRACE_MALLOC_LIBRARY) {
        snprintf(line, UNCOUNTED_SIZE,
                 "malloc was that of %.59s, which was loaded before libmemtrace: what it gave out "
                 "is not counted; start the program with `memtrace run`",
                 header->malloc_by.file);
    } else if (header->malloc_by.place != MEMTRACE_MALLOC_COUNTED) {
        explain_own(&found, program, line);
    } else if (readable) {
        explain_hidden(model, &found, program, line);
    }
    return line;
}
