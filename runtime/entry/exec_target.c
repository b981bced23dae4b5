/* SPDX-License-Identifier: MIT */
/* exec_target.c: looks into an ELF file or a script. See exec_environment.h. */
#define _GNU_SOURCE
#include "runtime/entry/exec_environment.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/libc/libc.h"
#include "runtime/machine/machine.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>

enum { MOST_SEGMENTS = 64, MOST_ENTRIES = 512, MOST_NAMES = 4 << 20, NAMES_AT_ONCE = 2048 };

/* An open ELF file and what its program headers say. */
struct target {
    int fd;
    const Elf64_Ehdr *header;
    Elf64_Phdr interpreter, dynamic; /* p_type PT_NULL: there is none */
};

static int read_at(const struct target *target, void *to, size_t size, uint64_t offset) {
    return sys_pread(target->fd, to, size, offset) == (long)size;
}

static void read_segments(struct target *target) {
    for (unsigned i = 0; i < target->header->e_phnum && i < MOST_SEGMENTS; i++) {
        Elf64_Phdr segment;
        if (!read_at(target, &segment, sizeof segment,
                     target->header->e_phoff + (uint64_t)i * sizeof segment)) {
            return;
        }
        if (segment.p_type == PT_INTERP) {
            target->interpreter = segment;
        } else if (segment.p_type == PT_DYNAMIC) {
            target->dynamic = segment;
        }
    }
}

/* Where in the file an address of the program lies; 0: nowhere. */
static uint64_t offset_of(const struct target *target, uint64_t address) {
    for (unsigned i = 0; i < target->header->e_phnum && i < MOST_SEGMENTS; i++) {
        Elf64_Phdr segment;
        if (read_at(target, &segment, sizeof segment,
                    target->header->e_phoff + (uint64_t)i * sizeof segment) &&
            segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
            address < segment.p_vaddr + segment.p_filesz) {
            return address - segment.p_vaddr + segment.p_offset;
        }
    }
    return 0;
}

/* The value of the first dynamic entry with this tag from *at on, which moves behind it. */
static int next_entry(const struct target *target, int64_t tag, unsigned *at, uint64_t *value) {
    for (; *at < MOST_ENTRIES && *at < target->dynamic.p_filesz / sizeof(Elf64_Dyn);) {
        Elf64_Dyn entry;
        if (!read_at(target, &entry, sizeof entry,
                     target->dynamic.p_offset + (uint64_t)*at * sizeof entry) ||
            entry.d_tag == DT_NULL) {
            return 0;
        }
        (*at)++;
        if (entry.d_tag == tag) {
            *value = entry.d_un.d_val;
            return 1;
        }
    }
    return 0;
}

/* AddressSanitizer's library ends a program where another one comes before it, unless it is told
 * not to (othermalloc.c): a program that tells it something itself is not told by us. */
static const char teller[] = "__asan_default_options";

static int has_teller(const char *names, size_t size) {
    for (size_t at = 0; at + sizeof teller <= size; at++) {
        if (names[at] == '_' && __builtin_memcmp(names + at, teller, sizeof teller) == 0) {
            return 1;
        }
    }
    return 0;
}

/* By the names of the program's dynamic symbols, read piece by piece. */
static int tells_sanitizer(const struct target *target) {
    char names[NAMES_AT_ONCE];
    unsigned first = 0;
    unsigned second = 0;
    uint64_t start = 0;
    uint64_t size = 0;
    if (target->dynamic.p_type != PT_DYNAMIC || !next_entry(target, DT_STRTAB, &first, &start) ||
        !next_entry(target, DT_STRSZ, &second, &size) || (start = offset_of(target, start)) == 0) {
        return 0;
    }
    for (uint64_t at = 0; at < size && at < MOST_NAMES; at += sizeof names - sizeof teller) {
        size_t piece = size - at < sizeof names ? (size_t)(size - at) : sizeof names;
        long got = sys_pread(target->fd, names, piece, start + at);
        if (got <= 0 || has_teller(names, (size_t)got)) {
            return got > 0;
        }
    }
    return 0;
}

static int has_our_loader(const struct target *target) {
    char path[256] = "";
    if (target->interpreter.p_type != PT_INTERP) {
        return 1; /* static: nothing is preloaded */
    }
    return sys_pread(target->fd, path, sizeof path - 1, target->interpreter.p_offset) <= 0 ||
           text_starts(text_base_name(path), libc_loader_name());
}

static int elf_takes_preload(int fd, const Elf64_Ehdr *header) {
    struct target target = {.fd = fd, .header = header};
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != MACHINE_ELF ||
        header->e_phentsize != sizeof(Elf64_Phdr)) {
        return 0;
    }
    read_segments(&target);
    return has_our_loader(&target) && !tells_sanitizer(&target);
}

/* The program behind "#!", at the start of the text; empty: there is none. */
static void take_interpreter(char *text) {
    char *from = text + 2;
    char *to = text;
    if (text[0] != '#' || text[1] != '!') {
        text[0] = '\0';
        return;
    }
    while (*from == ' ' || *from == '\t') {
        from++;
    }
    while (*from != '\0' && *from != ' ' && *from != '\t' && *from != '\n') {
        *to++ = *from++;
    }
    *to = '\0';
}

int exec_target_takes_preload(const char *path) {
    union {
        Elf64_Ehdr elf;
        char text[256];
    } start;
    for (int scripts = 0; scripts < 2; scripts++) {
        long fd = sys_open(path, O_RDONLY | O_NONBLOCK, 0);
        long size = fd < 0 ? fd : sys_pread((int)fd, &start, sizeof start - 1, 0);
        int is_elf = size >= (long)sizeof start.elf &&
                     __builtin_memcmp(start.elf.e_ident, ELFMAG, SELFMAG) == 0;
        int takes = is_elf ? elf_takes_preload((int)fd, &start.elf) : 1;
        if (fd >= 0) {
            sys_close((int)fd);
        }
        if (is_elf || size <= 0) {
            return takes;
        }
        start.text[size] = '\0';
        take_interpreter(start.text);
        if (start.text[0] == '\0') {
            return 1;
        }
        path = start.text;
    }
    return 1;
}
