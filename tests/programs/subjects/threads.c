/* SPDX-License-Identifier: MIT */
/*
 * threads.c CASE [HOW]: threads that pthread_create did not make, and more of them than there are
 * ids. What was held at most, or allocated in all, is known by arithmetic and said on stdout.
 */
#include "subject.h"

#include <aio.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>

enum { PIECE = 1 << 20, MOST = 200 };

/* --- a step that two threads take in turn ----------------------------------------------------- */

static volatile int step;

static void nap(void) {
    struct timespec time = {0, 200 * 1000};
    nanosleep(&time, NULL);
}

static void wait_for(int wanted) {
    while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) < wanted) {
        nap();
    }
}

static void reach(int next) {
    __atomic_store_n(&step, next, __ATOMIC_RELEASE);
}

/* --- what is held ----------------------------------------------------------------------------- */

struct stack {
    void *piece[MOST];
    int count;
};

static void hold(struct stack *stack, int count) {
    while (stack->count < count) {
        keep(stack->piece[stack->count++] = malloc(PIECE));
    }
    while (stack->count > count) {
        free(stack->piece[--stack->count]);
    }
}

static struct stack mine, others;

/* The other thread's part: main, which made it, is quiet meanwhile or not. */
static void other(void) {
    hold(&others, 50); /* 100 + 50: the most so far */
    reach(1);
    wait_for(2); /* main has freed 90 of its 100 */
    hold(&others, 130);
    hold(&others, 20);
    reach(3);
    wait_for(4);        /* main has 60 */
    hold(&others, 110); /* 60 + 110: the most of all */
    hold(&others, 0);
    reach(5);
}

static void peak_with(int (*begin)(void)) {
    hold(&mine, 100);
    hold(&mine, 95); /* below its maximum, where it looks at nothing */
    hold(&mine, 100);
    if (!begin()) {
        _exit(77);
    }
    wait_for(1);
    hold(&mine, 10);
    reach(2);
    wait_for(3);
    hold(&mine, 60);
    reach(4);
    wait_for(5);
    hold(&mine, 0);
}

/* --- threads that hold little at once, and do nothing more ---------------------------------------
 */

static pthread_barrier_t all_hold;

static void *hold_little(void *size) {
    void *block = malloc((size_t)size);
    keep(block);
    pthread_barrier_wait(&all_hold);
    pthread_barrier_wait(&all_hold);
    free(block);
    return NULL;
}

static void little(size_t count, size_t size) {
    pthread_t thread[MOST];
    pthread_barrier_init(&all_hold, NULL, (unsigned)count);
    for (size_t i = 0; i < count; i++) {
        pthread_create(&thread[i], NULL, hold_little, (void *)size);
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(thread[i], NULL);
    }
}

/* --- how it is made --------------------------------------------------------------------------- */

static int run_thrd(void *argument) {
    other();
    return 0;
}

static int begin_thrd(void) {
    static thrd_t thread;
    return thrd_create(&thread, run_thrd, NULL) == thrd_success;
}

static void *run_pthread(void *argument) {
    other();
    return NULL;
}

static int begin_pthread(void) {
    static pthread_t thread;
    return pthread_create(&thread, NULL, run_pthread, NULL) == 0;
}

static void run_value(union sigval value) {
    other();
}

static int begin_timer(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = run_value};
    struct itimerspec when = {.it_value = {0, 1000000}};
    timer_t timer;
    return timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 &&
           timer_settime(timer, 0, &when, NULL) == 0;
}

static int begin_aio(void) {
    static char byte;
    static struct aiocb request;
    request = (struct aiocb){
        .aio_fildes = open("/dev/zero", O_RDONLY),
        .aio_buf = &byte,
        .aio_nbytes = 1,
        .aio_sigevent = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = run_value}};
    return aio_read(&request) == 0;
}

/* It shares main's thread-local storage, so they may not allocate at the same time. */
static int run_clone(void *argument) {
    other();
    return 0;
}

static int begin_clone(void) {
    char *stack = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return clone(run_clone, stack + PIECE,
                 CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
                 NULL) > 0;
}

/* --- many ------------------------------------------------------------------------------------- */

enum { SHORT_BYTES = 1201, BUSY_BYTES = 1203, KEPT_BYTES = 1205, BUSY = 4, SHORT_BLOCKS = 5 };

static volatile int is_over;
static int is_quiet; /* the short threads have no company */
static uint64_t busy_pairs[BUSY];

static void *work_long(void *argument) {
    uint64_t *pairs = argument;
    while (!is_over) {
        for (int i = 0; i < 20; i++) {
            void *block = malloc(BUSY_BYTES);
            keep(block);
            free(block);
            ++*pairs;
        }
        sched_yield();
    }
    return NULL;
}

static void *work_short(void *argument) {
    void *blocks[SHORT_BLOCKS];
    for (int i = 0; i < SHORT_BLOCKS; i++) {
        keep(blocks[i] = malloc(SHORT_BYTES));
    }
    for (int i = 0; i < SHORT_BLOCKS; i++) {
        free(blocks[i]);
    }
    keep(*(void **)argument = malloc(KEPT_BYTES));
    return NULL;
}

static void many(int count) {
    pthread_t busy[BUSY], thread;
    pthread_attr_t attributes;
    char line[200];
    uint64_t pairs = 0;
    void *kept = NULL;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (int i = 0; i < count; i++) {
        void *last = kept;
        if (!is_quiet && i % (count / BUSY) == 0 &&
            i / (count / BUSY) < BUSY) { /* some when ids have run out */
            int place = i / (count / BUSY);
            pthread_create(&busy[place], NULL, work_long, &busy_pairs[place]);
        }
        check(pthread_create(&thread, &attributes, work_short, &kept) == 0, "pthread_create");
        pthread_join(thread, NULL);
        free(last); /* main frees what another had allocated */
    }
    is_over = 1;
    for (int i = 0; i < BUSY && !is_quiet; i++) {
        pthread_join(busy[i], NULL);
        pairs += busy_pairs[i];
    }
    snprintf(line, sizeof line, "busy %llu short %d\n", (unsigned long long)pairs, count);
    say(line);
}

/* --- more alive than there are ids ------------------------------------------------------------ */

static pthread_barrier_t all_there, all_stopped;
void memtrace_stop(void) __attribute__((weak));
void memtrace_start(void) __attribute__((weak));

static void *before_and_after(void *argument) {
    void *block = malloc(SHORT_BYTES);
    keep(block);
    free(block);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_stopped);
    keep(block = malloc(BUSY_BYTES));
    free(block);
    return NULL;
}

static void alive(int count) {
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    pthread_attr_t attributes;
    pthread_barrier_init(&all_there, NULL, (unsigned)count + 1);
    pthread_barrier_init(&all_stopped, NULL, (unsigned)count + 1);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 32768);
    pthread_attr_setguardsize(&attributes, 0);
    for (int i = 0; i < count; i++) {
        if (pthread_create(&threads[i], &attributes, before_and_after, NULL) != 0) {
            _exit(77);
        }
    }
    pthread_barrier_wait(&all_there);
    if (memtrace_stop != NULL) {
        memtrace_stop();
    }
    pthread_barrier_wait(&all_stopped);
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
}

/* --- what a thread costs -----------------------------------------------------------------------
 */

static long resident_kib(void) {
    char text[4096];
    int file = open("/proc/self/smaps_rollup", O_RDONLY);
    ssize_t size = read(file, text, sizeof text - 1);
    const char *line;
    close(file);
    text[size > 0 ? size : 0] = '\0';
    line = strstr(text, "\nRss:");
    return line != NULL ? atol(line + 5) : 0;
}

static void *twenty_blocks(void *argument) {
    void *blocks[20];
    for (int i = 0; i < 20; i++) {
        keep(blocks[i] = malloc(SHORT_BYTES));
    }
    for (int i = 0; i < 20; i++) {
        free(blocks[i]);
    }
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_stopped);
    return NULL;
}

/* So much memory is resident for each thread that is alive. */
static void resident(int count) {
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    char line[100];
    long before;
    pthread_barrier_init(&all_there, NULL, (unsigned)count + 1);
    pthread_barrier_init(&all_stopped, NULL, (unsigned)count + 1);
    before = resident_kib();
    for (int i = 0; i < count; i++) {
        check(pthread_create(&threads[i], NULL, twenty_blocks, NULL) == 0, "pthread_create");
    }
    pthread_barrier_wait(&all_there);
    snprintf(line, sizeof line, "resident %ld\n", (resident_kib() - before) / count);
    say(line);
    pthread_barrier_wait(&all_stopped);
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
}

/* --- no room for them --------------------------------------------------------------------------
 */

static void limit_files(rlim_t most) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void *keep_twenty(void *argument) {
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < 20; i++) {
        keep(malloc(SHORT_BYTES));
    }
    pthread_barrier_wait(&all_stopped);
    return NULL;
}

/* All threads come when the region cannot grow any more: it is a file, and no file may. */
static void full(int count) {
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    pthread_barrier_init(&all_there, NULL, (unsigned)count + 1);
    pthread_barrier_init(&all_stopped, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++) {
        check(pthread_create(&threads[i], NULL, keep_twenty, NULL) == 0, "pthread_create");
    }
    limit_files(0);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_stopped);
    limit_files(RLIM_INFINITY);
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
}

/* --- a child of one with many ----------------------------------------------------------------- */

static void fork_after_many(int count) {
    void *block = malloc(KEPT_BYTES);
    keep(block);
    many(count);
    if (fork() == 0) {
        for (int i = 0; i < 10; i++) {
            void *own = malloc(2207);
            keep(own);
            free(own);
        }
        free(block);
        _exit(0);
    }
    wait(NULL);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*begin)(void);
    } hows[] = {{"thrd", begin_thrd},
                {"pthread", begin_pthread},
                {"timer", begin_timer},
                {"aio", begin_aio},
                {"clone", begin_clone}};
    if (argc == 3 && strcmp(argv[1], "peak") == 0) {
        for (size_t i = 0; i < sizeof hows / sizeof *hows; i++) {
            if (strcmp(hows[i].name, argv[2]) == 0) {
                peak_with(hows[i].begin);
                say("done\n");
                return 3;
            }
        }
    }
    is_quiet = argc == 3 && strcmp(argv[1], "quiet") == 0;
    if (argc == 3 && (strcmp(argv[1], "many") == 0 || is_quiet)) {
        many(atoi(argv[2]));
        return 3;
    }
    if (argc == 3 && strcmp(argv[1], "little") == 0) {
        little(32, (size_t)atoi(argv[2]));
        return 3;
    }
    if (argc == 3 && strcmp(argv[1], "alive") == 0) {
        alive(atoi(argv[2]));
        return 3;
    }
    if (argc == 3 && strcmp(argv[1], "resident") == 0) {
        resident(atoi(argv[2]));
        return 3;
    }
    if (argc == 3 && strcmp(argv[1], "full") == 0) {
        full(atoi(argv[2]));
        return 3;
    }
    if (argc == 3 && strcmp(argv[1], "fork") == 0) {
        fork_after_many(atoi(argv[2]));
        return 3;
    }
    return 98;
}
