/* SPDX-License-Identifier: MIT */
/*
 * room.h: addresses in a row that become more as they are needed.
 *
 * Whatever is reserved in advance counts where address space is limited (RLIMIT_AS), or memory that
 * is locked, and a program may set such a limit at any time, or have it set from outside. So little
 * more is reserved than is in use. The room begins far below everything else, where the kernel puts
 * nothing of its own accord: what comes behind it is free unless the program asks for these very
 * addresses, or fills all that is above. Then the room ends there.
 *
 * Invariant: [base, base + reserved) is mapped by us; reserved grows only, and is <= most.
 * Any thread, handlers and forked children too: room_fork() first.
 */
#ifndef RUNTIME_BASE_ROOM_H
#define RUNTIME_BASE_ROOM_H

#include "runtime/base/compiler.h"

#include <stddef.h>
#include <stdint.h>

/* Without access, to be mapped over; or zeroed memory, ready for use, which own_maps.h lists. */
enum room_use { ROOM_TO_MAP, ROOM_MEMORY };

/* How far below: each room that may become large has a place of its own. */
enum room_place { ROOM_OF_LINKS = 2, ROOM_OF_HEAP = 3, ROOM_OF_REGION = 4 };

struct room_kind {
    enum room_use use;
    enum room_place place;
    uint64_t most_bytes;
    uint32_t limit_part; /* of what the process may have at that time, it takes one in so many */
    uint32_t step_bytes; /* at least so many at once; 0: only what is asked for */
};

struct room {
    const struct room_kind *kind;
    uint8_t *base; /* NULL: none */
    uint64_t reserved;
    uint64_t most;
    uint64_t wanted; /* while somebody makes it larger: how far */
    struct trylock lock;
};

/* Reserves the first bytes. 0, or -1: no address space, room->base is NULL. */
int room_open(struct room *room, const struct room_kind *kind);
/* Makes [base, base + end) ours. 0 or a negative errno. */
long room_reach(struct room *room, uint64_t end);
/* The next bytes behind what there is, in whole pages; NULL: not to be had. */
void *room_take(struct room *room, uint64_t bytes);
/* In a forked child: ends what another thread was just doing. */
void room_fork(struct room *room);
/* Gives the addresses back: nobody uses them. */
void room_close(struct room *room);

#endif
