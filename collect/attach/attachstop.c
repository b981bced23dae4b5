/* SPDX-License-Identifier: MIT */
/* attachstop.c: see attachstop.h. */
#define _GNU_SOURCE
#include "collect/attach/attachstop.h"

#include "collect/attach/attachbeside.h"
#include "collect/attach/attachmemory.h"
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
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    STOP_SECONDS = 2,
    FRAME_ROOM = 16 << 10, /* of a stack that grows */
    STACK_ROOM = 48 << 10, /* for what we put there, and pthread_create */
    STACK_LOOK = 1 << 20,  /* a deeper stack is left alone */
    SETTLE_TRIES = 4,
};

/* Why a thread stands. */
enum stopped { STOPPED_GONE = -1, STOPPED_OTHERWISE, STOPPED_BY_US, STOPPED_AT_CALL };

/* --- before ----------------------------------------------------------------------------------- */

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
    const struct attachmapping *own = attachtarget_object(target, "libmemtrace.so");
    *safety = (struct attachsafety){
        .target = target, .loader = inode_of(target, "ld-linux"), .stack = make_room()};
    if (own != NULL) {
        safety->own = own->inode;
        safety->own_syscall = attachtarget_range(target, own, "syscall");
    }
    safety->signal_word_count =
        attachmachine_signal_words(target, safety->signal_words, ATTACHSTOP_SIGNAL_WORDS);
    for (size_t i = 0; i < target->count; i++) {
        const struct attachmapping *mapping = &target->mappings[i];
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

/* "running", "-1 sp pc" or "number six-arguments sp pc". 0, or -1: it does not sleep in a call. */
static int read_sleeping(pid_t pid, pid_t tid, struct attachcallsite *sleeping) {
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

static bool is_allowed(pid_t pid, const struct attachcallsite *sleeping, bool has_allocator) {
    switch (attachmachine_newer_call(sleeping->number)) {
    case SYS_ppoll:
    case SYS_epoll_pwait:
    case SYS_pselect6:
    case SYS_accept:
    case SYS_accept4:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_wait4:
    case SYS_waitid:
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
static bool is_timed_anew(const struct attachcallsite *sleeping) {
    return attachmachine_newer_call(sleeping->number) == SYS_epoll_pwait &&
           (int32_t)sleeping->arguments[3] > 0;
}

static bool is_asleep_safely(const struct attachsafety *safety,
                             const struct attachcallsite *sleeping, bool may_run) {
    return is_allowed(safety->target->pid, sleeping, safety->has_allocator) &&
           (may_run || !is_timed_anew(sleeping));
}

bool attachstop_may(const struct attachsafety *safety, pid_t tid, bool may_run) {
    struct attachcallsite sleeping;
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
                              const struct attachregisters *registers) {
    uint64_t sp = registers->call.sp;
    const struct attachmapping *stack = attachtarget_at(target, sp);
    uint64_t end;
    uint64_t room;
    if (stack == NULL || !stack->writable) {
        return 0;
    }
    if (strcmp(stack->path, "[stack]") == 0) {
        end = stack->end;
        room = FRAME_ROOM;
    } else if (registers->thread > sp && registers->thread < stack->end) {
        end = registers->thread;
        room = STACK_ROOM;
    } else {
        return 0;
    }
    return sp - stack->start >= room && end - sp <= STACK_LOOK ? end : 0;
}

/* A signal frame is known by a word of it. An old one that was left behind looks the same: then
 * another moment will do. */
static bool may_handle_signal(const struct attachsafety *safety, uint64_t sp, uint64_t end) {
    size_t size = (end - sp) / sizeof(uint64_t) * sizeof(uint64_t);
    bool found = safety->stack == NULL || safety->signal_word_count == 0 ||
                 attachmemory_read(safety->target->pid, sp, safety->stack, size) != (ssize_t)size;
    for (size_t i = 0; !found && i < size / sizeof *safety->stack; i++) {
        for (size_t j = 0; j < safety->signal_word_count; j++) {
            found |= safety->stack[i] == safety->signal_words[j];
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
    return attachmemory_read(stop->pid, rseq.rseq_abi_pointer + 8, &section, sizeof section) !=
               (ssize_t)sizeof section ||
           section != 0;
}

/* Code of the program's own. */
static bool runs_safely(const struct attachsafety *safety, const struct attachstop *stop) {
    const struct attachmapping *code = attachtarget_at(safety->target, stop->registers.call.pc);
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

/* Of ours, at work for itself. */
static bool is_own(const struct attachsafety *safety, const struct attachmapping *code,
                   uint64_t pc) {
    return safety->own != 0 && code->inode == safety->own &&
           (pc < safety->own_syscall.start || pc >= safety->own_syscall.end);
}

/* A call that was slept in is looked at once more: it may be another one by now. */
static bool slept_safely(const struct attachsafety *safety, const struct attachstop *stop,
                         bool may_run) {
    const struct attachcallsite *call = &stop->registers.call;
    const struct attachmapping *code = attachtarget_at(safety->target, call->pc);
    if (stop->registers.is_over || !is_asleep_safely(safety, call, true)) {
        return false;
    }
    return code != NULL && (safety->loader == 0 || code->inode != safety->loader) &&
           !is_own(safety, code, call->pc) && (may_run || !is_timed_anew(call));
}

static bool is_safe(const struct attachsafety *safety, const struct attachstop *stop,
                    bool may_run) {
    const struct attachcallsite *call = &stop->registers.call;
    uint64_t end = own_stack_end(safety->target, &stop->registers);
    if (has_pending_signal(stop->tid)) {
        return false;
    }
    if (!(call->number < 0 ? may_run && runs_safely(safety, stop)
                           : slept_safely(safety, stop, may_run))) {
        return false;
    }
    return end != 0 && !may_handle_signal(safety, call->sp, end);
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

static bool ask(const struct attachstop *stop, enum __ptrace_request request) {
    return ptrace(request, stop->tid, NULL, NULL) == 0;
}

/* How much of a sleep is left the kernel notes for itself, and has the thread make another call,
 * which goes on with it. That is to be seen in the registers when it makes that call, and is
 * interrupted in it: so it is let go as far as there. A call that had not begun begins there. */
static bool settle(struct attachstop *stop, const sigset_t *child) {
    for (int i = 0; i < SETTLE_TRIES && stop->registers.is_sleep; i++) {
        if (!ask(stop, PTRACE_SYSCALL) || wait_for_stop(stop, child) != STOPPED_AT_CALL ||
            !ask(stop, PTRACE_INTERRUPT) || !ask(stop, PTRACE_CONT) ||
            wait_for_stop(stop, child) != STOPPED_BY_US || read_registers(stop, NULL) != 0) {
            return false;
        }
    }
    return !stop->registers.is_sleep;
}

static int look_before(const struct attachstop *stop, struct attachcallsite *before) {
    if (!attachmachine_needs_look() ||
        attachtarget_waits(stop->pid, stop->tid, &before->waits) != 0) {
        return -1;
    }
    return read_sleeping(stop->pid, stop->tid, before);
}

/* 0, or -1: it has gone, or may not be stopped. */
static int ask_to_stop(struct attachstop *stop) {
    stop->asked_ns = clock_now_ns();
    if (ptrace(PTRACE_SEIZE, stop->tid, NULL, (void *)PTRACE_O_TRACESYSGOOD) != 0) {
        return -1;
    }
    stop->has_looked = look_before(stop, &stop->before) == 0;
    return ask(stop, PTRACE_INTERRUPT) ? 0 : -1;
}

/* With its registers, where it stands for no other reason. */
static enum stopped await_stop(struct attachstop *stop, const sigset_t *child) {
    enum stopped stopped = wait_for_stop(stop, child);
    return stopped == STOPPED_BY_US &&
                   read_registers(stop, stop->has_looked ? &stop->before : NULL) != 0
               ? STOPPED_OTHERWISE
               : stopped;
}

static enum stopped stop_thread(struct attachstop *stop, const sigset_t *child) {
    return ask_to_stop(stop) == 0 ? await_stop(stop, child) : STOPPED_GONE;
}

static void judge(const struct attachsafety *safety, struct attachstop *stop, bool may_run,
                  const sigset_t *child) {
    stop->is_safe = is_safe(safety, stop, may_run);
    if (stop->is_safe && stop->registers.is_sleep) {
        stop->is_safe = settle(stop, child) && is_safe(safety, stop, may_run);
    }
}

static void block_child(sigset_t *child, sigset_t *before) {
    sigemptyset(child);
    sigaddset(child, SIGCHLD);
    sigprocmask(SIG_BLOCK, child, before);
}

/* safety: NULL where it is not to be led. */
static int begin(const struct attachsafety *safety, bool may_run, struct attachstop *stop) {
    sigset_t child;
    sigset_t before;
    enum stopped stopped;
    attachbeside_come(stop->pid, stop->tid);
    block_child(&child, &before);
    stopped = stop_thread(stop, &child);
    if (stopped == STOPPED_BY_US && safety != NULL) {
        judge(safety, stop, may_run, &child);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (stopped == STOPPED_GONE) {
        attachbeside_leave();
        return -1;
    }
    return 0;
}

int attachstop_begin(const struct attachsafety *safety, pid_t tid, bool may_run,
                     struct attachstop *stop) {
    *stop = (struct attachstop){.pid = safety->target->pid, .tid = tid};
    return begin(safety, may_run, stop);
}

int attachstop_hold(pid_t pid, pid_t tid, struct attachstop *stop) {
    *stop = (struct attachstop){.pid = pid, .tid = tid};
    return begin(NULL, false, stop);
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
    attachbeside_leave();
    return held_ns;
}
