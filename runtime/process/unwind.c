/* SPDX-License-Identifier: MIT */
/* unwind.c: choosing how stacks are walked. */
#include "runtime/process/unwind.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/othermalloc.h"
#include "runtime/entry/runtime.h"
#include "runtime/entry/thread.h"
#include "runtime/libc/libc.h"
#include "runtime/machine/machine.h"
#include "runtime/stack/libunwind.h"

/* A language whose collector finds roots by the return addresses on the stack must find them
 * unchanged: OCaml, whose programs export their table of them. */
extern const char caml_frametable[] __attribute__((weak));

static int program_reads_return_addresses(void) {
    return caml_frametable != NULL;
}

/* They unwind at each allocation, to show the program's own stacks when they find something. */
static int sanitizer_unwinds(void) {
    return __asan_init != NULL || __lsan_init != NULL;
}

static int can_patch(void) {
    if (!MACHINE_HAS_GUARDS || !libc_allows_guards() || sys_has_shadow_stack()) {
        return 0;
    }
    /* Valgrind shows stacks of its own, and no guard's table is on them. */
    return runtime.settings.unwind == UNWIND_PATCH ||
           (!program_reads_return_addresses() && !sanitizer_unwinds() && !sys_in_valgrind());
}

void unwind_choose(void) {
    switch (runtime.settings.unwind) {
    case UNWIND_AUTO:
        runtime.world.patches = can_patch();
        break;
    case UNWIND_PATCH:
        runtime.world.patches = can_patch();
        if (!runtime.world.patches) {
            log_line("MEMTRACE_UNWIND=patch: not with a hardware shadow stack, on this machine or "
                     "with this C library; stacks are verified");
        }
        break;
    case UNWIND_LIBUNWIND:
        thread_stop_self(); /* what the loader allocates is not the program's */
        runtime.world.libunwind = libunwind_load();
        thread_start_self();
        if (runtime.world.libunwind == NULL) {
            log_line("MEMTRACE_UNWIND=libunwind: libunwind.so.8 cannot be loaded; stacks are "
                     "verified");
        }
        break;
    case UNWIND_FP:
        if (!MACHINE_HAS_FP_CHAIN) {
            log_line("MEMTRACE_UNWIND=fp: on this machine frame pointers make no chain; stacks are "
                     "verified");
        }
        break;
    default:
        break;
    }
}
