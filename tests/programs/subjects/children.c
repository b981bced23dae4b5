/* SPDX-License-Identifier: MIT */
/*
 * children.c: what forked children do, known to the byte. `children CASE` runs one case;
 * children.py knows what must stand in which profile. Children use no stdio: all they allocate is
 * written here.
 */
#include "subject.h"

#include "memtrace/memtrace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#pragma weak memtrace_report
#pragma weak memtrace_print_trace
#pragma weak memtrace_alloc
#pragma weak memtrace_free

NOINLINE static void *take(size_t size) {
    void *block = malloc(size);
    keep(block);
    return block;
}

/* A path that the parent takes, too. */
NOINLINE static void *known(size_t size) {
    void *block = take(size);
    keep(block);
    return block;
}

/* Paths that only children take. */
NOINLINE static void *fresh_inner(size_t size) {
    void *block = malloc(size);
    keep(block);
    return block;
}

NOINLINE static void *fresh(size_t size) {
    void *block = fresh_inner(size);
    keep(block);
    return block;
}

static int wait_for(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Runs child(argument) in a child and returns how it ended. */
static int in_child(void (*child)(long argument), long argument) {
    pid_t pid = fork();
    if (pid == 0) {
        child(argument);
        _exit(0);
    }
    return wait_for(pid);
}

static void *inherited[8];

static void have_blocks(void) {
    for (int i = 0; i < 8; i++) {
        inherited[i] = known(1000 + i);
    }
}

/* --- paths: both kinds, own and inherited blocks, realloc, mappings, pools ---------------------
 */

static void *inherited_map;

static void do_paths(long unused) {
    void *block = known(501);
    (void)unused;
    free(known(502));
    free(fresh(503));
    block = fresh(504);
    keep(block);
    free(inherited[0]);
    inherited[1] = realloc(inherited[1], 505);
    free(inherited[1]);
    munmap(inherited_map, 2 * 4096);
    block = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(block, 4096);
}

static int case_paths(void) {
    have_blocks();
    inherited_map = mmap(NULL, 4 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(in_child(do_paths, 0) == 0, "the child");
    return 3;
}

static int case_pools(void) {
    static char place[64];
    memtrace_alloc("known", &place[0], 11);
    pid_t pid = fork();
    if (pid == 0) {
        memtrace_free("known", &place[0]);
        memtrace_alloc("known", &place[16], 12);
        _exit(0);
    }
    check(wait_for(pid) == 0, "the child");
    pid = fork();
    if (pid == 0) { /* a name that the parent has not grows it */
        memtrace_free("known", &place[0]);
        memtrace_alloc("new", &place[16], 13);
        free(known(506));
        _exit(0);
    }
    check(wait_for(pid) == 0, "the second child");
    return 3;
}

/* Blocks that the program tells of as its heap's are inherited as malloc's are. */
static int case_heap(void) {
    static char place[6][2048] __attribute__((aligned(16)));
    for (int i = 0; i < 4; i++) {
        memtrace_alloc(NULL, place[i], 2001 + i);
    }
    memtrace_free(NULL, place[0]);
    pid_t pid = fork();
    if (pid == 0) {
        memtrace_alloc(NULL, place[5], 507);
        memtrace_free(NULL, place[1]);
        memtrace_alloc("new", place[4], 13); /* grows it */
        memtrace_free(NULL, place[2]);
        _exit(0);
    }
    check(wait_for(pid) == 0, "the child");
    return 3;
}

/* --- light until the end ------------------------------------------------------------------------
 */

static void do_few(long count) {
    for (long i = 0; i < count; i++) {
        free(known(601));
    }
    fresh(602);
}

static int case_many(void) {
    for (int i = 0; i < 1000; i++) {
        check(in_child(do_few, i % 3) == 0, "a child");
    }
    return 3;
}

static void do_kill(long unused) {
    (void)unused;
    free(known(603));
    known(604);
    raise(SIGKILL);
}

static int case_killed(void) {
    have_blocks();
    check(in_child(do_kill, 0) == 1000 + SIGKILL, "the child");
    return 3;
}

static void do_grandchild(long unused) {
    (void)unused;
    free(inherited[2]);
    fresh(605); /* nodes that the grandchild inherits */
    check(in_child(do_few, 2) == 0, "the grandchild");
    known(606);
}

static int case_grandchild(void) {
    have_blocks();
    check(in_child(do_grandchild, 0) == 0, "the child");
    return 3;
}

/* A grandchild whose thread ends before it has allocated: nothing of it was begun. (The library
 * that pthread_exit needs is there.) */
static void *leave(void *unused) {
    (void)unused;
    pthread_exit(NULL);
}

static void do_leave(long unused) {
    (void)unused;
    pthread_exit(NULL);
}

static void do_leaving(long unused) {
    (void)unused;
    fresh(605);
    check(in_child(do_leave, 0) == 0, "the grandchild");
    known(606);
}

static int case_leaving(void) {
    pthread_t thread;
    check(pthread_create(&thread, NULL, leave, NULL) == 0, "a thread");
    pthread_join(thread, NULL);
    check(in_child(do_leaving, 0) == 0, "the child");
    return 3;
}

static void do_exec(long unused) {
    char *const arguments[] = {"true", NULL};
    (void)unused;
    fresh(607);
    for (int i = 0; i < 3; i++) {
        execv("/dev/null/nothing", arguments);
        execvp("memtrace-no-such-program", arguments);
        execv("/etc/hostname/none", arguments);
        known(608);
    }
    execv("/bin/true", arguments);
}

static int case_exec(void) {
    check(in_child(do_exec, 0) == 0, "the child");
    return 3;
}

static void do_closed(long unused) {
    (void)unused;
    for (int fd = 0; fd < 1024; fd++) {
        close(fd);
    }
    do_few(1);
}

static int case_closed(void) {
    check(in_child(do_closed, 0) == 0, "the child");
    return 3;
}

NOINLINE static void branch(unsigned bits, int depth) {
    if (depth == 0) {
        free(fresh_inner(609));
    } else if ((bits & 1) != 0) {
        branch(bits >> 1, depth - 1);
        keep(&bits);
    } else {
        branch(bits >> 1, depth - 1);
        keep(&depth);
    }
}

/* No file may be written: what fits into memory that is shared already is kept, more is lost. */
static void do_no_files(long paths) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    if (paths == 0) {
        do_few(1);
    }
    for (long bits = 0; bits < paths; bits++) {
        branch((unsigned)bits, 9);
    }
}

static int case_no_files(void) {
    check(in_child(do_few, 1) == 0, "the first child");
    check(in_child(do_no_files, 0) == 0, "a child");
    check(in_child(do_no_files, 512) == 0, "a child of many paths");
    return 3;
}

/* They do not fit into what children share; each time an exec fails they are taken back. */
static void do_exec_many(long becomes) {
    char *const arguments[] = {"true", NULL};
    for (unsigned i = 0; i < 1024; i++) {
        branch(i, 10);
    }
    for (int i = 0; i < 3; i++) {
        execvp("memtrace-no-such-program", arguments);
        execv("/", arguments); /* it may be entered, but not executed */
        known(608);
    }
    if (becomes) {
        execv("/bin/true", arguments);
    }
}

static int case_exec_many(void) {
    check(in_child(do_exec_many, 0) == 0, "a child that goes on");
    check(in_child(do_exec_many, 1) == 0, "a child that becomes another program");
    return 3;
}

/* More paths than a file takes. */
static void do_branches(long unused) {
    (void)unused;
    for (unsigned i = 0; i < 4096; i++) {
        branch(i, 12);
    }
}

static int case_bound(void) {
    for (int i = 0; i < 40; i++) {
        check(in_child(do_branches, 0) == 0, "a child");
    }
    return 3;
}

/* --- growing ------------------------------------------------------------------------------------
 */

static void do_events(long unused) {
    (void)unused;
    free(inherited[3]);
    for (int i = 0; i < 80000; i++) {
        void *block = known(701);
        if (i % 2 == 0) {
            free(block);
        }
        if (i == 100) {
            free(inherited[4]);
        }
    }
    free(inherited[5]);
}

static int case_events(void) {
    have_blocks();
    check(in_child(do_events, 0) == 0, "the child");
    return 3;
}

/* Whether it is to grow, a light child asks when the kernel's clock has moved. */
static void let_time_pass(void) {
    usleep(20000);
}

/* The maximum comes first, while the child is light: 900,000 bytes of its own and all that it was
 * born with. Then it falls, inherited blocks go, and it grows by another sixteen million. */
static void do_hill(long unused) {
    static void *first[9];
    (void)unused;
    for (int i = 0; i < 9; i++) {
        first[i] = fresh(100000);
    }
    for (int i = 0; i < 9; i++) {
        free(first[i]);
    }
    free(inherited[6]); /* 1006 */
    free(inherited[7]); /* 200000 */
    fresh(16777216);
    let_time_pass();
    free(inherited[0]);
}

static int case_hill(void) {
    have_blocks();
    free(inherited[7]);
    inherited[7] = known(200000);
    check(in_child(do_hill, 0) == 0, "the child");
    return 3;
}

/* The maximum comes before any inherited block goes, is reached again after, and once more. */
static void do_valley(long unused) {
    void *block = fresh(5000);
    (void)unused;
    free(inherited[7]); /* 200000 */
    free(block);
    block = fresh(150000);
    free(block);
    block = fresh(205000); /* as high as before, from other blocks */
    free(inherited[6]);
    for (int i = 0; i < 60000; i++) {
        free(known(16));
    }
    let_time_pass();
    free(block);
}

static int case_valley(void) {
    have_blocks();
    free(inherited[7]);
    inherited[7] = known(200000);
    check(in_child(do_valley, 0) == 0, "the child");
    return 3;
}

static void *in_thread(void *unused) {
    (void)unused;
    known(702);
    return NULL;
}

static void do_thread(long unused) {
    pthread_t thread;
    (void)unused;
    fresh(703);
    free(inherited[0]);
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    known(704);
}

static int case_thread(void) {
    have_blocks();
    check(in_child(do_thread, 0) == 0, "the child");
    return 3;
}

static void do_report(long unused) {
    int fd = open("/dev/null", O_WRONLY);
    (void)unused;
    fresh(705);
    memtrace_report(fd, NULL, NULL);
    known(706);
}

static int case_report(void) {
    have_blocks();
    check(in_child(do_report, 0) == 0, "the child");
    return 3;
}

/* A handler asks for a report, for which the child grows, wherever it interrupts the child. */
static void take_no_view(const struct memtrace_thread_view *thread, void *unused) {
    (void)thread;
    (void)unused;
}

static void ask(int unused) {
    (void)unused;
    memtrace_thread_report(take_no_view, NULL);
}

static void do_asked(long us) {
    const struct itimerval once = {.it_value = {.tv_usec = us}};
    known(16);
    signal(SIGALRM, ask);
    setitimer(ITIMER_REAL, &once, NULL);
    for (int i = 0; i < 20000; i++) {
        free(known(16));
    }
}

static int case_asked(void) {
    for (int i = 0; i < 25; i++) {
        check(in_child(do_asked, 100 + 17 * i) == 0, "the child");
    }
    return 3;
}

/* A grown child is an ancestor with a region of its own. */
static void do_grown_parent(long unused) {
    (void)unused;
    fresh(16800000);
    check(in_child(do_few, 2) == 0, "the grandchild");
}

static int case_grown_parent(void) {
    have_blocks();
    check(in_child(do_grown_parent, 0) == 0, "the child");
    return 3;
}

/* --- the ancestor ends first --------------------------------------------------------------------
 */

static int case_orphan(void) {
    int ready[2], go[2];
    char byte = 0;
    have_blocks();
    pipe(ready);
    pipe(go);
    if (fork() == 0) {
        pid_t parent = getppid();
        fresh(801);
        free(inherited[0]);
        write(ready[1], &byte, 1);
        while (getppid() == parent) {
            usleep(1000);
        }
        _exit(0);
    }
    read(ready[0], &byte, 1);
    return 3;
}

static const struct {
    const char *name;
    int (*run)(void);
} cases[] = {
    {"paths", case_paths},
    {"pools", case_pools},
    {"heap", case_heap},
    {"many", case_many},
    {"killed", case_killed},
    {"grandchild", case_grandchild},
    {"leaving", case_leaving},
    {"exec", case_exec},
    {"exec_many", case_exec_many},
    {"closed", case_closed},
    {"no_files", case_no_files},
    {"bound", case_bound},
    {"events", case_events},
    {"hill", case_hill},
    {"valley", case_valley},
    {"thread", case_thread},
    {"report", case_report},
    {"asked", case_asked},
    {"grown_parent", case_grown_parent},
    {"orphan", case_orphan},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            return cases[i].run();
        }
    }
    return 2;
}
