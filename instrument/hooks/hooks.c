/* SPDX-License-Identifier: MIT */
/*
 * hooks.c: the functions that -finstrument-functions calls. MODE hooks also keeps frame pointers,
 * so the function's return slot is known by the frame pointer that it saved for us. Where
 * frame pointers do not lead there, nothing is noted: the walk goes by unwind tables alone.
 */
#include "runtime/base/compiler.h"
#include "runtime/entry/thread.h"
#include "runtime/machine/machine.h"

PUBLIC void __cyg_profile_func_enter(void *function, void *call_site);
PUBLIC void __cyg_profile_func_exit(void *function, void *call_site);

/* The return slot of our caller, by its frame pointer, which our own frame saved. */
#define CALLER_RETURN_SLOT() machine_fp_slot(machine_frame_record(MACHINE_FRAME())[0])

PUBLIC void __cyg_profile_func_enter(void *function, void *call_site) {
    struct shadow_stack *shadow = thread_shadow;
    (void)function;
    (void)call_site;
    if (!MACHINE_HAS_FP_CHAIN) {
        return;
    }
    if (UNLIKELY(shadow == NULL)) {
        shadow = thread_shadow_slow();
        if (shadow == NULL) {
            return;
        }
    }
    shadow_push(shadow, CALLER_RETURN_SLOT());
}

PUBLIC void __cyg_profile_func_exit(void *function, void *call_site) {
    struct shadow_stack *shadow = thread_shadow;
    (void)function;
    (void)call_site;
    if (LIKELY(MACHINE_HAS_FP_CHAIN && shadow != NULL)) {
        shadow_pop(shadow, CALLER_RETURN_SLOT());
    }
}
