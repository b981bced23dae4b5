/* SPDX-License-Identifier: MIT */
/*
 * fast.c: small blocks from the same place again and again, whose numbers are known. Built with the
 * compiler's pass all but the first few are counted by the fast halves. Each case ends with "done".
 *
 *   handlers   a timer's handler allocates and frees while main() does, which prints how often
 *   newest     each round keeps three blocks and frees the fourth at once
 *   lifetimes  blocks that live many ticks, freed by the thread that made them
 *   others     the same, freed by another thread that has blocks of its own
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { PAIRS = 3000000, SIGNALS = 3000, ROUNDS = 100, BLOCKS = 1000, LIFE_US = 40000 };

static void *volatile block[BLOCKS];

/* --- handlers --------------------------------------------------------------------------------- */

static volatile sig_atomic_t handled;

static void on_timer(int number) {
    (void)number;
    free(malloc(72));
    handled++;
}

/* glibc serves both sizes from lists of their own, without a lock, once there is a block in each:
 * so a handler may come in between. */
static void handlers(void) {
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    long pairs = 0;
    free(malloc(72));
    free(malloc(40));
    signal(SIGALRM, on_timer);
    setitimer(ITIMER_REAL, &often, NULL);
    for (; pairs < PAIRS || handled < SIGNALS; pairs++) {
        free(malloc(40));
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%ld\n", pairs);
}

/* --- the others ------------------------------------------------------------------------------- */

static void newest(void) {
    for (int round = 0; round < ROUNDS; round++) {
        void *last = NULL;
        for (int i = 0; i < 4; i++) {
            block[0] = last;
            last = malloc(48);
        }
        free(last);
    }
}

static void take_all(void) {
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = malloc(56);
    }
}

static void *free_all(void *unused) {
    void *own = malloc(88);
    for (int i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
    free(own);
    return unused;
}

static void others(void) {
    pthread_t thread;
    take_all();
    usleep(LIFE_US);
    pthread_create(&thread, NULL, free_all, NULL);
    pthread_join(thread, NULL);
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    if (strcmp(name, "handlers") == 0) {
        handlers();
    } else if (strcmp(name, "newest") == 0) {
        newest();
    } else if (strcmp(name, "lifetimes") == 0) {
        take_all();
        usleep(LIFE_US);
        free_all(NULL);
    } else if (strcmp(name, "others") == 0) {
        others();
    }
    puts("done");
    return 0;
}
