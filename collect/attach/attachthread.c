/* SPDX-License-Identifier: MIT */
/* attachthread.c: see attachthread.h. */
#define _GNU_SOURCE
#include "collect/attach/attachthread.h"

#include "analyze/read/procfile.h"
#include "collect/attach/attachfault.h"
#include "collect/attach/attachimage.h"
#include "collect/attach/attachmachine.h"
#include "collect/attach/attachstop.h"
#include "collect/attach/attachtarget.h"
#include "collect/attach/census.h"
#include "collect/attach/stub.h"
#include "collect/clock.h"
#include "memtrace/attach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
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

static void pause_ms(long ms) {
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    nanosleep(&pause, NULL);
}

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

static int give_filters(const struct attachcall *call, uint64_t place) {
    const struct attachfilters *filters = call->filters;
    uint64_t at = place + STUB_THREAD_PAGES;
    if (attachthread_filters_size(call) == 0) {
        return 0;
    }
    return attachimage_write(call->image, at, &filters->list, sizeof filters->list) == 0
               ? attachimage_write(call->image, at + sizeof filters->list, filters->code,
                                   filters->used * sizeof *filters->code)
               : -1;
}

/* Of the process's threads the one that has this number in its own namespace; 0: none. */
static long find_own_thread(pid_t pid, uint32_t own_tid) {
    char path[64];
    DIR *folder;
    long found = 0;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    folder = opendir(path);
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL;
         entry != NULL && found == 0; entry = readdir(folder)) {
        long tid = strtol(entry->d_name, NULL, 10);
        uint32_t number = tid > 0 ? procfile_own_number(pid, (pid_t)tid) : 0;
        found = number != 0 && number == own_tid ? tid : 0;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return found;
}

static bool is_empty_memory(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0 &&
           status.st_size == 0;
}

static int copy_descriptor(pid_t pid, int file) {
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    int fd = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, file, 0) : -1;
    int reason = errno;
    if (process >= 0) {
        close(process);
    }
    errno = reason;
    return fd;
}

/* Of a thread that has its own. Looked at before it is opened: the program may lie, and what is no
 * such file may do something when it is opened. */
static int open_descriptor(pid_t pid, uint32_t own_tid, int file) {
    char path[96];
    int there;
    int fd = -1;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/fd/%d", (long)pid,
             find_own_thread(pid, own_tid), file);
    there = open(path, O_PATH | O_CLOEXEC);
    if (there >= 0 && is_empty_memory(there)) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", there);
        fd = open(path, O_RDWR | O_CLOEXEC);
    } else if (there >= 0) {
        errno = EBADF;
    }
    if (there >= 0) {
        int reason = errno;
        close(there);
        errno = reason;
    }
    return fd;
}

/* The program's file; -1: there is none, or it is no empty file of memory, which alone can be
 * sealed. */
static int take_memory_file(pid_t pid, uint32_t own_tid, int file) {
    int fd = own_tid != 0 ? open_descriptor(pid, own_tid, file) : copy_descriptor(pid, file);
    if (fd >= 0 && (!is_empty_memory(fd) || fcntl(fd, F_GET_SEALS) != 0)) {
        close(fd);
        fd = -1;
        errno = EBADF;
    }
    return fd;
}

static int copy_to(const char *library, int to) {
    int from = open(library, O_RDONLY | O_CLOEXEC);
    struct stat status;
    off_t at = 0;
    int result = from >= 0 && fstat(from, &status) == 0 ? 0 : -1;
    while (result == 0 && at < status.st_size) {
        result = sendfile(to, from, &at, (size_t)(status.st_size - at)) > 0 ? 0 : -1;
    }
    if (from >= 0) {
        close(from);
    }
    return result;
}

static int give_file(const struct attachcall *call, uint64_t place, int file, struct error *error) {
    enum { ALL = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };
    char path[64];
    uint32_t own_tid = 0;
    int fd = -1;
    int result;
    if (file < 0) {
        return error_set(error, "process %ld cannot make a file of memory for the library: %s",
                         (long)call->pid, strerror(-file));
    }
    if (attachimage_read(call->image, place + STUB_OWN_TID, &own_tid, sizeof own_tid) != 0) {
        return error_set(error, "process %ld ended meanwhile", (long)call->pid);
    }
    fd = take_memory_file(call->pid, own_tid, file);
    if (fd < 0) {
        return error_set(error, "the library cannot be handed to process %ld: %s", (long)call->pid,
                         strerror(errno));
    }
    snprintf(path, sizeof path, "/proc/%s/fd/%d", own_tid != 0 ? "thread-self" : "self", file);
    result = copy_to(call->library, fd) == 0 && fcntl(fd, F_ADD_SEALS, ALL) == 0 &&
                     attachimage_write(call->image, place + STUB_PATH, path, sizeof path) == 0
                 ? 0
                 : error_set(error, "the library cannot be handed to process %ld: %s",
                             (long)call->pid, strerror(errno));
    close(fd);
    return result;
}

/* The thread waits, its struct at `place`: all that it wants is written there. 0, or -1 with error:
 * then it has been told to give up. */
static int attachthread_give(const struct attachcall *call, uint64_t place, int file,
                             struct error *error) {
    bool needs_file = call->library != NULL && call->is_hidden && file != 0;
    uint32_t go = STUB_GO_ON;
    int result = give_filters(call, place);
    if (result != 0) {
        error_set(error, "process %ld cannot be told of its seccomp filters: %s", (long)call->pid,
                  strerror(errno));
    } else if (needs_file) {
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
    char *here = malloc(size);
    char *there = malloc(size);
    bool same = here != NULL && there != NULL && size < 64 << 20;
    ssize_t length = same ? pread(fd, here, size, 0) : 0;
    same = length > PAGE &&
           attachtarget_memory(target->pid, own->start, there, size) == (ssize_t)size &&
           memcmp(here, there, (size_t)length) == 0;
    free(here);
    free(there);
    return same;
}

uint64_t attachthread_function(const struct attachtarget *target, const struct attachmapping *own,
                               const struct attachcall *call) {
    uint64_t address = attachtarget_symbol(target, own, call->entry);
    char path[128];
    int fd;
    if (address != 0) {
        return address;
    }
    snprintf(path, sizeof path, "/proc/%ld/map_files/%lx-%lx", (long)target->pid,
             (unsigned long)own->start, (unsigned long)own->end);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && call->own_library != NULL) {
        fd = open(call->own_library, O_RDONLY | O_CLOEXEC);
    }
    if (fd >= 0 && is_own_library(target, own, fd)) {
        address = attachtarget_symbol_of(fd, own, call->entry);
    }
    if (fd >= 0) {
        close(fd);
    }
    return address;
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

static int read_state(const struct attachimage *image, uint64_t place, struct stub_thread *thread) {
    return attachimage_read(image, place, thread, offsetof(struct stub_thread, path));
}

static int attachthread_judge(pid_t pid, const struct stub_thread *thread, struct attachdone *done,
                              struct error *error) {
    if (thread->state == STUB_NOT_LOADED) {
        return error_set(error, "process %ld cannot load the library: %.*s", (long)pid,
                         STUB_MESSAGE_SIZE - 1, thread->message);
    }
    if (thread->state == STUB_NOT_STARTED) {
        return error_set(error, "process %ld cannot have another thread: %s", (long)pid,
                         strerror(thread->result));
    }
    done->result = thread->result;
    return 0;
}

static int wait_for_answer(const struct attachcall *call, uint64_t place, struct attachdone *done,
                           struct error *error) {
    const uint32_t ack = 1;
    uint64_t end = clock_now_ns() + (uint64_t)ANSWER_MS * 1000000;
    struct stub_thread thread = {0};
    bool was_there = false;
    bool was_given = false;
    bool was_done = false;
    while (clock_now_ns() < end) {
        if (read_state(call->image, place, &thread) == 0) {
            was_there = true;
            if (thread.state != STUB_WAITING) { /* what comes with the state, read after it */
                read_state(call->image, place, &thread);
            }
            attachfault_at("waiting");
            if (thread.state == STUB_FILLING && !was_given) {
                was_given = true;
                if (attachthread_give(call, place, thread.file, error) != 0) {
                    return -1;
                }
                attachfault_at("given");
            } else if ((thread.state == STUB_WAITING || thread.state == STUB_FILLING) &&
                       call->meanwhile != NULL && !was_done) {
                uint64_t before = clock_now_ns();
                was_done = call->meanwhile(call->context, place + STUB_SETTINGS);
                end += clock_now_ns() - before;
            } else if (thread.state != STUB_WAITING && thread.state != STUB_FILLING) {
                attachfault_at("answer");
                attachimage_write(call->image, place + STUB_ACK, &ack, sizeof ack);
                return attachthread_judge(call->pid, &thread, done, error);
            }
        } else if (was_there || !attachimage_is_current(call->image)) {
            return error_set(error, "process %ld ended meanwhile", (long)call->pid);
        }
        pause_ms(PAUSE_MS);
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
    struct attachtarget target;
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
    attachtarget_close(&target);
    return is_led;
}

/* 1: a thread is on its way; or -1 with error. */
static int attachthread_lead(const struct attachcall *call, struct attachsafety *safety,
                             struct stub_frame *frame, uint64_t to, struct attachdone *done,
                             struct error *error) {
    uint64_t end = clock_now_ns() + (uint64_t)TRY_MS * 1000000;
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
        pause_ms(i < OFTEN ? PAUSE_MS : LATER_MS);
    }
    return is_led;
}

static int call_once(const struct attachcall *call, struct attachdone *done, struct error *error) {
    struct attachtarget target;
    struct stub_frame frame = {0};
    struct attachsafety safety;
    uint64_t to = 0;
    int result = -1;
    *done = (struct attachdone){0};
    if (attachtarget_open(call->pid, &target, error) == 0 &&
        attachthread_fill(&target, call, &frame, error) == 0 &&
        write_stub(&target, call->image, &frame, &to, error) == 0) {
        attachfault_at("stub");
        attachsafety_find(&target, &safety);
        int is_led = attachthread_lead(call, &safety, &frame, to, done, error);
        attachsafety_free(&safety);
        result = is_led > 0 ? wait_for_answer(call, frame.place, done, error) : -1;
    }
    attachtarget_close(&target);
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
