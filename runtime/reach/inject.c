/* SPDX-License-Identifier: MIT */
/*
 * inject.c: leading calls of other allocators to us. See inject.h.
 *
 * A library opened with RTLD_DEEPBIND is bound to libc's malloc, one in another namespace to that
 * of a second libc. In such words (of the PLT, the GOT, in data) the function is replaced by one
 * that stands in for exactly it (inject_heap.c), by one compare-and-swap: who calls through the
 * word at the same time gets the one or the other, and the same memory. Left alone is
 *  - what is led to us already: everything that preloading does reach;
 *  - an allocator that comes before us in the loader's order (in the program itself, in a library
 *    preloaded before ours): it may call ours, and its object may call it without any word;
 *  - what an allocator's object says of itself, a C library's apart, whose strdup() is such a
 * caller;
 *  - words that are not bound yet: the loader would overwrite them.
 */
#define _GNU_SOURCE
#include "runtime/reach/inject.h"

#include "runtime/base/compiler.h"
#include "runtime/base/text.h"
#include "runtime/entry/runtime.h"
#include "runtime/libc/objects.h"
#include "runtime/reach/attach.h"
#include "runtime/reach/relocs.h"

/* --- objects ---------------------------------------------------------------------------------- */

/* Whether `a` comes before `b`, in one namespace. */
static int comes_before(const struct link_map *a, const struct link_map *b) {
    while (a != NULL && a != b) {
        a = a->l_next;
    }
    return a != NULL;
}

/* --- words ------------------------------------------------------------------------------------ */

struct pass {
    const struct link_map *own;
    int in_data;    /* only words in data, which the program may have changed */
    uint32_t left;  /* calls that could not be led to us */
    const char *of; /* in such an object */
};

/* One word that holds function number `function`. 1: it was left as it is, though it should not. */
static int lead(const struct pass *pass, const struct reloc *word, int function) {
    uintptr_t target = LOAD_RELAXED(word->at);
    struct link_map *home = objects_at((void *)target);
    void *stand_in;
    if (home == NULL || home == pass->own ||
        (home == word->object && !relocs_is_own_call(word, target))) {
        return 0;
    }
    if (comes_before(home, pass->own)) {
        return 1;
    }
    stand_in = inject_heap_stand_in(function, (void *)target, home, pass->in_data,
                                    !comes_before(pass->own, home));
    return stand_in == NULL || relocs_store(word, target, (uintptr_t)stand_in) != 0;
}

static void visit(void *argument, const struct reloc *word) {
    struct pass *pass = argument;
    int function;
    if (pass->in_data != (word->kind == RELOC_DATA)) {
        return;
    }
    function = inject_heap_function(word->name);
    if (function >= 0 && lead(pass, word, function) && word->kind == RELOC_CALL) {
        pass->left++;
        pass->of = word->object->l_name;
    }
}

/* --- all of it -------------------------------------------------------------------------------- */

static void say_what_was_left(const struct pass *pass) {
    static int said;
    if (pass->left != 0 && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) {
        log_line("inject: %u calls of an allocator cannot be followed, in %s", pass->left,
                 pass->of[0] != '\0' ? pass->of : "the program");
    }
}

void inject_run(void) {
    struct pass pass = {.own = objects_at((void *)inject_run)};
    if (runtime_is_attached()) {
        attach_lead();
        return;
    }
    relocs_visit(visit, &pass);
    pass.in_data = 1;
    relocs_visit(visit, &pass);
    say_what_was_left(&pass);
}

static void note_run_path(void *argument, struct link_map *map) {
    *(int *)argument |= objects_dynamic(map, DT_RPATH) != NULL;
}

int inject_may_open(const char *file, const void *caller) {
    const struct link_map *object = objects_at(caller);
    int has_run_path = 0;
    if (file == NULL) {
        return 1;
    }
    if (__builtin_strchr(file, '$') != NULL) {
        return 0;
    }
    if (__builtin_strchr(file, '/') != NULL) {
        return 1;
    }
    objects_visit(note_run_path, &has_run_path); /* which an object shares with those it needs */
    return !has_run_path && object != NULL && objects_dynamic(object, DT_RUNPATH) == NULL;
}
