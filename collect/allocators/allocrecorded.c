/* SPDX-License-Identifier: MIT */
/* allocrecorded.c: see allocrecorded.h. */
#include "collect/allocators/allocrecorded.h"

#include "analyze/base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool allocrecords_has(const struct allocrecords *records, const char *line) {
    for (size_t i = 0; i < records->count; i++) {
        const struct allocrecorded *it = &records->items[i];
        const char *at = line;
        size_t field = 0;
        while (field < ALLOCRECORDED_FIELDS) {
            size_t length = strcspn(at, "\t");
            if (strncmp(it->field[field], at, length) != 0 || it->field[field][length] != '\0') {
                break;
            }
            at += length + (at[length] == '\t' ? 1 : 0);
            field++;
        }
        if (field == ALLOCRECORDED_FIELDS) {
            return true;
        }
    }
    return false;
}

/* 0, or -1: out of memory. */
static int allocrecords_add(struct allocrecords *records, const char *line) {
    struct allocrecorded *it;
    char *rest;
    if (allocrecords_has(records, line)) {
        return 0;
    }
    if (array_grow(&records->items, &records->room, records->count, sizeof *records->items) != 0 ||
        array_grow(&records->lines, &records->lines_room, records->count, sizeof *records->lines) !=
            0) {
        return -1;
    }
    rest = strdup(line);
    if (rest == NULL) {
        return -1;
    }
    it = &records->items[records->count];
    records->lines[records->count++] = rest;
    for (size_t i = 0; i < ALLOCRECORDED_FIELDS; i++) {
        const char *field = strsep(&rest, "\t");
        it->field[i] = field != NULL ? field : "";
    }
    return 0;
}

/* The strings of a section, of which a damaged one may not end. */
static int add_section(struct allocrecords *records, Elf_Scn *section) {
    const Elf_Data *data = elf_rawdata(section, NULL);
    const char *at = data != NULL ? data->d_buf : NULL;
    const char *end = at != NULL ? at + data->d_size : NULL;
    int status = 0;
    while (status == 0 && at < end && memchr(at, '\0', (size_t)(end - at)) != NULL) {
        status = *at != '\0' ? allocrecords_add(records, at) : 0;
        at += strlen(at) + 1;
    }
    return status;
}

static int allocrecords_add_object(struct allocrecords *records, Elf *elf) {
    Elf_Scn *section = NULL;
    size_t names;
    int status = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) {
        return 0;
    }
    while (status == 0 && (section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) != NULL ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name != NULL && strcmp(name, ALLOCRECORDED_SECTION) == 0 &&
            header.sh_type != SHT_NOBITS) {
            status = add_section(records, section);
        }
        records->is_for_linking |= name != NULL && strncmp(name, ".gnu.lto_", 9) == 0;
    }
    return status;
}

/* Of an archive, all of its objects. */
static int allocrecords_add_file(struct allocrecords *records, int fd, const char *path,
                                 struct error *error) {
    Elf_Cmd command = ELF_C_READ;
    Elf *file = elf_begin(fd, command, NULL);
    bool is_archive = file != NULL && elf_kind(file) == ELF_K_AR;
    bool is_elf = file != NULL && elf_kind(file) == ELF_K_ELF;
    int status = 0;
    if (is_elf) {
        status = allocrecords_add_object(records, file);
    }
    while (status == 0 && is_archive && command != ELF_C_NULL) {
        Elf *member = elf_begin(fd, command, file);
        if (member == NULL) {
            break;
        }
        if (elf_kind(member) == ELF_K_ELF) {
            status = allocrecords_add_object(records, member);
        }
        command = elf_next(member);
        elf_end(member);
    }
    if (file != NULL) {
        elf_end(file);
    }
    return !is_archive && !is_elf
               ? error_set(error, "%s is neither a program, nor a library, nor an object", path)
           : status != 0 ? error_set(error, "out of memory")
                         : 0;
}

int allocrecorded_read(struct allocrecords *records, const char *path, struct error *error) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int status;
    if (fd < 0) {
        return error_set(error, "cannot open %s: %s", path, strerror(errno));
    }
    elf_version(EV_CURRENT);
    status = allocrecords_add_file(records, fd, path, error);
    close(fd);
    return status;
}

void allocrecorded_free(struct allocrecords *records) {
    for (size_t i = 0; i < records->count; i++) {
        free(records->lines[i]);
    }
    free(records->items);
    free(records->lines);
    *records = (struct allocrecords){0};
}
