/* SPDX-License-Identifier: MIT */
/*
 * control.c: a program that is switched on and off, limited and followed while it runs. `control
 * NAME` runs one case and prints what is wrong.
 */
#include "memtrace/memtrace.h"
#include "subject.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;
NOINLINE static void *take(size_t size) {
    void *block = malloc(size);
    keep(block);
    return block;
}

/* What `toggle_on` and `toggle_off` do is told by the case: a signal or the API. */
static void by_signal(void) {
    raise(SIGUSR1);
}

static void by_api(void) {
    (memtrace_is_active() ? memtrace_stop : (void (*)(void))memtrace_start)();
}

/* Off, on, off, on, each with a block; blocks are freed in the other state, too. */
static void toggles(void (*toggle)(void), int on_at_start) {
    if (on_at_start) {
        toggle();
    }
    void *off = take(70001);
    toggle();
    void *on = take(70003);
    void *resized = take(70005);
    toggle();
    free(on);                          /* known: counted, though off */
    free(off);                         /* unknown */
    resized = realloc(resized, 70007); /* known: its end is counted; what it became stays out */
    void *again = take(70009);
    toggle();
    free(again);   /* unknown */
    free(resized); /* unknown */
    take(70011);
}

static void case_off_signal(void) {
    toggles(by_signal, 0);
}

static void case_off_api(void) {
    toggles(by_api, 0);
}

static void case_on_signal(void) {
    toggles(by_signal, 1);
}

/* A thread that never stops allocating, and the switch: what it has from then on stays out. */
static volatile int stop;
static void *allocate_always(void *unused) {
    (void)unused;
    while (!stop) {
        free(take(70021));
    }
    return NULL;
}

static void case_threads(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, allocate_always, NULL);
    }
    for (int i = 0; i < 200; i++) {
        kill(getpid(), SIGUSR1);
        usleep(500);
    }
    stop = 1;
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* Threads that are known and idle while counting is switched off: none of their next blocks counts.
 */
static pthread_barrier_t barrier;
static void *allocate_twice(void *unused) {
    (void)unused;
    take(70041);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* off by now */
    take(70043);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* on again */
    take(70045);
    return NULL;
}

static void case_idle(void) {
    pthread_t threads[8];
    pthread_barrier_init(&barrier, NULL, 9);
    for (int i = 0; i < 8; i++) {
        pthread_create(&threads[i], NULL, allocate_twice, NULL);
    }
    for (int i = 0; i < 2; i++) {
        pthread_barrier_wait(&barrier);
        by_signal();
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* From outside of a range of sizes into it, within it, and out of it again. */
static void case_resize(void) {
    void *block = take(70031);
    block = realloc(block, 70051);
    block = realloc(block, 70053);
    block = realloc(block, 70071);
    free(block);
}

/* Signals that come at any moment, also while this thread is counted. */
static void case_timer(void) {
    struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (time_t end = clock() + CLOCKS_PER_SEC / 8; clock() < end;) {
        for (int i = 0; i < 1000; i++) {
            free(take(70031));
        }
    }
    setitimer(ITIMER_REAL, &never, NULL);
}

/* --- the program's own handlers --------------------------------------------------------------- */

static int calls;
static int info_seen;
static void count_call(int number) {
    calls += number == SIGUSR1;
}
static void count_info(int number, siginfo_t *info, void *context) {
    calls += number == SIGUSR1;
    info_seen = info->si_pid == getpid() && context != NULL;
}

/* What the program set is what it is shown, whoever stands in between; and it is called. */
static void case_handlers(void) {
    struct sigaction action = {0}, old;
    check(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == SIG_DFL && old.sa_flags == 0,
          "nothing is set at first");
    const int ours = SA_SIGINFO | SA_RESTART | SA_NODEFER | SA_ONSTACK | (int)SA_RESETHAND;
    check(signal(SIGUSR1, count_call) == SIG_DFL, "signal() returns what was");
    raise(SIGUSR1);
    check(calls == 1, "a plain handler is called");
    check(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == count_call &&
              (old.sa_flags & ours) == SA_RESTART && sigismember(&old.sa_mask, SIGUSR1),
          "signal() is shown as what it is");
    action.sa_sigaction = count_info;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaddset(&action.sa_mask, SIGUSR2);
    check(sigaction(SIGUSR1, &action, &old) == 0 && old.sa_handler == count_call, "replaced");
    raise(SIGUSR1);
    check(calls == 2 && info_seen, "a handler with three arguments is called");
    check(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_sigaction == count_info &&
              (old.sa_flags & ours) == (SA_SIGINFO | SA_NODEFER) &&
              sigismember(&old.sa_mask, SIGUSR2),
          "flags and mask are shown as set");
    action.sa_handler = count_call;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    check(calls == 3, "called once");
    check(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == SIG_DFL, "and then no more");
    check(signal(SIGUSR1, SIG_IGN) == SIG_DFL, "ignored");
    raise(SIGUSR1);
    check(signal(SIGUSR1, SIG_ERR) == SIG_IGN || errno == EINVAL, "an odd one");
    check(signal(SIGKILL, count_call) == SIG_ERR && errno == EINVAL, "not for SIGKILL");
    check(sigaction(1000, NULL, &old) == -1 && errno == EINVAL, "no such signal");
    check(calls == 3, "no call is too many");
    signal(SIGUSR2, sigset(SIGUSR2, count_call)); /* by an old way, and back again */
    check(sigaction(SIGUSR2, NULL, &old) == 0 && old.sa_handler == SIG_DFL, "given back");
    const char *signals = getenv("MEMTRACE_SIGNALS");
    if (signals != NULL && strstr(signals, "USR2") != NULL) {
        raise(SIGUSR2);
    }
}

/* A forked child has its parent's handlers; what a vforked one sets before exec is its own. */
static void case_handlers_of_children(void) {
    struct sigaction old;
    int status = 0;
    signal(SIGUSR1, count_call);
    pid_t child = fork();
    if (child == 0) {
        raise(SIGUSR1);
        check(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == count_call, "inherited");
        _exit(calls);
    }
    check(waitpid(child, &status, 0) == child && status == 1 << 8, "called in the child");
    child = vfork();
    if (child == 0) {
        int same = signal(SIGUSR1, SIG_DFL) == count_call && signal(SIGUSR1, SIG_IGN) == SIG_DFL;
        _exit(same);
    }
    check(waitpid(child, &status, 0) == child && status == 1 << 8, "its own in a vforked child");
    raise(SIGUSR1);
    check(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == count_call && calls == 1,
          "the parent's is still there");
}

/* --- children --------------------------------------------------------------------------------- */

static void use(size_t size) {
    free(take(size));
    take(size);
}

static void wait_for(pid_t child) {
    int status = 0;
    check(waitpid(child, &status, 0) == child && status == 3 << 8, "the child's status");
}

static void case_child(void) {
    use(72001);
}

/* $AGAIN is this program by another name. */
static void case_children(void) {
    const char *other = getenv("AGAIN");
    char *const again[] = {(char *)other, (char *)"child", NULL};
    pid_t child;
    use(72003);
    child = fork();
    if (child == 0) {
        use(72005);
        _exit(3);
    }
    wait_for(child);
    child = vfork();
    if (child == 0) {
        execv(other, again);
        _exit(9);
    }
    wait_for(child);
    check(posix_spawn(&child, other, NULL, NULL, again, environ) == 0, "spawn");
    wait_for(child);
    char command[5000];
    snprintf(command, sizeof command, "%s child | %s child", other, other);
    check(system(command) == 3 << 8, "a pipeline");
    execv(other, again);
}

/* --- memory ----------------------------------------------------------------------------------- */

static int is_zero(const char *block, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (block[i] != 0) {
            return 0;
        }
    }
    return 1;
}

/* Blocks that were full of something come back empty. */
static void case_zero(void) {
    static const size_t sizes[] = {1, 24, 100, 1000, 5000, 200000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int turn = 0; turn < 3; turn++) {
            size_t size = sizes[i];
            char *block = (char *)take(size);
            check(is_zero(block, size), "malloc");
            memset(block, 'x', size);
            block = (char *)realloc(block, size * 3);
            check(is_zero(block + size, size * 2), "what realloc adds");
            memset(block, 'x', size * 3);
            free(block);
            void *aligned = NULL;
            check(posix_memalign(&aligned, 256, size) == 0 && is_zero(aligned, size), "aligned");
            memset(aligned, 'x', size);
            free(aligned);
            aligned = aligned_alloc(64, (size + 63) / 64 * 64);
            check(is_zero(aligned, size), "aligned_alloc");
            memset(aligned, 'x', size);
            free(aligned);
        }
    }
}

/* 2 MiB a step, touched; goes on until $FILE is there, at most 64 MiB. */
static void case_grow(void) {
    for (int i = 0; i < 1000 && access(getenv("FILE"), F_OK) != 0; i++) {
        if (i < 32) {
            memset(take(2 << 20), 1, 2 << 20);
        }
        usleep(20000);
    }
}

int main(int argc, char **argv) {
    static const struct subject_case cases[] = {
        CASE(off_signal), CASE(off_api),  CASE(on_signal),
        CASE(threads),    CASE(handlers), CASE(handlers_of_children),
        CASE(child),      CASE(timer),    CASE(idle),
        CASE(resize),     CASE(children), CASE(zero),
        CASE(grow)};
    const struct subject_case *found = FIND_CASE(cases, argc, argv);
    if (found == NULL) {
        return 98;
    }
    found->run();
    if (strcmp(found->name, "child") != 0) {
        say("done\n");
    }
    return 3;
}
