/* SPDX-License-Identifier: MIT */
/* go_table.c: reading Go's table of functions (go/src/runtime/symtab.go). See go_table.h. */
#include "runtime/stack/go_table.h"

#include "runtime/base/compiler.h"
#include "runtime/stack/module.h"

#include <elf.h>

enum { TABLE_UNKNOWN = 0, TABLE_NONE = 1 };
enum { FLAG_TOP_FRAME = 1 };
#define MAGIC UINT32_C(0xfffffff1) /* Go 1.20 and newer */

/* runtime.pcHeader, on machines with 64 bits. */
struct header {
    uint32_t magic;
    uint8_t zero[2];
    uint8_t shortest_instruction;
    uint8_t pointer_bytes;
    uint64_t functions;
    uint64_t files;
    uint64_t text_start; /* 0 since Go 1.26 */
    uint64_t names, units, file_table, pc_tables;
    uint64_t index; /* from the header on: an item for each function, and the end of the last one */
};

/* runtime.functab: from text_start on, and from the index on. */
struct item {
    uint32_t start, function;
};

/* runtime._func. */
struct function {
    uint32_t start;
    uint32_t about_frame[9];
    uint8_t id;
    uint8_t flags;
};

static int go_table_is_understood(const struct header *header, size_t size,
                                  const struct memtrace_module *module) {
    return size >= sizeof *header && header->magic == MAGIC &&
           header->pointer_bytes == sizeof(uint64_t) && header->text_start >= module->start &&
           header->text_start < module->end && header->index < size &&
           header->functions < (size - header->index) / sizeof(struct item);
}

/* C's linker puts it somewhere among the data that it makes read-only, where the program may lie
 * anywhere. */
static COLD uintptr_t go_table_look_in(const struct module_file *file,
                                       const struct memtrace_module *module) {
    uintptr_t start;
    uintptr_t end;
    if (module_file_loaded(file, module, ".gopclntab", &start, &end) == 0) {
        return go_table_is_understood((const void *)start, end - start, module) ? start
                                                                                : TABLE_NONE;
    }
    if (module_file_loaded(file, module, ".data.rel.ro", &start, &end) == 0) {
        start += -start % sizeof(uint64_t);
        for (; start < end; start += sizeof(uint64_t)) {
            if (go_table_is_understood((const void *)start, end - start, module)) {
                return start;
            }
        }
    }
    return TABLE_NONE;
}

/* The item that starts last at or below `offset`; NULL: none. */
static const struct item *go_table_search(const struct header *header, uint64_t offset) {
    const struct item *items = (const void *)((const uint8_t *)header + header->index);
    size_t low = 0;
    size_t high = header->functions;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (items[middle].start <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low != 0 && offset < items[header->functions].start ? &items[low - 1] : NULL;
}

int go_table_is_outermost(struct go_tables *tables, const struct memtrace_module *module,
                          uintptr_t address) {
    uintptr_t found = LOAD_ACQUIRE(&tables->of_module[module->id]);
    const struct header *header;
    const struct item *item;
    const struct function *function;
    if (found == TABLE_UNKNOWN) { /* threads that ask at the same time find the same */
        struct module_file file;
        found = TABLE_NONE;
        if (module_file_open(module, &file) == 0) {
            found = go_table_look_in(&file, module);
            module_file_close(&file);
        }
        STORE_RELEASE(&tables->of_module[module->id], found);
    }
    if (found == TABLE_NONE) {
        return 0;
    }
    header = (const struct header *)found;
    item = address >= header->text_start ? go_table_search(header, address - header->text_start)
                                         : NULL;
    if (item == NULL) {
        return 0;
    }
    function = (const void *)(found + (uintptr_t)header->index + item->function);
    return (uintptr_t)(function + 1) <= module->end && function->start == item->start &&
           (function->flags & FLAG_TOP_FRAME) != 0;
}
