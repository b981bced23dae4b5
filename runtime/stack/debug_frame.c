/* SPDX-License-Identifier: MIT */
/* debug_frame.c: reading .debug_frame sections. See debug_frame.h. */
#include "runtime/stack/debug_frame.h"

#include "runtime/base/sys.h"
#include "runtime/stack/module.h"

enum { MODULE_UNKNOWN = 0, MODULE_WITHOUT = 1, MODULE_FILE = 2 };
enum { SLACK = 16 };

/* --- the index -------------------------------------------------------------------------------- */

/* Heap order below item i: none starts later than what is above it. */
static void debug_frame_sift(struct debug_frame_item *item, size_t i, size_t count) {
    struct debug_frame_item moved = item[i];
    size_t child;
    while ((child = 2 * i + 1) < count) {
        child += child + 1 < count && item[child + 1].start > item[child].start;
        if (item[child].start <= moved.start) {
            break;
        }
        item[i] = item[child];
        i = child;
    }
    item[i] = moved;
}

/* Heap sort: qsort() may allocate. */
static void debug_frame_sort(struct debug_frame_item *item, size_t count) {
    for (size_t i = count / 2; i-- > 0;) {
        debug_frame_sift(item, i, count);
    }
    for (size_t last = count; last-- > 1;) {
        struct debug_frame_item greatest = item[0];
        item[0] = item[last];
        item[last] = greatest;
        debug_frame_sift(item, 0, last);
    }
}

/* Notes the entries that are about code; `item` NULL: only counts them. is_loaded: of an .eh_frame,
 * whose addresses are those of the process. */
static size_t debug_frame_collect(const struct cfi_section *section, int is_loaded,
                                  struct debug_frame_item *item) {
    size_t count = 0;
    const uint8_t *next;
    for (const uint8_t *at = section->start; at < section->end; at = next) {
        uintptr_t start;
        uintptr_t end;
        next = cfi_next(at);
        if (next == NULL || next <= at || next > section->end) {
            break;
        }
        if (cfi_range(is_loaded ? NULL : section, at, &start, &end) == 0) {
            if (item != NULL) {
                item[count] = (struct debug_frame_item){start - section->bias, at};
            }
            count++;
        }
    }
    return count;
}

static int debug_frame_make_index(struct debug_frame_file *file) {
    size_t loaded = debug_frame_collect(&file->loaded, 1, NULL);
    file->count = loaded + debug_frame_collect(&file->section, 0, NULL);
    file->item = file->count != 0 ? sys_map(file->count * sizeof *file->item) : NULL;
    if (file->item == NULL) {
        return -1;
    }
    debug_frame_collect(&file->loaded, 1, file->item);
    debug_frame_collect(&file->section, 0, file->item + loaded);
    debug_frame_sort(file->item, file->count);
    return 0;
}

/* The entry that starts last at or below `address`; NULL: none. */
static const uint8_t *debug_frame_search(const struct debug_frame_file *file, uintptr_t address) {
    size_t low = 0;
    size_t high = file->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (file->item[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low != 0 ? file->item[low - 1].entry : NULL;
}

/* --- modules ---------------------------------------------------------------------------------- */

static uint64_t debug_frame_changed_ns(const struct stat *status) {
    return (uint64_t)status->st_mtim.tv_sec * UINT64_C(1000000000) +
           (uint64_t)status->st_mtim.tv_nsec;
}

static int debug_frame_is_file(const struct debug_frame_file *file, const struct stat *status) {
    return file->device == status->st_dev && file->inode == status->st_ino &&
           file->size == (uint64_t)status->st_size &&
           file->changed_ns == debug_frame_changed_ns(status);
}

/* What is in the open file, kept as one more. */
static uint16_t debug_frame_add_file(struct debug_frames *frames, const struct module_file *opened,
                                     const struct memtrace_module *module) {
    const struct stat *status = &opened->status;
    struct debug_frame_file *file = &frames->file[frames->count];
    ElfW(Shdr) section;
    uint8_t *copy = NULL;
    uintptr_t start;
    uintptr_t end;
    *file = (struct debug_frame_file){.device = status->st_dev,
                                      .inode = status->st_ino,
                                      .size = (uint64_t)status->st_size,
                                      .changed_ns = debug_frame_changed_ns(status)};
    /* An .eh_frame without its search table, as musl-gcc links programs: read where it was loaded.
     */
    if (module_file_section(opened, ".eh_frame_hdr", SHF_ALLOC, &section) != 0 &&
        module_file_loaded(opened, module, ".eh_frame", &start, &end) == 0) {
        file->loaded = (struct cfi_section){(const void *)start, (const void *)end, module->bias};
    }
    if (module_file_section(opened, ".debug_frame", 0, &section) == 0 &&
        (copy = sys_map(section.sh_size + SLACK)) != NULL) {
        if (module_file_read(opened, copy, section.sh_size, section.sh_offset) == 0) {
            file->section.start = copy;
            file->section.end = copy + section.sh_size;
        } else {
            sys_unmap(copy, section.sh_size + SLACK);
            copy = NULL;
        }
    }
    if (debug_frame_make_index(file) != 0) {
        if (copy != NULL) {
            sys_unmap(copy, section.sh_size + SLACK);
        }
        return MODULE_WITHOUT;
    }
    return (uint16_t)(MODULE_FILE + frames->count++);
}

static uint16_t debug_frame_read_file(struct debug_frames *frames,
                                      const struct memtrace_module *module) {
    uint16_t found = MODULE_WITHOUT;
    struct module_file opened;
    if (module_file_open(module, &opened) != 0) {
        return found;
    }
    for (uint32_t i = 0; i < frames->count && found == MODULE_WITHOUT; i++) {
        const struct debug_frame_file *file = &frames->file[i];
        if (debug_frame_is_file(file, &opened.status) &&
            (file->loaded.start == NULL || file->loaded.bias == module->bias)) {
            found = (uint16_t)(MODULE_FILE + i);
        }
    }
    if (found == MODULE_WITHOUT && frames->count < DEBUG_FRAME_FILES) {
        found = debug_frame_add_file(frames, &opened, module);
    }
    module_file_close(&opened);
    return found;
}

/* Signals are held back: a handler that leaves by longjmp must not leave the lock behind. */
static COLD uint16_t debug_frame_ask(struct debug_frames *frames,
                                     const struct memtrace_module *module) {
    struct sys_signals mask = sys_block_signals();
    uint16_t found = MODULE_UNKNOWN;
    if (sys_take(&frames->lock)) {
        found = LOAD_RELAXED(&frames->of_module[module->id]);
        if (found == MODULE_UNKNOWN) {
            found = debug_frame_read_file(frames, module);
            STORE_RELEASE(&frames->of_module[module->id], found);
        }
        trylock_release(&frames->lock);
    }
    sys_restore_signals(mask);
    return found;
}

int debug_frame_find(struct debug_frames *frames, const struct memtrace_module *module,
                     uintptr_t address, struct cfi_row *row) {
    uint16_t found = LOAD_ACQUIRE(&frames->of_module[module->id]);
    const struct debug_frame_file *file;
    struct cfi_section section;
    const uint8_t *entry;
    if (found == MODULE_UNKNOWN && (found = debug_frame_ask(frames, module)) == MODULE_UNKNOWN) {
        return 1;
    }
    if (found == MODULE_WITHOUT) {
        return -1;
    }
    file = &frames->file[found - MODULE_FILE];
    section = file->section;
    section.bias = module->bias;
    entry = debug_frame_search(file, address - module->bias);
    if (entry >= file->loaded.start && entry < file->loaded.end) {
        return cfi_read(NULL, entry, address, row);
    }
    return entry != NULL ? cfi_read(&section, entry, address, row) : -1;
}
