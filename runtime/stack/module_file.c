/* SPDX-License-Identifier: MIT */
/* module_file.c: headers and sections of an object's file. See module_file.h. */
#include "runtime/stack/module_file.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/machine/machine.h"

#include <fcntl.h>
#include <string.h>

/* The headers and, as linkers lay files out, the build-id. */
enum { COMPARED_BYTES = 1024, MOST_BYTES = 1 << 28 };

int module_file_read(const struct module_file *file, void *to, size_t size, uint64_t offset) {
    size_t done = 0;
    while (done < size) {
        long more = sys_pread(file->fd, (uint8_t *)to + done, size - done, offset + done);
        if (more <= 0) {
            return -1;
        }
        done += (size_t)more;
    }
    return 0;
}

/* Whether the file begins as what was loaded from it; fills its header. */
static int module_file_is_loaded(struct module_file *file, const struct memtrace_module *module) {
    _Alignas(ElfW(Ehdr)) uint8_t first[COMPARED_BYTES];
    if (module_file_read(file, first, sizeof first, 0) != 0 ||
        memcmp(first, (const void *)(uintptr_t)module->start, sizeof first) != 0) {
        return 0;
    }
    memcpy(&file->header, first, sizeof file->header);
    return file->header.e_ident[EI_CLASS] == MACHINE_ELF_CLASS &&
           file->header.e_shentsize == sizeof(ElfW(Shdr));
}

int module_file_open(const struct memtrace_module *module, struct module_file *file) {
    long fd =
        module->path[0] == '/' ? sys_open(module->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0) : -1;
    if (fd < 0) {
        return -1;
    }
    file->fd = (int)fd;
    if (sys_fstat(file->fd, &file->status) == 0 && S_ISREG(file->status.st_mode) &&
        module_file_is_loaded(file, module)) {
        return 0;
    }
    module_file_close(file);
    return -1;
}

void module_file_close(const struct module_file *file) {
    sys_close(file->fd);
}

static int module_file_header(const struct module_file *file, size_t number, ElfW(Shdr) * section) {
    return number < file->header.e_shnum
               ? module_file_read(file, section, sizeof *section,
                                  file->header.e_shoff + number * sizeof *section)
               : -1;
}

int module_file_section(const struct module_file *file, const char *wanted, uint64_t flags,
                        ElfW(Shdr) * section) {
    char name[16];
    size_t length = text_length(wanted) + 1;
    ElfW(Shdr) names;
    if (module_file_header(file, file->header.e_shstrndx, &names) != 0) {
        return -1;
    }
    for (size_t i = 1; i < file->header.e_shnum; i++) {
        if (module_file_header(file, i, section) != 0) {
            return -1;
        }
        if ((section->sh_type == SHT_PROGBITS || section->sh_type == MACHINE_DEBUG_SECTION) &&
            (section->sh_flags & (SHF_ALLOC | SHF_COMPRESSED)) == flags &&
            section->sh_size - 1 < MOST_BYTES &&
            module_file_read(file, name, length, names.sh_offset + section->sh_name) == 0 &&
            memcmp(name, wanted, length) == 0) {
            return 0;
        }
    }
    return -1;
}

int module_file_loaded(const struct module_file *file, const struct memtrace_module *module,
                       const char *wanted, uintptr_t *start, uintptr_t *end) {
    ElfW(Shdr) section;
    if (module_file_section(file, wanted, SHF_ALLOC, &section) != 0 ||
        section.sh_addr + section.sh_size > module->end - module->bias) {
        return -1;
    }
    *start = (uintptr_t)(module->bias + section.sh_addr);
    *end = *start + section.sh_size;
    return 0;
}
