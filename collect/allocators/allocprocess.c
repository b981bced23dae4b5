/* SPDX-License-Identifier: MIT */
/* allocprocess.c: see allocprocess.h. */
#include "collect/allocators/allocprocess.h"

#include "analyze/base/job.h"
#include "analyze/base/scope.h"
#include "analyze/read/procfile.h"

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Parameters ---- */

enum type_class { IS_NUMBER, IS_POINTER, IS_FLOATING, IS_UNKNOWN };

/* What an argument of this type is; the first two are in one register that counts. */
static enum type_class parameter_class(Dwarf_Die *parameter) {
    Dwarf_Attribute attribute;
    Dwarf_Die type;
    Dwarf_Word encoding = 0;
    if (dwarf_formref_die(dwarf_attr_integrate(parameter, DW_AT_type, &attribute), &type) == NULL ||
        dwarf_peel_type(&type, &type) != 0) {
        return IS_UNKNOWN;
    }
    switch (dwarf_tag(&type)) {
    case DW_TAG_enumeration_type:
        return IS_NUMBER;
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
        return IS_POINTER;
    case DW_TAG_base_type:
        if (dwarf_formudata(dwarf_attr(&type, DW_AT_encoding, &attribute), &encoding) != 0 ||
            dwarf_bytesize(&type) > 8) {
            return IS_UNKNOWN;
        }
        return encoding == DW_ATE_float ? IS_FLOATING : IS_NUMBER;
    default:
        return IS_UNKNOWN;
    }
}

/* What a function returns in memory takes a register before its arguments. */
static bool may_return_in_memory(Dwarf_Die *function) {
    Dwarf_Attribute attribute;
    return dwarf_attr_integrate(function, DW_AT_type, &attribute) != NULL &&
           parameter_class(function) == IS_UNKNOWN;
}

/* The assembler knows functions, but nothing of them. */
static bool is_assembler(Dwarf_Die *function) {
    Dwarf_Die unit;
    return dwarf_diecu(function, &unit, NULL, NULL) == NULL ||
           dwarf_srclang(&unit) == DW_LANG_Mips_Assembler;
}

struct parameters {
    struct parameter {
        enum type_class type;
        char name[64];
    } list[MEMTRACE_ALLOCATOR_NUMBERS];
    unsigned count;
    bool is_whole; /* there are no others */
};

static void read_parameters(struct parameters *parameters, Dwarf_Die *function) {
    Dwarf_Die child;
    *parameters = (struct parameters){.is_whole = true};
    if (is_assembler(function) || may_return_in_memory(function)) {
        parameters->is_whole = false;
        return;
    }
    for (int more = dwarf_child(function, &child); more == 0;
         more = dwarf_siblingof(&child, &child)) {
        enum type_class type;
        const char *name;
        if (dwarf_tag(&child) == DW_TAG_unspecified_parameters) {
            parameters->is_whole = false;
        }
        if (dwarf_tag(&child) != DW_TAG_formal_parameter) {
            continue;
        }
        type = parameter_class(&child);
        if (type == IS_UNKNOWN || parameters->count == MEMTRACE_ALLOCATOR_NUMBERS) {
            parameters->is_whole = false;
            return;
        }
        if (type != IS_FLOATING) {
            name = dwarf_diename(&child);
            parameters->list[parameters->count].type = type;
            snprintf(parameters->list[parameters->count++].name, sizeof parameters->list[0].name,
                     "%s", name != NULL ? name : "");
        }
    }
}

/* ---- What is said of them ---- */

static int parameters_check(const struct parameters *parameters, const char *what, unsigned number,
                            bool is_pointer, char why[ALLOCARGUMENTS_WHY]) {
    const struct parameter *parameter = &parameters->list[number != 0 ? number - 1 : 0];
    if (number == 0 || (number > parameters->count && !parameters->is_whole)) {
        return 0;
    }
    if (number > parameters->count) {
        snprintf(why, ALLOCARGUMENTS_WHY, "%s=%u: it has %u argument%s", what, number,
                 parameters->count, parameters->count == 1 ? "" : "s");
        return -1;
    }
    /* A pointer may be declared as a number. */
    if (!is_pointer && parameter->type == IS_POINTER) {
        snprintf(why, ALLOCARGUMENTS_WHY, "%s=%u: its argument %u (%s) is a pointer, not a number",
                 what, number, number, parameter->name);
        return -1;
    }
    return 0;
}

/* ---- The function ---- */

static bool allocarguments_open(struct allocarguments *arguments, const char *path) {
    const struct debugimage none = {0};
    char problem[512];
    if (!arguments->is_looked_for) {
        arguments->is_looked_for = true;
        arguments->is_there =
            path != NULL && dwarffile_open(&arguments->file, path, &none, "/usr/lib/debug", problem,
                                           sizeof problem) == 0;
        if (arguments->is_there) {
            dwarffile_index(&arguments->file, &arguments->units);
        }
    }
    return arguments->is_there;
}

/* The function that begins at the address, as it was declared: parameters and all. */
static bool find_function(struct allocarguments *arguments, uint64_t address, Dwarf_Die *function) {
    Dwarf_Die functions[DWARFUNIT_DEPTH];
    Dwarf_Attribute attribute;
    const struct range *range = rangetable_find(&arguments->units, address, NULL);
    struct dwarfunit *unit = range != NULL ? dwarffile_unit(&arguments->file, range->value) : NULL;
    int count = unit != NULL ? dwarfunit_functions(unit, address, functions) : 0;
    Dwarf_Addr entry;
    if (count <= 0 || dwarf_entrypc(&functions[count - 1], &entry) != 0 || entry != address) {
        return false;
    }
    *function = functions[count - 1];
    if (dwarf_attr(function, DW_AT_abstract_origin, &attribute) != NULL &&
        dwarf_formref_die(&attribute, function) == NULL) {
        return false;
    }
    return true;
}

struct checking {
    struct allocarguments *arguments;
    const char *path;
    uint64_t function;
    const struct allocspec *spec;
    char *why;
    int result;
};

static void allocarguments_check_in_job(void *what) {
    struct checking *checking = what;
    const struct memtrace_allocator_signature *said = &checking->spec->signature;
    struct allocarguments *arguments = checking->arguments;
    char *why = checking->why;
    struct parameters parameters;
    Dwarf_Die die;
    if (!allocarguments_open(arguments, checking->path) ||
        !find_function(arguments, checking->function, &die)) {
        return;
    }
    read_parameters(&parameters, &die);
    if (parameters_check(&parameters, "size", said->size, false, why) != 0 ||
        parameters_check(&parameters, "size", said->times, false, why) != 0 ||
        parameters_check(&parameters, "align", said->align, false, why) != 0 ||
        parameters_check(&parameters, "old", said->old_block, true, why) != 0 ||
        parameters_check(&parameters, "ptr", said->pointer, true, why) != 0) {
        checking->result = -1;
    }
}

int allocarguments_check(struct allocarguments *arguments, const char *path, uint64_t function,
                         const struct allocspec *spec, char why[ALLOCARGUMENTS_WHY]) {
    struct checking checking = {arguments, path, function, spec, why, 0};
    if (!arguments->has_failed &&
        job_run(allocarguments_check_in_job, &checking, &arguments->memory, NULL) != 0) {
        arguments->has_failed = true; /* what it had begun is gone */
    }
    return checking.result;
}

void allocarguments_close(struct allocarguments *arguments) {
    if (arguments->is_looked_for) {
        job_free(&arguments->memory);
        dwarffile_close(&arguments->file);
    }
    *arguments = (struct allocarguments){0};
}

/* ---- Mappings ---- */

static void add_taken(struct allocprocess *process, uint64_t low, uint64_t high) {
    job_grow(&process->taken, &process->taken_room, process->taken_count, sizeof *process->taken);
    process->taken[process->taken_count++] = (struct codefile_range){low, high};
}

/* Which come by address. */
static void allocprocess_take_next(struct allocprocess *process, uint64_t low, uint64_t high) {
    struct codefile_range *last =
        process->taken_count > 0 ? &process->taken[process->taken_count - 1] : NULL;
    if (last != NULL && low <= last->high) {
        last->high = high > last->high ? high : last->high;
    } else {
        add_taken(process, low, high);
    }
}

/* Where the heap and the stack grow nothing of ours is put. */
#define GROWTH (UINT64_C(1) << 30)

/* Where the heap begins, which may not be there yet; 0: not known. */
static uint64_t heap_start(pid_t pid) {
    enum { START_BRK = 47 };
    char text[PROCFILE_STAT_BYTES];
    const char *field = procfile_stat(pid, 0, START_BRK, text);
    return field != NULL ? strtoull(field, NULL, 10) : 0;
}

/* ---- Objects ---- */

/* Whether the mapping is more of the last object, or of one before. NULL: of none. */
static struct allocobject *object_of(struct allocprocess *process,
                                     const struct procmapping *mapping) {
    for (size_t i = process->object_count; i-- > 0;) {
        struct allocobject *object = &process->objects[i];
        if (strcmp(object->path, mapping->path) == 0 &&
            (mapping->offset != 0 || object->low == mapping->start)) {
            return object;
        }
    }
    return NULL;
}

/* The same file may be loaded at several places (dlmopen): each begins with its first bytes. */
static void allocprocess_add_mapping(struct allocprocess *process,
                                     const struct procmapping *mapping) {
    struct allocobject *object = object_of(process, mapping);
    if (object != NULL) {
        object->high = mapping->end;
        object->is_open |= mapping->executable;
        return;
    }
    job_grow(&process->objects, &process->object_room, process->object_count,
             sizeof *process->objects);
    object = &process->objects[process->object_count++];
    memset(object, 0, sizeof *object);
    snprintf(object->path, sizeof object->path, "%s", mapping->path);
    object->low = mapping->start;
    object->high = mapping->end;
    /* Of the file's first byte, until it is read. */
    object->bias = mapping->start - mapping->offset;
    object->is_open = mapping->executable;
}

/* How the file's addresses become the process's. false: it cannot be told. */
static bool find_bias(struct allocobject *object) {
    const struct codefile *code = &object->code;
    for (size_t i = 0; i < code->segment_count; i++) {
        if (code->segments[i].offset == 0) {
            object->bias -= code->segments[i].address;
            return true;
        }
    }
    return false;
}

/* Opens what was loaded: through the process's own root, where names may mean other files. */
static void open_object(const struct allocprocess *process, struct allocobject *object) {
    char path[PATH_MAX + 64];
    struct error ignored;
    snprintf(path, sizeof path, "/proc/%ld/root%s", (long)process->pid, object->path);
    if (object->is_program) {
        snprintf(path, sizeof path, "/proc/%ld/exe", (long)process->pid);
    } else if (access(path, R_OK) != 0) {
        snprintf(path, sizeof path, "%s", object->path);
    }
    object->is_open = codefile_open(&object->code, path, NULL, &ignored) == 0 && find_bias(object);
}

static void put_first(struct allocprocess *process, size_t place) {
    struct allocobject program = process->objects[place];
    memmove(&process->objects[1], &process->objects[0], place * sizeof program);
    program.is_program = true;
    process->objects[0] = program;
}

static void put_program_first(struct allocprocess *process) {
    char link[64];
    char path[PATH_MAX] = "";
    snprintf(link, sizeof link, "/proc/%ld/exe", (long)process->pid);
    if (readlink(link, path, sizeof path - 1) < 0) {
        return;
    }
    for (size_t i = 0; i < process->object_count; i++) {
        if (strcmp(process->objects[i].path, path) == 0) {
            put_first(process, i);
            return;
        }
    }
}

/* What was started is no program where it is a loader, as a command: `ld.so PROGRAM`. */
static void put_started_first(struct allocprocess *process) {
    if (process->object_count == 0 || !process->objects[0].is_program ||
        !process->objects[0].is_open || process->objects[0].code.is_program) {
        return;
    }
    for (size_t i = 1; i < process->object_count; i++) {
        if (process->objects[i].is_open && process->objects[i].code.is_program) {
            process->objects[0].is_program = false;
            put_first(process, i);
            return;
        }
    }
}

/* ---- The process ---- */

static void close_maps(void *what) {
    procmaps_close(what);
}

static void read_maps(struct allocprocess *process) {
    struct procmaps *maps = job_alloc(sizeof *maps);
    struct procmapping mapping;
    int more;
    if (procmaps_open(maps, process->pid) != 0) {
        job_fail("/proc/%ld/maps: %s", (long)process->pid, strerror(errno));
    }
    job_undo(close_maps, maps);
    while ((more = procmaps_next(maps, &mapping)) != 0) {
        bool is_heap = more > 0 && strcmp(mapping.path, "[heap]") == 0;
        bool is_stack = more > 0 && strcmp(mapping.path, "[stack]") == 0;
        if (more > 0) {
            allocprocess_take_next(
                process, mapping.start - (is_stack && mapping.start > GROWTH ? GROWTH : 0),
                mapping.end + (is_heap ? GROWTH : 0));
        }
        if (more > 0 && mapping.path[0] == '/') {
            allocprocess_add_mapping(process, &mapping);
        }
    }
}

static void close_objects(void *what) {
    struct allocprocess *process = what;
    for (size_t i = 0; i < process->object_count; i++) {
        allocarguments_close(&process->objects[i].arguments);
        codefile_close(&process->objects[i].code);
    }
}

static int compare_taken(const void *left, const void *right) {
    const struct codefile_range *a = left;
    const struct codefile_range *b = right;
    return (a->low > b->low) - (a->low < b->low);
}

/* Takes what is not next to the last one. */
static void allocprocess_take_more(struct allocprocess *process, uint64_t low, uint64_t high) {
    add_taken(process, low, high);
    qsort(process->taken, process->taken_count, sizeof *process->taken, compare_taken);
}

struct allocprocess *allocprocess_open(pid_t pid, uint64_t runtime) {
    struct allocprocess *process = job_alloc(sizeof *process);
    uint64_t heap = heap_start(pid);
    process->pid = pid;
    read_maps(process);
    job_undo(close_objects, process);
    if (heap != 0) {
        allocprocess_take_more(process, heap, heap + GROWTH);
    }
    put_program_first(process);
    for (size_t i = 0; i < process->object_count; i++) {
        struct allocobject *object = &process->objects[i];
        bool is_runtime = runtime >= object->low && runtime < object->high;
        process->runtime =
            is_runtime ? (struct codefile_range){object->low, object->high} : process->runtime;
        if (object->is_open && (object->is_program || !is_runtime)) {
            open_object(process, object);
        } else {
            object->is_open = false;
        }
    }
    put_started_first(process);
    return process;
}

struct allocprocess *allocprocess_open_file(const char *path) {
    struct allocprocess *process = job_alloc(sizeof *process);
    struct allocobject *object = job_alloc(sizeof *object);
    struct error error;
    process->objects = object;
    process->object_count = 1;
    snprintf(object->path, sizeof object->path, "%s", path);
    job_undo(close_objects, process);
    job_check(codefile_open(&object->code, path, NULL, &error), &error);
    object->is_program = object->code.is_program;
    object->is_open = true;
    return process;
}

/* ---- Its memory ---- */

/* What /proc/PID/pagemap says of a page. */
#define PAGE_IS_THERE   (UINT64_C(1) << 63)
#define PAGE_IS_SWAPPED (UINT64_C(1) << 62)
#define PAGE_IS_OF_FILE (UINT64_C(1) << 61)
enum { PAGE_SIZE = 4096 };

bool allocprocess_has_changed(const struct allocprocess *process, uint64_t address) {
    uint64_t page = 0;
    SCOPE_FD int fd = procfile_open(O_RDONLY, "/proc/%ld/pagemap", (long)process->pid);
    return fd >= 0 &&
           pread(fd, &page, sizeof page, (off_t)(address / PAGE_SIZE * sizeof page)) ==
               (ssize_t)sizeof page &&
           (page & (PAGE_IS_THERE | PAGE_IS_SWAPPED)) != 0 && (page & PAGE_IS_OF_FILE) == 0;
}

bool allocprocess_has_shadow_stack(const struct allocprocess *process) {
    char features[256];
    return procfile_status(process->pid, 0, "x86_Thread_features", features, sizeof features) ==
               0 &&
           strstr(features, "shstk") != NULL;
}

/* ---- Room ---- */

enum { SPACING = 1 << 16 }; /* to what is there, which may grow or have guards */
#define REACH   UINT64_C(1900000000)
#define LOWEST  (UINT64_C(1) << 20)
#define HIGHEST UINT64_C(0x7ffffffe0000)

/* The place in a gap, that is nearest to the object. 0: there is none. */
static uint64_t place_in(uint64_t low, uint64_t high, uint64_t size,
                         const struct allocobject *object) {
    uint64_t least = object->high > REACH ? object->high - REACH : 0;
    low = low > least ? low : least;
    high = high < object->low + REACH ? high : object->low + REACH;
    low = (low + SPACING - 1) & ~(uint64_t)(SPACING - 1);
    if (high < low || high - low < size) {
        return 0;
    }
    return low >= object->high ? low : (high - size) & ~(uint64_t)(SPACING - 1);
}

static uint64_t distance_to(uint64_t address, const struct allocobject *object) {
    return address < object->low ? object->low - address : address - object->low;
}

uint64_t allocprocess_take(struct allocprocess *process, const struct allocobject *object,
                           uint64_t size) {
    uint64_t best = 0;
    uint64_t low = LOWEST;
    for (size_t i = 0; i <= process->taken_count; i++) {
        bool is_last = i == process->taken_count;
        uint64_t high = is_last ? HIGHEST : process->taken[i].low;
        uint64_t place = high > low + 2 * (uint64_t)SPACING
                             ? place_in(low + SPACING, high - SPACING, size, object)
                             : 0;
        if (place != 0 && (best == 0 || distance_to(place, object) < distance_to(best, object))) {
            best = place;
        }
        low = !is_last && process->taken[i].high > low ? process->taken[i].high : low;
    }
    if (best != 0) {
        allocprocess_take_more(process, best, best + size);
    }
    return best;
}
