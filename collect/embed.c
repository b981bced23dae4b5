/* SPDX-License-Identifier: MIT */
/* embed.c: program files in a recording. See embed.h. */
#include "collect/embed.h"

#include "analyze/read/block.h"
#include "analyze/symbol/debugfile.h"

#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_DEBUG "/usr/lib/debug"

enum {
    PIECE_BYTES = 4 << 20, /* of a file in one block */
    SYMBOLS_MOST = 64 << 20,
    WHOLE_MOST = 1 << 30,
    ALL_SYMBOLS_MOST = 256 << 20,
    ALIGNMENT = 8, /* of contents in a file that is made here */
};

struct embed {
    const struct memtrace_module *module;
    const struct modulefiles *held;
    struct recordfile *file;
    struct error *error;
    uint64_t time_ns;
    uint64_t symbol_bytes; /* so far */
    unsigned left_out;
    unsigned char *piece;                            /* PIECE_BYTES and what stands before them */
    bool is_in_path[MEMTRACE_FRAME_MODULE_MASK + 1]; /* modules by id */
};

/* One block. */
static int write_piece(struct embed *embed, struct memtrace_embedded *head, const char *path,
                       const unsigned char *bytes, size_t size) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_FILE,
                                          .first_ns = embed->time_ns,
                                          .last_ns = embed->time_ns,
                                          .items = 1};
    unsigned char *at = embed->piece;
    memcpy(at, head, sizeof *head);
    at += sizeof *head;
    memcpy(at, path, head->path_size);
    at += head->path_size;
    memcpy(at, bytes, size);
    at += size;
    return recordfile_append(embed->file, &block, embed->piece, (size_t)(at - embed->piece),
                             embed->error);
}

static int write_file(struct embed *embed, enum memtrace_embedded_what what, const char *path,
                      const unsigned char *bytes, size_t size) {
    /* No number of this recording's: the same file is the same bytes in others, too, and goes over
     * a network once (stream/reuse). */
    struct memtrace_embedded head = {.what = what,
                                     .size = size,
                                     .build_id_size = embed->module->build_id_size,
                                     .path_size = (uint32_t)strlen(path) + 1};
    int result = 0;
    memcpy(head.build_id, embed->module->build_id, sizeof head.build_id);
    for (head.offset = 0; head.offset < size && result == 0; head.offset += PIECE_BYTES) {
        size_t left = size - head.offset;
        result = write_piece(embed, &head, path, bytes + head.offset,
                             left < PIECE_BYTES ? left : PIECE_BYTES);
    }
    return result;
}

/* ---- An ELF file that names functions and lines, without code and data ---- */

static bool is_kept_section(const char *name, bool with_debug) {
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
        if (is_kept_section(name, with_debug)) {
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
static int copy_elf(Elf *from, Elf *to, bool with_debug) {
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
    if (fstat(fd, &status) != 0) {
        return -1;
    }
    *size = (size_t)status.st_size;
    *bytes = malloc(*size + 1);
    if (*bytes == NULL || block_read_at(fd, *bytes, *size, 0) != (ssize_t)*size) {
        free(*bytes);
        return -1;
    }
    return 0;
}

/* Fills *bytes and *size (free() it) with a file that has all sections of `from` at their addresses
 * and its build-id; only symbol tables, with_debug: and debug information, have contents. 0, or -1:
 * not an ELF file that can be copied, or no memory. */
static int make_subset(Elf *from, bool with_debug, unsigned char **bytes, size_t *size) {
    int fd = memfd_create("memtrace-symbols", MFD_CLOEXEC);
    Elf *to = fd >= 0 ? elf_begin(fd, ELF_C_WRITE, NULL) : NULL;
    int result = to != NULL ? copy_elf(from, to, with_debug) : -1;
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

/* ---- What of a module goes in ---- */

/* Without the debug information where that would be too much, and unless wanted without that of
 * system libraries: it is megabytes for a few frames, and can be had from their maker by build-id.
 */
static int write_symbols(struct embed *embed, const char *path, bool with_system) {
    bool is_system = strncmp(path, SYSTEM_DEBUG "/", sizeof SYSTEM_DEBUG) == 0;
    struct debugfile_elf elf;
    unsigned char *bytes = NULL;
    size_t size = SIZE_MAX;
    int result = 0;
    if (debugfile_open(path, &elf, NULL) != 0) {
        return 0;
    }
    for (int with_debug = with_system || !is_system; with_debug >= 0 && size > SYMBOLS_MOST;
         with_debug--) {
        free(bytes);
        bytes = NULL;
        if (make_subset(elf.elf, with_debug != 0, &bytes, &size) != 0) {
            bytes = NULL;
            size = SIZE_MAX;
        }
    }
    if (bytes == NULL || size > SYMBOLS_MOST || embed->symbol_bytes + size > ALL_SYMBOLS_MOST) {
        embed->left_out++;
    } else {
        embed->symbol_bytes += size;
        result = write_file(embed, MEMTRACE_EMBEDDED_SYMBOLS, embed->module->path, bytes, size);
    }
    free(bytes);
    debugfile_close(&elf);
    return result;
}

static int write_whole(struct embed *embed, const char *path) {
    struct debugfile_elf elf;
    const char *bytes;
    size_t size = 0;
    int result = 0;
    if (debugfile_open(path, &elf, NULL) != 0) {
        return 0;
    }
    bytes = elf_rawfile(elf.elf, &size);
    if (bytes == NULL || size > WHOLE_MOST) {
        embed->left_out++;
    } else {
        result = write_file(embed, MEMTRACE_EMBEDDED_WHOLE, embed->module->path,
                            (const unsigned char *)bytes, size);
    }
    debugfile_close(&elf);
    return result;
}

/* At its path, or what is held of it. A path alone says little of a file without a build-id. */
static int find_files(const struct embed *embed, struct debugfile_paths *paths) {
    const struct memtrace_module *module = embed->module;
    struct symbol_module wanted = {module->path, module->build_id, module->build_id_size};
    char held[MODULEFILES_PATH];
    bool is_held = modulefiles_path(embed->held, module->id, held);
    if (module->build_id_size != 0 || !is_held) {
        if (debugfile_find(&wanted, SYSTEM_DEBUG, paths) != 0) {
            return -1;
        }
        if (paths->object != NULL || !is_held) {
            return 0;
        }
        debugfile_free(paths);
    }
    wanted.path = held;
    return debugfile_find(&wanted, SYSTEM_DEBUG, paths);
}

/* The module's own file if all is wanted, and the one with its debug information as symbols. */
static int embed_module(struct embed *embed, enum memtrace_embed what) {
    struct debugfile_paths paths;
    const char *symbols;
    int result = 0;
    if (find_files(embed, &paths) != 0) {
        return error_set(embed->error, "out of memory while recording");
    }
    symbols = paths.debug != NULL ? paths.debug : paths.object;
    if (what == MEMTRACE_EMBED_ALL && paths.object != NULL) {
        result = write_whole(embed, paths.object);
        symbols = paths.debug != NULL && strcmp(paths.debug, paths.object) != 0 ? symbols : NULL;
    }
    if (result == 0 && symbols != NULL) {
        result = write_symbols(embed, symbols, what == MEMTRACE_EMBED_ALL);
    }
    debugfile_free(&paths);
    return result;
}

/* Without a build-id the name has to do. */
static bool is_same_file(const struct memtrace_module *other,
                         const struct memtrace_module *module) {
    return other->build_id_size == module->build_id_size &&
           (module->build_id_size != 0
                ? memcmp(other->build_id, module->build_id, module->build_id_size) == 0
                : strncmp(other->path, module->path, sizeof other->path) == 0);
}

/* Whether a module of this file came before this place: one that was loaded several times. */
static bool came_before(const struct embed *embed, const struct profile *profile) {
    const struct memtrace_module *module = embed->module;
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        for (uint32_t place = 0;
             segment->kind == MEMTRACE_SEGMENT_MODULES && place < segment->item_count; place++) {
            const struct memtrace_module *other = profile_item(profile, segment, place);
            uint64_t id = (uint64_t)segment->index * segment->leaf_items + place;
            if (id == module->id) {
                return false;
            }
            if (other != NULL && id <= MEMTRACE_FRAME_MODULE_MASK && embed->is_in_path[id] &&
                is_same_file(other, module)) {
                return true;
            }
        }
    }
    return false;
}

/* A copy whose path ends and whose build-id is no longer than it can be; false: no module. */
static bool take_module(const struct memtrace_module *there, uint64_t id,
                        struct memtrace_module *module) {
    if (there == NULL || id == 0 || profile_load_u32(&there->id) != id) {
        return false;
    }
    *module = *there;
    module->path[sizeof module->path - 1] = '\0';
    return module->path[0] == '/' && module->end != 0 && module->build_id_size != 1 &&
           module->build_id_size <= sizeof module->build_id;
}

static void note_frame(struct embed *embed, uint64_t frame) {
    embed->is_in_path[(frame >> MEMTRACE_FRAME_MODULE_SHIFT) & MEMTRACE_FRAME_MODULE_MASK] = true;
}

/* The table has all that was loaded. */
static void note_paths(struct embed *embed, const struct profile *profile) {
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        bool is_tree = profile_is_tree(segment);
        bool is_paths = segment->kind == MEMTRACE_SEGMENT_PATHS;
        for (uint32_t place = 0; (is_tree || is_paths) && place < segment->item_count; place++) {
            const struct memtrace_path *path =
                is_paths ? profile_item(profile, segment, place) : NULL;
            struct memtrace_node node;
            if (is_tree && profile_node(profile, segment, place, &node)) {
                note_frame(embed, node.frame);
            } else if (path != NULL) {
                note_frame(embed, profile_load_u64(&path->frame));
            }
        }
    }
}

int embed_modules(const struct profile *profile, enum memtrace_embed what,
                  const struct modulefiles *held, struct recordfile *file, uint64_t time_ns,
                  unsigned *left_out, struct error *error) {
    struct memtrace_module module;
    struct embed embed = {
        .module = &module, .held = held, .file = file, .error = error, .time_ns = time_ns};
    int result = 0;
    *left_out = 0;
    if (what == MEMTRACE_EMBED_NONE) {
        return 0;
    }
    embed.piece = malloc(PIECE_BYTES + sizeof(struct memtrace_embedded) + sizeof module.path);
    if (embed.piece == NULL) {
        return error_set(error, "out of memory while recording");
    }
    note_paths(&embed, profile);
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        for (uint32_t place = 0; segment->kind == MEMTRACE_SEGMENT_MODULES && result == 0 &&
                                 place < segment->item_count;
             place++) {
            uint64_t id = (uint64_t)segment->index * segment->leaf_items + place;
            if (id <= MEMTRACE_FRAME_MODULE_MASK && embed.is_in_path[id] &&
                take_module(profile_item(profile, segment, place), id, &module) &&
                !came_before(&embed, profile)) {
                result = embed_module(&embed, what);
            }
        }
    }
    *left_out = embed.left_out;
    free(embed.piece);
    return result;
}
