/* SPDX-License-Identifier: MIT */
/*
 * proc.h: what /proc says of this process. Raw system calls, no allocation; safe in handlers. 0
 * where there is no /proc.
 *
 * Called by all floors above; of this one by clock.c and limits.c.
 */
#ifndef RUNTIME_BASE_PROC_H
#define RUNTIME_BASE_PROC_H

#include "memtrace/format.h"

#include <stddef.h>

/* The start of a file, ended by a 0. How many bytes that are, or a negative errno: none. */
long proc_read(const char *path, char *buffer, size_t capacity);

/* The mappings of the process, one after the other; read byte by byte, through little of the stack.
 * (Where it cannot be opened there are none.) */
struct proc_maps {
    uintptr_t start, end; /* of the one that proc_next_map() came to */
    long fd;              /* or a negative errno */
    size_t at, size;
    int byte; /* the last one that was read; -1: there are no more */
    char buffer[512];
};
void proc_open_maps(struct proc_maps *maps);
int proc_next_map(struct proc_maps *maps); /* 1, or 0: that was the last */
/* Its name: a path, or as "[stack]". The length; 0: it has none, or there is no room for it. */
size_t proc_map_name(struct proc_maps *maps, char *name, size_t size);
void proc_close_maps(const struct proc_maps *maps);

/* Bytes of memory, as the kernel counts them. */
struct proc_memory {
    uint64_t address;          /* address space */
    uint64_t resident, shared; /* and what of that is of files or shared */
    uint64_t data;             /* private memory that can be written, and stacks */
};
/* 0, or -1: it cannot be told, all are 0. */
int proc_read_memory(struct proc_memory *memory);

/* What names the process for good, since a pid is given again, and is a number of its namespace:
 * when it started (field 22 of /proc/self/stat, proc(5)), and the inode of its namespace of pids
 * (pid_namespaces(7)). */
uint64_t proc_start_ticks(void);
uint64_t proc_pid_namespace(void);

/* The program's file: the one that is mapped where its entry is. /proc/self/exe is another where a
 * loader was started as a command (`ld.so PROGRAM`). Returns the length, the 0 at the end left out;
 * 0: it cannot be told. */
size_t proc_program_file(char *path, size_t size);

/* Notes in the header the most memory that ever was resident. */
void proc_note_resident_peak(struct memtrace_header *header);
/* Notes in the header how much of what is resident now is the runtime's own. */
void proc_note_own_resident(struct memtrace_header *header);

#endif
