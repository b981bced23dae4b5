/* SPDX-License-Identifier: MIT */
/* modulefiles.c: program files, held and put into a recording. See modulefiles.h. */
#include "collect/modulefiles.h"

#include "analyze/base/array.h"
#include "analyze/base/scope.h"
#include "analyze/read/block.h"
#include "analyze/read/procfile.h"
#include "analyze/symbol/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_DEBUG "/usr/lib/debug"

enum {
    OPEN_MOST = 1024,
    SHARE = 4,             /* of the descriptors that we may have */
    TRIES_MOST = 200,      /* for a record whose writer may have died meanwhile */
    PIECE_BYTES = 4 << 20, /* of a file in one block */
    SYMBOLS_MOST = 64 << 20,
    WHOLE_MOST = 1 << 30,
    ALL_SYMBOLS_MOST = 256 << 20,
    ALIGNMENT = 8, /* of contents in a file that is made here */
};

/* One file. */
struct modulefile {
    dev_t device;
    ino_t inode;
    int fd;
    size_t users;
};

static struct {
    pthread_mutex_t lock;
    struct modulefile **items;
    size_t count;
    size_t room;
} open_files = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes the descriptor, or closes it: the file is open by now, or too many are. NULL: not held. */
static struct modulefile *modulefile_hold(int fd, const struct stat *status) {
    struct modulefile *file = NULL;
    struct rlimit limit;
    size_t most = OPEN_MOST;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / SHARE < most) {
        most = limit.rlim_cur / SHARE;
    }
    pthread_mutex_lock(&open_files.lock);
    for (size_t i = 0; i < open_files.count && file == NULL; i++) {
        struct modulefile *other = open_files.items[i];
        file = other->device == status->st_dev && other->inode == status->st_ino ? other : NULL;
    }
    if (file == NULL && open_files.count < most &&
        array_grow(&open_files.items, &open_files.room, open_files.count,
                   sizeof *open_files.items) == 0 &&
        (file = malloc(sizeof *file)) != NULL) {
        *file = (struct modulefile){.device = status->st_dev, .inode = status->st_ino, .fd = fd};
        open_files.items[open_files.count++] = file;
        fd = -1;
    }
    if (file != NULL) {
        file->users++;
    }
    pthread_mutex_unlock(&open_files.lock);
    scope_close(&fd);
    return file;
}

static void modulefile_let_go(struct modulefile *file) {
    pthread_mutex_lock(&open_files.lock);
    if (--file->users == 0) {
        for (size_t i = 0; i < open_files.count; i++) {
            if (open_files.items[i] == file) {
                open_files.items[i] = open_files.items[--open_files.count];
                break;
            }
        }
        close(file->fd);
        free(file);
    }
    if (open_files.count == 0) {
        free(open_files.items);
        open_files.items = NULL;
        open_files.room = 0;
    }
    pthread_mutex_unlock(&open_files.lock);
}

/* ---- A module's file ---- */

/* The mapping that has this address. false: none, or it is of no file. */
static bool mapped_find(struct procmaps *maps, uint64_t address, struct procmapping *mapped) {
    int more;
    rewind(maps->file);
    while ((more = procmaps_next(maps, mapped)) != 0) {
        if (more > 0 && address >= mapped->start && address < mapped->end) {
            return mapped->inode != 0;
        }
    }
    return false;
}

/* The descriptor of this file if it is the one that is mapped; -1: it is not. Not blocking: another
 * file may have the name by now. */
static int mapped_try(const struct procmapping *mapped, struct stat *status, const char *path) {
    SCOPE_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd >= 0 && fstat(fd, status) == 0 && S_ISREG(status->st_mode) &&
                   status->st_ino == mapped->inode
               ? scope_keep(&fd)
               : -1;
}

/* As the program names it, as the kernel does, as its own file; last by its mapping, which only
 * root may open. */
static int mapped_open(pid_t pid, const struct memtrace_module *module,
                       const struct procmapping *mapped, struct stat *status) {
    static const char self[] = "/proc/self/";
    char path[2 * PATH_MAX];
    int fd;
    if (strncmp(module->path, self, sizeof self - 1) == 0) {
        snprintf(path, sizeof path, "/proc/%ld/%.*s", (long)pid, (int)sizeof module->path,
                 module->path + sizeof self - 1);
    } else {
        snprintf(path, sizeof path, "/proc/%ld/root%.*s", (long)pid, (int)sizeof module->path,
                 module->path);
    }
    fd = mapped_try(mapped, status, path);
    if (fd < 0 && mapped->path[0] == '/') {
        snprintf(path, sizeof path, "/proc/%ld/root%s", (long)pid, mapped->path);
        fd = mapped_try(mapped, status, path);
    }
    if (fd < 0) {
        snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
        fd = mapped_try(mapped, status, path);
    }
    if (fd < 0) {
        snprintf(path, sizeof path, "/proc/%ld/map_files/%" PRIx64 "-%" PRIx64, (long)pid,
                 mapped->start, mapped->end);
        fd = mapped_try(mapped, status, path);
    }
    return fd;
}

/* From this id on there are modules that have no record yet, or whose segment is not seen yet. */
static uint32_t modulefiles_look_at_all(struct modulefiles *files, const struct claim *claim,
                                        const struct profile *profile, struct procmaps *maps,
                                        uint32_t count) {
    struct profile_items at = {.kind = MEMTRACE_SEGMENT_MODULES};
    const struct memtrace_module *module;
    uint64_t known = 0;
    uint32_t seen = count;
    while ((module = profile_next(profile, &at)) != NULL) {
        bool is_there = profile_load_u32(&module->id) == at.number;
        struct procmapping mapped;
        struct stat status;
        int fd = -1;
        known = at.number >= known ? at.number + 1 : known;
        if (at.number < files->seen || at.number >= count) {
            continue;
        }
        if (is_there && files->items[at.number] == NULL && module->path[0] == '/' &&
            mapped_find(maps, module->start, &mapped)) {
            fd = mapped_open(claim->region.pid, module, &mapped, &status);
        }
        if (fd >= 0) {
            files->items[at.number] = modulefile_hold(fd, &status);
        } else if (!is_there && at.number != 0) {
            seen = at.number < seen ? (uint32_t)at.number : seen;
        }
    }
    return seen < known ? seen : (uint32_t)known;
}

/* How many there are, as a frame can say it. */
static uint32_t modulefiles_count(const struct claim *claim) {
    uint32_t count = claim_load_u32(&claim->header->module_count);
    return count <= MEMTRACE_FRAME_MODULE_MASK ? count : MEMTRACE_FRAME_MODULE_MASK + 1;
}

bool modulefiles_are_new(const struct modulefiles *files, const struct claim *claim) {
    return files->seen < modulefiles_count(claim) && files->tries < TRIES_MOST &&
           claim_load_u32(&claim->header->state) == MEMTRACE_STATE_RUNNING && !claim->is_unseen;
}

void modulefiles_look(struct modulefiles *files, const struct claim *claim,
                      const struct profile *profile) {
    uint32_t count = modulefiles_count(claim);
    uint32_t before = files->seen;
    struct memtrace_recording *recording = claim_recording(claim);
    struct modulefile **grown =
        count > files->count ? reallocarray(files->items, count, sizeof *grown) : NULL;
    SCOPE(procmaps_close) struct procmaps maps = {0};
    if (grown != NULL) {
        memset(grown + files->count, 0, (count - files->count) * sizeof *grown);
        files->items = grown;
        files->count = count;
    }
    if (count <= files->count && procmaps_open(&maps, claim->region.pid) == 0) {
        files->seen = modulefiles_look_at_all(files, claim, profile, &maps, count);
        /* An older program's path may take the place of what is said here. */
        if (memchr(recording->path, '\0', sizeof recording->path) != NULL) {
            __atomic_store_n(&recording->modules_seen, files->seen, __ATOMIC_RELEASE);
        }
    }
    files->tries = files->seen > before ? 0 : files->tries + 1;
}

void modulefiles_close(struct modulefiles *files) {
    for (size_t id = 0; id < files->count; id++) {
        if (files->items[id] != NULL) {
            modulefile_let_go(files->items[id]);
        }
    }
    free(files->items);
    *files = (struct modulefiles){0};
}

/* ---- In the recording ---- */

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

/* In blocks of PIECE_BYTES. */
static int embed_file(struct embed *embed, enum memtrace_embedded_what what, const void *bytes,
                      size_t size) {
    const char *path = embed->module->path;
    /* No number of this recording's: the same file is the same bytes in others, too, and goes over
     * a network once (stream/reuse). */
    struct memtrace_embedded head = {.what = what,
                                     .size = size,
                                     .build_id_size = embed->module->build_id_size,
                                     .path_size = (uint32_t)strlen(path) + 1};
    size_t before = sizeof head + head.path_size;
    int result = 0;
    memcpy(head.build_id, embed->module->build_id, sizeof head.build_id);
    for (head.offset = 0; head.offset < size && result == 0; head.offset += PIECE_BYTES) {
        size_t left = size - head.offset;
        size_t piece = left < PIECE_BYTES ? left : PIECE_BYTES;
        memcpy(embed->piece, &head, sizeof head);
        memcpy(embed->piece + sizeof head, path, head.path_size);
        memcpy(embed->piece + before, (const char *)bytes + head.offset, piece);
        result = recordfile_append_items(embed->file, MEMTRACE_BLOCK_FILE, embed->time_ns,
                                         embed->piece, 1, before + piece, embed->error);
    }
    return result;
}

/* ---- An ELF file that names functions and lines, without code and data ---- */

static bool subset_keeps(const char *name, bool with_debug) {
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

/* Contents are the bytes as they stand in the file, which `from` keeps. */
static int subset_section(Elf_Scn *from, Elf *to, const char *name, bool with_debug,
                          uint64_t *offset) {
    Elf_Scn *made = elf_newscn(to);
    GElf_Shdr header;
    if (made == NULL || gelf_getshdr(from, &header) == NULL) {
        return -1;
    }
    if (header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL &&
        !subset_keeps(name, with_debug)) {
        header.sh_type = SHT_NOBITS;
    } else if (header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL) {
        const Elf_Data *data = elf_rawdata(from, NULL);
        Elf_Data *copy = elf_newdata(made);
        if (data == NULL || copy == NULL) {
            return -1;
        }
        *offset = (*offset + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
        *copy = (Elf_Data){.d_buf = data->d_buf,
                           .d_type = ELF_T_BYTE,
                           .d_size = data->d_size,
                           .d_align = 1,
                           .d_version = EV_CURRENT};
    }
    header.sh_offset = *offset;
    *offset += header.sh_type != SHT_NOBITS ? header.sh_size : 0;
    return gelf_update_shdr(made, &header) != 0 ? 0 : -1;
}

static int subset_segments(Elf *from, Elf *to, size_t count) {
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
static int subset_copy(Elf *from, Elf *to, bool with_debug) {
    GElf_Ehdr header;
    Elf_Scn *section = NULL;
    size_t names;
    size_t segments;
    uint64_t offset;
    if (gelf_getehdr(from, &header) == NULL || gelf_newehdr(to, gelf_getclass(from)) == NULL ||
        elf_getshdrstrndx(from, &names) != 0 || names >= SHN_LORESERVE ||
        elf_getphdrnum(from, &segments) != 0 || subset_segments(from, to, segments) != 0) {
        return -1;
    }
    elf_flagelf(to, ELF_C_SET, ELF_F_LAYOUT);
    offset = header.e_ehsize + segments * header.e_phentsize;
    while ((section = elf_nextscn(from, section)) != NULL) {
        GElf_Shdr one;
        const char *name =
            gelf_getshdr(section, &one) != NULL ? elf_strptr(from, names, one.sh_name) : NULL;
        if (subset_section(section, to, name != NULL ? name : "", with_debug, &offset) != 0) {
            return -1;
        }
    }
    header.e_phoff = segments != 0 ? header.e_ehsize : 0;
    header.e_shoff = (offset + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
    return gelf_update_ehdr(to, &header) != 0 && elf_update(to, ELF_C_WRITE) > 0 ? 0 : -1;
}

/* Fills *bytes and *size (free() it) with a file that has all sections of `from` at their addresses
 * and its build-id; only symbol tables, with_debug: and debug information, have contents. 0, or -1:
 * not an ELF file that can be copied, or no memory. */
static int subset_make(Elf *from, bool with_debug, unsigned char **bytes, size_t *size) {
    SCOPE_FD int fd = memfd_create("memtrace-symbols", MFD_CLOEXEC);
    Elf *to = fd >= 0 ? elf_begin(fd, ELF_C_WRITE, NULL) : NULL;
    int result = to != NULL ? subset_copy(from, to, with_debug) : -1;
    struct stat status;
    elf_end(to);
    if (result != 0 || fstat(fd, &status) != 0) {
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

/* ---- What of a module goes in ---- */

/* Without the debug information where that would be too much, and unless wanted without that of
 * system libraries: it is megabytes for a few frames, and can be had from their maker by build-id.
 */
static int embed_symbols(struct embed *embed, const char *path, bool with_system) {
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
        if (subset_make(elf.elf, with_debug != 0, &bytes, &size) != 0) {
            bytes = NULL;
            size = SIZE_MAX;
        }
    }
    if (bytes == NULL || size > SYMBOLS_MOST || embed->symbol_bytes + size > ALL_SYMBOLS_MOST) {
        embed->left_out++;
    } else {
        embed->symbol_bytes += size;
        result = embed_file(embed, MEMTRACE_EMBEDDED_SYMBOLS, bytes, size);
    }
    free(bytes);
    debugfile_close(&elf);
    return result;
}

/* A file at the module's path, or what is held of it. A path alone says little of a file without a
 * build-id. */
static int embed_find(const struct embed *embed, struct debugfile_paths *paths) {
    const struct memtrace_module *module = embed->module;
    struct symbol_module wanted = {module->path, module->build_id, module->build_id_size};
    char held[40];
    bool is_held = module->id < embed->held->count && embed->held->items[module->id] != NULL;
    if (module->build_id_size != 0 || !is_held) {
        if (debugfile_find(&wanted, SYSTEM_DEBUG, paths) != 0) {
            return -1;
        }
        if (paths->object != NULL || !is_held) {
            return 0;
        }
        debugfile_free(paths);
    }
    snprintf(held, sizeof held, "/proc/self/fd/%d", embed->held->items[module->id]->fd);
    wanted.path = held;
    return debugfile_find(&wanted, SYSTEM_DEBUG, paths);
}

/* The module's own file if all is wanted, and the one with its debug information as symbols. */
static int embed_module(struct embed *embed, enum memtrace_embed what) {
    SCOPE(debugfile_free) struct debugfile_paths paths = {0};
    struct debugfile_elf elf;
    const char *symbols;
    int result = 0;
    if (embed_find(embed, &paths) != 0) {
        return error_set(embed->error, "out of memory while recording");
    }
    symbols = paths.debug != NULL ? paths.debug : paths.object;
    if (what == MEMTRACE_EMBED_ALL && paths.object != NULL) {
        if (debugfile_open(paths.object, &elf, NULL) == 0) {
            size_t size = 0;
            const char *bytes = elf_rawfile(elf.elf, &size);
            if (bytes == NULL || size > WHOLE_MOST) {
                embed->left_out++;
            } else {
                result = embed_file(embed, MEMTRACE_EMBEDDED_WHOLE, bytes, size);
            }
            debugfile_close(&elf);
        }
        symbols = paths.debug != NULL && strcmp(paths.debug, paths.object) != 0 ? symbols : NULL;
    }
    return result == 0 && symbols != NULL
               ? embed_symbols(embed, symbols, what == MEMTRACE_EMBED_ALL)
               : result;
}

/* Without a build-id the name has to do. */
static bool embed_is_same(const struct memtrace_module *other,
                          const struct memtrace_module *module) {
    return other->build_id_size == module->build_id_size &&
           (module->build_id_size != 0
                ? memcmp(other->build_id, module->build_id, module->build_id_size) == 0
                : strncmp(other->path, module->path, sizeof other->path) == 0);
}

/* Whether a module of this file came before this place: one that was loaded several times. */
static bool embed_came_before(const struct embed *embed, const struct profile *profile) {
    struct profile_items at = {.kind = MEMTRACE_SEGMENT_MODULES};
    const struct memtrace_module *other;
    while ((other = profile_next(profile, &at)) != NULL && at.number != embed->module->id) {
        if (at.number <= MEMTRACE_FRAME_MODULE_MASK && embed->is_in_path[at.number] &&
            embed_is_same(other, embed->module)) {
            return true;
        }
    }
    return false;
}

/* A copy whose path ends and whose build-id is no longer than it can be; false: no module. */
static bool embed_take(const struct memtrace_module *there, uint64_t id,
                       struct memtrace_module *module) {
    if (id == 0 || profile_load_u32(&there->id) != id) {
        return false;
    }
    *module = *there;
    module->path[sizeof module->path - 1] = '\0';
    return module->path[0] == '/' && module->end != 0 && module->build_id_size != 1 &&
           module->build_id_size <= sizeof module->build_id;
}

/* Of which modules there are frames: the table has all that was loaded. */
static void embed_note_paths(struct embed *embed, const struct profile *profile) {
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        bool is_tree = profile_is_tree(segment);
        bool is_paths = segment->kind == MEMTRACE_SEGMENT_PATHS;
        for (uint32_t place = 0; (is_tree || is_paths) && place < segment->item_count; place++) {
            const struct memtrace_path *path =
                is_paths ? profile_item(profile, segment, place) : NULL;
            struct memtrace_node node = {0};
            uint64_t frame = path != NULL ? profile_load_u64(&path->frame) : 0;
            bool is_there = path != NULL;
            if (is_tree) {
                is_there = profile_node(profile, segment, place, &node);
                frame = node.frame;
            }
            if (is_there) {
                embed->is_in_path[(frame >> MEMTRACE_FRAME_MODULE_SHIFT) &
                                  MEMTRACE_FRAME_MODULE_MASK] = true;
            }
        }
    }
}

int modulefiles_embed(const struct modulefiles *held, const struct profile *profile,
                      enum memtrace_embed what, struct recordfile *file, uint64_t time_ns,
                      unsigned *left_out, struct error *error) {
    struct memtrace_module module;
    SCOPE_MEMORY unsigned char *piece =
        malloc(PIECE_BYTES + sizeof(struct memtrace_embedded) + sizeof module.path);
    struct embed embed = {.module = &module,
                          .held = held,
                          .file = file,
                          .error = error,
                          .time_ns = time_ns,
                          .piece = piece};
    struct profile_items at = {.kind = MEMTRACE_SEGMENT_MODULES};
    const struct memtrace_module *there;
    int result = 0;
    *left_out = 0;
    if (what == MEMTRACE_EMBED_NONE) {
        return 0;
    }
    if (piece == NULL) {
        return error_set(error, "out of memory while recording");
    }
    embed_note_paths(&embed, profile);
    while (result == 0 && (there = profile_next(profile, &at)) != NULL) {
        if (at.number <= MEMTRACE_FRAME_MODULE_MASK && embed.is_in_path[at.number] &&
            embed_take(there, at.number, &module) && !embed_came_before(&embed, profile)) {
            result = embed_module(&embed, what);
        }
    }
    *left_out = embed.left_out;
    return result;
}
