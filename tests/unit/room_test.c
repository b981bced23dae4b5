/* SPDX-License-Identifier: MIT */
/* Tests of runtime/base/room.c: addresses that become more, what is in the way, limits, forks. */
#define _GNU_SOURCE
#include "runtime/base/room.h"

#include "runtime/base/sys.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

enum { PART = 16 };
#define MOST (UINT64_C(1) << (sizeof(void *) == 8 ? 34 : 27))
static const struct room_kind to_map = {.use = ROOM_TO_MAP,
                                        .place = ROOM_OF_REGION,
                                        .most_bytes = MOST,
                                        .limit_part = PART,
                                        .step_bytes = 1 << 20};
static const struct room_kind memory = {.use = ROOM_MEMORY,
                                        .place = ROOM_OF_LINKS,
                                        .most_bytes = MOST,
                                        .limit_part = PART,
                                        .step_bytes = 1 << 20};
static const struct room_kind exact = {
    .use = ROOM_MEMORY, .place = ROOM_OF_HEAP, .most_bytes = MOST, .limit_part = PART};

/* As the kernel tells it: whether nothing is mapped at this page. */
static int is_free(uint8_t *page) {
    return msync(page, 1, MS_ASYNC) != 0 && errno == ENOMEM;
}

static void little_is_reserved(void **state) {
    struct room room;
    (void)state;
    assert_int_equal(room_open(&room, &to_map), 0);
    assert_true(room.reserved <= MIB);
    assert_true(is_free(room.base + room.reserved));
    for (uint64_t end = 1; end <= 100 * MIB; end += MIB / 3) {
        assert_int_equal(room_reach(&room, end), 0);
        assert_true(room.reserved >= end);
        assert_true(room.reserved <= end + MIB + end / 4);
    }
    assert_true(is_free(room.base + room.reserved));
    assert_int_equal(room_reach(&room, MOST + 1), -EFBIG);
    room_close(&room);
}

static void memory_is_zeroed_and_stays(void **state) {
    struct room room;
    (void)state;
    assert_int_equal(room_open(&room, &memory), 0);
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(room_reach(&room, (i + 1) * MIB), 0);
        assert_int_equal(room.base[i * MIB], 0);
        memset(room.base + i * MIB, (int)i + 1, MIB);
    }
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(room.base[i * MIB + MIB - 1], i + 1);
    }
    room_close(&room);
}

/* Where there is nothing far below it is whole from the start. */
static void none_is_far_below(void **state) {
    enum { ROOMS = 12 };
    struct room rooms[ROOMS];
    int whole = 0;
    (void)state;
    for (int i = 0; i < ROOMS; i++) { /* each takes a place of the next ones */
        assert_int_equal(room_open(&rooms[i], &memory), 0);
        whole += rooms[i].reserved == MOST;
        assert_int_equal(room_reach(&rooms[i], 3 * MIB), 0);
        rooms[i].base[3 * MIB - 1] = 1;
    }
    assert_true(whole > 0);
    assert_true(rooms[0].reserved < MOST);
    for (int i = 0; i < ROOMS; i++) {
        room_close(&rooms[i]);
    }
}

/* One piece behind the other, and nothing more. */
static void pieces_are_taken(void **state) {
    enum { PIECE = 12345678 };
    struct room room;
    uint8_t *before;
    (void)state;
    assert_int_equal(room_open(&room, &exact), 0);
    assert_int_equal(room.reserved, sys_page_bytes());
    before = room_take(&room, PIECE);
    assert_ptr_equal(before, room.base + sys_page_bytes());
    for (int i = 0; i < 10; i++) {
        uint8_t *piece = room_take(&room, PIECE);
        assert_ptr_equal(piece, before + sys_page_up(PIECE));
        assert_true(is_free(piece + sys_page_up(PIECE)));
        assert_int_equal(piece[0] | piece[PIECE - 1], 0);
        piece[0] = piece[PIECE - 1] = 1;
        before = piece;
    }
    assert_null(room_take(&room, MOST));
    room_close(&room);
}

static void what_is_in_the_way_stays(void **state) {
    struct room room;
    uint8_t *other;
    (void)state;
    assert_int_equal(room_open(&room, &to_map), 0);
    other = mmap(room.base + 3 * MIB, 4096, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert_ptr_equal(other, room.base + 3 * MIB);
    *other = 7;
    assert_int_equal(room_reach(&room, 3 * MIB), 0); /* up to it, though a step would be more */
    assert_int_equal(room_reach(&room, 3 * MIB + 1), -EEXIST);
    assert_int_equal(*other, 7);
    munmap(other, 4096);
    assert_int_equal(room_reach(&room, 3 * MIB + 1), 0);
    room_close(&room);
}

/* Limits are those of that moment, not of the start: in a child, which keeps them. */
static void limits_are_looked_at_again(void **state) {
    static const struct {
        int resource;
        const struct room_kind *kind;
        int is_limited;
    } sets[] = {{RLIMIT_AS, &to_map, 1},
                {RLIMIT_AS, &memory, 1},
                {RLIMIT_DATA, &memory, 1},
                {RLIMIT_DATA, &to_map, 0}};
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its shadow alone is above each limit */
#endif
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            const struct rlimit limit = {1024 * MIB, 1024 * MIB};
            struct room room;
            int wrong = room_open(&room, sets[i].kind) != 0;
            wrong |= (room_reach(&room, 2 * MIB) != 0) << 1;
            setrlimit(sets[i].resource, &limit);
            wrong |= (room_reach(&room, 64 * MIB) != 0) << 2;
            wrong |= ((room_reach(&room, 64 * MIB + 1) != 0) != sets[i].is_limited) << 3;
            _exit(wrong);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

/* A fork while another thread made it larger: before and after it was mapped. */
static void a_fork_ends_what_was_begun(void **state) {
    (void)state;
    for (int is_mapped = 0; is_mapped < 2; is_mapped++) {
        struct room room;
        assert_int_equal(room_open(&room, &memory), 0);
        room.lock.held = 1;
        room.wanted = 2 * MIB;
        if (is_mapped) {
            assert_int_equal(sys_map_free(room.base + MIB, MIB), 0);
        }
        room_fork(&room);
        assert_int_equal(room.reserved, 2 * MIB);
        memset(room.base, 1, 2 * MIB);
        assert_int_equal(room_reach(&room, 5 * MIB), 0);
        room_close(&room);
    }
}

static void *reach_all(void *argument) {
    struct room *room = argument;
    for (uint64_t end = 4096; end <= 64 * MIB; end += 65536) {
        if (room_reach(room, end) != 0 || LOAD_ACQUIRE(&room->reserved) < end) {
            return argument;
        }
        room->base[end - 1] = 1;
    }
    return NULL;
}

static void threads_share_it(void **state) {
    pthread_t threads[4];
    struct room room;
    (void)state;
    assert_int_equal(room_open(&room, &memory), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, reach_all, &room), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    room_close(&room);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(little_is_reserved),         cmocka_unit_test(memory_is_zeroed_and_stays),
        cmocka_unit_test(what_is_in_the_way_stays),   cmocka_unit_test(limits_are_looked_at_again),
        cmocka_unit_test(a_fork_ends_what_was_begun), cmocka_unit_test(threads_share_it),
        cmocka_unit_test(pieces_are_taken),           cmocka_unit_test(none_is_far_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
