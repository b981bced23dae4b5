/* SPDX-License-Identifier: MIT */
/* objects.c: see objects.h. */
#define _GNU_SOURCE
#include "runtime/libc/objects.h"

#include "runtime/base/compiler.h"
#include "runtime/base/text.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <gnu/libc-version.h>

struct hold {
    void (*function)(void *argument);
    void *argument;
};

/* Called for the first object; that was all. */
static int objects_call_once(struct dl_phdr_info *info, size_t size, void *argument) {
    const struct hold *hold = argument;
    (void)info;
    (void)size;
    hold->function(hold->argument);
    return 1;
}

/* The C library's own, out of its own table: programs have one of theirs in front of it, which
 * lists what they remember and holds nothing. */
void objects_hold(void (*function)(void *argument), void *argument) {
    static int (*iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    struct hold hold = {function, argument};
    const struct link_map *libc = iterate == NULL ? objects_libc() : NULL;
    if (libc != NULL) {
        iterate = (__typeof__(iterate))objects_symbol(libc, "dl_iterate_phdr");
    }
    if (iterate != NULL) {
        iterate(objects_call_once, &hold);
    }
}

struct visit {
    void (*function)(void *argument, struct link_map *map);
    void *argument;
};

const struct r_debug *objects_next_list(const struct r_debug *list) {
    const struct r_debug_extended *extended = (const struct r_debug_extended *)(const void *)list;
    return _r_debug.r_version >= 2 ? (const struct r_debug *)extended->r_next : NULL;
}

static void objects_visit_all(void *argument) {
    const struct visit *visit = argument;
    for (const struct r_debug *list = &_r_debug; list != NULL; list = objects_next_list(list)) {
        for (struct link_map *map = list->r_map; map != NULL; map = map->l_next) {
            visit->function(visit->argument, map);
        }
    }
}

void objects_visit(void (*function)(void *argument, struct link_map *map), void *argument) {
    struct visit visit = {function, argument};
    objects_hold(objects_visit_all, &visit);
}

struct link_map *objects_at(const void *address) {
    struct dl_find_object found;
    return _dl_find_object((void *)address, &found) == 0 ? found.dlfo_link_map : NULL;
}

struct link_map *objects_libc(void) {
    return objects_at((void *)gnu_get_libc_version);
}

int objects_is_libc(const struct link_map *map) {
    return text_equal(text_base_name(map->l_name), LIBC_SO);
}

const ElfW(Dyn) * objects_dynamic(const struct link_map *map, ElfW(Sxword) tag) {
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == tag) {
            return entry;
        }
    }
    return NULL;
}

size_t objects_value(const struct link_map *map, ElfW(Sxword) tag) {
    const ElfW(Dyn) *entry = objects_dynamic(map, tag);
    return entry != NULL ? entry->d_un.d_val : 0;
}

/* The loader has made addresses of them, but not in objects whose dynamic section is read-only. */
const void *objects_address(const struct link_map *map, ElfW(Sxword) tag) {
    uintptr_t address = objects_value(map, tag);
    return (const void *)(address < map->l_addr ? address + map->l_addr : address);
}

/* Whether it is the one that is meant where nobody names a version (the ABI's description, "Symbol
 * Versioning": others of the name have the highest bit set). */
static int is_default(const struct link_map *map, uint32_t symbol) {
    const ElfW(Versym) *versions = objects_address(map, DT_VERSYM);
    return objects_dynamic(map, DT_VERSYM) == NULL || (versions[symbol] & 0x8000) == 0;
}

/* By the GNU hash table (the ABI's description: "GNU Hash ELF Sections"): number of buckets, first
 * symbol in it, words of the filter, shift; the filter; the buckets; a hash for each symbol, whose
 * lowest bit ends a bucket. */
static const ElfW(Sym) *
    objects_find_symbol(const struct link_map *map, const char *name, int by_default) {
    const uint32_t *table = objects_address(map, DT_GNU_HASH);
    const ElfW(Sym) *symbols = objects_address(map, DT_SYMTAB);
    const char *strings = objects_address(map, DT_STRTAB);
    const uint32_t *buckets;
    const uint32_t *hashes;
    uint32_t hash = 5381;
    uint32_t at;
    if (objects_dynamic(map, DT_GNU_HASH) == NULL || table[0] == 0) {
        return NULL;
    }
    for (const char *c = name; *c != '\0'; c++) {
        hash = hash * 33 + (unsigned char)*c;
    }
    buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof *table);
    hashes = buckets + table[0];
    for (at = buckets[hash % table[0]]; at >= table[1]; at++) {
        uint32_t other = hashes[at - table[1]];
        if ((other | 1) == (hash | 1) && text_equal(strings + symbols[at].st_name, name) &&
            (!by_default || is_default(map, at))) {
            return &symbols[at];
        }
        if ((other & 1) != 0) {
            break;
        }
    }
    return NULL;
}

void *objects_symbol(const struct link_map *map, const char *name) {
    const ElfW(Sym) *symbol = objects_find_symbol(map, name, 0);
    return symbol != NULL ? (void *)(map->l_addr + symbol->st_value) : NULL;
}

/* (Which one an indirect function is only the loader says.) */
void *objects_function(const struct link_map *map, const char *name) {
    const ElfW(Sym) *symbol = objects_find_symbol(map, name, 1);
    int is_plain = symbol != NULL && (symbol->st_info & 0xf) != STT_GNU_IFUNC;
    return is_plain ? (void *)(map->l_addr + symbol->st_value) : NULL;
}

/* --- what is next ----------------------------------------------------------------------------- */

/* The last object of those that the program was started with, which stay, and so do their places in
 * the list. (Whatever is opened later allocates first, for which we look for what is next.) */
static const struct link_map *last_of_start(const struct link_map *map) {
    static const struct link_map *last;
    if (LOAD_RELAXED(&last) == NULL) {
        while (map->l_next != NULL) {
            map = map->l_next;
        }
        STORE_RELAXED(&last, map);
    }
    return LOAD_RELAXED(&last);
}

static int is_later(const struct link_map *map, const struct link_map *other) {
    while (map != NULL && map != other) {
        map = map->l_prev;
    }
    return map != NULL;
}

void *objects_next(const char *name) {
    const struct link_map *own = objects_at((void *)objects_next);
    const struct link_map *libc = objects_libc();
    const struct link_map *map;
    const struct link_map *last;
    if (own == NULL || libc == NULL || !is_later(libc, own)) {
        return NULL;
    }
    map = own->l_next;
    last = last_of_start(libc);
    while (map != last && objects_dynamic(map, DT_GNU_HASH) != NULL &&
           objects_find_symbol(map, name, 1) == NULL) {
        map = map->l_next;
    }
    return objects_function(map, name);
}

/* dlsym() passes over what an object has in an old version only, by which the program may be bound
 * to it: all of libc_malloc_debug.so is so. */
void *objects_nearer(const char *name, void *next) {
    const struct link_map *last = objects_at(next);
    const struct link_map *map = objects_at((void *)objects_nearer);
    for (map = map != NULL && last != NULL ? map->l_next : NULL; map != NULL && map != last;
         map = map->l_next) {
        void *function = objects_symbol(map, name);
        if (function != NULL) {
            return function;
        }
    }
    return next;
}
