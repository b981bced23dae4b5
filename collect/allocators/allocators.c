/* SPDX-License-Identifier: MIT */
/* allocators.c: see allocators.h. */
#include "collect/allocators/allocators.h"

#include "analyze/base/job.h"
#include "collect/allocators/allocfind.h"
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
static bool allocset_is_there(const struct allocset *set, struct allocprocess *process,
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

static void add_sets(struct allocspecs *specs, struct allocprocess *process, bool only_automatic) {
    struct error error;
    for (size_t i = 0; allocsets[i].name != NULL; i++) {
        if (allocset_is_there(&allocsets[i], process, only_automatic)) {
            size_t first = specs->count;
            job_check(allocspec_add_set(specs, i, &error), &error);
            for (; first < specs->count; first++) {
                specs->items[first].is_automatic = only_automatic && allocsets[i].is_heap;
            }
        }
    }
}

static void close_specs(void *what) {
    allocspec_free(what);
}

/* A line that is wrong is told, and the others count. */
static struct allocspecs *read_specifications(const struct allocators_request *request) {
    struct allocspecs *specs = job_alloc(sizeof *specs);
    char *text = job_string(request->specifications);
    char *state;
    struct error error;
    job_undo(close_specs, specs);
    for (char *line = strtok_r(text, "\n", &state); line != NULL;
         line = strtok_r(NULL, "\n", &state)) {
        if (allocspec_add(specs, line, &error) != 0) {
            request->tell(error.message);
        }
    }
    return specs;
}

/* ---- Functions ---- */

_Static_assert((int)ALLOCARGUMENTS_WHY <= (int)PATCH_WHY, "a reason is a reason");

static int allocators_check(const struct allocfound *found, struct patchmove *move,
                            char why[PATCH_WHY]) {
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

/* ---- The plan ---- */

/* What a process stands in the way of. */
static int allocators_check_in(const struct allocprocess *process, bool is_at_work,
                               const struct patchmove *move, char why[PATCH_WHY]) {
    enum { PAGE = 4096 };
    /* A moved call leaves a return address on the stack that the processor's own copy does not
     * have. */
    if (move->has_call && allocprocess_has_shadow_stack(process)) {
        snprintf(why, PATCH_WHY,
                 "it calls another function at once, and the process has a "
                 "hardware shadow stack");
        return -1;
    }
    /* One write takes the jump away again, whole or not at all. */
    if (is_at_work && move->address % PAGE + PATCH_JUMP > PAGE) {
        snprintf(why, PATCH_WHY, "its first bytes lie in two pages, and the program runs already");
        return -1;
    }
    return 0;
}

static void allocators_fill(struct allocplan *plan, struct allocprocess *process,
                            const struct allocfounds *founds,
                            const struct allocators_request *request) {
    struct patchmove move;
    char why[PATCH_WHY];
    for (size_t i = 0; i < founds->count; i++) {
        const struct allocfound *found = &founds->items[i];
        const char *name = job_take(allocfind_name(found->symbol->name));
        if (request->is_again && /* what an earlier plan has led away is not planned again */
            allocprocess_has_changed(process, found->symbol->address + found->object->bias)) {
            continue;
        }
        if (allocators_check(found, &move, why) != 0 ||
            allocators_check_in(process, request->is_at_work, &move, why) != 0) {
            request->tell(job_text("%s cannot be followed: %s", name, why));
        } else {
            allocplan_add(plan, found, &move);
            if (request->took != NULL) {
                request->took(request->context, move.address, name);
            }
        }
    }
}

static void allocators_say_nothing(const char *line) {
    (void)line;
}

static void allocators_make_plan(void *what) {
    struct allocators_request request = *(const struct allocators_request *)what;
    struct allocplan plan = {
        .entries = request.entries, .sites = request.sites, .first = request.first};
    request.tell = request.is_again ? allocators_say_nothing : request.tell;
    struct allocspecs *specs = read_specifications(&request);
    struct allocprocess *process = allocprocess_open(request.pid, request.entries.enter);
    struct allocfounds founds;
    plan.runtime = process->runtime;
    if (specs->has_auto) {
        add_sets(specs, process, true);
    }
    founds = allocfind_all(process, specs, request.tell);
    allocators_fill(&plan, process, &founds, &request);
    allocplan_resolve(&plan);
    if (plan.count == 0) {
        job_fail("no function is followed");
    }
    allocplan_place(&plan, process, request.tell);
    if (request.file != NULL) {
        allocplan_write(&plan, request.file);
    } else if (request.fd >= 0) {
        allocplan_write_to(&plan, request.fd);
    }
}

int allocators_plan(const struct allocators_request *request, struct error *error) {
    return job_run(allocators_make_plan, (void *)(uintptr_t)request, NULL, error);
}

/* ---- The list ---- */

static void list_one(const struct allocators_listing *listing, const struct allocfound *found) {
    char why[PATCH_WHY];
    struct patchmove move;
    bool fits = allocators_check(found, &move, why) == 0;
    char *name = allocfind_name(found->symbol->name);
    const struct allocspec *spec = found->spec;
    struct allocators_row row = {
        .function = name,
        .set = spec != NULL ? spec->set : NULL,
        .what = spec != NULL ? allocspec_kinds[spec->signature.kind] : NULL,
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

struct found_in_file {
    const struct allocators_listing *listing;
    struct allocprocess *process;
    struct allocfounds founds;
};

static void allocators_find_in_file(void *what) {
    struct found_in_file *found = what;
    const struct allocators_listing *listing = found->listing;
    found->process = allocprocess_open_file(listing->path);
    if (listing->all && codefile_name_unnamed(&found->process->objects[0].code) != 0) {
        job_fail_memory();
    }
    if (listing->specs->count == 0 && (listing->specs->has_auto || !listing->all)) {
        add_sets(listing->specs, found->process, listing->specs->has_auto);
    }
    found->founds = allocfind_all(found->process, listing->specs, listing->tell);
}

/* Rows are told outside of that job: what they are told to has memory of its own. */
int allocators_list(const struct allocators_listing *listing, struct error *error) {
    struct found_in_file found = {.listing = listing};
    struct job_memory *kept = NULL;
    if (job_run(allocators_find_in_file, &found, &kept, error) != 0) {
        return -1;
    }
    for (size_t i = 0; i < found.founds.count; i++) {
        list_one(listing, &found.founds.items[i]);
    }
    if (listing->all) {
        list_all(listing, found.process);
    }
    job_free(&kept);
    return 0;
}
