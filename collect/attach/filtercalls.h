/* SPDX-License-Identifier: MIT */
/*
 * filtercalls.h: the system calls that are made in a program on account of attaching to it before
 * its filters are known to the runtime, which asks them by itself from then on, or which it cannot
 * do without; and those that the C library makes for either. tests/attach/filtered.c allows these
 * alone, so that one that is missing here ends it.
 *
 * Called by attachfilters.c. What a machine has besides: attachmachine_calls.
 */
#ifndef COLLECT_ATTACH_FILTERCALLS_H
#define COLLECT_ATTACH_FILTERCALLS_H

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum filtercall_need {
    FILTERCALL_DONE, /* it must be done */
    FILTERCALL_ENDS  /* it may be refused, but must not end the program */
};

struct filtercall {
    const char *name;
    long number;
    unsigned uses; /* enum attachfilters_use */
    enum filtercall_need need;
    uint64_t arguments[6]; /* as far as they are the same each time */
};

/* What pthread_create asks for. */
#define FILTERCALL_THREAD                                                                          \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD |            \
     CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)
#define FILTERCALL_PRIVATE (MAP_PRIVATE | MAP_ANONYMOUS)
#define FILTERCALL_NO_FD   ((uint64_t)-1)
#define FILTERCALL_HERE    ((uint64_t)AT_FDCWD)

/* Which of them, by enum attachfilters_use. */
enum { ENTER = 1, LOAD = 2, FROM_FILE = 4, WRITE = 8, FILTERCALL_ENTER = ENTER };

/* The C library makes the older call where there is one. */
#ifdef SYS_readlink
#define FILTERCALL_LINK ENDS(LOAD, readlink, 4096, 4096, 4096)
#else
#define FILTERCALL_LINK ENDS(LOAD, readlinkat, FILTERCALL_HERE, 4096, 4096, 4096)
#endif

/* clang-format off */
#define DONE(uses, name, ...) {#name, SYS_##name, uses, FILTERCALL_DONE, {__VA_ARGS__}}
#define ENDS(uses, name, ...) {#name, SYS_##name, uses, FILTERCALL_ENDS, {__VA_ARGS__}}
/* clang-format on */

static const struct filtercall filtercalls[] = {
    /* stub_x86_64.S, stub_aarch64.S */
    DONE(ENTER, rt_sigprocmask, SIG_BLOCK, 4096, 4096, 8),
    DONE(ENTER, rt_sigprocmask, SIG_SETMASK, 4096, 0, 8),
    DONE(ENTER, mmap, 4096, 8192, PROT_READ | PROT_WRITE, FILTERCALL_PRIVATE | MAP_FIXED_NOREPLACE,
         FILTERCALL_NO_FD),
    DONE(ENTER, prctl, PR_SET_NAME, 4096),
    ENDS(ENTER, nanosleep, 4096),
    ENDS(ENTER, munmap, 4096, 8192),
    DONE(FROM_FILE, memfd_create, 4096, MFD_CLOEXEC | MFD_ALLOW_SEALING),
    ENDS(FROM_FILE, memfd_create, 4096, 0x13),
    ENDS(FROM_FILE, close, 4),
    /* pthread_create, and the thread's life */
    DONE(ENTER, mmap, 0, 8392704, PROT_NONE, FILTERCALL_PRIVATE | MAP_STACK, FILTERCALL_NO_FD),
    DONE(ENTER, mprotect, 4096, 8388608, PROT_READ | PROT_WRITE),
    ENDS(ENTER, clone3, 4096, 88),
    DONE(ENTER, clone, FILTERCALL_THREAD, 4096, 4096, 4096, 4096),
    ENDS(ENTER, set_robust_list, 4096, 24),
    ENDS(ENTER, rseq, 4096, 32, 0, 0x53053053),
    ENDS(ENTER, futex, 4096, 128, 2),
    ENDS(ENTER, futex, 4096, 129, 1),
    ENDS(ENTER, madvise, 4096, 8192, MADV_DONTNEED),
    DONE(ENTER, exit, 0),
    /* malloc of a thread that is new, in the C library and in dlopen */
    ENDS(LOAD, mmap, 0, 134217728, PROT_NONE, FILTERCALL_PRIVATE | MAP_NORESERVE, FILTERCALL_NO_FD),
    ENDS(LOAD, brk, 0),
    ENDS(LOAD, sched_getaffinity, 0, 8, 4096),
    /* dlopen */
    DONE(LOAD, openat, FILTERCALL_HERE, 4096, O_RDONLY | O_CLOEXEC),
    DONE(LOAD, read, 4, 4096, 832),
    ENDS(LOAD, pread64, 4, 4096, 832),
    DONE(LOAD, fstat, 4, 4096),
    DONE(LOAD, newfstatat, 4, 4096, 4096, AT_EMPTY_PATH),
    DONE(LOAD, mmap, 0, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_DENYWRITE, 4),
    DONE(LOAD, mmap, 4096, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE, 4),
    DONE(LOAD, mmap, 4096, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE,
         4),
    DONE(LOAD, mprotect, 4096, 4096, PROT_READ),
    DONE(LOAD, close, 4),
    ENDS(LOAD, getcwd, 4096, 4096),
    FILTERCALL_LINK,
    /* the runtime: its region */
    DONE(LOAD, prctl, PR_GET_NAME, 4096),
    DONE(LOAD, openat, FILTERCALL_HERE, 4096, O_RDWR | O_CREAT | O_CLOEXEC, 0600),
    DONE(LOAD, fallocate, 4, 0, 0, 65536),
    DONE(LOAD, mmap, 4096, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, 4),
    DONE(LOAD, mmap, 0, 1 << 30, PROT_NONE, FILTERCALL_PRIVATE | MAP_NORESERVE, FILTERCALL_NO_FD),
    DONE(LOAD, mkdirat, FILTERCALL_HERE, 4096, 0700),
    DONE(LOAD, newfstatat, FILTERCALL_HERE, 4096, 4096, AT_SYMLINK_NOFOLLOW),
    DONE(LOAD, fcntl, 4, F_DUPFD_CLOEXEC, 1000),
    DONE(LOAD, madvise, 4096, 4096, MADV_WIPEONFORK),
    DONE(LOAD, getpid, 0),
    DONE(LOAD, geteuid, 0),
    DONE(LOAD, gettid, 0),
    /* and its profile */
    DONE(WRITE, openat, FILTERCALL_HERE, 4096, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
         0644),
    DONE(WRITE, pread64, 4, 4096, 65536),
    DONE(WRITE, write, 4, 4096, 65536),
    DONE(WRITE, renameat2, FILTERCALL_HERE, 4096, FILTERCALL_HERE, 4096, 0),
    DONE(WRITE, unlinkat, FILTERCALL_HERE, 4096, 0),
};
#undef DONE
#undef ENDS
#undef FILTERCALL_LINK
enum { FILTERCALLS = sizeof filtercalls / sizeof filtercalls[0] };

/* What the code for this machine calls besides; one without a name at the end. */
extern const struct filtercall attachmachine_calls[];

#endif
