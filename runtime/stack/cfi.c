/* SPDX-License-Identifier: MIT */
/* cfi.c: finding and running call frame information, and the expressions in it. See cfi.h. */
#include "runtime/stack/cfi.h"

#include "runtime/base/sys.h"
#include "runtime/machine/machine.h"

#include <stddef.h>
#include <string.h>

/* --- numbers -----------------------------------------------------------------------------------
 *
 * Bounds are checked in one place: past the end every read gives 0 and says so once, so that
 * readers stay linear. */

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
    int failed; /* read past the end, or something unknown: every later read gives 0 */
};

/* 1 to 8 bytes, in the machine's order. */
static inline uint64_t cursor_take(struct cursor *cursor, size_t size) {
    uint64_t value = 0;
    if ((size_t)(cursor->end - cursor->at) < size) {
        cursor->failed = 1;
        cursor->at = cursor->end;
        return 0;
    }
    memcpy(&value, cursor->at, size);
    cursor->at += size;
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? value >> (64 - 8 * size) : value;
}

static inline uint64_t cursor_uleb(struct cursor *cursor) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)cursor_take(cursor, 1);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            break;
        }
    }
    return value;
}

static inline int64_t cursor_sleb(struct cursor *cursor) {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)cursor_take(cursor, 1);
        value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        shift += 7;
    } while ((byte & 0x80) != 0 && !cursor->failed);
    if ((byte & 0x40) != 0 && shift < 64) {
        value |= ~UINT64_C(0) << shift;
    }
    return (int64_t)value;
}

/* --- entries ---------------------------------------------------------------------------------- */

/* Pointer encodings: LSB core, "DWARF Exception Header Encoding". */
enum {
    ENCODING_OMIT = 0xff,
    ENCODING_FORMAT = 0x0f,
    ENCODING_APPLICATION = 0x70,
    ENCODING_PC_RELATIVE = 0x10,
    ENCODING_DATA_RELATIVE = 0x30,
    ENCODING_INDIRECT = 0x80,
};

static uint64_t cfi_take_format(struct cursor *cursor, uint8_t encoding) {
    switch (encoding & ENCODING_FORMAT) {
    case 0x00: /* absptr */
        return cursor_take(cursor, sizeof(uintptr_t));
    case 0x04: /* udata8 */
    case 0x0c: /* sdata8 */
        return cursor_take(cursor, 8);
    case 0x01:
        return cursor_uleb(cursor);
    case 0x02:
        return cursor_take(cursor, 2);
    case 0x03:
        return cursor_take(cursor, 4);
    case 0x09:
        return (uint64_t)cursor_sleb(cursor);
    case 0x0a:
        return (uint64_t)(int16_t)cursor_take(cursor, 2);
    case 0x0b:
        return (uint64_t)(int32_t)cursor_take(cursor, 4);
    default:
        cursor->failed = 1;
        return 0;
    }
}

static uintptr_t cfi_take_pointer(struct cursor *cursor, uint8_t encoding, uintptr_t data) {
    uintptr_t place = (uintptr_t)cursor->at;
    uintptr_t value = cfi_take_format(cursor, encoding);
    switch (encoding & ENCODING_APPLICATION) {
    case 0:
        break;
    case ENCODING_PC_RELATIVE:
        value += place;
        break;
    case ENCODING_DATA_RELATIVE:
        value += data;
        break;
    default:
        cursor->failed = 1;
    }
    if ((encoding & ENCODING_INDIRECT) != 0 && !cursor->failed) {
        value = *(const uintptr_t *)value;
    }
    return value;
}

/* Opens a CIE or FDE: the cursor stands behind the length. */
static struct cursor cfi_open_entry(const uint8_t *entry) {
    struct cursor cursor = {entry, entry + 12, 0};
    uint64_t length = cursor_take(&cursor, 4);
    if (length == 0xffffffff) {
        length = cursor_take(&cursor, 8);
    }
    cursor.end = cursor.at + length;
    cursor.failed = length == 0;
    return cursor;
}

struct table_item { /* of .eh_frame_hdr in its one form that linkers write */
    int32_t start;  /* from the header's address */
    int32_t entry;
};

/* The FDE whose start is the last at or below the address. */
static const uint8_t *cfi_search_table(const uint8_t *header, uintptr_t address) {
    struct cursor cursor = {header, header + 64, 0};
    uint8_t version = (uint8_t)cursor_take(&cursor, 1);
    uint8_t frame_encoding = (uint8_t)cursor_take(&cursor, 1);
    uint8_t count_encoding = (uint8_t)cursor_take(&cursor, 1);
    uint8_t table_encoding = (uint8_t)cursor_take(&cursor, 1);
    const struct table_item *items;
    size_t low = 0;
    size_t high;
    if (version != 1 || count_encoding == ENCODING_OMIT || table_encoding != 0x3b) {
        return NULL;
    }
    cfi_take_pointer(&cursor, frame_encoding, (uintptr_t)header);
    high = cfi_take_pointer(&cursor, count_encoding, (uintptr_t)header);
    items = (const struct table_item *)cursor.at;
    if (cursor.failed || high == 0) {
        return NULL;
    }
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)header + (uintptr_t)(intptr_t)items[middle].start <= address) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if ((uintptr_t)header + (uintptr_t)(intptr_t)items[low].start > address) {
        return NULL;
    }
    return header + items[low].entry;
}

/* Whether the entry that was opened ends in its section: what an .eh_frame says is believed. */
static int cfi_lies_within(const struct cfi_section *section, const struct cursor *cursor) {
    return section == NULL || cursor->failed ||
           (cursor->end >= cursor->at && cursor->end <= section->end);
}

struct common {     /* what a CIE says */
    uintptr_t bias; /* of the addresses that entries name */
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_register;
    uint8_t pointer_encoding;
    uint8_t signal_frame;
    uint8_t may_catch;
    uint8_t has_augmentation;
    struct cursor program;
};

static int cfi_read_common(const struct cfi_section *section, const uint8_t *entry,
                           struct common *common) {
    struct cursor cursor = cfi_open_entry(entry);
    const char *augmentation;
    uint8_t version;
    if (!cfi_lies_within(section, &cursor)) {
        return -1;
    }
    cursor_take(&cursor, 4); /* says that it is a CIE */
    version = (uint8_t)cursor_take(&cursor, 1);
    augmentation = (const char *)cursor.at;
    while (cursor_take(&cursor, 1) != 0) {
    }
    if (version >= 4 && cursor_take(&cursor, 2) != sizeof(uintptr_t)) {
        return -1; /* the size of addresses, and that of segments: none */
    }
    *common = (struct common){.bias = section != NULL ? section->bias : 0};
    common->code_align = cursor_uleb(&cursor);
    common->data_align = cursor_sleb(&cursor);
    common->return_register = version == 1 ? cursor_take(&cursor, 1) : cursor_uleb(&cursor);
    if (cursor.failed) {
        return -1;
    }
    if (augmentation[0] == 'z') {
        uint64_t size = cursor_uleb(&cursor);
        const uint8_t *program = cursor.at + size;
        if (size > (uint64_t)(cursor.end - cursor.at)) {
            return -1;
        }
        common->has_augmentation = 1;
        for (const char *letter = augmentation + 1; *letter != '\0'; letter++) {
            if (*letter == 'R') {
                common->pointer_encoding = (uint8_t)cursor_take(&cursor, 1);
            } else if (*letter == 'P') {
                common->may_catch = 1;
                uint8_t encoding = (uint8_t)cursor_take(&cursor, 1);
                cfi_take_format(&cursor, encoding);
            } else if (*letter == 'L') {
                cursor_take(&cursor, 1);
            } else if (*letter == 'S') {
                common->signal_frame = 1;
            }
        }
        cursor.at = program;
    } else if (augmentation[0] != '\0') {
        return -1;
    }
    common->program = cursor;
    return cursor.failed || common->return_register != MACHINE_DWARF_RA ? -1 : 0;
}

/* Running the program of one CIE or FDE. */
struct state {
    struct cfi_row row;
    struct cfi_row initial; /* after the CIE: what DW_CFA_restore goes back to */
    struct cfi_row saved[8];
    unsigned depth;
    uintptr_t location;
};

static struct cfi_register *cfi_register_of(struct cfi_row *row, uint64_t number) {
    return number == MACHINE_DWARF_FP                                   ? &row->frame_pointer
           : number == MACHINE_DWARF_RA                                 ? &row->return_address
           : MACHINE_HAS_SECOND_FP && number == MACHINE_DWARF_SECOND_FP ? &row->second_frame_pointer
                                                                        : NULL;
}

static void cfi_set_register(struct state *state, uint64_t number, enum cfi_place place,
                             int64_t offset, const uint8_t *expression) {
    struct cfi_register *reg = cfi_register_of(&state->row, number);
    if (reg != NULL) {
        *reg = (struct cfi_register){place, offset, expression};
    }
}

static void cfi_restore_register(struct state *state, uint64_t number) {
    struct cfi_register *reg = cfi_register_of(&state->row, number);
    if (reg != NULL) {
        *reg = *cfi_register_of(&state->initial, number);
    }
}

static const uint8_t *cfi_take_block(struct cursor *cursor) {
    const uint8_t *block = cursor->at;
    uint64_t size = cursor_uleb(cursor);
    cursor->at += size <= (uint64_t)(cursor->end - cursor->at) ? size : 0;
    return block;
}

/* The instructions with an opcode of their own: DWARF 5, table 7.29. */
static void cfi_run_extended(struct state *state, struct cursor *cursor, uint8_t opcode,
                             const struct common *common) {
    uint64_t number;
    struct cfi_row *row = &state->row;
    switch (opcode) {
    case 0x00: /* nop */
        break;
    case 0x01: /* set_loc */
        state->location = cfi_take_pointer(cursor, common->pointer_encoding, 0) + common->bias;
        break;
    case 0x02:
        state->location += cursor_take(cursor, 1) * common->code_align;
        break;
    case 0x03:
        state->location += cursor_take(cursor, 2) * common->code_align;
        break;
    case 0x04:
        state->location += cursor_take(cursor, 4) * common->code_align;
        break;
    case 0x05: /* offset_extended */
        number = cursor_uleb(cursor);
        cfi_set_register(state, number, CFI_OFFSET,
                         (int64_t)cursor_uleb(cursor) * common->data_align, NULL);
        break;
    case 0x06:
        cfi_restore_register(state, cursor_uleb(cursor));
        break;
    case 0x07:
        cfi_set_register(state, cursor_uleb(cursor), CFI_UNDEFINED, 0, NULL);
        break;
    case 0x08:
        cfi_set_register(state, cursor_uleb(cursor), CFI_UNCHANGED, 0, NULL);
        break;
    case 0x09: /* register */
        cfi_set_register(state, cursor_uleb(cursor), CFI_UNSUPPORTED, 0, NULL);
        cursor_uleb(cursor);
        break;
    case 0x0a: /* remember_state */
        if (state->depth < sizeof state->saved / sizeof state->saved[0]) {
            state->saved[state->depth] = *row;
        } else {
            cursor->failed = 1;
        }
        state->depth++;
        break;
    case 0x0b: /* restore_state */
        if (state->depth == 0) {
            cursor->failed = 1;
        } else {
            *row = state->saved[--state->depth];
        }
        break;
    case 0x0c: /* def_cfa */
        row->cfa_register = (uint32_t)cursor_uleb(cursor);
        row->cfa_offset = (int64_t)cursor_uleb(cursor);
        row->cfa_expression = NULL;
        break;
    case 0x0d:
        row->cfa_register = (uint32_t)cursor_uleb(cursor);
        row->cfa_expression = NULL;
        break;
    case 0x0e:
        row->cfa_offset = (int64_t)cursor_uleb(cursor);
        break;
    case 0x0f: /* def_cfa_expression */
        row->cfa_expression = cfi_take_block(cursor);
        break;
    case 0x10: /* expression */
        number = cursor_uleb(cursor);
        cfi_set_register(state, number, CFI_EXPRESSION, 0, cfi_take_block(cursor));
        break;
    case 0x11: /* offset_extended_sf */
        number = cursor_uleb(cursor);
        cfi_set_register(state, number, CFI_OFFSET, cursor_sleb(cursor) * common->data_align, NULL);
        break;
    case 0x12: /* def_cfa_sf */
        row->cfa_register = (uint32_t)cursor_uleb(cursor);
        row->cfa_offset = cursor_sleb(cursor) * common->data_align;
        row->cfa_expression = NULL;
        break;
    case 0x13:
        row->cfa_offset = cursor_sleb(cursor) * common->data_align;
        break;
    case 0x14: /* val_offset, val_offset_sf */
    case 0x15:
        cfi_set_register(state, cursor_uleb(cursor), CFI_UNSUPPORTED, 0, NULL);
        cursor_uleb(cursor);
        break;
    case 0x16: /* val_expression */
        cfi_set_register(state, cursor_uleb(cursor), CFI_UNSUPPORTED, 0, NULL);
        cfi_take_block(cursor);
        break;
    case 0x2e: /* GNU_args_size */
        cursor_uleb(cursor);
        break;
    default:
        row->is_signed ^= MACHINE_MAY_SIGN;
        cursor->failed |= !machine_is_signing_cfi(opcode);
    }
}

/* Of instructions that nearly all programs are made of, in their short forms, as many as stand
 * here. Whether the row for `address` stands after them. */
static int cfi_run_usual(struct state *state, struct cursor *cursor, uintptr_t address,
                         const struct common *common) {
    const uint8_t *at = cursor->at;
    uintptr_t location = state->location;
    while (cursor->end - at >= 2) {
        if (at[0] >> 6 == 1) { /* advance_loc */
            location += (at[0] & 0x3f) * common->code_align;
            at++;
            if (location > address) {
                return 1;
            }
        } else if (at[1] < 0x80 && at[0] == 0x0e) { /* def_cfa_offset */
            state->row.cfa_offset = at[1];
            at += 2;
        } else if (at[1] < 0x80 && at[0] >> 6 == 2) { /* offset */
            cfi_set_register(state, at[0] & 0x3f, CFI_OFFSET, at[1] * common->data_align, NULL);
            at += 2;
        } else {
            break;
        }
    }
    cursor->at = at;
    state->location = location;
    return 0;
}

/* Runs until the row for `address` stands. 0, or -1. */
static int cfi_run(struct state *state, struct cursor cursor, uintptr_t address,
                   const struct common *common) {
    while (cursor.at < cursor.end && !cursor.failed) {
        uint8_t opcode;
        if (cfi_run_usual(state, &cursor, address, common)) {
            return 0;
        }
        if (cursor.at == cursor.end) {
            break;
        }
        opcode = (uint8_t)cursor_take(&cursor, 1);
        switch (opcode >> 6) {
        case 1: /* advance_loc */
            state->location += (opcode & 0x3f) * common->code_align;
            break;
        case 2: /* offset */
            cfi_set_register(state, opcode & 0x3f, CFI_OFFSET,
                             (int64_t)cursor_uleb(&cursor) * common->data_align, NULL);
            break;
        case 3:
            cfi_restore_register(state, opcode & 0x3f);
            break;
        default:
            cfi_run_extended(state, &cursor, opcode, common);
        }
        if (state->location > address) {
            return 0; /* what moves the location leaves the row as it is */
        }
    }
    return cursor.failed ? -1 : 0;
}

/* What an FDE says, opened: the code it is about, its CIE, its program. */
struct description {
    uintptr_t start, size;
    struct common common;
    struct cursor program;
};

/* 0, or -1: it is a CIE or cannot be understood. */
static int cfi_read_description(const struct cfi_section *section, const uint8_t *entry,
                                struct description *out) {
    struct cursor cursor = cfi_open_entry(entry);
    const uint8_t *place = cursor.at;
    uint32_t word = (uint32_t)cursor_take(&cursor, 4); /* says where its CIE is */
    const uint8_t *common = NULL;
    if (section == NULL) {
        common = word != 0 ? place - word : NULL;
    } else if (word < (size_t)(section->end - section->start)) {
        common = section->start + word;
    }
    if (cursor.failed || common == NULL || !cfi_lies_within(section, &cursor) ||
        (section != NULL && place != entry + 4) || /* in the form for more than 4 GiB */
        cfi_read_common(section, common, &out->common) != 0) {
        return -1;
    }
    out->start = cfi_take_pointer(&cursor, out->common.pointer_encoding, 0) + out->common.bias;
    out->size = cfi_take_format(&cursor, out->common.pointer_encoding & ENCODING_FORMAT);
    if (out->common.has_augmentation) {
        uint64_t skip = cursor_uleb(&cursor);
        cursor.at += skip <= (uint64_t)(cursor.end - cursor.at) ? skip : 0;
    }
    out->program = cursor;
    return cursor.failed ? -1 : 0;
}

int cfi_read(const struct cfi_section *section, const uint8_t *entry, uintptr_t address,
             struct cfi_row *row) {
    struct description about;
    struct state state;
    if (cfi_read_description(section, entry, &about) != 0 || address - about.start >= about.size) {
        return -1;
    }
    memset(&state, 0, sizeof state);
    state.location = about.start;
    if (cfi_run(&state, about.common.program, UINTPTR_MAX, &about.common) != 0) {
        return -1;
    }
    state.initial = state.row;
    if (cfi_run(&state, about.program, address, &about.common) != 0) {
        return -1;
    }
    *row = state.row;
    row->signal_frame = about.common.signal_frame;
    row->may_catch = about.common.may_catch;
    row->start = about.start;
    row->end = about.start + about.size;
    return 0;
}

int cfi_find(const uint8_t *eh_frame_header, uintptr_t address, struct cfi_row *row) {
    const uint8_t *entry = cfi_search_table(eh_frame_header, address);
    return entry != NULL ? cfi_read(NULL, entry, address, row) : -1;
}

int cfi_range(const struct cfi_section *section, const uint8_t *entry, uintptr_t *start,
              uintptr_t *end) {
    struct description about;
    if (cfi_read_description(section, entry, &about) != 0) {
        return -1;
    }
    *start = about.start;
    *end = about.start + about.size;
    return 0;
}

const uint8_t *cfi_next(const uint8_t *entry) {
    struct cursor cursor = cfi_open_entry(entry);
    return cursor.failed ? NULL : cursor.end;
}

/* --- expressions (DWARF 5, table 7.9) ----------------------------------------------------------
 *
 * As far as call frame information of compilers and of libc uses them. */

enum { STACK_DEPTH = 16, PAGE = 4096 };

struct evaluation {
    uintptr_t stack[STACK_DEPTH];
    unsigned depth;
    int failed;
};

static void expression_push(struct evaluation *evaluation, uintptr_t value) {
    if (evaluation->depth == STACK_DEPTH) {
        evaluation->failed = 1;
        return;
    }
    evaluation->stack[evaluation->depth++] = value;
}

static uintptr_t expression_pop(struct evaluation *evaluation) {
    if (evaluation->depth == 0) {
        evaluation->failed = 1;
        return 0;
    }
    return evaluation->stack[--evaluation->depth];
}

static uintptr_t expression_machine_register(const struct expression_machine *machine,
                                             unsigned number, int *failed) {
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
static uintptr_t expression_dereference(const struct expression_machine *machine, uintptr_t address,
                                        int *failed) {
    if (address % sizeof address != 0 ||
        (address / PAGE != machine->sp / PAGE && !sys_readable((const void *)address))) {
        *failed = 1;
        return 0;
    }
    return *(const uintptr_t *)address;
}

static void expression_apply_binary(struct evaluation *evaluation, uint8_t operation) {
    uintptr_t b = expression_pop(evaluation);
    uintptr_t a = expression_pop(evaluation);
    intptr_t sa = (intptr_t)a;
    intptr_t sb = (intptr_t)b;
    switch (operation) {
    case 0x1a:
        expression_push(evaluation, a & b);
        break;
    case 0x1c:
        expression_push(evaluation, a - b);
        break;
    case 0x1e:
        expression_push(evaluation, a * b);
        break;
    case 0x21:
        expression_push(evaluation, a | b);
        break;
    case 0x22:
        expression_push(evaluation, a + b);
        break;
    case 0x24:
        expression_push(evaluation, b < 64 ? a << b : 0);
        break;
    case 0x25:
        expression_push(evaluation, b < 64 ? a >> b : 0);
        break;
    case 0x29:
        expression_push(evaluation, sa == sb);
        break;
    case 0x2a:
        expression_push(evaluation, sa >= sb);
        break;
    case 0x2b:
        expression_push(evaluation, sa > sb);
        break;
    case 0x2c:
        expression_push(evaluation, sa <= sb);
        break;
    case 0x2d:
        expression_push(evaluation, sa < sb);
        break;
    case 0x2e:
        expression_push(evaluation, sa != sb);
        break;
    default:
        evaluation->failed = 1;
    }
}

static void expression_apply(struct evaluation *evaluation, struct cursor *cursor,
                             const struct expression_machine *machine, uint8_t operation) {
    if (operation >= 0x30 && operation <= 0x4f) { /* literals */
        expression_push(evaluation, operation - 0x30u);
    } else if (operation >= 0x70 && operation <= 0x8f) { /* breg */
        uintptr_t base =
            expression_machine_register(machine, operation - 0x70u, &evaluation->failed);
        expression_push(evaluation, base + (uintptr_t)cursor_sleb(cursor));
    } else if (operation == 0x08 || operation == 0x09) {
        uint8_t byte = (uint8_t)cursor_take(cursor, 1);
        expression_push(evaluation, operation == 0x09 ? (uintptr_t)(intptr_t)(int8_t)byte : byte);
    } else if (operation == 0x0a || operation == 0x0b) {
        uint16_t half = (uint16_t)cursor_take(cursor, 2);
        expression_push(evaluation, operation == 0x0b ? (uintptr_t)(intptr_t)(int16_t)half : half);
    } else if (operation == 0x0e || operation == 0x0f) {
        expression_push(evaluation, cursor_take(cursor, 8));
    } else if (operation == 0x10) {
        expression_push(evaluation, cursor_uleb(cursor));
    } else if (operation == 0x11) {
        expression_push(evaluation, (uintptr_t)cursor_sleb(cursor));
    } else if (operation == 0x12) { /* dup */
        uintptr_t top = expression_pop(evaluation);
        expression_push(evaluation, top);
        expression_push(evaluation, top);
    } else if (operation == 0x06) { /* deref */
        uintptr_t address = expression_pop(evaluation);
        expression_push(evaluation, expression_dereference(machine, address, &evaluation->failed));
    } else if (operation == 0x94) { /* deref_size */
        unsigned bits = 8 * (unsigned)cursor_take(cursor, 1);
        uintptr_t address = expression_pop(evaluation);
        uintptr_t first = address & ~(sizeof address - 1);
        uintptr_t word = expression_dereference(machine, first, &evaluation->failed);
        unsigned skip = 8 * (unsigned)(address - first);
        evaluation->failed |= bits == 0 || skip + bits > 64;
        expression_push(evaluation, bits < 64 ? word >> skip & ((UINT64_C(1) << bits) - 1) : word);
    } else if (operation == 0x23) { /* plus_uconst */
        uintptr_t top = expression_pop(evaluation);
        expression_push(evaluation, top + cursor_uleb(cursor));
    } else {
        expression_apply_binary(evaluation, operation);
    }
}

int expression_evaluate(const uint8_t *expression, const struct expression_machine *machine,
                        const uintptr_t *initial, uintptr_t *result) {
    struct evaluation evaluation = {.depth = 0};
    struct cursor cursor = {expression, expression + 10, 0};
    uint64_t size = cursor_uleb(&cursor);
    cursor.end = cursor.at + size;
    if (initial != NULL) {
        expression_push(&evaluation, *initial);
    }
    while (cursor.at < cursor.end && !cursor.failed && !evaluation.failed) {
        expression_apply(&evaluation, &cursor, machine, (uint8_t)cursor_take(&cursor, 1));
    }
    *result = expression_pop(&evaluation);
    return cursor.failed || evaluation.failed ? -1 : 0;
}
