/* SPDX-License-Identifier: MIT */
/*
 * vdso.h: the kernel's clocks, straight from the kernel: from its own code in the process (the
 * vDSO, man 7 vdso), else by a system call. The C library's clock_gettime may be another's
 * (libfaketime's tells another time, takes locks and allocates), so nothing of ours calls that.
 *
 * Async-signal-safe, at any time, in any thread; errno stays.
 */
#ifndef RUNTIME_BASE_VDSO_H
#define RUNTIME_BASE_VDSO_H

/* Seconds and nanoseconds, as the kernel's words have them: not always the C library's struct
 * timespec. 0; else the kernel or a filter refuses. */
struct vdso_time {
    long s, ns;
};
int vdso_clock(int clock, struct vdso_time *now);

/* The function of this name in the vDSO whose ELF header is mapped at `vdso`; NULL: it has none. */
void *vdso_symbol(const void *vdso, const char *name);

#endif
