/* SPDX-License-Identifier: MIT */
/*
 * idle.c CASE: works, rests, and works again, on one thread or several, and says when it did what.
 * Run by idle.py.
 *
 * Each block has a size of its own; a line tells of it
 *   FUNCTION SIZE BORN_FROM BORN_TO FREED_FROM FREED_TO
 * on the monotonic clock in nanoseconds, freed -1 where it stays. The beginning of an event is what
 * the kernel's coarse clock said just before, which is some milliseconds late: no profiler that
 * looks at the clock now and then can know better, and on a busy machine it is as late as it has to
 * be.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef OWN_CLOCK /* as a library for tests brings one: what is told of the program is the kernel's \
                  */
#include <sys/syscall.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    long result = syscall(SYS_clock_gettime, clock, now);
    now->tv_sec += 1000;
    now->tv_nsec = now->tv_nsec / 10 * 10 + 7;
    return (int)result;
}
#endif

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

enum { SHORT_LIVES = 200, BUSY_EVENTS = 3000 };

struct span {
    long long from, to;
};
struct life {
    size_t size;
    struct span born, freed;
};

static long long clock_ns(clockid_t clock) {
    struct timespec now;
#ifdef OWN_CLOCK
    syscall(SYS_clock_gettime, clock, &now);
#else
    clock_gettime(clock, &now);
#endif
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void begin(struct span *span) {
    span->from = clock_ns(CLOCK_MONOTONIC_COARSE);
}

static void end(struct span *span) {
    span->to = clock_ns(CLOCK_MONOTONIC);
}

static void tell(const char *function, const struct life *life) {
    printf("%s %zu %lld %lld %lld %lld\n", function, life->size, life->born.from, life->born.to,
           life->freed.from, life->freed.to);
}

static void nap(long ms) {
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Many events in a short time. */
static void work(void) {
    for (int i = 0; i < BUSY_EVENTS; i++) {
        free(malloc(32));
    }
}

static void *take(struct life *life, size_t size) {
    life->size = size;
    life->freed = (struct span){-1, -1};
    begin(&life->born);
    void *block = malloc(size);
    end(&life->born);
    return block;
}

static void give_back(struct life *life, void *block) {
    begin(&life->freed);
    free(block);
    end(&life->freed);
}

/* --- one thread ------------------------------------------------------------------------------- */

/* After a rest, without another event in between. */
static void rested(void) {
    struct life life;
    void *block = take(&life, 50001);
    nap(250);
    give_back(&life, block);
    tell(__func__, &life);
}

/* A small block is noted otherwise. */
static void rested_small(void) {
    struct life life;
    void *block = take(&life, 300);
    nap(150);
    give_back(&life, block);
    tell(__func__, &life);
}

static void short_lives(void) {
    for (int i = 0; i < SHORT_LIVES; i++) {
        struct life life;
        void *block = take(&life, 50100 + (size_t)i);
        give_back(&life, block);
        tell(__func__, &life);
    }
}

static void resized(void) {
    struct life first, second;
    void *block = take(&first, 50400);
    nap(150);
    second.size = 50500;
    begin(&second.born);
    first.freed.from = second.born.from;
    block = realloc(block, second.size);
    end(&second.born);
    first.freed.to = second.born.to;
    nap(150);
    give_back(&second, block);
    tell(__func__, &first);
    tell(__func__, &second);
}

static void mapped(void) {
    struct life life = {.size = 504 << 12};
    begin(&life.born);
    void *pages = mmap(NULL, life.size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    end(&life.born);
    nap(150);
    begin(&life.freed);
    munmap(pages, life.size);
    end(&life.freed);
    tell(__func__, &life);
}

static void alone(void) {
    struct life stays;
    work();
    nap(300);
    rested();
    nap(250);
    short_lives();
    nap(150);
    rested_small();
    resized();
    mapped();
    take(&stays, 50600);
    tell(__func__, &stays);
}

/* --- several threads -------------------------------------------------------------------------- */

static sem_t full, empty;
static struct life handed_life;
static void *handed;

/* Frees what it is handed, at once; before, it rests. */
static void *consume(void *unused) {
    (void)unused;
    work();
    sem_post(&empty);
    for (int i = 0; i < SHORT_LIVES; i++) {
        sem_wait(&full);
        give_back(&handed_life, handed);
        tell("hand_over", &handed_life);
        sem_post(&empty);
    }
    return NULL;
}

static void hand_over(void) {
    pthread_t thread;
    sem_init(&full, 0, 0);
    sem_init(&empty, 0, 0);
    pthread_create(&thread, NULL, consume, NULL);
    sem_wait(&empty);
    nap(300);
    work();
    for (int i = 0; i < SHORT_LIVES; i++) {
        handed = take(&handed_life, 51000 + (size_t)i);
        sem_post(&full);
        sem_wait(&empty);
    }
    pthread_join(thread, NULL);
}

static void *take_turns(void *unused) {
    (void)unused;
    work();
    sem_post(&empty);
    for (size_t size = 52001; size < 52010; size += 2) {
        struct life life;
        sem_wait(&full);
        nap(15);
        take(&life, size);
        tell(__func__, &life);
        sem_post(&empty);
    }
    return NULL;
}

/* One block each in turn, after a rest. */
static void turns(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, take_turns, NULL);
    sem_wait(&empty);
    work();
    nap(300);
    for (size_t size = 52000; size < 52010; size += 2) {
        struct life life;
        take(&life, size);
        tell(__func__, &life);
        sem_post(&full);
        sem_wait(&empty);
        nap(15);
    }
    pthread_join(thread, NULL);
}

static void together(void) {
    hand_over();
    turns();
}

/* --- a forked child frees what its parent allocated --------------------------------------------
 */

static void forked(void) {
    struct life life;
    work();
    void *block = take(&life, 53000);
    nap(300);
    if (fork() == 0) {
        for (int i = 0; i < 40; i++) { /* enough for a profile of its own */
            work();
        }
        nap(50);
        give_back(&life, block);
        tell(__func__, &life);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
}

/* --- the same in another time namespace, where the kernel's page holds something else ------------
 */

/* Who may not make such a namespace may in a user namespace of its own, where that is allowed. */
static int stay_the_same_user(void) {
    uid_t user = getuid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0) {
        return 0;
    }
    FILE *map = fopen("/proc/self/uid_map", "w");
    return map != NULL && fprintf(map, "%u %u 1\n", user, user) > 0 && fclose(map) == 0;
}

static int in_namespace(void) {
    if (unshare(CLONE_NEWTIME) != 0 && !stay_the_same_user()) {
        return 77; /* not allowed */
    }
    work();
    if (fork() == 0) { /* is in it */
        for (int i = 0; i < 40; i++) {
            work();
        }
        nap(200);
        rested();
        nap(200);
        short_lives();
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    return 0;
}

/* --- threads that are gone before an interrupt --------------------------------------------------
 */

static void *live_shortly(void *unused) {
    for (int i = 0; i < 10; i++) {
        free(malloc(100000));
    }
    return unused;
}

static void short_threads(void) {
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, live_shortly, NULL);
        pthread_join(thread, NULL);
    }
}

int main(int argc, char **argv) {
    static char buffer[1 << 16];
    const char *name = argc > 1 ? argv[1] : "";
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    if (strcmp(name, "alone") == 0) {
        alone();
    } else if (strcmp(name, "together") == 0) {
        together();
    } else if (strcmp(name, "forked") == 0) {
        forked();
    } else if (strcmp(name, "short_threads") == 0) {
        short_threads();
    } else if (strcmp(name, "in_namespace") == 0) {
        return in_namespace();
    }
    return 0;
}
