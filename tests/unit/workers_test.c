/* SPDX-License-Identifier: MIT */
/* workers_test.c: web/server/workers: what takes milliseconds is answered while passes run. */
#include "web/server/workers.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

struct held {
    struct task task; /* first */
    sem_t begun, goes_on, done;
};

static void hold(struct task *task) {
    struct held *held = (struct held *)task;
    sem_post(&held->begun);
    while (sem_wait(&held->goes_on) != 0) {
    }
}

static void say_done(struct task *task) {
    sem_post(&((struct held *)task)->done);
}

static void make(struct held *held, enum task_queue queue, unsigned goes_on) {
    held->task = (struct task){.run = hold, .done = say_done, .queue = queue};
    sem_init(&held->begun, 0, 0);
    sem_init(&held->goes_on, 0, goes_on);
    sem_init(&held->done, 0, 0);
}

static void assert_comes(sem_t *semaphore) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    assert_int_equal(sem_timedwait(semaphore, &until), 0);
}

/* Two workers and two passes that take long: one is left for whoever asks for little, again and
 * again; then comes the second pass. */
static void passes_never_take_the_last_worker(void **state) {
    struct workers *workers = workers_start(2, NULL);
    struct held passes[2];
    struct held quick[50];
    (void)state;
    assert_non_null(workers);
    for (int i = 0; i < 2; i++) {
        make(&passes[i], QUEUE_PASSES, 0);
        workers_put(workers, &passes[i].task);
    }
    assert_comes(&passes[0].begun);
    for (int i = 0; i < 50; i++) {
        make(&quick[i], QUEUE_INTERACTIVE, 1);
        workers_put(workers, &quick[i].task);
        assert_comes(&quick[i].done);
    }
    assert_int_equal(sem_trywait(&passes[1].begun), -1);
    sem_post(&passes[0].goes_on);
    assert_comes(&passes[0].done);
    assert_comes(&passes[1].begun);
    sem_post(&passes[1].goes_on);
    assert_comes(&passes[1].done);
    workers_end(workers);
    workers_free(workers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_never_take_the_last_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
