/* SPDX-License-Identifier: MIT */
/*
 * attach_words.c: which words are led where while attached. One that holds the function which ours
 * calls is led to ours; one that holds another allocator's to what stands in for that
 * (inject_heap.c). What frees is led before what allocates, so that a block which is seen coming is
 * seen going; and the other way round where they are put back.
 */
#define _GNU_SOURCE
#include "runtime/reach/attach.h"

#include "runtime/base/compiler.h"
#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/preexisting.h"
#include "runtime/entry/real.h"
#include "runtime/follow/allocators.h"
#include "runtime/libc/objects.h"
#include "runtime/reach/inject.h"
#include "runtime/reach/relocs.h"

enum step { STEP_OTHERS, STEP_FREES, STEP_ALLOCATIONS, STEPS };

/* Signals, spawned programs and the like are not looked after in a program that is attached to. */
static struct function {
    const char *name;
    enum step step;
    uintptr_t ours, real; /* 0: there is none */
} functions[] = {
    {"pthread_create", STEP_OTHERS, 0, 0},
    {"dlopen", STEP_OTHERS, 0, 0},
    {"dlmopen", STEP_OTHERS, 0, 0},
    {"dlclose", STEP_OTHERS, 0, 0},
    {"__cxa_finalize", STEP_OTHERS, 0, 0},
    {"fork", STEP_OTHERS, 0, 0},
    {"_Fork", STEP_OTHERS, 0, 0},
    {"_exit", STEP_OTHERS, 0, 0},
    {"_Exit", STEP_OTHERS, 0, 0},
    {"execve", STEP_OTHERS, 0, 0},
    {"execv", STEP_OTHERS, 0, 0},
    {"execvp", STEP_OTHERS, 0, 0},
    {"execvpe", STEP_OTHERS, 0, 0},
    {"fexecve", STEP_OTHERS, 0, 0},
    {"execveat", STEP_OTHERS, 0, 0},
    {"execl", STEP_OTHERS, 0, 0},
    {"execlp", STEP_OTHERS, 0, 0},
    {"execle", STEP_OTHERS, 0, 0},
    {"prctl", STEP_OTHERS, 0, 0},
    {"syscall", STEP_OTHERS, 0, 0},
    {"backtrace", STEP_OTHERS, 0, 0},
    {"_Unwind_Backtrace", STEP_OTHERS, 0, 0},
    {"munmap", STEP_FREES, 0, 0},
    {"free", STEP_FREES, 0, 0},
    {"realloc", STEP_FREES, 0, 0},
    {"mmap", STEP_ALLOCATIONS, 0, 0},
    {"mmap64", STEP_ALLOCATIONS, 0, 0},
    {"mremap", STEP_ALLOCATIONS, 0, 0},
    {"sbrk", STEP_ALLOCATIONS, 0, 0},
    {"brk", STEP_ALLOCATIONS, 0, 0},
    {"malloc", STEP_ALLOCATIONS, 0, 0},
    {"calloc", STEP_ALLOCATIONS, 0, 0},
    {"posix_memalign", STEP_ALLOCATIONS, 0, 0},
    {"aligned_alloc", STEP_ALLOCATIONS, 0, 0},
    {"memalign", STEP_ALLOCATIONS, 0, 0},
    {"valloc", STEP_ALLOCATIONS, 0, 0},
    {"pvalloc", STEP_ALLOCATIONS, 0, 0},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

/* What was changed, and is not what it was yet. */
struct change {
    uintptr_t *at;
    const struct link_map *object;
    uintptr_t old, new;
    int is_left; /* it could not be put back */
};
enum { CHANGES = 1 << 16 };
static struct change *changes;
static uint32_t change_count;

static struct trylock lock; /* who holds it walks over all words */
static uint32_t is_leading;

int attach_prepare(void) {
    const struct link_map *own = objects_at((void *)attach_prepare);
    if (changes == NULL) {
        changes = sys_map(CHANGES * sizeof *changes);
        own_maps_keep(changes);
    }
    for (int i = 0; i < FUNCTIONS; i++) {
        functions[i].ours = (uintptr_t)objects_symbol(own, functions[i].name);
        functions[i].real = (uintptr_t)real_symbol(functions[i].name);
    }
    STORE_RELAXED(&is_leading, changes != NULL);
    return changes != NULL ? 0 : -1;
}

static const struct function *find(const char *name) {
    for (int i = 0; i < FUNCTIONS; i++) {
        if (functions[i].name[0] == name[0] && text_equal(functions[i].name, name)) {
            return &functions[i];
        }
    }
    return NULL;
}

/* Both in one namespace. */
static int is_near(const struct link_map *a, const struct link_map *b) {
    const struct link_map *at = a;
    while (at->l_prev != NULL) {
        at = at->l_prev;
    }
    while (at != NULL && at != b) {
        at = at->l_next;
    }
    return at != NULL;
}

/* A function of the program itself that leads to us as it is (--alloc): its calls are counted
 * there, or its blocks would be of two kinds. */
static int is_followed(const struct link_map *home, int heap, uintptr_t target) {
    return heap >= 0 && home->l_name[0] == '\0' && allocators_may_lead_from(target);
}

/* What the word is to hold; 0: it stays. */
static uintptr_t replacement(const struct reloc *word, const struct function *function,
                             const struct link_map *own, uintptr_t target) {
    struct link_map *home = objects_at((void *)target);
    int heap = inject_heap_function(word->name);
    if (home == NULL || home == own || is_followed(home, heap, target)) {
        return 0;
    }
    if (target == function->real) {
        return home != word->object || relocs_is_own_call(word, target) ? function->ours : 0;
    }
    if (home == word->object && !relocs_is_own_call(word, target)) {
        /* Not bound yet: the loader would find what all find, as long as the object is of the
         * first namespace. */
        return word->kind == RELOC_CALL && word->symbol->st_shndx == SHN_UNDEF &&
                       function->real != 0 && is_near(home, own)
                   ? function->ours
                   : 0;
    }
    return heap >= 0
               ? (uintptr_t)inject_heap_stand_in(heap, (void *)target, home,
                                                 word->kind == RELOC_DATA, !is_near(home, own))
               : 0;
}

struct pass {
    const struct link_map *own;
    enum step step;
};

static void lead(void *argument, const struct reloc *word) {
    const struct pass *pass = argument;
    const struct function *function = find(word->name);
    uintptr_t target;
    uintptr_t new;
    if (function == NULL || function->step != pass->step || function->ours == 0 ||
        change_count == CHANGES || !LOAD_RELAXED(&is_leading)) {
        return;
    }
    target = LOAD_RELAXED(word->at);
    new = replacement(word, function, pass->own, target);
    if (new != 0 && relocs_store(word, target, new) == 0) {
        changes[change_count++] = (struct change){word->at, word->object, target, new};
    }
}

void attach_lead(void) {
    struct pass pass = {.own = objects_at((void *)attach_lead)};
    if (!LOAD_RELAXED(&is_leading) || !sys_take(&lock)) {
        return;
    }
    for (pass.step = 0; pass.step < STEPS; pass.step++) {
        if (pass.step == STEP_ALLOCATIONS) {
            preexisting_begin();
        }
        relocs_visit(lead, &pass);
    }
    trylock_release(&lock);
}

static void put_back(void *argument, const struct reloc *word) {
    const struct pass *pass = argument;
    const struct function *function = find(word->name);
    uintptr_t now = LOAD_RELAXED(word->at);
    if (function == NULL || function->step != pass->step || objects_at((void *)now) != pass->own) {
        return;
    }
    for (uint32_t i = change_count; i > 0; i--) { /* the newest of an address is its object's */
        struct change *change = &changes[i - 1];
        if (change->at == word->at && change->object == word->object && change->new == now) {
            change->is_left = relocs_store(word, now, change->old) != 0;
            return;
        }
    }
}

/* What was put back, and what went with its object, need not be known any more. */
static void forget_what_is_done(void) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < change_count; i++) {
        if (changes[i].is_left) {
            changes[left] = changes[i];
            changes[left++].is_left = 0;
        }
    }
    change_count = left;
}

/* Who walks over all words just now, opening a library, is done soon: it sees that we stop. */
static int take_surely(void) {
    enum { TRIES = 500, PAUSE_NS = 10000000 };
    for (int tries = 0; !sys_take(&lock); tries++) {
        if (tries == TRIES) {
            return 0;
        }
        sys_sleep_ns(PAUSE_NS);
    }
    return 1;
}

void attach_put_back(void) {
    struct pass pass = {.own = objects_at((void *)attach_put_back)};
    STORE_RELAXED(&is_leading, 0u);
    if (!take_surely()) {
        return;
    }
    for (pass.step = STEPS; pass.step-- > 0;) {
        relocs_visit(put_back, &pass);
    }
    forget_what_is_done();
    trylock_release(&lock);
}
