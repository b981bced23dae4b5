/* SPDX-License-Identifier: MIT */
/*
 * clock.c: the kernel's clocks by its own code in the process, and the word in its pages that tells
 * that time has passed. See clock.h.
 *
 * The layout of the pages below the vDSO is the kernel's own and changes from version to version,
 * but not what they hold: the present time of CLOCK_REALTIME_COARSE and CLOCK_MONOTONIC_COARSE,
 * each as seconds and nanoseconds (8 bytes each), side by side. So the place is found by its value.
 * The nanoseconds alone will not do: timer interrupts come so regularly that they read the same
 * again whole seconds later. The word is 8 bytes that begin inside the nanoseconds of one clock and
 * end inside the seconds of the next: the higher part of the former (in steps of 65.5 us) and the
 * lowest 16 bits of the latter.
 */
#define _GNU_SOURCE
#include "runtime/base/clock.h"

#include "runtime/base/proc.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/machine/machine.h"

#include <link.h>
#include <sys/auxv.h>

/* --- the vDSO's function, by its own dynamic section ------------------------------------------ */

typedef int clock_function(int clock, struct vdso_time *now);

/* What the dynamic section tells, as addresses. */
struct vdso_tables {
    const char *strings;
    const ElfW(Sym) * symbols;
    const uint32_t *hash; /* of System V, which tells how many symbols there are */
    const uint32_t
        *gnu_hash; /* where there is none of the former, as on AArch64 from Linux 6.8 on */
};

static uint32_t vdso_gnu_hash_count(const uint32_t *table) {
    const uint32_t *buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof *table);
    const uint32_t *hashes = buckets + table[0];
    uint32_t last = 0;
    for (uint32_t i = 0; i < table[0]; i++) {
        last = buckets[i] > last ? buckets[i] : last;
    }
    if (last < table[1]) {
        return last;
    }
    while ((hashes[last - table[1]] & 1) == 0) {
        last++;
    }
    return last + 1;
}

static struct vdso_tables vdso_tables(uintptr_t bias, const ElfW(Dyn) * entry) {
    struct vdso_tables tables = {0};
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        const void *table = (const void *)(bias + entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_STRTAB:
            tables.strings = table;
            break;
        case DT_SYMTAB:
            tables.symbols = table;
            break;
        case DT_HASH:
            tables.hash = table;
            break;
        case DT_GNU_HASH:
            tables.gnu_hash = table;
            break;
        default:
            break;
        }
    }
    return tables;
}

void *vdso_symbol(const void *vdso, const char *name) {
    const ElfW(Ehdr) *file = vdso;
    const ElfW(Phdr) *header = (const ElfW(Phdr) *)((uintptr_t)vdso + file->e_phoff);
    const ElfW(Dyn) *dynamic = NULL;
    uintptr_t bias = (uintptr_t)vdso;
    struct vdso_tables tables;
    uint32_t count;
    for (size_t i = 0; i < file->e_phnum; i++) {
        if (header[i].p_type == PT_LOAD) {
            bias = (uintptr_t)vdso + header[i].p_offset - header[i].p_vaddr;
        } else if (header[i].p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)((uintptr_t)vdso + header[i].p_offset);
        }
    }
    tables = vdso_tables(bias, dynamic);
    if (tables.strings == NULL || tables.symbols == NULL) {
        return NULL;
    }
    count = tables.hash != NULL       ? tables.hash[1]
            : tables.gnu_hash != NULL ? vdso_gnu_hash_count(tables.gnu_hash)
                                      : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (tables.symbols[i].st_shndx != SHN_UNDEF &&
            text_equal(tables.strings + tables.symbols[i].st_name, name)) {
            return (void *)(bias + tables.symbols[i].st_value);
        }
    }
    return NULL;
}

/* Found by whoever comes first; two find the same. */
int vdso_clock(int clock, struct vdso_time *now) {
    static clock_function *known;
    clock_function *function = LOAD_RELAXED(&known);
    if (UNLIKELY(function == NULL)) {
        const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
        function = vdso != NULL ? vdso_symbol(vdso, MACHINE_VDSO_CLOCK) : NULL;
        function = function != NULL ? function : sys_clock_call;
        STORE_RELAXED(&known, function);
    }
    return function(clock, now);
}

/* --- the word --------------------------------------------------------------------------------- */

const volatile clock_word clock_unknown;

enum {
    LEAST_PAGE_BYTES =
        4096,       /* whatever the size of a page is, the times lie in the first of these */
    MOST_PAGES = 8, /* below the vDSO; 6 as of Linux 6.18 */
    TRIES = 3,      /* an interrupt may come in between */
    LINE_BYTES = 64,
    SKIPPED_BYTES = 2, /* the lowest of the nanoseconds */
    SLOWEST_NS = 10 * 1000 * 1000,
};

static struct timespec clock_read(int clock) {
    struct vdso_time now = {0};
    vdso_clock(clock, &now);
    return (struct timespec){.tv_sec = now.s, .tv_nsec = now.ns};
}

static void clock_take_moment(struct clock_moment *moment) {
    moment->realtime = clock_read(CLOCK_REALTIME_COARSE);
    moment->monotonic = clock_read(CLOCK_MONOTONIC_COARSE);
    moment->boot = clock_read(CLOCK_BOOTTIME);
}

/* Nanoseconds and, right behind them, the next clock's seconds. */
static int clock_matches(const volatile uint64_t *at, const struct clock_moment *now) {
    return (at[0] == (uint64_t)now->realtime.tv_nsec && at[1] == (uint64_t)now->monotonic.tv_sec) ||
           (at[0] == (uint64_t)now->monotonic.tv_nsec && at[1] == (uint64_t)now->boot.tv_sec);
}

const volatile clock_word *clock_find_in(uintptr_t page, const struct clock_moment *now) {
    const volatile clock_word *found = NULL;
    uintptr_t end = page + LEAST_PAGE_BYTES - 2 * sizeof(uint64_t);
    for (uintptr_t at = page; at <= end; at += sizeof(uint64_t)) {
        if (clock_matches((const volatile uint64_t *)at, now)) {
            found = (const volatile clock_word *)(at + SKIPPED_BYTES);
            if ((at + SKIPPED_BYTES) % LINE_BYTES <= LINE_BYTES - sizeof(clock_word)) {
                break; /* a word in two cache lines costs a little more than one in one */
            }
        }
    }
    return found;
}

/* In the pages below the vDSO, some of which are for other kinds of machines and cannot be read. */
static const volatile clock_word *clock_find_below(uintptr_t vdso, const struct clock_moment *now) {
    uintptr_t page_bytes = getauxval(AT_PAGESZ);
    const volatile clock_word *found = NULL;
    for (uintptr_t i = 1; i <= MOST_PAGES && found == NULL; i++) {
        uintptr_t page = vdso - i * page_bytes;
        if (sys_readable((const void *)page)) {
            found = clock_find_in(page, now);
        }
    }
    return found;
}

/* Valgrind hides the vDSO from the program, but leaves its data where they are. 0: there are none.
 */
static uintptr_t clock_find_data(void) {
    struct proc_maps maps;
    uintptr_t page = 0;
    char name[8];
    proc_open_maps(&maps);
    while (page == 0 && proc_next_map(&maps)) {
        if (proc_map_name(&maps, name, sizeof name) != 0 && text_equal(name, "[vvar]")) {
            page = maps.start;
        }
    }
    proc_close_maps(&maps);
    if (MACHINE_ASKS_VALGRIND && page != 0) {
        /* Memcheck would call each look at the page an error of the program: MAKE_MEM_DEFINED. */
        const uint64_t request[6] = {UINT64_C(0x4d430002), page, LEAST_PAGE_BYTES};
        machine_ask_valgrind(request);
    }
    return page;
}

const volatile clock_word *clock_find(void) {
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    uintptr_t page = vdso == 0 ? clock_find_data() : 0;
    for (int i = 0; i < TRIES && sys_clock_step_ns(CLOCK_MONOTONIC_COARSE) <= SLOWEST_NS; i++) {
        const volatile clock_word *found = NULL;
        struct clock_moment now;
        clock_take_moment(&now);
        if (vdso != 0) {
            found = clock_find_below(vdso, &now);
        } else if (page != 0) {
            found = clock_find_in(page, &now);
        }
        if (found != NULL) {
            return found;
        }
    }
    return &clock_unknown;
}

const volatile clock_word *clock_check(const volatile clock_word *word) {
    uintptr_t at = (uintptr_t)word - SKIPPED_BYTES;
    for (int i = 0; i < TRIES && word != &clock_unknown; i++) {
        struct clock_moment now;
        clock_take_moment(&now);
        if (clock_matches((const volatile uint64_t *)at, &now)) {
            return word;
        }
    }
    return &clock_unknown;
}
