/* SPDX-License-Identifier: MIT */
/* embed.c: program files in a recording. See embed.h. */
#include "collect/embed.h"

#include "analyze/symbol/debugfile.h"
#include "collect/elfsubset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYSTEM_DEBUG "/usr/lib/debug"

enum {
    PIECE_BYTES = 4 << 20, /* of a file in one block */
    SYMBOLS_MOST = 64 << 20,
    WHOLE_MOST = 1 << 30,
    ALL_SYMBOLS_MOST = 256 << 20,
};

struct embed {
    const struct memtrace_module *module;
    struct recordfile *file;
    struct error *error;
    uint64_t time_ns;
    uint64_t symbol_bytes; /* so far */
    unsigned left_out;
    unsigned char *piece; /* PIECE_BYTES and what stands before them */
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
    struct memtrace_embedded head = {.module = embed->module->id,
                                     .what = what,
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
        if (elfsubset_make(elf.elf, with_debug != 0, &bytes, &size) != 0) {
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

/* The module's own file if all is wanted, and the one with its debug information as symbols. */
static int embed_module(struct embed *embed, enum memtrace_embed what) {
    const struct memtrace_module *module = embed->module;
    struct symbol_module wanted = {module->path, module->build_id, module->build_id_size};
    struct debugfile_paths paths;
    const char *symbols;
    int result = 0;
    if (debugfile_find(&wanted, SYSTEM_DEBUG, &paths) != 0) {
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

/* Whether a module with this build-id came before this place: one that was loaded several times. */
static bool came_before(const struct profile *profile, const struct memtrace_module *module) {
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        for (uint32_t place = 0;
             segment->kind == MEMTRACE_SEGMENT_MODULES && place < segment->item_count; place++) {
            const struct memtrace_module *other = profile_item(profile, segment, place);
            uint64_t id = (uint64_t)segment->index * segment->leaf_items + place;
            if (id == module->id) {
                return false;
            }
            if (other != NULL && other->build_id_size == module->build_id_size &&
                memcmp(other->build_id, module->build_id, module->build_id_size) == 0) {
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
    return module->path[0] == '/' && module->build_id_size >= 2 &&
           module->build_id_size <= sizeof module->build_id;
}

int embed_modules(const struct profile *profile, enum memtrace_embed what, struct recordfile *file,
                  uint64_t time_ns, unsigned *left_out, struct error *error) {
    struct memtrace_module module;
    struct embed embed = {.module = &module, .file = file, .error = error, .time_ns = time_ns};
    int result = 0;
    *left_out = 0;
    if (what == MEMTRACE_EMBED_NONE) {
        return 0;
    }
    embed.piece = malloc(PIECE_BYTES + sizeof(struct memtrace_embedded) + sizeof module.path);
    if (embed.piece == NULL) {
        return error_set(error, "out of memory while recording");
    }
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        for (uint32_t place = 0; segment->kind == MEMTRACE_SEGMENT_MODULES && result == 0 &&
                                 place < segment->item_count;
             place++) {
            uint64_t id = (uint64_t)segment->index * segment->leaf_items + place;
            if (take_module(profile_item(profile, segment, place), id, &module) &&
                !came_before(profile, &module)) {
                result = embed_module(&embed, what);
            }
        }
    }
    *left_out = embed.left_out;
    free(embed.piece);
    return result;
}
