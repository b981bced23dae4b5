/* SPDX-License-Identifier: MIT */
/*
 * copy.h: writes a region's bytes to a file of another name, compressed, all or nothing; and which
 * names files have in the folder of a run, and beside one that is there.
 *
 * Called by collect/finish, by collect/collector when a limit is reached, and by top; names by all
 * that write files of processes. Any thread.
 */
#ifndef COLLECT_COPY_H
#define COLLECT_COPY_H

#include "collect/claim.h"

#include <unistd.h>

/* A file goes to who is to own it (MEMTRACE_OWNER). Without the rights it stays ours. */
static inline void owner_give(int fd, const struct memtrace_owner *owner) {
    if (owner->is_set && fchown(fd, owner->uid, owner->gid) != 0) {
        return;
    }
}

/* Whether it is the folder of this run. */
bool copy_is_folder_of(const char *path, uint64_t run);
/* FOLDER/PROGRAM.PID.mtp, or PROGRAM.PID.2.mtp and so on where that name is taken. */
void copy_path_in(const char *folder, const char *program, uint32_t pid, const char *ending,
                  char *path, size_t capacity);
/* Where a process's file goes if another one has `path`: into it, if it is the folder of the
 * process's run; else beside it, as NAME.PID.mtr. Nobody has that name yet. */
void copy_path_beside(const char *path, const struct memtrace_header *header, const char *ending,
                      char *to, size_t capacity);

enum copy_mode {
    COPY_REPLACE, /* an existing file is replaced */
    COPY_KEEP,    /* an existing file stays: target.SUFFIX, target.SUFFIX.2, … are tried */
};

/* Whether the target is /dev/null, which takes anything; nothing is made beside it. */
bool copy_discards(const char *target);

/*
 * Writes bytes [0, size) of `fd` as a profile to a temporary file beside `target`, then renames it.
 * Nobody ever sees a part of it. `suffix` is used by COPY_KEEP only. The name that it got goes to
 * `path` (of `capacity` bytes). /dev/null takes anything. 0 or -1; after -1 nothing is left behind.
 */
int copy_region(int fd, uint64_t size, const char *target, enum copy_mode mode, unsigned suffix,
                char *path, size_t capacity, struct error *error);

/* Of a program that goes on, as it is at this moment: beside its output, NAME.limit.mtp for
 * NAME.mtp, which goes to `path`. One that is there already is replaced. 0 or -1. */
int copy_live(const struct claim *claim, char *path, size_t capacity, struct error *error);
/* The same of the first `size` bytes of the region `fd`, to `target`. */
int copy_live_to(int fd, uint64_t size, const char *target, char *path, size_t capacity,
                 struct error *error);

#endif
