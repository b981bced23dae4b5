/* SPDX-License-Identifier: MIT */
/*
 * interrupted_fast.c: a timer's signals come anywhere into a loop that allocates small blocks from
 * one place and frees them, and the handler allocates, or forks a child that goes on in the loop.
 *
 * By size of block: 801 the loop's, 803 the handlers', 807 the children's.
 */
#include "../programs/subjects/subject.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

enum { SIGNALS = 600, FORK_EACH = 10 };

static volatile int signals, is_child;

#define PAIR(size)                                                                                 \
    do {                                                                                           \
        void *block_ = malloc(size);                                                               \
        keep(block_);                                                                              \
        free(block_);                                                                              \
    } while (0)

static void wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ends well");
}

static void on_alarm(int number) {
    pid_t child;
    (void)number;
    if (is_child || signals == SIGNALS) {
        return;
    }
    signals++;
    PAIR(803);
    if (signals % FORK_EACH == 0) {
        child = fork();
        is_child = child == 0;
        if (!is_child) {
            wait_for(child);
        }
    }
}

NOINLINE static void end_of_child(void) {
    for (int i = 0; i < 5; i++) {
        PAIR(807);
    }
    exit(0);
}

NOINLINE static unsigned long loop(void) {
    unsigned long pairs = 0;
    while (signals < SIGNALS) {
        for (int i = 0; i < 100 && !is_child; i++) {
            PAIR(801);
            pairs++;
        }
        if (is_child) {
            end_of_child();
        }
    }
    return pairs;
}

/* glibc takes no lock once there is a block for the loop and one for the handler in the thread's
 * list of this size; where the handler came into the first call it would wait forever. */
static void fill_list(void) {
    void *first = malloc(802), *second = malloc(802);
    free(first);
    free(second);
}

int main(void) {
    struct itimerspec timing = {.it_interval.tv_nsec = 50000, .it_value.tv_nsec = 50000};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct sigaction how = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    unsigned long pairs;
    char line[80];
    timer_t timer;
    fill_list();
    sigaction(SIGALRM, &how, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &timing, NULL);
    pairs = loop();
    timer_delete(timer);
    snprintf(line, sizeof line, "pairs %lu signals %d\n", pairs, signals);
    say(line);
    return 3;
}
