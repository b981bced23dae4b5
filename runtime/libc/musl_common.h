/* SPDX-License-Identifier: MIT */
/* musl_common.h: for musl.c and static_musl.c. */
#ifndef RUNTIME_LIBC_MUSL_COMMON_H
#define RUNTIME_LIBC_MUSL_COMMON_H

/* What is called instead of musl's own function of this name, made of what find() finds; NULL:
 * musl's own is. */
void *musl_replaced(const char *name, void *(*find)(const char *name));

#endif
