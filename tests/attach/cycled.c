/* SPDX-License-Identifier: MIT */
/*
 * cycled.c MODE: says "ready", and until there is an empty line to read does nothing but
 *
 *   malloc N        allocate and free in N threads
 *   many N          the same in one thread, while N others sleep
 *   alone           allocate and free in its one thread, which never sleeps
 *   dlopens FILE    open and close this library, in two threads
 *   forks           fork children that allocate and end
 *   asleep CALL     sleep in this system call, for a short time again and again
 *   turns           sleep in epoll_wait() of two descriptors in turns, otherwise in the same way
 *
 * Then says "end". At a line "g" it says the longest time in ns for which a thread of those at work
 * did nothing since the last such line, and how often it has worked. Of cycles.py; with PLUGIN it
 * is the library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef PLUGIN
void *plugin_take(void) {
    return strdup("what a plug-in allocates");
}
#else

enum { MOST = 1024, SHORT_MS = 20, PAIRS = 16, STACK_BYTES = 256 << 10 };

static volatile int stop;
static int ends[2];
static int listener = -1;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_size = sizeof(sa_family_t); /* of one that the kernel is to choose */
static _Atomic long longest_ns, works;

static long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Between two pieces of work. last: when this thread was here before; 0: it was not. */
static void note_work(long *last, long count) {
    long now = now_ns();
    long longest = longest_ns;
    while (*last != 0 && now - *last > longest &&
           !atomic_compare_exchange_weak(&longest_ns, &longest, now - *last)) {
    }
    *last = now;
    works += count;
}

static void allocate_some(void) {
    for (int i = 0; i < PAIRS; i++) {
        void *block = malloc(64);
        *(volatile char *)block = 1;
        free(block);
    }
}

static void *allocate(void *unused) {
    long last = 0;
    while (!stop) {
        allocate_some();
        note_work(&last, PAIRS);
    }
    return unused;
}

static void *sleep_long(void *unused) {
    while (!stop) {
        usleep(SHORT_MS * 20000);
    }
    return unused;
}

static void *open_library(void *file) {
    long last = 0;
    while (!stop) {
        void *library = dlopen(file, RTLD_NOW);
        void *(*take)(void);
        if (library == NULL) {
            exit(4);
        }
        take = (void *(*)(void))dlsym(library, "plugin_take");
        free(take());
        dlclose(library);
        note_work(&last, 1);
    }
    return NULL;
}

static void *fork_children(void *unused) {
    long last = 0;
    while (!stop) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            free(malloc(100));
            _exit(7);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
            WEXITSTATUS(status) != 7) {
            exit(5);
        }
        note_work(&last, 1);
    }
    return unused;
}

static void *nap(void *unused) {
    usleep(SHORT_MS * 1000);
    return unused;
}

/* What a call must return, or the program ends with 6. */
static void want(long got, long wanted) {
    if (got != wanted) {
        exit(6);
    }
}

/* On AArch64 a stop may end such a call early, if it began as its thread was stopped
 * (docs/attach.md). */
static int is_cut_short(int got) {
#ifdef __aarch64__
    return got < 0 && errno == EINTR;
#else
    (void)got;
    return 0;
#endif
}

static int poll_events(const char *name) {
    struct epoll_event event;
    int got;
    do {
        got = strcmp(name, "epoll_wait") == 0
                  ? epoll_wait(ends[0], &event, 1, SHORT_MS)
                  : epoll_pwait(ends[0], &event, 1, SHORT_MS, &(sigset_t){0});
    } while (is_cut_short(got));
    return got;
}

static pid_t child_that_naps(void) {
    pid_t child = fork();
    if (child == 0) {
        usleep(SHORT_MS * 1000);
        _exit(7);
    }
    return child;
}

/* Until the time is over. 0: it is another call. */
static int sleep_for_a_while(const char *name) {
    const struct timespec time = {0, SHORT_MS * 1000000L};
    struct timeval value = {0, SHORT_MS * 1000L};
    struct pollfd none = {-1, 0, 0};
#ifdef SYS_select /* newer machines have pselect6 alone */
    if (strcmp(name, "select") == 0) {
        want(syscall(SYS_select, 0, NULL, NULL, NULL, &value), 0);
        return 1;
    }
#endif
    if (strcmp(name, "nanosleep") == 0) {
        want(syscall(SYS_nanosleep, &time, NULL), 0);
    } else if (strcmp(name, "clock_nanosleep") == 0) {
        want(nanosleep(&time, NULL), 0);
    } else if (strcmp(name, "poll") == 0) {
        want(poll(&none, 1, SHORT_MS), 0);
    } else if (strcmp(name, "ppoll") == 0) {
        want(ppoll(&none, 1, &time, NULL), 0);
    } else if (strstr(name, "select") != NULL) {
        want(select(0, NULL, NULL, NULL, &value), 0);
    } else if (strncmp(name, "epoll", 5) == 0) {
        want(poll_events(name), 0);
    } else {
        return 0;
    }
    return 1;
}

/* Until another thread or process does something. */
static void sleep_until_told(const char *name) {
    char byte;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    pthread_t thread;
    int status;
    if (strcmp(name, "read") == 0) {
        want(read(ends[0], &byte, 1), 1);
    } else if (strcmp(name, "recvfrom") == 0) {
        want(recv(ends[0], &byte, 1, 0), 1);
    } else if (strcmp(name, "recvmsg") == 0) {
        want(recvmsg(ends[0], &message, 0), 1);
    } else if (strcmp(name, "accept") == 0) {
        want(close(accept(listener, NULL, NULL)), 0);
    } else if (strcmp(name, "accept4") == 0) {
        want(close(accept4(listener, NULL, NULL, 0)), 0);
    } else if (strcmp(name, "wait4") == 0) {
        pid_t child = child_that_naps();
        want(waitpid(child, &status, 0), child);
    } else if (strcmp(name, "waitid") == 0) {
        want(waitid(P_PID, (id_t)child_that_naps(), &(siginfo_t){0}, WEXITED), 0);
    } else if (strcmp(name, "pause") == 0) {
        want(pause(), -1);
    } else {
        want(pthread_create(&thread, NULL, nap, NULL), 0);
        want(pthread_join(thread, NULL), 0);
    }
}

static void sleep_once(const char *name) {
    if (!sleep_for_a_while(name)) {
        sleep_until_told(name);
    }
}

static void *sleep_in(void *name) {
    while (!stop) {
        sleep_once(name);
    }
    return NULL;
}

static void wake(const char *name, pthread_t sleeper) {
    if (strcmp(name, "pause") == 0) {
        want(pthread_kill(sleeper, SIGUSR1), 0);
    } else if (strncmp(name, "accept", 6) == 0) {
        int own = socket(AF_UNIX, SOCK_STREAM, 0);
        want(connect(own, (struct sockaddr *)&address, address_size), 0);
        close(own);
    } else {
        want(write(ends[1], "x", 1), 1);
    }
}

struct waker {
    const char *name;
    pthread_t sleeper;
};

/* For those who sleep until they are told. */
static void *wake_again(void *argument) {
    const struct waker *waker = argument;
    while (!stop) {
        usleep(SHORT_MS * 1000);
        wake(waker->name, waker->sleeper);
    }
    usleep(SHORT_MS * 1000);
    wake(waker->name, waker->sleeper);
    return argument;
}

static int polled[2], events[2];
static atomic_int turn; /* whose event comes next */

static void prepare_turns(void) {
    for (int i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        polled[i] = epoll_create1(0);
        events[i] = eventfd(0, 0);
        want(epoll_ctl(polled[i], EPOLL_CTL_ADD, events[i], &event), 0);
    }
}

static void *take_turns(void *unused) {
    while (!stop) {
        struct epoll_event event;
        eventfd_t count;
        int got;
        do {
            got = epoll_wait(polled[turn], &event, 1, -1);
        } while (is_cut_short(got));
        want(got, 1);
        want(event.data.u32, turn);
        want(eventfd_read(events[turn], &count), 0);
        turn = !turn;
    }
    return unused;
}

/* The next one, soon after the last one was taken. */
static void *give_turns(void *unused) {
    unsigned seed = 1;
    int next = turn;
    while (!stop) {
        want(eventfd_write(events[next], 1), 0);
        next = !next;
        while (turn != next && !stop) {
            sched_yield();
        }
        usleep(rand_r(&seed) % 200);
    }
    for (int i = 0; i < 2; i++) { /* for the other thread to end, whichever it waits for */
        want(eventfd_write(events[i], 1), 0);
    }
    return unused;
}

static int needs_waking(const char *name) {
    return strcmp(name, "read") == 0 || strncmp(name, "recv", 4) == 0 ||
           strncmp(name, "accept", 6) == 0 || strcmp(name, "pause") == 0;
}

static void ignore(int number) {
    (void)number;
}

static void prepare_to_sleep(const char *name) {
    if (strncmp(name, "epoll", 5) == 0) {
        ends[0] = epoll_create1(0);
        return;
    }
    want(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    want(bind(listener, (struct sockaddr *)&address, address_size), 0);
    address_size = sizeof address;
    want(getsockname(listener, (struct sockaddr *)&address, &address_size), 0);
    want(listen(listener, 64), 0);
    signal(SIGUSR1, ignore);
}

/* The next line's first letter, waited for in a call of which no thread is taken: then it is the
 * other thread that is held. */
static char read_untaken(void) {
    char line[16] = "";
    struct iovec piece = {line, sizeof line};
    return readv(STDIN_FILENO, &piece, 1) > 0 ? line[0] : '\0';
}

static char read_line(void) {
    char line[16] = "";
    return fgets(line, sizeof line, stdin) != NULL ? line[0] : '\0';
}

/* Whether it goes on: an empty line or the end is for it to end. */
static int answer(char asked) {
    if (asked != 'g') {
        return 0;
    }
    printf("%ld %ld\n", atomic_exchange(&longest_ns, 0), works);
    fflush(stdout);
    return 1;
}

static void allocate_alone(void) {
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};
    do {
        long last = 0;
        while (poll(&in, 1, 0) == 0) {
            for (int i = 0; i < 10000; i++) {
                allocate_some();
                note_work(&last, PAIRS);
            }
        }
    } while (answer(read_line()));
}

static void start_one(pthread_t *thread, void *(*work)(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    want(pthread_create(thread, &attributes, work, argument), 0);
    pthread_attr_destroy(&attributes);
}

static int start(pthread_t *threads, int argc, char **argv) {
    const char *mode = argv[1];
    char *argument = argc > 2 ? argv[2] : NULL;
    int is_many = strcmp(mode, "many") == 0;
    int number = is_many || strcmp(mode, "malloc") == 0 ? atoi(argument)
                 : strcmp(mode, "dlopens") == 0         ? 2
                                                        : 1;
    void *(*work)(void *) = is_many                        ? sleep_long
                            : strcmp(mode, "malloc") == 0  ? allocate
                            : strcmp(mode, "dlopens") == 0 ? open_library
                            : strcmp(mode, "forks") == 0   ? fork_children
                            : strcmp(mode, "turns") == 0   ? take_turns
                                                           : sleep_in;
    want(number > 0 && number < MOST, 1);
    for (int i = 0; i < number; i++) {
        start_one(&threads[i], work, argument);
    }
    if (is_many) {
        start_one(&threads[number++], allocate, NULL);
    }
    return number;
}

int main(int argc, char **argv) {
    static pthread_t threads[MOST + 1];
    struct waker waker = {argc > 2 ? argv[2] : "", 0};
    int number = 0;
    int is_asleep;
    if (argc < 2) {
        return 2;
    }
    is_asleep = strcmp(argv[1], "asleep") == 0 || strcmp(argv[1], "turns") == 0;
    prepare_to_sleep(waker.name);
    prepare_turns();
    if (strcmp(argv[1], "alone") != 0) {
        number = start(threads, argc, argv);
    }
    waker.sleeper = threads[0];
    if (strcmp(argv[1], "asleep") == 0 && needs_waking(waker.name)) {
        start_one(&threads[number++], wake_again, &waker);
    } else if (strcmp(argv[1], "turns") == 0) {
        start_one(&threads[number++], give_turns, NULL);
    }
    puts("ready");
    fflush(stdout);
    if (number == 0) {
        allocate_alone();
    }
    while (number != 0 && answer(is_asleep ? read_untaken() : read_line())) {
    }
    stop = 1;
    for (int i = 0; i < number; i++) {
        pthread_join(threads[i], NULL);
    }
    puts("end");
    return 3;
}
#endif
