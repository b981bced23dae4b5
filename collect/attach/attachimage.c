/* SPDX-License-Identifier: MIT */
/* attachimage.c: see attachimage.h. */
#define _GNU_SOURCE
#include "collect/attach/attachimage.h"

#include "analyze/read/region.h"
#include "collect/attach/attachmemory.h"
#include "collect/attach/attachtarget.h"
#include "collect/clock.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 1000 };

struct word {
    uint64_t number, value;
};

/* Of files in /proc that are whole in one read. */
static size_t read_file(pid_t pid, const char *name, void *bytes, size_t size) {
    char path[64];
    ssize_t got;
    int fd;
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    got = fd >= 0 ? read(fd, bytes, size) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return got > 0 ? (size_t)got : 0;
}

static uint64_t word_of(const unsigned char *auxv, size_t size, uint64_t number) {
    struct word word;
    for (size_t at = 0; at + sizeof word <= size; at += sizeof word) {
        memcpy(&word, auxv + at, sizeof word);
        if (word.number == number) {
            return word.value;
        }
    }
    return 0;
}

uint64_t attachimage_word(const struct attachimage *image, uint64_t number) {
    return word_of(image->auxv, image->auxv_size, number);
}

int attachimage_read(const struct attachimage *image, uint64_t address, void *bytes, size_t size) {
    return pread(image->memory, bytes, size, (off_t)address) == (ssize_t)size ? 0 : -1;
}

int attachimage_write(const struct attachimage *image, uint64_t address, const void *bytes,
                      size_t size) {
    return pwrite(image->memory, bytes, size, (off_t)address) == (ssize_t)size ? 0 : -1;
}

/* One memory, as in vfork. Not known where the kernel does not tell: then no. */
static bool shares_with_parent(pid_t pid) {
    enum { IS_SAME_MEMORY = KCMP_VM };
    char parent[32];
    return attachtarget_status(pid, pid, "PPid", parent, sizeof parent) == 0 && atol(parent) > 0 &&
           syscall(SYS_kcmp, pid, atol(parent), IS_SAME_MEMORY, 0, 0) == 0;
}

/* 0: all of it is of one image; 1: another moment will tell; -1: it has none, or it is not ours to
 * look at. */
static int look(pid_t pid, struct attachimage *image) {
    char path[64];
    char byte;
    uint64_t random;
    *image = (struct attachimage){.pid = pid};
    snprintf(path, sizeof path, "/proc/%ld/mem", (long)pid);
    image->memory = open(path, O_RDWR | O_CLOEXEC);
    if (image->memory < 0 || region_start_ticks(pid, &image->start_ticks) != 0 ||
        read_file(pid, "maps", &byte, 1) == 0) { /* a thread of the kernel, or it has ended */
        return -1;
    }
    image->auxv_size = read_file(pid, "auxv", image->auxv, sizeof image->auxv);
    random = attachimage_word(image, AT_RANDOM);
    if (random == 0 || attachimage_read(image, random, image->random, sizeof image->random) != 0) {
        return 1;
    }
    image->is_lent = shares_with_parent(pid);
    return image->is_lent ? 1 : 0;
}

void attachimage_open(pid_t pid, struct attachimage *image) {
    const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t end = clock_now_ns() + (uint64_t)WAIT_MS * 1000000;
    int result;
    while ((result = look(pid, image)) > 0 && clock_now_ns() < end) {
        attachimage_close(image);
        nanosleep(&pause, NULL);
    }
    if (result < 0 || (result > 0 && !image->is_lent)) {
        attachimage_close(image);
    }
}

void attachimage_close(struct attachimage *image) {
    if (image->memory >= 0) {
        close(image->memory);
    }
    *image = (struct attachimage){.pid = image->pid, .memory = -1};
}

/* The same words come again where addresses are not random; the bytes that they lead to do not. */
bool attachimage_is_current(const struct attachimage *image) {
    unsigned char auxv[ATTACHIMAGE_AUXV];
    unsigned char random[ATTACHIMAGE_RANDOM];
    uint64_t place = attachimage_word(image, AT_RANDOM);
    return image->memory >= 0 && attachimage_read(image, place, random, sizeof random) == 0 &&
           read_file(image->pid, "auxv", auxv, sizeof auxv) == image->auxv_size &&
           memcmp(auxv, image->auxv, image->auxv_size) == 0 &&
           attachmemory_read(image->pid, place, random, sizeof random) == sizeof random &&
           memcmp(random, image->random, sizeof random) == 0;
}

int attachimage_explain(const struct attachimage *image, struct error *error) {
    bool is_gone = image->memory >= 0 && !attachimage_is_current(image);
    if (is_gone && region_alive(image->pid, image->start_ticks)) {
        error_set(error, "process %ld replaced itself by exec meanwhile: try again",
                  (long)image->pid);
    } else if (is_gone) {
        error_set(error, "process %ld ended meanwhile", (long)image->pid);
    }
    return -1;
}
