/* SPDX-License-Identifier: MIT */
/* sys.c: raw system calls, and processes of ours that the program does not see. See sys.h. */
#define _GNU_SOURCE
#include "runtime/base/sys.h"

#include "runtime/base/clock.h"
#include "runtime/base/compiler.h"
#include "runtime/base/own_maps.h"
#include "runtime/base/sandbox.h"
#include "runtime/base/text.h"
#include "runtime/machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where a filter would kill the program for it, the call is refused instead. */
INLINE long sys_call(long n, long a, long b, long c, long d, long e, long f) {
    const uint64_t arguments[] = {(unsigned long)a, (unsigned long)b, (unsigned long)c,
                                  (unsigned long)d, (unsigned long)e, (unsigned long)f};
    return sandbox_allows(n, arguments) ? machine_call(n, a, b, c, d, e, f) : -EPERM;
}

#define CALL0(n)             sys_call((n), 0, 0, 0, 0, 0, 0)
#define CALL1(n, a)          sys_call((n), (long)(a), 0, 0, 0, 0, 0)
#define CALL2(n, a, b)       sys_call((n), (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL3(n, a, b, c)    sys_call((n), (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL4(n, a, b, c, d) sys_call((n), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define CALL6(n, a, b, c, d, e, f)                                                                 \
    sys_call((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

enum { SIGNALS_SIZE = sizeof(struct sys_signals) };

int sys_in_valgrind(void) {
    const uint64_t running_on_valgrind[6] = {0x1001};
    return MACHINE_ASKS_VALGRIND && machine_ask_valgrind(running_on_valgrind) != 0;
}

int sys_has_shadow_stack(void) {
    return machine_has_shadow_stack(sys_call);
}

/* Of machines with 32 bits: users had 16 bits first, and files' states are never asked for by this
 * name. */
#ifdef SYS_geteuid32
enum { FCHOWN = SYS_fchown32, GETEUID = SYS_geteuid32 };
#else
enum { FCHOWN = SYS_fchown, GETEUID = SYS_geteuid };
#endif
#ifndef SYS_newfstatat
#define SYS_newfstatat SYS_fstatat64
#endif

#ifdef SYS_mmap2
enum { MMAP = SYS_mmap2, OFFSET_UNIT = 4096 };
#else
enum { MMAP = SYS_mmap, OFFSET_UNIT = 1 };
#endif
#if MACHINE_HAS_OWN_STAT
enum { STAT = SYS_statx };
#else
enum { STAT = SYS_fstat };
#endif

static long sys_map_plain(void *address, size_t size, int protection, int flags, int fd,
                          uint64_t offset) {
    return CALL6(MMAP, address, size, protection, flags, fd, offset / OFFSET_UNIT);
}

static int sys_is_error(long result) {
    return (unsigned long)result > -4096UL;
}

static int locks_future; /* the program has called mlockall(MCL_FUTURE) */

int sys_locks_future(void) {
    return LOAD_RELAXED(&locks_future);
}

long sys_unlock(void *address, size_t size) {
    return CALL2(SYS_munlock, address, size);
}

/* A page, which is unlocked and then made larger: what comes with that is as it is (man mremap). */
static long sys_map_unlocked(void *address, size_t size, int protection, int flags, int fd,
                             uint64_t offset) {
    const int plain = flags & ~(MAP_FIXED | MAP_POPULATE);
    size_t page = sys_page_bytes();
    long first = sys_map_plain(NULL, page, protection, plain, fd, offset);
    long result;
    if (sys_is_error(first)) {
        return first;
    }
    sys_unlock((void *)first, page);
    result = CALL6(SYS_mremap, first, page, sys_page_up(size),
                   MREMAP_MAYMOVE | ((flags & MAP_FIXED) != 0 ? MREMAP_FIXED : 0), address, 0);
    if (sys_is_error(result)) {
        CALL2(SYS_munmap, first, page);
    }
    return result;
}

static long sys_map_any(void *address, size_t size, int protection, int flags, int fd,
                        uint64_t offset) {
    return UNLIKELY(sys_locks_future()) && (flags & MAP_FIXED_NOREPLACE) != MAP_FIXED_NOREPLACE
               ? sys_map_unlocked(address, size, protection, flags, fd, offset)
               : sys_map_plain(address, size, protection, flags, fd, offset);
}

long sys_lock(void *address, size_t size, int later) {
    enum { ON_FAULT = 1 };
    long result = later ? CALL3(SYS_mlock2, address, size, ON_FAULT) : -ENOSYS;
    return result == -ENOSYS ? CALL2(SYS_mlock, address, size) : result;
}

long sys_lock_all(int flags) {
    long result = CALL1(SYS_mlockall, flags);
    if (result == 0) {
        STORE_RELAXED(&locks_future, (flags & MCL_FUTURE) != 0);
    }
    return result;
}

long sys_unlock_all(void) {
    long result = CALL0(SYS_munlockall);
    if (result == 0) {
        STORE_RELAXED(&locks_future, 0);
    }
    return result;
}

long sys_extend(void *page, size_t more) {
    size_t size = sys_page_bytes();
    long result = CALL4(SYS_mremap, page, size, size + more, 0);
    return sys_is_error(result) ? result : 0;
}

long sys_open(const char *path, int flags, int mode) {
    return CALL4(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

long sys_close(long fd) {
    return fd >= 0 ? CALL1(SYS_close, fd) : -EBADF;
}

long sys_read(int fd, void *buffer, size_t size) {
    return CALL3(SYS_read, fd, buffer, size);
}

long sys_write(int fd, const void *buffer, size_t size) {
    return CALL3(SYS_write, fd, buffer, size);
}

long sys_pread(int fd, void *buffer, size_t size, uint64_t offset) {
    return MACHINE_SPLITS_ARGUMENTS ? CALL6(SYS_pread64, fd, buffer, size, 0, offset, offset >> 32)
                                    : CALL4(SYS_pread64, fd, buffer, size, offset);
}

long sys_pwrite_all(int fd, const void *buffer, size_t size, uint64_t offset) {
    const char *at = buffer;
    while (size != 0) {
        long written = MACHINE_SPLITS_ARGUMENTS
                           ? CALL6(SYS_pwrite64, fd, at, size, 0, offset, offset >> 32)
                           : CALL4(SYS_pwrite64, fd, at, size, offset);
        if (written <= 0 && written != -EINTR) {
            return written < 0 ? written : -EIO;
        }
        if (written > 0) {
            at += written;
            offset += (uint64_t)written;
            size -= (size_t)written;
        }
    }
    return 0;
}

#if MACHINE_HAS_OWN_STAT
/* What the runtime asks for, in the C library's form. */
static long by_statx(int fd, const char *path, int flags, struct stat *out) {
    struct statx found;
    long result = CALL6(SYS_statx, fd, path, flags, STATX_BASIC_STATS, &found, 0);
    if (result == 0) {
        *out = (struct stat){.st_dev = makedev(found.stx_dev_major, found.stx_dev_minor),
                             .st_ino = found.stx_ino,
                             .st_mode = found.stx_mode,
                             .st_nlink = found.stx_nlink,
                             .st_uid = found.stx_uid,
                             .st_gid = found.stx_gid,
                             .st_size = (off_t)found.stx_size,
                             .st_blocks = (blkcnt_t)found.stx_blocks,
                             .st_mtim = {.tv_sec = (time_t)found.stx_mtime.tv_sec,
                                         .tv_nsec = (long)found.stx_mtime.tv_nsec}};
    }
    return result;
}
#else
#define by_statx(fd, path, flags, out) (-ENOSYS)
#endif

long sys_fstat(int fd, struct stat *out) {
    return MACHINE_HAS_OWN_STAT ? by_statx(fd, "", AT_EMPTY_PATH, out) : CALL2(SYS_fstat, fd, out);
}

long sys_lstat(const char *path, struct stat *out) {
    return MACHINE_HAS_OWN_STAT ? by_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, out)
                                : CALL4(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

long sys_fchown(int fd, uint32_t uid, uint32_t gid) {
    return CALL3(FCHOWN, fd, uid, gid);
}

long sys_mkdir(const char *path, int mode) {
    return CALL3(SYS_mkdirat, AT_FDCWD, path, mode);
}

long sys_unlink(const char *path) {
    return CALL3(SYS_unlinkat, AT_FDCWD, path, 0);
}

long sys_rmdir(const char *path) {
    return CALL3(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

long sys_rename(const char *from, const char *to) {
    return CALL6(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0, 0);
}

/* Some file systems and filters know no flags. */
long sys_rename_new(const char *from, const char *to) {
    enum { NO_REPLACE = 1 };
    long result = CALL6(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, NO_REPLACE, 0);
    if (result == 0 || result == -EEXIST) {
        return result;
    }
    return sys_access(to, F_OK) == 0 ? -EEXIST : sys_rename(from, to);
}

long sys_readlink(const char *path, char *buffer, size_t size) {
    return CALL4(SYS_readlinkat, AT_FDCWD, path, buffer, size);
}

long sys_getcwd(char *buffer, size_t size) {
    return CALL2(SYS_getcwd, buffer, size);
}

long sys_access(const char *path, int mode) {
    return CALL3(SYS_faccessat, AT_FDCWD, path, mode);
}

long sys_dup_high(int fd, int lowest) {
    return CALL3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest);
}

long sys_keep_on_exec(int fd) {
    return CALL3(SYS_fcntl, fd, F_SETFD, 0);
}

long sys_allocate(int fd, uint64_t offset, uint64_t size) {
    return MACHINE_SPLITS_ARGUMENTS
               ? CALL6(SYS_fallocate, fd, 0, offset, offset >> 32, size, size >> 32)
               : CALL4(SYS_fallocate, fd, 0, offset, size);
}

/* All calls of this file, with arguments that say what kind of call it is. */
int sys_filters_let_start(void) {
    enum { PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, SHARED = MAP_SHARED | MAP_FIXED };
    static const struct {
        int number;
        unsigned argument[5];
    } calls[] = {
        {SYS_openat, {AT_FDCWD, 1, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600}},
        {SYS_openat, {AT_FDCWD, 1, O_RDONLY | O_CLOEXEC}},
        {SYS_close, {3}},
        {SYS_read, {3, 1, 1}},
        {SYS_write, {2, 1, 1}},
        {SYS_pread64, {3, 1, 1}},
        {SYS_pwrite64, {3, 1, 1}},
        {STAT, {3, 1}},
        {SYS_newfstatat, {AT_FDCWD, 1, 1, AT_SYMLINK_NOFOLLOW}},
        {SYS_unlinkat, {AT_FDCWD, 1}},
        {SYS_renameat2, {AT_FDCWD, 1, AT_FDCWD, 1}},
        {SYS_mkdirat, {AT_FDCWD, 1}},
        {SYS_readlinkat, {AT_FDCWD, 1, 1, 1}},
        {SYS_getcwd, {1, 1}},
        {SYS_faccessat, {AT_FDCWD, 1}},
        {SYS_fcntl, {3, F_DUPFD_CLOEXEC, 700}},
        {SYS_fallocate, {3, 0, 0, 1}},
        {SYS_prlimit64, {0, RLIMIT_AS, 0, 1}},
        {SYS_sigaltstack, {0, 1}},
        {SYS_getpid, {0}},
        {SYS_getppid, {0}},
        {SYS_gettid, {0}},
        {GETEUID, {0}},
        {SYS_kill, {1, 0}},
        {SYS_prctl, {PR_GET_NAME, 1}},
        {SYS_getdents64, {3, 1, 1}},
        {MMAP, {0, 1, PROT_NONE, PRIVATE, ~0U}},
        {MMAP, {0, 1, PROT_READ | PROT_WRITE, PRIVATE, ~0U}},
        {MMAP, {1, 1, PROT_READ | PROT_WRITE, SHARED, 3}},
        {SYS_munmap, {1, 1}},
        {SYS_mremap, {1, 1, 1, MREMAP_MAYMOVE}},
        {SYS_mprotect, {1, 1, PROT_READ}},
        {SYS_mincore, {1, 1, 1}},
        {SYS_madvise, {1, 1, MADV_DONTDUMP}},
        {SYS_madvise, {1, 1, MADV_WIPEONFORK}},
        {SYS_madvise, {1, 1, MADV_DONTNEED}},
        {SYS_rt_sigprocmask, {SIG_SETMASK, 1, 1, SIGNALS_SIZE}},
        {SYS_rt_sigpending, {1, SIGNALS_SIZE}},
        {SYS_rt_sigtimedwait, {1, 0, 1, SIGNALS_SIZE}},
        {SYS_clock_getres, {CLOCK_MONOTONIC_COARSE, 1}},
        {SYS_sched_yield, {0}},
        {SYS_nanosleep, {1, 0}},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        uint64_t arguments[6] = {0};
        for (int j = 0; j < 5; j++) {
            arguments[j] = calls[i].argument[j];
        }
        if (!sandbox_allows(calls[i].number, arguments)) {
            return 0;
        }
    }
    return 1;
}

uint64_t sys_limit(int resource) {
    struct {
        uint64_t now, most;
    } value;
    return CALL4(SYS_prlimit64, 0, resource, 0, &value) == 0 ? value.now : UINT64_MAX;
}

uint64_t sys_shared_bytes(int id) {
    enum { NEW_LAYOUT = sizeof(long) == 4 ? 0x100 : 0 }; /* IPC_64 */
    union {
        struct shmid_ds segment;
        char room[256]; /* for a kernel's that is longer */
    } state;
    long result = CALL3(SYS_shmctl, id, IPC_STAT | NEW_LAYOUT, &state);
    return result == 0 ? state.segment.shm_segsz : 0;
}

void sys_alternate_stack(uintptr_t *low, uintptr_t *high) {
    stack_t stack = {0};
    int known = CALL2(SYS_sigaltstack, 0, &stack) == 0 && (stack.ss_flags & SS_DISABLE) == 0;
    *low = known ? (uintptr_t)stack.ss_sp : 0;
    *high = known ? *low + stack.ss_size : 0;
}

/* Where a filter denies the call. */
static COLD uint32_t sys_pid_by_proc(void) {
    char text[16];
    const char *at = text;
    long length = sys_readlink("/proc/self", text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    return (uint32_t)text_read_number(&at);
}

uint32_t sys_getpid(void) {
    long pid = CALL0(SYS_getpid);
    return LIKELY(pid > 0) ? (uint32_t)pid : sys_pid_by_proc();
}

uint32_t sys_getppid(void) {
    return (uint32_t)CALL0(SYS_getppid);
}

uint32_t sys_gettid(void) {
    return (uint32_t)CALL0(SYS_gettid);
}

uint32_t sys_getuid(void) {
    return (uint32_t)CALL0(GETEUID);
}

int sys_pid_alive(uint32_t pid) {
    return pid != 0 && CALL2(SYS_kill, pid, 0) != -ESRCH;
}

int sys_may_signal(uint32_t pid) {
    return pid != 0 && CALL2(SYS_kill, pid, 0) == 0;
}

void sys_thread_name(char name[16]) {
    name[0] = '\0';
    CALL2(SYS_prctl, PR_GET_NAME, name);
}

int sys_thread_time_ns(uint32_t tid, uint64_t *time_ns) {
    enum { PER_THREAD = 4, SCHEDULED = 2 }; /* what the kernel makes of a clock's lowest bits */
    int clock = (int)(~tid << 3 | PER_THREAD | SCHEDULED);
    struct timespec time;
    if (sys_is_error(CALL2(SYS_clock_gettime, clock, &time))) {
        return -1;
    }
    *time_ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    return 0;
}

long sys_list(int fd, void *buffer, size_t size) {
    return CALL3(SYS_getdents64, fd, buffer, size);
}

/* Memory of the process's own, of which the kernel commits only what is touched. */
enum { OWN_MEMORY = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

static void *sys_map_own(size_t size, int protection) {
    long result = sys_map_any(NULL, size, protection, OWN_MEMORY, -1, 0);
    if (sys_is_error(result)) {
        return NULL;
    }
    own_maps_add((void *)result, size);
    return (void *)result;
}

void *sys_map(size_t size) {
    return sys_map_own(size, PROT_READ | PROT_WRITE);
}

void *sys_map_readable(size_t size) {
    return sys_map_own(size, PROT_READ);
}

long sys_mincore(const void *address, size_t size, unsigned char *out) {
    return CALL3(SYS_mincore, address, size, out);
}

/* gdb's generate-core-file would write all of it, as zeros. */
static void sys_leave_out_of_dumps(void *address, size_t size) {
    CALL3(SYS_madvise, address, size, MADV_DONTDUMP);
}

void *sys_reserve(size_t size) {
    long result = sys_map_any(NULL, size, PROT_NONE, OWN_MEMORY, -1, 0);
    if (sys_is_error(result)) {
        return NULL;
    }
    sys_leave_out_of_dumps((void *)result, size);
    return (void *)result;
}

long sys_map_file_at(void *address, size_t size, int fd, uint64_t offset, enum sys_pages pages) {
    int flags = MAP_SHARED | MAP_FIXED | (pages == SYS_PAGES_NOW ? MAP_POPULATE : 0);
    long result = sys_map_any(address, size, PROT_READ | PROT_WRITE, flags, fd, offset);
    return sys_is_error(result) ? result : 0;
}

long sys_map_at(void *address, size_t size) {
    long result = sys_map_any(address, size, PROT_READ | PROT_WRITE, OWN_MEMORY | MAP_FIXED, -1, 0);
    return sys_is_error(result) ? result : 0;
}

static long sys_map_where_free(void *address, size_t size, int protection) {
    long result = sys_map_any(address, size, protection, OWN_MEMORY | MAP_FIXED_NOREPLACE, -1, 0);
    if (!sys_is_error(result) && (void *)result != address) { /* a kernel before 4.17 */
        CALL2(SYS_munmap, result, size);
        return -EEXIST;
    }
    return sys_is_error(result) ? result : 0;
}

long sys_map_free(void *address, size_t size) {
    return sys_map_where_free(address, size, PROT_READ | PROT_WRITE);
}

long sys_reserve_free(void *address, size_t size) {
    long result = sys_map_where_free(address, size, PROT_NONE);
    if (result == 0) {
        sys_leave_out_of_dumps(address, size);
    }
    return result;
}

void *sys_map_file(size_t size, int fd, uint64_t offset) {
    long result = sys_map_any(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    return sys_is_error(result) ? NULL : (void *)result;
}

void *sys_map_again(void *address, size_t size) {
    /* Of an old size of 0 (man mremap): the mapping stays, and there is another. */
    long result = CALL4(SYS_mremap, address, 0, size, MREMAP_MAYMOVE);
    return sys_is_error(result) ? NULL : (void *)result;
}

void sys_unmap(void *address, size_t size) {
    own_maps_remove(address);
    CALL2(SYS_munmap, address, size);
}

long sys_protect(void *address, size_t size, int writable) {
    return CALL3(SYS_mprotect, address, size, PROT_READ | (writable ? PROT_WRITE : 0));
}

long sys_protect_code(void *address, size_t size, int writable) {
    return CALL3(SYS_mprotect, address, size, PROT_READ | PROT_EXEC | (writable ? PROT_WRITE : 0));
}

size_t sys_page_bytes(void) {
    static size_t known;
    size_t bytes = LOAD_RELAXED(&known);
    if (UNLIKELY(bytes == 0)) {
        bytes = getauxval(AT_PAGESZ);
        bytes = bytes != 0 ? bytes : 4096;
        STORE_RELAXED(&known, bytes);
    }
    return bytes;
}

void sys_discard(void *address, size_t size) {
    uintptr_t start = sys_page_up((uintptr_t)address);
    uintptr_t end = ((uintptr_t)address + size) & ~(uintptr_t)(sys_page_bytes() - 1);
    if (end > start) {
        CALL3(SYS_madvise, start, end - start, MADV_DONTNEED);
    }
}

void *sys_grow_map(void *address, size_t old_size, size_t new_size) {
    long result;
    /* Off the list before it moves: another thread may map something where it was at once. */
    own_maps_remove(address);
    result = CALL4(SYS_mremap, address, old_size, new_size, MREMAP_MAYMOVE);
    if (sys_is_error(result)) {
        own_maps_add(address, old_size);
        return NULL;
    }
    own_maps_add((void *)result, new_size);
    return (void *)result;
}

long sys_wipe_on_fork(void *address, size_t size) {
    return CALL3(SYS_madvise, address, size, MADV_WIPEONFORK);
}

void sys_no_huge_pages(void *address, size_t size) {
    CALL3(SYS_madvise, address, size, MADV_NOHUGEPAGE);
}

int sys_readable(const void *address) {
    /* Both copy from user memory before they do anything else: with a wrong first argument they
     * change nothing and answer EFAULT for memory that cannot be read, else EINVAL (man
     * sigprocmask, sigaction; kernel/signal.c). NULL means nothing there, and is not looked at. Any
     * other answer is a filter's, which seldom denies both. */
    enum { NO_SUCH = 12345, ACTION_SIZE = 32 }; /* at most; none crosses a page */
    uintptr_t word = (uintptr_t)address & ~(uintptr_t)(SIGNALS_SIZE - 1);
    uintptr_t action = (uintptr_t)address & ~(uintptr_t)(ACTION_SIZE - 1);
    long result = word != 0 ? CALL4(SYS_rt_sigprocmask, NO_SUCH, word, 0, SIGNALS_SIZE) : -EFAULT;
    if (UNLIKELY(result != -EINVAL && result != -EFAULT) && action != 0) {
        result = CALL4(SYS_rt_sigaction, NO_SUCH, action, 0, SIGNALS_SIZE);
    }
    return result == -EINVAL;
}

int sys_clock_call(int clock, struct vdso_time *now) {
    *now = (struct vdso_time){0};
    return (int)CALL2(SYS_clock_gettime, clock, now);
}

uint64_t sys_clock_step_ns(int clock) {
    long step[2];
    return CALL2(SYS_clock_getres, clock, step) == 0 && step[0] == 0 ? (uint64_t)step[1]
                                                                     : UINT64_MAX;
}

static uint64_t filtered_ns; /* CLOCK_MONOTONIC when the last filter came */

/* (Seconds of 32 bits end in 2038.) Of a clock that a filter denies it is the time of that filter.
 */
static uint64_t sys_read_clock(int clock) {
    struct vdso_time now;
#ifdef SYS_clock_gettime64
    int64_t whole[2];
    if (clock == CLOCK_REALTIME && CALL2(SYS_clock_gettime64, clock, whole) == 0) {
        return (uint64_t)whole[0] * 1000000000u + (uint32_t)whole[1];
    }
#endif
    return vdso_clock(clock, &now) == 0 ? (uint64_t)now.s * 1000000000u + (uint64_t)now.ns
                                        : LOAD_RELAXED(&filtered_ns);
}

long sys_set_seccomp(unsigned operation, unsigned flags, const void *argument) {
    STORE_RELAXED(&filtered_ns, sys_read_clock(CLOCK_MONOTONIC));
    return machine_call(SYS_seccomp, (long)operation, (long)flags, (long)argument, 0, 0, 0);
}

/* Coarse clocks need no time stamps, which a strict filter takes away, and are as late as the last
 * timer interrupt: not later than what was told before. */
uint64_t sys_clock_ns(int clock) {
    int is_real = clock == CLOCK_REALTIME;
    uint64_t least_ns = 0;
    uint64_t now_ns;
    if (UNLIKELY(sandbox_filters != 0) && sandbox_is_strict()) {
        least_ns = is_real ? 0 : LOAD_RELAXED(&filtered_ns);
        clock = is_real ? CLOCK_REALTIME_COARSE : CLOCK_MONOTONIC_COARSE;
    }
    now_ns = sys_read_clock(clock);
    return now_ns > least_ns ? now_ns : least_ns;
}

void sys_sleep_ns(uint64_t ns) {
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u)};
    CALL2(SYS_nanosleep, &time, NULL);
}

int sys_take(struct trylock *lock) {
    enum { SPINS = 100, YIELDS = 10000 };
    for (int tries = 0; tries < SPINS + YIELDS; tries++) {
        if (trylock_take(lock)) {
            return 1;
        }
        if (tries >= SPINS) {
            CALL0(SYS_sched_yield);
        }
    }
    return 0;
}

struct sys_signals sys_block_signals(void) {
    struct sys_signals all;
    struct sys_signals old = {{0}};
    memset(&all, 0xff, sizeof all);
    CALL4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, SIGNALS_SIZE);
    return old;
}

struct sys_signals sys_block_signal(int signal) {
    struct sys_signals one = {{0}};
    struct sys_signals old = {{0}};
    one.word[0] = UINT64_C(1) << (signal - 1);
    CALL4(SYS_rt_sigprocmask, SIG_BLOCK, &one, &old, SIGNALS_SIZE);
    return old;
}

void sys_restore_signals(struct sys_signals mask) {
    CALL4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, SIGNALS_SIZE);
}

/* (Both are in the first word.) */
static const struct sys_signals write_signals = {
    {UINT64_C(1) << (SIGPIPE - 1) | UINT64_C(1) << (SIGXFSZ - 1)}};

void sys_quiet_begin(struct sys_quiet *quiet) {
    *quiet = (struct sys_quiet){{{0}}};
    CALL4(SYS_rt_sigprocmask, SIG_BLOCK, &write_signals, &quiet->mask, SIGNALS_SIZE);
    CALL2(SYS_rt_sigpending, &quiet->pending, SIGNALS_SIZE);
}

void sys_quiet_end(const struct sys_quiet *quiet) {
    struct sys_signals ours = {{write_signals.word[0] & ~quiet->pending.word[0]}};
    struct timespec at_once = {0};
    /* A write signals its own thread, and what is pending for the thread is taken first. */
    while (CALL4(SYS_rt_sigtimedwait, &ours, 0, &at_once, SIGNALS_SIZE) > 0) {
    }
    sys_restore_signals(quiet->mask);
}

long sys_wait(pid_t child, int *status) {
    long result;
    do {
        result = machine_call(SYS_wait4, child, (long)status, 0, 0, 0, 0);
    } while (result == -EINTR);
    return result < 0 ? result : 0;
}

void sys_kill_child(pid_t child) {
    machine_call(SYS_kill, child, SIGKILL, 0, 0, 0, 0);
}

long sys_pipe(int ends[2]) {
    return CALL2(SYS_pipe2, ends, O_CLOEXEC);
}

/* --- processes that the program does not see -------------------------------------------------- */

static void sys_by_default(int signal) {
    struct { /* their order differs from machine to machine: all of them are 0 */
        void *handler;
        unsigned long flags;
        void *restorer;
        struct sys_signals mask;
    } action = {0};
    CALL4(SYS_rt_sigaction, signal, &action, 0, SIGNALS_SIZE);
}

/* In the grandchild: everything but stderr goes, and the program takes over. */
static void sys_become(const char *path, char *const argv[], char *const environment[]) {
    const struct sys_signals none = {{0}};
    long null = sys_open("/dev/null", O_RDWR, 0);
    CALL0(SYS_setsid);
    CALL3(SYS_dup3, null, 0, 0);
    CALL3(SYS_dup3, null, 1, 0);
    if (!log_has_stderr()) {
        CALL3(SYS_dup3, null, 2, 0);
    }
    if (CALL3(SYS_close_range, 3, ~0U, 0) < 0) {
        for (int fd = 3; fd < 1024; fd++) {
            sys_close(fd);
        }
    }
    for (int signal = 1; signal < NSIG; signal++) {
        sys_by_default(signal);
    }
    CALL4(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, SIGNALS_SIZE);
    CALL3(SYS_execve, path, argv, environment);
}

/* A plain fork (no CLONE_VM): the child works on copies. Exit signal 0: the program's SIGCHLD and
 * wait() never see it; __WALL would. An emulator of user space may know only forks with SIGCHLD
 * (qemu does): then *signal is that. */
static long sys_fork_unseen(int *signal) {
    long child = sys_call(SYS_clone, 0, 0, 0, 0, 0, 0);
    *signal = child == -EINVAL ? SIGCHLD : 0;
    return *signal != 0 ? sys_call(SYS_clone, *signal, 0, 0, 0, 0, 0) : child;
}

/* How the child ended, as wait tells; -1: there is none. */
static int sys_await_child(long child) {
    int status = -1;
    while (child > 0 && CALL4(SYS_wait4, child, &status, __WALL, 0) == -EINTR) {
    }
    return status;
}

/* By a grandchild: exec gives a process the exit signal SIGCHLD (the kernel's fs/exec.c,
 * de_thread()), so its parent must not be the program. How the child in between ended, as wait
 * tells; with the grandchild's status, if it waits for that. Or a negative errno: no fork. */
static long sys_run_apart(const char *path, char *const argv[], char *const environment[],
                          int waits) {
    struct sys_signals mask = sys_block_signals();
    struct sys_signals pending = {{0}};
    const struct timespec at_once = {0};
    int signal;
    int status;
    CALL2(SYS_rt_sigpending, &pending, SIGNALS_SIZE);
    long child = sys_fork_unseen(&signal);
    if (child == 0) {
        long grandchild;
        sys_by_default(SIGCHLD); /* where it is ignored nothing is left to wait for */
        grandchild = sys_fork_unseen(&signal);
        if (grandchild == 0) {
            sys_become(path, argv, environment);
            CALL1(SYS_exit_group, 127);
        }
        status = waits ? sys_await_child(grandchild) : 0;
        CALL1(SYS_exit_group, WIFEXITED(status) ? WEXITSTATUS(status) : 127);
    }
    if (child > 0) {
        /* The signal of its end is taken, unless another of that kind was there before: then the
         * program cannot tell one from two. */
        const struct sys_signals ours = {
            {signal != 0 ? UINT64_C(1) << (signal - 1) & ~pending.word[0] : 0}};
        child = sys_await_child(child);
        if (ours.word[0] != 0) {
            CALL4(SYS_rt_sigtimedwait, &ours, 0, &at_once, SIGNALS_SIZE);
        }
    }
    sys_restore_signals(mask);
    return child;
}

int sys_run(const char *path, char *const argv[], char *const environment[]) {
    long status = sys_run_apart(path, argv, environment, 1);
    return status >= 0 && WIFEXITED((int)status) ? WEXITSTATUS((int)status) : -1;
}

long sys_spawn_detached(const char *path, char *const argv[], char *const environment[]) {
    long status = sys_run_apart(path, argv, environment, 0);
    return status < 0 ? status : 0;
}

long sys_copy_process(const char *name, uint64_t seconds) {
    struct sys_signals mask = sys_block_signals();
    int signal;
    long child = sys_fork_unseen(&signal);
    if (child == 0) {
        const struct timespec time = {.tv_sec = (time_t)seconds};
        CALL2(SYS_prctl, PR_SET_NAME, name);
        CALL3(SYS_close_range, 0, ~0U, 0);
        CALL2(SYS_nanosleep, &time, 0);
        CALL1(SYS_exit_group, 0);
    }
    sys_restore_signals(mask);
    sys_await_child(child);
    return child < 0 ? child : 0;
}
