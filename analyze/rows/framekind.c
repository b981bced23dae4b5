/* SPDX-License-Identifier: MIT */
/* framekind.c: see framekind.h. */
#include "analyze/rows/framekind.h"

#include "analyze/base/pathname.h"

#include <string.h>

static bool framekind_starts_with(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}

static bool starts_with_any(const char *text, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (framekind_starts_with(text, words[i])) {
            return true;
        }
    }
    return false;
}
#define STARTS_WITH_ANY(text, words)                                                               \
    starts_with_any(text, words, sizeof(words) / sizeof((words)[0]))

static bool is_in_system_folder(const char *path) {
    static const char *const folders[] = {"/lib/",    "/lib32/",  "/lib64/",
                                          "/libx32/", "/usr/lib", "["}; /* "[vdso]" */
    return STARTS_WITH_ANY(path, folders);
}

/* Wherever they lie: some programs bring their own. */
static bool is_runtime_of_language(const char *module) {
    static const char *const names[] = {"libstdc++.so", "libc++.so", "libc++abi.so", "libgcc_s.so",
                                        "libsupc++."};
    return STARTS_WITH_ANY(pathname_base(module), names);
}

static bool is_libc(const char *module) {
    static const char *const names[] = {"libc.so", "libc-2.", "ld-linux",
                                        "ld.so.",  "ld-musl", "libpthread."};
    return STARTS_WITH_ANY(pathname_base(module), names);
}

/* The program's file, or one in the same folder or below it; but where programs of a distribution
 * lie, the folder tells nothing. */
static bool is_beside(const char *module, const char *executable) {
    size_t folder = (size_t)(pathname_base(executable) - executable);
    bool is_shared = folder == 0 || strncmp(executable, "/bin/", folder) == 0 ||
                     strncmp(executable, "/usr/bin/", folder) == 0;
    return strcmp(module, executable) == 0 ||
           (!is_shared && strncmp(module, executable, folder) == 0);
}

/* xmalloc, zcalloc_num, g_strdup, _PyObject_Malloc: it tells how a program allocates, not why. */
static bool is_wrapper(const struct names_frame *frame) {
    static const char *const words[] = {"malloc", "calloc",  "realloc", "memalign",
                                        "strdup", "strndup", "memdup"};
    const char *end = frame->function != NULL ? strpbrk(frame->function, "(<") : NULL;
    for (size_t i = 0; frame->function != NULL && i < sizeof words / sizeof words[0]; i++) {
        const char *found = strcasestr(frame->function, words[i]);
        if (found != NULL && (end == NULL || found < end)) {
            return true;
        }
    }
    return false;
}

enum framekind framekind_of_file(const struct names_frame *frame, const char *executable) {
    bool is_header = frame->file != NULL && framekind_starts_with(frame->file, "/usr/");
    if (pathwalk_is_startup(frame)) {
        return FRAMEKIND_SYSTEM;
    }
    if (pathwalk_is_library(frame) || is_runtime_of_language(frame->module)) {
        return FRAMEKIND_LIBRARY;
    }
    if (is_libc(frame->module) ||
        (is_in_system_folder(frame->module) && !is_beside(frame->module, executable))) {
        return FRAMEKIND_SYSTEM;
    }
    return is_header ? FRAMEKIND_LIBRARY : FRAMEKIND_OWN;
}

enum framekind framekind_of(const struct names_frame *frame, const char *executable) {
    enum framekind kind = framekind_of_file(frame, executable);
    return kind == FRAMEKIND_OWN && is_wrapper(frame) ? FRAMEKIND_LIBRARY : kind;
}

const struct names_frame *framekind_blame(struct pathwalk walk) {
    const char *executable = walk.report->model->header.executable;
    const struct names_frame *first = walk.frame;
    const struct names_frame *own = NULL;
    for (; walk.frame != NULL; pathwalk_next(&walk)) {
        if (framekind_of(walk.frame, executable) != FRAMEKIND_OWN) {
            continue;
        }
        if (walk.frame->file != NULL && walk.frame->line != 0) {
            return walk.frame;
        }
        own = own != NULL ? own : walk.frame;
    }
    return own != NULL ? own : first;
}

const char *framekind_name(enum framekind kind) {
    static const char *const names[] = {"own", "library", "system"};
    return names[kind];
}
