/* SPDX-License-Identifier: MIT */
/* allocnest.c: see allocnest.h. */
#include "collect/allocators/allocnest.h"

#include <string.h>

enum { PARTS = 64 /* so many functions are looked at, by jumps from one */ };

struct nest {
    struct allocplan *plan;
    const struct allocplan_code *outer; /* the function that is looked at */
    bool calls_another;
    struct codefile_range parts[PARTS]; /* it, and where it goes on by jumps; if inner, by calls */
    size_t part_count;
};

static bool allocates(const struct allocplan *plan, size_t number) {
    return plan->list[number].signature.kind < MEMTRACE_ALLOCATOR_FREE;
}

/* The other function of its set that begins there; NULL: there is none. */
static struct allocplan_code *other_at(const struct nest *nest, uint64_t address) {
    const struct allocplan *plan = nest->plan;
    for (size_t i = 0; i < plan->count; i++) {
        struct allocplan_code *code = &plan->code[i];
        if (code != nest->outer && code->object == nest->outer->object &&
            code->symbol->address == address && code->set != NULL &&
            strcmp(code->set, nest->outer->set) == 0 && allocates(plan, i)) {
            return code;
        }
    }
    return NULL;
}

static struct codefile_range range_at(const struct codefile *code, uint64_t address) {
    const struct codefile_range *frame = codefile_frame(code, address);
    size_t symbol = codefile_symbol_from(code, address);
    uint64_t size = symbol < code->symbol_count && code->symbols[symbol].address == address
                        ? code->symbols[symbol].size
                        : 0;
    return frame != NULL ? *frame : (struct codefile_range){address, address + size};
}

static void add_part(struct nest *nest, uint64_t address) {
    for (size_t i = 0; i < nest->part_count; i++) {
        if (address >= nest->parts[i].low && address < nest->parts[i].high) {
            return;
        }
    }
    if (nest->part_count < PARTS) {
        nest->parts[nest->part_count++] = range_at(&nest->outer->object->code, address);
    }
}

/* Guards tell by return addresses, which say nothing where the runtime is part of the program. */
static bool can_guard(const struct nest *nest) {
    return nest->plan->runtime.low != nest->outer->object->low;
}

static void leave(struct nest *nest, bool is_call, uint64_t target) {
    struct allocplan_code *other = other_at(nest, target);
    if (other != NULL && !is_call && can_guard(nest)) {
        other->is_guarded = true;
    } else if (other != NULL) {
        nest->calls_another = true;
    }
    if (!is_call || nest->outer->is_inner) { /* the program's call goes on there */
        add_part(nest, target);
    }
}

/* Where a call or jump by a word of the file's leads; a function is called by its name through such
 * a word, by the PLT or at once. 0: nowhere in this file, or it is none. */
static uint64_t by_word(struct codefile *code, const struct patchcode *instruction, uint64_t at) {
    ZydisInstructionCategory category = instruction->it.meta.category;
    uint64_t word;
    return (category == ZYDIS_CATEGORY_CALL || category == ZYDIS_CATEGORY_UNCOND_BR) &&
                   patchcode_relative(instruction, at, &word)
               ? codefile_bound_to(code, word)
               : 0;
}

/* An entry of the PLT has one such jump, behind an endbr64 where there is one. */
static uint64_t behind_plt(struct codefile *code, uint64_t at) {
    struct patchcode instruction;
    uint64_t target = 0;
    size_t left;
    for (int i = 0; i < 2 && target == 0; i++) {
        const uint8_t *bytes = codefile_text(code, at, &left);
        if (bytes == NULL || !patchcode_read(&instruction, bytes, left)) {
            return 0;
        }
        target = by_word(code, &instruction, at);
        at += instruction.it.length;
    }
    return target;
}

/* What an instruction leads to outside of its function; 0: nothing, or nothing that is known. */
static uint64_t leads_to(struct codefile *code, const struct patchcode *instruction, uint64_t at,
                         struct codefile_range function) {
    uint64_t target;
    if (!patchcode_target(instruction, at, &target)) {
        return by_word(code, instruction, at);
    }
    if (codefile_is_plt(code, target)) {
        return behind_plt(code, target);
    }
    return target < function.low || target >= function.high ? target : 0;
}

static void look_at(struct nest *nest, struct codefile_range range) {
    struct codefile *code = &nest->outer->object->code;
    struct patchcode instruction;
    uint64_t target;
    size_t left;
    for (uint64_t at = range.low; at < range.high; at += instruction.it.length) {
        const uint8_t *bytes = codefile_text(code, at, &left);
        if (bytes == NULL || !patchcode_read(&instruction, bytes, left)) {
            return;
        }
        target = leads_to(code, &instruction, at, range);
        if (target != 0) {
            leave(nest, instruction.it.meta.category == ZYDIS_CATEGORY_CALL, target);
        }
    }
}

static void look(struct nest *nest) {
    add_part(nest, nest->outer->symbol->address);
    for (size_t i = 0; i < nest->part_count; i++) {
        look_at(nest, nest->parts[i]);
    }
}

void allocnest_resolve(struct allocplan *plan) {
    for (size_t i = 0; i < plan->count; i++) {
        struct nest nest = {.plan = plan, .outer = &plan->code[i]};
        if (nest.outer->set != NULL && allocates(plan, i)) {
            look(&nest);
            plan->code[i].is_wrapper = nest.calls_another;
        }
    }
    for (size_t i = plan->count; i-- > 0;) {
        if (plan->code[i].is_wrapper) {
            allocplan_leave_out(plan, i);
        }
    }
}
