/* SPDX-License-Identifier: MIT */
/* guard_cells.h: the measures of the guards' code, for C and for assembly. */
#ifndef RUNTIME_STACK_GUARD_CELLS_H
#define RUNTIME_STACK_GUARD_CELLS_H

#define GUARD_CELL 16 /* bytes of code */
#define GUARD_COUNT                                                                                \
    16384 /* a large C++ program has some thousand return addresses that want one                  \
           */

#endif
