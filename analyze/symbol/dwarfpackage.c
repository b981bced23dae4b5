/* SPDX-License-Identifier: MIT */
/*
 * dwarfpackage.c: see dwarfpackage.h. The index is that of DWARF 5 (7.3.5), and GNU's before it.
 * Each unit is made in a job, which ends where something does not add up.
 */
#include "analyze/symbol/dwarfpackage.h"

#include "analyze/base/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS_MOST = 8,
    STRINGS_MOST = 256 << 20, /* bytes of one unit */
    LISTS_HEADER = 8,         /* of a unit's string offsets, in DWARF 5 */
};

/* What a unit's file is made of. */
enum piece_kind { INFO, ABBREV, LINE, OFFSETS, LISTS, STRINGS, ADDRESSES, RANGES, NAMES, KINDS };

static const char *const section_names[KINDS] = {
    ".debug_info.dwo",        ".debug_abbrev.dwo",   ".debug_line.dwo",
    ".debug_str_offsets.dwo", ".debug_rnglists.dwo", ".debug_str.dwo",
    ".debug_addr.dwo",        ".debug_ranges.dwo",   ".shstrtab"};

struct slice {
    const unsigned char *bytes;
    size_t size;
};

void dwarfpackage_open(struct dwarfpackage *package, const char *path) {
    char name[PATH_MAX];
    *package = (struct dwarfpackage){0};
    if (snprintf(name, sizeof name, "%s.dwp", path) < (int)sizeof name) {
        debugfile_open(name, &package->file, NULL);
    }
}

void dwarfpackage_close(struct dwarfpackage *package) {
    debugfile_close(&package->file);
}

static struct slice package_section(const struct dwarfpackage *package, const char *wanted) {
    const Elf_Data *data = debugfile_section(package->file.elf, wanted);
    return data ? (struct slice){data->d_buf, data->d_size} : (struct slice){0};
}

static uint32_t u32_at(const unsigned char *bytes, size_t at) {
    uint32_t value;
    memcpy(&value, bytes + at, sizeof value);
    return value;
}

static uint64_t u64_at(const unsigned char *bytes, size_t at) {
    uint64_t value;
    memcpy(&value, bytes + at, sizeof value);
    return value;
}

/* ---- The index: header, ids of slots, rows of slots, kinds of columns, offsets, sizes ---- */

struct index {
    struct slice bytes;
    bool is_gnu; /* before DWARF 5 */
    size_t columns, units, slots;
    size_t rows, kinds, offsets, sizes; /* where they begin */
};

static struct index index_read(const struct dwarfpackage *package) {
    enum { HEADER = 16 };
    struct index index = {.bytes = package_section(package, ".debug_cu_index")};
    const unsigned char *bytes = index.bytes.bytes;
    uint16_t version = 0;
    if (index.bytes.size >= HEADER) {
        memcpy(&version, bytes, sizeof version);
        index.columns = u32_at(bytes, 4);
    }
    if ((version != 2 && version != 5) || index.columns > COLUMNS_MOST) {
        job_fail("no index");
    }
    index.is_gnu = version == 2;
    index.units = u32_at(bytes, 8);
    index.slots = u32_at(bytes, 12);
    index.rows = HEADER + 8 * index.slots;
    index.kinds = index.rows + 4 * index.slots;
    index.offsets = index.kinds + 4 * index.columns;
    index.sizes = index.offsets + 4 * index.columns * index.units;
    if (index.sizes + 4 * index.columns * index.units > index.bytes.size) {
        job_fail("damaged index");
    }
    return index;
}

/* The unit's row, from 1. */
static size_t index_row(const struct index *index, uint64_t id) {
    const unsigned char *bytes = index->bytes.bytes;
    for (size_t slot = 0; slot < index->slots; slot++) {
        size_t row = u32_at(bytes, index->rows + 4 * slot);
        if (row != 0 && row <= index->units && u64_at(bytes, 16 + 8 * slot) == id) {
            return row;
        }
    }
    job_fail("no such unit");
}

/* What the row says lies where. */
static void index_find_slices(const struct dwarfpackage *package, const struct index *index,
                              size_t row, struct slice slices[KINDS]) {
    static const enum piece_kind kinds[] = {KINDS, INFO,    KINDS, ABBREV, LINE,
                                            KINDS, OFFSETS, KINDS, LISTS};
    const unsigned char *bytes = index->bytes.bytes;
    for (size_t i = 0; i < index->columns; i++) {
        size_t cell = 4 * ((row - 1) * index->columns + i);
        uint32_t column = u32_at(bytes, index->kinds + 4 * i);
        enum piece_kind kind = column < sizeof kinds / sizeof *kinds ? kinds[column] : KINDS;
        if (kind == KINDS || (kind == LISTS && index->is_gnu)) {
            continue;
        }
        struct slice whole = package_section(package, section_names[kind]);
        size_t offset = u32_at(bytes, index->offsets + cell);
        size_t size = u32_at(bytes, index->sizes + cell);
        if (offset > whole.size || size > whole.size - offset) {
            job_fail("damaged index");
        }
        slices[kind] = (struct slice){whole.bytes + offset, size};
    }
    if (slices[INFO].size == 0 || slices[ABBREV].size == 0) {
        job_fail("damaged index");
    }
}

/* ---- Strings: those of all units lie together, and are copied for one ---- */

struct strings {
    unsigned char *offsets; /* as the unit's, but into `text` */
    char *text;
    size_t size, room;
};

static void add_string(struct strings *strings, const char *string, size_t size) {
    if (strings->size + size > STRINGS_MOST) {
        job_fail("damaged strings");
    }
    job_reserve(&strings->text, &strings->room, strings->size + size, 1);
    memcpy(strings->text + strings->size, string, size);
    strings->size += size;
}

static void copy_strings(const struct dwarfpackage *package, bool is_gnu, struct slice offsets,
                         struct strings *strings) {
    struct slice all = package_section(package, section_names[STRINGS]);
    size_t at = is_gnu ? 0 : LISTS_HEADER;
    if (!is_gnu && offsets.size >= LISTS_HEADER && u32_at(offsets.bytes, 0) == UINT32_MAX) {
        job_fail("offsets of 64 bits");
    }
    strings->offsets = job_array(offsets.size, 1);
    add_string(strings, "", 1);
    if (offsets.size != 0) {
        memcpy(strings->offsets, offsets.bytes, offsets.size);
    }
    for (; at + 4 <= offsets.size; at += 4) {
        uint32_t offset = u32_at(offsets.bytes, at);
        const char *string = offset < all.size ? (const char *)all.bytes + offset : NULL;
        const char *end = string ? memchr(string, '\0', all.size - offset) : NULL;
        uint32_t place = end ? (uint32_t)strings->size : 0;
        memcpy(strings->offsets + at, &place, sizeof place);
        if (end) {
            add_string(strings, string, (size_t)(end - string) + 1);
        }
    }
}

/* ---- Ranges. A unit's begin at its skeleton's address, of which libdw knows nothing here: it is
 * put in front of each list of DWARF 5, and added to what older ones have ---- */

enum { LIST_HEADER = 12, BASE_ENTRY = 9 };

/* Behind a number of LEB128; 0: it has no end. */
static size_t list_skip_number(struct slice lists, size_t at) {
    while (at < lists.size && (lists.bytes[at] & 0x80)) {
        at++;
    }
    return at < lists.size ? at + 1 : 0;
}

/* Bytes of the list that begins there, its end included; 0: it has none. */
static size_t list_size(struct slice lists, size_t start) {
    /* By kind: numbers, and bytes of addresses before them. */
    static const unsigned char numbers[] = {0, 1, 2, 2, 2, 0, 0, 1};
    static const unsigned char addresses[] = {0, 0, 0, 0, 0, 8, 16, 8};
    for (size_t at = start; at < lists.size;) {
        unsigned kind = lists.bytes[at++];
        if (kind == 0) {
            return at - start;
        }
        if (kind >= sizeof numbers) {
            return 0;
        }
        at += addresses[kind];
        for (unsigned i = 0; i < numbers[kind]; i++) {
            if ((at = list_skip_number(lists, at)) == 0) {
                return 0;
            }
        }
    }
    return 0;
}

/* The lists with the base in front of each; NULL: damaged. */
static unsigned char *rebase_lists(struct slice lists, uint64_t base, size_t *size) {
    enum { BASE_ADDRESS = 5 };
    size_t count = lists.size >= LIST_HEADER ? u32_at(lists.bytes, LIST_HEADER - 4) : 0;
    if (count == 0 || count > (lists.size - LIST_HEADER) / 4 ||
        u32_at(lists.bytes, 0) == UINT32_MAX) {
        return NULL;
    }
    size_t room = 2 * lists.size + count * BASE_ENTRY; /* compilers write no list for two */
    size_t to = LIST_HEADER + 4 * count;
    unsigned char *made = job_array(room, 1);
    memcpy(made, lists.bytes, LIST_HEADER);
    for (size_t i = 0; i < count; i++) {
        size_t from = LIST_HEADER + (size_t)u32_at(lists.bytes, LIST_HEADER + 4 * i);
        size_t bytes = list_size(lists, from);
        uint32_t place = (uint32_t)(to - LIST_HEADER);
        if (bytes == 0 || bytes + BASE_ENTRY > room - to) {
            return NULL;
        }
        memcpy(made + LIST_HEADER + 4 * i, &place, sizeof place);
        made[to] = BASE_ADDRESS;
        memcpy(made + to + 1, &base, sizeof base);
        memcpy(made + to + BASE_ENTRY, lists.bytes + from, bytes);
        to += BASE_ENTRY + bytes;
    }
    uint32_t length = (uint32_t)(to - 4);
    memcpy(made, &length, sizeof length);
    *size = to;
    return made;
}

/* Pairs of addresses; two zeros end a list, and behind all ones stands a base of the list's own. */
static unsigned char *rebase_ranges(struct slice ranges, uint64_t base) {
    enum { PAIR = 16 };
    unsigned char *made = job_array(ranges.size, 1);
    bool has_own = false;
    memcpy(made, ranges.bytes, ranges.size);
    for (size_t at = 0; at + PAIR <= ranges.size; at += PAIR) {
        uint64_t pair[2] = {u64_at(made, at), u64_at(made, at + 8)};
        bool is_end = pair[0] == 0 && pair[1] == 0;
        bool is_base = pair[0] == UINT64_MAX;
        if (!is_end && !is_base && !has_own) {
            pair[0] += base;
            pair[1] += base;
            memcpy(made + at, pair, sizeof pair);
        }
        has_own = !is_end && (has_own || is_base);
    }
    return made;
}

/* Without those that cannot be read. */
static void take_ranges(struct slice slices[KINDS], const struct dwarfpackage_skeleton *skeleton) {
    struct slice ranges = {skeleton->ranges, skeleton->ranges_size};
    unsigned char *made;
    size_t size = 0;
    if (slices[LISTS].size != 0) {
        made = rebase_lists(slices[LISTS], skeleton->base, &size);
        slices[LISTS] = (struct slice){made, size};
    } else if (ranges.size != 0) {
        made = rebase_ranges(ranges, skeleton->base);
        slices[RANGES] = (struct slice){made, ranges.size};
    }
}

/* ---- The file in memory ---- */

/* It outlives the job. */
static void *make_file(const struct slice slices[KINDS], const Elf64_Ehdr *from, size_t *size) {
    Elf64_Shdr headers[KINDS + 1] = {{0}};
    Elf64_Ehdr header = *from;
    size_t name = 1;
    *size = sizeof header;
    for (int i = 0; i < KINDS; i++) {
        headers[i + 1] = (Elf64_Shdr){.sh_name = (Elf64_Word)name,
                                      .sh_type = i == NAMES ? SHT_STRTAB : SHT_PROGBITS,
                                      .sh_offset = *size,
                                      .sh_size = slices[i].size,
                                      .sh_addralign = 1};
        name += strlen(section_names[i]) + 1;
        *size += slices[i].size;
    }
    *size = (*size + 7) & ~(size_t)7;
    header.e_phoff = header.e_phnum = header.e_entry = 0;
    header.e_shoff = *size;
    header.e_shnum = KINDS + 1;
    header.e_shstrndx = NAMES + 1;
    header.e_shentsize = sizeof headers[0];
    char *bytes = calloc(1, *size + sizeof headers);
    if (!bytes) {
        job_fail_memory();
    }
    memcpy(bytes, &header, sizeof header);
    for (int i = 0; i < KINDS; i++) {
        if (slices[i].size != 0) {
            memcpy(bytes + headers[i + 1].sh_offset, slices[i].bytes, slices[i].size);
        }
    }
    memcpy(bytes + *size, headers, sizeof headers);
    *size += sizeof headers;
    return bytes;
}

/* All names of sections, one after another. */
static size_t piece_write_names(unsigned char *names) {
    size_t size = 1;
    names[0] = '\0';
    for (int i = 0; i < KINDS; i++) {
        size_t length = strlen(section_names[i]) + 1;
        memcpy(names + size, section_names[i], length);
        size += length;
    }
    return size;
}

struct making {
    const struct dwarfpackage *package;
    const struct dwarfpackage_skeleton *skeleton;
    void *bytes;
    size_t size;
};

static void make_piece(void *what) {
    struct making *making = what;
    const struct dwarfpackage *package = making->package;
    const struct dwarfpackage_skeleton *skeleton = making->skeleton;
    const Elf64_Ehdr *header = package->file.elf ? elf64_getehdr(package->file.elf) : NULL;
    struct slice slices[KINDS] = {{0}};
    struct strings strings = {0};
    struct index index;
    unsigned char names[256];
    if (!header) {
        job_fail("no package");
    }
    index = index_read(package);
    index_find_slices(package, &index, index_row(&index, skeleton->id), slices);
    copy_strings(package, index.is_gnu, slices[OFFSETS], &strings);
    slices[OFFSETS].bytes = strings.offsets;
    slices[STRINGS] = (struct slice){(const unsigned char *)strings.text, strings.size};
    slices[ADDRESSES] = (struct slice){skeleton->addresses, skeleton->addresses_size};
    take_ranges(slices, skeleton);
    slices[NAMES] = (struct slice){names, piece_write_names(names)};
    making->bytes = make_file(slices, header, &making->size);
}

int dwarfpackage_unit(const struct dwarfpackage *package,
                      const struct dwarfpackage_skeleton *skeleton, struct dwarfpiece *piece,
                      Dwarf_Die *die) {
    struct making making = {.package = package, .skeleton = skeleton};
    Dwarf_CU *unit = NULL;
    uint8_t type;
    *piece = (struct dwarfpiece){0};
    if (job_run(make_piece, &making, NULL, NULL) != 0) {
        return -1;
    }
    piece->bytes = making.bytes;
    piece->elf = elf_memory(making.bytes, making.size);
    piece->dwarf = piece->elf ? dwarf_begin_elf(piece->elf, DWARF_C_READ, NULL) : NULL;
    if (piece->dwarf && dwarf_get_units(piece->dwarf, NULL, &unit, NULL, &type, die, NULL) == 0) {
        return 0;
    }
    dwarfpiece_free(piece);
    return -1;
}

void dwarfpiece_free(struct dwarfpiece *piece) {
    if (piece->dwarf) {
        dwarf_end(piece->dwarf);
    }
    if (piece->elf) {
        elf_end(piece->elf);
    }
    free(piece->bytes);
    *piece = (struct dwarfpiece){0};
}
