/* SPDX-License-Identifier: MIT */
/* shortname.h: demangled names short enough to read. Called by analyze/report, collect and cli. */
#ifndef ANALYZE_MODEL_SHORTNAME_H
#define ANALYZE_MODEL_SHORTNAME_H

#include <stddef.h>

/*
 * Writes a shorter form of a demangled C++ or Rust name into the buffer (size >= 1) and returns it:
 * without return type, parameters and template arguments.
 *     std::vector<int, std::allocator<int> >::push_back(int const&)  ->  std::vector<>::push_back
 *     <alloc::vec::Vec<T> as core::ops::Drop>::drop  ->  <alloc::vec::Vec<> as
 * core::ops::Drop>::drop Operators, lambdas and names of other shapes keep what tells them apart.
 */
const char *shortname(const char *name, char *buffer, size_t size);

#endif
