/* SPDX-License-Identifier: MIT */
/*
 * recordfile.h: writes a recording (memtrace/recording.h): blocks, each appended whole or not at
 * all, and at the end an index.
 *
 * Called by collect/record and collect/transform. Belongs to one thread. Whatever a function has
 * returned, the file ends behind its last whole block, as long as this process lives; what a killed
 * writer left torn is cut off by who goes on with the file.
 */
#ifndef COLLECT_RECORDFILE_H
#define COLLECT_RECORDFILE_H

#include "analyze/read/block.h"
#include "analyze/read/recording.h"

struct recordfile {
    int fd; /* -1: closed */
    char path[1040];
    uint64_t size;
    struct memtrace_index_entry *index; /* of all blocks */
    size_t index_count, index_room;
    uint64_t
        reserve; /* bytes on the disk that are kept free behind the file for its end; 0: none */
    uint64_t reserved; /* the disk has room for the file up to this size */
    int reason;        /* errno of what could not be written; 0: nothing */
    int level;         /* of compression, as zstd counts */
    void *zstd;        /* its context */
    unsigned char *packed;
    size_t packed_capacity;
};

#define RECORDFILE_NONE ((struct recordfile){.fd = -1, .level = BLOCK_PACK_LEVEL})

/* Makes a new file and writes its header. An older file of that name is unlinked if it may be
 * replaced, a folder or a device is not. 0 or -1: file->reason is EEXIST where one is there. */
enum recordfile_older { RECORDFILE_KEEP, RECORDFILE_REPLACE };
int recordfile_create(struct recordfile *file, const char *path, enum recordfile_older older,
                      const struct memtrace_recording_header *header, struct error *error);

/* Locks a file for whoever replaces or resumes it, which takes milliseconds: who holds it for
 * longer is not waited for. To be closed; -1: there is no file. */
int recordfile_lock(const char *path);

/*
 * Goes on with a file of the same process (pid and process_start_ticks of the header, and `program`
 * of its PROGRAM block) whose writer died: cuts off a torn block, or the index of one that was
 * closed. `there`: its blocks, for the caller to see what is in it. 1; 0: there is no such file, or
 * that of another process, which is left alone; -1: failed.
 */
int recordfile_resume(struct recordfile *file, const char *path,
                      const struct memtrace_recording_header *header,
                      const struct memtrace_header *program, struct recording **there,
                      struct error *error);

/* Keeps `bytes` of the disk free behind the file from now on, where the file system can: a block
 * that needed them could not be written. 0 gives them to the blocks that are still to come. */
void recordfile_reserve(struct recordfile *file, uint64_t bytes);

/* Appends a block: kind and what events have of their own are the caller's, sizes and checksum are
 * filled in. 0; -1: it could not be written and no part of it is in the file. */
int recordfile_append(struct recordfile *file, struct memtrace_block_header *block,
                      const void *payload, size_t size, struct error *error);

/* The same of items of one size, of this time; nothing where there are none. */
int recordfile_append_items(struct recordfile *file, enum memtrace_block_kind kind,
                            uint64_t time_ns, const void *items, size_t count, size_t item_size,
                            struct error *error);

/* Appends a block of nodes, parents first; nothing where there are none. 0 or -1. */
int recordfile_append_nodes(struct recordfile *file, const struct memtrace_recording_node *nodes,
                            size_t count, uint64_t time_ns, struct error *error);

/* Appends the index and closes. 0 or -1: without an index, which a reader does not need. */
int recordfile_close(struct recordfile *file, struct error *error);

/* Lets go of the file as it is. */
void recordfile_release(struct recordfile *file);

#endif
