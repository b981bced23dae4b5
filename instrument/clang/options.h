/* SPDX-License-Identifier: MIT */
/*
 * options.h: what the user may tell the pass: names that never allocate, functions and files to
 * leave out. Clang: -fplugin=memtrace.so -fpass-plugin=memtrace.so -mllvm -memtrace-no-alloc=f,g
 * (without -fplugin Clang reads -mllvm before it loads the plugin).
 */
#ifndef INSTRUMENT_CLANG_OPTIONS_H
#define INSTRUMENT_CLANG_OPTIONS_H

#include <llvm/IR/Function.h>

#include <string>

/* Registers the options with the compiler: once, when the plugin is loaded. */
void options_register();

/* Whether -memtrace-no-alloc names `function`. A name is the linker's, or as in the source with or
 * without its scopes (type::f or f). */
bool options_no_alloc(const llvm::Function &function);

/* Whether -memtrace-exclude-functions or -memtrace-exclude-files leaves `function` out. The latter
 * holds parts of paths. */
bool options_excluded(const llvm::Function &function);

/* Reads what -memtrace-allocators says (instrument/allocators/wanted.h), once. False: `why` is one
 * line that says what is wrong. */
bool options_read_allocators(std::string &why);

/* The source file and line of `function`; without debug information the unit's file and line 0. */
std::string options_source(const llvm::Function &function, unsigned *line);

#endif
