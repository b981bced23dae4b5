/* SPDX-License-Identifier: MIT */
/*
 * cfi.h: call frame information (DWARF 5 section 6.4, LSB .eh_frame) of one code address.
 * Reads the mapped .eh_frame through its binary search table, or an entry that others found;
 * allocates nothing, takes no lock. Only what stepping to the caller needs is kept: how to find the
 * CFA, the return address and the frame pointer.
 */
#ifndef RUNTIME_STACK_CFI_H
#define RUNTIME_STACK_CFI_H

#include <stdint.h>

enum cfi_place {
    CFI_UNCHANGED,   /* the register still holds it */
    CFI_UNDEFINED,   /* for the return address: the outermost frame */
    CFI_OFFSET,      /* at CFA + offset */
    CFI_EXPRESSION,  /* at the address that an expression gives */
    CFI_UNSUPPORTED, /* in another register: not stepped */
};

struct cfi_register {
    enum cfi_place place;
    int64_t offset;
    const uint8_t *expression; /* its ULEB length comes first */
};

/* One row of the table, as it holds at the address asked for. */
struct cfi_row {
    const uint8_t *cfa_expression; /* NULL: register + offset */
    uint32_t cfa_register;         /* DWARF number */
    int64_t cfa_offset;
    struct cfi_register frame_pointer;
    struct cfi_register second_frame_pointer; /* where there are two: MACHINE_HAS_SECOND_FP */
    struct cfi_register return_address;
    int is_signed; /* the return address, since the function saved it: MACHINE_MAY_SIGN */
    int signal_frame;
    int may_catch;        /* there is a personality: exceptions may be caught here, or clean up */
    uintptr_t start, end; /* the code that this information is about: a function or a part of one */
};

/* The row for `address` (a return address minus one, or an interrupted instruction). 0, or -1 if
 * the object has no usable information for it. */
int cfi_find(const uint8_t *eh_frame_header, uintptr_t address, struct cfi_row *row);

/* A .debug_frame: its entries tell their common part by its distance from the section's start, and
 * addresses as the file has them. */
struct cfi_section {
    const uint8_t *start, *end; /* 16 readable bytes follow */
    uintptr_t bias;             /* what is added to its addresses */
};

/* The same from the one entry (FDE) that is about `address`: of an .eh_frame, which is trusted; or,
 * with `section`, of that .debug_frame. */
int cfi_read(const struct cfi_section *section, const uint8_t *entry, uintptr_t address,
             struct cfi_row *row);
/* The code that an entry is about. 0, or -1: none (a CIE, or not understood). */
int cfi_range(const struct cfi_section *section, const uint8_t *entry, uintptr_t *start,
              uintptr_t *end);
/* What stands behind an entry; NULL: this was the end of an .eh_frame. */
const uint8_t *cfi_next(const uint8_t *entry);

/* Registers an expression may ask for. */
struct expression_machine {
    uintptr_t pc, sp, fp;
};

/* Evaluates a DWARF expression (with `initial` pushed first, if not NULL). 0, or -1: an operation
 * or register that is not known here, or memory that cannot be read. */
int expression_evaluate(const uint8_t *expression, const struct expression_machine *machine,
                        const uintptr_t *initial, uintptr_t *result);

#endif
