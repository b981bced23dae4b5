/* SPDX-License-Identifier: MIT */
/*
 * debug_frame.h: unwind information of code that was built without .eh_frame
 * (-fno-asynchronous-unwind-tables -g). It stands in a section .debug_frame of the object's file,
 * which the loader does not map.
 *
 * The file is read when the first frame without .eh_frame is met in an object that has it, and
 * never again: what was found stays, for the life of the process and for every object that is
 * loaded from the same file. Copied, not mapped: a file that is cut off later would end the program
 * by SIGBUS. A file that is not the one that was loaded is not used. Sections that are compressed,
 * and files with debug information apart, are not either.
 *
 * The same for an .eh_frame without the table by which it is searched (programs of musl-gcc), which
 * is loaded: the file tells where it lies.
 */
#ifndef RUNTIME_STACK_DEBUG_FRAME_H
#define RUNTIME_STACK_DEBUG_FRAME_H

#include "runtime/stack/cfi.h"
#include "runtime/stack/module.h"

enum { DEBUG_FRAME_FILES = 256 };

/* An entry, in either section, by the start of its code as the file has it. */
struct debug_frame_item {
    uintptr_t start;
    const uint8_t *entry;
};

struct debug_frame_file {
    uint64_t device, inode, size, changed_ns;
    struct cfi_section section;    /* .debug_frame; bias 0 */
    struct cfi_section loaded;     /* .eh_frame, of one object, by its bias */
    struct debug_frame_item *item; /* by start, growing */
    size_t count;
};

struct debug_frames {
    struct trylock lock;              /* held while one file is read */
    uint16_t of_module[MODULE_LIMIT]; /* 0: not asked yet; 1: it has none; else 2 + its file */
    uint32_t count;
    struct debug_frame_file file[DEBUG_FRAME_FILES];
};

/* The row for `address` in this object. 0; -1: there is none; 1: not now, since the file is being
 * read. */
int debug_frame_find(struct debug_frames *frames, const struct memtrace_module *module,
                     uintptr_t address, struct cfi_row *row);

#endif
