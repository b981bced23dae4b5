/* SPDX-License-Identifier: MIT */
/* exec_target_test.c: process/exec_target: what is told of ELF files with names anywhere in their
 * tables, which are read piece by piece. */
#include "runtime/process/exec_environment.h"

#include "runtime/machine/machine.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { NAMES = 6000, PIECE = 2048, ADDRESS = 0x400000 };

/* A program as its loader sees it, and a static one as its section names tell. */
static struct {
    ElfW(Ehdr) header;
    ElfW(Phdr) segment[3]; /* PT_NULL: it is not there */
    ElfW(Dyn) dynamic[3];
    ElfW(Shdr) section;
    char loader[32];
    char names[NAMES];
} file;

static char path[] = "/tmp/memtrace-target-XXXXXX";
static int fd = -1;

static int prepare(void **state) {
    (void)state;
    memcpy(file.header.e_ident, ELFMAG, SELFMAG);
    file.header.e_ident[EI_CLASS] = MACHINE_ELF_CLASS;
    file.header.e_ident[EI_DATA] = ELFDATA2LSB;
    file.header.e_phoff = (uintptr_t)file.segment - (uintptr_t)&file;
    file.header.e_phentsize = sizeof file.segment[0];
    file.header.e_phnum = 3;
    file.header.e_shoff = (uintptr_t)&file.section - (uintptr_t)&file;
    file.header.e_shentsize = sizeof file.section;
    file.header.e_shnum = 1;
    file.section.sh_offset = (uintptr_t)file.names - (uintptr_t)&file;
    file.section.sh_size = NAMES;
    file.segment[0] = (ElfW(Phdr)){
        .p_type = PT_LOAD, .p_vaddr = ADDRESS, .p_filesz = sizeof file, .p_memsz = sizeof file};
    file.segment[1].p_offset = (uintptr_t)file.loader - (uintptr_t)&file;
    file.segment[2].p_offset = (uintptr_t)file.dynamic - (uintptr_t)&file;
    file.segment[2].p_filesz = sizeof file.dynamic;
    file.dynamic[0].d_tag = DT_STRTAB;
    file.dynamic[0].d_un.d_ptr = ADDRESS + file.section.sh_offset;
    file.dynamic[1].d_tag = DT_STRSZ;
    file.dynamic[1].d_un.d_val = NAMES;
    strcpy(file.loader, "/lib64/ld-linux-x86-64.so.2");
    fd = mkstemp(path);
    return fd >= 0 ? 0 : -1;
}

static int clean(void **state) {
    (void)state;
    close(fd);
    return unlink(path);
}

static enum exec_kind look(int is_static, const char *name, size_t size, size_t at) {
    memset(file.names, '.', NAMES);
    memcpy(file.names + at, name, size);
    file.segment[1].p_type = is_static ? PT_NULL : PT_INTERP;
    file.segment[2].p_type = is_static ? PT_NULL : PT_DYNAMIC;
    assert_int_equal(pwrite(fd, &file, sizeof file, 0), sizeof file);
    return exec_target_look(path, NULL).kind;
}

/* The name is found at each place, and one that only begins like it at none. */
static void find_everywhere(int is_static, const char *name, enum exec_kind with,
                            enum exec_kind without) {
    size_t size = strlen(name) + 1;
    char longer[64];
    snprintf(longer, sizeof longer, "%s_of", name);
    for (size_t at = 0; at + size <= NAMES; at++) {
        size_t in_piece = at % PIECE;
        if (in_piece < 200 || in_piece > PIECE - 200 || at + size + 1 >= NAMES) {
            if (look(is_static, name, size, at) != with) {
                fail_msg("%s is not found at %zu", name, at);
            }
        }
    }
    assert_int_equal(look(is_static, longer, size + 3, PIECE - size), without);
    assert_int_equal(look(is_static, name, size - 1, NAMES - size + 1), without); /* does not end */
}

static void a_name_across_two_pieces(void **state) {
    (void)state;
    find_everywhere(0, "__asan_default_options", EXEC_UNFIT_ORDER, EXEC_LOADED);
}

static void a_section_across_two_pieces(void **state) {
    (void)state;
    find_everywhere(1, "memtrace_text", EXEC_STATIC_OURS, EXEC_STATIC);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_across_two_pieces),
        cmocka_unit_test(a_section_across_two_pieces),
    };
    return cmocka_run_group_tests(tests, prepare, clean);
}
