/* SPDX-License-Identifier: MIT */
/* declared.h: what a function's declaration says of it as one that allocates. */
#ifndef INSTRUMENT_GCC_DECLARED_H
#define INSTRUMENT_GCC_DECLARED_H

#include "instrument/gcc/headers.h"

#include "instrument/allocators/wanted.h"

function_shape declared_shape(tree function);

/* Whether attributes say that it allocates. Malloc and its kin are seen anyway. */
bool declared_proposes(tree function);

/* What the attributes come to: alloc_size tells sizes. Without `malloc` the function may give back
 * an older block, so nothing is proposed. */
wanted declared_proposal(tree function);

/* "pool.c:12" */
std::string declared_place(tree function);

#endif
