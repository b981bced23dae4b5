/* SPDX-License-Identifier: MIT */
/*
 * mallopt.c: mallopt, so that a recording says when the program set its allocator and how: each
 * call is a mark. Without a recording, or where nothing can be recorded now, the call alone is
 * made.
 */
#define _GNU_SOURCE
#include "runtime/base/compiler.h"
#include "runtime/base/text.h"
#include "runtime/entry/event.h"
#include "runtime/entry/real.h"
#include "runtime/libc/objects.h"

#include <malloc.h>

/* As malloc.h has it. NULL: of another allocator, or a later one. */
static const char *mallopt_name(int parameter) {
    static const struct {
        int parameter;
        const char *name;
    } names[] = {
        {M_MXFAST, "M_MXFAST"},       {M_TRIM_THRESHOLD, "M_TRIM_THRESHOLD"},
        {M_TOP_PAD, "M_TOP_PAD"},     {M_MMAP_THRESHOLD, "M_MMAP_THRESHOLD"},
        {M_MMAP_MAX, "M_MMAP_MAX"},   {M_CHECK_ACTION, "M_CHECK_ACTION"},
        {M_PERTURB, "M_PERTURB"},     {M_ARENA_TEST, "M_ARENA_TEST"},
        {M_ARENA_MAX, "M_ARENA_MAX"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].parameter == parameter) {
            return names[i].name;
        }
    }
    return NULL;
}

/* "M_MMAP_THRESHOLD=65536" */
static void mallopt_spell(struct text *text, int parameter, int value, int result) {
    const char *name = mallopt_name(parameter);
    if (name != NULL) {
        text_add(text, name);
    } else {
        text_format(text, "%d", parameter);
    }
    text_format(text, "=%d%s", value, result == 0 ? " (refused)" : "");
}

PUBLIC int mallopt(int parameter, int value) {
    static int (*real_mallopt)(int parameter, int value);
    char buffer[64];
    struct text text;
    int result;
    if (real_mallopt == NULL) {
        real_mallopt = (__typeof__(real_mallopt))objects_nearer("mallopt", real_symbol("mallopt"));
    }
    result = real_mallopt != NULL ? real_mallopt(parameter, value) : 0;
    if (recorder_is_on(&runtime.recorder)) {
        text_init(&text, buffer, sizeof buffer);
        mallopt_spell(&text, parameter, value, result);
        event_mark(MEMTRACE_MARK_MALLOPT, 0, buffer, text.length, EVENT_CALLER());
    }
    return result;
}
