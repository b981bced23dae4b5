/* SPDX-License-Identifier: MIT */
/* attachstop.c: see attachstop.h. */
#define _GNU_SOURCE
#include "collect/attach/attachstop.h"

#include "analyze/base/scope.h"
#include "analyze/read/procfile.h"
#include "collect/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    STOP_SECONDS = 2,
    STACK_ROOM = 48 << 10, /* for what we put there, and pthread_create */
    STACK_LOOK = 1 << 20,  /* a deeper stack is left alone */
    SETTLE_TRIES = 4,
    DEAF_TRIES = 15, /* of so many seconds */
};

/* Why a thread stands. */
enum stopped { STOPPED_GONE = -1, STOPPED_OTHERWISE, STOPPED_BY_US, STOPPED_AT_CALL };

/* --- how long --------------------------------------------------------------------------------- */

/* On a machine whose processors are all at work both sides would wait for one, each for some turns
 * of everybody else's. If this thread runs on the processor that the other one was last on, that is
 * free for it as soon as this one waits; and where we may, we come before the others when it has
 * stopped. One of 16 threads on two processors was held for 0.15 ms (median) instead of 43. Nothing
 * of the program is changed. */
enum { PROCESSOR_FIELD = 39 }; /* of stat, counted from 1 */

static cpu_set_t own_processors;
static bool has_moved;
static bool is_urgent;

/* This thread goes to where that one was last, and has the next turn there. */
static void beside_come(pid_t pid, pid_t tid) {
    const struct sched_param first = {.sched_priority = 1};
    char text[PROCFILE_STAT_BYTES];
    const char *field = procfile_stat(pid, tid, PROCESSOR_FIELD, text);
    int processor = field != NULL ? atoi(field) : -1; /* -1: not known */
    cpu_set_t set;
    has_moved = false;
    if (processor >= 0 && processor < CPU_SETSIZE &&
        sched_getaffinity(0, sizeof own_processors, &own_processors) == 0) {
        CPU_ZERO(&set);
        CPU_SET((unsigned)processor, &set);
        has_moved = sched_setaffinity(0, sizeof set, &set) == 0;
    }
    is_urgent = sched_getscheduler(0) == SCHED_OTHER &&
                sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0;
}

/* It is again as it was before. */
static void beside_leave(void) {
    const struct sched_param none = {0};
    if (is_urgent) {
        sched_setscheduler(0, SCHED_OTHER, &none);
    }
    if (has_moved) {
        sched_setaffinity(0, sizeof own_processors, &own_processors);
    }
    is_urgent = has_moved = false;
}

/* --- before ----------------------------------------------------------------------------------- */

/* libc, the loader and libmemtrace define malloc or belong to who does. */
static void note_allocator(struct attachsafety *safety, const struct attachmapping *object,
                           const struct attachmapping *libc) {
    enum { MOST = sizeof safety->allocators / sizeof safety->allocators[0] };
    if (safety->allocator_count < MOST &&
        (attachtarget_symbol(safety->target, object, "malloc") != 0 ||
         attachtarget_symbol(safety->target, object, "pthread_create") != 0)) {
        safety->allocators[safety->allocator_count++] = object->inode;
        safety->has_allocator |= (libc == NULL || object->inode != libc->inode) &&
                                 (safety->own == 0 || object->inode != safety->own);
    }
}

/* What has the C library's heap or its list of threads locked, or asks for that lock. (dlopen and
 * its like have the loader on their path.) */
static const char *const heap_functions[] = {
    "malloc",   "calloc",        "realloc",      "reallocarray",   "free",
    "memalign", "aligned_alloc", "valloc",       "posix_memalign", "pvalloc",
    "mallinfo", "mallinfo2",     "malloc_stats", "malloc_info",    "malloc_trim",
    "mallopt",  "fork",          "_Fork",        "pthread_create", "malloc_usable_size"};
/* What only makes a system call. */
static const char *const wait_functions[] = {
    "poll",       "ppoll",           "select",      "pselect",         "epoll_wait", "epoll_pwait",
    "nanosleep",  "clock_nanosleep", "pause",       "sigsuspend",      "sigwait",    "sigtimedwait",
    "read",       "write",           "recv",        "recvfrom",        "recvmsg",    "send",
    "accept",     "accept4",         "wait4",       "waitid",          "waitpid",    "kill",
    "raise",      "sigprocmask",     "sigwaitinfo", "pthread_sigmask", "syscall",    "semop",
    "semtimedop", "pthread_kill",    "wait",        "sched_yield",     "vfork"};
_Static_assert(sizeof heap_functions / sizeof heap_functions[0] <= ATTACHSTOP_FUNCTIONS &&
                   sizeof wait_functions / sizeof wait_functions[0] <= ATTACHSTOP_FUNCTIONS,
               "there is room");

/* As /proc tells it also of other users' programs; 0: it does not. */
static uint64_t stack_limit(pid_t pid) {
    char line[256];
    uint64_t limit = 0;
    SCOPE_FILE FILE *file = procfile_text("/proc/%ld/limits", (long)pid);
    while (file != NULL && limit == 0 && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "Max stack size %" SCNu64, &limit) != 1 &&
            strncmp(line, "Max stack size", 14) == 0) {
            limit = UINT64_MAX; /* "unlimited" */
        }
    }
    return limit;
}

/* FNV-1a */
static uint64_t add_to_sum(uint64_t sum, uint64_t value) {
    return (sum ^ value) * UINT64_C(0x100000001b3);
}

static uint64_t sum_of_code(const struct attachtarget *target) {
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < target->count; i++) {
        const struct attachmapping *mapping = &target->mappings[i];
        if (mapping->inode != 0 && (mapping->executable || mapping->offset == 0)) {
            sum = add_to_sum(add_to_sum(sum, mapping->start), mapping->end);
            sum = add_to_sum(add_to_sum(sum, mapping->inode), mapping->offset);
        }
    }
    return sum;
}

bool attachsafety_renew(struct attachsafety *safety, const struct attachtarget *target) {
    bool is_same = safety->code == sum_of_code(target);
    if (is_same) {
        safety->target = target;
        safety->stack_limit = stack_limit(target->pid);
    }
    return is_same;
}

void attachsafety_find(const struct attachtarget *target, struct attachsafety *safety) {
    const struct attachmapping *libc = attachtarget_object(target, "libc.so.6");
    const struct attachmapping *own = attachtarget_object(target, "libmemtrace.so");
    const struct attachmapping *loader = attachtarget_object(target, "ld-linux");
    *safety = (struct attachsafety){.target = target,
                                    .loader = loader != NULL ? loader->inode : 0,
                                    .stack = malloc(STACK_LOOK),
                                    .stack_limit = stack_limit(target->pid),
                                    .walk = attachwalk_open(target),
                                    .code = sum_of_code(target)};
    if (safety->stack != NULL) { /* so that no page of it has to be found while a thread waits */
        memset(safety->stack, 1, STACK_LOOK);
    }
    if (libc != NULL) {
        attachtarget_ranges(target, libc, heap_functions,
                            sizeof heap_functions / sizeof heap_functions[0],
                            safety->heap_functions);
        attachtarget_ranges(target, libc, wait_functions,
                            sizeof wait_functions / sizeof wait_functions[0],
                            safety->wait_functions);
    }
    safety->libc = libc != NULL ? libc->inode : 0;
    if (own != NULL) {
        safety->own = own->inode;
        safety->own_syscall = attachtarget_range(target, own, "syscall");
    }
    safety->signal_word_count =
        attachmachine_signal_words(target, safety->signal_words, ATTACHSTOP_SIGNAL_WORDS);
    for (size_t i = 0; i < target->count; i++) {
        const struct attachmapping *mapping = &target->mappings[i];
        if (mapping->offset == 0 && mapping->inode != 0) {
            note_allocator(safety, mapping, libc);
        }
    }
}

void attachsafety_free(struct attachsafety *safety) {
    free(safety->stack);
    attachwalk_close(safety->walk);
    *safety = (struct attachsafety){0};
}

size_t attachstop_threads(pid_t pid, pid_t tids[ATTACHSTOP_THREADS]) {
    SCOPE_FOLDER DIR *folder = procfile_folder("/proc/%ld/task", (long)pid);
    size_t count = 0;
    while (count < ATTACHSTOP_THREADS && (tids[count] = procfile_next(folder)) != 0) {
        count++;
    }
    return count;
}

/* --- asleep ----------------------------------------------------------------------------------- */

/* "running", "-1 sp pc" or "number six-arguments sp pc". 0, or -1: it does not sleep in a call. */
static int read_sleeping(pid_t pid, pid_t tid, struct attachcallsite *sleeping) {
    SCOPE_FILE FILE *file = procfile_text("/proc/%ld/task/%ld/syscall", (long)pid, (long)tid);
    uint64_t *a = sleeping->arguments;
    return file != NULL && fscanf(file,
                                  "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
                                  " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
                                  &sleeping->number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5],
                                  &sleeping->sp, &sleeping->pc) == 9
               ? 0
               : -1;
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

static int option_of(int fd, int option) {
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

/* Whether all of so much that is sent at once is sent, or nothing. */
static bool is_sent_whole(pid_t pid, uint64_t number, uint64_t size) {
    enum { PIECE = 32 << 10, OVERHEAD = 64 /* of the kernel, in AF_UNIX */ };
    SCOPE_FD int process = (int)syscall(SYS_pidfd_open, pid, 0);
    SCOPE_FD int fd = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, (int)number, 0) : -1;
    int type = fd >= 0 ? option_of(fd, SO_TYPE) : -1;
    if (type == SOCK_STREAM && option_of(fd, SO_DOMAIN) == AF_UNIX) {
        int room = option_of(fd, SO_SNDBUF);
        return size <= PIECE && room > 0 && size + OVERHEAD <= (uint64_t)room / 2;
    }
    return type == SOCK_DGRAM || type == SOCK_SEQPACKET;
}

/* What is written in pieces would be cut short by a stop between two of them. */
static bool is_written_whole(pid_t pid, uint64_t fd, uint64_t size) {
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%ld/fd/%" PRIu64, (long)pid, fd);
    return stat(path, &status) == 0 && ((S_ISFIFO(status.st_mode) && size <= PIPE_BUF) ||
                                        (S_ISSOCK(status.st_mode) && is_sent_whole(pid, fd, size)));
}

/* From which calls a thread may be led. In each a stop ends the wait as if nothing had happened:
 * the kernel starts it again (ERESTARTSYS and its like), or says EINTR, where we do
 * (attachmachine.h). None of them has done part of its work by then. */
enum allowed {
    ALLOWED_NEVER,
    ALLOWED_IF_SEEN,  /* the C library's allocator makes it, too: the path is known */
    ALLOWED_IF_CLEAR, /* other allocators do: it is known, or there is none */
    ALLOWED
};

static enum allowed allowed_if(bool is_so, enum allowed allowed) {
    return is_so ? allowed : ALLOWED_NEVER;
}

static enum allowed how_allowed(pid_t pid, const struct attachcallsite *sleeping) {
    const uint64_t *arguments = sleeping->arguments;
    switch (attachmachine_newer_call(sleeping->number)) {
    case SYS_ppoll: /* for what neither an allocator nor the loader waits */
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_pselect6:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_flock:
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend:
        return ALLOWED;
    case SYS_recvfrom:
        return allowed_if((arguments[3] & MSG_WAITALL) == 0, ALLOWED);
    case SYS_recvmsg:
        return allowed_if((arguments[2] & MSG_WAITALL) == 0, ALLOWED);
    case SYS_fcntl:
        return allowed_if(arguments[1] == F_SETLKW || arguments[1] == F_OFD_SETLKW, ALLOWED);
    case SYS_read:
    case SYS_readv:
        return allowed_if(is_no_file(pid, arguments[0]), ALLOWED);
    case SYS_nanosleep: /* others wait so for their own locks */
    case SYS_clock_nanosleep:
    case SYS_restart_syscall: /* a sleep, a poll or a timed wait that went on after a stop */
        return ALLOWED_IF_CLEAR;
    case SYS_openat: /* of a FIFO */
        return ALLOWED_IF_SEEN;
    case SYS_futex: /* of condition variables, joins and semaphores; not of locks */
        return allowed_if((arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET, ALLOWED_IF_CLEAR);
    case SYS_write: /* which malloc_info does, too */
    case SYS_sendto:
        return allowed_if(is_written_whole(pid, arguments[0], arguments[2]), ALLOWED_IF_SEEN);
    default:
        return ALLOWED_NEVER;
    }
}

/* A stop ends this call early, and to start it again is to wait the whole time again. */
static bool is_timed_anew(const struct attachcallsite *sleeping) {
    const uint64_t *arguments = sleeping->arguments;
    switch (attachmachine_newer_call(sleeping->number)) {
    case SYS_epoll_pwait:
        return (int32_t)arguments[3] > 0;
    case SYS_epoll_pwait2:
    case SYS_semtimedop:
        return arguments[3] != 0;
    case SYS_rt_sigtimedwait:
        return arguments[2] != 0;
    default:
        return false;
    }
}

static bool attachrange_holds(const struct attachrange *ranges, size_t count, uint64_t pc) {
    for (size_t i = 0; i < count; i++) {
        if (pc >= ranges[i].start && pc < ranges[i].end) {
            return true;
        }
    }
    return false;
}

static bool is_in_wait(const struct attachsafety *safety, uint64_t pc) {
    return attachrange_holds(safety->wait_functions, ATTACHSTOP_FUNCTIONS, pc);
}

bool attachstop_may(const struct attachsafety *safety, pid_t tid, bool may_run) {
    struct attachcallsite sleeping;
    char state[32];
    if (procfile_status(safety->target->pid, tid, "State", state, sizeof state) != 0) {
        return false;
    }
    if (state[0] == 'R') {
        return may_run;
    }
    if (read_sleeping(safety->target->pid, tid, &sleeping) != 0) {
        return false;
    }
    if (state[0] == 'D') { /* in vfork: it hears nothing until that is over */
        return safety->may_wait && is_in_wait(safety, sleeping.pc);
    }
    return state[0] == 'S' && how_allowed(safety->target->pid, &sleeping) != ALLOWED_NEVER &&
           (may_run || !is_timed_anew(&sleeping));
}

/* --- stopped ---------------------------------------------------------------------------------- */

/* Signals that are nothing to who has no handler for them. One that is traced gets them, too. */
static bool attachstop_is_ignored(const struct attachstop *stop, int signal) {
    char caught[32];
    return (signal == SIGCHLD || signal == SIGCONT || signal == SIGURG || signal == SIGWINCH) &&
           procfile_status(stop->pid, stop->tid, "SigCgt", caught, sizeof caught) == 0 &&
           (strtoull(caught, NULL, 16) >> (signal - 1) & 1) == 0;
}

static bool has_pending_in(const struct attachstop *stop, uint32_t queue) {
    enum { MOST = 8 };
    struct __ptrace_peeksiginfo_args which = {.flags = queue, .nr = MOST};
    siginfo_t signals[MOST];
    long count = ptrace(PTRACE_PEEKSIGINFO, stop->tid, &which, signals);
    for (long i = 0; i < count && count < MOST; i++) {
        if (!attachstop_is_ignored(stop, signals[i].si_signo)) {
            return true;
        }
    }
    return count < 0 || count == MOST;
}

/* Also of one that it blocks, for which another thread or moment will do. */
static bool has_pending_signal(const struct attachstop *stop) {
    return has_pending_in(stop, 0) || has_pending_in(stop, PTRACE_PEEKSIGINFO_SHARED);
}

/* The first thread's stack grows as it is used, up to its limit, where nothing lies below it. */
static bool may_grow_to(const struct attachtarget *target, const struct attachmapping *stack,
                        uint64_t limit, uint64_t low) {
    enum { GUARD = 1 << 20 }; /* that the kernel keeps free, and as much again */
    uint64_t below = stack > target->mappings ? stack[-1].end : 0;
    return stack->end - low <= limit && low >= below && low - below >= (uint64_t)2 * GUARD;
}

/* It is on the stack that its C library's record of it lies on top of, and there is room. The end
 * of what is to be looked at; 0: it is not. */
static uint64_t own_stack_end(const struct attachsafety *safety,
                              const struct attachregisters *registers) {
    const struct attachtarget *target = safety->target;
    uint64_t sp = registers->call.sp;
    const struct attachmapping *stack = attachtarget_at(target, sp);
    uint64_t end;
    bool has_room;
    if (stack == NULL || !stack->writable) {
        return 0;
    }
    if (strcmp(stack->path, "[stack]") == 0) {
        end = stack->end;
        has_room = may_grow_to(target, stack, safety->stack_limit, sp - STACK_ROOM);
    } else if (registers->thread > sp && registers->thread < stack->end) {
        end = registers->thread;
        has_room = sp - stack->start >= STACK_ROOM;
    } else {
        return 0;
    }
    return has_room && end - sp <= STACK_LOOK ? end : 0;
}

/* Where its path leads. */
enum path {
    PATH_UNSAFE,  /* through what has locks of the C library, or may have had when a signal came */
    PATH_UNKNOWN, /* it is lost, but nothing on the stack looks like a handler of a signal */
    PATH_ALLOCATOR, /* also through an object that defines an allocator */
    PATH_CLEAR
};

struct pathlook {
    const struct attachsafety *safety;
    enum path path;
};

static bool attachsafety_is_allocator(const struct attachsafety *safety, uint64_t inode) {
    for (size_t i = 0; i < safety->allocator_count; i++) {
        if (safety->allocators[i] == inode) {
            return true;
        }
    }
    return false;
}

/* A handler may go on for good: PostgreSQL's forks processes that stay in theirs. Where it has
 * interrupted nothing but a wait, or the program's own code, there is no lock. */
static bool may_be_interrupted(const struct attachsafety *safety, const struct attachmapping *code,
                               uint64_t pc) {
    return is_in_wait(safety, pc) ||
           (code->inode != 0 && code->inode != safety->libc && code->inode != safety->own &&
            !attachsafety_is_allocator(safety, code->inode));
}

/* Our own library is on the path of each thread that was started while it was attached. */
static void look_at_place(void *context, uint64_t pc, bool is_interrupted) {
    struct pathlook *look = context;
    const struct attachsafety *safety = look->safety;
    const struct attachmapping *code = attachtarget_at(safety->target, pc);
    if (code == NULL || (safety->loader != 0 && code->inode == safety->loader) ||
        attachrange_holds(safety->heap_functions, ATTACHSTOP_FUNCTIONS, pc) ||
        (is_interrupted && !may_be_interrupted(safety, code, pc))) {
        look->path = PATH_UNSAFE;
    } else if (look->path == PATH_CLEAR && code->inode != safety->libc &&
               code->inode != safety->own && attachsafety_is_allocator(safety, code->inode)) {
        look->path = PATH_ALLOCATOR;
    }
}

/* Where the path is lost, a signal frame is known by a word of it. An old one that was left behind
 * looks the same: then another moment will do. */
static enum path look_outwards(const struct attachsafety *safety, const struct attachstop *stop,
                               uint64_t end) {
    struct pathlook look = {safety, PATH_CLEAR};
    uint64_t sp = stop->registers.call.sp;
    size_t size = (end - sp) / sizeof(uint64_t) * sizeof(uint64_t);
    const struct attachwalk_stack stack = {sp, safety->stack, size};
    bool has_frame = safety->signal_word_count == 0;
    if (safety->stack == NULL ||
        attachtarget_memory(stop->pid, sp, safety->stack, size) != (ssize_t)size) {
        return PATH_UNSAFE;
    }
    if (attachwalk_outwards(safety->walk, &stop->registers, &stack, look_at_place, &look) == 0) {
        return look.path;
    }
    for (size_t i = 0; !has_frame && i < size / sizeof *safety->stack; i++) {
        for (size_t j = 0; j < safety->signal_word_count; j++) {
            has_frame |= safety->stack[i] == safety->signal_words[j];
        }
    }
    return look.path == PATH_UNSAFE || has_frame ? PATH_UNSAFE : PATH_UNKNOWN;
}

/* The kernel undoes such a piece of code if its thread is moved elsewhere meanwhile. */
static bool is_in_rseq(const struct attachstop *stop) {
    struct __ptrace_rseq_configuration rseq = {0};
    uint64_t section = 0;
    if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, stop->tid, sizeof rseq, &rseq) != (long)sizeof rseq ||
        rseq.rseq_abi_pointer == 0) {
        return false;
    }
    return attachtarget_memory(stop->pid, rseq.rseq_abi_pointer + 8, &section, sizeof section) !=
               (ssize_t)sizeof section ||
           section != 0;
}

/* A call that was slept in is looked at once more: it may be another one by now. */
static bool slept_safely(const struct attachsafety *safety, const struct attachstop *stop,
                         bool may_run, enum path path) {
    const struct attachcallsite *call = &stop->registers.call;
    const struct attachmapping *code = attachtarget_at(safety->target, call->pc);
    enum allowed allowed = how_allowed(stop->pid, call);
    if (stop->registers.is_over) { /* it stands where that call has returned */
        return may_run && path == PATH_CLEAR && is_in_wait(safety, call->pc);
    }
    if (allowed == ALLOWED_NEVER || (allowed == ALLOWED_IF_SEEN && path != PATH_CLEAR) ||
        (allowed == ALLOWED_IF_CLEAR && path != PATH_CLEAR && safety->has_allocator) ||
        code == NULL || (safety->loader != 0 && code->inode == safety->loader) ||
        (!may_run && is_timed_anew(call))) {
        return false;
    }
    /* Not of our library's threads, at work for themselves. */
    return safety->own == 0 || code->inode != safety->own ||
           attachrange_holds(&safety->own_syscall, 1, call->pc);
}

static bool attachstop_is_safe(const struct attachsafety *safety, const struct attachstop *stop,
                               bool may_run) {
    const struct attachcallsite *call = &stop->registers.call;
    const struct attachmapping *code;
    uint64_t end = own_stack_end(safety, &stop->registers);
    enum path path = PATH_UNSAFE;
    if (!has_pending_signal(stop) && end != 0) {
        path = look_outwards(safety, stop, end);
    }
    if (path == PATH_UNSAFE) {
        return false;
    }
    if (call->number >= 0) {
        return slept_safely(safety, stop, may_run, path);
    }
    /* It runs: code of the program's own. */
    code = attachtarget_at(safety->target, call->pc);
    return may_run && path != PATH_ALLOCATOR && code != NULL && code->executable &&
           code->inode != 0 && code->inode != safety->loader &&
           !attachsafety_is_allocator(safety, code->inode) && !is_in_rseq(stop);
}

/* SIGCHLD, which is blocked, tells that something happened. */
static enum stopped wait_for_stop(struct attachstop *stop, const sigset_t *child) {
    const struct timespec limit = {.tv_sec = STOP_SECONDS};
    for (;;) {
        int status;
        pid_t got = waitpid(stop->tid, &status, __WALL | WNOHANG);
        if (got < 0 || (got > 0 && !WIFSTOPPED(status))) {
            return STOPPED_GONE;
        }
        if (got > 0 && status >> 16 == PTRACE_EVENT_STOP) {
            return WSTOPSIG(status) == SIGTRAP ? STOPPED_BY_US : STOPPED_OTHERWISE;
        }
        if (got > 0 && WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            return STOPPED_AT_CALL;
        }
        if (got > 0) {
            stop->signal = WSTOPSIG(status);
            return STOPPED_OTHERWISE;
        }
        if (sigtimedwait(child, NULL, &limit) < 0 && errno != EINTR) {
            return STOPPED_GONE;
        }
    }
}

static int read_registers(struct attachstop *stop, const struct attachcallsite *before) {
    return attachmachine_read(stop->pid, stop->tid, before, &stop->registers);
}

static bool attachstop_request(const struct attachstop *stop, enum __ptrace_request request) {
    return ptrace(request, stop->tid, NULL, NULL) == 0;
}

/* How much of a sleep is left the kernel notes for itself, and has the thread make another call,
 * which goes on with it. That is to be seen in the registers when it makes that call, and is
 * interrupted in it: so it is let go as far as there. A call that had not begun begins there. */
static bool attachstop_settle(struct attachstop *stop, const sigset_t *child) {
    for (int i = 0; i < SETTLE_TRIES && stop->registers.is_sleep; i++) {
        if (!attachstop_request(stop, PTRACE_SYSCALL) ||
            wait_for_stop(stop, child) != STOPPED_AT_CALL ||
            !attachstop_request(stop, PTRACE_INTERRUPT) || !attachstop_request(stop, PTRACE_CONT) ||
            wait_for_stop(stop, child) != STOPPED_BY_US || read_registers(stop, NULL) != 0) {
            return false;
        }
    }
    return !stop->registers.is_sleep;
}

/* 0, or -1: it has gone, or may not be stopped. */
static int ask_to_stop(struct attachstop *stop) {
    stop->asked_ns = clock_now_ns();
    if (ptrace(PTRACE_SEIZE, stop->tid, NULL, (void *)PTRACE_O_TRACESYSGOOD) != 0) {
        return -1;
    }
    stop->has_looked = attachmachine_needs_look() &&
                       attachtarget_waits(stop->pid, stop->tid, &stop->before.waits) == 0 &&
                       read_sleeping(stop->pid, stop->tid, &stop->before) == 0;
    return attachstop_request(stop, PTRACE_INTERRUPT) ? 0 : -1;
}

/* With its registers, where it stands for no other reason. */
static enum stopped await_stop(struct attachstop *stop, const sigset_t *child) {
    enum stopped stopped = wait_for_stop(stop, child);
    return stopped == STOPPED_BY_US &&
                   read_registers(stop, stop->has_looked ? &stop->before : NULL) != 0
               ? STOPPED_OTHERWISE
               : stopped;
}

static void block_child(sigset_t *child, sigset_t *before) {
    sigemptyset(child);
    sigaddset(child, SIGCHLD);
    sigprocmask(SIG_BLOCK, child, before);
}

/* One that does not hear it now (in state D) will stop when it does, and must not stand then: it is
 * waited for. safety: NULL where it is not to be led. */
static int attachstop_begin_any(const struct attachsafety *safety, bool may_run,
                                struct attachstop *stop) {
    sigset_t child;
    sigset_t before;
    char state[32];
    enum stopped stopped;
    bool is_held_later = safety != NULL && safety->may_wait &&
                         procfile_status(stop->pid, stop->tid, "State", state, sizeof state) == 0 &&
                         state[0] == 'D';
    beside_come(stop->pid, stop->tid);
    block_child(&child, &before);
    stopped = ask_to_stop(stop) == 0 ? await_stop(stop, &child) : STOPPED_GONE;
    for (int i = 0; i < DEAF_TRIES && stopped == STOPPED_GONE &&
                    procfile_status(stop->pid, stop->tid, "State", state, sizeof state) == 0 &&
                    state[0] == 'D';
         i++) {
        stopped = await_stop(stop, &child);
        is_held_later = true;
    }
    stop->asked_ns = is_held_later ? clock_now_ns() : stop->asked_ns;
    if (stopped == STOPPED_BY_US && safety != NULL) {
        stop->is_safe = attachstop_is_safe(safety, stop, may_run);
        if (stop->is_safe && stop->registers.is_sleep) {
            stop->is_safe =
                attachstop_settle(stop, &child) && attachstop_is_safe(safety, stop, may_run);
        }
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (stopped == STOPPED_GONE) {
        beside_leave();
        return -1;
    }
    return 0;
}

int attachstop_begin(const struct attachsafety *safety, pid_t tid, bool may_run,
                     struct attachstop *stop) {
    *stop = (struct attachstop){.pid = safety->target->pid, .tid = tid};
    return attachstop_begin_any(safety, may_run, stop);
}

int attachstop_hold(pid_t pid, pid_t tid, struct attachstop *stop) {
    *stop = (struct attachstop){.pid = pid, .tid = tid};
    return attachstop_begin_any(NULL, false, stop);
}

int attachstop_ask(pid_t pid, pid_t tid, struct attachstop *stop) {
    *stop = (struct attachstop){.pid = pid, .tid = tid};
    return ask_to_stop(stop);
}

int attachstop_await(struct attachstop *stop) {
    sigset_t child;
    sigset_t before;
    enum stopped stopped;
    block_child(&child, &before);
    stopped = await_stop(stop, &child);
    sigprocmask(SIG_SETMASK, &before, NULL);
    stop->stands = stopped != STOPPED_GONE;
    return stop->stands ? 0 : -1;
}

uint64_t attachstop_end(const struct attachstop *stop, bool is_led) {
    uint64_t held_ns;
    if (!is_led && stop->registers.is_cut_short) {
        attachmachine_restart(stop->tid, &stop->registers);
    }
    ptrace(PTRACE_DETACH, stop->tid, NULL, (void *)(intptr_t)stop->signal);
    held_ns = clock_now_ns() - stop->asked_ns;
    beside_leave();
    return held_ns;
}
