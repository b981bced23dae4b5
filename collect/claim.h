/* SPDX-License-Identifier: MIT */
/*
 * claim.h: a region file that this process has claimed: open, locked, its header mapped.
 *
 * Called by the rest of collect. The claim is an flock on the open file: at most one collector or
 * recovering command has it, and it goes away with its holder, however that ends. The runtime
 * itself takes no such lock.
 *
 * A region is only claimed if nobody else can have put it there: its folder and the file belong to
 * this user, the folder is closed to others, the file is a regular one with one name, and no
 * symbolic link is followed.
 */
#ifndef COLLECT_CLAIM_H
#define COLLECT_CLAIM_H

#include "analyze/base/error.h"
#include "analyze/read/profile.h"
#include "analyze/read/region.h"
#include "memtrace/events.h"

#include <stdbool.h>
#include <sys/types.h>

struct claim {
    struct region region; /* path, start_ticks as the name says; pid, of a program in another
                             namespace of pids its number here */
    bool is_unseen; /* there is no such number, since it is not seen from here, or gone: pid is 0 */
    int fd;         /* -1: nothing is held */
    dev_t device;
    ino_t inode;
    struct memtrace_header *header; /* mapped, writable */
    bool is_outside;                /* below */
    int folder;                     /* if so, its folder, where the program sees it */
    char *output;                   /* if so, where what is written goes; else as the header says */
    bool replaces_nothing;          /* what is written leaves all files that there are */
    uint64_t start_monotonic_ns;    /* of the header, which may be lost */
};

enum claim_status {
    CLAIM_OK = 0,
    CLAIM_FAILED = -1, /* error is filled */
    CLAIM_BUSY = 1,    /* someone else has claimed it */
    CLAIM_ABSENT = 2,  /* no such file */
    CLAIM_EMPTY = 3,   /* no whole header yet, or ever (then it was removed) */
};

/* Claims the region at `path`. Only HELD_OK leaves something to release. */
enum claim_status claim_open(const char *path, struct claim *claim, struct error *error);

/*
 * Claims the region of a program in a container, under another root or of another user, by its
 * number here, found through /proc. What such a region says may be a lie: only `output` says where
 * anything is written, and nothing but the program's own file of this name is opened or removed.
 * `output` outlives the claim.
 */
enum claim_status claim_outside(pid_t pid, char *output, struct claim *claim, struct error *error);

/* Gives the claim up; the file stays. Does nothing when nothing is held. */
void claim_release(struct claim *claim);

/* Whether the name still belongs to the file that is held. The runtime takes the name away when it
 * has finished by itself, or gives it to a new file after exec. */
bool claim_named(const struct claim *claim);

/* Whether somebody made the file shorter, so that what the program counted is gone: its header is,
 * or it has less than `size_bytes`, which it had once. */
bool claim_is_cut(const struct claim *claim, uint64_t size_bytes);
/* Its size now. */
uint64_t claim_size(const struct claim *claim);

/* Unlinks the region, if the name is still that of the file that is held. */
void claim_unlink(const struct claim *claim);
/* What a killed program has left is in its place: light children of it, which go on, see by its
 * state that what they tell in the region is nobody's any more. */
void claim_tell_children(const struct claim *claim);

/* Whether the process that wrote the region still exists, a process whose first thread has ended
 * before the others included. */
bool claim_process_exists(pid_t pid, uint64_t start_ticks);

/* Whether the process that wrote the region may still be there. */
bool claim_is_alive(const struct claim *claim);

/* Whether the process still writes the region: it exists and has it mapped. The second is asked
 * only after the program came to an exec, which may yet have failed: the header says so, or the
 * name is gone (the runtime wrote the profile before the exec). */
bool claim_in_use(const struct claim *claim);

/* What the header says of the recording. */
static inline struct memtrace_recording *claim_recording(const struct claim *claim) {
    return (struct memtrace_recording *)((char *)claim->header + MEMTRACE_RECORDING_OFFSET);
}

/* Nanoseconds since the program's start, now. */
uint64_t claim_time_ns(const struct claim *claim);

/* The header as it is now, while the program and other threads write to it: each word is whole. */
void claim_copy_header(const struct claim *claim, struct memtrace_header *to);
/* What allocator the program has, for whoever copies the header meanwhile. */
void claim_set_malloc(const struct claim *claim, const struct memtrace_malloc *malloc_by);

/* The region as a profile, which outlives the claim; others find the region claimed until both are
 * gone. NULL: it cannot be read. By the descriptor:
 * the name may belong to another region by now; and whoever opened it anew would be one more that
 * has it open (claim_in_use()). */
struct profile *claim_profile(const struct claim *claim, struct error *error);

/* The state and other fields of the header that the program changes. */
static inline uint32_t claim_load_u32(const uint32_t *field) {
    return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}
static inline uint64_t claim_load_u64(const uint64_t *field) {
    return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

#endif
