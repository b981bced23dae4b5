/* SPDX-License-Identifier: MIT */
/* attachimage.c: see attachimage.h. */
#define _GNU_SOURCE
#include "collect/attach/attachimage.h"

#include "analyze/base/scope.h"
#include "analyze/read/procfile.h"
#include "analyze/read/region.h"
#include "collect/attach/attachtarget.h"
#include "collect/clock.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 1000, NOTHING_MS = 200 };

struct word {
    uint64_t number, value;
};

/* Of files in /proc that are whole in one read. */
static size_t attachimage_read_file(pid_t pid, const char *name, void *bytes, size_t size) {
    SCOPE_FD int fd = procfile_open(O_RDONLY, "/proc/%ld/%s", (long)pid, name);
    ssize_t got = fd >= 0 ? read(fd, bytes, size) : -1;
    return got > 0 ? (size_t)got : 0;
}

uint64_t attachimage_word(const struct attachimage *image, uint64_t number) {
    struct word word;
    for (size_t at = 0; at + sizeof word <= image->auxv_size; at += sizeof word) {
        memcpy(&word, image->auxv + at, sizeof word);
        if (word.number == number) {
            return word.value;
        }
    }
    return 0;
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
    return procfile_status(pid, pid, "PPid", parent, sizeof parent) == 0 && atol(parent) > 0 &&
           syscall(SYS_kcmp, pid, atol(parent), IS_SAME_MEMORY, 0, 0) == 0;
}

/* LOOK_NOTHING: it has no memory, as a thread of the kernel, or what has ended; or for a moment,
 * where a thread that is not the first one calls exec. */
enum look { LOOK_WHOLE, LOOK_LATER, LOOK_NOTHING, LOOK_NEVER };

static enum look attachimage_look(pid_t pid, struct attachimage *image) {
    unsigned char again[ATTACHIMAGE_AUXV];
    char byte;
    uint64_t random;
    /* Asked before its memory is opened: what it lends no more then is its own, and not its
     * parent's which was opened just before the exec. */
    bool is_lent = shares_with_parent(pid);
    *image = (struct attachimage){.pid = pid};
    image->memory = procfile_open(O_RDWR, "/proc/%ld/mem", (long)pid);
    if (image->memory < 0) {
        return errno == ESRCH ? LOOK_NOTHING : LOOK_NEVER;
    }
    if (region_start_ticks(pid, &image->start_ticks) != 0 ||
        attachimage_read_file(pid, "maps", &byte, 1) == 0) {
        return LOOK_NOTHING;
    }
    image->auxv_size = attachimage_read_file(pid, "auxv", image->auxv, sizeof image->auxv);
    random = attachimage_word(image, AT_RANDOM);
    if (random == 0 || attachimage_read(image, random, image->random, sizeof image->random) != 0 ||
        attachimage_read_file(pid, "auxv", again, sizeof again) !=
            image->auxv_size) { /* exec writes it yet */
        return LOOK_LATER;
    }
    image->is_lent = is_lent;
    return image->is_lent ? LOOK_LATER : LOOK_WHOLE;
}

void attachimage_open(pid_t pid, struct attachimage *image) {
    const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t begun = clock_now_ns();
    for (;;) {
        enum look found = attachimage_look(pid, image);
        uint64_t passed_ms = (clock_now_ns() - begun) / 1000000;
        bool is_over = passed_ms > (found == LOOK_NOTHING ? NOTHING_MS : WAIT_MS);
        if (found == LOOK_WHOLE || (is_over && image->is_lent)) {
            return;
        }
        attachimage_close(image);
        if (found == LOOK_NEVER || is_over) {
            return;
        }
        nanosleep(&pause, NULL);
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
           attachimage_read_file(image->pid, "auxv", auxv, sizeof auxv) == image->auxv_size &&
           memcmp(auxv, image->auxv, image->auxv_size) == 0 &&
           attachtarget_memory(image->pid, place, random, sizeof random) == sizeof random &&
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
