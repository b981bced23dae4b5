/* SPDX-License-Identifier: MIT */
/* Tests of runtime/record/recorder.c: programs that are killed, and threads that free each other's
 * blocks. */
#include "runtime/base/sys.h"
#include "runtime/heap/shadow_heap.h"
#include "tests/unit/recorder_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

/* --- killed ----------------------------------------------------------------------------------- */

struct accounts {
    uint64_t allocs;
    uint64_t other;
};

static void count_word(void *argument, const struct memtrace_chunk *chunk, const uint64_t *word,
                       uint64_t number) {
    struct accounts *accounts = argument;
    (void)chunk;
    if ((*word & 15) == MEMTRACE_WORD_ALLOC) {
        assert_int_equal(number, accounts->allocs + 1);
        assert_int_equal(word[1], (accounts->allocs + 1) * 16);
        accounts->allocs++;
    } else {
        assert_int_equal(*word & 15, MEMTRACE_WORD_EXTRA);
        accounts->other++;
    }
}

/* Maps what another process appended to the region, and looks for its chunks. */
static void find_segments(void) {
    struct space *space = recorder.space;
    uint64_t end = LOAD_ACQUIRE(&space->header->end);
    uint64_t at = MEMTRACE_HEADER_SIZE;
    const struct memtrace_segment *segment;
    if (end > at) {
        assert_int_equal(room_reach(&space->room, end), 0);
        int fd = (int)space_descriptor(space);
        assert_int_equal(sys_map_file_at(space->base + at, end - at, fd, at, SYS_PAGES_LATER), 0);
        sys_close(fd);
    }
    while ((segment = space_next(space, &at, end)) != NULL) {
        assert_int_equal(segment->kind, MEMTRACE_SEGMENT_EVENTS);
        assert_int_equal(segment->index, recorder.segments);
        recorder.segment[recorder.segments++] = (struct memtrace_chunk *)segment;
    }
}

/* Whenever the program dies, each whole event is there, and no half one. */
static void a_kill_loses_the_event_in_flight(void **state) {
    uint64_t *done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)state;
    for (int round = 0; round < 40; round++) {
        struct accounts accounts = {0};
        void *own;
        pid_t child;
        open_recorder(&own);
        *done = 0;
        child = fork();
        if (child == 0) {
            struct recorder_stream stream;
            recorder_join(&recorder, &stream, 3);
            for (uint64_t i = 1;; i++) {
                struct recorder_alloc event = {
                    .address = i * 16, .size = 8, .alignment = i % 3 == 0 ? 6 : 0};
                if (recorder_alloc(&stream, &event) == 0) {
                    pause();
                }
                __atomic_store_n(done, i, __ATOMIC_RELEASE);
            }
        }
        usleep((useconds_t)(200 + round * 137 % 5000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        find_segments();
        for (uint32_t sequence = 0;; sequence++) {
            const struct memtrace_chunk *chunk = find_chunk(1, sequence);
            if (chunk == NULL) {
                break;
            }
            read_chunk(chunk, count_word, &accounts);
        }
        assert_true(accounts.allocs >= *done && accounts.allocs <= *done + 1);
        close_recorder(&own);
    }
    munmap(done, 4096);
}

/* --- threads that free each other's blocks -----------------------------------------------------
 */

enum { THREADS = 8, PLACES = 64, STEPS = 60000 };

struct place {
    uint32_t lock;
    uint32_t owner; /* thread id of the block there; 0: none */
};

static struct place places[PLACES];
static struct shadow_heap heap;
static uint32_t running;

/* Who allocated which place with which number, and what was freed how often. */
struct ledger_of_numbers {
    uint8_t place[THREADS + 2][STEPS + 1]; /* + 1; 0: no such allocation */
    uint8_t freed[THREADS + 2][STEPS + 1]; /* the place that the free named, + 1 */
};
static struct ledger_of_numbers seen;

static void note_word(void *argument, const struct memtrace_chunk *chunk, const uint64_t *word,
                      uint64_t number) {
    (void)argument;
    if ((*word & 15) == MEMTRACE_WORD_ALLOC) {
        assert_uint_in_range(number, 1, STEPS);
        assert_int_equal(seen.place[chunk->thread][number], 0);
        seen.place[chunk->thread][number] = (uint8_t)(1 + (word[1] & 0xffff) / 32);
    } else if ((*word & 15) == MEMTRACE_WORD_FREE_AT) {
        uint64_t owner = *word >> 4 & 0xfff;
        uint64_t freed = *word >> 16;
        assert_uint_in_range(owner, 2, THREADS + 1);
        assert_uint_in_range(freed, 1, STEPS);
        assert_int_equal(seen.freed[owner][freed], 0);
        seen.freed[owner][freed] = (uint8_t)word[1];
    }
}

static const uintptr_t base = UINT64_C(0x7f1200000000);

static void use_place(struct recorder_stream *stream, uint32_t thread, uint32_t i) {
    struct place *place = &places[i];
    uintptr_t address = base + i * 32;
    if (__atomic_exchange_n(&place->lock, 1, __ATOMIC_ACQUIRE) != 0) {
        return;
    }
    if (place->owner == 0) {
        uint64_t number;
        while ((number = alloc(stream, address, 8)) == 0) {
            usleep(10); /* the collector is behind */
        }
        heap_set_number(&heap, address, (uint32_t)number);
        place->owner = thread;
    } else {
        uint32_t low = heap_take_number(&heap, address);
        uint64_t number = recorder_number(&recorder, place->owner, low, 0);
        while (!recorder_free(stream, recorder_name(place->owner, number), i + 1)) {
            usleep(10);
        }
        place->owner = 0;
    }
    __atomic_store_n(&place->lock, 0, __ATOMIC_RELEASE);
}

static void *run_thread(void *argument) {
    uint32_t thread = *(uint32_t *)argument;
    uint32_t seed = thread * 2654435761u;
    struct recorder_stream stream;
    recorder_join(&recorder, &stream, thread);
    for (int i = 0; i < STEPS; i++) {
        seed = seed * 1664525u + 1013904223u;
        use_place(&stream, thread, (seed >> 10) % PLACES);
    }
    recorder_leave(&stream);
    __atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Takes whatever is full, in any order. */
static uint32_t drain(void) {
    uint32_t drained = 0;
    for (uint32_t i = 0; i < chunk_count(); i++) {
        if (is_chunk(i) && LOAD_ACQUIRE(&chunk_at(i)->state) == MEMTRACE_CHUNK_FULL) {
            read_chunk(chunk_at(i), note_word, NULL);
            give_back(i);
            drained++;
        }
    }
    return drained;
}

static void frees_find_their_allocations(void **state) {
    pthread_t thread[THREADS];
    uint32_t id[THREADS];
    uint64_t allocs = 0;
    uint64_t frees = 0;
    uint64_t live = 0;
    uint32_t drained = 0;
    (void)state;
    memset(&heap, 0, sizeof heap);
    memset(&seen, 0, sizeof seen);
    memset(places, 0, sizeof places);
    heap.numbered = 1;
    assert_int_equal(heap_init(&heap, MEMTRACE_FINE_SHIFT), 0);
    assert_non_null(heap_add_leaf(&heap, base));
    running = THREADS;
    recorder.most_segments = 2;
    for (uint32_t i = 0; i < THREADS; i++) {
        id[i] = i + 2;
        pthread_create(&thread[i], NULL, run_thread, &id[i]);
    }
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) != 0) {
        drained += drain();
    }
    drained += drain();
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        for (uint32_t n = 1; n <= STEPS; n++) {
            allocs += seen.place[id[i]][n] != 0;
            frees += seen.freed[id[i]][n] != 0;
            if (seen.freed[id[i]][n] != 0) {
                assert_int_equal(seen.freed[id[i]][n], seen.place[id[i]][n]);
            }
        }
    }
    for (uint32_t i = 0; i < PLACES; i++) {
        live += places[i].owner != 0;
    }
    assert_int_equal(allocs - frees, live);
    assert_true(allocs > STEPS);
    assert_true(drained > chunk_count()); /* so chunks were used again */
    heap_give_up(&heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kill_loses_the_event_in_flight),
        TEST(frees_find_their_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
