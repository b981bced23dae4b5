/* SPDX-License-Identifier: MIT */
/*
 * lsanoptions.h: the suppressions that a program carries for LeakSanitizer: the text that its
 * function __lsan_default_suppressions() returns, read from the file, without running it.
 *
 * Called by analyze/model/suppressions. The function has to be what compilers make of
 * `return "...";`: after the usual prologue the address of constant text goes into the register for
 * results, by lea or mov on x86-64, by adr or adrp and add on AArch64. One that computes its text,
 * reads a variable, or is built with instrumentation of function entries is not understood, and
 * counts as none. The file must be on this machine, unchanged.
 */
#ifndef ANALYZE_SYMBOL_LSANOPTIONS_H
#define ANALYZE_SYMBOL_LSANOPTIONS_H

#include "analyze/symbol/symbol.h"

/* The caller frees the text. NULL: there is none, or it cannot be found. debug_folders may be NULL
 * (as for the symbolizer). */
char *lsanoptions_suppressions(const struct symbol_module *module, const char *debug_folders);

/* The address that the function at `address` returns, by its machine code; 0: not understood.
 * `machine` is e_machine. */
uint64_t lsanoptions_returned(unsigned machine, const unsigned char *code, size_t size,
                              uint64_t address);

#endif
