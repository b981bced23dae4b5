/* SPDX-License-Identifier: MIT */
/*
 * names.h: the frames of a model, symbolized: each recorded frame becomes one or more functions,
 * inlined ones first.
 *
 * Called by analyze/report, collect and cli. Everything handed out belongs to the names and lives
 * until names_close(); the model and given names must live as long. One thread at a time.
 *
 * A frame is resolved when it is first asked for, and what commands before found is in a cache on
 * disk (symbol.h). So `names` is const to those who ask: they see no difference.
 */
#ifndef ANALYZE_MODEL_NAMES_H
#define ANALYZE_MODEL_NAMES_H

#include "analyze/model/model.h"
#include "analyze/model/roles.h"
#include "analyze/read/framenames.h"

#include <stdatomic.h>
#include <stddef.h>

struct names;

struct names_frame {
    const char *function;  /* demangled; NULL: unknown, show module+offset */
    const char *file;      /* NULL: unknown */
    unsigned line;         /* 0: unknown */
    unsigned column;       /* 0: unknown */
    bool inlined;          /* into the next frame of the same array */
    unsigned char roles;   /* roles.h */
    const char *module;    /* path; "" where the address is in no known module */
    uint64_t offset;       /* in the file's own terms; in no module: the address */
    uint64_t function_key; /* the same for the same function of the same module */
    uint64_t place_key;    /* the same for the same line of it */
};

struct names_options {
    const char *debug_folders;                                  /* see struct symbolizer_options */
    void (*progress)(void *context, size_t done, size_t total); /* while many are; NULL: none */
    void *context;
    const struct framenames *given; /* names that came with the file; they win. NULL: none */
};

/* Resolves nothing yet. options may be NULL. NULL: out of memory, or no symbolizer. */
struct names *names_open(const struct model *model, const struct names_options *options,
                         struct error *error);

/* Whether some module's file is gone from this machine, or is another one by now. debug_folders as
 * above. */
bool names_lacks_files(const struct model *model, const char *debug_folders);

/* NULL is allowed. */
void names_close(struct names *names);

/* The functions at one recorded frame (model_node.frame), innermost first; *count is at least 1.
 * Frames that are not of this model come out as unknown. */
const struct names_frame *names_frames(const struct names *names, uint64_t frame, size_t *count);

/* Resolves many frames at once, on all cores: for who is about to ask for them. Repeats are
 * welcome. Who asks for hundreds without has all of the model resolved in this way. 0 or -1: out of
 * memory.
 */
int names_prepare(const struct names *names, const uint64_t *frames, size_t count);
/* The same for all frames of the model. */
int names_prepare_all(const struct names *names);

/* All that can be asked about the model's frames and warnings is there afterwards: from then on
 * nothing is written, and any number of threads may ask. 0; -1: out of memory; or NAMES_CANCELLED
 * soon after *cancel (NULL: never) became true: only one thread may ask then, as before. */
enum { NAMES_CANCELLED = 1 };
int names_settle(const struct names *names, const atomic_bool *cancel);

/* See uncounted_explain(). */
const char *names_uncounted(const struct names *names);

/* What is not counted, and see symbolizer_warnings: of all modules that the model has frames of,
 * whatever was asked for. */
size_t names_warnings(const struct names *names, const char *const **lines);

/* Writes one line for the user of the library of the system's that has most places without a name,
 * of those that were asked for so far: which package has them, or which variable. false: there is
 * nothing to say. One thread. */
bool names_explain_missing(const struct names *names, char *line, size_t size);

/* Writes what to show of a frame into the buffer and returns it: the function, or module+0xoffset.
 */
const char *names_spell(const struct names_frame *frame, char *buffer, size_t size);

/* What to show of a frame: its function's short name (roles.h), or the whole one; module+0xoffset
 * without. */
const char *shortname_of(const struct names_frame *frame, bool is_whole, char *buffer, size_t size);

#endif
