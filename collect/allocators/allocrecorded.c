/* SPDX-License-Identifier: MIT */
/* allocrecorded.c: see allocrecorded.h. */
#include "collect/allocators/allocrecorded.h"

#include "analyze/base/job.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
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

static void allocrecords_add(struct allocrecords *records, const char *line) {
    struct allocrecorded *it;
    char *rest;
    if (!allocrecords_has(records, line)) {
        job_grow(&records->items, &records->room, records->count, sizeof *records->items);
        it = &records->items[records->count++];
        rest = job_string(line);
        for (size_t i = 0; i < ALLOCRECORDED_FIELDS; i++) {
            const char *field = strsep(&rest, "\t");
            it->field[i] = field != NULL ? field : "";
        }
    }
}

static void allocrecords_add_object(struct allocrecords *records, Elf *elf) {
    Elf_Scn *section = NULL;
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0) {
        return;
    }
    while ((section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) != NULL ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name != NULL && strcmp(name, ALLOCRECORDED_SECTION) == 0 &&
            header.sh_type != SHT_NOBITS) {
            const Elf_Data *data = elf_rawdata(section, NULL);
            const char *at = data != NULL ? data->d_buf : NULL;
            const char *end = at != NULL ? at + data->d_size : NULL;
            /* Of a damaged one the last string may not end. */
            for (; at < end && memchr(at, '\0', (size_t)(end - at)) != NULL; at += strlen(at) + 1) {
                if (*at != '\0') {
                    allocrecords_add(records, at);
                }
            }
        }
        records->is_for_linking |= name != NULL && strncmp(name, ".gnu.lto_", 9) == 0;
    }
}

struct recorded_file {
    int fd;
    Elf *elf;
};

static void recorded_file_close(void *what) {
    const struct recorded_file *file = what;
    elf_end(file->elf);
    close(file->fd);
}

void allocrecorded_read(struct allocrecords *records, const char *path) {
    struct recorded_file *file = job_alloc(sizeof *file);
    Elf_Cmd command = ELF_C_READ;
    Elf *member;
    file->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0) {
        job_fail("cannot open %s: %s", path, strerror(errno));
    }
    job_undo(recorded_file_close, file);
    elf_version(EV_CURRENT);
    file->elf = elf_begin(file->fd, command, NULL);
    switch (file->elf != NULL ? elf_kind(file->elf) : ELF_K_NONE) {
    case ELF_K_ELF:
        allocrecords_add_object(records, file->elf);
        break;
    case ELF_K_AR: /* of an archive, all of its objects */
        while (command != ELF_C_NULL &&
               (member = elf_begin(file->fd, command, file->elf)) != NULL) {
            if (elf_kind(member) == ELF_K_ELF) {
                allocrecords_add_object(records, member);
            }
            command = elf_next(member);
            elf_end(member);
        }
        break;
    default:
        job_fail("%s is neither a program, nor a library, nor an object", path);
    }
    job_undo_now(file);
}
