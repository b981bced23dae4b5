/* SPDX-License-Identifier: MIT */
/*
 * go_table.h: Go's own table of functions (.gopclntab), which is loaded with the code. It tells
 * which functions are the outermost ones of a stack: runtime.rt0_go, which the process starts with,
 * runtime.mstart, which a thread does, and runtime.goexit, which a goroutine does. Before Go 1.26
 * the first two leave what C has had in fp, so that no frame pointer says that a path ends there;
 * since then they set it to 0, and the table does not tell any more where its functions lie.
 *
 * Where the table is, the object's file says. That is read when the first frame of Go is met.
 */
#ifndef RUNTIME_STACK_GO_TABLE_H
#define RUNTIME_STACK_GO_TABLE_H

#include "runtime/stack/module.h"

/* By module: 0: not asked yet; 1: it has none, or one of another form; else where it lies. */
struct go_tables {
    uintptr_t of_module[MODULE_LIMIT];
};

/* Whether the function around `address`, in this object of Go's, is an outermost one. */
int go_table_is_outermost(struct go_tables *tables, const struct memtrace_module *module,
                          uintptr_t address);

#endif
