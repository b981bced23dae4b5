/* SPDX-License-Identifier: MIT */
/*
 * identity.h: what names this process for good. A pid does not: it is given again, and it is a
 * number of its namespace.
 *
 * Called by runtime/record/region. Signal-safe. Each is 0 where there is no /proc.
 */
#ifndef RUNTIME_RECORD_IDENTITY_H
#define RUNTIME_RECORD_IDENTITY_H

#include <stdint.h>

/* When the process started: field 22 of /proc/self/stat (proc(5)). */
uint64_t identity_start_ticks(void);

/* The inode of its namespace of pids (pid_namespaces(7)). */
uint64_t identity_pid_namespace(void);

#endif
