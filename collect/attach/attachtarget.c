/* SPDX-License-Identifier: MIT */
/* attachtarget.c: see attachtarget.h. */
#define _GNU_SOURCE
#include "collect/attach/attachtarget.h"

#include "analyze/base/below.h"
#include "analyze/base/scope.h"
#include "analyze/base/thismachine.h"
#include "analyze/read/procfile.h"
#include "analyze/read/region.h"
#include "collect/clock.h"
#include "memtrace/blocks.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* --- mappings --------------------------------------------------------------------------------- */

/* The file is read in pieces: what grew or was joined meanwhile may begin before the end of what
 * came before, where it is cut. 0, or -1: out of memory, or not of whole pages. */
static int attachtarget_add_mapping(struct attachtarget *target, const struct procmapping *read) {
    uint64_t behind = target->count != 0 ? target->mappings[target->count - 1].end : 0;
    uint64_t cut = read->start < behind ? behind - read->start : 0;
    struct attachmapping *larger;
    char *path;
    if (read->start % PAGE != 0 || read->end % PAGE != 0) {
        return -1;
    }
    if (read->end <= behind) {
        return 0;
    }
    larger = realloc(target->mappings, (target->count + 1) * sizeof *target->mappings);
    target->mappings = larger != NULL ? larger : target->mappings;
    path = larger != NULL ? strdup(read->path) : NULL;
    if (path == NULL) {
        return -1;
    }
    target->mappings[target->count++] =
        (struct attachmapping){.start = read->start + cut,
                               .end = read->end,
                               .offset = read->offset + (read->inode != 0 ? cut : 0),
                               .inode = read->inode,
                               .readable = read->readable,
                               .writable = read->writable,
                               .executable = read->executable,
                               .path = path};
    return 0;
}

int attachtarget_read(FILE *file, pid_t pid, struct attachtarget *target, struct error *error) {
    struct procmaps maps = {.file = file};
    struct procmapping mapping;
    int more;
    *target = (struct attachtarget){.pid = pid};
    while ((more = procmaps_next(&maps, &mapping)) > 0 &&
           (more = attachtarget_add_mapping(target, &mapping)) == 0) {
    }
    free(maps.line);
    if (more < 0) {
        attachtarget_close(target);
        return error_set(error, "cannot understand /proc/%ld/maps", (long)pid);
    }
    return 0;
}

int attachtarget_open(pid_t pid, struct attachtarget *target, struct error *error) {
    SCOPE(procmaps_close) struct procmaps maps;
    *target = (struct attachtarget){.pid = pid};
    if (procmaps_open(&maps, pid) != 0) {
        return error_set(error, "cannot read /proc/%ld/maps: %s", (long)pid, strerror(errno));
    }
    return attachtarget_read(maps.file, pid, target, error);
}

void attachtarget_close(struct attachtarget *target) {
    for (size_t i = 0; i < target->count; i++) {
        free(target->mappings[i].path);
    }
    free(target->mappings);
    *target = (struct attachtarget){0};
}

const struct attachmapping *attachtarget_at(const struct attachtarget *target, uint64_t address) {
    for (size_t i = 0; i < target->count; i++) {
        if (address >= target->mappings[i].start && address < target->mappings[i].end) {
            return &target->mappings[i];
        }
    }
    return NULL;
}

const struct attachmapping *attachtarget_object(const struct attachtarget *target,
                                                const char *name) {
    for (size_t i = 0; i < target->count; i++) {
        const struct attachmapping *mapping = &target->mappings[i];
        const char *slash = strrchr(mapping->path, '/');
        const char *own = slash != NULL ? slash + 1 : mapping->path;
        own += strncmp(own, "memfd:", 6) == 0 ? 6 : 0; /* of memory: "/memfd:NAME (deleted)" */
        if (mapping->offset == 0 && strncmp(own, name, strlen(name)) == 0) {
            return mapping;
        }
    }
    return NULL;
}

uint64_t attachtarget_gap(const struct attachtarget *target, uint64_t size) {
    uint64_t low = UINT64_C(1) << 32; /* far from where heaps and stacks grow to */
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < target->count; i++) {
        const struct attachmapping *mapping = &target->mappings[i];
        if (mapping->end > low && mapping->start > low && mapping->start - low >= 2 * size) {
            /* beyond that is the kernel's */
            return mapping->start >> memtrace_address_bits(thismachine()) == 0
                       ? low + (mapping->start - low) / 2 / page * page
                       : 0;
        }
        low = mapping->end > low ? mapping->end : low;
    }
    return 0;
}

/* --- objects ---------------------------------------------------------------------------------- */

/* The file of an object as the program sees it; -1: another one lies there now. The kernel tells a
 * path from the root of whoever asks, unless that does not lead there. */
int attachtarget_file(const struct attachtarget *target, const struct attachmapping *object) {
    char roots[2][64] = {"", "/"};
    struct stat status;
    int fd = -1;
    snprintf(roots[0], sizeof roots[0], "/proc/%ld/root", (long)target->pid);
    for (int i = 0; i < 2 && fd < 0 && object->path[0] == '/'; i++) {
        fd = below_open(roots[i], object->path, O_RDONLY, &status);
        if (fd >= 0 && status.st_ino != object->inode) {
            close(fd);
            fd = -1;
        }
    }
    return fd;
}

/* NULL, which elf_end() takes: it is no ELF file. */
static Elf *attachtarget_elf(int fd) {
    Elf *elf;
    elf_version(EV_CURRENT);
    elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    if (elf != NULL && elf_kind(elf) != ELF_K_ELF) {
        elf_end(elf);
        elf = NULL;
    }
    return elf;
}

/* A walk through the symbols that a file defines; with_symtab: also those that are not dynamic. */
struct elfsymbols {
    Elf *elf;
    bool with_symtab;
    Elf_Scn *section;
    GElf_Shdr header;
    Elf_Data *data; /* NULL: the next section */
    int next;
    GElf_Sym symbol;
};

/* Fills walk->symbol: its name; NULL: there are no more. */
static const char *elfsymbols_next(struct elfsymbols *walk) {
    for (;;) {
        GElf_Shdr *header = &walk->header;
        while (walk->data != NULL && (uint64_t)walk->next < header->sh_size / header->sh_entsize) {
            const char *name;
            if (gelf_getsym(walk->data, walk->next++, &walk->symbol) != NULL &&
                walk->symbol.st_shndx != SHN_UNDEF &&
                (name = elf_strptr(walk->elf, header->sh_link, walk->symbol.st_name)) != NULL) {
                return name;
            }
        }
        walk->section = elf_nextscn(walk->elf, walk->section);
        if (walk->section == NULL) {
            return NULL;
        }
        walk->next = 0;
        walk->data = gelf_getshdr(walk->section, header) != NULL && header->sh_entsize != 0 &&
                             (header->sh_type == SHT_DYNSYM ||
                              (walk->with_symtab && header->sh_type == SHT_SYMTAB))
                         ? elf_getdata(walk->section, NULL)
                         : NULL;
    }
}

uint64_t attachtarget_base(Elf *elf, const struct attachmapping *object) {
    GElf_Phdr segment;
    for (int i = 0; gelf_getphdr(elf, i, &segment) != NULL; i++) {
        if (segment.p_type == PT_LOAD && segment.p_offset < PAGE) {
            return object->start - segment.p_vaddr / PAGE * PAGE;
        }
    }
    return object->start;
}

static struct attachrange attachtarget_range_in(int fd, const struct attachmapping *object,
                                                const char *name) {
    struct attachrange range = {0, 0};
    struct elfsymbols walk = {.elf = attachtarget_elf(fd)};
    const char *own;
    while (walk.elf != NULL && (own = elfsymbols_next(&walk)) != NULL) {
        int type = GELF_ST_TYPE(walk.symbol.st_info);
        if ((type == STT_FUNC || type == STT_OBJECT) && strcmp(own, name) == 0) {
            if (walk.symbol.st_value != 0) {
                range.start = walk.symbol.st_value + attachtarget_base(walk.elf, object);
                range.end = range.start + walk.symbol.st_size;
            }
            break;
        }
    }
    elf_end(walk.elf);
    return range;
}

uint64_t attachtarget_symbol_of(int fd, const struct attachmapping *object, const char *name) {
    return attachtarget_range_in(fd, object, name).start;
}

struct attachrange attachtarget_range(const struct attachtarget *target,
                                      const struct attachmapping *object, const char *name) {
    SCOPE_FD int fd = attachtarget_file(target, object);
    return attachtarget_range_in(fd, object, name);
}

void attachtarget_ranges(const struct attachtarget *target, const struct attachmapping *object,
                         const char *const *names, size_t count, struct attachrange *ranges) {
    SCOPE_FD int fd = attachtarget_file(target, object);
    for (size_t i = 0; i < count; i++) {
        ranges[i] = attachtarget_range_in(fd, object, names[i]);
    }
}

uint64_t attachtarget_symbol(const struct attachtarget *target, const struct attachmapping *object,
                             const char *name) {
    return attachtarget_range(target, object, name).start;
}

void attachtarget_vtables(const struct attachtarget *target, const struct attachmapping *object,
                          void (*visit)(void *context, const char *name, uint64_t address,
                                        uint64_t size),
                          void *context) {
    SCOPE_FD int fd = attachtarget_file(target, object);
    struct elfsymbols walk = {.elf = attachtarget_elf(fd), .with_symtab = true};
    uint64_t base = walk.elf != NULL ? attachtarget_base(walk.elf, object) : 0;
    const char *name;
    while (walk.elf != NULL && (name = elfsymbols_next(&walk)) != NULL) {
        if (GELF_ST_TYPE(walk.symbol.st_info) == STT_OBJECT && strncmp(name, "_ZTV", 4) == 0) {
            visit(context, name, base + walk.symbol.st_value, walk.symbol.st_size);
        }
    }
    elf_end(walk.elf);
}

/* The end of an object's code up to the end of its page. */
uint64_t attachtarget_padding_of(int fd, const struct attachtarget *target,
                                 const struct attachmapping *object, size_t size) {
    const struct attachmapping *code;
    GElf_Phdr segment;
    uint64_t found = 0;
    Elf *elf = attachtarget_elf(fd);
    for (int i = 0; elf != NULL && found == 0 && gelf_getphdr(elf, i, &segment) != NULL; i++) {
        uint64_t end = (segment.p_vaddr + segment.p_filesz + 15) / 16 * 16;
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 &&
            (segment.p_flags & PF_W) == 0 && segment.p_filesz == segment.p_memsz &&
            end % PAGE != 0 && PAGE - end % PAGE >= size) {
            found = attachtarget_base(elf, object) + end;
        }
    }
    elf_end(elf);
    code = attachtarget_at(target, found);
    return code != NULL && code->executable && !code->writable && code->inode == object->inode &&
                   size <= code->end - found
               ? found
               : 0;
}

uint64_t attachtarget_padding(const struct attachtarget *target, size_t size) {
    uint64_t found = 0;
    for (size_t i = 0; i < target->count && found == 0; i++) {
        const struct attachmapping *object = &target->mappings[i];
        SCOPE_FD int fd =
            object->offset == 0 && object->inode != 0 ? attachtarget_file(target, object) : -1;
        found = fd >= 0 ? attachtarget_padding_of(fd, target, object, size) : 0;
    }
    return found;
}

/* --- memory and threads ----------------------------------------------------------------------- */

ssize_t attachtarget_memory(pid_t pid, uint64_t address, void *bytes, size_t size) {
    struct iovec to = {bytes, size};
    struct iovec from = {(void *)address, size}; // NOLINT(performance-no-int-to-ptr)
    return process_vm_readv(pid, &to, 1, &from, 1, 0);
}

int attachtarget_waits(pid_t pid, pid_t tid, uint64_t *count) {
    char value[32];
    if (procfile_status(pid, tid, "voluntary_ctxt_switches", value, sizeof value) != 0) {
        return -1;
    }
    *count = strtoull(value, NULL, 10);
    return 0;
}

/* ---- The image ---- */

enum { WAIT_MS = 1000, NOTHING_MS = 200 };

struct word {
    uint64_t number, value;
};

/* Of files in /proc that are whole in one read. */
static size_t attachimage_read_file(pid_t pid, const char *name, void *bytes, size_t size) {
    SCOPE_FD int fd = procfile_open(O_RDONLY, "/proc/%ld/%s", (long)pid, name);
    ssize_t got = fd >= 0 ? read(fd, bytes, size) : -1;
    return got > 0 ? (size_t)got : 0;
}

uint64_t attachimage_word(const struct attachimage *image, uint64_t number) {
    struct word word;
    for (size_t at = 0; at + sizeof word <= image->auxv_size; at += sizeof word) {
        memcpy(&word, image->auxv + at, sizeof word);
        if (word.number == number) {
            return word.value;
        }
    }
    return 0;
}

int attachimage_read(const struct attachimage *image, uint64_t address, void *bytes, size_t size) {
    return pread(image->memory, bytes, size, (off_t)address) == (ssize_t)size ? 0 : -1;
}

int attachimage_write(const struct attachimage *image, uint64_t address, const void *bytes,
                      size_t size) {
    return pwrite(image->memory, bytes, size, (off_t)address) == (ssize_t)size ? 0 : -1;
}

/* One memory, as in vfork. Not known where the kernel does not tell: then no. */
static bool shares_with_parent(pid_t pid) {
    enum { IS_SAME_MEMORY = KCMP_VM };
    char parent[32];
    return procfile_status(pid, pid, "PPid", parent, sizeof parent) == 0 && atol(parent) > 0 &&
           syscall(SYS_kcmp, pid, atol(parent), IS_SAME_MEMORY, 0, 0) == 0;
}

/* LOOK_NOTHING: it has no memory, as a thread of the kernel, or what has ended; or for a moment,
 * where a thread that is not the first one calls exec. */
enum look { LOOK_WHOLE, LOOK_LATER, LOOK_NOTHING, LOOK_NEVER };

static enum look attachimage_look(pid_t pid, struct attachimage *image) {
    unsigned char again[ATTACHIMAGE_AUXV];
    char byte;
    uint64_t random;
    /* Asked before its memory is opened: what it lends no more then is its own, and not its
     * parent's which was opened just before the exec. */
    bool is_lent = shares_with_parent(pid);
    *image = (struct attachimage){.pid = pid};
    image->memory = procfile_open(O_RDWR, "/proc/%ld/mem", (long)pid);
    if (image->memory < 0) {
        return errno == ESRCH ? LOOK_NOTHING : LOOK_NEVER;
    }
    if (region_start_ticks(pid, &image->start_ticks) != 0 ||
        attachimage_read_file(pid, "maps", &byte, 1) == 0) {
        return LOOK_NOTHING;
    }
    image->auxv_size = attachimage_read_file(pid, "auxv", image->auxv, sizeof image->auxv);
    random = attachimage_word(image, AT_RANDOM);
    if (random == 0 || attachimage_read(image, random, image->random, sizeof image->random) != 0 ||
        attachimage_read_file(pid, "auxv", again, sizeof again) !=
            image->auxv_size) { /* exec writes it yet */
        return LOOK_LATER;
    }
    image->is_lent = is_lent;
    return image->is_lent ? LOOK_LATER : LOOK_WHOLE;
}

void attachimage_open(pid_t pid, struct attachimage *image) {
    const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t begun = clock_now_ns();
    for (;;) {
        enum look found = attachimage_look(pid, image);
        uint64_t passed_ms = (clock_now_ns() - begun) / 1000000;
        bool is_over = passed_ms > (found == LOOK_NOTHING ? NOTHING_MS : WAIT_MS);
        if (found == LOOK_WHOLE || (is_over && image->is_lent)) {
            return;
        }
        attachimage_close(image);
        if (found == LOOK_NEVER || is_over) {
            return;
        }
        nanosleep(&pause, NULL);
    }
}

void attachimage_close(struct attachimage *image) {
    scope_close(&image->memory);
    *image = (struct attachimage){.pid = image->pid, .memory = -1};
}

/* The same words come again where addresses are not random; the bytes that they lead to do not. */
bool attachimage_is_current(const struct attachimage *image) {
    unsigned char auxv[ATTACHIMAGE_AUXV];
    unsigned char random[ATTACHIMAGE_RANDOM];
    uint64_t place = attachimage_word(image, AT_RANDOM);
    return image->memory >= 0 && attachimage_read(image, place, random, sizeof random) == 0 &&
           attachimage_read_file(image->pid, "auxv", auxv, sizeof auxv) == image->auxv_size &&
           memcmp(auxv, image->auxv, image->auxv_size) == 0 &&
           attachtarget_memory(image->pid, place, random, sizeof random) == sizeof random &&
           memcmp(random, image->random, sizeof random) == 0;
}

int attachimage_explain(const struct attachimage *image, struct error *error) {
    bool is_gone = image->memory >= 0 && !attachimage_is_current(image);
    if (is_gone && region_alive(image->pid, image->start_ticks)) {
        error_set(error, "process %ld replaced itself by exec meanwhile: try again",
                  (long)image->pid);
    } else if (is_gone) {
        error_set(error, "process %ld ended meanwhile", (long)image->pid);
    }
    return -1;
}
