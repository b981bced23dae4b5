/* SPDX-License-Identifier: MIT */
/* allocators.c: see allocators.h. */
#include "collect/allocators/allocators.h"

#include "collect/allocators/allocfind.h"
#include "collect/allocators/allocnest.h"
#include "collect/allocators/allocplan.h"
#include "collect/allocators/allocsets.h"
#include "collect/allocators/patchcheck.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Specifications ---- */

/* Whether a set's allocator is in the program itself; or, which nothing else counts, in a library
 * for itself. */
static bool is_there(const struct allocset *set, struct allocprocess *process,
                     bool only_automatic) {
    for (size_t i = 0; i < process->object_count; i++) {
        struct allocobject *object = &process->objects[i];
        bool is_wanted = object->is_program
                             ? set->is_automatic || !only_automatic
                             : set->is_heap && set->is_automatic && allocfind_may_hold(object);
        if (is_wanted && allocfind_is_in(set, object)) {
            return true;
        }
    }
    return false;
}

static int add_sets(struct allocspecs *specs, struct allocprocess *process, bool only_automatic,
                    struct error *error) {
    int status = 0;
    for (size_t i = 0; status == 0 && allocsets[i].name != NULL; i++) {
        if (is_there(&allocsets[i], process, only_automatic)) {
            size_t first = specs->count;
            status = allocspec_add_set(specs, i, error);
            for (; first < specs->count; first++) {
                specs->items[first].is_automatic = only_automatic && allocsets[i].is_heap;
            }
        }
    }
    return status;
}

/* A line that is wrong is told, and the others count. */
static void read_specifications(struct allocspecs *specs,
                                const struct allocators_request *request) {
    char *text = strdup(request->specifications);
    char *state;
    struct error error;
    for (char *line = text != NULL ? strtok_r(text, "\n", &state) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &state)) {
        if (allocspec_add(specs, line, &error) != 0) {
            request->tell(error.message);
        }
    }
    free(text);
}

/* ---- Functions ---- */

_Static_assert((int)ALLOCARGUMENTS_WHY <= (int)PATCH_WHY, "a reason is a reason");

static int check(const struct allocfound *found, struct patchmove *move, char why[PATCH_WHY]) {
    const struct patchsubject subject = {
        .code = &found->object->code,
        .function = found->symbol->address,
        .size = found->symbol->size,
        .bias = found->object->bias,
        .nests = found->spec == NULL || found->spec->signature.kind < MEMTRACE_ALLOCATOR_FREE,
        .is_claimed = found->spec != NULL && !found->spec->is_pattern,
    };
    if (found->object->code.machine != EM_X86_64) {
        snprintf(why, PATCH_WHY, "functions of x86-64 programs alone can be followed");
        return -1;
    }
    if (found->spec != NULL &&
        allocarguments_check(&found->object->arguments, found->object->code.paths.debug,
                             found->symbol->address, found->spec, why) != 0) {
        return -1;
    }
    return patchcheck_function(&subject, move, why);
}

static void tell_why(const struct allocfound *found, const char *why,
                     void (*tell)(const char *line)) {
    char line[1024];
    char *name = allocfind_name(found->symbol->name);
    snprintf(line, sizeof line, "%s cannot be followed: %s",
             name != NULL ? name : found->symbol->name, why);
    free(name);
    tell(line);
}

/* ---- The plan ---- */

/* What an earlier plan has led away is not planned again. */
static bool is_done(const struct allocators_request *request, const struct allocprocess *process,
                    const struct allocfound *found) {
    return request->is_again &&
           allocprocess_has_changed(process, found->symbol->address + found->object->bias);
}

/* A moved call leaves a return address on the stack that the processor's own copy does not have. */
static int check_shadow_stack(const struct allocprocess *process, const struct patchmove *move,
                              char why[PATCH_WHY]) {
    if (move->has_call && allocprocess_has_shadow_stack(process)) {
        snprintf(why, PATCH_WHY,
                 "it calls another function at once, and the process has a "
                 "hardware shadow stack");
        return -1;
    }
    return 0;
}

/* One write takes the jump away again, whole or not at all. */
static int check_pages(const struct patchmove *move, char why[PATCH_WHY]) {
    enum { PAGE = 4096 };
    if (move->address % PAGE + PATCH_JUMP > PAGE) {
        snprintf(why, PATCH_WHY, "its first bytes lie in two pages, and the program runs already");
        return -1;
    }
    return 0;
}

static void tell_taken(const struct allocators_request *request, const struct allocfound *found,
                       const struct patchmove *move) {
    char *name = allocfind_name(found->symbol->name);
    if (request->took != NULL) {
        request->took(request->context, move->address, name != NULL ? name : found->symbol->name);
    }
    free(name);
}

static int fill(struct allocplan *plan, struct allocprocess *process, struct allocspecs *specs,
                const struct allocators_request *request, struct error *error) {
    struct allocfounds founds = {0};
    struct patchmove move;
    char why[PATCH_WHY];
    int status = specs->has_auto ? add_sets(specs, process, true, error) : 0;
    if (status == 0 && allocfind_all(process, specs, &founds, request->tell) != 0) {
        status = error_set(error, "out of memory");
    }
    for (size_t i = 0; status == 0 && i < founds.count; i++) {
        if (is_done(request, process, &founds.items[i])) {
            continue;
        }
        if (check(&founds.items[i], &move, why) != 0 ||
            check_shadow_stack(process, &move, why) != 0 ||
            (request->is_at_work && check_pages(&move, why) != 0)) {
            tell_why(&founds.items[i], why, request->tell);
        } else if (allocplan_add(plan, &founds.items[i], &move) != 0) {
            status = error_set(error, "out of memory");
        } else {
            tell_taken(request, &founds.items[i], &move);
        }
    }
    allocnest_resolve(plan);
    if (status == 0 && plan->count == 0) {
        status = error_set(error, "no function is followed");
    }
    free(founds.items);
    return status == 0 ? allocplan_place(plan, process, request->tell, error) : status;
}

static void say_nothing(const char *line) {
    (void)line;
}

int allocators_plan(const struct allocators_request *asked, struct error *error) {
    struct allocators_request copy = *asked;
    const struct allocators_request *request = &copy;
    struct allocspecs specs = {0};
    struct allocprocess process;
    struct allocplan plan = {
        .entries = request->entries, .sites = request->sites, .first = request->first};
    int status = allocprocess_open(&process, request->pid, request->entries.enter, error);
    plan.runtime = process.runtime;
    copy.tell = asked->is_again ? say_nothing : asked->tell;
    read_specifications(&specs, request);
    if (status == 0) {
        status = fill(&plan, &process, &specs, request, error);
    }
    if (status == 0) {
        status = request->file != NULL ? allocplan_write(&plan, request->file, error)
                 : request->fd >= 0    ? allocplan_write_to(&plan, request->fd, error)
                                       : 0;
    }
    allocplan_free(&plan);
    allocprocess_close(&process);
    allocspec_free(&specs);
    return status;
}

/* ---- The list ---- */

static const char *const kinds[MEMTRACE_ALLOCATOR_KINDS] = {"alloc", "zalloc", "realloc", "free",
                                                            "reset"};

static void list_one(const struct allocators_listing *listing, const struct allocfound *found) {
    char why[PATCH_WHY];
    struct patchmove move;
    bool fits = check(found, &move, why) == 0;
    char *name = allocfind_name(found->symbol->name);
    const struct allocspec *spec = found->spec;
    struct allocators_row row = {
        .function = name != NULL ? name : found->symbol->name,
        .set = spec != NULL ? spec->set : NULL,
        .what = spec != NULL ? kinds[spec->signature.kind] : NULL,
        .address = found->symbol->address,
        .length = fits ? move.length : 0,
        .why = fits ? NULL : why,
    };
    listing->row(listing->context, &row);
    free(name);
}

static void list_all(const struct allocators_listing *listing, struct allocprocess *process) {
    struct allocfound found = {.object = &process->objects[0]};
    const struct codefile *code = &found.object->code;
    for (size_t i = 0; i < code->symbol_count; i++) {
        found.symbol = &code->symbols[i];
        if (found.symbol->is_typed && !found.symbol->is_chosen_at_start &&
            (i == 0 || found.symbol->address != code->symbols[i - 1].address)) {
            list_one(listing, &found);
        }
    }
}

int allocators_list(const struct allocators_listing *listing, struct error *error) {
    struct allocprocess process;
    struct allocfounds founds = {0};
    bool wants_sets = listing->specs->count == 0 && (listing->specs->has_auto || !listing->all);
    int status = allocprocess_open_file(&process, listing->path, error);
    if (status == 0 && listing->all && codefile_name_unnamed(&process.objects[0].code) != 0) {
        status = error_set(error, "out of memory");
    }
    if (status == 0 && wants_sets) {
        status = add_sets(listing->specs, &process, listing->specs->has_auto, error);
    }
    if (status == 0 && allocfind_all(&process, listing->specs, &founds, listing->tell) != 0) {
        status = error_set(error, "out of memory");
    }
    for (size_t i = 0; status == 0 && i < founds.count; i++) {
        list_one(listing, &founds.items[i]);
    }
    if (status == 0 && listing->all) {
        list_all(listing, &process);
    }
    free(founds.items);
    allocprocess_close(&process);
    return status;
}
