/* SPDX-License-Identifier: MIT */
/*
 * attachtarget.h: one program in one process: what /proc tells of its mappings, its objects and
 * what these define; and its image, from its exec to its end or the next exec. All that is looked
 * up for attaching is about one such image, and all that is written goes into that one or nowhere:
 * by a descriptor of its memory, which stays that of this image whatever the process does. Before a
 * thread of the process is led anywhere it is asked, while the thread stands, whether the image is
 * still the process's.
 *
 * Called by collect/attach and cli. Only reads, but for attachimage_write().
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

/* Bytes of the program's memory that were read, or -1. Writing: attachimage_write(). */
ssize_t attachtarget_memory(pid_t pid, uint64_t address, void *bytes, size_t size);
/* How often this thread has left its CPU in order to wait. 0, or -1. */
int attachtarget_waits(pid_t pid, pid_t tid, uint64_t *count);

/* ---- The image ---- */

enum { ATTACHIMAGE_AUXV = 1024, ATTACHIMAGE_RANDOM = 16 };

struct attachimage {
    pid_t pid;
    int memory;           /* /proc/PID/mem; -1: it cannot be opened, and all else is zero */
    uint64_t start_ticks; /* of the process */
    unsigned char auxv[ATTACHIMAGE_AUXV]; /* that the kernel gave the program */
    size_t auxv_size;
    /* The kernel's random bytes of each exec, as they were when it was opened. */
    unsigned char random[ATTACHIMAGE_RANDOM];
    bool is_lent; /* its parent's, which waits (vfork): the program has not begun */
};

/* What the process runs now. Waits for an exec that is under way, and for a process in vfork to
 * have called exec, for a second at most. In any case attachimage_close(). */
void attachimage_open(pid_t pid, struct attachimage *image);
void attachimage_close(struct attachimage *image);
/* Whether the process runs it still. Of one whose threads all stand, or one of whose threads does
 * and is led by registers: until they go on. */
bool attachimage_is_current(const struct attachimage *image);
/* A word of what the kernel gave the program, by its AT_ number; 0: none. */
uint64_t attachimage_word(const struct attachimage *image, uint64_t number);

/* 0, or -1: not all of it, or the image is gone. */
int attachimage_read(const struct attachimage *image, uint64_t address, void *bytes, size_t size);
int attachimage_write(const struct attachimage *image, uint64_t address, const void *bytes,
                      size_t size);

/* Where something has failed: if the image is gone, by exec or since the process ended, the error
 * says that alone. -1. */
int attachimage_explain(const struct attachimage *image, struct error *error);

#endif
