/* SPDX-License-Identifier: MIT */
/*
 * life.c: how processes begin, multiply and end. `life NAME` runs one case. Every process says what
 * it allocated by a size of its own: life.py knows which sizes belong into which profile.
 */
#include "subject.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;
static const char *self;

/* `count` blocks of `size`, the first half freed again. */
NOINLINE static void use(size_t size, int count) {
    for (int i = 0; i < count; i++) {
        void *block = malloc(size);
        keep(block);
        if (i < count / 2) {
            free(block);
        }
    }
}

static int wait_for(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static volatile int stop;

static void *busy(void *argument) {
    (void)argument;
    while (!stop) {
        void *block = malloc(333);
        keep(block);
        free(block);
    }
    return NULL;
}

static int case_fork(void) {
    use(80001, 10);
    void *inherited = malloc(80003);
    pid_t pid = fork();
    if (pid == 0) {
        use(80011, 20);
        free(inherited);
        exit(5);
    }
    check(wait_for(pid) == 5, "the child's exit status");
    use(80021, 30);
    return 3;
}

static int case_fork_threads(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, busy, NULL);
    }
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            use(80101, 10);
            _exit(6);
        }
        check(wait_for(pid) == 6, "the child's exit status");
    }
    stop = 1;
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    use(80111, 10);
    return 3;
}

static int case_fork_of_fork(void) {
    use(80201, 2);
    pid_t pid = fork();
    if (pid == 0) {
        use(80203, 4);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            use(80205, 6);
            exit(7);
        }
        exit(wait_for(grandchild) + 1);
    }
    check(wait_for(pid) == 8, "through the child");
    return 3;
}

static int case_raw_fork(void) {
    use(80301, 2);
    pid_t pid = (pid_t)syscall(SYS_fork); /* no handler of the libc runs */
    if (pid == 0) {
        use(80303, 4);
        _exit(7);
    }
    check(wait_for(pid) == 7, "the child's exit status");
    pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        use(80305, 4);
        _exit(7);
    }
    check(wait_for(pid) == 7, "the clone's exit status");
    use(80307, 2);
    return 3;
}

static int case_vfork(void) {
    use(80401, 2);
    for (int i = 0; i < 10; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            if (i == 5) {
                execl("/bin/true", "true", (char *)NULL);
            }
            _exit(9);
        }
        check(wait_for(pid) == (i == 5 ? 0 : 9), "the child's exit status");
        use(80403, 2);
    }
    return 3;
}

static int case_spawn(void) {
    use(80501, 2);
    char *arguments[] = {"sh", "-c", "exit 12", NULL};
    for (int i = 0; i < 5; i++) {
        pid_t pid;
        check(posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ) == 0, "posix_spawn");
        check(wait_for(pid) == 12, "the exit status");
    }
    check(system("exit 4") == 4 << 8, "system");
    use(80503, 2);
    return 3;
}

static int case_exec(void) {
    use(80601, 4);
    if (getenv("SUBJECT_AGAIN") == NULL) {
        setenv("SUBJECT_AGAIN", "1", 1);
        execl(self, self, "exec", (char *)NULL);
        return 97;
    }
    use(80603, 4);
    return 3;
}

static int case_failing_exec(void) {
    use(80611, 4);
    check(execl("/proc/self/program", "x", (char *)NULL) == -1 && errno == ENOENT, "no exec");
    use(80613, 4);
    return 3;
}

static int case_exit(void) {
    use(80701, 4);
    exit(3);
}

static int case_underscore_exit(void) {
    use(80701, 4);
    _exit(3);
}

static int case_Exit(void) {
    use(80701, 4);
    _Exit(3);
}

static void at_quick_exit_handler(void) {
    use(80703, 4);
}

static int case_quick_exit(void) {
    use(80701, 4);
    at_quick_exit(at_quick_exit_handler);
    quick_exit(3);
}

static int case_abort(void) {
    use(80701, 4);
    abort();
}

static int case_segv(void) {
    use(80701, 4);
    *(volatile int *)opaque(8) = 1;
    return 0;
}

static int case_sigkill(void) {
    use(80701, 4);
    raise(SIGKILL);
    return 0;
}

static int case_sigterm(void) {
    use(80701, 4);
    raise(SIGTERM);
    return 0;
}

static void *exit_in_thread(void *argument) {
    (void)argument;
    use(80705, 4);
    exit(3);
}

static int case_exit_in_thread(void) {
    pthread_t thread, other;
    use(80701, 4);
    pthread_create(&other, NULL, busy, NULL);
    pthread_create(&thread, NULL, exit_in_thread, NULL);
    pthread_join(thread, NULL);
    return 0;
}

static void *outlives_main(void *argument) {
    (void)argument;
    usleep(50000);
    use(80707, 4);
    return NULL;
}

static int case_main_leaves_first(void) {
    pthread_t thread;
    use(80701, 4);
    pthread_create(&thread, NULL, outlives_main, NULL);
    pthread_exit(NULL); /* the last thread ends the process: status 0 */
}

static int case_daemon(void) {
    for (int i = 0; i < 1024; i++) {
        close(i);
    }
    check(open("/dev/null", O_RDWR) == 0, "the first free descriptor is 0");
    check(dup(0) == 1 && dup(0) == 2, "the next are 1 and 2");
    for (size_t i = 0; i < 3000; i++) { /* grow: the runtime needs its file now */
        keep(malloc(100 + i % 64));
    }
    use(80801, 10);
    return 3;
}

static int case_closefrom(void) {
    use(80811, 10);
    syscall(SYS_close_range, 3, ~0U, 0);
    check(dup(0) == 3, "the first free descriptor is 3");
    use(80813, 10);
    return 3;
}

static int case_chroot(void) {
    char folder[] = "/tmp/memtrace-chroot-XXXXXX";
    use(80901, 10);
    if (mkdtemp(folder) == NULL || chdir(folder) != 0 || rmdir(folder) != 0 || chroot(".") != 0) {
        return 77;
    }
    use(80903, 10);
    return 3;
}

static int case_setuid(void) {
    use(80911, 10);
    if (setgid(65534) != 0 || setuid(65534) != 0) {
        return 77;
    }
    use(80913, 10);
    return 3;
}

/* A barrier, if any, is where all that were started meet. */
static void *short_lived(void *argument) {
    for (int i = 0; i < 4; i++) {
        void *block = malloc(1101);
        keep(block);
        free(block);
    }
    if (argument != NULL) {
        pthread_barrier_wait(argument);
    }
    return argument;
}

static long resident_kib(void) {
    char text[4096] = {0};
    int fd = open("/proc/self/status", O_RDONLY);
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    const char *line = got > 0 ? strstr(text, "VmRSS:") : NULL;
    return line != NULL ? atol(line + 6) : 0;
}

static void thread_rounds(int rounds, int at_once, pthread_barrier_t *together) {
    pthread_t threads[64];
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < at_once; i++) {
            if (pthread_create(&threads[i], NULL, short_lived, together) != 0) {
                say("no thread\n");
                _exit(96);
            }
        }
        for (int i = 0; i < at_once; i++) {
            pthread_join(threads[i], NULL);
        }
    }
}

/* 1,000 threads, 50 at a time; memory must be back to what the first 50 needed. */
static int case_many_threads(void) {
    pthread_barrier_t together;
    mallopt(M_ARENA_MAX, 1); /* glibc's own arenas grow without us */
    pthread_barrier_init(&together, NULL, 50);
    thread_rounds(4, 50, &together); /* all alive at once: the most that is ever needed */
    long before = resident_kib();
    thread_rounds(16, 50, NULL);
    long grown = resident_kib() - before;
    check(grown < 2048, "the threads' memory came back");
    return 3;
}

/* 1,000 threads alive at one time, then none. */
static void *waits(void *argument) {
    use(1103, 2);
    pthread_barrier_wait(argument);
    return NULL;
}

static int case_thousand_alive(void) {
    static pthread_t threads[1000];
    pthread_attr_t attributes;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 1001);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (int i = 0; i < 1000; i++) {
        if (pthread_create(&threads[i], &attributes, waits, &barrier) != 0) {
            _exit(77);
        }
    }
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 1000; i++) {
        pthread_join(threads[i], NULL);
    }
    use(80951, 10);
    return 3;
}

static void *blocks[100];

static void *allocate_blocks(void *argument) {
    for (int i = 0; i < 100; i++) {
        blocks[i] = malloc(81001);
        keep(blocks[i]);
    }
    return argument;
}

static void *free_blocks(void *argument) {
    size_t first = (size_t)argument;
    for (size_t i = first; i < first + 50; i++) {
        free(blocks[i]);
    }
    return NULL;
}

/* 50 blocks freed by another thread, 50 by main after their owner died. */
static int case_foreign_frees(void) {
    pthread_t owner, other;
    pthread_create(&owner, NULL, allocate_blocks, NULL);
    pthread_join(owner, NULL);
    pthread_create(&other, NULL, free_blocks, (void *)(size_t)0);
    pthread_join(other, NULL);
    free_blocks((void *)(size_t)50);
    return 3;
}

/* The last destructor there is: allocated after the runtime said goodbye, it must not crash. */
static void last_words(void) {
    for (int i = 0; i < 1000; i++) {
        void *block = malloc(500);
        keep(block);
        free(realloc(block, 3000));
    }
    say("last words\n");
}

__attribute__((destructor(101))) static void very_last(void) {
    if (getenv("SUBJECT_LAST") != NULL) {
        last_words();
    }
}

static int case_late(void) {
    use(81101, 10);
    setenv("SUBJECT_LAST", "1", 1);
    atexit(last_words);
    return 3;
}

static void *in_signal(void *argument) {
    for (int i = 0; i < 300; i++) {
        use(1201, 6);
    }
    return argument;
}

static volatile sig_atomic_t signals_seen;

static void count_signal(int number) {
    (void)number;
    signals_seen++;
    int error = errno;
    void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(map, 4096);
    errno = error;
}

/* Signals in the middle of malloc: the handler enters the runtime by another door. */
static int case_signals_in_malloc(void) {
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    struct itimerspec timing = {.it_interval.tv_nsec = 50000, .it_value.tv_nsec = 50000};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    sigaction(SIGALRM, &action, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &timing, NULL);
    for (int round = 0; round < 10000 && signals_seen < 500; round++) {
        in_signal(NULL);
    }
    timer_delete(timer);
    check(signals_seen >= 10, "signals came");
    use(81201, 10);
    return 3;
}

static const struct {
    const char *name;
    int (*run)(void);
} cases[] = {
    CASE(fork),
    CASE(fork_threads),
    CASE(fork_of_fork),
    CASE(raw_fork),
    CASE(vfork),
    CASE(spawn),
    CASE(exec),
    CASE(failing_exec),
    CASE(exit),
    CASE(underscore_exit),
    CASE(Exit),
    CASE(quick_exit),
    CASE(abort),
    CASE(segv),
    CASE(sigkill),
    CASE(sigterm),
    CASE(exit_in_thread),
    CASE(main_leaves_first),
    CASE(daemon),
    CASE(closefrom),
    CASE(chroot),
    CASE(setuid),
    CASE(many_threads),
    CASE(thousand_alive),
    CASE(foreign_frees),
    CASE(late),
    CASE(signals_in_malloc),
};

int main(int argc, char **argv) {
    self = argv[0];
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            int status = cases[i].run();
            say("done\n");
            return status;
        }
    }
    return 98;
}
