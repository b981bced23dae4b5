/* SPDX-License-Identifier: MIT */
/*
 * reach.h: which calls may reach an allocator or code we do not know. An interprocedural pass finds
 * it out for the functions of the unit, after inlining; the insertion asks for each call.
 */
#ifndef INSTRUMENT_GCC_REACH_H
#define INSTRUMENT_GCC_REACH_H

#include "instrument/gcc/headers.h"

simple_ipa_opt_pass *reach_make_pass(gcc::context *context);

/* What a call of `function` may run into, in words for the report ("calls malloc"); empty: it never
 * allocates. */
std::string reach_of(tree function);

/* The same for a routine of the compiler that has no declaration: __divti3. */
std::string reach_of_symbol(const char *symbol);

/* The same for the text of an assembler statement. */
std::string reach_of_asm(const char *text);

#endif
