/* SPDX-License-Identifier: MIT */
/* module.c: loaded objects by address, and their files. See module.h. */
#define _GNU_SOURCE
#include "runtime/stack/module.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/libc/libc.h"
#include "runtime/machine/machine.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>

struct memtrace_module *module_get(const struct modules *modules, uint32_t id) {
    struct memtrace_module *leaf =
        id < MODULE_LIMIT ? LOAD_ACQUIRE(&modules->leaf[id / MODULE_LEAF_ITEMS]) : NULL;
    return leaf != NULL && id % MODULE_LEAF_ITEMS != 0 ? leaf + id % MODULE_LEAF_ITEMS : NULL;
}

enum { PARTS_MOST = 5 }; /* of a path */

struct note {
    const void *body;
    size_t size; /* 0: there is none */
};

/* The first note of this type with this name, of 4 bytes, in a segment of notes. */
static struct note note_in(const ElfW(Phdr) * segment, uintptr_t bias, const char *name,
                           uint32_t type) {
    const uint8_t *at = (const uint8_t *)(bias + segment->p_vaddr);
    const uint8_t *end = at + segment->p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *header = (const ElfW(Nhdr) *)at;
        size_t name_size = (header->n_namesz + 3u) & ~3u;
        size_t body_size = (header->n_descsz + 3u) & ~3u;
        const uint8_t *body = at + sizeof *header + name_size;
        if (body + body_size > end) {
            break;
        }
        if (header->n_type == type && name_size == 4 &&
            __builtin_memcmp(header + 1, name, name_size) == 0) {
            return (struct note){body, header->n_descsz};
        }
        at = body + body_size;
    }
    return (struct note){0};
}

/* The same in the object that is mapped there. Its first page is its ELF header and, where linkers
 * put them, the program headers. */
static struct note find_note(uintptr_t start, uintptr_t bias, const char *name, uint32_t type) {
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)start;
    const ElfW(Phdr) * program;
    struct note note = {0};
    if (__builtin_memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof *program ||
        header->e_phoff + header->e_phnum * sizeof *program > MEMTRACE_PAGE_SIZE) {
        return note;
    }
    program = (const ElfW(Phdr) *)(start + header->e_phoff);
    for (size_t i = 0; i < header->e_phnum && note.size == 0; i++) {
        if (program[i].p_type == PT_NOTE) {
            note = note_in(&program[i], bias, name, type);
        }
    }
    return note;
}

static void read_build_id(struct memtrace_module *module, uintptr_t start, uintptr_t bias) {
    struct note note = find_note(start, bias, "GNU", NT_GNU_BUILD_ID);
    if (note.size != 0 && note.size <= sizeof module->build_id) {
        module->build_id_size = (uint32_t)note.size;
        __builtin_memcpy(module->build_id, note.body, note.size);
    }
}

int module_is_go(const struct modules *modules, const struct module_place *place) {
    enum { GO_BUILD_ID = 4 }; /* cmd/link/internal/ld/elf.go: ELF_NOTE_GOBUILDID_TAG */
    const struct memtrace_module *module = module_get(modules, place->id);
    return module != NULL && place->is_known && module->path[0] != '[' &&
           find_note(module->start, module->bias, "Go\0", GO_BUILD_ID).size != 0;
}

/* Whether the record's path is this one, as far as it was kept. */
static int has_path(const struct modules *modules, const struct memtrace_module *module,
                    const char *path) {
    uint32_t rest;
    for (int parts = 0; (rest = memtrace_module_rest(module)) != 0; parts++) {
        if (parts == PARTS_MOST ||
            __builtin_strncmp(path, module->path, MEMTRACE_MODULE_PART) != 0) {
            return 0;
        }
        path += MEMTRACE_MODULE_PART;
        module = module_get(modules, rest);
        if (module == NULL) {
            return 0;
        }
    }
    return __builtin_strncmp(path, module->path, sizeof module->path - 1) == 0;
}

/* Whether this object, which cannot go meanwhile, is the one of the record: another one may lie
 * where it was. */
static int module_is_same(const struct modules *modules, const struct memtrace_module *module,
                          const struct libc_object *object) {
    const char *path = object->name;
    return module->start == object->start && module->end == object->end &&
           (path == NULL || path[0] != '/' || has_path(modules, module, path));
}

/* Among the records below `end`. */
static uint32_t lookup_below(const struct modules *modules, const struct libc_object *object,
                             uint32_t end) {
    for (uint32_t id = end; id-- > 1;) {
        const struct memtrace_module *module = module_get(modules, id);
        if (module != NULL && LOAD_ACQUIRE(&module->id) == id &&
            LOAD_RELAXED(&module->unload_ns) == 0 && module_is_same(modules, module, object)) {
            return id;
        }
    }
    return 0;
}

static uint32_t lookup(const struct modules *modules, const struct libc_object *object) {
    return lookup_below(modules, object, LOAD_ACQUIRE(&modules->header->module_count));
}

static struct memtrace_module *leaf_for(struct modules *modules, uint32_t id) {
    uint32_t index = id / MODULE_LEAF_ITEMS;
    return modules->space->is_private
               ? modules->leaf[index]
               : space_leaf(modules->space, &modules->leaf[index], MEMTRACE_SEGMENT_MODULES, index,
                            sizeof(struct memtrace_module), MODULE_LEAF_ITEMS);
}

void module_init(struct modules *modules, struct space *space, const char *executable) {
    modules->space = space;
    modules->header = space->header;
    modules->noted = NULL;
    text_copy(modules->executable, sizeof modules->executable, executable);
    leaf_for(modules, 1); /* light children share it: it must be there before them */
}

/* A free place whose leaf is there; 0: none. Light children take them, too: the count is moved by
 * whoever is first, and a record that is not filled yet has no id. */
static uint32_t module_take_place(struct modules *modules) {
    uint32_t count = LOAD_RELAXED(&modules->header->module_count);
    uint32_t id;
    do { /* the place under a segment header, and id 0, are no records */
        id = count + (count % MODULE_LEAF_ITEMS == 0);
        if (id >= MODULE_LIMIT || leaf_for(modules, id) == NULL) {
            return 0;
        }
    } while (!__atomic_compare_exchange_n(&modules->header->module_count, &count, id + 1, 0,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return id;
}

/* A path, in further records if it needs them; cut where there is no place for those. */
static void put_path(struct modules *modules, struct memtrace_module *module, const char *path) {
    uint32_t ids[PARTS_MOST];
    size_t count = 0;
    while (text_length(path) >= sizeof module->path && count < PARTS_MOST) {
        uint32_t id = module_take_place(modules);
        uint8_t *rest = (uint8_t *)&module->path[MEMTRACE_MODULE_PART + 1];
        if (id == 0) {
            break;
        }
        text_copy(module->path, MEMTRACE_MODULE_PART + 1, path);
        rest[0] = (uint8_t)id;
        rest[1] = (uint8_t)(id >> 8);
        rest[2] = (uint8_t)(id >> 16);
        path += MEMTRACE_MODULE_PART;
        module = module_get(modules, id);
        ids[count++] = id;
    }
    text_copy(module->path, sizeof module->path, path);
    while (count-- > 0) { /* who names another comes after it */
        STORE_RELEASE(&module_get(modules, ids[count])->id, ids[count]);
    }
}

static void module_fill(struct modules *modules, struct memtrace_module *module,
                        const struct libc_object *object) {
    const char *path = object->name;
    module->start = object->start;
    module->end = object->end;
    module->bias = object->bias;
    module->load_ns = LOAD_RELAXED(&modules->header->clock_ns);
    if (path == NULL || path[0] == '\0') {
        path = modules->executable;
        modules->executable_start = module->start;
    } else if (text_starts(path, "linux-vdso") || text_starts(path, "linux-gate")) {
        path = "[vdso]";
        module->bias = object->start; /* no file has it; qemu makes its addresses absolute */
    }
    if (path[0] != '/' && path[0] != '[') { /* a library given by a relative path */
        struct text text;
        long length;
        text_init(&text, modules->path, sizeof modules->path);
        length = sys_getcwd(modules->path, sizeof modules->path);
        if (length > 0) {
            text.length = (size_t)length - 1;
            text_add(&text, "/");
        }
        text_add(&text, path);
        path = modules->path;
    }
    put_path(modules, module, path);
    read_build_id(module, object->start, object->bias);
}

/* The record of an object that has gone and is there again, the same in the same place: programs
 * load plug-ins over and over, and the table has an end. Without a build-id it may have been built
 * anew meanwhile: only if there is no place for another record. 0: there is none. */
static uint32_t module_take_again(struct modules *modules, const struct libc_object *object,
                                  int without_build_id) {
    struct memtrace_module now = {0};
    read_build_id(&now, object->start, object->bias);
    if (modules->space->is_private || (now.build_id_size == 0) != without_build_id) {
        return 0;
    }
    for (uint32_t id = LOAD_ACQUIRE(&modules->header->module_count); id-- > 1;) {
        struct memtrace_module *module = module_get(modules, id);
        if (module != NULL && LOAD_ACQUIRE(&module->id) == id &&
            LOAD_RELAXED(&module->unload_ns) != 0 && module_is_same(modules, module, object) &&
            module->build_id_size == now.build_id_size &&
            __builtin_memcmp(module->build_id, now.build_id, now.build_id_size) == 0) {
            STORE_RELAXED(&modules->retired[id], 0);
            STORE_RELEASE(&module->unload_ns, 0);
            return id;
        }
    }
    return 0;
}

/* 0: the table is full. */
static uint32_t module_add(struct modules *modules, const struct libc_object *object) {
    uint32_t id = module_take_again(modules, object, 0);
    if (id != 0) {
        return id;
    }
    id = module_take_place(modules);
    if (id == 0) {
        return module_take_again(modules, object, 1);
    }
    module_fill(modules, module_get(modules, id), object);
    STORE_RELEASE(&module_get(modules, id)->id, id);
    return id;
}

/* Held while one record is filled. Who does not get it in time does without. */
static int module_lock(struct modules *modules) {
    int is_mine = sys_take(&modules->lock);
    if (!is_mine) {
        space_lost(modules->space, MEMTRACE_LOST_MODULES, 1);
    }
    return is_mine;
}

int module_find(struct modules *modules, uintptr_t address, struct module_place *place) {
    struct libc_object object;
    const struct memtrace_module *module;
    if (libc_find_object(address, &object) != 0) {
        return -1;
    }
    *place = (struct module_place){.start = object.start,
                                   .end = object.end,
                                   .eh_frame_header = object.eh_frame_header,
                                   .unwind_entries = object.unwind_entries,
                                   .own = 1};
    place->id = lookup(modules, &object);
    place->is_known = place->id != 0;
    if (!place->is_known && module_lock(modules)) {
        place->id = lookup(modules, &object);
        if (place->id == 0) {
            place->id = module_add(modules, &object);
            space_lost(modules->space, MEMTRACE_LOST_MODULES, place->id == 0);
        }
        place->is_known = 1;
        trylock_release(&modules->lock);
    }
    place->is_known &= !LOAD_RELAXED(&modules->retired[place->id]);
    /* The program's own code: not below the system's library folders. */
    module = place->id != 0 ? module_get(modules, place->id) : NULL;
    place->own = module == NULL || place->start == modules->executable_start ||
                 (module->path[0] == '/' && !text_starts(module->path, "/lib") &&
                  !text_starts(module->path, "/usr/lib"));
    return 0;
}

uint32_t module_note_begin(struct modules *modules) {
    uint32_t count;
    if (!sys_take(&modules->lock)) { /* no loss: they are noted another time */
        return 0;
    }
    count = LOAD_ACQUIRE(&modules->header->module_count);
    return count != 0 ? count : 1; /* no record has this number either */
}

void module_note(struct modules *modules, uintptr_t address, uint32_t begun) {
    struct libc_object object;
    if (libc_find_object(address, &object) == 0 && lookup_below(modules, &object, begun) == 0) {
        module_add(modules, &object);
    }
}

void module_note_end(struct modules *modules) {
    trylock_release(&modules->lock);
}

void module_retire(struct modules *modules, uintptr_t address,
                   void (*gone)(void *argument, uintptr_t start, uintptr_t end), void *argument) {
    struct libc_object object;
    uint32_t id = libc_find_object(address, &object) == 0 ? lookup(modules, &object) : 0;
    if (id != 0) {
        STORE_RELAXED(&modules->retired[id], 1);
        gone(argument, module_get(modules, id)->start, module_get(modules, id)->end);
    }
}

void module_sweep(struct modules *modules, uint64_t now_ns,
                  void (*gone)(void *argument, uintptr_t start, uintptr_t end), void *argument) {
    uint32_t count = LOAD_ACQUIRE(&modules->header->module_count);
    for (uint32_t id = 1; id < count; id++) {
        struct memtrace_module *module = module_get(modules, id);
        struct libc_object object;
        if (module == NULL || LOAD_ACQUIRE(&module->id) != id || module->unload_ns != 0) {
            continue;
        }
        if (LOAD_RELAXED(&modules->retired[id]) || libc_find_object(module->start, &object) != 0 ||
            !module_is_same(modules, module, &object)) {
            gone(argument, module->start, module->end);
            if (modules->space->is_private) { /* in the ancestor it may be loaded */
                STORE_RELAXED(&modules->retired[id], 0);
            } else {
                STORE_RELAXED(&module->unload_ns, now_ns); /* last: another thread relies on it */
            }
        }
    }
}

/* --- the file that an object was loaded from (module.h) ---------------------------------- */

/* The headers and, as linkers lay files out, the build-id. */
enum { COMPARED_BYTES = 1024, MOST_BYTES = 1 << 28 };

int module_file_read(const struct module_file *file, void *to, size_t size, uint64_t offset) {
    size_t done = 0;
    while (done < size) {
        long more = sys_pread(file->fd, (uint8_t *)to + done, size - done, offset + done);
        if (more <= 0) {
            return -1;
        }
        done += (size_t)more;
    }
    return 0;
}

/* Whether the file begins as what was loaded from it; fills its header. */
static int module_file_is_loaded(struct module_file *file, const struct memtrace_module *module) {
    _Alignas(ElfW(Ehdr)) uint8_t first[COMPARED_BYTES];
    if (module_file_read(file, first, sizeof first, 0) != 0 ||
        memcmp(first, (const void *)(uintptr_t)module->start, sizeof first) != 0) {
        return 0;
    }
    memcpy(&file->header, first, sizeof file->header);
    return file->header.e_ident[EI_CLASS] == MACHINE_ELF_CLASS &&
           file->header.e_shentsize == sizeof(ElfW(Shdr));
}

int module_file_open(const struct memtrace_module *module, struct module_file *file) {
    long fd =
        module->path[0] == '/' ? sys_open(module->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0) : -1;
    if (fd < 0) {
        return -1;
    }
    file->fd = (int)fd;
    if (sys_fstat(file->fd, &file->status) == 0 && S_ISREG(file->status.st_mode) &&
        module_file_is_loaded(file, module)) {
        return 0;
    }
    module_file_close(file);
    return -1;
}

void module_file_close(const struct module_file *file) {
    sys_close(file->fd);
}

static int module_file_header(const struct module_file *file, size_t number, ElfW(Shdr) * section) {
    return number < file->header.e_shnum
               ? module_file_read(file, section, sizeof *section,
                                  file->header.e_shoff + number * sizeof *section)
               : -1;
}

int module_file_section(const struct module_file *file, const char *wanted, uint64_t flags,
                        ElfW(Shdr) * section) {
    char name[16];
    size_t length = text_length(wanted) + 1;
    ElfW(Shdr) names;
    if (module_file_header(file, file->header.e_shstrndx, &names) != 0) {
        return -1;
    }
    for (size_t i = 1; i < file->header.e_shnum; i++) {
        if (module_file_header(file, i, section) != 0) {
            return -1;
        }
        if ((section->sh_type == SHT_PROGBITS || section->sh_type == MACHINE_DEBUG_SECTION) &&
            (section->sh_flags & (SHF_ALLOC | SHF_COMPRESSED)) == flags &&
            section->sh_size - 1 < MOST_BYTES &&
            module_file_read(file, name, length, names.sh_offset + section->sh_name) == 0 &&
            memcmp(name, wanted, length) == 0) {
            return 0;
        }
    }
    return -1;
}

int module_file_loaded(const struct module_file *file, const struct memtrace_module *module,
                       const char *wanted, uintptr_t *start, uintptr_t *end) {
    ElfW(Shdr) section;
    if (module_file_section(file, wanted, SHF_ALLOC, &section) != 0 ||
        section.sh_addr + section.sh_size > module->end - module->bias) {
        return -1;
    }
    *start = (uintptr_t)(module->bias + section.sh_addr);
    *end = *start + section.sh_size;
    return 0;
}
