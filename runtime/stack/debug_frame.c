/* SPDX-License-Identifier: MIT */
/* debug_frame.c: reading .debug_frame sections. See debug_frame.h. */
#include "runtime/stack/debug_frame.h"

#include "runtime/base/sys.h"
#include "runtime/machine/machine.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>

enum { MODULE_UNKNOWN = 0, MODULE_WITHOUT = 1, MODULE_FILE = 2 };
/* The headers and, as linkers lay files out, the build-id. */
enum { COMPARED_BYTES = 1024, MOST_BYTES = 1 << 28, SLACK = 16 };

static int read_all(int fd, void *to, size_t size, uint64_t offset) {
    size_t done = 0;
    while (done < size) {
        long more = sys_pread(fd, (uint8_t *)to + done, size - done, offset + done);
        if (more <= 0) {
            return -1;
        }
        done += (size_t)more;
    }
    return 0;
}

/* --- the file --------------------------------------------------------------------------------- */

/* Whether the file begins as what was loaded from it; fills its header. */
static int is_loaded(int fd, const struct memtrace_module *module, ElfW(Ehdr) * header) {
    _Alignas(ElfW(Ehdr)) uint8_t first[COMPARED_BYTES];
    if (read_all(fd, first, sizeof first, 0) != 0 ||
        memcmp(first, (const void *)(uintptr_t)module->start, sizeof first) != 0) {
        return 0;
    }
    memcpy(header, first, sizeof *header);
    return header->e_ident[EI_CLASS] == MACHINE_ELF_CLASS &&
           header->e_shentsize == sizeof(ElfW(Shdr));
}

static int section_header(int fd, const ElfW(Ehdr) * header, size_t number, ElfW(Shdr) * section) {
    return number < header->e_shnum
               ? read_all(fd, section, sizeof *section, header->e_shoff + number * sizeof *section)
               : -1;
}

/* flags: SHF_ALLOC, or 0 for a section that is not loaded. */
static int find_section(int fd, const ElfW(Ehdr) * header, const char *wanted, uint64_t flags,
                        ElfW(Shdr) * section) {
    char name[16];
    size_t length = strlen(wanted) + 1;
    ElfW(Shdr) names;
    if (section_header(fd, header, header->e_shstrndx, &names) != 0) {
        return -1;
    }
    for (size_t i = 1; i < header->e_shnum; i++) {
        if (section_header(fd, header, i, section) != 0) {
            return -1;
        }
        if ((section->sh_type == SHT_PROGBITS || section->sh_type == MACHINE_DEBUG_SECTION) &&
            (section->sh_flags & (SHF_ALLOC | SHF_COMPRESSED)) == flags &&
            section->sh_size - 1 < MOST_BYTES &&
            read_all(fd, name, length, names.sh_offset + section->sh_name) == 0 &&
            memcmp(name, wanted, length) == 0) {
            return 0;
        }
    }
    return -1;
}

static void copy_section(int fd, const ElfW(Shdr) * header, struct cfi_section *section) {
    uint8_t *copy = sys_map(header->sh_size + SLACK);
    if (copy != NULL && read_all(fd, copy, header->sh_size, header->sh_offset) != 0) {
        sys_unmap(copy, header->sh_size + SLACK);
        copy = NULL;
    }
    if (copy != NULL) {
        *section = (struct cfi_section){.start = copy, .end = copy + header->sh_size};
    }
}

/* --- the index -------------------------------------------------------------------------------- */

/* Heap order below item i: none starts later than what is above it. */
static void sift(struct debug_frame_item *item, size_t i, size_t count) {
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
static void sort(struct debug_frame_item *item, size_t count) {
    for (size_t i = count / 2; i-- > 0;) {
        sift(item, i, count);
    }
    for (size_t last = count; last-- > 1;) {
        struct debug_frame_item greatest = item[0];
        item[0] = item[last];
        item[last] = greatest;
        sift(item, 0, last);
    }
}

/* Notes the entries that are about code; `item` NULL: only counts them. is_loaded: of an .eh_frame,
 * whose addresses are those of the process. */
static size_t collect(const struct cfi_section *section, int is_loaded,
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

static int make_index(struct debug_frame_file *file) {
    size_t loaded = collect(&file->loaded, 1, NULL);
    file->count = loaded + collect(&file->section, 0, NULL);
    file->item = file->count != 0 ? sys_map(file->count * sizeof *file->item) : NULL;
    if (file->item == NULL) {
        return -1;
    }
    collect(&file->loaded, 1, file->item);
    collect(&file->section, 0, file->item + loaded);
    sort(file->item, file->count);
    return 0;
}

/* The entry that starts last at or below `address`; NULL: none. */
static const uint8_t *search(const struct debug_frame_file *file, uintptr_t address) {
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

static int is_file(const struct debug_frame_file *file, const struct stat *status) {
    return file->device == status->st_dev && file->inode == status->st_ino &&
           file->size == (uint64_t)status->st_size &&
           file->changed_ns == (uint64_t)status->st_mtim.tv_sec * UINT64_C(1000000000) +
                                   (uint64_t)status->st_mtim.tv_nsec;
}

/* An .eh_frame without its search table, as musl-gcc links programs: read where it was loaded. */
static void find_loaded(int fd, const ElfW(Ehdr) * header, const struct memtrace_module *module,
                        struct debug_frame_file *file) {
    ElfW(Shdr) section;
    if (find_section(fd, header, ".eh_frame_hdr", SHF_ALLOC, &section) == 0 ||
        find_section(fd, header, ".eh_frame", SHF_ALLOC, &section) != 0 ||
        section.sh_addr + section.sh_size > module->end - module->bias) {
        return;
    }
    file->loaded.start = (const uint8_t *)(uintptr_t)(module->bias + section.sh_addr);
    file->loaded.end = file->loaded.start + section.sh_size;
    file->loaded.bias = module->bias;
}

/* What is in the open file, kept as one more. */
static uint16_t add_file(struct debug_frames *frames, int fd, const ElfW(Ehdr) * header,
                         const struct memtrace_module *module, const struct stat *status) {
    struct debug_frame_file *file = &frames->file[frames->count];
    ElfW(Shdr) section;
    *file = (struct debug_frame_file){.device = status->st_dev,
                                      .inode = status->st_ino,
                                      .size = (uint64_t)status->st_size,
                                      .changed_ns =
                                          (uint64_t)status->st_mtim.tv_sec * UINT64_C(1000000000) +
                                          (uint64_t)status->st_mtim.tv_nsec};
    find_loaded(fd, header, module, file);
    if (find_section(fd, header, ".debug_frame", 0, &section) == 0) {
        copy_section(fd, &section, &file->section);
    }
    if (make_index(file) != 0) {
        if (file->section.start != NULL) {
            sys_unmap((void *)file->section.start,
                      (size_t)(file->section.end - file->section.start) + SLACK);
        }
        return MODULE_WITHOUT;
    }
    return (uint16_t)(MODULE_FILE + frames->count++);
}

/* Never waits: what is opened may be anything by now. */
static uint16_t read_file(struct debug_frames *frames, const struct memtrace_module *module) {
    long fd =
        module->path[0] == '/' ? sys_open(module->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0) : -1;
    uint16_t found = MODULE_WITHOUT;
    struct stat status;
    ElfW(Ehdr) header;
    if (fd < 0) {
        return found;
    }
    if (sys_fstat((int)fd, &status) == 0 && S_ISREG(status.st_mode) &&
        is_loaded((int)fd, module, &header)) {
        for (uint32_t i = 0; i < frames->count && found == MODULE_WITHOUT; i++) {
            const struct debug_frame_file *file = &frames->file[i];
            if (is_file(file, &status) &&
                (file->loaded.start == NULL || file->loaded.bias == module->bias)) {
                found = (uint16_t)(MODULE_FILE + i);
            }
        }
        if (found == MODULE_WITHOUT && frames->count < DEBUG_FRAME_FILES) {
            found = add_file(frames, (int)fd, &header, module, &status);
        }
    }
    sys_close((int)fd);
    return found;
}

/* Signals are held back: a handler that leaves by longjmp must not leave the lock behind. */
static COLD uint16_t ask(struct debug_frames *frames, const struct memtrace_module *module) {
    struct sys_signals mask = sys_block_signals();
    uint16_t found = MODULE_UNKNOWN;
    if (sys_take(&frames->lock)) {
        found = LOAD_RELAXED(&frames->of_module[module->id]);
        if (found == MODULE_UNKNOWN) {
            found = read_file(frames, module);
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
    if (found == MODULE_UNKNOWN && (found = ask(frames, module)) == MODULE_UNKNOWN) {
        return 1;
    }
    if (found == MODULE_WITHOUT) {
        return -1;
    }
    file = &frames->file[found - MODULE_FILE];
    section = file->section;
    section.bias = module->bias;
    entry = search(file, address - module->bias);
    if (entry >= file->loaded.start && entry < file->loaded.end) {
        return cfi_read(NULL, entry, address, row);
    }
    return entry != NULL ? cfi_read(&section, entry, address, row) : -1;
}
