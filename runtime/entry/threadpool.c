/* SPDX-License-Identifier: MIT */
/* threadpool.c: see threadpool.h. */
#include "runtime/entry/threadpool.h"

#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"

enum { POOL_BYTES = 1 << 20, WALKERS_KEPT = 16 };

struct thread_pool {
    struct thread_pool *older; /* full */
    struct thread thread[];
};
enum { POOL_CAPACITY = (POOL_BYTES - sizeof(struct thread_pool)) / sizeof(struct thread) };

static struct {
    struct thread_pool *newest;
    uint32_t taken; /* of the newest */
    struct thread *free;
    struct walker *walker[WALKERS_KEPT];
    uint32_t walkers;
    struct trylock lock; /* held for a few instructions */
} pool;

/* In this order: who looks at `taken` first misses no thread. */
static int add_pool(void) {
    struct thread_pool *newest = sys_map(POOL_BYTES);
    if (newest == NULL) {
        return -1;
    }
    if (sys_wipe_on_fork(newest, POOL_BYTES) != 0) {
        sys_unmap(newest, POOL_BYTES);
        return -1;
    }
    own_maps_keep(newest);
    newest->older = pool.newest;
    STORE_RELEASE(&pool.newest, newest);
    STORE_RELEASE(&pool.taken, 0u);
    return 0;
}

void threadpool_init(void) {
    if (pool.newest == NULL) {
        add_pool();
    }
}

/* What was free is wiped, lists and all; the structs of threads that are not here are idle. */
void threadpool_fork(void) {
    pool.free = NULL;
    pool.walkers = 0;
    pool.lock.held = 0;
}

static void visit(void (*visitor)(void *argument, struct thread *thread), void *argument) {
    uint32_t count = LOAD_ACQUIRE(&pool.taken);
    for (struct thread_pool *it = LOAD_ACQUIRE(&pool.newest); it != NULL; it = it->older) {
        for (uint32_t i = 0; i < count && i < POOL_CAPACITY; i++) {
            visitor(argument, &it->thread[i]);
        }
        count = POOL_CAPACITY;
    }
}

static void wipe(void *unused, struct thread *thread) {
    struct thread *next_free = thread->next_free;
    (void)unused;
    *thread = (struct thread){.next_free = next_free};
}

void threadpool_wipe(void) {
    visit(wipe, NULL);
    pool.walkers = 0;
}

static void look(void *found, struct thread *thread) {
    *(int *)found |= LOAD_ACQUIRE(&thread->gate) >= GATE_ADDRESSES && thread != thread_self;
}

int threadpool_is_any_inside(void) {
    int found = 0;
    visit(look, &found);
    return found;
}

struct thread *threadpool_take(void) {
    struct thread *thread = NULL;
    if (!sys_take(&pool.lock)) {
        return NULL;
    }
    if (pool.free != NULL) {
        thread = pool.free;
        pool.free = thread->next_free;
    } else if (pool.newest != NULL && (pool.taken < POOL_CAPACITY || add_pool() == 0)) {
        thread = &pool.newest->thread[pool.taken];
        STORE_RELEASE(&pool.taken, pool.taken + 1);
    }
    trylock_release(&pool.lock);
    if (thread != NULL) {
        *thread = (struct thread){0};
    }
    return thread;
}

void threadpool_return(struct thread *thread) {
    if (sys_take(&pool.lock)) {
        thread->next_free = pool.free;
        pool.free = thread;
        trylock_release(&pool.lock);
    }
}

struct walker *threadpool_take_walker(void) {
    struct walker *walker = NULL;
    if (LOAD_RELAXED(&pool.walkers) != 0 && sys_take(&pool.lock)) {
        if (pool.walkers != 0) {
            walker = pool.walker[--pool.walkers];
        }
        trylock_release(&pool.lock);
    }
    return walker != NULL ? walker : sys_map(sizeof *walker);
}

void threadpool_return_walker(struct walker *walker) {
    if (LOAD_RELAXED(&pool.walkers) < WALKERS_KEPT) {
        walk_forget(walker);
        if (sys_take(&pool.lock)) {
            if (pool.walkers < WALKERS_KEPT) {
                pool.walker[pool.walkers++] = walker;
                walker = NULL;
            }
            trylock_release(&pool.lock);
        }
    }
    if (walker != NULL) {
        walk_free(walker);
        sys_unmap(walker, sizeof *walker);
    }
}

static void stop(void *unused, struct thread *thread) {
    uintptr_t gate = LOAD_RELAXED(&thread->gate);
    (void)unused;
    if (gate == GATE_OPEN || gate == GATE_SAMPLED || gate == GATE_JOINING) {
        __atomic_compare_exchange_n(&thread->gate, &gate, (uintptr_t)GATE_STOPPED, 0,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

void thread_stop_all(void) {
    visit(stop, NULL);
}

static void join(void *unused, struct thread *thread) {
    uintptr_t gate = GATE_OPEN;
    (void)unused;
    if (LOAD_RELAXED(&thread->gate) == gate) {
        __atomic_compare_exchange_n(&thread->gate, &gate, (uintptr_t)GATE_JOINING, 0,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

void thread_join_all(void) {
    visit(join, NULL);
}
