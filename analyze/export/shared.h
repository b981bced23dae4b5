/* SPDX-License-Identifier: MIT */
/*
 * shared.h: what several formats need: numbers for what is written once, text in XML, the command
 * line, the names and the tree of functions, the single blocks of a recording.
 *
 * Used inside analyze/export, in its jobs.
 */
#ifndef ANALYZE_EXPORT_SHARED_H
#define ANALYZE_EXPORT_SHARED_H

#include "analyze/base/numbermap.h"
#include "analyze/export/export.h"
#include "analyze/report/calltree.h"

/* ---- Numbers 1, 2, ... for what a format writes once and then names by its number: functions,
 * files, texts, in the order in which they are met ---- */

/* All zero is empty and ready. */
struct numbering {
    struct numbermap numbers; /* by key */
    size_t count;             /* the number given last */
    const void **items;       /* items[number - 1], where they were given */
    size_t room;
};

/* The number of what has this key. *is_new (may be NULL): it has just been given one. */
size_t numbering_of(struct numbering *numbering, uint64_t key, bool *is_new);

/* The same, and keeps the item; for numberings all of whose numbers are had in this way. */
size_t numbering_add(struct numbering *numbering, uint64_t key, const void *item);

/* The key of a text. */
uint64_t numbering_key(const char *text);

/* Forgets which key has which number; numbers go on. */
void numbering_forget(struct numbering *numbering);

/* ---- Text inside of XML and HTML ---- */

/* Writes text so that it says the same in elements and in quoted attributes. Control characters,
 * which XML has not, become '?', bytes that are no UTF-8 U+FFFD. */
void markup_text(FILE *out, const char *text);

/* The same, of the first `most` characters only; where there are more, ".." ends them. */
void markup_text_cut(FILE *out, const char *text, size_t most);

/* ---- What ran ---- */

/* The arguments, a space before each; where they are not known the program. Nothing in it ends the
 * line. */
void commandline_put(FILE *out, const struct memtrace_header *header);

/* ---- Functions ---- */

enum { EXPORT_LABEL = 4200 };

/* The function's name as export asks for it, or module+0xoffset; by line: also " file.c:12". Into a
 * buffer of EXPORT_LABEL bytes, which is returned. */
const char *export_label(const struct export *export, const struct names_frame *frame,
                         char *buffer);
/* The same without a line, for formats in which lines have a place of their own. */
const char *export_name(const struct export *export, const struct names_frame *frame, char *buffer);
/* All names that the formats may ask for are made at once. */
void export_prepare_names(const struct export *export);

/* ---- The tree of functions from main down, as `memtrace report` draws it. Heap contexts only, so
 * that sums are the totals ---- */

/* The tree for a cost, export.depth calls deep: those that are deeper count in the last of these.
 * calls[0] is the root: all of it. Of the job. */
struct calltree mergedtree_open(const struct export *export, enum metric metric);

/* The call after `at` in the order in which trees are written, a parent before its children, the
 * dearest child first; 0: that was the last. *depth, of the root 0, goes along. */
uint32_t mergedtree_next(const struct calltree *tree, uint32_t at, size_t *depth);
/* The same, without what is below `at`. */
uint32_t mergedtree_skip(const struct calltree *tree, uint32_t at, size_t *depth);

/* ---- Single blocks: those that an export is about ---- */

/* Whether blocks can be seen one by one, beginnings in their order. */
bool lifepass_possible(const struct export *export);

/* All that are selected, as lives_visit(): those of the heap, which is all that such formats know;
 * end() is for those that ended. Ends the job where that fails. */
void lifepass_visit(const struct export *export, const struct lives_visitor *visitor);

#endif
