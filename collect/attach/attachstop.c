/* SPDX-License-Identifier: MIT */
/* attachstop.c: see attachstop.h. */
#define _GNU_SOURCE
#include "collect/attach/attachstop.h"

#include "collect/attach/attachbeside.h"
#include "collect/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    STOP_SECONDS = 2,
    FRAME_ROOM = 8 << 10,       /* of a stack that grows */
    STACK_ROOM = 48 << 10,      /* for what we put there, and pthread_create */
    STACK_LOOK = 1 << 20,       /* a deeper stack is left alone */
    SYSCALL_BYTES = 2,          /* of the instruction */
    RESTART_NO_INTERRUPT = 513, /* what the kernel notes where a call is to be started again */
    RESTART_SYSTEM = 512,
    RESTART_NO_HANDLER = 514,
    RESTART_BLOCK = 516,
};

static ssize_t read_memory(pid_t pid, uint64_t address, void *bytes, size_t size) {
    struct iovec to = {bytes, size};
    struct iovec from = {(void *)address, size}; // NOLINT(performance-no-int-to-ptr)
    return process_vm_readv(pid, &to, 1, &from, 1, 0);
}

/* --- before ----------------------------------------------------------------------------------- */

/* mov $15, %rax; syscall: the C library's. */
static const unsigned char restorer[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

static void find_restorers(struct attachsafety *safety, const struct attachmapping *code) {
    enum { MOST = sizeof safety->restorers / sizeof safety->restorers[0] };
    size_t size = code->end - code->start;
    unsigned char *bytes = malloc(size);
    const unsigned char *at = bytes;
    ssize_t length =
        bytes != NULL ? read_memory(safety->target->pid, code->start, bytes, size) : -1;
    while (length > 0 && safety->restorer_count < MOST &&
           (at = memmem(at, (size_t)(bytes + length - at), restorer, sizeof restorer)) != NULL) {
        safety->restorers[safety->restorer_count++] = code->start + (uint64_t)(at - bytes);
        at++;
    }
    free(bytes);
}

static void note_allocator(struct attachsafety *safety, const struct attachmapping *object) {
    enum { MOST = sizeof safety->allocators / sizeof safety->allocators[0] };
    if (safety->allocator_count < MOST &&
        (attachtarget_symbol(safety->target, object, "malloc") != 0 ||
         attachtarget_symbol(safety->target, object, "pthread_create") != 0)) {
        safety->allocators[safety->allocator_count++] = object->inode;
    }
}

static uint64_t inode_of(const struct attachtarget *target, const char *name) {
    const struct attachmapping *object = attachtarget_object(target, name);
    return object != NULL ? object->inode : 0;
}

/* libc, the loader and libmemtrace define malloc or belong to who does. */
static bool has_allocator(const struct attachsafety *safety, const struct attachmapping *libc) {
    for (size_t i = 0; i < safety->allocator_count; i++) {
        if ((libc == NULL || safety->allocators[i] != libc->inode) &&
            (safety->own == 0 || safety->allocators[i] != safety->own)) {
            return true;
        }
    }
    return false;
}

/* Touched now, so that no page of it has to be found while a thread waits. */
static uint64_t *make_room(void) {
    uint64_t *room = malloc(STACK_LOOK);
    if (room != NULL) {
        memset(room, 1, STACK_LOOK);
    }
    return room;
}

void attachsafety_find(const struct attachtarget *target, struct attachsafety *safety) {
    const struct attachmapping *libc = attachtarget_object(target, "libc.so.6");
    *safety = (struct attachsafety){.target = target,
                                    .loader = inode_of(target, "ld-linux"),
                                    .own = inode_of(target, "libmemtrace.so"),
                                    .stack = make_room()};
    for (size_t i = 0; i < target->count; i++) {
        const struct attachmapping *mapping = &target->mappings[i];
        if (mapping->executable && libc != NULL && mapping->inode == libc->inode) {
            find_restorers(safety, mapping);
        }
        if (mapping->offset == 0 && mapping->inode != 0) {
            note_allocator(safety, mapping);
        }
    }
    safety->has_allocator = has_allocator(safety, libc);
}

void attachsafety_free(struct attachsafety *safety) {
    free(safety->stack);
    *safety = (struct attachsafety){0};
}

size_t attachstop_threads(pid_t pid, pid_t tids[ATTACHSTOP_THREADS]) {
    char path[64];
    size_t count = 0;
    const struct dirent *entry;
    DIR *folder;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    folder = opendir(path);
    while (folder != NULL && count < ATTACHSTOP_THREADS && (entry = readdir(folder)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0])) {
            tids[count++] = (pid_t)atol(entry->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

/* --- asleep ----------------------------------------------------------------------------------- */

struct sleeping {
    int64_t number; /* of the system call; -1: none */
    uint64_t arguments[6], sp, pc;
};

/* "running", "-1 sp pc" or "number six-arguments sp pc". 0, or -1: it does not sleep in a call. */
static int read_sleeping(pid_t pid, pid_t tid, struct sleeping *sleeping) {
    char path[64];
    uint64_t *a = sleeping->arguments;
    int found = 0;
    FILE *file;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/syscall", (long)pid, (long)tid);
    file = fopen(path, "re");
    if (file != NULL) {
        found = fscanf(file,
                       "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
                       " %" SCNx64 " %" SCNx64 " %" SCNx64,
                       &sleeping->number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &sleeping->sp,
                       &sleeping->pc);
        fclose(file);
    }
    return found == 9 ? 0 : -1;
}

/* Neither the loader nor any allocator reads from what is no file. */
static bool is_no_file(pid_t pid, uint64_t fd) {
    char path[64];
    char target[64];
    ssize_t length;
    snprintf(path, sizeof path, "/proc/%ld/fd/%" PRIu64, (long)pid, fd);
    length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return strncmp(target, "pipe:", 5) == 0 || strncmp(target, "socket:", 7) == 0 ||
           strncmp(target, "anon_inode:", 11) == 0 || strncmp(target, "/dev/pts/", 9) == 0 ||
           strncmp(target, "/dev/tty", 8) == 0;
}

/* Condition variables, joins and semaphores wait so; locks do not. */
static bool waits_for_event(uint64_t operation) {
    return (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
}

static bool is_allowed(pid_t pid, const struct sleeping *sleeping, bool has_allocator) {
    switch (sleeping->number) {
    case SYS_poll:
    case SYS_ppoll:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_select:
    case SYS_pselect6:
    case SYS_accept:
    case SYS_accept4:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_pause:
        return true;
    case SYS_nanosleep: /* others wait so for their own locks */
    case SYS_clock_nanosleep:
    case SYS_restart_syscall: /* a sleep, a poll or a timed wait that went on after a stop */
        return !has_allocator;
    case SYS_futex:
        return !has_allocator && waits_for_event(sleeping->arguments[1]);
    case SYS_read:
        return is_no_file(pid, sleeping->arguments[0]);
    default:
        return false;
    }
}

/* A stop ends this call early, and to start it again is to wait the whole time again. */
static bool is_timed_anew(const struct sleeping *sleeping) {
    return (sleeping->number == SYS_epoll_wait || sleeping->number == SYS_epoll_pwait) &&
           (int32_t)sleeping->arguments[3] > 0;
}

static bool is_asleep_safely(const struct attachsafety *safety, const struct sleeping *sleeping,
                             bool may_run) {
    return is_allowed(safety->target->pid, sleeping, safety->has_allocator) &&
           (may_run || !is_timed_anew(sleeping));
}

bool attachstop_may(const struct attachsafety *safety, pid_t tid, bool may_run) {
    struct sleeping sleeping;
    char state[32];
    if (attachtarget_status(safety->target->pid, tid, "State", state, sizeof state) != 0) {
        return false;
    }
    if (state[0] == 'R') {
        return may_run;
    }
    return state[0] == 'S' && read_sleeping(safety->target->pid, tid, &sleeping) == 0 &&
           is_asleep_safely(safety, &sleeping, may_run);
}

/* --- stopped ---------------------------------------------------------------------------------- */

/* Also of one that it blocks, for which another thread or moment will do. */
static bool has_pending_signal(pid_t tid) {
    struct __ptrace_peeksiginfo_args own = {.nr = 1};
    struct __ptrace_peeksiginfo_args shared = {.flags = PTRACE_PEEKSIGINFO_SHARED, .nr = 1};
    siginfo_t info;
    return ptrace(PTRACE_PEEKSIGINFO, tid, &own, &info) != 0 ||
           ptrace(PTRACE_PEEKSIGINFO, tid, &shared, &info) != 0;
}

/* It is on the stack that its C library's record of it lies on top of, and there is room. The end
 * of what is to be looked at; 0: it is not. */
static uint64_t own_stack_end(const struct attachtarget *target,
                              const struct user_regs_struct *registers) {
    const struct attachmapping *stack = attachtarget_at(target, registers->rsp);
    uint64_t end;
    uint64_t room;
    if (stack == NULL || !stack->writable) {
        return 0;
    }
    if (strcmp(stack->path, "[stack]") == 0) {
        end = stack->end;
        room = FRAME_ROOM;
    } else if (registers->fs_base > registers->rsp && registers->fs_base < stack->end) {
        end = registers->fs_base;
        room = STACK_ROOM;
    } else {
        return 0;
    }
    return registers->rsp - stack->start >= room && end - registers->rsp <= STACK_LOOK ? end : 0;
}

/* A signal frame begins with where its handler returns to. An old one that was left behind looks
 * the same: then another moment will do. */
static bool may_handle_signal(const struct attachsafety *safety, uint64_t sp, uint64_t end) {
    size_t size = (end - sp) / sizeof(uint64_t) * sizeof(uint64_t);
    bool found = safety->stack == NULL || safety->restorer_count == 0 ||
                 read_memory(safety->target->pid, sp, safety->stack, size) != (ssize_t)size;
    for (size_t i = 0; !found && i < size / sizeof *safety->stack; i++) {
        for (size_t j = 0; j < safety->restorer_count; j++) {
            found |= safety->stack[i] == safety->restorers[j];
        }
    }
    return found;
}

/* The kernel undoes such a piece of code if its thread is moved elsewhere meanwhile. */
static bool is_in_rseq(const struct attachstop *stop) {
    struct __ptrace_rseq_configuration rseq = {0};
    uint64_t section = 0;
    if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, stop->tid, sizeof rseq, &rseq) != (long)sizeof rseq ||
        rseq.rseq_abi_pointer == 0) {
        return false;
    }
    return read_memory(stop->pid, rseq.rseq_abi_pointer + 8, &section, sizeof section) !=
               (ssize_t)sizeof section ||
           section != 0;
}

/* Code of the program's own. */
static bool runs_safely(const struct attachsafety *safety, const struct attachstop *stop) {
    const struct attachmapping *code = attachtarget_at(safety->target, stop->registers.rip);
    if (code == NULL || !code->executable || code->inode == 0 || code->inode == safety->loader) {
        return false;
    }
    for (size_t i = 0; i < safety->allocator_count; i++) {
        if (safety->allocators[i] == code->inode) {
            return false;
        }
    }
    return !is_in_rseq(stop);
}

/* Where it would go on if nothing had happened. 0, or -1: the call is over. */
static int find_restart(struct attachstop *stop) {
    const struct user_regs_struct *registers = &stop->registers;
    stop->restart_pc = registers->rip - SYSCALL_BYTES;
    stop->restart_rax = registers->orig_rax;
    switch (-(int64_t)registers->rax) {
    case RESTART_SYSTEM:
    case RESTART_NO_INTERRUPT:
    case RESTART_NO_HANDLER:
        return 0;
    case RESTART_BLOCK:
        stop->restart_rax = SYS_restart_syscall;
        return 0;
    case EINTR: /* by our stopping it: no signal is there */
        stop->is_cut_short = true;
        return 0;
    default:
        return -1;
    }
}

/* A call that was slept in is looked at once more: it may be another one by now. */
static bool slept_safely(const struct attachsafety *safety, struct attachstop *stop, bool may_run) {
    const struct user_regs_struct *registers = &stop->registers;
    const struct attachmapping *code = attachtarget_at(safety->target, registers->rip);
    struct sleeping sleeping = {
        .number = (int64_t)registers->orig_rax,
        .arguments = {registers->rdi, registers->rsi, registers->rdx, registers->r10},
        .pc = registers->rip,
        .sp = registers->rsp,
    };
    bool is_allowed = is_asleep_safely(safety, &sleeping, true);
    if (!is_allowed || find_restart(stop) != 0) {
        return false;
    }
    return code != NULL && (safety->loader == 0 || code->inode != safety->loader) &&
           (safety->own == 0 || code->inode != safety->own) &&
           (may_run || !is_timed_anew(&sleeping));
}

static void judge(const struct attachsafety *safety, struct attachstop *stop, bool may_run) {
    uint64_t end = own_stack_end(safety->target, &stop->registers);
    if (has_pending_signal(stop->tid)) {
        return;
    }
    if ((int64_t)stop->registers.orig_rax < 0) {
        stop->restart_pc = stop->registers.rip;
        stop->restart_rax = stop->registers.rax;
        stop->is_safe = may_run && runs_safely(safety, stop);
    } else {
        stop->is_safe = slept_safely(safety, stop, may_run);
    }
    stop->is_safe =
        stop->is_safe && end != 0 && !may_handle_signal(safety, stop->registers.rsp, end);
}

/* 1: it stands as we asked; 0: for another reason; -1: it is gone, or does not come. SIGCHLD, which
 * is blocked, tells that something happened. */
static int wait_for_stop(struct attachstop *stop, const sigset_t *child) {
    const struct timespec limit = {.tv_sec = STOP_SECONDS};
    for (;;) {
        int status;
        pid_t got = waitpid(stop->tid, &status, __WALL | WNOHANG);
        if (got < 0 || (got > 0 && !WIFSTOPPED(status))) {
            return -1;
        }
        if (got > 0 && status >> 16 == PTRACE_EVENT_STOP) {
            return WSTOPSIG(status) == SIGTRAP;
        }
        if (got > 0) {
            stop->signal = WSTOPSIG(status);
            return 0;
        }
        if (sigtimedwait(child, NULL, &limit) < 0 && errno != EINTR) {
            return -1;
        }
    }
}

static int stop_thread(struct attachstop *stop) {
    sigset_t child;
    sigset_t before;
    int asked = -1;
    attachbeside_come(stop->pid, stop->tid);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    stop->asked_ns = clock_now_ns();
    if (ptrace(PTRACE_SEIZE, stop->tid, NULL, NULL) == 0 &&
        ptrace(PTRACE_INTERRUPT, stop->tid, NULL, NULL) == 0) {
        asked = wait_for_stop(stop, &child);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (asked < 0) {
        attachbeside_leave();
    }
    return asked;
}

int attachstop_begin(const struct attachsafety *safety, pid_t tid, bool may_run,
                     struct attachstop *stop) {
    int asked;
    *stop = (struct attachstop){.pid = safety->target->pid, .tid = tid};
    asked = stop_thread(stop);
    if (asked < 0) {
        return -1;
    }
    if (asked == 1 && ptrace(PTRACE_GETREGS, tid, NULL, &stop->registers) == 0) {
        judge(safety, stop, may_run);
    }
    return 0;
}

int attachstop_hold(pid_t pid, pid_t tid, struct attachstop *stop) {
    int asked;
    *stop = (struct attachstop){.pid = pid, .tid = tid};
    asked = stop_thread(stop);
    if (asked == 1 && ptrace(PTRACE_GETREGS, tid, NULL, &stop->registers) == 0 &&
        (int64_t)stop->registers.orig_rax >= 0) {
        find_restart(stop);
    }
    return asked < 0 ? -1 : 0;
}

uint64_t attachstop_end(const struct attachstop *stop, bool is_led) {
    uint64_t held_ns;
    if (!is_led && stop->is_cut_short) {
        struct user_regs_struct registers = stop->registers;
        registers.rip = stop->restart_pc;
        registers.rax = stop->restart_rax;
        registers.orig_rax = UINT64_MAX;
        ptrace(PTRACE_SETREGS, stop->tid, NULL, &registers);
    }
    ptrace(PTRACE_DETACH, stop->tid, NULL, (void *)(intptr_t)stop->signal);
    held_ns = clock_now_ns() - stop->asked_ns;
    attachbeside_leave();
    return held_ns;
}
