/* SPDX-License-Identifier: MIT */
/* expression.h: DWARF expressions in call frame information. */
#ifndef RUNTIME_STACK_EXPRESSION_H
#define RUNTIME_STACK_EXPRESSION_H

#include <stdint.h>

/* Registers an expression may ask for. */
struct expression_machine {
    uintptr_t pc, sp, fp;
};

/* Evaluates a DWARF expression (with `initial` pushed first, if not NULL). 0, or -1: an operation
 * or register that is not known here, or memory that cannot be read. */
int expression_evaluate(const uint8_t *expression, const struct expression_machine *machine,
                        const uintptr_t *initial, uintptr_t *result);

#endif
