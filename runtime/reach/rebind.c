/* SPDX-License-Identifier: MIT */
/*
 * rebind.c: words of loaded objects that the loader fills with addresses by name (of the PLT and
 * the GOT, by which functions are called, and in data) are led to us where preloading does not
 * reach them. By one compare-and-swap each: who calls through the word at the same time gets the
 * one or the other function, and the same memory. Called by attach.c and loader.c: see reach.h.
 *
 * Other allocators than the one under ours have functions of ours that stand in for their own. A
 * stand-in counts and calls exactly the function that it stands for: so whoever is led to it gets
 * the memory that he would have got, and gives it back to where it came from.
 *
 * With MEMTRACE_INJECT: a library opened with RTLD_DEEPBIND is bound to libc's malloc, one in
 * another namespace to that of a second libc. Such words get stand-ins. Left alone is
 *  - what is led to us already: everything that preloading does reach;
 *  - an allocator that comes before us in the loader's order (in the program itself, in a library
 *    preloaded before ours): it may call ours, and its object may call it without any word;
 *  - what an allocator's object says of itself, a C library's apart, whose strdup() is such a
 *    caller;
 *  - words that are not bound yet: the loader would overwrite them.
 *
 * Where we are attached nothing was preloaded. A word that holds the function which ours calls is
 * led to ours; one that holds another allocator's to a stand-in. What frees is led before what
 * allocates, so that a block which is seen coming is seen going; and the other way round where they
 * are put back.
 *
 * This file is built without sibling calls: what stand-ins call looks at their frames, which must
 * stand until it is back.
 */
#define _GNU_SOURCE
#include "runtime/reach/reach.h"

#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/event.h"
#include "runtime/entry/malloc.h"
#include "runtime/entry/preexisting.h"
#include "runtime/entry/real.h"
#include "runtime/follow/allocators.h"
#include "runtime/libc/objects.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/auxv.h>

/* --- words ------------------------------------------------------------------------------------ */

enum word_kind { WORD_CALL, WORD_GOT, WORD_DATA, WORD_OTHER };

struct word {
    uintptr_t *at;
    struct link_map *object; /* that it lies in */
    const ElfW(Sym) * symbol;
    const char *name;
    enum word_kind kind;
    int is_protected; /* RELRO: read-only since the object was relocated */
};

enum led_step { STEP_OTHERS, STEP_FREES, STEP_ALLOCATIONS, STEPS };

/* A walk over the words of all objects but ours. */
struct walk {
    void (*visit)(struct walk *walk, const struct word *word);
    const struct link_map *own;
    enum led_step step;  /* where we are attached */
    int in_data;         /* injecting: only words in data, which the program may have changed */
    uint32_t left;       /* calls that could not be led to us */
    const char *left_in; /* in such an object */
    /* Of the object that it has come to. */
    struct link_map *object;
    const ElfW(Sym) * symbols;
    const char *strings;
    uintptr_t protected_start, protected_end;
};

static void word_visit(struct walk *walk, uintptr_t at, enum word_kind kind, uint32_t symbol) {
    struct word word = {.at = (uintptr_t *)at, .object = walk->object, .kind = kind};
    word.symbol = &walk->symbols[symbol];
    word.name = walk->strings + word.symbol->st_name;
    word.is_protected = at - walk->protected_start < walk->protected_end - walk->protected_start;
    walk->visit(walk, &word);
}

static enum word_kind word_kind_of(uint32_t type) {
    switch (type) {
    case MACHINE_RELOC_CALL:
        return WORD_CALL;
    case MACHINE_RELOC_GOT:
        return WORD_GOT;
    case MACHINE_RELOC_DATA:
        return WORD_DATA;
    default:
        return WORD_OTHER;
    }
}

/* `each`: the size of one. Those without an addend only, which are an address and nothing else.
 * What has no addend has it where it is applied, and the loader has added to it: a word that leads
 * to a function leads to its start. */
static void word_visit_relocations(struct walk *walk, const char *relocations, size_t size,
                                   size_t each) {
    for (size_t i = 0; i < size / each; i++) {
        const ElfW(Rela) *relocation = (const void *)(relocations + i * each);
        enum word_kind kind = word_kind_of(machine_relocation_type(relocation->r_info));
        if (kind != WORD_OTHER &&
            (kind != WORD_DATA || each < sizeof *relocation || relocation->r_addend == 0)) {
            word_visit(walk, walk->object->l_addr + relocation->r_offset, kind,
                       machine_relocation_symbol(relocation->r_info));
        }
    }
}

/* Where the GOT is as long as the list of symbols. */
static void word_visit_got(struct walk *walk) {
    const uintptr_t *got = objects_address(walk->object, DT_PLTGOT);
    uint32_t first = (uint32_t)objects_value(walk->object, DT_MIPS_GOTSYM);
    uint32_t end = (uint32_t)objects_value(walk->object, DT_MIPS_SYMTABNO);
    got += objects_value(walk->object, DT_MIPS_LOCAL_GOTNO);
    for (uint32_t symbol = first; symbol < end; symbol++) {
        word_visit(walk, (uintptr_t)(got + (symbol - first)), WORD_CALL, symbol);
    }
}

/* The program headers lie in the first page, where linkers put them. Of an object whose segments
 * have room between them the loader tells one by itself: that of the symbols is the first. 0, or
 * -1: it is not known what is protected. */
static int word_find_protected(struct walk *walk) {
    struct dl_find_object first;
    const ElfW(Ehdr) * header;
    const ElfW(Phdr) * program;
    uintptr_t page = getauxval(AT_PAGESZ);
    if (_dl_find_object((void *)walk->symbols, &first) != 0 ||
        first.dlfo_link_map != walk->object) {
        return -1;
    }
    header = first.dlfo_map_start;
    if (__builtin_memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
        return -1;
    }
    walk->protected_start = walk->protected_end = 0;
    program = (const ElfW(Phdr) *)((uintptr_t)header + header->e_phoff);
    for (size_t i = 0; i < header->e_phnum; i++) {
        if (program[i].p_type == PT_GNU_RELRO) {
            uintptr_t from = walk->object->l_addr + program[i].p_vaddr;
            walk->protected_start = from & ~(page - 1);
            walk->protected_end = (from + program[i].p_memsz) & ~(page - 1);
        }
    }
    return 0;
}

/* An object that the loader finds by address is relocated, and protected. */
static void word_visit_object(void *argument, struct link_map *map) {
    struct walk *walk = argument;
    struct dl_find_object found;
    const char *relocations = objects_address(map, DT_RELA);
    size_t relative = objects_value(map, DT_RELACOUNT) * sizeof(ElfW(Rela));
    walk->object = map;
    walk->symbols = objects_address(map, DT_SYMTAB);
    walk->strings = objects_address(map, DT_STRTAB);
    if (map == walk->own || _dl_find_object(map->l_ld, &found) != 0 || found.dlfo_link_map != map ||
        word_find_protected(walk) != 0) {
        return;
    }
    if (objects_dynamic(map, DT_JMPREL) != NULL) {
        word_visit_relocations(
            walk, objects_address(map, DT_JMPREL), objects_value(map, DT_PLTRELSZ),
            objects_value(map, DT_PLTREL) == DT_REL ? sizeof(ElfW(Rel)) : sizeof(ElfW(Rela)));
    }
    if (objects_dynamic(map, DT_RELA) != NULL) { /* those without a symbol come first */
        word_visit_relocations(walk, relocations + relative,
                               objects_value(map, DT_RELASZ) - relative, sizeof(ElfW(Rela)));
    }
    if (objects_dynamic(map, DT_REL) != NULL) {
        word_visit_relocations(walk, objects_address(map, DT_REL), objects_value(map, DT_RELSZ),
                               sizeof(ElfW(Rel)));
    }
    if (MACHINE_GOT_IS_BY_SYMBOLS && objects_dynamic(map, DT_MIPS_GOTSYM) != NULL) {
        word_visit_got(walk);
    }
}

/* The page that holds a word of the GOT may be read-only. 0, or -1. */
static int word_store(const struct word *word, uintptr_t old, uintptr_t new) {
    size_t page = getauxval(AT_PAGESZ);
    void *start = (void *)((uintptr_t)word->at & ~(page - 1));
    int done;
    if (word->is_protected && sys_protect(start, page, 1) != 0) {
        return -1;
    }
    done = __atomic_compare_exchange_n(word->at, &old, new, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    if (word->is_protected) {
        sys_protect(start, page, 0);
    }
    return done ? 0 : -1;
}

/* Whether the object's word that leads to itself is a C library's that is bound: not one that is
 * still to be bound, nor what an allocator says of itself. */
static int word_is_own_call(const struct word *word, uintptr_t target) {
    return objects_is_libc(word->object) && word->symbol->st_shndx != SHN_UNDEF &&
           target == word->object->l_addr + word->symbol->st_value;
}

/* Whether `a` comes before `b`, in one namespace. */
static int object_comes_before(const struct link_map *a, const struct link_map *b) {
    while (a != NULL && a != b) {
        a = a->l_next;
    }
    return a != NULL;
}

/* Both in one namespace. */
static int object_is_near(const struct link_map *a, const struct link_map *b) {
    return object_comes_before(a, b) || object_comes_before(b, a);
}

/* --- stand-ins -------------------------------------------------------------------------------- */

/* One allocator. */
struct other_heap {
    struct real real;      /* what is known of it */
    struct link_map *home; /* the object that it lies in; NULL: a free place */
    void *place;           /* an address there */
    int is_foreign;        /* the object belongs to another C library than ours */
};

/* glibc has 16 namespaces at most, each with a C library of its own. */
enum { OTHER_HEAPS = 16 };

static struct other_heap heaps[OTHER_HEAPS];

INLINE const struct real *standin_enter(const struct other_heap *heap) {
    if (heap->is_foreign) {
        thread_note_foreign_library();
    }
    return &heap->real;
}

/* One function of allocator n, which returns what `call` does: it calls that of `from`. */
#define STAND_IN(n, result, name, parameters, call)                                                \
    static result name##_##n parameters {                                                          \
        const struct real *from = standin_enter(&heaps[n]);                                        \
        return call;                                                                               \
    }

/* All of them. */
#define STAND_INS(n)                                                                               \
    STAND_IN(n, void *, malloc, (size_t size),                                                     \
             malloc_from(from, from->malloc, size, MACHINE_FRAME()))                               \
    STAND_IN(n, void *, calloc, (size_t number, size_t size),                                      \
             malloc_zeroed_from(from, number, size, MACHINE_FRAME()))                              \
    STAND_IN(n, void *, realloc, (void *old, size_t size),                                         \
             malloc_resized_from(from, old, size, MACHINE_FRAME()))                                \
    STAND_IN(n, int, posix_memalign, (void **out, size_t alignment, size_t size),                  \
             malloc_placed_from(from, out, alignment, size, MACHINE_FRAME()))                      \
    STAND_IN(n, void *, aligned_alloc, (size_t alignment, size_t size),                            \
             malloc_aligned_from(from, from->aligned_alloc, alignment, size, MACHINE_FRAME()))     \
    STAND_IN(n, void *, memalign, (size_t alignment, size_t size),                                 \
             malloc_aligned_from(from, from->memalign, alignment, size, MACHINE_FRAME()))          \
    STAND_IN(n, void *, valloc, (size_t size),                                                     \
             malloc_from(from, from->valloc, size, MACHINE_FRAME()))                               \
    STAND_IN(n, void *, pvalloc, (size_t size),                                                    \
             malloc_from(from, from->pvalloc, size, MACHINE_FRAME()))                              \
    static void free_##n(void *pointer) {                                                          \
        malloc_return_to(standin_enter(&heaps[n]), pointer, EVENT_PLACE());                        \
    }

#define EACH_HEAP(what)                                                                            \
    what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7) what(8) what(9) what(10)       \
        what(11) what(12) what(13) what(14) what(15)

EACH_HEAP(STAND_INS)

#define FUNCTION(name, n)  (void *)name##_##n,
#define ROW(n)             {REAL_FAMILY(FUNCTION, n) FUNCTION(free, n)},
#define NAME(name, unused) {#name, offsetof(struct real, name)},

static const struct {
    const char *name;
    size_t at; /* in struct real */
} family[] = {REAL_FAMILY(NAME, ) NAME(free, )};

enum { FAMILY = sizeof family / sizeof family[0] };

static void *const standins[OTHER_HEAPS][FAMILY] = {EACH_HEAP(ROW)};

/* Which function of an allocator has this name; -1: none. */
static int standin_number(const char *name) {
    for (int i = 0; i < FAMILY; i++) {
        if (text_equal(name, family[i].name)) {
            return i;
        }
    }
    return -1;
}

/* The allocator in this object; where it is not known yet a place for it, perhaps that of one whose
 * object is gone. NULL: there is none, or it is not to be made. */
static struct other_heap *standin_heap(struct link_map *home, int makes, int is_foreign) {
    struct other_heap *heap = NULL;
    for (int i = OTHER_HEAPS; i-- > 0;) {
        if (heaps[i].home == home && heaps[i].place == home->l_ld) {
            return &heaps[i];
        }
        if (heaps[i].home == NULL || objects_at(heaps[i].place) != heaps[i].home) {
            heap = &heaps[i];
        }
    }
    if (heap == NULL || !makes) {
        return NULL;
    }
    *heap = (struct other_heap){.real.is_glibc = objects_is_libc(home),
                                .real.pads = !objects_is_libc(home),
                                .home = home,
                                .place = home->l_ld,
                                .is_foreign = is_foreign};
    return heap;
}

/* What stands in for `target`, function number `function` of the allocator that lies in object
 * `home`; 0: that cannot be had. is_known: only if it stands in for `target` already. One thread at
 * a time. */
static uintptr_t standin_for(int function, uintptr_t target, struct link_map *home, int is_known,
                             int is_foreign) {
    struct other_heap *heap = standin_heap(home, !is_known, is_foreign);
    uintptr_t *known;
    if (heap == NULL) {
        return 0;
    }
    known = (uintptr_t *)((char *)&heap->real + family[function].at);
    if (*known == 0 && !is_known) {
        *known = target;
    }
    return *known == target ? (uintptr_t)standins[heap - heaps][function] : 0;
}

/* --- injecting -------------------------------------------------------------------------------- */

static void inject_word(struct walk *walk, const struct word *word) {
    int function = walk->in_data == (word->kind == WORD_DATA) ? standin_number(word->name) : -1;
    uintptr_t target;
    uintptr_t standin = 0;
    struct link_map *home;
    if (function < 0) {
        return;
    }
    target = LOAD_RELAXED(word->at);
    home = objects_at((void *)target);
    if (home == NULL || home == walk->own ||
        (home == word->object && !word_is_own_call(word, target))) {
        return;
    }
    if (!object_comes_before(home, walk->own)) {
        standin = standin_for(function, target, home, walk->in_data,
                              !object_comes_before(walk->own, home));
    }
    if ((standin == 0 || word_store(word, target, standin) != 0) && word->kind == WORD_CALL) {
        walk->left++;
        walk->left_in = word->object->l_name;
    }
}

void rebind_inject(void) {
    static int said;
    struct walk walk = {.visit = inject_word, .own = objects_at((void *)rebind_inject)};
    if (runtime_is_attached()) {
        rebind_lead();
        return;
    }
    for (; walk.in_data <= 1; walk.in_data++) {
        objects_visit(word_visit_object, &walk);
    }
    if (walk.left != 0 && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) {
        log_line("inject: %u calls of an allocator cannot be followed, in %s", walk.left,
                 walk.left_in[0] != '\0' ? walk.left_in : "the program");
    }
}

static void inject_note_run_path(void *argument, struct link_map *map) {
    *(int *)argument |= objects_dynamic(map, DT_RPATH) != NULL;
}

int rebind_may_open(const char *file, const void *caller) {
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
    /* which an object shares with those it needs */
    objects_visit(inject_note_run_path, &has_run_path);
    return !has_run_path && object != NULL && objects_dynamic(object, DT_RUNPATH) == NULL;
}

/* --- where we are attached -------------------------------------------------------------------- */

/* Signals, spawned programs and the like are not looked after in a program that is attached to. */
enum { LED_MOST = 24 };
static const char *const led_names[STEPS][LED_MOST] = {
    [STEP_OTHERS] = {"pthread_create", "dlopen",
                     "dlmopen",        "dlclose",
                     "__cxa_finalize", "fork",
                     "_Fork",          "_exit",
                     "_Exit",          "execve",
                     "execv",          "execvp",
                     "execvpe",        "fexecve",
                     "execveat",       "execl",
                     "execlp",         "execle",
                     "prctl",          "syscall",
                     "backtrace",      "_Unwind_Backtrace"},
    [STEP_FREES] = {"munmap", "free", "realloc"},
    [STEP_ALLOCATIONS] = {"mmap", "mmap64", "mremap", "sbrk", "brk", "malloc", "calloc",
                          "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc"},
};

/* Of the function of this name: 0: there is none. */
static struct led { uintptr_t ours, real; } led_functions[STEPS][LED_MOST];

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

static struct trylock walk_lock; /* who holds it walks over all words */
static uint32_t is_leading;

int rebind_prepare(void) {
    const struct link_map *own = objects_at((void *)rebind_prepare);
    if (changes == NULL) {
        changes = sys_map(CHANGES * sizeof *changes);
        own_maps_keep(changes);
    }
    for (enum led_step step = 0; step < STEPS; step++) {
        const char *const *name = led_names[step];
        for (int i = 0; i < LED_MOST && name[i] != NULL; i++) {
            led_functions[step][i] = (struct led){(uintptr_t)objects_symbol(own, name[i]),
                                                  (uintptr_t)real_symbol(name[i])};
        }
    }
    STORE_RELAXED(&is_leading, changes != NULL);
    return changes != NULL ? 0 : -1;
}

/* NULL: it is not led in this step. */
static const struct led *led_find(enum led_step step, const char *name) {
    const char *const *names = led_names[step];
    for (int i = 0; i < LED_MOST && names[i] != NULL; i++) {
        if (names[i][0] == name[0] && text_equal(names[i], name)) {
            return &led_functions[step][i];
        }
    }
    return NULL;
}

/* What the word is to hold; 0: it stays. */
static uintptr_t led_to(const struct word *word, const struct led *function,
                        const struct link_map *own, uintptr_t target) {
    struct link_map *home = objects_at((void *)target);
    int number = standin_number(word->name);
    /* A function of the program itself that leads to us as it is (--alloc): its calls are counted
     * there, or its blocks would be of two kinds. */
    int is_followed =
        number >= 0 && home != NULL && home->l_name[0] == '\0' && allocators_may_lead_from(target);
    if (home == NULL || home == own || is_followed) {
        return 0;
    }
    if (target == function->real) {
        return home != word->object || word_is_own_call(word, target) ? function->ours : 0;
    }
    if (home == word->object && !word_is_own_call(word, target)) {
        /* Not bound yet: the loader would find what all find, as long as the object is of the
         * first namespace. */
        return word->kind == WORD_CALL && word->symbol->st_shndx == SHN_UNDEF &&
                       function->real != 0 && object_is_near(home, own)
                   ? function->ours
                   : 0;
    }
    return number >= 0 ? standin_for(number, target, home, word->kind == WORD_DATA,
                                     !object_is_near(home, own))
                       : 0;
}

static void led_lead(struct walk *walk, const struct word *word) {
    const struct led *function = led_find(walk->step, word->name);
    uintptr_t target;
    uintptr_t new;
    if (function == NULL || function->ours == 0 || change_count == CHANGES ||
        !LOAD_RELAXED(&is_leading)) {
        return;
    }
    target = LOAD_RELAXED(word->at);
    new = led_to(word, function, walk->own, target);
    if (new != 0 && word_store(word, target, new) == 0) {
        changes[change_count++] = (struct change){word->at, word->object, target, new};
    }
}

/* Every arena's lock is taken in turn, as malloc itself does it, while its free blocks are counted.
 * Those in the caches of threads count as given out. */
static void led_look_at_heap(void) {
    struct mallinfo2 (*look)(void) = (struct mallinfo2(*)(void))real_symbol("mallinfo2");
    if (look != NULL && preexisting_is_expected()) {
        struct mallinfo2 heap = look();
        preexisting_begin(heap.uordblks + heap.hblkhd);
    }
}

void rebind_lead(void) {
    struct walk walk = {.visit = led_lead, .own = objects_at((void *)rebind_lead)};
    if (!LOAD_RELAXED(&is_leading) || !sys_take(&walk_lock)) {
        return;
    }
    for (; walk.step < STEPS; walk.step++) {
        if (walk.step == STEP_ALLOCATIONS) {
            led_look_at_heap();
        }
        objects_visit(word_visit_object, &walk);
    }
    trylock_release(&walk_lock);
}

static void led_put_back(struct walk *walk, const struct word *word) {
    uintptr_t now = LOAD_RELAXED(word->at);
    if (led_find(walk->step, word->name) == NULL || objects_at((void *)now) != walk->own) {
        return;
    }
    for (uint32_t i = change_count; i > 0; i--) { /* the newest of an address is its object's */
        struct change *change = &changes[i - 1];
        if (change->at == word->at && change->object == word->object && change->new == now) {
            change->is_left = word_store(word, now, change->old) != 0;
            return;
        }
    }
}

void rebind_put_back(void) {
    enum { TRIES = 500, PAUSE_NS = 10000000 };
    struct walk walk = {.visit = led_put_back, .own = objects_at((void *)rebind_put_back)};
    uint32_t left = 0;
    STORE_RELAXED(&is_leading, 0u);
    /* Who walks over all words just now, opening a library, is done soon: it sees that we stop. */
    for (int tries = 0; !sys_take(&walk_lock); tries++) {
        if (tries == TRIES) {
            return;
        }
        sys_sleep_ns(PAUSE_NS);
    }
    for (walk.step = STEPS; walk.step-- > 0;) {
        objects_visit(word_visit_object, &walk);
    }
    /* What was put back, and what went with its object, need not be known any more. */
    for (uint32_t i = 0; i < change_count; i++) {
        if (changes[i].is_left) {
            changes[left] = changes[i];
            changes[left++].is_left = 0;
        }
    }
    change_count = left;
    trylock_release(&walk_lock);
}
