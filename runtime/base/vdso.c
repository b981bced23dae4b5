/* SPDX-License-Identifier: MIT */
/* vdso.c: finds the function by the vDSO's own dynamic section. See vdso.h. */
#define _GNU_SOURCE
#include "runtime/base/vdso.h"

#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/machine/machine.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

typedef int clock_function(int clock, struct vdso_time *now);

/* What the dynamic section tells, as addresses. */
struct tables {
    const char *strings;
    const ElfW(Sym) * symbols;
    const uint32_t *hash; /* of System V, which tells how many symbols there are */
    const uint32_t
        *gnu_hash; /* where there is none of the former, as on AArch64 from Linux 6.8 on */
};

static uint32_t count_of_gnu_hash(const uint32_t *table) {
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

static uint32_t count_symbols(const struct tables *tables) {
    return tables->hash != NULL       ? tables->hash[1]
           : tables->gnu_hash != NULL ? count_of_gnu_hash(tables->gnu_hash)
                                      : 0;
}

static const void *table_at(uintptr_t bias, const ElfW(Dyn) * entry) {
    return (const void *)(bias + entry->d_un.d_ptr);
}

static struct tables read_tables(uintptr_t bias, const ElfW(Dyn) * entry) {
    struct tables tables = {0};
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_STRTAB:
            tables.strings = table_at(bias, entry);
            break;
        case DT_SYMTAB:
            tables.symbols = table_at(bias, entry);
            break;
        case DT_HASH:
            tables.hash = table_at(bias, entry);
            break;
        case DT_GNU_HASH:
            tables.gnu_hash = table_at(bias, entry);
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
    struct tables tables;
    for (size_t i = 0; i < file->e_phnum; i++) {
        if (header[i].p_type == PT_LOAD) {
            bias = (uintptr_t)vdso + header[i].p_offset - header[i].p_vaddr;
        }
    }
    for (size_t i = 0; i < file->e_phnum; i++) {
        if (header[i].p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)((uintptr_t)vdso + header[i].p_offset);
        }
    }
    tables = read_tables(bias, dynamic);
    if (tables.strings == NULL || tables.symbols == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < count_symbols(&tables); i++) {
        if (tables.symbols[i].st_shndx != SHN_UNDEF &&
            text_equal(tables.strings + tables.symbols[i].st_name, name)) {
            return (void *)(bias + tables.symbols[i].st_value);
        }
    }
    return NULL;
}

static int by_call(int clock, struct vdso_time *now) {
    return sys_clock_call(clock, &now->s, &now->ns);
}

static clock_function *find(void) {
    const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
    void *function = vdso != NULL ? vdso_symbol(vdso, MACHINE_VDSO_CLOCK) : NULL;
    return function != NULL ? (clock_function *)function : by_call;
}

/* Found by whoever comes first; two find the same. */
int vdso_clock(int clock, struct vdso_time *now) {
    static clock_function *known;
    clock_function *function = LOAD_RELAXED(&known);
    if (UNLIKELY(function == NULL)) {
        function = find();
        STORE_RELAXED(&known, function);
    }
    return function(clock, now);
}
