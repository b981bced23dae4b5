/* SPDX-License-Identifier: MIT */
/* exec_target.c: looks into an ELF file or a script. See exec_environment.h. */
#define _GNU_SOURCE
#include "runtime/process/exec_environment.h"

#include "memtrace/emulator.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>

enum { MOST_SEGMENTS = 64, MOST_ENTRIES = 512, MOST_NAMES = 4 << 20, NAMES_AT_ONCE = 2048 };

/* An open ELF file and what its program headers say. */
struct target {
    int fd;
    const ElfW(Ehdr) * header;
    ElfW(Phdr) interpreter, dynamic; /* p_type PT_NULL: there is none */
};

static int read_at(const struct target *target, void *to, size_t size, uint64_t offset) {
    return sys_pread(target->fd, to, size, offset) == (long)size;
}

/* 1, or 0: there are no more. */
static int read_segment(const struct target *target, unsigned i, ElfW(Phdr) * segment) {
    return i < target->header->e_phnum && i < MOST_SEGMENTS &&
           read_at(target, segment, sizeof *segment,
                   target->header->e_phoff + (uint64_t)i * sizeof *segment);
}

/* Where in the file an address of the program lies; 0: nowhere. */
static uint64_t offset_of(const struct target *target, uint64_t address) {
    ElfW(Phdr) segment;
    for (unsigned i = 0; read_segment(target, i, &segment); i++) {
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
            address < segment.p_vaddr + segment.p_filesz) {
            return address - segment.p_vaddr + segment.p_offset;
        }
    }
    return 0;
}

/* The value of the first dynamic entry with this tag from *at on, which moves behind it. */
static int next_entry(const struct target *target, int64_t tag, unsigned *at, uint64_t *value) {
    for (; *at < MOST_ENTRIES && *at < target->dynamic.p_filesz / sizeof(ElfW(Dyn));) {
        ElfW(Dyn) entry;
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

/* Whether the text is somewhere in this part of the file, which is read piece by piece. */
static int file_holds(const struct target *target, uint64_t start, uint64_t size, const char *text,
                      size_t length) {
    char names[NAMES_AT_ONCE];
    for (uint64_t at = 0; at < size && at < MOST_NAMES; at += sizeof names - length) {
        size_t piece = size - at < sizeof names ? (size_t)(size - at) : sizeof names;
        long got = sys_pread(target->fd, names, piece, start + at);
        for (size_t i = 0; got > 0 && i + length <= (size_t)got; i++) {
            if (names[i] == text[0] && __builtin_memcmp(names + i, text, length) == 0) {
                return 1;
            }
        }
        if (got <= 0) {
            return 0;
        }
    }
    return 0;
}

/* AddressSanitizer's library ends a program where another one comes before it, unless it is told
 * not to (othermalloc.c): a program that tells it something itself is not told by us. By the names
 * of the program's dynamic symbols. */
static int tells_sanitizer(const struct target *target) {
    static const char teller[] = "__asan_default_options";
    unsigned first = 0;
    unsigned second = 0;
    uint64_t start = 0;
    uint64_t size = 0;
    return target->dynamic.p_type == PT_DYNAMIC && next_entry(target, DT_STRTAB, &first, &start) &&
           next_entry(target, DT_STRSZ, &second, &size) &&
           (start = offset_of(target, start)) != 0 &&
           file_holds(target, start, size, teller, sizeof teller);
}

/* By the names of its sections: Static.cmake gives the runtime's code one of its own. */
static int holds_runtime(const struct target *target) {
    static const char section[] = "memtrace_text";
    ElfW(Shdr) names;
    return target->header->e_shentsize == sizeof names &&
           read_at(target, &names, sizeof names,
                   target->header->e_shoff + (uint64_t)target->header->e_shstrndx * sizeof names) &&
           file_holds(target, names.sh_offset, names.sh_size, section, sizeof section);
}

/* By the name of its loader, or as it is one itself, which is run as a command. 1, or 0: no loader
 * that a library of ours is made for. */
static int tell_libc(const char *loader, struct exec_target *found) {
    const char *name = text_base_name(loader);
    found->is_musl = text_starts(name, "ld-musl");
    return found->is_musl || text_starts(name, "ld-linux") || text_starts(name, "ld.so");
}

static struct exec_target look_at_elf(const char *path, int fd, const ElfW(Ehdr) * header) {
    struct exec_target found = {.kind = EXEC_LOADED, .machine = header->e_machine};
    struct target target = {.fd = fd, .header = header};
    ElfW(Phdr) segment;
    char loader[256] = "";
    if (header->e_ident[EI_CLASS] != MACHINE_ELF_CLASS || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_phentsize != sizeof(ElfW(Phdr))) {
        found.kind = EXEC_UNFIT_WORDS;
        return found;
    }
    for (unsigned i = 0; read_segment(&target, i, &segment); i++) {
        if (segment.p_type == PT_INTERP) {
            target.interpreter = segment;
        } else if (segment.p_type == PT_DYNAMIC) {
            target.dynamic = segment;
        }
    }
    if (target.interpreter.p_type == PT_INTERP) {
        if (sys_pread(fd, loader, sizeof loader - 1, target.interpreter.p_offset) <= 0) {
            found.kind = EXEC_UNTOLD;
            return found;
        }
        found.kind = tell_libc(loader, &found) ? EXEC_LOADED : EXEC_UNFIT_LIBC;
    } else if (!tell_libc(path, &found)) {
        found.kind = holds_runtime(&target) ? EXEC_STATIC_OURS : EXEC_STATIC;
    }
    if (found.kind == EXEC_LOADED && tells_sanitizer(&target)) {
        found.kind = EXEC_UNFIT_ORDER;
    }
    return found;
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

/* `interpreter`: room for the path of what runs a script. */
static struct exec_target exec_target_look_at(const char *path, char interpreter[256]) {
    const struct exec_target untold = {.kind = EXEC_UNTOLD};
    union {
        ElfW(Ehdr) elf;
        char text[256];
    } start;
    for (int scripts = 0; scripts < 2; scripts++) {
        long fd = sys_open(path, O_RDONLY | O_NONBLOCK, 0);
        long size = fd < 0 ? fd : sys_pread((int)fd, &start, sizeof start - 1, 0);
        int is_elf = size >= (long)sizeof start.elf &&
                     __builtin_memcmp(start.elf.e_ident, ELFMAG, SELFMAG) == 0;
        struct exec_target found = is_elf ? look_at_elf(path, (int)fd, &start.elf) : untold;
        sys_close(fd);
        if (is_elf || size <= 0) {
            return found;
        }
        start.text[size] = '\0';
        take_interpreter(start.text);
        if (start.text[0] == '\0') {
            return untold;
        }
        text_copy(interpreter, 256, start.text);
        path = interpreter;
    }
    return untold;
}

struct exec_target exec_target_look(const char *path, char *const argv[]) {
    char interpreter[256];
    const struct memtrace_machine *machine = memtrace_emulated_by(path);
    const char *program = machine != NULL && argv != NULL ? memtrace_emulated_program(argv) : NULL;
    if (program != NULL) {
        struct exec_target found = exec_target_look_at(program, interpreter);
        if (found.kind != EXEC_UNTOLD && found.machine == machine->elf) {
            return found;
        }
    }
    return exec_target_look_at(path, interpreter);
}
