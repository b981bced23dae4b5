/* SPDX-License-Identifier: MIT */
/*
 * interrupted.c: signals that come while the library is at work. To hit it surely, one page after
 * the other of its region is made unreadable: the next event faults there, in the middle, and the
 * handler gives the page back and does what the case says.
 *
 * By size of block: 80001 the interrupted allocations, 80003 those of the handler, 80005
 * afterwards, 80007 a child's, 80011 and 811 those that a handler makes larger.
 */
#include "../programs/subjects/subject.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

enum { PAGE = 4096, FORKS = 60, HELD = 20000 };

static char *region, *region_end;
static void (*action)(void);
static volatile int faults;
static sigjmp_buf back;

NOINLINE static void use(size_t size, int count) {
    for (int i = 0; i < count; i++) {
        void *block = malloc(size);
        keep(block);
        free(block);
    }
}

/* The same in the function that this stands in. */
#define HERE(size)                                                                                 \
    do {                                                                                           \
        void *block_ = malloc(size);                                                               \
        keep(block_);                                                                              \
        free(block_);                                                                              \
    } while (0)

/* Where the profile is mapped. */
static void find_region(void) {
    static char maps[1 << 18];
    int file = open("/proc/self/maps", O_RDONLY);
    size_t size = 0;
    ssize_t got;
    while ((got = read(file, maps + size, sizeof maps - 1 - size)) > 0) {
        size += (size_t)got;
    }
    close(file);
    for (char *line = strtok(maps, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strstr(line, ".mtp") != NULL) {
            char *end;
            char *low = (char *)strtoul(line, &end, 16);
            region = region == NULL ? low : region;
            region_end = (char *)strtoul(end + 1, NULL, 16);
        }
    }
    check(region != NULL, "the region is mapped");
}

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    if ((char *)info->si_addr < region || (char *)info->si_addr >= region_end) {
        say("WRONG: a fault elsewhere\n");
        _exit(97);
    }
    mprotect(region, (size_t)(region_end - region), PROT_READ | PROT_WRITE);
    faults++;
    action();
}

static void allocate(void) {
    use(80003, 1);
}

static void *moving[2];

/* Where they were something else lies then. */
static void resize(void) {
    for (int i = 0; i < 2; i++) {
        moving[i] = realloc(moving[i], i == 0 ? 160022 : 1622);
        check(moving[i] != NULL, "memory");
    }
}

static void leave(void) {
    siglongjmp(back, 1);
}

static void wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ends well");
}

static volatile int is_child;

/* The child goes on in the middle of the event, as its parent does. */
static void fork_now(void) {
    pid_t child = fork();
    if (child == 0) {
        is_child = 1;
        action = allocate;
        if (faults % 2 != 0) {
            use(80003, 1);
        }
    } else {
        wait_for(child);
    }
}

static void end_of_child(void) {
    if (is_child) {
        use(80007, 5);
        exit(0);
    }
}

/* One event for each page of the region, which faults if it touches it. */
NOINLINE static void visit_pages(void) {
    use(80009, 2); /* a thread becomes known with signals blocked */
    for (char *volatile page = region; page < region_end; page += PAGE) {
        moving[0] = malloc(80011);
        moving[1] = malloc(811);
        mprotect(page, PAGE, PROT_NONE);
        if (sigsetjmp(back, 1) == 0) {
            if (faults % 2 == 0) {
                use(80001, 1);
            } else {
                HERE(80001);
            }
        }
        mprotect(page, PAGE, PROT_READ | PROT_WRITE);
        end_of_child();
        free(moving[0]);
        free(moving[1]);
        HERE(80005); /* further out than what was left, or at the same place */
    }
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction how = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigaction(number, &how, NULL);
}

/* The handlers' stack lies in a frame, above that of each event. */
static void *on_stack_in_frame(void *argument) {
    char memory[1 << 16];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    sigaltstack(&stack, NULL);
    handle(SIGSEGV, on_fault, SA_ONSTACK);
    visit_pages();
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
    return argument;
}

static void *on_same_stack(void *argument) {
    handle(SIGSEGV, on_fault, 0);
    visit_pages();
    return argument;
}

static void in_a_thread(void *(*function)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, function, NULL);
    pthread_join(thread, NULL);
}

/* --- signals at any moment -------------------------------------------------------------------- */

static volatile int forks;

static void fork_at_alarm(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
    if (!is_child && forks < FORKS) {
        forks++;
        faults = forks;
        fork_now();
    }
}

static void storm(void) {
    struct itimerspec timing = {.it_interval.tv_nsec = 300000, .it_value.tv_nsec = 300000};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    handle(SIGALRM, fork_at_alarm, SA_RESTART);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &timing, NULL);
    while (forks < FORKS) {
        use(80001, 1);
        end_of_child();
    }
    end_of_child(); /* the last fork may come just before the condition */
    timer_delete(timer);
}

/* --- forks while another thread maps ---------------------------------------------------------- */

static void *map_and_unmap(void *argument) {
    while (forks < FORKS) {
        void *memory = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(memory, 16 * PAGE);
    }
    return argument;
}

static void fork_while_mapping(void) {
    pthread_t thread;
    for (int i = 0; i < HELD; i++) {
        mmap(NULL, PAGE, PROT_READ << i % 2, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    pthread_create(&thread, NULL, map_and_unmap, NULL);
    for (; forks < FORKS; forks++) {
        pid_t child = fork();
        if (child == 0) {
            void *memory = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            use(80007, 5);
            munmap(memory, PAGE);
            exit(0);
        }
        wait_for(child);
    }
    faults = forks;
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    action = strcmp(name, "leave") == 0    ? leave
             : strcmp(name, "fork") == 0   ? fork_now
             : strcmp(name, "resize") == 0 ? resize
                                           : allocate;
    use(80001, 2);
    find_region();
    if (strcmp(name, "storm") == 0) {
        storm();
    } else if (strcmp(name, "map") == 0) {
        fork_while_mapping();
    } else {
        on_stack_in_frame(NULL);
        on_same_stack(NULL);
        in_a_thread(on_stack_in_frame);
        in_a_thread(on_same_stack);
    }
    char line[80];
    snprintf(line, sizeof line, "faults %d\n", faults);
    say(line);
    return 3;
}
