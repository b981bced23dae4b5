/* SPDX-License-Identifier: MIT */
/*
 * relocs.h: the words of loaded objects that the loader fills with addresses by name: of the PLT
 * and the GOT, by which functions are called, and in data. For inject.c and attach_words.c.
 */
#ifndef RUNTIME_REACH_RELOCS_H
#define RUNTIME_REACH_RELOCS_H

#include <link.h>
#include <stdint.h>

enum reloc_kind { RELOC_CALL, RELOC_GOT, RELOC_DATA };

struct reloc {
    uintptr_t *at;
    struct link_map *object; /* that it lies in */
    const ElfW(Sym) * symbol;
    const char *name;
    enum reloc_kind kind;
    int is_protected; /* RELRO: read-only since the object was relocated */
};

/* Calls it for each word of each object that is relocated but ours, while nothing can be loaded or
 * unloaded. Those without an addend only, which are an address and nothing else. */
void relocs_visit(void (*function)(void *argument, const struct reloc *word), void *argument);

/* By one compare-and-swap: who calls through the word at the same time gets the one or the other.
 * 0, or -1. */
int relocs_store(const struct reloc *word, uintptr_t old, uintptr_t new);

/* Whether the object's word that leads to itself is a C library's that is bound: not one that is
 * still to be bound, nor what an allocator says of itself. */
int relocs_is_own_call(const struct reloc *word, uintptr_t target);

#endif
