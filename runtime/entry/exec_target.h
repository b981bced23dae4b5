/* SPDX-License-Identifier: MIT */
/* exec_target.h: whether a program can run with our library preloaded. */
#ifndef RUNTIME_ENTRY_EXEC_TARGET_H
#define RUNTIME_ENTRY_EXEC_TARGET_H

/* 0: with our library its loader would end it or complain: it has another C library (PT_INTERP),
 * another word size or machine, or a sanitizer that must be loaded first. 1: it can, or that cannot
 * be told. Signal-safe, allocates nothing. */
int exec_target_takes_preload(const char *path);

#endif
