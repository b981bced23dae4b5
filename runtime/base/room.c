/* SPDX-License-Identifier: MIT */
/* room.c: addresses that become more. See room.h. */
#include "runtime/base/room.h"

#include "runtime/base/limits.h"
#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"

#include <errno.h>

enum { STEP_PART = 4, MOST_STEP = 32 << 20 };

static long map_at(const struct room *room, void *address, size_t size) {
    return room->kind->use == ROOM_MEMORY ? sys_map_free(address, size)
                                          : sys_reserve_free(address, size);
}

/* Whether nothing is mapped there. (Where address space is limited nobody looks: it might be what
 * another thread needs at that moment.) */
static int is_free(uint8_t *there, uint64_t bytes) {
    if (limits_address() < UINTPTR_MAX) {
        return 1;
    }
    if (sys_reserve_free(there, bytes) != 0) {
        return 0;
    }
    sys_unmap(there, bytes);
    return 1;
}

/* What the kernel maps from here on comes below what it has mapped, the newest lowest: as far below
 * as may be. (Some checkers allow nothing outside of the uppermost terabyte and a half.) */
static uint8_t *open_far_below(const struct room *room, const uint8_t *here, size_t size) {
    enum { WIDEST = 36, NARROWEST = 24 };
    for (int shift = WIDEST; shift >= NARROWEST; shift -= 2) {
        uint64_t width = UINT64_C(1) << shift;
        uint64_t distance = width * room->kind->place;
        if ((uint64_t)(uintptr_t)here / 2 > distance) {
            uint8_t *there = (uint8_t *)((uintptr_t)here - (uintptr_t)distance);
            if (is_free(there, room->most < width / 2 ? room->most : width / 2) &&
                map_at(room, there, size) == 0) {
                return there;
            }
        }
    }
    return NULL;
}

/* The limit is the program's; it may be another at each time. */
static uint64_t most_now(const struct room *room) {
    const struct room_kind *kind = room->kind;
    uint64_t limit = kind->use == ROOM_MEMORY ? limits_memory() : limits_address();
    uint64_t most = limit / kind->limit_part & ~(uint64_t)(sys_page_bytes() - 1);
    return most < room->most ? most : room->most;
}

/* Where there is nothing far below: all that it may become, at once. */
static uint8_t *open_whole(const struct room *room, size_t *size) {
    for (uint64_t bytes = most_now(room); bytes >= *size; bytes = sys_page_up(bytes / 4)) {
        uint8_t *there = sys_reserve((size_t)bytes);
        if (there != NULL) {
            *size = (size_t)bytes;
            return there;
        }
    }
    return NULL;
}

/* The first bytes, *size of them, or more. */
static uint8_t *open_first(const struct room *room, size_t *size) {
    uint8_t *here = sys_reserve(*size);
    uint8_t *there = here != NULL ? open_far_below(room, here, *size) : NULL;
    if (here != NULL) {
        sys_unmap(here, *size);
    }
    if (there != NULL || room->kind->step_bytes == 0) {
        return there;
    }
    there = open_whole(room, size);
    if (there != NULL && room->kind->use == ROOM_MEMORY && sys_map_at(there, *size) != 0) {
        sys_unmap(there, *size);
        there = NULL;
    }
    return there;
}

int room_open(struct room *room, const struct room_kind *kind) {
    uint64_t most;
    size_t first = sys_page_up(kind->step_bytes != 0 ? kind->step_bytes : 1);
    *room = (struct room){.kind = kind, .most = kind->most_bytes};
    most = most_now(room);
    first = first < most ? first : (size_t)most;
    room->base = first != 0 ? open_first(room, &first) : NULL;
    if (room->base == NULL) {
        return -1;
    }
    room->reserved = first;
    if (kind->use == ROOM_MEMORY) {
        own_maps_add(room->base, first);
    }
    return 0;
}

static void set_reserved(struct room *room, uint64_t reserved) {
    if (room->kind->use == ROOM_MEMORY) {
        own_maps_resize(room->base, reserved);
    }
    STORE_RELEASE(&room->reserved, reserved);
}

static long grow_to(struct room *room, uint64_t end) {
    uint64_t reserved = room->reserved;
    long result;
    STORE_RELAXED(&room->wanted, end);
    result = sys_locks_future()
                 ? sys_extend(room->base + reserved - sys_page_bytes(), end - reserved)
                 : map_at(room, room->base + reserved, end - reserved);
    if (result == 0) {
        set_reserved(room, end);
    }
    STORE_RELAXED(&room->wanted, UINT64_C(0));
    return result;
}

/* A quarter of what there is, within bounds. */
static uint64_t room_step(const struct room *room) {
    uint64_t least = room->kind->step_bytes;
    uint64_t step = sys_page_up(room->reserved / STEP_PART);
    return least == 0 ? 0 : step < least ? least : step < MOST_STEP ? step : MOST_STEP;
}

/* Under the lock: a whole step, or as little as is asked for. */
static long room_grow(struct room *room, uint64_t end) {
    uint64_t most = most_now(room);
    uint64_t ahead = room->reserved + room_step(room);
    long result = -ENOMEM;
    end = sys_page_up(end);
    ahead = ahead < most ? ahead : most;
    if (end > most) {
        return result;
    }
    if (ahead > end) {
        result = grow_to(room, ahead);
    }
    return result != 0 ? grow_to(room, end) : result;
}

/* Signals wait: a handler could need what it has interrupted. 1, or 0: the lock cannot be had. */
static int room_lock(struct room *room, struct sys_signals *mask) {
    *mask = sys_block_signals();
    if (!sys_take(&room->lock)) {
        sys_restore_signals(*mask);
        return 0;
    }
    return 1;
}

static void room_unlock(struct room *room, struct sys_signals mask) {
    trylock_release(&room->lock);
    sys_restore_signals(mask);
}

long room_reach(struct room *room, uint64_t end) {
    struct sys_signals mask;
    long result = -EAGAIN;
    if (LIKELY(end <= LOAD_ACQUIRE(&room->reserved))) {
        return 0;
    }
    if (end > room->most) {
        return -EFBIG;
    }
    if (room_lock(room, &mask)) {
        result = end <= room->reserved ? 0 : room_grow(room, end);
        room_unlock(room, mask);
    }
    return result;
}

void *room_take(struct room *room, uint64_t bytes) {
    struct sys_signals mask;
    uint8_t *taken = NULL;
    if (room->base != NULL && bytes < room->most && room_lock(room, &mask)) {
        uint64_t from = room->reserved;
        taken = room_grow(room, from + bytes) == 0 ? room->base + from : NULL;
        room_unlock(room, mask);
    }
    return taken;
}

void room_fork(struct room *room) {
    if (room->lock.held && room->wanted > room->reserved) {
        /* It was mapped just before the fork, or it is now. */
        long result = map_at(room, room->base + room->reserved, room->wanted - room->reserved);
        if (result == 0 || result == -EEXIST) {
            set_reserved(room, room->wanted);
        }
    }
    trylock_fork(&room->lock);
}

void room_close(struct room *room) {
    if (room->base != NULL) {
        sys_unmap(room->base, room->reserved);
    }
    *room = (struct room){0};
}
