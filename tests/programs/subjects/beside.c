/* SPDX-License-Identifier: MIT */
/* beside.c CASE: what a program, or a library that it brings, does where we are: see bystanders.py.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- clock: events at many interrupts of the timer, and asks for the time in between
 * -------------- */

static int run_clock(void) {
    struct timespec now;
    for (int i = 0; i < 60; i++) {
        clock_gettime(CLOCK_REALTIME, &now);
        free(malloc(10 + i));
        usleep(2000);
    }
    printf("another time: %d\n", now.tv_sec < 1000000000);
    return 0;
}

/* --- shell: all that POSIX says of system() and popen(), printed ---------------------------------
 */

static void print_stream(FILE *stream, const char *what) {
    char line[256];
    printf("%s:", what);
    while (fgets(line, sizeof line, stream) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        printf(" %s", line);
    }
    puts("");
    fflush(stdout);
}

static void print_signals(const char *what) {
    struct sigaction interrupt;
    struct sigaction quit;
    sigset_t mask;
    sigaction(SIGINT, NULL, &interrupt);
    sigaction(SIGQUIT, NULL, &quit);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    printf("%s: ignored %d %d, blocked %d %d\n", what, interrupt.sa_handler == SIG_IGN,
           quit.sa_handler == SIG_IGN, sigismember(&mask, SIGCHLD), sigismember(&mask, SIGUSR1));
    fflush(stdout);
}

static const char *child_signals = "grep -E '^Sig(Blk|Ign)' /proc/self/status";

static void use_system(void) {
    sigset_t mask;
    printf("NULL %d\n", system(NULL) != 0);
    printf("status %x\n", system("exit 4"));
    printf("signal %x\n", system("kill -TERM $$"));
    printf("none %x\n", system("/proc/self/program 2>/dev/null"));
    fflush(stdout);
    system(child_signals);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    signal(SIGINT, SIG_IGN);
    system(child_signals);
    print_signals("after system");
    signal(SIGINT, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &mask, NULL);
    /* the signals of its terminal are the child's alone: the parent ignores them meanwhile */
    printf("interrupted %x\n", system("kill -INT $PPID; kill -QUIT $PPID; kill -INT $$"));
    print_signals("after interrupts");
    errno = 0;
    signal(SIGCHLD, SIG_IGN);
    printf("nobody's child %d", system("exit 4"));
    printf(" %d\n", errno);
    signal(SIGCHLD, SIG_DFL);
}

static void *in_system(void *unused) {
    (void)unused;
    system("exec sleep 30");
    return NULL;
}

static int is_ignored(void) {
    struct sigaction action;
    sigaction(SIGINT, NULL, &action);
    return action.sa_handler == SIG_IGN;
}

static void cancel_system(void) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, in_system, NULL);
    while (!is_ignored()) {
        usleep(1000);
    }
    usleep(50000); /* in waitpid() */
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d", result == PTHREAD_CANCELED);
    printf(" children %d\n", waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    print_signals("after cancel");
}

static void use_popen(void) {
    FILE *streams[70];
    FILE *stream = popen("read line; echo got $line", "w");
    int status;
    pid_t child;
    fputs("words\n", stream);
    printf("write %x\n", pclose(stream));
    stream = popen("echo one; exit 3", "re");
    printf("closes on exec %d\n", fcntl(fileno(stream), F_GETFD));
    print_stream(stream, "read");
    printf("status %x\n", pclose(stream));
    errno = 0;
    printf("mode %p", (void *)popen("echo", "q"));
    printf(" %d", errno);
    printf(" %p", (void *)popen("echo", "rw"));
    printf(" %d\n", errno);
    /* those that are open are closed in the next, however many */
    for (int i = 0; i < 70; i++) {
        streams[i] = popen(i % 2 ? "cat" : "exit 7", i % 2 ? "w" : "r");
    }
    printf("lowest %d, closes on exec %d\n", fileno(streams[0]),
           fcntl(fileno(streams[0]), F_GETFD));
    stream = popen("echo $(ls /proc/self/fd | grep -vx 700)", "r");
    print_stream(stream, "open in the child");
    printf("%x\n", pclose(stream));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        errno = 0;
        printf("of the parent's child %d", pclose(streams[0]));
        printf(" %d\n", errno);
        stream = popen("echo child", "r");
        print_stream(stream, "in a child");
        printf("%x\n", pclose(stream));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    status = fclose(streams[0]); /* waits, in glibc */
    printf("fclose %x\n", status);
    for (int i = 1; i < 70; i++) {
        status |= pclose(streams[i]);
    }
    printf("all %x, children left %d\n", status, waitpid(-1, NULL, WNOHANG) != -1);
    /* the shell's end is the descriptor that it is to have */
    fflush(stdout);
    close(0);
    stream = popen("cat", "w");
    printf("descriptor %d\n", fileno(stream));
    fflush(stdout);
    fputs("by 0\n", stream);
    printf("%x\n", pclose(stream));
    fflush(stdout);
}

static int run_shell(void) {
    use_system();
    cancel_system();
    use_popen();
    return 0;
}

/* --- variables: set while other threads are in system() and popen() ------------------------------
 */

extern char **environ;

enum { SET = 400 };
static int is_over;

static void *start_shells(void *by_popen) {
    FILE *stream;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        if (by_popen != NULL) {
            stream = popen("exec sleep 0.01", "r"); /* NULL: just then the old array was freed */
            if (stream != NULL) {
                pclose(stream);
            }
        } else {
            system("exec sleep 0.01");
        }
    }
    return NULL;
}

static int run_variables(void) {
    pthread_t threads[2];
    char name[32];
    int lost = 0;
    int seen = 0;
    pthread_create(threads, NULL, start_shells, NULL);
    pthread_create(threads + 1, NULL, start_shells, "");
    for (int i = 0; i < SET; i++) {
        snprintf(name, sizeof name, "SET_%d", i);
        setenv(name, "x", 1);
        usleep(100);
        for (char **at = environ; i % 10 == 0 && *at != NULL; at++) {
            seen += strncmp(*at, "MEMTRACE_RUN", 12) == 0;
        }
        lost += getenv(name) == NULL;
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    for (int i = 0; i < SET; i++) {
        snprintf(name, sizeof name, "SET_%d", i);
        lost += getenv(name) == NULL;
    }
    printf("lost %d, seen %d\n", lost, seen);
    return 0;
}

/* --- allocations: how often the allocator behind ours is called ----------------------------------
 */

unsigned long calls_made(void) __attribute__((weak));

static void print_calls(const char *what) {
    static unsigned long before;
    char line[128];
    unsigned long now = calls_made();
    dprintf(1, "%s %lu\n", what, now - before);
    before = calls_made();
}

static void *return_at_once(void *argument) {
    free(malloc(100));
    return argument;
}

static void start_threads(const pthread_attr_t *attributes) {
    pthread_t thread;
    for (int i = 0; i < 20; i++) {
        pthread_create(&thread, attributes, return_at_once, NULL);
        pthread_join(thread, NULL);
    }
}

static void do_nothing(void) {
}

static _Alignas(4096) char own_stack[1 << 17];

static int run_allocations(void) {
    pthread_attr_t attributes;
    pthread_key_t key;
    void *library;
    print_calls("start");
    for (int i = 0; i < 1000; i++) {
        free(malloc(i));
        free(calloc(i, 3));
        free(realloc(malloc(i), 2 * i + 1));
    }
    print_calls("blocks");
    start_threads(NULL);
    print_calls("threads");
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 17);
    start_threads(&attributes);
    pthread_attr_setstack(&attributes, own_stack, sizeof own_stack);
    start_threads(&attributes);
    print_calls("threads with stacks");
    for (int i = 0; i < 100; i++) {
        pthread_key_create(&key, NULL);
        atexit(do_nothing);
    }
    pthread_setspecific(key, &key);
    print_calls("keys");
    if (fork() == 0) {
        start_threads(NULL);
        print_calls("in a child");
        _exit(0);
    }
    wait(NULL);
    print_calls("fork");
    system("exit 3");
    print_calls("system");
    library = dlopen("libm.so.6", RTLD_NOW);
    dlsym(library, "no_such_function");
    dlerror();
    dlclose(library);
    print_calls("library");
    return 0;
}

/* --- overwrite: a byte behind a block ------------------------------------------------------------
 */

static int run_overwrite(void) {
    char *block = malloc(7);
    block[7] = block[7] != 0 ? 0 : -1; /* whatever the checks have put there, no longer that */
    free(block);
    puts("not noticed");
    return 0;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {{"allocations", run_allocations},
                 {"clock", run_clock},
                 {"overwrite", run_overwrite},
                 {"shell", run_shell},
                 {"variables", run_variables}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
            return cases[i].run();
        }
    }
    return 2;
}
