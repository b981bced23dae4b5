/* SPDX-License-Identifier: MIT */
/*
 * attachimage.h: one program in one process, from its exec to its end or the next exec. All that is
 * looked up for attaching is about one such image, and all that is written goes into that one or
 * nowhere: by a descriptor of its memory, which stays that of this image whatever the process does.
 * Before a thread of the process is led anywhere it is asked, while the thread stands, whether the
 * image is still the process's.
 *
 * Called by collect/attach and cli. Only reads, but for attachimage_write().
 */
#ifndef COLLECT_ATTACH_ATTACHIMAGE_H
#define COLLECT_ATTACH_ATTACHIMAGE_H

#include "analyze/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
