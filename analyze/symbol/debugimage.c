/* SPDX-License-Identifier: MIT */
/*
 * debugimage.c: unpacked debug information in memory. See debugimage.h.
 *
 * Only ELF files of 64 bits in this machine's byte order; libdw unpacks others itself.
 */
#include "analyze/symbol/debugimage.h"

#include "analyze/symbol/debugfile.h"

#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

enum {
    ALIGNMENT = 64,
    THREADS_MOST = 16,
    HUGE_PAGE = 2 << 20,
    COMPRESSED_BY_ZSTD = 2, /* ELFCOMPRESS_ZSTD, which older headers lack */
};

/* A section's way into the image. */
struct part {
    const unsigned char *from; /* in the file, behind the compression header if there is one */
    size_t from_size;
    uint32_t method; /* 0: not compressed */
    uint64_t offset; /* in the image */
    size_t size;
};

struct plan {
    const Elf64_Ehdr *header;
    Elf64_Shdr *sections; /* a copy, as they are in the image */
    struct part *parts;   /* by section; size 0: no contents */
    size_t count;
    size_t size; /* of the image */
    bool any_compressed;
    char *image;
    atomic_size_t next;
    atomic_bool failed;
};

static bool starts_with(const char *name, const char *start) {
    return strncmp(name, start, strlen(start)) == 0;
}

bool debugimage_is_needed(const char *section) {
    static const char *const others[] = {"loc",      "loclists", "frame", "pubnames",
                                         "pubtypes", "gnu_pub",  "macro", "macinfo"};
    const char *kind = starts_with(section, ".debug_")    ? section + sizeof ".debug_" - 1
                       : starts_with(section, ".zdebug_") ? section + sizeof ".zdebug_" - 1
                                                          : NULL;
    for (size_t i = 0; kind && i < sizeof others / sizeof others[0]; i++)
        if (starts_with(kind, others[i]))
            return false;
    return kind != NULL;
}

static bool is_kept(const char *name) {
    return debugimage_is_needed(name) || strcmp(name, ".shstrtab") == 0 ||
           strcmp(name, ".gnu_debugaltlink") == 0 || strcmp(name, ".note.gnu.build-id") == 0;
}

/* Where the section's contents are in the file, and what becomes of them. false: they do not lie in
 * the file, or make no sense. */
static bool plan_part(struct part *part, const char *bytes, size_t size,
                      const Elf64_Shdr *section) {
    if (section->sh_offset > size || section->sh_size > size - section->sh_offset)
        return false;
    part->from = (const unsigned char *)bytes + section->sh_offset;
    part->from_size = part->size = section->sh_size;
    if (!(section->sh_flags & SHF_COMPRESSED))
        return true;
    Elf64_Chdr header;
    if (part->from_size < sizeof header)
        return false;
    memcpy(&header, part->from, sizeof header);
    part->from += sizeof header;
    part->from_size -= sizeof header;
    part->method = header.ch_type;
    part->size = header.ch_size;
    /* No compressor shrinks more than that; a damaged size must not ask for all memory. */
    return header.ch_size / 1100 <= part->from_size &&
           (part->method == ELFCOMPRESS_ZLIB || part->method == COMPRESSED_BY_ZSTD);
}

/* 0, or -1: no such file, or no use. */
static int make_plan(struct plan *plan, Elf *elf) {
    size_t size, names;
    const char *bytes = elf_rawfile(elf, &size);
    const char *ident = elf_getident(elf, NULL);
    if (!bytes || !ident || ident[EI_CLASS] != ELFCLASS64 ||
        ident[EI_DATA] != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB) ||
        elf_getshdrnum(elf, &plan->count) != 0 || elf_getshdrstrndx(elf, &names) != 0)
        return -1;
    plan->header = (const Elf64_Ehdr *)bytes;
    plan->sections = calloc(plan->count + 1, sizeof *plan->sections);
    plan->parts = calloc(plan->count + 1, sizeof *plan->parts);
    if (!plan->sections || !plan->parts)
        return -1;
    uint64_t offset = sizeof *plan->header;
    for (size_t i = 0; i < plan->count; i++) {
        Elf64_Shdr *section = &plan->sections[i];
        Elf64_Shdr *there = elf64_getshdr(elf_getscn(elf, i));
        const char *name = there ? elf_strptr(elf, names, there->sh_name) : NULL;
        if (!there)
            return -1;
        *section = *there;
        if (section->sh_type == SHT_NOBITS || section->sh_type == SHT_NULL)
            continue;
        if (!name || !is_kept(name)) {
            section->sh_type = SHT_NOBITS;
            continue;
        }
        if (!plan_part(&plan->parts[i], bytes, size, section))
            return -1;
        plan->any_compressed |= plan->parts[i].method != 0;
        offset = (offset + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
        section->sh_offset = plan->parts[i].offset = offset;
        section->sh_size = plan->parts[i].size;
        section->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
        offset += section->sh_size;
    }
    plan->size = (size_t)((offset + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1));
    return plan->any_compressed ? 0 : -1;
}

static void write_headers(const struct plan *plan) {
    Elf64_Ehdr header = *plan->header;
    header.e_phoff = 0;
    header.e_phnum = 0;
    header.e_shoff = plan->size;
    memcpy(plan->image, &header, sizeof header);
    memcpy(plan->image + plan->size, plan->sections, plan->count * sizeof *plan->sections);
}

static bool unpack(const struct part *part, char *to) {
    uLongf size = part->size;
    switch (part->method) {
    case 0:
        memcpy(to, part->from, part->size);
        return true;
    case ELFCOMPRESS_ZLIB:
        return uncompress((Bytef *)to, &size, part->from, part->from_size) == Z_OK &&
               size == part->size;
    default:
        return ZSTD_decompress(to, part->size, part->from, part->from_size) == part->size;
    }
}

static void *work(void *argument) {
    struct plan *plan = argument;
    size_t i;
    while ((i = atomic_fetch_add(&plan->next, 1)) < plan->count)
        if (plan->parts[i].size && !unpack(&plan->parts[i], plan->image + plan->parts[i].offset))
            atomic_store(&plan->failed, true);
    return NULL;
}

static int compare_sizes(const void *left, const void *right) {
    const struct part *a = left, *b = right;
    return (a->size < b->size) - (a->size > b->size);
}

/* The largest first, each by whoever is free. */
static void unpack_all(struct plan *plan, unsigned threads) {
    pthread_t others[THREADS_MOST];
    unsigned started = 0;
    qsort(plan->parts, plan->count, sizeof *plan->parts, compare_sizes);
    while (started + 1 < threads && started < THREADS_MOST &&
           pthread_create(&others[started], NULL, work, plan) == 0)
        started++;
    work(plan);
    while (started > 0)
        pthread_join(others[--started], NULL);
}

void debugimage_make(struct debugimage *image, const char *path, unsigned threads) {
    struct plan plan = {0};
    struct debugfile_elf file;
    *image = (struct debugimage){0};
    if (debugfile_open(path, &file, NULL) != 0)
        return;
    if (make_plan(&plan, file.elf) == 0) {
        image->size = plan.size + plan.count * sizeof *plan.sections;
        plan.image = mmap(NULL, image->size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        image->bytes = plan.image != MAP_FAILED ? plan.image : NULL;
    }
    if (image->bytes) {
        if (image->size >= HUGE_PAGE)
            madvise(image->bytes, image->size, MADV_HUGEPAGE);
        write_headers(&plan);
        unpack_all(&plan, threads);
        if (atomic_load(&plan.failed))
            debugimage_free(image);
    }
    free(plan.sections);
    free(plan.parts);
    debugfile_close(&file);
}

void debugimage_free(struct debugimage *image) {
    if (image->bytes)
        munmap(image->bytes, image->size);
    *image = (struct debugimage){0};
}
