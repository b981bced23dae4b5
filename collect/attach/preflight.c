/* SPDX-License-Identifier: MIT */
/* preflight.c: see preflight.h. */
#define _GNU_SOURCE
#include "collect/attach/preflight.h"

#include "analyze/base/scope.h"
#include "analyze/base/thismachine.h"
#include "analyze/read/procfile.h"
#include "analyze/read/region.h"
#include "collect/attach/attachfault.h"
#include "collect/attach/attachtarget.h"
#include "collect/attach/attachthread.h"
#include "collect/clock.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

enum { START_MS = 1000 }; /* for the loader to have mapped the C library */

static int preflight_refuse(pid_t pid, struct error *error, const char *reason) {
    return error_set(error, "process %ld %s", (long)pid, reason);
}

/* --- its state -------------------------------------------------------------------------------- */

static int check_state(pid_t pid, struct error *error) {
    char state[32];
    char tracer[32];
    char group[32];
    if (procfile_status(pid, pid, "State", state, sizeof state) != 0 ||
        procfile_status(pid, pid, "TracerPid", tracer, sizeof tracer) != 0 ||
        procfile_status(pid, pid, "Tgid", group, sizeof group) != 0) {
        return error_set(error, "there is no process %ld", (long)pid);
    }
    if (atol(group) != pid) {
        return error_set(error, "%ld is a thread: its process is %s", (long)pid, group);
    }
    if (pid == getpid()) {
        return preflight_refuse(pid, error, "is this command itself");
    }
    if (state[0] == 'Z' || state[0] == 'X') {
        return preflight_refuse(pid, error,
                                "has ended; its parent has not asked for its status yet");
    }
    if (strcmp(tracer, "0") != 0) {
        return error_set(error,
                         "process %ld is traced by process %s (a debugger, strace): end that first",
                         (long)pid, tracer);
    }
    if (state[0] == 'T') {
        return error_set(error, "process %ld is stopped: first kill -CONT %ld", (long)pid,
                         (long)pid);
    }
    return 0;
}

/* --- our right to it -------------------------------------------------------------------------- */

const char *preflight_yama(int scope) {
    switch (scope) {
    case 0:
        return NULL;
    case 1:
        return "may only be traced by its parent (kernel.yama.ptrace_scope is 1): run this as "
               "root, or sysctl kernel.yama.ptrace_scope=0";
    case 2:
        return "may only be traced by root (kernel.yama.ptrace_scope is 2): run this as root";
    default:
        return "may not be traced by anybody (kernel.yama.ptrace_scope is 3, until the machine is "
               "started anew)";
    }
}

/* Of the real, effective and saved user. */
static bool is_of_user(pid_t pid, uid_t user) {
    char ids[128];
    unsigned real;
    unsigned effective;
    unsigned saved;
    return procfile_status(pid, pid, "Uid", ids, sizeof ids) == 0 &&
           sscanf(ids, "%u %u %u", &real, &effective, &saved) == 3 && real == user &&
           effective == user && saved == user;
}

static const char *why_no_right(pid_t pid) {
    char number[16];
    int scope = atoi(procfile_read(number, sizeof number, "/proc/sys/kernel/yama/ptrace_scope"));
    const char *yama = preflight_yama(scope);
    struct stat status;
    char path[64];
    if (geteuid() != 0 && !is_of_user(pid, geteuid())) {
        return "is another user's: run this as that user, or as root";
    }
    if (yama != NULL) {
        return yama;
    }
    snprintf(path, sizeof path, "/proc/%ld/mem", (long)pid);
    if (geteuid() != 0 && stat(path, &status) == 0 && status.st_uid != geteuid()) {
        return "does not let itself be looked at (PR_SET_DUMPABLE, or it had more rights): run "
               "this as root";
    }
    return "may not be traced from here: in a container, give it SYS_PTRACE (docker run --cap-add "
           "SYS_PTRACE), or run this outside of it";
}

/* The kernel asks the same questions here as where a process is traced. */
static int check_right(pid_t pid, struct error *error) {
    SCOPE_FD int fd = procfile_open(O_RDWR, "/proc/%ld/mem", (long)pid);
    if (fd >= 0) {
        return 0;
    }
    if (errno == ESRCH || errno == ENOENT) {
        return preflight_refuse(pid, error, "ended meanwhile");
    }
    if (errno == EACCES || errno == EPERM) {
        return preflight_refuse(pid, error, why_no_right(pid));
    }
    return error_set(error, "process %ld cannot be looked at: %s", (long)pid, strerror(errno));
}

/* --- what it is ------------------------------------------------------------------------------- */

static int preflight_check_file(pid_t pid, struct error *error) {
    SCOPE_FD int fd = procfile_open(O_RDONLY, "/proc/%ld/exe", (long)pid);
    Elf64_Ehdr header = {0};
    if (fd < 0) {
        return preflight_refuse(
            pid, error, errno == ENOENT ? "is a thread of the kernel" : "hides its program file");
    }
    if (pread(fd, &header, sizeof header, 0) != sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        return preflight_refuse(pid, error, "is no ELF program");
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64) {
        return preflight_refuse(pid, error, "is a 32-bit program; MemTrace knows 64-bit ones only");
    }
    if (header.e_machine != thismachine()) {
        return preflight_refuse(pid, error,
                                "is a program for another machine, which an emulator runs");
    }
    return 0;
}

/* The kernel maps the loader with the program, if it has one. */
static bool has_loader(const struct attachtarget *target, const struct attachimage *image) {
    return attachimage_word(image, AT_BASE) != 0 || attachtarget_object(target, "ld-linux") != NULL;
}

/* The loader of a program that begins just now may not have come to the C library yet. */
static int open_begun(const struct attachimage *image, struct attachtarget *target,
                      struct error *error) {
    uint64_t end = clock_now_ns() + START_MS * MS;
    for (;;) {
        if (attachtarget_open(image->pid, target, error) != 0) {
            return -1;
        }
        if (attachtarget_object(target, "libc.so.6") != NULL || !has_loader(target, image) ||
            attachtarget_object(target, "ld-musl") != NULL || clock_now_ns() > end ||
            !attachimage_is_current(image)) {
            return 0;
        }
        attachtarget_close(target);
        poll(NULL, 0, 1);
    }
}

/* Its C library, and what may stand in its place. */
static int check_libc(const struct attachtarget *target, const struct attachimage *image,
                      struct error *error) {
    static const char *const sanitizers[] = {"libasan.so", "libtsan.so", "liblsan.so",
                                             "libhwasan.so", "libclang_rt."};
    const struct attachmapping *libc = attachtarget_object(target, "libc.so.6");
    if (attachtarget_object(target, "ld-musl") != NULL) {
        return preflight_refuse(target->pid, error,
                                "uses musl as its C library: MemTrace needs glibc 2.35 or newer");
    }
    if (!has_loader(target, image)) {
        return preflight_refuse(
            target->pid, error,
            "is statically linked, so that nothing can be loaded into it: link it with "
            "MemTrace (memtrace_instrument)");
    }
    if (libc == NULL) {
        return preflight_refuse(target->pid, error, "has no C library");
    }
    if (attachtarget_symbol(target, libc, "pthread_create") == 0) {
        return preflight_refuse(
            target->pid, error,
            "uses a C library whose file is not there any more (upgraded since?): start "
            "it anew");
    }
    if (attachtarget_symbol(target, libc, "_dl_find_object") == 0) {
        return preflight_refuse(target->pid, error,
                                "uses a C library older than glibc 2.35, which MemTrace needs");
    }
    for (size_t i = 0; i < sizeof sanitizers / sizeof sanitizers[0]; i++) {
        if (attachtarget_object(target, sanitizers[i]) != NULL) {
            return preflight_refuse(
                target->pid, error,
                "runs under a sanitizer, whose allocator does not let others in");
        }
    }
    return 0;
}

static int check_library(const struct attachtarget *target, enum preflight_purpose purpose,
                         struct error *error) {
    bool is_there = attachtarget_object(target, "libmemtrace.so") != NULL;
    struct memtrace_header header;
    struct region region;
    if (purpose == PREFLIGHT_DETACH && !is_there) {
        return preflight_refuse(target->pid, error, "is not profiled: nothing to detach from");
    }
    /* It may be there from the last time. */
    if (purpose == PREFLIGHT_ATTACH && is_there &&
        region_find_header(target->pid, &region, &header) &&
        header.state == MEMTRACE_STATE_RUNNING) {
        return error_set(error, "process %ld has MemTrace in it already: memtrace report %ld",
                         (long)target->pid, (long)target->pid);
    }
    return 0;
}

/* --- what surrounds it ------------------------------------------------------------------------ */

/* Whether what it has there, below /proc/PID, is the same as this of ours. */
static bool has_same(pid_t pid, const char *below, const char *path, const char *ours) {
    char its[PATH_MAX];
    struct stat own;
    struct stat other;
    snprintf(its, sizeof its, "/proc/%ld/%s%s", (long)pid, below, path);
    return stat(ours, &own) == 0 && stat(its, &other) == 0 && own.st_ino == other.st_ino &&
           own.st_dev == other.st_dev;
}

/* All filters of all threads, run over all that is to be called there. */
static int check_filters(pid_t pid, enum preflight_purpose purpose, bool is_forced,
                         struct preflight *found, struct error *error) {
    unsigned uses = ATTACHFILTERS_ENTER;
    const char *call;
    switch (attachfilters_read(pid, &found->filters, error)) {
    case ATTACHFILTERS_NONE:
        return 0;
    case ATTACHFILTERS_READ:
        if (purpose == PREFLIGHT_CENSUS) {
            return preflight_refuse(
                pid, error, "has a seccomp filter: no copy of it is made, which --census needs");
        }
        break;
    case ATTACHFILTERS_STRICT:
        return preflight_refuse(
            pid, error,
            "has a thread in seccomp's strict mode, which may do nothing but read, write "
            "and end: start it with memtrace run");
    case ATTACHFILTERS_UNKNOWN:
        return is_forced
                   ? 0
                   : preflight_refuse(
                         pid, error,
                         "has a seccomp filter that only root may read (CAP_SYS_ADMIN, and no "
                         "filter of one's own): run this as root, or with --force, at the risk "
                         "that a system call of ours ends it");
    case ATTACHFILTERS_FAILED: {
        char reason[sizeof error->message];
        snprintf(reason, sizeof reason, "%s", error->message);
        return preflight_refuse(pid, error, reason);
    }
    default:
        break;
    }
    if (purpose == PREFLIGHT_ATTACH) {
        uses |= ATTACHFILTERS_LOAD | (found->is_hidden ? (unsigned)ATTACHFILTERS_FILE : 0) |
                (found->is_outside ? 0 : (unsigned)ATTACHFILTERS_WRITE);
    }
    call = attachfilters_obstacle(&found->filters, uses);
    return call == NULL ? 0
           : purpose == PREFLIGHT_DETACH
               ? error_set(error,
                           "process %ld has a seccomp filter that blocks %s, which is needed to "
                           "detach from it: its profile is written when it ends",
                           (long)pid, call)
               : error_set(
                     error,
                     "process %ld has a seccomp filter that blocks %s, which MemTrace needs: allow "
                     "that call, or start it with memtrace run, which sees the filter being set",
                     (long)pid, call);
}

static int check_places(pid_t pid, const char *library, struct preflight *found,
                        struct error *error) {
    char path[64];
    struct statfs proc;
    found->is_outside = !has_same(pid, "ns/pid", "", "/proc/self/ns/pid") ||
                        !has_same(pid, "ns/mnt", "", "/proc/self/ns/mnt") ||
                        !has_same(pid, "root", "/.", "/") || !is_of_user(pid, geteuid());
    found->is_hidden =
        library != NULL && (found->is_outside || !has_same(pid, "root", library, library));
    /* By /proc the program opens the library that it is handed. */
    snprintf(path, sizeof path, "/proc/%ld/root/proc", (long)pid);
    return !found->is_hidden || (statfs(path, &proc) == 0 && proc.f_type == PROC_SUPER_MAGIC)
               ? 0
               : preflight_refuse(pid, error,
                                  "sees neither MemTrace's library nor /proc, by which it could be "
                                  "handed to it: mount /proc where it runs");
}

static int check_program(const struct attachimage *image, enum preflight_purpose purpose,
                         struct error *error) {
    SCOPE(attachtarget_close) struct attachtarget target = {0};
    pid_t pid = image->pid;
    if (check_state(pid, error) != 0 || check_right(pid, error) != 0 ||
        preflight_check_file(pid, error) != 0) {
        return -1;
    }
    /* What was looked up so far is about the process's program, which has begun. */
    if (image->is_lent) {
        return preflight_refuse(
            pid, error, "runs in its parent's memory until it calls exec (vfork): try again then");
    }
    if (image->memory < 0) {
        return preflight_refuse(pid, error, "cannot be looked at: try again");
    }
    return open_begun(image, &target, error) == 0 && check_library(&target, purpose, error) == 0
               ? check_libc(&target, image, error)
               : -1;
}

int preflight_check(const struct attachimage *image, enum preflight_purpose purpose,
                    const char *library, bool is_forced, struct preflight *found,
                    struct error *error) {
    pid_t pid = image->pid;
    char features[64];
    int result = -1;
    *found = (struct preflight){0};
    attachfault_at("opened");
    if (!attachthread_is_possible()) {
        error_set(error,
                  "process %ld cannot be attached to on this machine, so far only on x86-64 "
                  "and AArch64: start it with memtrace run",
                  (long)pid);
    } else if (check_program(image, purpose, error) == 0) {
        result = purpose != PREFLIGHT_DETACH &&
                         procfile_status(pid, pid, "x86_Thread_features", features,
                                         sizeof features) == 0 &&
                         strstr(features, "shstk") != NULL
                     ? preflight_refuse(pid, error,
                                        "has a hardware shadow stack: start it with "
                                        "GLIBC_TUNABLES=glibc.cpu.x86_shstk=off")
                 : check_places(pid, library, found, error) == 0
                     ? check_filters(pid, purpose, is_forced, found, error)
                     : -1;
    }
    return result == 0 ? 0 : attachimage_explain(image, error);
}

void preflight_free(struct preflight *found) {
    attachfilters_free(&found->filters);
}
