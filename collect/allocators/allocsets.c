/* SPDX-License-Identifier: MIT */
/*
 * allocsets.c: the table of ready-made sets. See allocsets.h.
 *
 * A set has the functions in which an allocator's blocks are made, not those which only call them:
 * each block is counted once. Numbers of arguments are those of the declarations.
 */
#include "collect/allocators/allocsets.h"

#include <stddef.h>

/* malloc and its kin, by a prefix; those of jemalloc besides. */
#define MALLOC_CORE(prefix)                                                                        \
    prefix "malloc(size=1)=alloc:heap", prefix "calloc(size=1*2)=zalloc:heap",                     \
        prefix "realloc(old=1,size=2)=realloc:heap", prefix "free(ptr=1)=free:heap",               \
        prefix "aligned_alloc(align=1,size=2)=alloc:heap",                                         \
        prefix "memalign(align=1,size=2)=alloc:heap"
#define MALLOC_FAMILY(prefix)                                                                      \
    MALLOC_CORE(prefix), prefix "posix_memalign(ptr=1,align=2,size=3)=alloc:heap",                 \
        prefix "valloc(size=1)=alloc:heap", prefix "pvalloc(size=1)=alloc:heap"
#define JEMALLOC_FAMILY(prefix)                                                                    \
    prefix "mallocx(size=1)=alloc:heap", prefix "rallocx(old=1,size=2)=realloc:heap",              \
        prefix "dallocx(ptr=1)=free:heap", prefix "sdallocx(ptr=1)=free:heap"

/* operator new and delete, by their mangled names. */
#define OPERATORS(mark)                                                                            \
    mark "_Znwm(size=1)=alloc:heap", mark "_Znam(size=1)=alloc:heap",                              \
        mark "_ZnwmRKSt9nothrow_t(size=1)=alloc:heap",                                             \
        mark "_ZnamRKSt9nothrow_t(size=1)=alloc:heap",                                             \
        mark "_ZnwmSt11align_val_t(size=1,align=2)=alloc:heap",                                    \
        mark "_ZnamSt11align_val_t(size=1,align=2)=alloc:heap",                                    \
        mark "_ZnwmSt11align_val_tRKSt9nothrow_t(size=1,align=2)=alloc:heap",                      \
        mark "_ZnamSt11align_val_tRKSt9nothrow_t(size=1,align=2)=alloc:heap",                      \
        mark "_ZdlPv(ptr=1)=free:heap", mark "_ZdaPv(ptr=1)=free:heap",                            \
        mark "_ZdlPvm(ptr=1)=free:heap", mark "_ZdaPvm(ptr=1)=free:heap",                          \
        mark "_ZdlPvRKSt9nothrow_t(ptr=1)=free:heap",                                              \
        mark "_ZdaPvRKSt9nothrow_t(ptr=1)=free:heap",                                              \
        mark "_ZdlPvSt11align_val_t(ptr=1)=free:heap",                                             \
        mark "_ZdaPvSt11align_val_t(ptr=1)=free:heap",                                             \
        mark "_ZdlPvmSt11align_val_t(ptr=1)=free:heap",                                            \
        mark "_ZdaPvmSt11align_val_t(ptr=1)=free:heap"

/* Its operators (C++) call malloc and free, but for the sized delete. */
static const char *const jemalloc[] = {MALLOC_FAMILY("^"),
                                       JEMALLOC_FAMILY(""),
                                       MALLOC_FAMILY("je_"),
                                       JEMALLOC_FAMILY("je_"),
                                       "je_je_sdallocx_noflags(ptr=1)=free:heap",
                                       "je_sdallocx_noflags(ptr=1)=free:heap",
                                       MALLOC_FAMILY("_rjem_"),
                                       JEMALLOC_FAMILY("_rjem_"),
                                       NULL};
static const char *const jemalloc_marks[] = {
    "mallocx",      "je_mallocx",    "_rjem_mallocx",       "je_malloc",
    "_rjem_malloc", "je_arena_boot", "_rjem_je_arena_boot", NULL};

/* In a library it stands for malloc, which is seen anyway. gperftools' posix_memalign, valloc and
 * pvalloc call memalign; those of Google's newer one do not. */
static const char *const tcmalloc[] = {
    MALLOC_CORE("^tc_"),
    "^tc_cfree(ptr=1)=free:heap",
    MALLOC_CORE("^"),
    "^TCMallocInternalPosixMemalign(ptr=1,align=2,size=3)=alloc:heap",
    "^TCMallocInternalValloc(size=1)=alloc:heap",
    "^TCMallocInternalPvalloc(size=1)=alloc:heap",
    OPERATORS("^"),
    NULL};
static const char *const tcmalloc_marks[] = {"tc_malloc", "TCMallocInternalMalloc", NULL};

/* Which of them calls which is another thing with each version and compiler (allocplan_resolve()).
 * Those with a minus are followed in its library, which defines malloc, too, where they lead to no
 * other; those with a plus, to which others lead there, in no program, which others of them lead to
 * itself. What copies strings (mi_strdup) tells no size. */
static const char *const mimalloc[] = {
    "mi_malloc(size=1)=alloc:heap",
    "mi_malloc_small(size=1)=alloc:heap",
    "-mi_mallocn(size=1*2)=alloc:heap",
    "mi_zalloc(size=1)=zalloc:heap",
    "mi_zalloc_small(size=1)=zalloc:heap",
    "mi_calloc(size=1*2)=zalloc:heap",
    "-mi_realloc(old=1,size=2)=realloc:heap",
    "-mi_reallocn(old=1,size=2*3)=realloc:heap",
    "-mi_reallocf(old=1,size=2)=realloc:heap",
    "-mi_reallocarray(old=1,size=2*3)=realloc:heap",
    "-mi_rezalloc(old=1,size=2)=realloc:heap",
    "-mi_recalloc(old=1,size=2*3)=realloc:heap",
    "mi_free(ptr=1)=free:heap",
    "-mi_free_size(ptr=1)=free:heap",
    "-mi_free_small(ptr=1)=free:heap",
    "-mi_free_aligned(ptr=1)=free:heap",
    "-mi_free_size_aligned(ptr=1)=free:heap",
    "-mi_cfree(ptr=1)=free:heap",
    "mi_new(size=1)=alloc:heap",
    "mi_new_n(size=1*2)=alloc:heap",
    "mi_new_nothrow(size=1)=alloc:heap",
    "-mi_new_aligned(size=1,align=2)=alloc:heap",
    "-mi_new_aligned_nothrow(size=1,align=2)=alloc:heap",
    "-mi_new_realloc(old=1,size=2)=realloc:heap",
    "-mi_new_reallocn(old=1,size=2*3)=realloc:heap",
    "-mi_malloc_aligned(size=1,align=2)=alloc:heap",
    "-mi_malloc_aligned_at(size=1,align=2)=alloc:heap",
    "-mi_zalloc_aligned(size=1,align=2)=zalloc:heap",
    "-mi_zalloc_aligned_at(size=1,align=2)=zalloc:heap",
    "-mi_calloc_aligned(size=1*2,align=3)=zalloc:heap",
    "+mi_calloc_aligned_at(size=1*2,align=3)=zalloc:heap",
    "-mi_realloc_aligned(old=1,size=2,align=3)=realloc:heap",
    "+mi_realloc_aligned_at(old=1,size=2,align=3)=realloc:heap",
    "-mi_rezalloc_aligned(old=1,size=2,align=3)=realloc:heap",
    "+mi_rezalloc_aligned_at(old=1,size=2,align=3)=realloc:heap",
    "+mi_recalloc_aligned(old=1,size=2*3,align=4)=realloc:heap",
    "+mi_recalloc_aligned_at(old=1,size=2*3,align=4)=realloc:heap",
    "-mi_posix_memalign(ptr=1,align=2,size=3)=alloc:heap",
    "-mi_memalign(align=1,size=2)=alloc:heap",
    "-mi_aligned_alloc(align=1,size=2)=alloc:heap",
    "-mi_valloc(size=1)=alloc:heap",
    "-mi_pvalloc(size=1)=alloc:heap",
    "mi_heap_alloc_new(size=2)=alloc:heap",
    "mi_heap_alloc_new_n(size=2*3)=alloc:heap",
    "mi_heap_malloc(size=2)=alloc:heap",
    "-mi_heap_malloc_small(size=2)=alloc:heap",
    "mi_heap_mallocn(size=2*3)=alloc:heap",
    "mi_heap_zalloc(size=2)=zalloc:heap",
    "mi_heap_calloc(size=2*3)=zalloc:heap",
    "-mi_heap_malloc_aligned(size=2,align=3)=alloc:heap",
    "+mi_heap_malloc_aligned_at(size=2,align=3)=alloc:heap",
    "-mi_heap_zalloc_aligned(size=2,align=3)=zalloc:heap",
    "+mi_heap_zalloc_aligned_at(size=2,align=3)=zalloc:heap",
    "-mi_heap_calloc_aligned(size=2*3,align=4)=zalloc:heap",
    "+mi_heap_calloc_aligned_at(size=2*3,align=4)=zalloc:heap",
    "mi_heap_realloc(old=2,size=3)=realloc:heap",
    "mi_heap_rezalloc(old=2,size=3)=realloc:heap",
    "-mi_heap_reallocn(old=2,size=3*4)=realloc:heap",
    "-mi_heap_reallocf(old=2,size=3)=realloc:heap",
    "-mi_heap_recalloc(old=2,size=3*4)=realloc:heap",
    "-mi_heap_realloc_aligned(old=2,size=3,align=4)=realloc:heap",
    "+mi_heap_realloc_aligned_at(old=2,size=3,align=4)=realloc:heap",
    "+mi_heap_rezalloc_aligned(old=2,size=3,align=4)=realloc:heap",
    "+mi_heap_rezalloc_aligned_at(old=2,size=3,align=4)=realloc:heap",
    "-mi_theap_malloc(size=2)=alloc:heap",
    "-mi_theap_malloc_small(size=2)=alloc:heap",
    "-mi_theap_zalloc(size=2)=zalloc:heap",
    "-mi_theap_calloc(size=2*3)=zalloc:heap",
    "-mi_theap_realloc(old=2,size=3)=realloc:heap",
    NULL};
static const char *const mimalloc_marks[] = {"mi_malloc", "mi_malloc_aligned", NULL};

/* A malloc that nobody knows, in a program or a library that calls it itself. */
static const char *const own[] = {MALLOC_FAMILY("^"), OPERATORS("^"), NULL};
static const char *const own_marks[] = {"malloc", "_Znwm", NULL};

/* Where the program's allocator is malloc these call it: it is for others. */
static const char *const rust[] = {"__rust_alloc(size=1,align=2)=alloc:heap",
                                   "__rust_alloc_zeroed(size=1,align=2)=zalloc:heap",
                                   "__rust_realloc(old=1,align=3,size=4)=realloc:heap",
                                   "__rust_dealloc(ptr=1)=free:heap",
                                   "__rustc::__rust_alloc(size=1,align=2)=alloc:heap",
                                   "__rustc::__rust_alloc_zeroed(size=1,align=2)=zalloc:heap",
                                   "__rustc::__rust_realloc(old=1,align=3,size=4)=realloc:heap",
                                   "__rustc::__rust_dealloc(ptr=1)=free:heap",
                                   NULL};
static const char *const rust_marks[] = {"__rust_alloc", NULL};

/* g_slice_alloc0 and g_slice_copy call g_slice_alloc. */
static const char *const glib[] = {"g_slice_alloc(size=1)=alloc:glib",
                                   "g_slice_free1(ptr=2)=free:glib", NULL};
static const char *const glib_marks[] = {"g_slice_alloc", NULL};

/* apr_pcalloc calls apr_palloc. Its pools are many, so that clearing one does not reset all. */
static const char *const apr[] = {"apr_palloc(size=2)=alloc:apr", NULL};
static const char *const apr_marks[] = {"apr_palloc", NULL};

static const char *const talloc[] = {"_talloc(size=2)=alloc:talloc",
                                     "talloc_named_const(size=2)=alloc:talloc",
                                     "_talloc_zero(size=2)=zalloc:talloc",
                                     "_talloc_memdup(size=3)=alloc:talloc",
                                     "_talloc_array(size=2*3)=alloc:talloc",
                                     "talloc_pool(size=2)=alloc:talloc",
                                     "_talloc_realloc(old=2,size=3)=realloc:talloc",
                                     "_talloc_free(ptr=1)=free:talloc",
                                     NULL};
static const char *const talloc_marks[] = {"_talloc", NULL};

/* All others of GCC's collector end in ggc_internal_alloc; what it collects is not seen to end. */
static const char *const ggc[] = {"ggc_internal_alloc(size=1)=alloc:ggc",
                                  "ggc_free(ptr=1)=free:ggc", NULL};
static const char *const ggc_marks[] = {"_Z18ggc_internal_allocmPFvPvEmm",
                                        "_Z18ggc_internal_allocmPFvPvEmmPKciS3_", NULL};

/* GC_malloc and GC_malloc_atomic jump to GC_malloc_kind; GC_realloc calls that and GC_free. */
static const char *const boehm[] = {
    "GC_malloc_kind(size=1)=alloc:boehm", "GC_generic_malloc_uncollectable(size=1)=alloc:boehm",
    "GC_generic_malloc_ignore_off_page(size=1)=alloc:boehm", "GC_free(ptr=1)=free:boehm", NULL};
static const char *const boehm_marks[] = {"GC_malloc_kind", NULL};

const struct allocset allocsets[] = {
    {"jemalloc", jemalloc, jemalloc_marks, true, true, false, NULL},
    {"tcmalloc", tcmalloc, tcmalloc_marks, true, true, false, NULL},
    {"mimalloc", mimalloc, mimalloc_marks, true, true, false, NULL},
    {"glib", glib, glib_marks, true, false, false, NULL},
    {"apr", apr, apr_marks, true, false, false, NULL},
    {"talloc", talloc, talloc_marks, true, false, false, NULL},
    {"ggc", ggc, ggc_marks, true, false, false, NULL},
    {"boehm", boehm, boehm_marks, true, false, false, NULL},
    {"own", own, own_marks, true, true, true, NULL},
    {"rust", rust, rust_marks, false, false, false, NULL},
    {.name = "obstack",
     .hint = "the objects of an obstack are made by macros, in the program's own functions: name "
             "the function that calls obstack_alloc, as in SYMBOL(size=N)=alloc:obstack"},
    {.name = NULL},
};
