/* SPDX-License-Identifier: MIT */
/*
 * attachtarget.h: what /proc tells of a program that is to be attached to: its mappings, its
 * objects, what these define. Only reads; the program notices nothing.
 *
 * Called by collect/attach.
 */
#ifndef COLLECT_ATTACH_ATTACHTARGET_H
#define COLLECT_ATTACH_ATTACHTARGET_H

#include "analyze/base/error.h"

#include <libelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct attachmapping {
    uint64_t start, end, offset, inode;
    bool readable, writable, executable;
    char *path; /* "": none */
};

struct attachrange {
    uint64_t start, end;
};

struct attachtarget {
    pid_t pid;
    struct attachmapping *mappings;
    size_t count;
};

/* 0, or -1 with error. */
int attachtarget_open(pid_t pid, struct attachtarget *target, struct error *error);
/* The same from what /proc/PID/maps says. Each line may be one that a hostile program has made. */
int attachtarget_read(FILE *maps, pid_t pid, struct attachtarget *target, struct error *error);
void attachtarget_close(struct attachtarget *target);

/* The mapping that this address lies in; NULL: none. */
const struct attachmapping *attachtarget_at(const struct attachtarget *target, uint64_t address);
/* The first mapping of the object whose file's name begins with this; NULL: none. */
const struct attachmapping *attachtarget_object(const struct attachtarget *target,
                                                const char *name);
/* The file of an object as the program sees it, open for reading; -1: another one lies there now.
 */
int attachtarget_file(const struct attachtarget *target, const struct attachmapping *object);
/* The address of a function, or of data, that this object defines; 0: it does not. */
uint64_t attachtarget_symbol(const struct attachtarget *target, const struct attachmapping *object,
                             const char *name);
/* Of several; each as attachtarget_range(). */
void attachtarget_ranges(const struct attachtarget *target, const struct attachmapping *object,
                         const char *const *names, size_t count, struct attachrange *ranges);
/* What the object's addresses count from, by its file. */
uint64_t attachtarget_base(Elf *elf, const struct attachmapping *object);
/* From its first byte to behind its last; {0, 0}: this object does not define it. */
struct attachrange attachtarget_range(const struct attachtarget *target,
                                      const struct attachmapping *object, const char *name);
/* The address where this descriptor is of the object's file. */
uint64_t attachtarget_symbol_of(int fd, const struct attachmapping *object, const char *name);
/* Each virtual table of C++ that this object has: its symbol's name, where it lies, its bytes. */
void attachtarget_vtables(const struct attachtarget *target, const struct attachmapping *object,
                          void (*visit)(void *context, const char *name, uint64_t address,
                                        uint64_t size),
                          void *context);
/* Room of `size` bytes behind the code of some object, mapped with it and never used; 0: none. */
uint64_t attachtarget_padding(const struct attachtarget *target, size_t size);
/* The same of one object, whose file this is. */
uint64_t attachtarget_padding_of(int fd, const struct attachtarget *target,
                                 const struct attachmapping *object, size_t size);
/* Room where nothing is mapped, `size` bytes; 0: none. */
uint64_t attachtarget_gap(const struct attachtarget *target, uint64_t size);

/* Bytes of the program's memory that were read, or -1. Writing: attachimage.h. */
ssize_t attachtarget_memory(pid_t pid, uint64_t address, void *bytes, size_t size);
/* How often this thread has left its CPU in order to wait. 0, or -1. */
int attachtarget_waits(pid_t pid, pid_t tid, uint64_t *count);

#endif
