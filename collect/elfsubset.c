/* SPDX-License-Identifier: MIT */
/* elfsubset.c: an ELF file without code and data. See elfsubset.h. */
#include "collect/elfsubset.h"

#include "analyze/symbol/debugimage.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ALIGNMENT = 8 };

static bool is_kept(const char *name, bool with_debug) {
    static const char *const kept[] = {
        ".symtab",   ".symtab_shndx",      ".strtab",        ".dynsym",           ".dynstr",
        ".shstrtab", ".note.gnu.build-id", ".gnu_debuglink", ".gnu_debugaltlink", ".gnu_debugdata"};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (strcmp(name, kept[i]) == 0) {
            return true;
        }
    }
    return with_debug && debugimage_is_needed(name);
}

/* The bytes as they stand in the file, which `from` keeps. */
static int copy_contents(Elf_Scn *from, Elf_Scn *to) {
    Elf_Data *data = elf_rawdata(from, NULL);
    Elf_Data *copy = elf_newdata(to);
    if (data == NULL || copy == NULL) {
        return -1;
    }
    *copy = (Elf_Data){.d_buf = data->d_buf,
                       .d_type = ELF_T_BYTE,
                       .d_size = data->d_size,
                       .d_align = 1,
                       .d_version = EV_CURRENT};
    return 0;
}

static int copy_section(Elf_Scn *from, Elf *to, const char *name, bool with_debug,
                        uint64_t *offset) {
    Elf_Scn *made = elf_newscn(to);
    GElf_Shdr header;
    if (made == NULL || gelf_getshdr(from, &header) == NULL) {
        return -1;
    }
    if (header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL) {
        if (is_kept(name, with_debug)) {
            *offset = (*offset + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
            if (copy_contents(from, made) != 0) {
                return -1;
            }
        } else {
            header.sh_type = SHT_NOBITS;
        }
    }
    header.sh_offset = *offset;
    *offset += header.sh_type != SHT_NOBITS ? header.sh_size : 0;
    return gelf_update_shdr(made, &header) != 0 ? 0 : -1;
}

static int copy_segments(Elf *from, Elf *to, size_t count) {
    if (count != 0 && gelf_newphdr(to, count) == NULL) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(from, (int)i, &segment) == NULL) {
            return -1;
        }
        segment.p_filesz = 0; /* addresses only */
        segment.p_type = segment.p_type == PT_LOAD ? PT_LOAD : PT_NULL;
        if (gelf_update_phdr(to, (int)i, &segment) == 0) {
            return -1;
        }
    }
    return 0;
}

/* Everything but the writing. */
static int copy(Elf *from, Elf *to, bool with_debug) {
    GElf_Ehdr header;
    Elf_Scn *section = NULL;
    size_t names;
    size_t segments;
    uint64_t offset;
    if (gelf_getehdr(from, &header) == NULL || gelf_newehdr(to, gelf_getclass(from)) == NULL ||
        elf_getshdrstrndx(from, &names) != 0 || names >= SHN_LORESERVE ||
        elf_getphdrnum(from, &segments) != 0 || copy_segments(from, to, segments) != 0) {
        return -1;
    }
    elf_flagelf(to, ELF_C_SET, ELF_F_LAYOUT);
    offset = header.e_ehsize + segments * header.e_phentsize;
    while ((section = elf_nextscn(from, section)) != NULL) {
        GElf_Shdr one;
        const char *name =
            gelf_getshdr(section, &one) != NULL ? elf_strptr(from, names, one.sh_name) : NULL;
        if (copy_section(section, to, name != NULL ? name : "", with_debug, &offset) != 0) {
            return -1;
        }
    }
    header.e_phoff = segments != 0 ? header.e_ehsize : 0;
    header.e_shoff = (offset + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
    return gelf_update_ehdr(to, &header) != 0 && elf_update(to, ELF_C_WRITE) > 0 ? 0 : -1;
}

static int read_all(int fd, unsigned char **bytes, size_t *size) {
    struct stat status;
    size_t done = 0;
    if (fstat(fd, &status) != 0) {
        return -1;
    }
    *size = (size_t)status.st_size;
    *bytes = malloc(*size + 1);
    while (*bytes != NULL && done < *size) {
        ssize_t count = pread(fd, *bytes + done, *size - done, (off_t)done);
        if (count <= 0 && errno != EINTR) {
            free(*bytes);
            return -1;
        }
        done += count > 0 ? (size_t)count : 0;
    }
    return *bytes != NULL ? 0 : -1;
}

int elfsubset_make(Elf *from, bool with_debug, unsigned char **bytes, size_t *size) {
    int fd = memfd_create("memtrace-symbols", MFD_CLOEXEC);
    Elf *to = fd >= 0 ? elf_begin(fd, ELF_C_WRITE, NULL) : NULL;
    int result = to != NULL ? copy(from, to, with_debug) : -1;
    if (to != NULL) {
        elf_end(to);
    }
    if (result == 0) {
        result = read_all(fd, bytes, size);
    }
    if (fd >= 0) {
        close(fd);
    }
    return result;
}
