/* SPDX-License-Identifier: MIT */
/* space.c: the growing, mapped file. See space.h. */
#define _GNU_SOURCE
#include "runtime/base/space.h"

#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#include <errno.h>
#include <fcntl.h>

enum { LOWEST_DESCRIPTOR = 700, PAUSE_NS = 100 * 1000 * 1000 };
/* A light child maps so much memory at once: each mapping costs as much as many page faults. */
enum { PRIVATE_BYTES = 256 * 1024 };

static const struct room_kind room_kind = {.use = ROOM_TO_MAP,
                                           .place = ROOM_OF_REGION,
                                           .most_bytes = UINT64_C(1) << 36,
                                           .limit_part = 8,
                                           .step_bytes = 1 << 20};
/* A large file grows by a part of its size: the calls for a leaf alone cost more than its pages. */
enum { AHEAD_PART = 32, LEAST_AHEAD = 128 * 1024, MOST_AHEAD = 1024 * 1024 };

/* All that is taken of the file begins and ends at a page of the kernel's, so that it can be mapped
 * by itself. (Where those are larger than the format's, readers step over what lies between.) */
static uint64_t header_bytes(void) {
    return sys_page_up(MEMTRACE_HEADER_SIZE);
}

static int space_is_allowed(const struct space *space, uint64_t offset, uint64_t size) {
    return offset + size <= space->room.most && sys_may_have_size(offset + size);
}

/* Blocks of the file, which can be mapped then: what is mapped can be written. */
static long allocate(const struct space *space, int fd, uint64_t offset, uint64_t size) {
    long result;
    if (!space_is_allowed(space, offset, size)) {
        return -EFBIG;
    }
    do {
        result = sys_allocate(fd, offset, size);
    } while (result == -EINTR);
    return result;
}

static long map_range(struct space *space, int fd, uint64_t offset, uint64_t size,
                      enum sys_pages pages) {
    long result = room_reach(&space->room, offset + size);
    return result == 0 ? sys_map_file_at(space->base + offset, size, fd, offset, pages) : result;
}

static int space_is_ours(const struct space *space, int fd) {
    struct stat status;
    return sys_fstat(fd, &status) == 0 && status.st_dev == space->device &&
           status.st_ino == space->inode;
}

/* The descriptor under a high number, where that can be had: low ones are the program's, which may
 * count on the one that it closed just now. */
static int move_high(int fd) {
    long high = sys_dup_high(fd, LOWEST_DESCRIPTOR);
    if (high >= 0) {
        sys_close(fd);
    }
    return high >= 0 ? (int)high : fd;
}

/* The descriptor stays the caller's. */
static long space_open_by(struct space *space, int fd, const char *path) {
    struct stat status;
    long result = sys_fstat(fd, &status);
    if (space->base == NULL && room_open(&space->room, &room_kind) == 0) {
        space->base = space->room.base;
    }
    space->held = -1;
    text_copy(space->path, sizeof space->path, path);
    space->device = status.st_dev;
    space->inode = status.st_ino;
    if (result == 0) {
        result = space->base != NULL ? 0 : -ENOMEM;
    }
    if (result == 0) {
        result = allocate(space, fd, 0, header_bytes());
    }
    if (result == 0) {
        result = map_range(space, fd, 0, header_bytes(), SYS_PAGES_NOW);
    }
    if (result != 0) {
        return result;
    }
    space->header = (struct memtrace_header *)space->base;
    STORE_RELAXED(&space->header->end, header_bytes());
    if (path[0] != '/') { /* the program may change its folder */
        space_hold(space);
    }
    return 0;
}

long space_open(struct space *space, int fd, const char *path) {
    long result;
    fd = move_high(fd);
    result = space_open_by(space, fd, path);
    sys_close(fd);
    return result;
}

static long open_by_name(const struct space *space) {
    long fd = sys_open(space->path, O_RDWR | O_NOFOLLOW, 0);
    if (fd >= 0 && !space_is_ours(space, (int)fd)) {
        sys_close(fd);
        return -ESTALE;
    }
    return fd >= 0 ? move_high((int)fd) : fd;
}

/* Somebody removed it: its collector has it open still, among its descriptors. */
static long open_by_collector(const struct space *space) {
    enum { MOST = 1024 };
    uint32_t pid = space->header != NULL ? LOAD_RELAXED(&space->header->collector_pid) : 0;
    long result = -ENOENT;
    for (unsigned number = 0; pid != 0 && number < MOST && result < 0; number++) {
        char buffer[64];
        long found;
        text_print(buffer, sizeof buffer, "/proc/%u/fd/%u", pid, number);
        found = sys_open(buffer, O_PATH, 0); /* opens nothing */
        if (found == -EACCES || found == -EPERM) {
            break;
        }
        if (found >= 0 && space_is_ours(space, (int)found)) {
            result = sys_open(buffer, O_RDWR | O_NONBLOCK | O_NOCTTY, 0);
        }
        sys_close(found);
    }
    if (result >= 0 && !space_is_ours(space, (int)result)) {
        sys_close(result);
        result = -ESTALE;
    }
    return result >= 0 ? move_high((int)result) : result;
}

long space_descriptor(struct space *space) {
    int held = LOAD_RELAXED(&space->held);
    long fd = held >= 0 ? sys_dup_high(held, LOWEST_DESCRIPTOR) : -1;
    if (fd >= 0 && space_is_ours(space, (int)fd)) {
        return fd;
    }
    if (fd >= 0) { /* the program closed it, and has another file there */
        sys_close(fd);
    }
    fd = open_by_name(space);
    if (fd == -ENOENT) {
        fd = open_by_collector(space);
        if (fd >= 0) { /* it has no name any more */
            STORE_RELAXED(&space->held, (int)sys_dup_high((int)fd, LOWEST_DESCRIPTOR));
        }
    }
    return fd;
}

void space_hold(struct space *space) {
    int held = LOAD_RELAXED(&space->held);
    if (space->header != NULL && (held < 0 || !space_is_ours(space, held))) {
        long fd = open_by_name(space);
        STORE_RELAXED(&space->held, fd >= 0 ? (int)fd : -1);
    }
}

void space_let_go(struct space *space) {
    long fd = space->header != NULL && LOAD_RELAXED(&space->held) >= 0 && space->path[0] == '/'
                  ? open_by_name(space)
                  : -1;
    if (fd >= 0) {
        sys_close(fd);
        space_close(space);
    }
}

int space_is_there(const struct space *space) {
    struct stat status;
    int held = LOAD_RELAXED(&space->held);
    long result;
    if (held >= 0 && space_is_ours(space, held)) {
        return sys_fstat(held, &status) != 0 || status.st_nlink != 0;
    }
    result = sys_lstat(space->path, &status);
    return result == 0 ? status.st_dev == space->device && status.st_ino == space->inode
                       : result != -ENOENT;
}

static COLD void space_refuse(struct space *space) {
    STORE_RELAXED(&space->again_from_ns, sys_clock_ns(CLOCK_MONOTONIC_COARSE) + PAUSE_NS);
    if (__atomic_exchange_n(&space->refused, 1, __ATOMIC_RELAXED) == 0) {
        log_line("no more room for the profile in %s; what does not fit is counted as lost",
                 space->path);
    }
}

/* Memory of a light child's own up to here, if it is not there. */
static long map_private(struct space *space, uint64_t end) {
    uint64_t from = space->private_end;
    uint64_t size = end > from + PRIVATE_BYTES ? end - from : PRIVATE_BYTES;
    long result;
    if (end <= from) {
        return 0;
    }
    result = room_reach(&space->room, from + size);
    if (result == 0) {
        result = sys_map_at(space->base + from, size);
    }
    space->private_end += result == 0 ? size : 0;
    return result;
}

/* --- what is prepared -------------------------------------------------------------------------
 *
 * A range of the file that has blocks and is mapped, in one word: its first page, and how many.
 * What of it lies behind header.end can be taken without a lock. One thread at a time makes it
 * longer, and asks for nothing twice: where the kernel has no more blocks it takes away again what
 * is there already but was not touched yet. */

enum { PREPARED_BITS = 24 };

static uint64_t prepared_from(uint64_t word) {
    return (word >> PREPARED_BITS) * MEMTRACE_PAGE_SIZE;
}

static uint64_t prepared_end(uint64_t word) {
    uint64_t pages = word & ((UINT64_C(1) << PREPARED_BITS) - 1);
    return prepared_from(word) + pages * MEMTRACE_PAGE_SIZE;
}

static int is_prepared(uint64_t word, uint64_t offset, uint64_t size) {
    return offset >= prepared_from(word) && offset + size <= prepared_end(word);
}

/* With the lock. */
static long prepare_until(struct space *space, uint64_t offset, uint64_t end,
                          enum sys_pages pages) {
    uint64_t old = LOAD_RELAXED(&space->prepared);
    uint64_t from = is_prepared(old, offset, 0) ? prepared_end(old) : offset;
    long fd = space_descriptor(space);
    long result = fd < 0 ? fd : allocate(space, (int)fd, from, end - from);
    if (result == 0) {
        result = map_range(space, (int)fd, from, end - from, pages);
    }
    if (result == 0) {
        STORE_RELEASE(&space->prepared, offset / MEMTRACE_PAGE_SIZE << PREPARED_BITS |
                                            (end - offset) / MEMTRACE_PAGE_SIZE);
    }
    sys_close(fd);
    return result;
}

static uint64_t ahead_of(const struct space *space, uint64_t size) {
    uint64_t part = LOAD_RELAXED(&space->header->end) / AHEAD_PART;
    uint64_t page = sys_page_bytes();
    uint64_t ahead = part < MOST_AHEAD ? part / page * page : MOST_AHEAD;
    return ahead < LEAST_AHEAD || ahead < size ? 0 : ahead;
}

/* Among thousands of threads one may wait long; for one that is stopped, not for ever. */
static int space_lock(struct space *space) {
    enum { TRIES = 1000, NAP_NS = 1000000 };
    for (int i = 0; i < TRIES; i++) {
        if (sys_take(&space->preparing)) {
            return 1;
        }
        sys_sleep_ns(NAP_NS);
    }
    return 0;
}

/* Signals wait: a handler could need what it has interrupted. 0 or a negative errno. */
static long space_prepare_some(struct space *space, uint64_t size, uint64_t ahead,
                               enum sys_pages pages) {
    struct sys_signals mask = sys_block_signals();
    long result = -EAGAIN;
    if (space_lock(space)) {
        uint64_t offset = LOAD_RELAXED(&space->header->end);
        result = is_prepared(LOAD_RELAXED(&space->prepared), offset, size) ? 0 : -ENOSPC;
        if (result != 0 && ahead > size) {
            result = prepare_until(space, offset, offset + ahead, SYS_PAGES_LATER);
        }
        if (result != 0) {
            result = prepare_until(space, offset, offset + size, pages);
        }
        trylock_release(&space->preparing);
    }
    sys_restore_signals(mask);
    return result;
}

void space_prepare(struct space *space, uint64_t size, enum sys_pages pages) {
    if (space->header != NULL && !space->is_private) {
        space_prepare_some(space, sys_page_up(size), 0, pages);
    }
}

static int take_prepared(struct space *space, uint64_t size, uint64_t *offset) {
    uint64_t word = LOAD_ACQUIRE(&space->prepared);
    *offset = LOAD_RELAXED(&space->header->end);
    do {
        if (!is_prepared(word, *offset, size)) {
            return 0;
        }
    } while (!__atomic_compare_exchange_n(&space->header->end, offset, *offset + size, 0,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return 1;
}

/* The next `size` bytes of the file, or of private memory. */
static long take_range(struct space *space, uint64_t size, uint64_t *offset) {
    long result = 0;
    if (space->is_private) {
        *offset = __atomic_fetch_add(&space->header->end, size, __ATOMIC_RELAXED);
        return map_private(space, *offset + size);
    }
    while (result == 0 && !take_prepared(space, size, offset)) { /* or others have taken it */
        result = space_prepare_some(space, size, ahead_of(space, size), SYS_PAGES_NOW);
    }
    return result;
}

/* The end of the file is where it was, if nobody else has taken more: else it would be said to be
 * longer than it is. */
static void give_end_back(struct memtrace_header *header, uint64_t offset, uint64_t size) {
    uint64_t end = offset + size;
    __atomic_compare_exchange_n(&header->end, &end, offset, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

long space_append(struct space *space, int fd, struct memtrace_header *header, uint64_t size,
                  uint64_t *offset) {
    long result;
    size = sys_page_up(size);
    *offset = __atomic_fetch_add(&header->end, size, __ATOMIC_RELAXED);
    result = allocate(space, fd, *offset, size);
    if (result != 0) {
        give_end_back(header, *offset, size);
    }
    return result;
}

long space_append_segment(struct space *space, struct memtrace_header *header,
                          const struct memtrace_segment *segment, uint64_t *offset) {
    const size_t magic_at = offsetof(struct memtrace_segment, magic);
    uint32_t magic = MEMTRACE_SEGMENT_MAGIC;
    uint64_t taken = sys_page_up(segment->size);
    long fd = space_descriptor(space);
    long result;
    if (fd < 0) {
        return fd;
    }
    *offset = __atomic_fetch_add(&header->end, taken, __ATOMIC_RELAXED);
    result = space_is_allowed(space, *offset, segment->size)
                 ? sys_pwrite_all((int)fd, segment, segment->size, *offset)
                 : -EFBIG;
    if (result == 0) {
        result = sys_pwrite_all((int)fd, &magic, sizeof magic, *offset + magic_at);
    }
    if (result != 0) {
        give_end_back(header, *offset, taken);
    }
    sys_close(fd);
    return result;
}

void *space_segment(struct space *space, enum memtrace_segment_kind kind, uint32_t owner,
                    uint32_t index, uint32_t item_size, uint32_t item_count) {
    uint64_t size = sys_page_up((uint64_t)item_size * item_count);
    struct memtrace_segment *segment;
    uint64_t again = LOAD_RELAXED(&space->again_from_ns);
    uint64_t offset;
    if (space->header == NULL ||
        (UNLIKELY(again != 0) && sys_clock_ns(CLOCK_MONOTONIC_COARSE) < again)) {
        return NULL;
    }
    if (take_range(space, size, &offset) != 0) {
        space_refuse(space);
        return NULL;
    }
    segment = (struct memtrace_segment *)(space->base + offset);
    segment->kind = (uint16_t)kind;
    segment->header_size = sizeof *segment;
    segment->owner = owner;
    segment->index = index;
    segment->size = size;
    segment->item_size = item_size;
    segment->item_count = item_count;
    return segment;
}

void space_publish(void *segment) {
    STORE_RELEASE(&((struct memtrace_segment *)segment)->magic, MEMTRACE_SEGMENT_MAGIC);
}

void *space_leaf(struct space *space, void *leaf, enum memtrace_segment_kind kind, uint32_t index,
                 uint32_t item_size, uint32_t item_count) {
    typedef void *__attribute__((may_alias)) any_pointer;
    any_pointer *place = leaf;
    void *found = LOAD_ACQUIRE(place);
    struct memtrace_segment *segment;
    if (found != NULL) {
        return found;
    }
    segment = space_segment(space, kind, 0, index, item_size, item_count);
    if (segment == NULL) {
        return NULL;
    }
    space_publish(segment);
    if (!__atomic_compare_exchange_n(place, &found, (void *)segment, 0, __ATOMIC_RELEASE,
                                     __ATOMIC_ACQUIRE)) {
        segment->kind = 0;
        return found;
    }
    return segment;
}

const struct memtrace_segment *space_next(const struct space *space, uint64_t *at, uint64_t end) {
    while (*at < end) {
        const struct memtrace_segment *segment =
            (const struct memtrace_segment *)(space->base + *at);
        /* Pairs with space_publish(). */
        if (sys_readable(segment) && LOAD_ACQUIRE(&segment->magic) == MEMTRACE_SEGMENT_MAGIC) {
            *at += segment->size;
            return segment;
        }
        *at += MEMTRACE_PAGE_SIZE;
    }
    return NULL;
}

/* From a header that is zeroed. */
static void start_private(struct space *space, uint64_t end) {
    space->private_end = space->is_private ? space->private_end : end;
    STORE_RELAXED(&space->header->end, end);
    space->is_private = 1;
    space->refused = 0;
    space->again_from_ns = 0;
}

/* The first page of the header, once more. (An emulator may know no second mapping of the same.) */
static struct memtrace_header *map_header_again(struct space *space) {
    struct memtrace_header *header = sys_map_again(space->header, MEMTRACE_PAGE_SIZE);
    long fd = header == NULL ? space_descriptor(space) : -1;
    if (fd >= 0) {
        header = sys_map_file(MEMTRACE_PAGE_SIZE, (int)fd, 0);
        sys_close(fd);
    }
    return header;
}

struct memtrace_header *space_begin_private(struct space *space) {
    struct memtrace_header *shared = map_header_again(space);
    room_fork(&space->room);
    if (shared == NULL || sys_map_at(space->header, MEMTRACE_HEADER_SIZE) != 0) {
        return NULL;
    }
    start_private(space, LOAD_ACQUIRE(&shared->end));
    return shared;
}

long space_begin_private_again(struct space *space) {
    uint64_t end = space->header->end;
    long result = sys_map_at(space->header, MEMTRACE_HEADER_SIZE);
    room_fork(&space->room);
    if (result == 0) {
        start_private(space, end);
    }
    return result;
}

/* From the parent's mapping to our file; of those that are not kept the headers, made void. */
static long space_copy_segments(const struct space *space, int fd, uint64_t end,
                                int (*keep)(void *argument, const struct memtrace_segment *segment),
                                void *argument) {
    long result = sys_may_have_size(end) ? 0 : -EFBIG;
    for (uint64_t at = MEMTRACE_HEADER_SIZE; result == 0;) {
        const struct memtrace_segment *segment = space_next(space, &at, end);
        struct memtrace_segment header;
        uint64_t offset;
        if (segment == NULL) {
            break;
        }
        offset = (uint64_t)((const uint8_t *)segment - space->base);
        header = *segment;
        header.kind = 0;
        result = keep(argument, segment) /* which makes its blocks */
                     ? sys_pwrite_all(fd, segment, segment->size, offset)
                     : sys_pwrite_all(fd, &header, sizeof header, offset);
    }
    return result;
}

long space_fork(struct space *space, int fd, const char *path,
                int (*keep)(void *argument, const struct memtrace_segment *segment),
                void *argument) {
    uint64_t end = LOAD_ACQUIRE(&space->header->end);
    struct space before = *space;
    long result;
    fd = move_high(fd);
    result = space_copy_segments(space, fd, end, keep, argument);
    if (result != 0) {
        sys_close(fd);
        return result;
    }
    space->refused = 0;
    space->again_from_ns = 0;
    space->prepared = 0;
    space->preparing.held = 0;
    result = space_open_by(space, fd, path);
    if (result == 0) { /* what was made void are holes, for which there may be no room */
        uint64_t from = header_bytes();
        result = map_range(space, fd, from, end - from, SYS_PAGES_LATER);
    }
    sys_close(fd);
    if (result != 0) {                  /* back to what the new file was to replace */
        struct room room = space->room; /* may have grown */
        space_close(space);
        *space = before;
        space->room = room;
        if (space->is_private) {
            sys_map_at(space->header, MEMTRACE_HEADER_SIZE);
        }
        return result;
    }
    STORE_RELAXED(&space->header->end, end);
    space->is_private = 0;
    space_close(&before); /* our copy of the parent's descriptor */
    return 0;
}

void space_lost(struct space *space, enum memtrace_loss kind, uint64_t count) {
    if (space->header != NULL) {
        __atomic_fetch_add(memtrace_lost(space->header, kind), count, __ATOMIC_RELAXED);
    }
}

void space_give_up(struct space *space) {
    space_close(space);
    room_close(&space->room);
    space->base = NULL;
    space->header = NULL;
}

void space_close(struct space *space) {
    int held = __atomic_exchange_n(&space->held, -1, __ATOMIC_RELAXED);
    if (held >= 0 && space_is_ours(space, held)) {
        sys_close(held);
    }
}
