/* SPDX-License-Identifier: MIT */
/* attachthread.c: see attachthread.h. */
#define _GNU_SOURCE
#include "collect/attach/attachthread.h"

#include "analyze/base/scope.h"
#include "analyze/read/procfile.h"
#include "collect/attach/attachfault.h"
#include "collect/attach/attachmachine.h"
#include "collect/attach/attachstop.h"
#include "collect/attach/attachtarget.h"
#include "collect/attach/census.h"
#include "collect/attach/stub.h"
#include "collect/clock.h"
#include "memtrace/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Looks are fewer once it is known that they seldom help. */
enum {
    TRY_MS = 10000,
    ANSWER_MS = 30000,
    PAUSE_MS = 1,
    LOOKS = 20,
    SOME = 20,
    OFTEN = 100,
    LATER_MS = 20,
    PAGE = 4096
};

/* --- what it is given ------------------------------------------------------------------------- */

/* What we write to is checked, since the program may be hostile and we root: we take a copy of the
 * very descriptor, with no more rights than it has there, and write only to an empty file of
 * memory. */

/* Bytes, of whole pages. */
static size_t attachthread_filters_size(const struct attachcall *call) {
    const struct attachfilters *filters = call->filters;
    size_t size = 0;
    if (filters != NULL && filters->list.count != 0) {
        size = sizeof filters->list + filters->used * sizeof *filters->code;
    }
    return (size + PAGE - 1) / PAGE * PAGE;
}

static bool is_empty_memory(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0 &&
           status.st_size == 0;
}

/* The program's file; -1 with errno: there is none, or it is no empty file of memory, which alone
 * can be sealed. The one of a thread that has descriptors of its own (own_tid: its number in its
 * own namespace) is looked at before it is opened: the program may lie, and what is no such file
 * may do something when it is opened. */
static int take_memory_file(pid_t pid, uint32_t own_tid, int file) {
    SCOPE_FD int fd = -1;
    if (own_tid != 0) {
        SCOPE_FOLDER DIR *folder = procfile_folder("/proc/%ld/task", (long)pid);
        pid_t tid;
        while ((tid = procfile_next(folder)) != 0 && procfile_own_number(pid, tid) != own_tid) {
        }
        SCOPE_FD int there =
            procfile_open(O_PATH, "/proc/%ld/task/%ld/fd/%d", (long)pid, (long)tid, file);
        if (there >= 0 && !is_empty_memory(there)) {
            errno = EBADF;
        } else if (there >= 0) {
            fd = procfile_open(O_RDWR, "/proc/self/fd/%d", there);
        }
    } else {
        SCOPE_FD int process = (int)syscall(SYS_pidfd_open, pid, 0);
        fd = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, file, 0) : -1;
    }
    if (fd >= 0 && (!is_empty_memory(fd) || fcntl(fd, F_GET_SEALS) != 0)) {
        errno = EBADF;
        return -1;
    }
    return scope_keep(&fd);
}

static int give_file(const struct attachcall *call, uint64_t place, int file, struct error *error) {
    enum { ALL = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };
    char path[64];
    struct stat status;
    uint32_t own_tid = 0;
    off_t at = 0;
    bool is_fine;
    if (file < 0) {
        return error_set(error, "process %ld cannot make a file of memory for the library: %s",
                         (long)call->pid, strerror(-file));
    }
    if (attachimage_read(call->image, place + STUB_OWN_TID, &own_tid, sizeof own_tid) != 0) {
        return error_set(error, "process %ld ended meanwhile", (long)call->pid);
    }
    SCOPE_FD int fd = take_memory_file(call->pid, own_tid, file);
    SCOPE_FD int from = fd >= 0 ? open(call->library, O_RDONLY | O_CLOEXEC) : -1;
    is_fine = from >= 0 && fstat(from, &status) == 0;
    while (is_fine && at < status.st_size) {
        is_fine = sendfile(fd, from, &at, (size_t)(status.st_size - at)) > 0;
    }
    snprintf(path, sizeof path, "/proc/%s/fd/%d", own_tid != 0 ? "thread-self" : "self", file);
    return is_fine && fcntl(fd, F_ADD_SEALS, ALL) == 0 &&
                   attachimage_write(call->image, place + STUB_PATH, path, sizeof path) == 0
               ? 0
               : error_set(error, "the library cannot be handed to process %ld: %s",
                           (long)call->pid, strerror(errno));
}

/* The thread waits, its struct at `place`: all that it wants is written there. 0, or -1 with error:
 * then it has been told to give up. */
static int attachthread_give(const struct attachcall *call, uint64_t place, int file,
                             struct error *error) {
    const struct attachfilters *filters = call->filters;
    uint64_t behind = place + STUB_THREAD_PAGES;
    uint32_t go = STUB_GO_ON;
    int result = 0;
    if (attachthread_filters_size(call) != 0 &&
        (attachimage_write(call->image, behind, &filters->list, sizeof filters->list) != 0 ||
         attachimage_write(call->image, behind + sizeof filters->list, filters->code,
                           filters->used * sizeof *filters->code) != 0)) {
        result = error_set(error, "process %ld cannot be told of its seccomp filters: %s",
                           (long)call->pid, strerror(errno));
    } else if (call->library != NULL && call->is_hidden && file != 0) {
        result = give_file(call, place, file, error);
    }
    if (result != 0) {
        go = STUB_GIVE_UP;
    }
    return attachimage_write(call->image, place + STUB_GO, &go, sizeof go) == 0 || result != 0
               ? result
               : error_set(error, "process %ld ended meanwhile", (long)call->pid);
}

/* --- what the program is to find -------------------------------------------------------------- */

/* What the program has mapped is this very file: its headers and names are the same. */
static bool is_own_library(const struct attachtarget *target, const struct attachmapping *own,
                           int fd) {
    size_t size = own->end - own->start;
    SCOPE_MEMORY char *here = malloc(size);
    SCOPE_MEMORY char *there = malloc(size);
    ssize_t length =
        here != NULL && there != NULL && size < 64 << 20 ? pread(fd, here, size, 0) : 0;
    return length > PAGE &&
           attachtarget_memory(target->pid, own->start, there, size) == (ssize_t)size &&
           memcmp(here, there, (size_t)length) == 0;
}

uint64_t attachthread_function(const struct attachtarget *target, const struct attachmapping *own,
                               const struct attachcall *call) {
    uint64_t address = attachtarget_symbol(target, own, call->entry);
    SCOPE_FD int fd = -1;
    if (address != 0) {
        return address;
    }
    fd = procfile_open(O_RDONLY | O_NONBLOCK, "/proc/%ld/map_files/%lx-%lx", (long)target->pid,
                       (unsigned long)own->start, (unsigned long)own->end);
    if (fd < 0 && call->own_library != NULL) {
        fd = open(call->own_library, O_RDONLY | O_CLOEXEC);
    }
    return fd >= 0 && is_own_library(target, own, fd) ? attachtarget_symbol_of(fd, own, call->entry)
                                                      : 0;
}

static int find_c_functions(const struct attachtarget *target, const struct attachcall *call,
                            struct stub_frame *frame, struct error *error) {
    const struct attachmapping *libc = attachtarget_object(target, "libc.so.6");
    const struct attachmapping *own = attachtarget_object(target, "libmemtrace.so");
    struct stub_thread *thread = &frame->thread;
    const struct {
        const char *name;
        uint64_t *address;
    } wanted[] = {
        {"pthread_create", &frame->pthread_create},
        {"pthread_self", &thread->pthread_self},
        {"pthread_detach", &thread->pthread_detach},
        {"dlopen", &thread->dlopen},
        {"dlsym", &thread->dlsym},
        {"dlerror", &thread->dlerror},
        {"munmap", &thread->munmap},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        *wanted[i].address = libc != NULL ? attachtarget_symbol(target, libc, wanted[i].name) : 0;
        if (*wanted[i].address == 0) {
            return error_set(error, "process %ld: its C library has no %s", (long)call->pid,
                             wanted[i].name);
        }
    }
    if (call->library == NULL || own != NULL) {
        thread->function = own != NULL ? attachthread_function(target, own, call) : 0;
        if (thread->function == 0) {
            return error_set(error,
                             "process %ld: the library in it cannot be read (upgraded since?)",
                             (long)call->pid);
        }
    }
    return 0;
}

/* The padding gets the stub; if it is there from the last time, the same bytes. */
static int write_stub(const struct attachtarget *target, const struct attachimage *image,
                      struct stub_frame *frame, uint64_t *lead, struct error *error) {
    size_t size = (size_t)(stub_end - stub_begin);
    uint64_t place = attachtarget_padding(target, size);
    if (place == 0) {
        return error_set(error, "process %ld: no room for %zu bytes of code behind any library's",
                         (long)target->pid, size);
    }
    if (attachimage_write(image, place, stub_begin, size) != 0) {
        return error_set(error, "process %ld: its memory cannot be written: %s", (long)target->pid,
                         strerror(errno));
    }
    *lead = place + (uint64_t)(stub_lead - stub_begin);
    frame->start = place + (uint64_t)(stub_thread - stub_begin);
    return 0;
}

/* Whether the thread waits for more before it loads anything, and where the filters come. */
static int plan_gifts(const struct attachtarget *target, const struct attachcall *call,
                      struct stub_frame *frame) {
    bool is_there = attachtarget_object(target, "libmemtrace.so") != NULL;
    struct stub_thread *thread = &frame->thread;
    size_t size = call->settings_size;
    if (call->library != NULL && call->is_hidden && !is_there) {
        thread->wants |= STUB_WANTS_FILE;
        snprintf(thread->file_name, sizeof thread->file_name, "%s", MEMTRACE_ATTACH_FILE);
    }
    if (!attachfilters_are_there(call->pid)) { /* they might end it for one more system call */
        thread->wants |= STUB_WANTS_DESCRIPTORS;
    }
    if (call->filters == NULL || call->filters->list.count == 0) {
        return 0;
    }
    thread->wants |= STUB_WANTS_FILLING;
    size--; /* the empty string at the end comes later */
    size += (size_t)snprintf(thread->settings + size, sizeof thread->settings - size, "%s%" PRIu64,
                             MEMTRACE_ATTACH_FILTERS, frame->place + STUB_THREAD_PAGES) +
            1;
    return size < sizeof thread->settings ? 0 : -1; /* which is zero there */
}

static int attachthread_fill(const struct attachtarget *target, const struct attachcall *call,
                             struct stub_frame *frame, struct error *error) {
    struct stub_thread *thread = &frame->thread;
    if (call->settings_size > sizeof thread->settings ||
        (call->library != NULL && strlen(call->library) >= sizeof thread->path)) {
        return error_set(error, "the settings or the library's path are too long");
    }
    frame->mask = ~UINT64_C(0);
    frame->place_size = STUB_THREAD_PAGES + attachthread_filters_size(call);
    frame->place = attachtarget_gap(target, frame->place_size);
    if (frame->place == 0) {
        return error_set(error, "process %ld: no room in its address space", (long)call->pid);
    }
    thread->mapped = frame->place_size;
    thread->pause = (struct timespec){.tv_nsec = 2000000};
    snprintf(thread->name, sizeof thread->name, "%s", MEMTRACE_ATTACH_THREAD);
    snprintf(thread->entry, sizeof thread->entry, "%s", call->entry);
    snprintf(thread->path, sizeof thread->path, "%s", call->library != NULL ? call->library : "");
    memcpy(thread->settings, call->settings, call->settings_size);
    if (plan_gifts(target, call, frame) != 0) {
        return error_set(error, "the settings are too long");
    }
    return find_c_functions(target, call, frame, error);
}

/* --- leading a thread there ------------------------------------------------------------------- */

/* 1: a thread is on its way; 0: none is where it may be stopped. */
static int try_threads(const struct attachsafety *safety, const struct attachimage *image,
                       struct stub_frame *frame, uint64_t to, bool may_run,
                       struct attachdone *done) {
    pid_t tids[ATTACHSTOP_THREADS];
    size_t count = attachstop_threads(safety->target->pid, tids);
    for (size_t i = 0; i < count; i++) {
        struct attachstop stop;
        uint64_t held_ns;
        bool is_led;
        if (!attachstop_may(safety, tids[i], may_run)) {
            continue;
        }
        if (attachstop_begin(safety, tids[i], may_run, &stop) != 0) {
            continue;
        }
        attachfault_at("stopped");
        is_led = stop.is_safe && attachimage_is_current(image) &&
                 attachmachine_lead(image, stop.tid, &stop.registers, frame, to) == 0;
        held_ns = attachstop_end(&stop, is_led);
        done->held_ns = held_ns > done->held_ns ? held_ns : done->held_ns;
        if (is_led) {
            attachfault_at("led");
            return 1;
        }
    }
    return 0;
}

/* --- its answer ------------------------------------------------------------------------------- */

static int wait_for_answer(const struct attachcall *call, uint64_t place, struct attachdone *done,
                           struct error *error) {
    enum { STATE_BYTES = offsetof(struct stub_thread, path) };
    const uint32_t ack = 1;
    uint64_t end = clock_now_ns() + ANSWER_MS * MS;
    struct stub_thread thread = {0};
    bool was_there = false;
    bool was_given = false;
    bool was_done = false;
    for (; clock_now_ns() < end; poll(NULL, 0, PAUSE_MS)) {
        if (attachimage_read(call->image, place, &thread, STATE_BYTES) != 0) {
            if (was_there || !attachimage_is_current(call->image)) {
                return error_set(error, "process %ld ended meanwhile", (long)call->pid);
            }
            continue;
        }
        was_there = true;
        if (thread.state != STUB_WAITING) { /* what comes with the state, read after it */
            attachimage_read(call->image, place, &thread, STATE_BYTES);
        }
        attachfault_at("waiting");
        if (thread.state == STUB_FILLING && !was_given) {
            was_given = true;
            if (attachthread_give(call, place, thread.file, error) != 0) {
                return -1;
            }
            attachfault_at("given");
        } else if (thread.state == STUB_WAITING || thread.state == STUB_FILLING) {
            uint64_t before = clock_now_ns();
            if (call->meanwhile != NULL && !was_done) {
                was_done = call->meanwhile(call->context, place + STUB_SETTINGS);
                end += clock_now_ns() - before;
            }
        } else {
            attachfault_at("answer");
            attachimage_write(call->image, place + STUB_ACK, &ack, sizeof ack);
            done->result = thread.result;
            return thread.state == STUB_NOT_LOADED
                       ? error_set(error, "process %ld cannot load the library: %.*s",
                                   (long)call->pid, STUB_MESSAGE_SIZE - 1, thread.message)
                   : thread.state == STUB_NOT_STARTED
                       ? error_set(error, "process %ld cannot have another thread: %s",
                                   (long)call->pid, strerror(thread.result))
                       : 0;
        }
    }
    return error_set(error,
                     "process %ld did not answer within %d s: it may be loading a library itself; "
                     "it goes on, and memtrace list shows when it is profiled",
                     (long)call->pid, ANSWER_MS / 1000);
}

/* Looks anew each time: threads come and go, and so do stacks. The code seldom changes. */
static int lead_any(const struct attachimage *image, struct attachsafety *safety,
                    struct stub_frame *frame, uint64_t to, bool may_run, struct attachdone *done,
                    struct error *error) {
    SCOPE(attachtarget_close) struct attachtarget target;
    int is_led = 0;
    if (attachtarget_open(image->pid, &target, error) != 0) {
        return -1;
    }
    if (!attachsafety_renew(safety, &target)) {
        bool may_wait = safety->may_wait;
        attachsafety_free(safety);
        attachsafety_find(&target, safety);
        safety->may_wait = may_wait;
    }
    attachfault_at("looked");
    for (int i = 0; i < LOOKS && !is_led; i++) {
        is_led = try_threads(safety, image, frame, to, may_run, done);
    }
    return is_led;
}

/* 1: a thread is on its way; or -1 with error. */
static int attachthread_lead(const struct attachcall *call, struct attachsafety *safety,
                             struct stub_frame *frame, uint64_t to, struct attachdone *done,
                             struct error *error) {
    uint64_t end = clock_now_ns() + TRY_MS * MS;
    bool may_run = false; /* who sleeps is not disturbed in anything */
    int is_led = 0;
    for (int i = 0; is_led == 0; i++) {
        safety->may_wait = i > SOME;
        is_led = lead_any(call->image, safety, frame, to, may_run, done, error);
        if (is_led == 0 && !attachimage_is_current(call->image)) {
            return error_set(error, "process %ld ended meanwhile", (long)call->pid);
        }
        if (is_led == 0 && clock_now_ns() > end) {
            return error_set(error,
                             "process %ld has no thread where one may be stopped: all are inside "
                             "the C library or an allocator; try again",
                             (long)call->pid);
        }
        may_run = true;
        poll(NULL, 0, i < OFTEN ? PAUSE_MS : LATER_MS);
    }
    return is_led;
}

static int call_once(const struct attachcall *call, struct attachdone *done, struct error *error) {
    SCOPE(attachtarget_close) struct attachtarget target;
    struct stub_frame frame = {0};
    uint64_t to = 0;
    int result = -1;
    *done = (struct attachdone){0};
    if (attachtarget_open(call->pid, &target, error) == 0 &&
        attachthread_fill(&target, call, &frame, error) == 0 &&
        write_stub(&target, call->image, &frame, &to, error) == 0) {
        SCOPE(attachsafety_free) struct attachsafety safety;
        attachfault_at("stub");
        attachsafety_find(&target, &safety);
        result = attachthread_lead(call, &safety, &frame, to, done, error) > 0
                     ? wait_for_answer(call, frame.place, done, error)
                     : -1;
    }
    return result == 0 ? 0 : attachimage_explain(call->image, error);
}

/* Another command's work is not disturbed. What one has left that was killed is ended. */
int attachthread_call(const struct attachcall *call, struct attachdone *done, struct error *error) {
    enum { TRIES = 3 };
    int result = call_once(call, done, error);
    for (int i = 0; i < TRIES && result == 0 && done->result == MEMTRACE_ATTACH_BUSY &&
                    census_end_left(call->pid);
         i++) {
        result = call_once(call, done, error);
    }
    return result;
}

bool attachthread_is_possible(void) {
    return true;
}
