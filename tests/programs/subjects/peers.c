/* SPDX-License-Identifier: MIT */
/*
 * peers.c CASE [ARGUMENT...]: what other profilers are tested with, bytehound above all. Which
 * blocks each case takes, and what becomes of them, peers.py knows by their sizes.
 */
#include "memtrace/memtrace.h"
#include "subject.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

enum { PAGE = 4096 };

NOINLINE static void *take(size_t size) {
    void *block = malloc(size);
    keep(block);
    return block;
}

static void nap(long milliseconds) {
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

/* --- every function of the heap once -----------------------------------------------------------
 */

NOINLINE static void every_function(void) {
    void *aligned = NULL;
    void *leaked = malloc(11);
    void *freed = malloc(111); /* the line after the one above */
    void *grown = realloc(malloc(1111), 11111);
    void *zeroed = calloc(111, 1001);
    check(posix_memalign(&aligned, 65536, 1111111) == 0, "posix_memalign");
    void *pages = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    keep(leaked);
    keep(grown);
    keep(zeroed);
    free(freed);
    munmap(pages, PAGE);
}

static int case_basic(char **arguments) {
    (void)arguments;
    every_function();
    return 3;
}

/* --- mappings ----------------------------------------------------------------------------------
 */

NOINLINE static char *map(int pages, int protection, char *at) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at != NULL ? MAP_FIXED : 0);
    char *mapping = mmap(at, (size_t)pages * PAGE, protection, flags, -1, 0);
    check(mapping != MAP_FAILED, "mmap");
    return mapping;
}

static char *map_memory(int pages) {
    return map(pages, PROT_READ | PROT_WRITE, NULL);
}

static void unmap(char *from, int pages) {
    check(munmap(from, (size_t)pages * PAGE) == 0, "munmap");
}

/* Each of another size, so that peers.py knows them. It waits for a line in between: the kernel is
 * asked for its view a second after the start. What it is asked about must not be joined with its
 * neighbours. */
static int case_mappings(char **arguments) {
    char line[1];
    (void)arguments;
    char *untouched = map_memory(127);
    char *touched = map_memory(5);
    char *whole = map_memory(11);
    char *start = map_memory(13);
    char *end = map_memory(17);
    char *middle = map_memory(19);
    char *covered = map_memory(23);
    char *moved = map_memory(29);
    madvise(untouched, 127L * PAGE, MADV_DONTFORK);
    madvise(touched, 5L * PAGE, MADV_DONTDUMP);
    touched[0] = touched[4L * PAGE] = 1;
    int named = prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, touched, 5L * PAGE, "peers") == 0;
    say(named ? "named\n" : "no names\n");
    check(read(0, line, 1) == 0, "end of input");
    unmap(whole, 11);
    unmap(start, 6);
    unmap(end + PAGE, 16);
    unmap(middle + 3L * PAGE, 2);
    map(1, PROT_READ, covered + 22L * PAGE);
    moved = mremap(moved, 29L * PAGE, 31L * PAGE, MREMAP_MAYMOVE);
    check(moved != MAP_FAILED, "mremap");
    unmap(moved, 30);
    return 3;
}

/* --- on and off --------------------------------------------------------------------------------
 */

static volatile int turn; /* whose it is: threads take turns */

static void wait_for_turn(int number) {
    while (turn != number) {
        nap(1);
    }
}

static void *take_in_turns(void *unused) {
    (void)unused;
    wait_for_turn(1);
    take(20001);
    turn++;
    wait_for_turn(3);
    take(20002);
    turn++;
    wait_for_turn(5);
    take(20003);
    turn++;
    return NULL;
}

static void give_turn(void) {
    int mine_again = turn + 2;
    turn++;
    wait_for_turn(mine_again);
}

static void switch_counting(int by_signal, int on) {
    if (by_signal) {
        raise(SIGUSR1);
    } else if (on) {
        memtrace_start();
    } else {
        memtrace_stop();
    }
}

/* Started off: the first of each thread, and what the pause has, stay out. */
static int case_switched(char **arguments) {
    int by_signal = strcmp(arguments[0], "signal") == 0;
    pthread_t thread;
    take(10001);
    pthread_create(&thread, NULL, take_in_turns, NULL);
    give_turn();
    switch_counting(by_signal, 1);
    void *outlives = take(10002);
    give_turn();
    take(10003);
    switch_counting(by_signal, 0);
    free(outlives);
    take(10004);
    switch_counting(by_signal, 1);
    take(10005);
    give_turn();
    pthread_join(thread, NULL);
    return 3;
}

/* --- processes ---------------------------------------------------------------------------------
 */

static void wait_for(pid_t pid) {
    int status;
    check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 3,
          "the child's end");
}

static void *take_once(void *size) {
    take((size_t)size);
    return NULL;
}

/* A child with another thread than the parent's, while that one lives. Says which is the parent. */
static int case_fork(char **arguments) {
    char line[20];
    pthread_t thread;
    (void)arguments;
    snprintf(line, sizeof line, "%d\n", (int)getpid());
    say(line);
    take(10001);
    pthread_create(&thread, NULL, take_in_turns, NULL);
    give_turn();
    take(10002);
    pid_t pid = fork();
    if (pid == 0) {
        take(30001);
        pthread_create(&thread, NULL, take_once, (void *)20011);
        pthread_join(thread, NULL);
        take(30002);
        _exit(3);
    }
    give_turn();
    take(10003);
    give_turn();
    pthread_join(thread, NULL);
    wait_for(pid);
    return 3;
}

/* The child is this program with another case. */
static int case_spawn(char **arguments) {
    take(10001);
    pid_t pid = fork();
    if (pid == 0) {
        execl(arguments[0], arguments[0], "basic", NULL);
        _exit(1);
    }
    wait_for(pid);
    take(10003);
    return 3;
}

static int case_exit(char **arguments) {
    take(11001);
    if (strcmp(arguments[0], "exit") == 0) {
        exit(3);
    } else if (strcmp(arguments[0], "_exit") == 0) {
        _exit(3);
    }
    _Exit(3);
}

/* A block for each line it reads; ends with standard input, or as the line says. */
static int case_steps(char **arguments) {
    char line[1];
    (void)arguments;
    for (size_t size = 10001; take(size), say("took\n"), read(0, line, 1) == 1; size++) {
        if (line[0] == 'k') {
            kill(getpid(), SIGKILL);
        }
    }
    return 3;
}

/* --- ways through the stack --------------------------------------------------------------------
 */

static int case_dlopen(char **arguments) {
    void *library = dlopen(arguments[0], RTLD_NOW);
    void *(*run)(void) = (void *(*)(void))dlsym(library, "plugin_run");
    keep(run());
    return 3;
}

static jmp_buf inner, outer;

NOINLINE static void leave(void) {
    take(70001);
    longjmp(inner, 1);
}

NOINLINE static void between(void) {
    leave();
    say("WRONG: between goes on\n");
}

NOINLINE static void catch_first(void) {
    if (setjmp(inner) == 0) {
        between();
    }
    take(70002);
    longjmp(outer, 1);
}

NOINLINE static void call_through(void) {
    catch_first();
    say("WRONG: call_through goes on\n");
}

NOINLINE static void catch_last(void) {
    if (setjmp(outer) == 0) {
        call_through();
    }
    take(70003);
}

static int case_longjmp(char **arguments) {
    (void)arguments;
    catch_last();
    take(70004);
    return 3;
}

/* Tells its callers by name, as its own backtrace() shows them; linked with -rdynamic. */
NOINLINE void own_backtrace(const char *caller) {
    void *frames[32];
    int count = backtrace(frames, 32);
    char **names = backtrace_symbols(frames, count);
    check(count >= 3 && strstr(names[1], caller) != NULL, "the program's own backtrace");
    for (int i = 0; i < count; i++) {
        check(strstr(names[i], "libmemtrace.so") == NULL && strstr(names[i], "(memtrace_") == NULL,
              "MemTrace is in the program's backtrace");
    }
    free(names);
}

NOINLINE void look_inside(void) {
    take(123456);
    own_backtrace("look_inside");
}

NOINLINE void look_outside(void) {
    look_inside();
    own_backtrace("look_outside");
}

static int case_backtrace(char **arguments) {
    (void)arguments;
    look_outside();
    return 3;
}

/* --- short and long lives ----------------------------------------------------------------------
 */

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* One call site for all three. Returns how long it took. */
NOINLINE static uint64_t live(size_t size, long milliseconds) {
    uint64_t begun = now_ns();
    void *block = take(size);
    if (milliseconds > 0) {
        nap(milliseconds);
    }
    if (milliseconds >= 0) {
        free(block);
    }
    return now_ns() - begun;
}

static int case_lives(char **arguments) {
    static const struct {
        size_t size;
        long milliseconds;
    } lives[] = {{1234, 0}, {1235, 300}, {1236, -1}};
    char line[60];
    (void)arguments;
    for (size_t i = 0; i < 3; i++) {
        uint64_t took_ns = live(lives[i].size, lives[i].milliseconds);
        if (i == 0) {
            snprintf(line, sizeof line, "at most %llu ns\n", (unsigned long long)took_ns);
            say(line);
        }
    }
    keep(realloc(take(2000), 3000));
    nap(250);
    return 3;
}

static void *crossing[3];

static void *first_thread(void *unused) {
    (void)unused;
    nap(20);
    free(crossing[0]);
    crossing[1] = take(1235);
    crossing[2] = take(1236);
    return NULL;
}

static void *second_thread(void *unused) {
    (void)unused;
    nap(20);
    free(crossing[1]);
    return NULL;
}

static int case_crossing(char **arguments) {
    void *(*runs[])(void *) = {first_thread, second_thread};
    (void)arguments;
    crossing[0] = take(1234);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, runs[i], NULL);
        pthread_join(thread, NULL);
    }
    nap(20);
    free(crossing[2]);
    return 3;
}

static const struct {
    const char *name;
    int (*run)(char **arguments);
} cases[] = {
    {"basic", case_basic}, {"mappings", case_mappings},   {"switched", case_switched},
    {"fork", case_fork},   {"spawn", case_spawn},         {"exit", case_exit},
    {"steps", case_steps}, {"dlopen", case_dlopen},       {"longjmp", case_longjmp},
    {"lives", case_lives}, {"backtrace", case_backtrace}, {"crossing", case_crossing},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            return cases[i].run(argv + 2);
        }
    }
    return 98;
}
