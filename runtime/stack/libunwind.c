/* SPDX-License-Identifier: MIT */
/*
 * libunwind.c: see libunwind.h. Its interface (libunwind.h and libunwind-x86_64.h or -aarch64.h of
 * version 1.6, the same since 1.0) is declared here in its own terms, so that building needs no
 * header of it.
 */
#define _GNU_SOURCE
#include "runtime/stack/libunwind.h"

#include "runtime/base/compiler.h"
#include "runtime/libc/libc.h"
#include "runtime/machine/machine.h"

#include <dlfcn.h>
#include <ucontext.h>

struct libunwind {
    int (*getcontext)(ucontext_t *context);
    int (*init_local)(void *cursor, ucontext_t *context);
    int (*step)(void *cursor);
    int (*get_reg)(void *cursor, int number, uintptr_t *value);
    struct libc_object object;
};

#define FIND(member, name) (loaded.member = (__typeof__(loaded.member))dlsym(library, name))
#define LOCAL(name)        "_UL" MACHINE_NAME "_" name

const struct libunwind *libunwind_load(void) {
    static struct libunwind loaded;
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL ||
        (!MACHINE_NOTES_REGISTERS && FIND(getcontext, "_U" MACHINE_NAME "_getcontext") == NULL) ||
        FIND(init_local, LOCAL("init_local")) == NULL || FIND(step, LOCAL("step")) == NULL ||
        FIND(get_reg, LOCAL("get_reg")) == NULL ||
        libc_find_object((uintptr_t)loaded.step, &loaded.object) != 0) {
        dlerror(); /* what went wrong here is not the program's to read */
        return NULL;
    }
    return &loaded;
}

int libunwind_calls(const struct libunwind *libunwind, uintptr_t slot) {
    uintptr_t pc = machine_plain(*machine_frame_record(slot));
    return libunwind != NULL && pc >= libunwind->object.start && pc < libunwind->object.end;
}

/* From the outermost frame of a fiber it may come to that frame again (AArch64, 1.6). */
int libunwind_step(const struct libunwind *libunwind, struct libunwind_walk *walk) {
    struct frame before = walk->frame;
    uintptr_t pc;
    uintptr_t sp;
    if (libunwind->step(walk->cursor) <= 0 ||
        libunwind->get_reg(walk->cursor, MACHINE_LIBUNWIND_PC, &pc) != 0 ||
        libunwind->get_reg(walk->cursor, MACHINE_LIBUNWIND_SP, &sp) != 0 || pc == 0) {
        return 0;
    }
    walk->frame =
        (struct frame){.pc = pc, .slot = sp - sizeof(uintptr_t), .sp = machine_keep_sp(sp)};
    return walk->frame.pc != before.pc || walk->frame.slot != before.slot;
}

COLD int libunwind_start(const struct libunwind *libunwind, struct libunwind_walk *walk,
                         uintptr_t sp) {
    ucontext_t context;
    machine_note_registers(&context);
    if ((!MACHINE_NOTES_REGISTERS && libunwind->getcontext(&context) != 0) ||
        libunwind->init_local(walk->cursor, &context) != 0) {
        return -1;
    }
    walk->frame = (struct frame){.pc = 0};
    do {
        if (!libunwind_step(libunwind, walk)) {
            return -1;
        }
    } while (frame_sp(walk->frame.slot, walk->frame.sp) < sp);
    return frame_sp(walk->frame.slot, walk->frame.sp) == sp ? 0 : -1;
}
