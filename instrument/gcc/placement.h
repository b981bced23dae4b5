/* SPDX-License-Identifier: MIT */
/* placement.h: where the stores go. */
#ifndef INSTRUMENT_GCC_PLACEMENT_H
#define INSTRUMENT_GCC_PLACEMENT_H

#include "instrument/gcc/headers.h"

/* The cheapest set of blocks such that each block marked in `needs` (by index) is one of them or is
 * reached only through one. A store belongs at the start of each. */
std::vector<basic_block> placement_choose(function *fun, const std::vector<char> &needs);

#endif
