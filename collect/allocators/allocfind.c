/* SPDX-License-Identifier: MIT */
/* allocfind.c: see allocfind.h. */
#define _GNU_SOURCE
#include "collect/allocators/allocfind.h"

#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/symbol/symbol.h"
#include "collect/allocators/allocmatch.h"
#include "collect/allocators/allocsets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names ---- */

char *allocfind_name(const char *symbol) {
    char *name = symbol_demangle(symbol);
    if (name != NULL) {
        name[allocmatch_length(name)] = '\0';
    } else {
        name = strndup(symbol, strcspn(symbol, "@"));
    }
    if (name == NULL) {
        job_fail_memory();
    }
    return name;
}

static bool allocspec_is_address(const struct allocspec *spec) {
    return strncmp(spec->symbol, "0x", 2) == 0;
}

static bool allocfind_matches(const struct allocspec *spec, const struct codefile_symbol *symbol) {
    return allocspec_is_address(spec) ? strtoull(spec->symbol, NULL, 16) == symbol->address
                                      : allocmatch_symbol(spec, symbol->name, symbol_demangle);
}

/* A file's name, or its beginning up to a dot. */
static bool is_object(const struct allocspec *spec, const struct allocobject *object) {
    const char *name = pathname_base(object->path);
    size_t length = spec->object != NULL ? strlen(spec->object) : 0;
    return object->is_open &&
           (object->is_program || spec->set != NULL || !spec->in_program_only ||
            spec->object != NULL) &&
           (spec->object == NULL || strcmp(spec->object, object->path) == 0 ||
            (strncmp(spec->object, name, length) == 0 &&
             (name[length] == '\0' || name[length] == '.')));
}

bool allocfind_shows(const struct codefile *code, const char *const *marks) {
    for (size_t i = 0; i < code->symbol_count; i++) {
        for (const char *const *mark = marks; *mark != NULL; mark++) {
            if (**mark == *code->symbols[i].name &&
                allocmatch_is(*mark, code->symbols[i].name, strcspn(code->symbols[i].name, "@"))) {
                return true;
            }
        }
    }
    return false;
}

static const struct allocset *find_set(const char *name) {
    const struct allocset *set = allocsets;
    while (strcmp(set->name, name) != 0) {
        set++;
    }
    return set;
}

/* ---- Finding ---- */

struct finder {
    struct allocprocess *process;
    struct allocfounds founds;
    void (*tell)(const char *line);
    struct allocfounds one; /* of the specification that is being looked for */
};

static void allocfounds_add(struct allocfounds *founds, const struct allocfound *found) {
    for (size_t i = 0; i < founds->count; i++) {
        if (founds->items[i].object == found->object &&
            founds->items[i].symbol->address == found->symbol->address) {
            return; /* another name of it */
        }
    }
    job_grow(&founds->items, &founds->room, founds->count, sizeof *founds->items);
    founds->items[founds->count++] = *found;
}

/* By the file's own symbols, and by those of its debug file if it has none. */
static const struct allocators *allocobject_look_into(struct allocobject *object) {
    static const char *const as_malloc[] = {"malloc", NULL};
    static const char *const as_new[] = {"_Znwm", "_Znam", NULL};
    if (!object->is_looked_at && object->is_open) {
        object->is_looked_at = true;
        programfile_look(object->code.files[0].elf, ALLOCATORS_ALL, &object->holds);
        object->holds.defines_malloc |= allocfind_shows(&object->code, as_malloc);
        object->holds.defines_new |= allocfind_shows(&object->code, as_new);
    }
    return &object->holds;
}

bool allocfind_has_malloc(struct allocobject *object) {
    return allocobject_look_into(object)->defines_malloc && !allocfind_has_own(object);
}

bool allocfind_has_own(struct allocobject *object) {
    const struct allocators *holds = allocobject_look_into(object);
    if (object->is_program && object->code.is_program && holds->defines_malloc) {
        return !holds->holds_runtime && (holds->name != NULL || !holds->wraps_malloc);
    }
    return programfile_has_own_malloc(holds);
}

bool allocfind_may_hold(struct allocobject *object) {
    return allocobject_look_into(object)->name != NULL ? !allocfind_has_malloc(object)
                                                       : allocfind_has_own(object);
}

bool allocfind_is_in(const struct allocset *set, struct allocobject *object) {
    if (set->marks == NULL || !object->is_open || !allocfind_shows(&object->code, set->marks)) {
        return false;
    }
    if (!set->is_unknown) {
        return true;
    }
    for (const struct allocset *other = allocsets; other->name != NULL; other++) {
        if (other->is_heap && !other->is_unknown && allocfind_is_in(other, object)) {
            return false;
        }
    }
    return allocobject_look_into(object)->name == NULL && allocfind_has_own(object);
}

/* Of sets: not the malloc of another allocator. */
static bool is_for_set(const struct allocspec *spec, struct allocobject *object) {
    if (spec->is_automatic && !object->is_program && !allocfind_may_hold(object)) {
        return false;
    }
    if (spec->in_program_only) {
        return (object->is_program || allocfind_has_own(object)) &&
               allocfind_is_in(find_set(spec->set), object);
    }
    return !object->is_program || !spec->in_library_only;
}

static void finder_look_in(struct finder *finder, const struct allocspec *spec,
                           struct allocobject *object) {
    if (spec->set != NULL && !is_for_set(spec, object)) {
        return;
    }
    for (size_t i = 0; i < object->code.symbol_count; i++) {
        const struct codefile_symbol *symbol = &object->code.symbols[i];
        if (!(spec->is_pattern && (symbol->is_chosen_at_start || symbol->is_unnamed)) &&
            allocfind_matches(spec, symbol)) {
            allocfounds_add(&finder->one,
                            &(struct allocfound){.object = object, .symbol = symbol, .spec = spec});
        }
    }
}

/* Of a set and by an object's name all are meant; else those of the program, and of libraries only
 * where the program has none. */
static void finder_look(struct finder *finder, const struct allocspec *spec) {
    finder->one.count = 0;
    for (size_t i = 0; i < finder->process->object_count; i++) {
        struct allocobject *object = &finder->process->objects[i];
        if (is_object(spec, object)) {
            finder_look_in(finder, spec, object);
        }
        if (object->is_program && finder->one.count != 0 && spec->set == NULL) {
            break;
        }
    }
}

static void tell_absent(const struct finder *finder, const struct allocspec *spec) {
    const char *where = "";
    bool is_there = false;
    bool is_stripped = false;
    for (size_t i = 0; i < finder->process->object_count; i++) {
        const struct allocobject *object = &finder->process->objects[i];
        if (is_object(spec, object)) {
            is_stripped |= (object->is_program || spec->object != NULL ||
                            finder->process->object_count == 1) &&
                           !object->code.has_symtab;
            where = where[0] == '\0' ? pathname_base(object->path) : where;
            is_there = true;
        }
    }
    if (!is_there) {
        tell_line(
            finder->tell,
            "\"%s\": no object called %s is loaded; if it is opened later, it is looked at then",
            spec->text, spec->object);
    } else if (is_stripped) {
        tell_line(
            finder->tell,
            "\"%s\": no function is called %s, as far as can be seen: %s is stripped; its debug "
            "information would name all functions",
            spec->text, spec->symbol, where);
    } else {
        tell_line(finder->tell, "\"%s\": no function is called %s in %s%s", spec->text,
                  spec->symbol, where,
                  spec->object == NULL && finder->process->object_count > 1 ? " or its libraries"
                                                                            : "");
    }
}

static void tell_several(const struct finder *finder, const struct allocspec *spec) {
    const struct allocfound *a = &finder->one.items[0];
    const struct allocfound *b = &finder->one.items[1];
    const char *advice = a->object != b->object ? "name its object, as in OBJECT!SYMBOL"
                         : strcmp(a->symbol->name, b->symbol->name) != 0
                             ? "name it with its parameters, or mangled"
                             : "nothing tells them apart";
    tell_line(finder->tell,
              "\"%s\": %zu functions are called %s: at %s+%#" PRIx64 ", %s+%#" PRIx64
              "%s: none of them is taken; %s",
              spec->text, finder->one.count, spec->symbol, pathname_base(a->object->path),
              a->symbol->address, pathname_base(b->object->path), b->symbol->address,
              finder->one.count > 2 ? ", ..." : "", advice);
}

/* Calls that the compiler has led to a copy do not come to the function. */
static void tell_copies(const struct finder *finder, const struct allocfound *found) {
    const struct codefile *code = &found->object->code;
    const char *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < code->symbol_count; i++) {
        if (allocmatch_is_copy(code->symbols[i].name, found->symbol->name)) {
            first = code->symbols[i].name;
            count++;
        }
    }
    if (count != 0) {
        tell_line(
            finder->tell,
            "\"%s\": for some of its calls the compiler has made %s%s: these are not counted, "
            "since "
            "its arguments may be others; what it is built with (ALLOCATORS) counts all",
            found->spec->text, first, count > 1 ? " and others" : "");
    }
}

/* Whether somebody named the function itself before, by this or by another name of it. */
static bool allocfounds_has_named(const struct allocfounds *founds,
                                  const struct allocfound *found) {
    for (size_t i = 0; i < founds->count; i++) {
        const struct allocfound *one = &founds->items[i];
        if (one->object == found->object && one->symbol->address == found->symbol->address) {
            return one->spec->set == NULL;
        }
    }
    return false;
}

static void finder_find(struct finder *finder, const struct allocspec *spec) {
    bool is_loose = spec->is_pattern || spec->set != NULL;
    finder_look(finder, spec);
    if (finder->one.count == 0 && spec->set == NULL) {
        tell_absent(finder, spec);
        return;
    }
    if (finder->one.count > 1 && !is_loose) {
        tell_several(finder, spec);
        return;
    }
    for (size_t i = 0; i < finder->one.count; i++) {
        const struct allocfound *found = &finder->one.items[i];
        if (found->symbol->is_chosen_at_start) {
            tell_line(
                finder->tell,
                "\"%s\": %s chooses another function when the program starts (IFUNC): name that",
                spec->text, found->symbol->name);
        } else if (!is_loose && allocfounds_has_named(&finder->founds, found)) {
            tell_line(finder->tell, "\"%s\": %s is followed already, as another specification says",
                      spec->text, found->symbol->name);
        } else {
            allocfounds_add(&finder->founds, found);
            if (!is_loose) {
                tell_copies(finder, found);
            }
        }
    }
}

struct allocfounds allocfind_all(struct allocprocess *process, const struct allocspecs *specs,
                                 void (*tell)(const char *line)) {
    struct finder finder = {.process = process, .tell = tell};
    bool wants_addresses = false;
    for (size_t i = 0; i < specs->count; i++) {
        wants_addresses |= allocspec_is_address(&specs->items[i]);
    }
    for (size_t i = 0; wants_addresses && i < process->object_count; i++) {
        if (process->objects[i].is_open && codefile_name_unnamed(&process->objects[i].code) != 0) {
            job_fail_memory();
        }
    }
    for (size_t i = 0; i < specs->count; i++) {
        finder_find(&finder, &specs->items[i]);
    }
    return finder.founds;
}
