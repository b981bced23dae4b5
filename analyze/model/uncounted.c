/* SPDX-License-Identifier: MIT */
/* uncounted.c: memory that went past the counters. See uncounted.h. */
#include "analyze/model/uncounted.h"

#include "analyze/symbol/debugfile.h"
#include "analyze/symbol/programfile.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool has_mappings(const struct model *model) {
    for (size_t i = 0; i < model->context_count; i++) {
        if (model->contexts[i].class == MODEL_MAPPING) {
            return true;
        }
    }
    return false;
}

bool uncounted_is_all(const struct model *model) {
    struct memtrace_malloc found;
    uncounted_find(&model->header, &found);
    return found.place != MEMTRACE_MALLOC_COUNTED && found.place != MEMTRACE_MALLOC_NAMED;
}

/* A program of the same path here is not that of another machine. */
static bool find_in_file(const struct memtrace_header *header, struct allocators *in_file) {
    char path[sizeof header->executable];
    char found[PATH_MAX];
    snprintf(path, sizeof path, "%.*s", (int)sizeof path - 1, header->executable);
    return path[0] == '/' && debugfile_locate(path, found) &&
           programfile_allocators(found, ALLOCATORS_ALL, in_file) == 0 &&
           (header->machine == 0 || header->machine == in_file->machine);
}

/* What the loader cannot see: functions of other names, or that only the program itself calls. */
static void find_hidden(const struct allocators *in_file, struct memtrace_malloc *found) {
    if (in_file->holds_runtime) {
        return;
    }
    if (in_file->another_name != NULL) {
        found->place = MEMTRACE_MALLOC_NAMED;
        snprintf(found->name, sizeof found->name, "%s", in_file->another_name);
    } else if (in_file->defines_malloc || (in_file->name != NULL && !in_file->calls_malloc)) {
        found->place = MEMTRACE_MALLOC_HIDDEN;
    }
}

void uncounted_find(const struct memtrace_header *header, struct memtrace_malloc *found) {
    struct allocators in_file;
    *found = header->malloc_by;
    found->name[sizeof found->name - 1] = '\0';
    if ((header->flags & MEMTRACE_FLAG_NAMED) != 0) {
        *found = (struct memtrace_malloc){0};
        return;
    }
    if (found->name[0] != '\0' || !find_in_file(header, &in_file)) {
        return;
    }
    if (found->place == MEMTRACE_MALLOC_COUNTED) {
        find_hidden(&in_file, found);
    }
    if ((found->place == MEMTRACE_MALLOC_PROGRAM || found->place == MEMTRACE_MALLOC_HIDDEN) &&
        in_file.name != NULL) {
        snprintf(found->name, sizeof found->name, "%s", in_file.name);
    }
}

static void explain_own(const struct memtrace_malloc *found, const char *program, char *line) {
    if (found->name[0] == '\0') {
        snprintf(line, UNCOUNTED_SIZE,
                 "%.100s has a malloc of its own: what it gives out is not counted; try "
                 "`memtrace run --alloc auto`, or link the allocator as a shared library",
                 program);
    } else {
        snprintf(line, UNCOUNTED_SIZE,
                 "%.100s has %s linked into it: what that gives out is not counted; %s", program,
                 found->name,
                 strstr(found->name, "Sanitizer") != NULL
                     ? "profile a build without the sanitizer"
                     : "try `memtrace run --alloc auto`, or link it as a shared library");
    }
}

/* No allocator that is known, but memory from somewhere, and nobody who was asked for it. */
static void explain_nothing(const struct model *model, const char *program, char *line) {
    struct allocators in_file;
    if (model->totals.allocations == 0 && has_mappings(model) &&
        find_in_file(&model->header, &in_file) && !in_file.calls_malloc) {
        snprintf(line, UNCOUNTED_SIZE,
                 "%.100s maps memory but calls no malloc of a library: an allocator that is linked "
                 "into it is not counted",
                 program);
    }
}

const char *uncounted_explain(const struct model *model, char line[UNCOUNTED_SIZE]) {
    const char *program = basename(model->header.executable);
    struct memtrace_malloc found;
    line[0] = '\0';
    uncounted_find(&model->header, &found);
    switch (found.place) {
    case MEMTRACE_MALLOC_COUNTED:
        explain_nothing(model, program, line);
        break;
    case MEMTRACE_MALLOC_LIBRARY:
        snprintf(line, UNCOUNTED_SIZE,
                 "malloc was that of %s, which was loaded before libmemtrace: what it gave out is "
                 "not counted; start the program with `memtrace run`",
                 found.name[0] != '\0' ? found.name : "a library");
        break;
    case MEMTRACE_MALLOC_NAMED:
        snprintf(line, UNCOUNTED_SIZE,
                 "%.100s calls an allocator by names of its own (%s): what that gives out is not "
                 "counted, only what malloc does; build without it, or tell of it by "
                 "memtrace/memtrace.h",
                 program, found.name);
        break;
    default:
        explain_own(&found, program, line);
    }
    return line;
}
