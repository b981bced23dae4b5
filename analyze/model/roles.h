/* SPDX-License-Identifier: MIT */
/*
 * roles.h: what a function's name tells: what it is in a call path, and how it is called for short.
 *
 * Called by analyze/model/names, and by whoever prints names. Any thread.
 */
#ifndef ANALYZE_MODEL_ROLES_H
#define ANALYZE_MODEL_ROLES_H

#include <stddef.h>

/* Any number of them. */
enum {
    ROLES_MAIN = 1 << 0,
    ROLES_STARTUP = 1 << 1, /* what the system runs before the program's own code */
    ROLES_LIBRARY = 1 << 2, /* plumbing of a language's library: std:: and the like, operator new */
};

/* function: demangled. NULL: unknown, as the file may be. Found once for each frame that has a name
 * (struct names_frame): paths are walked far more often. */
unsigned char roles_of(const char *function, const char *file);

/*
 * Writes a shorter form of a demangled C++ or Rust name into the buffer (size >= 1) and returns it:
 * without return type, parameters and template arguments.
 *     std::vector<int, std::allocator<int> >::push_back(int const&)  ->  std::vector<>::push_back
 *     <alloc::vec::Vec<T> as core::ops::Drop>::drop  ->  <alloc::vec::Vec<> as
 * core::ops::Drop>::drop Operators, lambdas and names of other shapes keep what tells them apart.
 */
const char *shortname(const char *name, char *buffer, size_t size);

#endif
