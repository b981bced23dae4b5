/* SPDX-License-Identifier: MIT */
/*
 * locking.h: mlockall() and munlockall() for the program, without what is the runtime's: that would
 * be brought into memory as a whole, and count where locked memory is limited (RLIMIT_MEMLOCK).
 */
#ifndef RUNTIME_BASE_LOCKING_H
#define RUNTIME_BASE_LOCKING_H

#include <stddef.h>
#include <stdint.h>

/* As the system calls: 0 or a negative errno. `region`: what of ours is not in own_maps.h. */
long locking_lock_all(int flags, const uint8_t *region, size_t region_bytes);
long locking_unlock_all(void);

#endif
