/* SPDX-License-Identifier: MIT */
/*
 * debugfile.c: looks for a module's file and its separate debug file. See debugfile.h.
 *
 * The order is gdb's: by build-id, by .gnu_debuglink beside the file, in .debug/ and below the
 * debug folders; then <folder>/<path> and <folder>/<path>.debug.
 */
#define _GNU_SOURCE
#include "analyze/symbol/debugfile.h"

#include "analyze/base/scope.h"
#include "analyze/read/filemap.h"
#include "analyze/read/trust.h"
#include "analyze/symbol/debuginfod.h"

#include <byteswap.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* What a candidate file must match. */
struct identity {
    const void *build_id;
    size_t build_id_size; /* 0: go by the checksum */
    bool has_checksum;
    uint32_t checksum;
};

enum { OWN_ORDER = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB };
enum { RECORDED_BUILD_ID_BYTES = 32 }; /* a profile keeps no more of a longer one */

static bool same_build_id(const void *recorded, size_t recorded_size, const void *found,
                          ssize_t found_size) {
    if (found_size <= 0) {
        return false;
    }
    bool cut = recorded_size == RECORDED_BUILD_ID_BYTES && (size_t)found_size > recorded_size;
    return (cut || (size_t)found_size == recorded_size) &&
           memcmp(recorded, found, recorded_size) == 0;
}

int debugfile_open(const char *path, struct debugfile_elf *file, int *descriptor) {
    *file = (struct debugfile_elf){0};
    elf_version(EV_CURRENT);
    /* Not blocking: the path may name a pipe or a device by now. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd < 0) {
        return -1;
    }
    bool is_allowed = trust_allows(fd, path);
    if (is_allowed && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        file->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    }
    const char *slash = strrchr(path, '/');
    /* Whose owner may make it shorter while it is read: not a reason to end. */
    size_t size = 0;
    void *bytes = file->elf ? elf_rawfile(file->elf, &size) : NULL;
    if (bytes) {
        filemap_watch(bytes, size);
        file->bytes = bytes;
    }
    if (file->elf && elf_kind(file->elf) == ELF_K_ELF) {
        file->folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
    }
    if (!file->folder) {
        debugfile_close(file);
        close(fd);
        errno = is_allowed ? 0 : EACCES;
        return -1;
    }
    if (descriptor) {
        *descriptor = fd;
        return 0;
    }
    /* Everything is mapped or read by now; many modules must not use up the descriptors. */
    elf_cntl(file->elf, ELF_C_FDREAD);
    close(fd);
    return 0;
}

void debugfile_close(struct debugfile_elf *file) {
    if (file->bytes) {
        filemap_forget(file->bytes);
    }
    if (file->elf) {
        elf_end(file->elf);
    }
    free(file->folder);
    *file = (struct debugfile_elf){0};
}

Elf_Scn *debugfile_next_section(Elf *elf, Elf_Scn *section, GElf_Shdr *header, const char **name) {
    size_t names;
    while ((section = elf_nextscn(elf, section)) && !gelf_getshdr(section, header)) {
        ;
    }
    *name = section && elf_getshdrstrndx(elf, &names) == 0 ? elf_strptr(elf, names, header->sh_name)
                                                           : NULL;
    *name = *name ? *name : "";
    return section;
}

Elf_Data *debugfile_section(Elf *elf, const char *wanted) {
    GElf_Shdr header;
    const char *name;
    Elf_Scn *at = NULL;
    while ((at = debugfile_next_section(elf, at, &header, &name)) && strcmp(name, wanted) != 0) {
        ;
    }
    bool is_there = at && header.sh_type != SHT_NOBITS && !(header.sh_flags & SHF_COMPRESSED);
    Elf_Data *data = is_there ? elf_rawdata(at, NULL) : NULL;
    return data && data->d_buf ? data : NULL;
}

int debugfile_visit_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                            int (*visit)(void *context, const GElf_Sym *symbol, const char *name),
                            void *context) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    int result = 0;
    for (size_t i = 1; i < count && result == 0; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol)) {
            break;
        }
        const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (name) {
            result = visit(context, &symbol, name);
        }
    }
    return result;
}

bool debugfile_has_dwarf(Elf *elf) {
    GElf_Shdr header;
    const char *name;
    for (Elf_Scn *section = NULL;
         (section = debugfile_next_section(elf, section, &header, &name));) {
        if (header.sh_type != SHT_NOBITS &&
            (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0)) {
            return true;
        }
    }
    return false;
}

/* ---- What a file says of itself. libdw has these too; a build for devices has libelf alone ----
 */

/* The build-id among the notes of a section or segment; 0: none. */
static ssize_t build_id_in(Elf_Data *notes, const void **bytes) {
    GElf_Nhdr note;
    size_t name, description;
    for (size_t at = 0; notes && (at = gelf_getnote(notes, at, &note, &name, &description)) > 0;) {
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp((const char *)notes->d_buf + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
            *bytes = (const char *)notes->d_buf + description;
            return note.n_descsz;
        }
    }
    return 0;
}

ssize_t debugfile_build_id(Elf *elf, const void **bytes) {
    GElf_Shdr section;
    GElf_Phdr segment;
    const char *name;
    ssize_t size = 0;
    size_t count;
    for (Elf_Scn *at = NULL;
         size == 0 && (at = debugfile_next_section(elf, at, &section, &name));) {
        if (section.sh_type == SHT_NOTE) {
            size = build_id_in(elf_getdata(at, NULL), bytes);
        }
    }
    if (size != 0 || elf_getphdrnum(elf, &count) != 0) {
        return size;
    }
    for (size_t i = 0; size == 0 && i < count; i++) { /* the sections may have been stripped */
        if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_NOTE) {
            size =
                build_id_in(elf_getdata_rawchunk(elf, (int64_t)segment.p_offset, segment.p_filesz,
                                                 segment.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR),
                            bytes);
        }
    }
    return size;
}

/* What .gnu_debuglink says: a name, and behind it, at the next multiple of 4, a checksum. NULL:
 * there is none. */
static const char *debug_link(Elf *elf, uint32_t *checksum) {
    const Elf_Data *data = debugfile_section(elf, ".gnu_debuglink");
    const char *link = data ? data->d_buf : NULL;
    const char *end = link ? memchr(link, '\0', data->d_size) : NULL;
    size_t at = end ? ((size_t)(end - link) + sizeof *checksum) & ~(sizeof *checksum - 1) : 0;
    if (!end || at + sizeof *checksum > data->d_size) {
        return NULL;
    }
    memcpy(checksum, link + at, sizeof *checksum);
    if (elf_getident(elf, NULL)[EI_DATA] != OWN_ORDER) {
        *checksum = bswap_32(*checksum);
    }
    return link;
}

/* Whether path is the file that is wanted. */
static bool debugfile_matches(const char *path, const struct identity *identity) {
    SCOPE(debugfile_close) struct debugfile_elf file = {0};
    if (debugfile_open(path, &file, NULL) != 0) {
        return false;
    }
    const void *found;
    ssize_t found_size = debugfile_build_id(file.elf, &found);
    if (identity->build_id_size && found_size > 0) {
        return same_build_id(identity->build_id, identity->build_id_size, found, found_size);
    }
    size_t size;
    const char *bytes = identity->has_checksum ? elf_rawfile(file.elf, &size) : NULL;
    return bytes && crc32_z(0, (const Bytef *)bytes, size) == identity->checksum;
}

/* *result becomes the path if it is the wanted file. `result` is set once only. */
static void try_path(char **result, const struct identity *identity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void try_path(char **result, const struct identity *identity, const char *format, ...) {
    char path[PATH_MAX];
    if (*result) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    if (length < (int)sizeof path && debugfile_matches(path, identity)) {
        *result = strdup(path);
    }
}

/* The next root of the colon-separated list into root; false at the end. */
static bool next_folder(const char **list, char root[PATH_MAX]) {
    while (**list == ':') {
        ++*list;
    }
    size_t length = strcspn(*list, ":");
    if (length == 0 || length >= PATH_MAX) {
        return false;
    }
    memcpy(root, *list, length);
    root[length] = '\0';
    *list += length;
    return true;
}

static void try_build_id(char **result, const struct identity *identity, const char *folders) {
    const uint8_t *bytes = identity->build_id;
    char hexadecimal[2 * 64 + 1];
    if (identity->build_id_size < 2 || identity->build_id_size > 64) {
        return;
    }
    for (size_t i = 0; i < identity->build_id_size; i++) {
        snprintf(hexadecimal + 2 * i, 3, "%02x", bytes[i]);
    }
    char root[PATH_MAX];
    while (next_folder(&folders, root)) {
        try_path(result, identity, "%s/.build-id/%.2s/%s.debug", root, hexadecimal,
                 hexadecimal + 2);
    }
}

/* The separate debug file of a module's own file, which is open and lies at path. */
static void try_links(char **result, struct identity *identity, Elf *elf, const char *path,
                      const char *folders) {
    char root[PATH_MAX];
    int folder = (int)(strrchr(path, '/') ? strrchr(path, '/') - path : 0);
    uint32_t checksum;
    const char *link = debug_link(elf, &checksum);
    if (link && !strchr(link, '/')) {
        identity->has_checksum = true;
        identity->checksum = checksum;
        try_path(result, identity, "%.*s/%s", folder, path, link);
        try_path(result, identity, "%.*s/.debug/%s", folder, path, link);
        for (const char *list = folders; next_folder(&list, root);) {
            try_path(result, identity, "%s%.*s/%s", root, folder, path, link);
        }
    }
    for (const char *list = folders; next_folder(&list, root);) {
        try_path(result, identity, "%s%s", root, path);
        try_path(result, identity, "%s%s.debug", root, path);
    }
}

/* With the module's own file open: finds where its DWARF is. */
static void find_debug(struct debugfile_paths *paths, Elf *elf, const char *path,
                       const char *folders) {
    if (debugfile_has_dwarf(elf)) {
        paths->debug = strdup(path);
        return;
    }
    const void *build_id = NULL;
    ssize_t size = debugfile_build_id(elf, &build_id);
    struct identity identity = {.build_id = build_id, .build_id_size = size > 0 ? (size_t)size : 0};
    try_build_id(&paths->debug, &identity, folders);
    try_links(&paths->debug, &identity, elf, path, folders);
    /* A path through links (/lib -> /usr/lib) may have its debug file under the other name. */
    char real[PATH_MAX];
    if (!paths->debug && realpath(path, real) && strcmp(real, path) != 0) {
        try_links(&paths->debug, &identity, elf, real, folders);
    }
}

static char module_root[PATH_MAX];     /* empty: none */
static const char *module_copies = ""; /* colon-separated */

void debugfile_set_root(const char *root) {
    snprintf(module_root, sizeof module_root, "%s", root);
}

void debugfile_set_copies(const char *folders) {
    module_copies = folders ? folders : "";
}

bool debugfile_has_copies(void) {
    return module_copies[0] != '\0';
}

/* Sets `place` to the n-th place where the file may be that has this path on the program's machine
 * (empty: it does not fit). false: there are no more. */
static bool module_place(const char *path, unsigned n, char place[PATH_MAX], bool *is_copy) {
    char folder[PATH_MAX];
    const char *list = module_copies;
    *place = '\0';
    *is_copy = true;
    if (path[0] != '/') {
        return false;
    }
    while (next_folder(&list, folder)) {
        if (n < 2) {
            const char *rest = n == 0 ? path : strrchr(path, '/');
            if (snprintf(place, PATH_MAX, "%s%s", folder, rest) >= PATH_MAX) {
                *place = '\0';
            }
            return true;
        }
        n -= 2;
    }
    *is_copy = false;
    if (n != 0 || module_root[0] == '\0') {
        return false;
    }
    if (snprintf(place, PATH_MAX, "%s%s", module_root, path) >= PATH_MAX) {
        *place = '\0';
    }
    return true;
}

bool debugfile_locate(const char *path, char found[PATH_MAX]) {
    bool is_copy;
    for (unsigned i = 0; module_place(path, i, found, &is_copy); i++) {
        if (*found && access(found, F_OK) == 0) {
            return true;
        }
    }
    return snprintf(found, PATH_MAX, "%s", path) < PATH_MAX;
}

enum fit { ABSENT, OTHER_BUILD, SAME_BUILD };

/* Whether the file is the module's. Where no build-id was recorded the user's word counts. */
static enum fit fit_of(const char *path, const struct symbol_module *module, bool is_copy) {
    SCOPE(debugfile_close) struct debugfile_elf file = {0};
    const void *found = NULL;
    if (!*path || debugfile_open(path, &file, NULL) != 0) {
        return ABSENT;
    }
    ssize_t size = debugfile_build_id(file.elf, &found);
    bool same = module->build_id_size == 0
                    ? is_copy
                    : same_build_id(module->build_id, module->build_id_size, found, size);
    return same ? SAME_BUILD : OTHER_BUILD;
}

/* The debug folders, those of the copies first: to be freed. NULL: out of memory. */
static char *with_copies(const char *folders) {
    char folder[PATH_MAX];
    char *all = strdup(folders);
    for (const char *list = module_copies; all && next_folder(&list, folder);) {
        char *longer = NULL;
        if (asprintf(&longer, "%s/usr/lib/debug:%s", folder, all) < 0) {
            longer = NULL;
        }
        free(all);
        all = longer;
    }
    return all;
}

static bool find_unnamed(const char *path, const char *folders, char **result) {
    char root[PATH_MAX], place[PATH_MAX];
    struct debugfile_elf file;
    while (!*result && next_folder(&folders, root)) {
        int length = snprintf(place, sizeof place, "%s/.no-build-id%s.debug", root, path);
        if (length < (int)sizeof place && debugfile_open(place, &file, NULL) == 0) {
            debugfile_close(&file);
            *result = strdup(place);
        }
    }
    return *result != NULL;
}

static int find_here(const struct symbol_module *module, const char *folders,
                     struct debugfile_paths *paths) {
    *paths = (struct debugfile_paths){0};
    if (module->path[0] == '\0' || module->path[0] == '[') {
        return 0;
    }
    SCOPE(debugfile_close) struct debugfile_elf file = {0};
    /* What a recording has of a file without a build-id is the file as it was then. */
    if (module->build_id_size == 0 && find_unnamed(module->path, folders, &paths->debug)) {
        return 0;
    }
    errno = 0;
    bool opened = debugfile_open(module->path, &file, NULL) == 0;
    int reason = errno;
    bool same = opened;
    if (opened && module->build_id_size) {
        const void *found = NULL;
        ssize_t size = debugfile_build_id(file.elf, &found);
        same = same_build_id(module->build_id, module->build_id_size, found, size);
    }
    if (same) {
        paths->object = strdup(module->path);
        find_debug(paths, file.elf, module->path, folders);
        return paths->object ? 0 : -1;
    }
    /* The debug file of the recorded build may still be there, and has its symbols too. */
    struct identity identity = {module->build_id, module->build_id_size, false, 0};
    try_build_id(&paths->debug, &identity, folders);
    if (!paths->debug && opened) {
        snprintf(paths->problem, sizeof paths->problem,
                 "%.400s has changed since the profile was taken: no names from it", module->path);
    } else if (!paths->debug) {
        snprintf(paths->problem, sizeof paths->problem, "%.400s: %s: no names from it",
                 module->path,
                 reason == EACCES && geteuid() == 0 ? "another user's, as is the profile"
                 : reason                           ? strerror(reason)
                                                    : "not an ELF file");
    }
    return 0;
}

int debugfile_find(const struct symbol_module *module, const char *folders,
                   struct debugfile_paths *paths) {
    struct symbol_module there = *module;
    char path[PATH_MAX], other[PATH_MAX] = "";
    bool found = false, is_copy;
    for (unsigned i = 0; !found && module_place(module->path, i, path, &is_copy); i++) {
        enum fit fit = fit_of(path, module, is_copy);
        found = fit == SAME_BUILD;
        if (found) {
            there.path = path;
        } else if (fit == OTHER_BUILD && is_copy && other[0] == '\0') {
            strcpy(other, path);
        }
    }
    SCOPE_MEMORY char *all = with_copies(folders ? folders : "/usr/lib/debug");
    int result = all ? find_here(&there, all, paths) : -1;
    if (result == 0 && other[0] != '\0' && !paths->object && !paths->debug) {
        snprintf(paths->problem, sizeof paths->problem,
                 "%.400s is another build than the program's: no names from it", other);
    }
    return result;
}

void debugfile_fetch(const struct symbol_module *module, struct debugfile_paths *paths) {
    struct symbol_module wanted = *module;
    struct debugfile_elf file = {0};
    const void *build_id = NULL;
    char problem[sizeof paths->problem] = "";
    char *fetched = NULL;
    bool has_dwarf = false;
    if (!debuginfod_is_wanted() || module->path[0] != '/') {
        return;
    }
    if (paths->debug && debugfile_open(paths->debug, &file, NULL) == 0) {
        has_dwarf = debugfile_has_dwarf(file.elf);
        debugfile_close(&file);
    }
    if (has_dwarf) {
        return;
    }
    if (module->build_id_size == 0 && paths->object &&
        debugfile_open(paths->object, &file, NULL) == 0) {
        ssize_t size = debugfile_build_id(file.elf, &build_id);
        wanted.build_id = build_id;
        wanted.build_id_size = size > 0 ? (size_t)size : 0;
    }
    struct identity identity = {wanted.build_id, wanted.build_id_size, false, 0};
    if (wanted.build_id_size != 0) {
        fetched = debuginfod_fetch(&wanted, problem, sizeof problem);
    }
    /* What was found is kept where a server's file is not the wanted one. */
    if (fetched && debugfile_matches(fetched, &identity)) {
        free(paths->debug);
        paths->debug = fetched;
        paths->problem[0] = '\0';
    } else {
        free(fetched);
        if (problem[0] != '\0') {
            memcpy(paths->problem, problem, sizeof problem);
        }
    }
    debugfile_close(&file);
}

void debugfile_free(struct debugfile_paths *paths) {
    free(paths->object);
    free(paths->debug);
    paths->object = paths->debug = NULL;
}

char *debugfile_find_alternate(const char *name, const void *build_id, size_t build_id_size,
                               const char *folder, const char *folders) {
    struct identity identity = {build_id, build_id_size, false, 0};
    char *result = NULL;
    try_path(&result, &identity, "%s%s", name[0] == '/' ? "" : folder, name);
    try_build_id(&result, &identity, folders);
    char root[PATH_MAX];
    while (next_folder(&folders, root)) {
        try_path(&result, &identity, "%s/.dwz/%s", root, basename(name));
    }
    return result;
}

/* ---- Unpacked debug information in memory. Only ELF files of 64 bits in this machine's byte
 * order; libdw unpacks others itself ---- */

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

static bool section_starts_with(const char *name, const char *start) {
    return strncmp(name, start, strlen(start)) == 0;
}

bool debugimage_is_needed(const char *section) {
    static const char *const others[] = {"loc",      "loclists", "frame", "pubnames",
                                         "pubtypes", "gnu_pub",  "macro", "macinfo"};
    const char *kind = section_starts_with(section, ".debug_")    ? section + sizeof ".debug_" - 1
                       : section_starts_with(section, ".zdebug_") ? section + sizeof ".zdebug_" - 1
                                                                  : NULL;
    for (size_t i = 0; kind && i < sizeof others / sizeof others[0]; i++) {
        if (section_starts_with(kind, others[i])) {
            return false;
        }
    }
    return kind != NULL;
}

static bool section_is_kept(const char *name) {
    return debugimage_is_needed(name) || strcmp(name, ".shstrtab") == 0 ||
           strcmp(name, ".gnu_debugaltlink") == 0 || strcmp(name, ".note.gnu.build-id") == 0;
}

/* Where the section's contents are in the file, and what becomes of them. false: they do not lie in
 * the file, or make no sense. */
static bool plan_part(struct part *part, const char *bytes, size_t size,
                      const Elf64_Shdr *section) {
    if (section->sh_offset > size || section->sh_size > size - section->sh_offset) {
        return false;
    }
    part->from = (const unsigned char *)bytes + section->sh_offset;
    part->from_size = part->size = section->sh_size;
    if (!(section->sh_flags & SHF_COMPRESSED)) {
        return true;
    }
    Elf64_Chdr header;
    if (part->from_size < sizeof header) {
        return false;
    }
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
static int debugimage_plan(struct plan *plan, Elf *elf) {
    size_t size, names;
    const char *bytes = elf_rawfile(elf, &size);
    const char *ident = elf_getident(elf, NULL);
    if (!bytes || !ident || ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != OWN_ORDER ||
        elf_getshdrnum(elf, &plan->count) != 0 || elf_getshdrstrndx(elf, &names) != 0) {
        return -1;
    }
    plan->header = (const Elf64_Ehdr *)bytes;
    plan->sections = calloc(plan->count + 1, sizeof *plan->sections);
    plan->parts = calloc(plan->count + 1, sizeof *plan->parts);
    if (!plan->sections || !plan->parts) {
        return -1;
    }
    uint64_t offset = sizeof *plan->header;
    for (size_t i = 0; i < plan->count; i++) {
        Elf64_Shdr *section = &plan->sections[i];
        Elf64_Shdr *there = elf64_getshdr(elf_getscn(elf, i));
        const char *name = there ? elf_strptr(elf, names, there->sh_name) : NULL;
        if (!there) {
            return -1;
        }
        *section = *there;
        if (section->sh_type == SHT_NOBITS || section->sh_type == SHT_NULL) {
            continue;
        }
        if (!name || !section_is_kept(name)) {
            section->sh_type = SHT_NOBITS;
            continue;
        }
        if (!plan_part(&plan->parts[i], bytes, size, section)) {
            return -1;
        }
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

static bool unpack_part(const struct part *part, char *to) {
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

static void *unpack_parts(void *argument) {
    struct plan *plan = argument;
    size_t i;
    while ((i = atomic_fetch_add(&plan->next, 1)) < plan->count) {
        if (plan->parts[i].size &&
            !unpack_part(&plan->parts[i], plan->image + plan->parts[i].offset)) {
            atomic_store(&plan->failed, true);
        }
    }
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
           pthread_create(&others[started], NULL, unpack_parts, plan) == 0) {
        started++;
    }
    unpack_parts(plan);
    while (started > 0) {
        pthread_join(others[--started], NULL);
    }
}

void debugimage_make(struct debugimage *image, const char *path, unsigned threads) {
    struct plan plan = {0};
    struct debugfile_elf file;
    *image = (struct debugimage){0};
    if (debugfile_open(path, &file, NULL) != 0) {
        return;
    }
    if (debugimage_plan(&plan, file.elf) == 0) {
        image->size = plan.size + plan.count * sizeof *plan.sections;
        plan.image = mmap(NULL, image->size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        image->bytes = plan.image != MAP_FAILED ? plan.image : NULL;
    }
    if (image->bytes) {
        if (image->size >= HUGE_PAGE) {
            madvise(image->bytes, image->size, MADV_HUGEPAGE);
        }
        Elf64_Ehdr header = *plan.header;
        header.e_phoff = 0;
        header.e_phnum = 0;
        header.e_shoff = plan.size;
        memcpy(plan.image, &header, sizeof header);
        memcpy(plan.image + plan.size, plan.sections, plan.count * sizeof *plan.sections);
        unpack_all(&plan, threads);
        if (atomic_load(&plan.failed)) {
            debugimage_free(image);
        }
    }
    free(plan.sections);
    free(plan.parts);
    debugfile_close(&file);
}

void debugimage_free(struct debugimage *image) {
    if (image->bytes) {
        munmap(image->bytes, image->size);
    }
    *image = (struct debugimage){0};
}
