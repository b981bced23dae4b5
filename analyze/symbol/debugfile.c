/* SPDX-License-Identifier: MIT */
/*
 * debugfile.c: looks for a module's file and its separate debug file. See debugfile.h.
 *
 * The order is gdb's: by build-id, by .gnu_debuglink beside the file, in .debug/ and below the
 * debug folders; then <folder>/<path> and <folder>/<path>.debug.
 */
#include "analyze/symbol/debugfile.h"

#include "analyze/read/trust.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <lzma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a candidate file must match. */
struct identity {
    const void *build_id;
    size_t build_id_size; /* 0: go by the checksum */
    bool has_checksum;
    uint32_t checksum;
};

enum { RECORDED_BUILD_ID_BYTES = 32 }; /* a profile keeps no more of a longer one */

static bool same_build_id(const void *recorded, size_t recorded_size, const void *found,
                          ssize_t found_size) {
    if (found_size <= 0)
        return false;
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
    if (fd < 0)
        return -1;
    bool is_allowed = trust_allows(fd, path);
    if (is_allowed && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        file->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    const char *slash = strrchr(path, '/');
    if (file->elf && elf_kind(file->elf) == ELF_K_ELF)
        file->folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
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
    if (file->elf)
        elf_end(file->elf);
    free(file->folder);
    *file = (struct debugfile_elf){0};
}

Elf_Scn *debugfile_next_section(Elf *elf, Elf_Scn *section, GElf_Shdr *header, const char **name) {
    size_t names;
    while ((section = elf_nextscn(elf, section)) && !gelf_getshdr(section, header))
        ;
    *name = section && elf_getshdrstrndx(elf, &names) == 0 ? elf_strptr(elf, names, header->sh_name)
                                                           : NULL;
    *name = *name ? *name : "";
    return section;
}

int debugfile_visit_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                            int (*visit)(void *context, const GElf_Sym *symbol, const char *name),
                            void *context) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    int result = 0;
    for (size_t i = 1; i < count && result == 0; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol))
            break;
        const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (name)
            result = visit(context, &symbol, name);
    }
    return result;
}

bool debugfile_has_dwarf(Elf *elf) {
    GElf_Shdr header;
    const char *name;
    for (Elf_Scn *section = NULL; (section = debugfile_next_section(elf, section, &header, &name));)
        if (header.sh_type != SHT_NOBITS &&
            (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0))
            return true;
    return false;
}

static bool checksum_matches(Elf *elf, uint32_t checksum) {
    size_t size;
    const char *bytes = elf_rawfile(elf, &size);
    return bytes && lzma_crc32((const uint8_t *)bytes, size, 0) == checksum;
}

/* Whether path is the file that is wanted. */
static bool matches(const char *path, const struct identity *identity) {
    struct debugfile_elf file;
    if (debugfile_open(path, &file, NULL) != 0)
        return false;
    const void *found;
    ssize_t found_size = dwelf_elf_gnu_build_id(file.elf, &found);
    bool match;
    if (identity->build_id_size && found_size > 0)
        match = same_build_id(identity->build_id, identity->build_id_size, found, found_size);
    else
        match = identity->has_checksum && checksum_matches(file.elf, identity->checksum);
    debugfile_close(&file);
    return match;
}

/* *result becomes the path if it is the wanted file. `result` is set once only. */
static void try_path(char **result, const struct identity *identity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void try_path(char **result, const struct identity *identity, const char *format, ...) {
    char path[PATH_MAX];
    if (*result)
        return;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    if (length < (int)sizeof path && matches(path, identity))
        *result = strdup(path);
}

/* The next root of the colon-separated list into root; false at the end. */
static bool next_folder(const char **list, char root[PATH_MAX]) {
    while (**list == ':')
        ++*list;
    size_t length = strcspn(*list, ":");
    if (length == 0 || length >= PATH_MAX)
        return false;
    memcpy(root, *list, length);
    root[length] = '\0';
    *list += length;
    return true;
}

static void try_build_id(char **result, const struct identity *identity, const char *folders) {
    const uint8_t *bytes = identity->build_id;
    char hexadecimal[2 * 64 + 1];
    if (identity->build_id_size < 2 || identity->build_id_size > 64)
        return;
    for (size_t i = 0; i < identity->build_id_size; i++)
        snprintf(hexadecimal + 2 * i, 3, "%02x", bytes[i]);
    char root[PATH_MAX];
    while (next_folder(&folders, root))
        try_path(result, identity, "%s/.build-id/%.2s/%s.debug", root, hexadecimal,
                 hexadecimal + 2);
}

/* The separate debug file of a module's own file, which is open and lies at path. */
static void try_links(char **result, struct identity *identity, Elf *elf, const char *path,
                      const char *folders) {
    char root[PATH_MAX];
    int folder = (int)(strrchr(path, '/') ? strrchr(path, '/') - path : 0);
    GElf_Word checksum;
    const char *link = dwelf_elf_gnu_debuglink(elf, &checksum);
    if (link && !strchr(link, '/')) {
        identity->has_checksum = true;
        identity->checksum = checksum;
        try_path(result, identity, "%.*s/%s", folder, path, link);
        try_path(result, identity, "%.*s/.debug/%s", folder, path, link);
        for (const char *list = folders; next_folder(&list, root);)
            try_path(result, identity, "%s%.*s/%s", root, folder, path, link);
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
    ssize_t size = dwelf_elf_gnu_build_id(elf, &build_id);
    struct identity identity = {.build_id = build_id, .build_id_size = size > 0 ? (size_t)size : 0};
    try_build_id(&paths->debug, &identity, folders);
    try_links(&paths->debug, &identity, elf, path, folders);
    /* A path through links (/lib -> /usr/lib) may have its debug file under the other name. */
    char real[PATH_MAX];
    if (!paths->debug && realpath(path, real) && strcmp(real, path) != 0)
        try_links(&paths->debug, &identity, elf, real, folders);
}

int debugfile_find(const struct symbol_module *module, const char *folders,
                   struct debugfile_paths *paths) {
    *paths = (struct debugfile_paths){0};
    if (module->path[0] == '\0' || module->path[0] == '[')
        return 0;
    struct debugfile_elf file;
    errno = 0;
    bool opened = debugfile_open(module->path, &file, NULL) == 0;
    int reason = errno;
    bool same = opened;
    if (opened && module->build_id_size) {
        const void *found = NULL;
        ssize_t size = dwelf_elf_gnu_build_id(file.elf, &found);
        same = same_build_id(module->build_id, module->build_id_size, found, size);
    }
    if (same) {
        paths->object = strdup(module->path);
        find_debug(paths, file.elf, module->path, folders);
        debugfile_close(&file);
        return paths->object ? 0 : -1;
    }
    /* The debug file of the recorded build may still be there, and has its symbols too. */
    struct identity identity = {module->build_id, module->build_id_size, false, 0};
    try_build_id(&paths->debug, &identity, folders);
    if (!paths->debug && opened)
        snprintf(paths->problem, sizeof paths->problem,
                 "%.400s has changed since the profile was taken: no names from it", module->path);
    else if (!paths->debug)
        snprintf(paths->problem, sizeof paths->problem, "%.400s: %s: no names from it",
                 module->path,
                 reason == EACCES && geteuid() == 0 ? "another user's, as is the profile"
                 : reason                           ? strerror(reason)
                                                    : "not an ELF file");
    debugfile_close(&file);
    return 0;
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
    const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    char root[PATH_MAX];
    while (next_folder(&folders, root))
        try_path(&result, &identity, "%s/.dwz/%s", root, base);
    return result;
}
