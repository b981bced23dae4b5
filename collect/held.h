/* SPDX-License-Identifier: MIT */
/*
 * held.h: a region file that this process has claimed: open, locked, its header mapped.
 *
 * Called by the rest of collect. The claim is an flock on the open file: at most one collector or
 * adopting command has it, and it goes away with its holder, however that ends. The runtime itself
 * takes no such lock.
 *
 * A region is only claimed if nobody else can have put it there: its folder and the file belong to
 * this user, the folder is closed to others, the file is a regular one with one name, and no
 * symbolic link is followed.
 */
#ifndef COLLECT_HELD_H
#define COLLECT_HELD_H

#include "analyze/read/error.h"
#include "analyze/read/profile.h"
#include "analyze/read/region.h"
#include "memtrace/events.h"

#include <stdbool.h>
#include <sys/types.h>

struct held {
    struct region region; /* path, pid, start_ticks as the name says */
    int fd;               /* -1: nothing is held */
    dev_t device;
    ino_t inode;
    struct memtrace_header *header; /* mapped, writable */
};

enum held_status {
    HELD_OK = 0,
    HELD_FAILED = -1, /* error is filled */
    HELD_BUSY = 1,    /* someone else has claimed it */
    HELD_ABSENT = 2,  /* no such file */
    HELD_EMPTY = 3,   /* no whole header yet, or ever (then it was removed) */
};

/* Claims the region at `path`. Only HELD_OK leaves something to release. */
enum held_status held_open(const char *path, struct held *held, struct error *error);

/* Gives the claim up; the file stays. Does nothing when nothing is held. */
void held_release(struct held *held);

/* Whether the name still belongs to the file that is held. The runtime takes the name away when it
 * has finished by itself, or gives it to a new file after exec. */
bool held_named(const struct held *held);

/* Unlinks the region, if the name is still that of the file that is held. */
void held_unlink(const struct held *held);

/* Whether the process that wrote the region still exists, a process whose first thread has ended
 * before the others included. */
bool held_process_exists(pid_t pid, uint64_t start_ticks);

/* Whether the region's pid is one of another namespace. */
bool held_is_foreign(const struct held *held);

/* Whether the process still writes the region: it exists and has it mapped. The second is asked
 * only after the program came to an exec, which may yet have failed: the header says so, or the
 * name is gone (the runtime wrote the profile before the exec). */
bool held_in_use(const struct held *held);

/* What the header says of the recording. */
static inline struct memtrace_recording *held_recording(const struct held *held) {
    return (struct memtrace_recording *)((char *)held->header + MEMTRACE_RECORDING_OFFSET);
}

/* Nanoseconds since the program's start, now. */
uint64_t held_time_ns(const struct held *held);

/* The region as a profile, which outlives the claim. NULL: it cannot be read. By the descriptor:
 * the name may belong to another region by now. */
struct profile *held_profile(const struct held *held, struct error *error);

/* The state and other fields of the header that the program changes. */
static inline uint32_t held_load_u32(const uint32_t *field) {
    return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}
static inline uint64_t held_load_u64(const uint64_t *field) {
    return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

#endif
