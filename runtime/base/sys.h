/* SPDX-License-Identifier: MIT */
/*
 * sys.h: the whole contract with the kernel. Raw system calls: they never touch errno, are no
 * cancellation points, cannot be interposed, and work in handlers and forked children. Each returns
 * what the kernel returns: a negative errno on failure.
 */
#ifndef RUNTIME_BASE_SYS_H
#define RUNTIME_BASE_SYS_H

#include "runtime/machine/machine.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

long sys_open(const char *path, int flags, int mode);
long sys_close(long fd); /* of sys_open(): also where that was refused */
long sys_read(int fd, void *buffer, size_t size);
long sys_write(int fd, const void *buffer, size_t size);
long sys_pread(int fd, void *buffer, size_t size, uint64_t offset);
long sys_pwrite_all(int fd, const void *buffer, size_t size, uint64_t offset);
long sys_fstat(int fd, struct stat *out);
long sys_lstat(const char *path, struct stat *out);
long sys_fchown(int fd, uint32_t uid, uint32_t gid);
long sys_mkdir(const char *path, int mode);
long sys_unlink(const char *path);
long sys_rmdir(const char *path);
long sys_rename(const char *from, const char *to);
/* -EEXIST: somebody has that name already. */
long sys_rename_new(const char *from, const char *to);
long sys_readlink(const char *path, char *buffer, size_t size);
long sys_getcwd(char *buffer, size_t size);
long sys_access(const char *path, int mode);
long sys_dup_high(int fd, int lowest); /* close-on-exec */
long sys_keep_on_exec(int fd);
long sys_allocate(int fd, uint64_t offset, uint64_t size); /* raw fallocate: no emulation */
/* What a limit is now, of those of setrlimit(); UINT64_MAX: none, or it cannot be told. */
uint64_t sys_limit(int resource);
/* Whether a file may have so many bytes: a write past them raises SIGXFSZ. */
static inline int sys_may_have_size(uint64_t size) {
    return size <= sys_limit(RLIMIT_FSIZE);
}
/* Of a segment of System V shared memory; 0: it cannot be told. */
uint64_t sys_shared_bytes(int id);
/* Whether a new program, which has the filters that this one has put on itself but does not know
 * them, could start with us in it: none of our calls would be its end. */
int sys_filters_let_start(void);
/* seccomp(2), whatever filters say of it: for the program. */
long sys_set_seccomp(unsigned operation, unsigned flags, const void *argument);
static inline void sys_stack_limit(uint64_t *limit) {
    *limit = sys_limit(RLIMIT_STACK);
}
/* The calling thread's stack for signal handlers: [low, high), empty if there is none. */
void sys_alternate_stack(uintptr_t *low, uintptr_t *high);
uint32_t sys_getpid(void); /* 0: a filter denies all that tells it */
uint32_t sys_getppid(void);
uint32_t sys_gettid(void);
uint32_t sys_getuid(void);
int sys_pid_alive(uint32_t pid);
int sys_may_signal(uint32_t pid);    /* it is alive, and one of our own user */
void sys_thread_name(char name[16]); /* of the calling thread */
/* Processor time of a thread of this process. 0, or -1: it has ended. */
int sys_thread_time_ns(uint32_t tid, uint64_t *time_ns);
/* Entries of an open folder, as the kernel writes them. */
struct sys_entry {
    uint64_t inode;
    int64_t offset;
    uint16_t size_bytes; /* to the next one */
    uint8_t type;
    char name[];
};
long sys_list(int fd, void *buffer, size_t size);

/* Private zeroed memory, or NULL. The kernel commits pages as they are touched. */
void *sys_map(size_t size);
/* The same, to be read only until sys_protect() says otherwise. */
void *sys_map_readable(size_t size);
/* A byte a page, whose lowest bit says that the page is in memory. */
long sys_mincore(const void *address, size_t size, unsigned char *out);
/* Address space without access, to be opened piece by piece. NULL on failure. */
void *sys_reserve(size_t size);
/* `size` bytes of a file, shared, at exactly `address` (inside a reservation of ours). To be
 * written at once: pages are made; else a hole in the file stays one until it is touched. */
enum sys_pages { SYS_PAGES_NOW, SYS_PAGES_LATER };
long sys_map_file_at(void *address, size_t size, int fd, uint64_t offset, enum sys_pages pages);
/* Private zeroed memory at exactly `address` (inside a reservation of ours). 0 or an errno. */
long sys_map_at(void *address, size_t size);
/* The same where nothing is mapped yet. 0 or an errno. */
long sys_map_free(void *address, size_t size);
/* Address space without access, exactly there, where nothing is mapped yet. 0 or an errno. */
long sys_reserve_free(void *address, size_t size);
/* Part of a file, shared, anywhere; NULL on failure. */
void *sys_map_file(size_t size, int fd, uint64_t offset);
/* The same pages of a shared mapping once more, elsewhere; NULL on failure. */
void *sys_map_again(void *address, size_t size);
void sys_unmap(void *address, size_t size);
/* Memory that stays in memory; `later`: once it has been touched. 0 or a negative errno. */
long sys_lock(void *address, size_t size, int later);
long sys_unlock(void *address, size_t size);
/* mlockall and munlockall. What is mapped here from then on is not locked all the same. */
long sys_lock_all(int flags);
long sys_unlock_all(void);
int sys_locks_future(void);
/* Makes the mapping whose last page is `page` larger, where nothing is mapped yet, unlocked as it
 * is. 0 or a negative errno. */
long sys_extend(void *page, size_t more);
/* Whether these pages can be written; reading stays. 0 or a negative errno. */
long sys_protect(void *address, size_t size, int writable);
/* The same of pages whose code can be run. */
long sys_protect_code(void *address, size_t size, int writable);
/* Of the kernel: 4 KiB, or on some machines 16 or 64. */
size_t sys_page_bytes(void);
/* Up to whole pages of it. */
static inline uint64_t sys_page_up(uint64_t size) {
    uint64_t page = sys_page_bytes();
    return (size + page - 1) & ~(page - 1);
}
/* The whole pages inside are given back; they read as zeros. */
void sys_discard(void *address, size_t size);
void *sys_grow_map(void *address, size_t old_size, size_t new_size); /* NULL on failure */
/* A forked child finds zeros there (a vfork child shares it). 0 or a negative errno. */
long sys_wipe_on_fork(void *address, size_t size);
void sys_no_huge_pages(void *address, size_t size);
/* Whether this word can be read; asks the kernel. */
int sys_readable(const void *address);

uint64_t sys_clock_ns(int clock); /* CLOCK_MONOTONIC and friends, as clock.h has them */
/* By a call into the kernel. 0 or a negative errno. */
struct vdso_time;
int sys_clock_call(int clock, struct vdso_time *now);
/* How fine a clock is; UINT64_MAX: a second or more, or there is none. */
uint64_t sys_clock_step_ns(int clock);

int sys_in_valgrind(void); /* it runs the program */
/* Whether the hardware compares this thread's return addresses with a stack of its own. */
int sys_has_shadow_stack(void);

void sys_sleep_ns(uint64_t ns); /* a signal may end it early */

/* Tries for some milliseconds, letting others run. 1: taken; 0: not, since who holds it is the
 * thread that this handler interrupted, or has no chance to run. For what is rare and short. */
struct trylock;
int sys_take(struct trylock *lock);

/* As the kernel has a set of them. */
struct sys_signals {
    uint64_t word[MACHINE_SIGNAL_WORDS];
};

/* Blocks every signal of this thread and returns the old mask; and puts it back. */
struct sys_signals sys_block_signals(void);
struct sys_signals sys_block_signal(int signal);
void sys_restore_signals(struct sys_signals mask);

/* Around writes of ours, which may meet a closed pipe or the end of what a file may hold: the
 * SIGPIPE or SIGXFSZ that they raise is taken back, one that was pending before stays. */
struct sys_quiet {
    struct sys_signals mask, pending;
};
void sys_quiet_begin(struct sys_quiet *quiet);
void sys_quiet_end(const struct sys_quiet *quiet);

/* Waits for a child of the program's, for the program: whatever filters say of it, signals or not.
 * 0 or a negative errno. */
long sys_wait(pid_t child, int *status);
void sys_kill_child(pid_t child);
/* Both ends are closed on exec. */
long sys_pipe(int ends[2]);

/* A process that is nobody's child: no exit signal, forked twice. Runs path with argv and
 * environment, stdin and stdout on /dev/null, only stderr kept. 0 if the first fork worked. */
long sys_spawn_detached(const char *path, char *const argv[], char *const environment[]);

/* The same process, waited for; unseen, too. Its exit status, or -1: it was not started or did not
 * end by itself. */
int sys_run(const char *path, char *const argv[], char *const environment[]);

/* A copy of the process as it is now, of this name, that does nothing: not seen by the program's
 * wait(), without its descriptors; over when it is killed or after so long. Waits for that. 0, or a
 * negative errno: there is no copy. */
long sys_copy_process(const char *name, uint64_t seconds);

#endif
