/* SPDX-License-Identifier: MIT */
/* still.c: a library whose constructor stands still, inside the loader's lock; for blocked.c. */
extern void blocked_stand_still(void);

__attribute__((constructor)) static void start(void) {
    blocked_stand_still();
}
