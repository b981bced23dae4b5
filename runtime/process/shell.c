/* SPDX-License-Identifier: MIT */
/*
 * shell.c: system and popen, whose shells get an environment of ours (exec_environment.h) without a
 * change of the program's own: other threads read and set it meanwhile. So they are done here, as
 * the C library does them, whose own functions are behind: where the program has variables of ours
 * to hand on. Which of both does them is the same for a process's whole life.
 */
#define _GNU_SOURCE
#include "runtime/base/compiler.h"
#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"
#include "runtime/entry/real.h"
#include "runtime/libc/libc.h"
#include "runtime/process/exec_environment.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHELL "/bin/sh"

/* --- a lock that a forked child finds open ---------------------------------------------------- */

/* The process, shifted by one, and whether a thread of it is in. */
struct owned_lock {
    uint32_t word;
};

enum lock_state { LOCK_LATE, LOCK_TAKEN, LOCK_NEW }; /* NEW: the first in this process */

/* LATE: whoever holds it was interrupted by this thread's own handler, or does not run: after a
 * second we go on without. */
static enum lock_state lock_take(struct owned_lock *lock) {
    enum { TRIES = 20000, PAUSE_NS = 50000 };
    uint32_t mine = sys_getpid() << 1;
    for (int i = 0; i < TRIES; i++) {
        uint32_t old = LOAD_RELAXED(&lock->word);
        if (old != (mine | 1) && __atomic_compare_exchange_n(&lock->word, &old, mine | 1, 0,
                                                             __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return old == mine ? LOCK_TAKEN : LOCK_NEW;
        }
        sys_sleep_ns(PAUSE_NS);
    }
    return LOCK_LATE;
}

static void lock_release(struct owned_lock *lock, enum lock_state state) {
    if (state != LOCK_LATE) {
        STORE_RELEASE(&lock->word, sys_getpid() << 1);
    }
}

/* --- the shell -------------------------------------------------------------------------------- */

/* 0 or an errno, as posix_spawn. Where another thread sets variables meanwhile the array may be
 * freed while it is read, and is read anew. */
static int start_shell(pid_t *pid, const char *command, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes) {
    enum { TRIES = 10 };
    char *plain[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    char *ended[] = {(char *)"sh", (char *)"-c", (char *)"--", (char *)command, NULL};
    char **argv = libc_ends_shell_options() ? ended : plain;
    struct exec_call call = {.program = SHELL};
    char *const *environment = NULL;
    char *room = NULL;
    size_t size = 0;
    int result;
    for (int i = 0; i < TRIES && (i == 0 || call.envp != LOAD_ACQUIRE(&environ)); i++) {
        if (room != NULL) {
            sys_unmap(room, size);
        }
        call.envp = LOAD_ACQUIRE(&environ);
        size = exec_room(&call);
        room = size != 0 ? sys_map(size) : NULL;
        environment = exec_environment(&call, room, size);
    }
    result = REAL(posix_spawn)(pid, SHELL, actions, attributes, argv, environment);
    if (result == E2BIG && environment != call.envp) {
        result = REAL(posix_spawn)(pid, SHELL, actions, attributes, argv, call.envp);
    }
    if (room != NULL) {
        sys_unmap(room, size);
    }
    return result;
}

/* Whether what is behind ours is the C library's: what another library has there is the program's
 * to have. */
static int is_libcs(const void *function) {
    struct libc_object object;
    struct libc_object libc;
    return libc_find_object((uintptr_t)function, &object) == 0 &&
           libc_find_object((uintptr_t)getauxval, &libc) == 0 && object.start == libc.start;
}

/* --- system ----------------------------------------------------------------------------------- */

/* SIGINT and SIGQUIT are ignored while a thread is inside, and are then what they were. */
static struct {
    struct owned_lock lock;
    unsigned users;
    struct sigaction interrupt, quit;
} ignored;

static void ignore_signals(void) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    enum lock_state state = lock_take(&ignored.lock);
    if (state == LOCK_NEW) {
        ignored.users = 0;
    }
    if (ignored.users++ == 0) {
        real.sigaction(SIGINT, &ignore, &ignored.interrupt);
        real.sigaction(SIGQUIT, &ignore, &ignored.quit);
    }
    lock_release(&ignored.lock, state);
}

static void stop_ignoring(void) {
    enum lock_state state = lock_take(&ignored.lock);
    if (ignored.users != 0 && --ignored.users == 0) {
        real.sigaction(SIGINT, &ignored.interrupt, NULL);
        real.sigaction(SIGQUIT, &ignored.quit, NULL);
    }
    lock_release(&ignored.lock, state);
}

/* The thread is cancelled while it waits. */
static void end_shell(void *argument) {
    int status;
    pid_t pid = *(pid_t *)argument;
    sys_kill_child(pid);
    sys_wait(pid, &status);
    stop_ignoring();
}

/* A cancellation point. The status; -1: another has taken it. */
static int wait_for_shell(pid_t pid) {
    int status = -1;
    pid_t ended;
    pthread_cleanup_push(end_shell, &pid);
    do {
        ended = REAL(waitpid)(pid, &status, 0);
    } while (ended == -1 && errno == EINTR);
    status = ended == pid ? status : -1;
    pthread_cleanup_pop(0);
    return status;
}

static void set_attributes(posix_spawnattr_t *attributes, const sigset_t *mask) {
    sigset_t defaults;
    sigemptyset(&defaults);
    if (ignored.interrupt.sa_handler != SIG_IGN) {
        sigaddset(&defaults, SIGINT);
    }
    if (ignored.quit.sa_handler != SIG_IGN) {
        sigaddset(&defaults, SIGQUIT);
    }
    posix_spawnattr_init(attributes);
    posix_spawnattr_setsigmask(attributes, mask);
    posix_spawnattr_setsigdefault(attributes, &defaults);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

static int run_shell(const char *command) {
    enum { CANNOT_RUN = 127 << 8 }; /* as a shell that ends so */
    struct sys_signals old = sys_block_signal(SIGCHLD);
    posix_spawnattr_t attributes;
    sigset_t mask;
    pid_t pid;
    int status = CANNOT_RUN;
    int error;
    __builtin_memset(&mask, 0, sizeof mask);
    __builtin_memcpy(&mask, &old, sizeof old);
    ignore_signals();
    set_attributes(&attributes, &mask);
    error = start_shell(&pid, command, NULL, &attributes);
    posix_spawnattr_destroy(&attributes);
    if (error == 0) {
        status = wait_for_shell(pid);
    }
    stop_ignoring();
    sys_restore_signals(old);
    if (error != 0) {
        errno = error;
    }
    return status;
}

PUBLIC int system(const char *command) {
    if (!exec_has_variables() || !is_libcs((const void *)REAL(system))) {
        return REAL(system)(command);
    }
    return command != NULL ? run_shell(command) : run_shell("exit 0") == 0;
}

/* --- popen ------------------------------------------------------------------------------------ */

struct stream {
    FILE *file; /* NULL: free */
    pid_t pid;
    int fd;
    dev_t device; /* of its pipe: the program may have closed it in another way */
    ino_t inode;
};

enum { STREAMS_FIRST = 32 };

/* They are few; a mapping where they are many. */
static struct {
    struct owned_lock lock;
    struct stream first[STREAMS_FIRST];
    struct stream *all;
    size_t capacity;
    size_t used; /* read without the lock, by fclose */
} streams = {.all = streams.first, .capacity = STREAMS_FIRST};

/* A place for one more; NULL: there is no memory for it. */
static struct stream *free_stream(void) {
    size_t size = streams.capacity * sizeof *streams.all;
    struct stream *more;
    struct stream *old;
    for (size_t i = 0; i < streams.capacity; i++) {
        if (streams.all[i].file == NULL) {
            return streams.all + i;
        }
    }
    more = sys_map(2 * size);
    if (more == NULL) {
        return NULL;
    }
    __builtin_memcpy(more, streams.all, size);
    own_maps_keep(more); /* a forked child has the same streams */
    old = streams.all;
    streams.all = more;
    streams.capacity *= 2;
    if (old != streams.first) {
        sys_unmap(old, size);
    }
    return more + size / sizeof *more;
}

/* What earlier calls have opened is closed in the new shell. */
static int close_others(posix_spawn_file_actions_t *actions, int except) {
    struct stat status;
    int error = 0;
    for (size_t i = 0; i < streams.capacity && error == 0; i++) {
        const struct stream *stream = streams.all + i;
        if (stream->file != NULL && stream->fd != except && sys_fstat(stream->fd, &status) == 0 &&
            status.st_dev == stream->device && status.st_ino == stream->inode) {
            error = posix_spawn_file_actions_addclose(actions, stream->fd);
        }
    }
    return error;
}

/* `ends`: ours, and the shell's, which gets it as its descriptor `as`. 0 or an errno. */
static int start_piped(struct stream *stream, const char *command, const int ends[2], int as) {
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawn_file_actions_adddup2(&actions, ends[1], as);
    error = error != 0 ? error : close_others(&actions, as);
    error = error != 0 ? error : start_shell(&stream->pid, command, &actions, NULL);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

struct mode {
    int reads, writes, closes_on_exec;
};

/* As glibc takes it: letters in any order. 1, or 0. */
static int read_mode(const char *type, struct mode *mode) {
    *mode = (struct mode){0};
    for (; *type != '\0'; type++) {
        mode->reads |= *type == 'r';
        mode->writes |= *type == 'w';
        mode->closes_on_exec |= *type == 'e';
        if (*type != 'r' && *type != 'w' && *type != 'e') {
            return 0;
        }
    }
    return mode->reads != mode->writes;
}

/* The shell's end is never the descriptor that the shell is to have it as: making it that one would
 * leave it closed on exec. -1: no more descriptors. */
static int open_pipe(int ends[2], const struct mode *mode, int as) {
    int both[2];
    int moved;
    long result = sys_pipe(both);
    if (result < 0) {
        errno = (int)-result;
        return -1;
    }
    ends[0] = both[mode->reads ? 0 : 1];
    ends[1] = both[mode->reads ? 1 : 0];
    if (ends[1] == as) {
        moved = (int)sys_dup_high(as, 0);
        sys_close(as);
        if (moved < 0) {
            sys_close(ends[0]);
            errno = -moved;
            return -1;
        }
        ends[1] = moved;
    }
    return 0;
}

/* With the lock. */
static FILE *open_stream(const char *command, const struct mode *mode) {
    int as = mode->reads ? STDOUT_FILENO : STDIN_FILENO;
    struct stream *stream = free_stream();
    struct stat status;
    int ends[2];
    FILE *file;
    int error;
    if (stream == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    if (open_pipe(ends, mode, as) != 0) {
        return NULL;
    }
    file = REAL(fdopen)(ends[0], mode->reads ? "r" : "w");
    error = file != NULL && sys_fstat(ends[0], &status) == 0
                ? start_piped(stream, command, ends, as)
                : ENOMEM;
    sys_close(ends[1]);
    if (error != 0) {
        if (file != NULL) {
            REAL(fclose)(file);
        } else {
            sys_close(ends[0]);
        }
        errno = libc_popen_error(error);
        return NULL;
    }
    if (!mode->closes_on_exec) {
        sys_keep_on_exec(ends[0]);
    }
    stream->file = file;
    stream->fd = ends[0];
    stream->device = status.st_dev;
    stream->inode = status.st_ino;
    STORE_RELAXED(&streams.used, streams.used + 1);
    return file;
}

PUBLIC FILE *popen(const char *command, const char *type) {
    enum lock_state state;
    struct mode mode;
    FILE *file;
    if (!exec_has_variables() || !is_libcs((const void *)REAL(popen)) || !read_mode(type, &mode)) {
        return REAL(popen)(command, type);
    }
    state = lock_take(&streams.lock);
    file = open_stream(command, &mode);
    lock_release(&streams.lock, state);
    return file;
}

/* The shell of this stream, which is no longer in the list; 0: it is none of ours. */
static pid_t take_stream(FILE *file) {
    enum lock_state state = lock_take(&streams.lock);
    pid_t pid = 0;
    for (size_t i = 0; i < streams.capacity && pid == 0; i++) {
        if (streams.all[i].file == file) {
            pid = streams.all[i].pid;
            streams.all[i].file = NULL;
            STORE_RELAXED(&streams.used, streams.used - 1);
        }
    }
    lock_release(&streams.lock, state);
    return pid;
}

static int shell_close_stream(FILE *file, pid_t pid) {
    int status = 0;
    int closed = REAL(fclose)(file);
    long ended = sys_wait(pid, &status);
    if (ended < 0) {
        errno = (int)-ended;
        return -1;
    }
    return status != 0 ? status : closed;
}

PUBLIC int pclose(FILE *file) {
    pid_t pid = LOAD_RELAXED(&streams.used) != 0 && file != NULL ? take_stream(file) : 0;
    return pid != 0 ? shell_close_stream(file, pid) : REAL(pclose)(file);
}

/* Of a stream of popen's it is the same in glibc; where it does not wait the stream is forgotten.
 */
PUBLIC int fclose(FILE *file) {
    pid_t pid = LOAD_RELAXED(&streams.used) != 0 && file != NULL ? take_stream(file) : 0;
    return pid != 0 && libc_waits_at_fclose() ? shell_close_stream(file, pid) : REAL(fclose)(file);
}
