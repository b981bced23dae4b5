/* SPDX-License-Identifier: MIT */
/*
 * suppressions.h: leaks that nobody wants to hear of, in the form of LeakSanitizer's suppression
 * files.
 *
 *     # a comment
 *     leak:PATTERN
 *
 * A leak is suppressed if the pattern is found in the function, source file or module of some frame
 * of its call path. `*` stands for any text; `^` at the start and `$` at the end tie the pattern to
 * the ends of the name. Lines of other kinds (`race:`, ...) are counted and ignored.
 *
 * Called by ask, analyze/report and collect/leftout, in a job, to which lists and models belong.
 * One thread at a time.
 */
#ifndef ANALYZE_FILTER_SUPPRESSIONS_H
#define ANALYZE_FILTER_SUPPRESSIONS_H

#include "analyze/model/model.h"
#include "analyze/model/names.h"

struct suppression {
    const char *pattern;
    const char *caller;  /* of the built-in list: the frame's caller must match this; NULL: any */
    const char *owner;   /* of the built-in list: whose they are, "GLib's"; NULL: a file's */
    const char *library; /* of the built-in list: the frame's module has this in its path, unless
                            the program is linked statically; NULL: any */
    const char *origin;  /* "built in", "embedded", or the file */
    unsigned line;       /* of the file; 0: none */
    uint64_t bytes;      /* what it suppressed, after suppressions_apply() */
    uint64_t blocks;
    uint64_t contexts;
};

/* In the order they were added: the first that matches counts. Start from {0}. */
struct suppressions {
    struct suppression *items;
    size_t count;
    size_t room;
    size_t ignored; /* lines of other kinds */
    uint64_t bytes; /* of all items */
    uint64_t blocks;
};

/* Each returns 0 or -1: of a text that is no suppression file, the line is in error. */
int suppressions_add_file(struct suppressions *suppressions, const char *path, struct error *error);
int suppressions_add_text(struct suppressions *suppressions, const char *text, const char *origin,
                          struct error *error);
/* What the program's own __lsan_default_suppressions() returns, read from its file; nothing where
 * there is none. See programfile.h for the limits. debug_folders as for the symbolizer. */
int suppressions_add_embedded(struct suppressions *suppressions, const struct model *model,
                              const char *debug_folders, struct error *error);
/* Known harmless leaks of common libraries. */
void suppressions_add_builtin(struct suppressions *suppressions);

/*
 * A model like `model` whose heap contexts hold nothing at the end where that is suppressed; shares
 * all but the contexts with `model`. Also counts what each suppression did. `names` are those of
 * the model.
 */
const struct model *suppressions_leave(struct suppressions *suppressions, const struct model *model,
                                       const struct names *names);

/* The usual lists, of a program that has ended: those embedded in it and the built-in one. Counts
 * what they do, as suppressions_leave(); of what only runs or goes on nothing. Names are looked up
 * for it where a list may hold them, at the end of each program. */
void suppressions_apply_usual(struct suppressions *suppressions, const struct model *model);

/* Whether the text contains what the pattern says. */
bool suppressions_match(const char *pattern, const char *text);

#endif
