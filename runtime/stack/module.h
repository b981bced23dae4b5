/* SPDX-License-Identifier: MIT */
/*
 * module.h: the loaded objects, each once, with their build-ids: those that appeared in a
 * backtrace, and, where the loader can be asked, all others (reach/loader.c). In a backtrace found
 * through the address itself, never by walking the loader's list: no loader lock, callable from the
 * allocation path, a handler, any thread. Records live in the profile.
 */
#ifndef RUNTIME_STACK_MODULE_H
#define RUNTIME_STACK_MODULE_H

#include "runtime/base/compiler.h"
#include "runtime/base/space.h"

#include <link.h>
#include <sys/stat.h>

enum { MODULE_LIMIT = 4096, MODULE_LEAF_ITEMS = 64 };

struct modules {
    struct space *space;
    /* Whose table it is: a light child shares that of its ancestor, and adds to it. */
    struct memtrace_header *header;
    struct memtrace_module *leaf[MODULE_LIMIT / MODULE_LEAF_ITEMS];
    struct trylock lock;   /* taken to add a record; who does not get it in time uses module 0 */
    char executable[2048]; /* the loader leaves the main program's name empty */
    uintptr_t executable_start;
    const void *noted; /* the newest object of the loader's list that is in the table: loader.c */
    char path[4096];   /* that is put together; under the lock */
    uint8_t retired[MODULE_LIMIT]; /* by id: its code has run its course: module_retire() */
};

/* Where an address is, as the loader knows it. */
struct module_place {
    uintptr_t start, end;
    const uint8_t *eh_frame_header; /* as libc_object's */
    size_t unwind_entries;
    uint32_t id;  /* 0: not in the table */
    int is_known; /* id is final, and it stays: what is learnt may be kept */
    int own;      /* the program's own code, not the system's */
};

void module_init(struct modules *modules, struct space *space, const char *executable);
/* 0, or -1: no object there (JIT code, a wild address). */
int module_find(struct modules *modules, uintptr_t address, struct module_place *place);
/* For a list in which each object stands once, and of which none can go meanwhile: begins to note
 * them; 0: not now. Notes the object at this address, unless it is known from before. Where the
 * table is full it does without: nothing is lost before the object is in a backtrace. */
uint32_t module_note_begin(struct modules *modules);
void module_note(struct modules *modules, uintptr_t address, uint32_t begun);
void module_note_end(struct modules *modules);
/* Whether Go's linker made the object: nearly all functions of Go keep frame pointers. */
int module_is_go(const struct modules *modules, const struct module_place *place);
/* The object at this address is about to be unmapped. Until a sweep notes that it is gone nothing
 * that is learnt of it is known: at its addresses there may be another at any moment. Calls gone()
 * if it was known. */
void module_retire(struct modules *modules, uintptr_t address,
                   void (*gone)(void *argument, uintptr_t start, uintptr_t end), void *argument);
/* After a dlclose: notes which objects are gone. Calls gone(argument, start, end) for each. While
 * nothing can be loaded or unloaded. */
void module_sweep(struct modules *modules, uint64_t now_ns,
                  void (*gone)(void *argument, uintptr_t start, uintptr_t end), void *argument);
struct memtrace_module *module_get(const struct modules *modules, uint32_t id);

/* ---- The file that an object was loaded from, for what the loader does not map or tell: its
 * sections (debug_frame.h, go_table.h). One that is not what was loaded is not used ---- */

struct module_file {
    int fd;
    ElfW(Ehdr) header;
    struct stat status;
};

/* 0, or -1: it is not there, or another one is. Never waits, whatever has its name by now. */
int module_file_open(const struct memtrace_module *module, struct module_file *file);
void module_file_close(const struct module_file *file);
/* All bytes [offset, offset + size): 0, or -1. */
int module_file_read(const struct module_file *file, void *to, size_t size, uint64_t offset);
/* The section of that name. flags: SHF_ALLOC, or 0 for one that is not loaded. 0, or -1: none. */
int module_file_section(const struct module_file *file, const char *wanted, uint64_t flags,
                        ElfW(Shdr) * section);

/* The same of one that is loaded: where it lies in the process. */
int module_file_loaded(const struct module_file *file, const struct memtrace_module *module,
                       const char *wanted, uintptr_t *start, uintptr_t *end);

#endif
