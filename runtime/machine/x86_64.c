/* SPDX-License-Identifier: MIT */
/* x86_64.c: reading x86-64's code. See machine.h. */
#include "runtime/machine/machine.h"

#include <string.h>

/* MOV m32, imm32 (Intel SDM volume 2: C7 /0 id) with the address forms of a stack variable. */
static const struct form {
    uint8_t bytes[3];
    uint8_t length;
    uint8_t displacement_bytes;
    uint32_t base_register;
} forms[] = {
    {{0xc7, 0x44, 0x24}, 3, 1, MACHINE_DWARF_SP}, /* [rsp + disp8] */
    {{0xc7, 0x45}, 2, 1, MACHINE_DWARF_FP},       /* [rbp + disp8] */
    {{0xc7, 0x84, 0x24}, 3, 4, MACHINE_DWARF_SP}, /* [rsp + disp32] */
    {{0xc7, 0x85}, 2, 4, MACHINE_DWARF_FP},       /* [rbp + disp32] */
    {{0xc7, 0x04, 0x24}, 3, 0, MACHINE_DWARF_SP}, /* [rsp] */
};

/* Whether the constant at `immediate` ends such an instruction that starts in [start, end). */
static int x86_64_decode_store(uintptr_t start, uintptr_t immediate, struct machine_store *store) {
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const struct form *form = &forms[i];
        size_t length = form->length + form->displacement_bytes;
        uint8_t byte;
        if (immediate - start < length ||
            memcmp((const void *)(immediate - length), form->bytes, form->length) != 0) {
            continue;
        }
        store->start = immediate - length;
        store->end = immediate + sizeof(uint32_t);
        store->base_register = form->base_register;
        store->displacement = 0;
        if (form->displacement_bytes == sizeof byte) {
            memcpy(&byte, (const void *)(immediate - 1), sizeof byte);
            store->displacement = byte < 0x80 ? byte : byte - 0x100;
        } else if (form->displacement_bytes != 0) {
            memcpy(&store->displacement, (const void *)(immediate - 4), 4);
        }
        return 1;
    }
    return 0;
}

static uint32_t load_word(uintptr_t address) {
    uint32_t word;
    memcpy(&word, (const void *)address, sizeof word);
    return word;
}

/* Looks for the constant's last byte, which libc does many bytes at a time. */
int machine_find_store(uintptr_t start, uintptr_t end, uint32_t constant,
                       struct machine_store *store) {
    const int last = (int)(constant >> 24);
    uintptr_t at = start + sizeof constant - 1;
    while (at < end) {
        const void *found = memchr((const void *)at, last, end - at);
        if (found == NULL) {
            return 0;
        }
        at = (uintptr_t)found + 1;
        if (load_word(at - sizeof constant) == constant &&
            x86_64_decode_store(start, at - sizeof constant, store)) {
            return 1;
        }
    }
    return 0;
}

/* Of CALL r/m64 (FF /2) with these bytes after the opcode. */
static size_t indirect_call_length(const uint8_t *code) {
    uint8_t mode = code[0] >> 6;
    uint8_t base = code[0] & 7;
    size_t length = 2;
    if (mode == 3) {
        return length;
    }
    if (base == 4) { /* an index byte, whose base counts */
        base = code[1] & 7;
        length++;
    }
    return length + (mode == 1 ? 1 : mode == 2 || base == 5 ? 4 : 0);
}

int machine_follows_call(uintptr_t pc) {
    enum { DIRECT = 5 };
    const uint8_t *end = (const uint8_t *)pc;
    if (end[-DIRECT] == 0xe8) { /* CALL rel32 */
        return 1;
    }
    for (size_t length = 2; length <= MACHINE_LONGEST_CALL; length++) {
        const uint8_t *code = end - length;
        if (code[0] == 0xff && (code[1] & 0x38) == 0x10 &&
            indirect_call_length(code + 1) == length) {
            return 1;
        }
    }
    return 0;
}

/* Steps over these bytes; NULL: others are there. */
static const uint8_t *over(const uint8_t *at, const uint8_t *end, const char *bytes, size_t count) {
    int is_there = at != NULL && (size_t)(end - at) >= count && memcmp(at, bytes, count) == 0;
    return is_there ? at + count : NULL;
}
#define OVER(at, end, bytes) over(at, end, bytes, sizeof bytes - 1)

/* Over `plain`, or over `with`, behind which a displacement of one byte stands. */
static const uint8_t *over_either(const uint8_t *at, const uint8_t *end, const char *plain,
                                  const char *with, uint8_t *displacement) {
    const uint8_t *next = over(at, end, plain, 4);
    *displacement = 0;
    if (next == NULL && (next = over(at, end, with, 4)) != NULL && next < end) {
        *displacement = *next++;
    }
    return next;
}

/* Over the store of rdi to the thread's g: MOV FS:disp32, RDI, or MOV FS:[RCX], RDI. */
static const uint8_t *over_store(const uint8_t *at, const uint8_t *end) {
    const uint8_t *next = OVER(at, end, "\x64\x48\x89\x3c\x25");
    if (next != NULL) {
        return end - next >= 4 ? next + 4 : NULL;
    }
    return OVER(at, end, "\x64\x48\x89\x39");
}

/* go/src/runtime/asm_amd64.s, asmcgocall, behind its call. */
int machine_read_way_back(uintptr_t pc, uintptr_t limit, struct machine_way_back *way) {
    enum { RCX_IS_SET = 7 }; /* MOV RCX, imm32 or MOV RCX, [RIP + disp32]: code for any place */
    const uint8_t *end = (const uint8_t *)limit;
    const uint8_t *at = (const uint8_t *)pc;
    if (end - at < MACHINE_WAY_BACK) {
        return 0;
    }
    if (OVER(at, end, "\x48\xc7\xc1") != NULL || OVER(at, end, "\x48\x8b\x0d") != NULL) {
        at += RCX_IS_SET;
    }
    at = over_either(at, end, "\x48\x8b\x3c\x24", "\x48\x8b\x7c\x24", &way->goroutine);
    at = OVER(at, end, "\x48\x8b\x77"); /* MOV RSI, [RDI + high] */
    if (at == NULL) {
        return 0;
    }
    way->high = *at++;
    at = over_either(at, end, "\x48\x2b\x34\x24", "\x48\x2b\x74\x24", &way->depth); /* SUB RSI */
    if (at == NULL || (at = over_store(at, end)) == NULL) {
        return 0;
    }
    at = OVER(at, end, "\x48\x89\xf4\x89\x44\x24"); /* MOV RSP, RSI; MOV [RSP + disp8], EAX */
    if (at == NULL) {
        return 0;
    }
    way->saves_fp = at[1] == 0x5d;
    way->slot = way->saves_fp ? sizeof(uintptr_t) : 0;
    return 1;
}

/* Rotations that come to nothing on a CPU. */
uint64_t machine_ask_valgrind(const uint64_t request[6]) {
    uint64_t answer = 0;
    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(request)
                     : "cc", "memory");
    return answer;
}
