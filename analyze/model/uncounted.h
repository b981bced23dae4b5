/* SPDX-License-Identifier: MIT */
/*
 * uncounted.h: memory that went past the counters, because the program, or one of its libraries,
 * has a malloc that is not ours. Then "lost 0" would not be true.
 *
 * Called by analyze/model/names, analyze/report, collect and cli. Any thread.
 */
#ifndef ANALYZE_MODEL_UNCOUNTED_H
#define ANALYZE_MODEL_UNCOUNTED_H

#include "analyze/model/model.h"

enum { UNCOUNTED_SIZE = 512 };

/* Where a program's own allocators may be. */
struct uncounted_objects {
    const struct memtrace_header *header;
    const struct model_module *modules; /* indexed by id; path "" where there is none */
    size_t module_count;
    /* Notes which of the modules called mmap and the like, by id: asked at most once. NULL: nobody
     * knows, and any may have. */
    void (*find_mappers)(const void *context, bool *is_mapper);
    const void *context;
};

/* Whether what the program's, or a library's, own calls of malloc gave out is not counted: nobody
 * can say how much that is. */
bool uncounted_is_all(const struct model *model);

/* What the header says, and what the files of the program and of its libraries tell besides, if
 * they are there. */
void uncounted_find(const struct uncounted_objects *objects, struct memtrace_malloc *found);

/* Writes one line that says whose malloc it is and what to do; "" where all is counted, as far as
 * can be told. Reads these files, unless somebody has. Returns `line`. */
const char *uncounted_explain(const struct model *model, char line[UNCOUNTED_SIZE]);

#endif
