/* SPDX-License-Identifier: MIT */
/*
 * process.c: the ways a process ends without exit handlers, or becomes another program, and fork.
 * A forked child finds its gates wiped (thread.h) and needs nothing here, but two: where a signal
 * handler forks that interrupted the runtime, the child goes on inside it too; and an emulator may
 * have wiped nothing.
 */
#define _GNU_SOURCE
#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/entry/child.h"
#include "runtime/entry/event.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"
#include "runtime/entry/thread.h"
#include "runtime/process/exec_environment.h"

#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

/* Looked up with the rest, at the start, not in each child. */
PUBLIC __attribute__((noreturn)) void _exit(int status) {
    runtime_finish(MEMTRACE_STATE_ENDED);
    real_ensure();
    real._exit(status);
    __builtin_unreachable();
}

PUBLIC __attribute__((noreturn)) void _Exit(int status) {
    runtime_finish(MEMTRACE_STATE_ENDED);
    REAL(_Exit)(status);
    __builtin_unreachable();
}

static pid_t fork_by(pid_t (*function)(void), struct frame caller) {
    int inside = thread_before_fork(caller);
    pid_t child = function();
    if (child == 0) {
        child_wipe();
    }
    if (inside) {
        thread_after_fork(child == 0);
    }
    return child;
}

PUBLIC pid_t fork(void) {
    real_ensure();
    return fork_by(real.fork, EVENT_CALLER());
}

PUBLIC pid_t _Fork(void) {
    real_ensure();
    return fork_by(real._Fork, EVENT_CALLER());
}

/* What the environment takes: mapped, since a stack may be small (a handler's, a thread's with a
 * large environment); but in a child of vfork, where it would stay, on the stack. */
static char *map_room(size_t size) {
    return size == 0 || exec_is_vfork_child() ? NULL : sys_map(size);
}

static void unmap_room(char *mapped, size_t size) {
    int saved = errno;
    if (mapped != NULL) {
        sys_unmap(mapped, size);
    }
    errno = saved;
}

/* Runs an exec, in which `environment_` is what the program is to get, between notes to the
 * profile: it comes back only if it failed. Where only ours makes it too long, the program starts
 * without. */
#define EXEC(path, by_name, argv, envp, call)                                                      \
    ({                                                                                             \
        struct exec_call call_ = {path, argv, envp, by_name, 1};                                   \
        size_t size_ = exec_room(&call_);                                                          \
        char *mapped_ = map_room(size_);                                                           \
        char *room_ = mapped_ != NULL || size_ == 0 ? mapped_ : __builtin_alloca(size_);           \
        char *const *environment_ = exec_environment(&call_, room_, size_);                        \
        int noted_ = runtime_before_exec((by_name) ? NULL : (path));                               \
        int result_ = call;                                                                        \
        if (environment_ != call_.envp && errno == E2BIG) {                                        \
            environment_ = call_.envp;                                                             \
            result_ = call;                                                                        \
        }                                                                                          \
        if (noted_) {                                                                              \
            runtime_after_failed_exec();                                                           \
        }                                                                                          \
        unmap_room(mapped_, size_);                                                                \
        result_;                                                                                   \
    })

/* By names of ours: attached, a call of execve() here is the C library's. */
static int exec_path(const char *path, char *const argv[], char *const envp[]) {
    return EXEC(path, 0, argv, envp, REAL(execve)(path, argv, environment_));
}

static int exec_file(const char *file, char *const argv[], char *const envp[]) {
    return EXEC(file, 1, argv, envp, REAL(execvpe)(file, argv, environment_));
}

PUBLIC int execve(const char *path, char *const argv[], char *const envp[]) {
    return exec_path(path, argv, envp);
}

PUBLIC int execv(const char *path, char *const argv[]) {
    return exec_path(path, argv, environ);
}

PUBLIC int execvpe(const char *file, char *const argv[], char *const envp[]) {
    return exec_file(file, argv, envp);
}

PUBLIC int execvp(const char *file, char *const argv[]) {
    return exec_file(file, argv, environ);
}

PUBLIC int fexecve(int fd, char *const argv[], char *const envp[]) {
    return EXEC(NULL, 0, NULL, envp, REAL(fexecve)(fd, argv, environment_));
}

PUBLIC int execveat(int folder, const char *path, char *const argv[], char *const envp[],
                    int flags) {
    return EXEC(NULL, 0, NULL, envp, REAL(execveat)(folder, path, argv, environment_, flags));
}

#define SPAWN(name, by_name)                                                                       \
    struct exec_call call = {path, argv, envp, by_name, 0};                                        \
    size_t size = exec_room(&call);                                                                \
    char *mapped = map_room(size);                                                                 \
    char *room = mapped != NULL || size == 0 ? mapped : __builtin_alloca(size);                    \
    char *const *environment = exec_environment(&call, room, size);                                \
    int result = REAL(name)(pid, path, actions, attributes, argv, environment);                    \
    if (result == E2BIG && environment != envp) {                                                  \
        result = REAL(name)(pid, path, actions, attributes, argv, envp);                           \
    }                                                                                              \
    unmap_room(mapped, size);                                                                      \
    return result;

PUBLIC int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const argv[],
                       char *const envp[]){SPAWN(posix_spawn, 0)}

PUBLIC
    int posix_spawnp(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                     const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
    SPAWN(posix_spawnp, 1)
}

/* The list of arguments, NULL at its end, becomes an array on the caller's stack, as in libc. */
static size_t count_arguments(va_list list) {
    size_t count = 1;
    while (va_arg(list, char *) != NULL) {
        count++;
    }
    return count;
}

static void take_arguments(const char *first, va_list list, char **argv, size_t count) {
    argv[0] = (char *)first;
    for (size_t i = 1; i <= count; i++) {
        argv[i] = va_arg(list, char *);
    }
}

#define COLLECT_ARGUMENTS(first, list)                                                             \
    va_list list;                                                                                  \
    va_start(list, first);                                                                         \
    size_t count = count_arguments(list);                                                          \
    va_end(list);                                                                                  \
    char *argv[count + 1];                                                                         \
    argv[count] = NULL;                                                                            \
    va_start(list, first);                                                                         \
    take_arguments(first, list, argv, count);

PUBLIC int execl(const char *path, const char *argument, ...) {
    COLLECT_ARGUMENTS(argument, list)
    va_end(list);
    return exec_path(path, argv, environ);
}

PUBLIC int execlp(const char *file, const char *argument, ...) {
    COLLECT_ARGUMENTS(argument, list)
    va_end(list);
    return exec_file(file, argv, environ);
}

PUBLIC int execle(const char *path, const char *argument, ...) {
    COLLECT_ARGUMENTS(argument, list)
    char *const *envp = va_arg(list, char *const *);
    va_end(list);
    return exec_path(path, argv, envp);
}
