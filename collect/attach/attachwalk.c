/* SPDX-License-Identifier: MIT */
/* attachwalk.c: see attachwalk.h. */
#include "collect/attach/attachwalk.h"

#include "analyze/base/array.h"
#include "analyze/base/scope.h"
#include "analyze/base/thismachine.h"
#include "memtrace/blocks.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES_MOST = 10000, VALUES_MOST = 16 };

/* An object's information, and what its addresses count from. */
struct object {
    uint64_t start, inode, base;
    Elf *elf;
    Dwarf_CFI *cfi;
};

struct attachwalk {
    struct object *objects;
    size_t count, room;
    struct code {
        uint64_t start, end;
        size_t object;
    } * code; /* by address, as the mappings were */
    size_t code_count, code_room;
};

/* --- before ----------------------------------------------------------------------------------- */

/* An object, and all that a walk needs of it: its file is not asked again. 0, or -1. */
static int attachwalk_add_object(struct attachwalk *walk, const struct attachtarget *target,
                                 const struct attachmapping *mapping) {
    struct object object = {.start = mapping->start, .inode = mapping->inode};
    SCOPE_FD int fd = attachtarget_file(target, mapping);
    if (array_grow(&walk->objects, &walk->room, walk->count, sizeof *walk->objects) != 0) {
        return -1;
    }
    elf_version(EV_CURRENT);
    object.elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    if (object.elf != NULL && elf_kind(object.elf) == ELF_K_ELF) {
        object.base = attachtarget_base(object.elf, mapping);
        object.cfi = dwarf_getcfi_elf(object.elf);
        elf_cntl(object.elf, ELF_C_FDDONE);
    }
    walk->objects[walk->count++] = object;
    return 0;
}

/* Code is of the object that was mapped last below it. */
struct attachwalk *attachwalk_open(const struct attachtarget *target) {
    struct attachwalk *walk = calloc(1, sizeof *walk);
    bool is_fine = walk != NULL;
    for (size_t i = 0; is_fine && i < target->count; i++) {
        const struct attachmapping *mapping = &target->mappings[i];
        size_t object;
        if (mapping->inode == 0) {
            continue;
        }
        is_fine = mapping->offset != 0 || attachwalk_add_object(walk, target, mapping) == 0;
        object = walk->count;
        while (object > 0 && walk->objects[object - 1].inode != mapping->inode) {
            object--;
        }
        if (is_fine && mapping->executable && object != 0) {
            is_fine = array_grow(&walk->code, &walk->code_room, walk->code_count,
                                 sizeof *walk->code) == 0;
            if (is_fine) {
                walk->code[walk->code_count++] =
                    (struct code){mapping->start, mapping->end, object - 1};
            }
        }
    }
    if (!is_fine) {
        attachwalk_close(walk);
        return NULL;
    }
    return walk;
}

void attachwalk_close(struct attachwalk *walk) {
    for (size_t i = 0; walk != NULL && i < walk->count; i++) {
        dwarf_cfi_end(walk->objects[i].cfi);
        elf_end(walk->objects[i].elf);
    }
    if (walk != NULL) {
        free(walk->objects);
        free(walk->code);
        free(walk);
    }
}

/* --- expressions ------------------------------------------------------------------------------ */

static bool attachwalk_load(const struct attachwalk_stack *stack, uint64_t address,
                            uint64_t *value) {
    uint64_t at = address - stack->start;
    if (address < stack->start || at % sizeof *value != 0 || at + sizeof *value > stack->size) {
        return false;
    }
    *value = stack->words[at / sizeof *value];
    return true;
}

static bool attachframe_knows(const struct attachframe *frame, uint64_t number) {
    return number < frame->count && (frame->known >> number & 1) != 0;
}

struct machine {
    const struct attachframe *frame;
    const struct attachwalk_stack *stack;
    uint64_t cfa;
    uint64_t values[VALUES_MOST];
    size_t count;
};

static bool machine_push(struct machine *machine, uint64_t value) {
    if (machine->count == VALUES_MOST) {
        return false;
    }
    machine->values[machine->count++] = value;
    return true;
}

static bool push_register(struct machine *machine, uint64_t number, uint64_t offset) {
    return attachframe_knows(machine->frame, number) &&
           machine_push(machine, machine->frame->values[number] + offset);
}

/* Those of two values that call frame information has. */
static bool machine_combine(struct machine *machine, uint8_t atom) {
    uint64_t *to;
    uint64_t by;
    if (machine->count < 2) {
        return false;
    }
    by = machine->values[--machine->count];
    to = &machine->values[machine->count - 1];
    switch (atom) {
    case DW_OP_plus:
        *to += by;
        return true;
    case DW_OP_minus:
        *to -= by;
        return true;
    case DW_OP_and:
        *to &= by;
        return true;
    case DW_OP_shl:
        *to = by < 64 ? *to << by : 0;
        return true;
    case DW_OP_ge:
        *to = (int64_t)*to >= (int64_t)by;
        return true;
    default:
        return false;
    }
}

static bool machine_run_one(struct machine *machine, const Dwarf_Op *op) {
    uint64_t *top = machine->count != 0 ? &machine->values[machine->count - 1] : NULL;
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
        return push_register(machine, op->atom - DW_OP_breg0, op->number);
    }
    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
        return machine_push(machine, op->atom - DW_OP_lit0);
    }
    switch (op->atom) {
    case DW_OP_bregx:
        return push_register(machine, op->number, op->number2);
    case DW_OP_call_frame_cfa:
        return machine_push(machine, machine->cfa);
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts:
        return machine_push(machine, op->number);
    case DW_OP_plus_uconst:
        if (top != NULL) {
            *top += op->number;
        }
        return top != NULL;
    case DW_OP_deref:
        return top != NULL && attachwalk_load(machine->stack, *top, top);
    case DW_OP_nop:
        return true;
    default:
        return machine_combine(machine, op->atom);
    }
}

/* A number, which no loop and no branch leads to. */
static bool evaluate(struct machine *machine, const Dwarf_Op *ops, size_t count, uint64_t *value) {
    machine->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!machine_run_one(machine, &ops[i])) {
            return false;
        }
    }
    *value = machine->count != 0 ? machine->values[machine->count - 1] : 0;
    return machine->count != 0;
}

/* --- one frame outwards ----------------------------------------------------------------------- */

enum found { FOUND_NOTHING, FOUND_UNDEFINED, FOUND_VALUE };

/* What the caller has in this register. */
static enum found find_register(struct machine *machine, Dwarf_Frame *row, unsigned number,
                                uint64_t *value) {
    Dwarf_Op room[3];
    Dwarf_Op *ops;
    size_t count;
    if (dwarf_frame_register(row, (int)number, room, &ops, &count) != 0) {
        return FOUND_NOTHING;
    }
    if (count == 0 && ops == room) {
        return FOUND_UNDEFINED;
    }
    if (count == 0) { /* the same */
        *value = machine->frame->values[number];
        return attachframe_knows(machine->frame, number) ? FOUND_VALUE : FOUND_NOTHING;
    }
    if (ops[0].atom == DW_OP_regx) { /* in another one */
        bool is_there = count == 1 && attachframe_knows(machine->frame, ops[0].number);
        *value = is_there ? machine->frame->values[ops[0].number] : 0;
        return is_there ? FOUND_VALUE : FOUND_NOTHING;
    }
    if (ops[count - 1].atom == DW_OP_stack_value) {
        return evaluate(machine, ops, count - 1, value) ? FOUND_VALUE : FOUND_NOTHING;
    }
    return evaluate(machine, ops, count, value) && attachwalk_load(machine->stack, *value, value)
               ? FOUND_VALUE
               : FOUND_NOTHING;
}

/* 1: `frame` is the caller's; 0: there is none; -1: it is not known. */
static int attachframe_step(struct attachframe *frame, Dwarf_Frame *row, unsigned return_register,
                            const struct attachwalk_stack *stack) {
    struct machine machine = {.frame = frame, .stack = stack};
    struct attachframe caller = {.count = frame->count, .sp = frame->sp};
    Dwarf_Op *ops;
    size_t count;
    uint64_t pc = 0;
    if (dwarf_frame_cfa(row, &ops, &count) != 0 || count == 0 ||
        !evaluate(&machine, ops, count, &machine.cfa) || machine.cfa < frame->values[frame->sp]) {
        return -1;
    }
    switch (find_register(&machine, row, return_register, &pc)) {
    case FOUND_UNDEFINED:
        return 0;
    case FOUND_NOTHING:
        return -1;
    default:
        break;
    }
    for (unsigned i = 0; i < frame->count; i++) {
        if (find_register(&machine, row, i, &caller.values[i]) == FOUND_VALUE) {
            caller.known |= UINT64_C(1) << i;
        }
    }
    caller.values[caller.sp] = machine.cfa;
    caller.known |= UINT64_C(1) << caller.sp;
    /* Where functions sign what they return to, that is in bits that no address has. */
    caller.pc = pc & ((UINT64_C(1) << memtrace_address_bits(thismachine())) - 1);
    *frame = caller;
    return caller.pc != 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

/* As attachframe_step(), from the frame at `pc`. */
static int step_from(const struct attachwalk *walk, uint64_t pc, struct attachframe *frame,
                     const struct attachwalk_stack *stack, bool *is_signal) {
    const struct object *object = NULL;
    SCOPE_MEMORY Dwarf_Frame *row = NULL;
    int number;
    for (size_t i = 0; i < walk->code_count && object == NULL; i++) {
        if (pc >= walk->code[i].start && pc < walk->code[i].end) {
            object = &walk->objects[walk->code[i].object];
        }
    }
    if (object == NULL || object->cfi == NULL ||
        dwarf_cfi_addrframe(object->cfi, pc - object->base, &row) != 0) {
        return -1;
    }
    number = dwarf_frame_info(row, NULL, NULL, is_signal);
    return number >= 0 ? attachframe_step(frame, row, (unsigned)number, stack) : -1;
}

int attachwalk_outwards(struct attachwalk *walk, const struct attachregisters *registers,
                        const struct attachwalk_stack *stack,
                        void (*visit)(void *context, uint64_t pc, bool is_interrupted),
                        void *context) {
    struct attachframe frame;
    bool is_exact = true;
    int result = walk != NULL ? 1 : -1;
    attachmachine_frame(registers, &frame);
    for (int i = 0; result > 0 && i < FRAMES_MOST; i++) {
        uint64_t pc = frame.pc - !is_exact; /* a call may be a function's last instruction */
        bool is_signal = false;
        result = step_from(walk, pc, &frame, stack, &is_signal);
        if (result >= 0) {
            visit(context, pc, is_exact && i != 0);
        }
        is_exact = is_signal;
    }
    return result;
}
