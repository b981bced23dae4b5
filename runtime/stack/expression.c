/* SPDX-License-Identifier: MIT */
/* expression.c: DWARF expressions (DWARF 5, table 7.9), as far as call frame information of
 * compilers and of libc uses them. See expression.h. */
#include "runtime/stack/expression.h"

#include "runtime/base/sys.h"
#include "runtime/machine/machine.h"
#include "runtime/stack/cursor.h"

enum { STACK_DEPTH = 16, PAGE = 4096 };

struct evaluation {
    uintptr_t stack[STACK_DEPTH];
    unsigned depth;
    int failed;
};

static void push(struct evaluation *evaluation, uintptr_t value) {
    if (evaluation->depth == STACK_DEPTH) {
        evaluation->failed = 1;
        return;
    }
    evaluation->stack[evaluation->depth++] = value;
}

static uintptr_t pop(struct evaluation *evaluation) {
    if (evaluation->depth == 0) {
        evaluation->failed = 1;
        return 0;
    }
    return evaluation->stack[--evaluation->depth];
}

static uintptr_t machine_register(const struct expression_machine *machine, unsigned number,
                                  int *failed) {
    switch (number) {
    case MACHINE_DWARF_FP:
        return machine->fp;
    case MACHINE_DWARF_SP:
        return machine->sp;
    case MACHINE_DWARF_RA:
        return machine->pc;
    default:
        *failed = 1;
        return 0;
    }
}

/* The page of the stack pointer is there, for the rest the kernel is asked: where unwind tables are
 * wrong for a place, an expression may lead anywhere. */
static uintptr_t dereference(const struct expression_machine *machine, uintptr_t address,
                             int *failed) {
    if (address % sizeof address != 0 ||
        (address / PAGE != machine->sp / PAGE && !sys_readable((const void *)address))) {
        *failed = 1;
        return 0;
    }
    return *(const uintptr_t *)address;
}

static void apply_binary(struct evaluation *evaluation, uint8_t operation) {
    uintptr_t b = pop(evaluation);
    uintptr_t a = pop(evaluation);
    intptr_t sa = (intptr_t)a;
    intptr_t sb = (intptr_t)b;
    switch (operation) {
    case 0x1a:
        push(evaluation, a & b);
        break;
    case 0x1c:
        push(evaluation, a - b);
        break;
    case 0x1e:
        push(evaluation, a * b);
        break;
    case 0x21:
        push(evaluation, a | b);
        break;
    case 0x22:
        push(evaluation, a + b);
        break;
    case 0x24:
        push(evaluation, b < 64 ? a << b : 0);
        break;
    case 0x25:
        push(evaluation, b < 64 ? a >> b : 0);
        break;
    case 0x29:
        push(evaluation, sa == sb);
        break;
    case 0x2a:
        push(evaluation, sa >= sb);
        break;
    case 0x2b:
        push(evaluation, sa > sb);
        break;
    case 0x2c:
        push(evaluation, sa <= sb);
        break;
    case 0x2d:
        push(evaluation, sa < sb);
        break;
    case 0x2e:
        push(evaluation, sa != sb);
        break;
    default:
        evaluation->failed = 1;
    }
}

static void apply(struct evaluation *evaluation, struct cursor *cursor,
                  const struct expression_machine *machine, uint8_t operation) {
    if (operation >= 0x30 && operation <= 0x4f) { /* literals */
        push(evaluation, operation - 0x30u);
    } else if (operation >= 0x70 && operation <= 0x8f) { /* breg */
        uintptr_t base = machine_register(machine, operation - 0x70u, &evaluation->failed);
        push(evaluation, base + (uintptr_t)cursor_sleb(cursor));
    } else if (operation == 0x08 || operation == 0x09) {
        uint8_t byte = (uint8_t)cursor_take(cursor, 1);
        push(evaluation, operation == 0x09 ? (uintptr_t)(intptr_t)(int8_t)byte : byte);
    } else if (operation == 0x0a || operation == 0x0b) {
        uint16_t half = (uint16_t)cursor_take(cursor, 2);
        push(evaluation, operation == 0x0b ? (uintptr_t)(intptr_t)(int16_t)half : half);
    } else if (operation == 0x0e || operation == 0x0f) {
        push(evaluation, cursor_take(cursor, 8));
    } else if (operation == 0x10) {
        push(evaluation, cursor_uleb(cursor));
    } else if (operation == 0x11) {
        push(evaluation, (uintptr_t)cursor_sleb(cursor));
    } else if (operation == 0x12) { /* dup */
        uintptr_t top = pop(evaluation);
        push(evaluation, top);
        push(evaluation, top);
    } else if (operation == 0x06) { /* deref */
        uintptr_t address = pop(evaluation);
        push(evaluation, dereference(machine, address, &evaluation->failed));
    } else if (operation == 0x94) { /* deref_size */
        unsigned bits = 8 * (unsigned)cursor_take(cursor, 1);
        uintptr_t address = pop(evaluation);
        uintptr_t first = address & ~(sizeof address - 1);
        uintptr_t word = dereference(machine, first, &evaluation->failed);
        unsigned skip = 8 * (unsigned)(address - first);
        evaluation->failed |= bits == 0 || skip + bits > 64;
        push(evaluation, bits < 64 ? word >> skip & ((UINT64_C(1) << bits) - 1) : word);
    } else if (operation == 0x23) { /* plus_uconst */
        uintptr_t top = pop(evaluation);
        push(evaluation, top + cursor_uleb(cursor));
    } else {
        apply_binary(evaluation, operation);
    }
}

int expression_evaluate(const uint8_t *expression, const struct expression_machine *machine,
                        const uintptr_t *initial, uintptr_t *result) {
    struct evaluation evaluation = {.depth = 0};
    struct cursor cursor = {expression, expression + 10, 0};
    uint64_t size = cursor_uleb(&cursor);
    cursor.end = cursor.at + size;
    if (initial != NULL) {
        push(&evaluation, *initial);
    }
    while (cursor.at < cursor.end && !cursor.failed && !evaluation.failed) {
        apply(&evaluation, &cursor, machine, (uint8_t)cursor_take(&cursor, 1));
    }
    *result = pop(&evaluation);
    return cursor.failed || evaluation.failed ? -1 : 0;
}
