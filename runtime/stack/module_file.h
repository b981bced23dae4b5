/* SPDX-License-Identifier: MIT */
/*
 * module_file.h: the file that an object was loaded from, for what the loader does not map or tell:
 * its sections (debug_frame.h, go_table.h). One that is not what was loaded is not used.
 */
#ifndef RUNTIME_STACK_MODULE_FILE_H
#define RUNTIME_STACK_MODULE_FILE_H

#include "runtime/stack/module.h"

#include <link.h>
#include <sys/stat.h>

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
