/* SPDX-License-Identifier: MIT */
/* go_table_subject.S: three functions, which are never called, and what Go's linker writes of such:
 * the second is an outermost one. TABLE: the table's section, AMONG: it lies
 * behind other data there; LAID: what the functions' offsets are from, as Go before 1.26 tells it. */
    .globl first, second, third, behind
    .text
    .balign 64
text_start:
    .skip 128, 0x90
first:
    .skip 64, 0x90
second:
    .skip 32, 0x90
third:
    .skip 64, 0x90
behind:
    .skip 64, 0x90

    .section TABLE, "aw"
    .balign 8
#ifdef AMONG
    .quad 1, MAGIC, 2, MAGIC + (8 << 56), 3
#endif
table:
    .long MAGIC
    .byte 0, 0, 1, 8
    .quad 3, 1, LAID
    .quad 0, 0, 0, 0
    .quad index - table
index:
    .long first - text_start, of_first - index
    .long second - text_start, of_second - index
    .long third - text_start, of_third - index
    .long behind - text_start
of_first:
    .long first - text_start
    .skip 36, 0xff
    .byte 1, 0, 0, 0
of_second:
    .long second - text_start
    .skip 36, 0xff
    .byte 1, 1, 0, 0
of_third:
    .long third - text_start
    .skip 36, 0xff
    .byte 1, 6, 0, 0

    .section .note.GNU-stack, "", %progbits
