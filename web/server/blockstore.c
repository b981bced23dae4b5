/* SPDX-License-Identifier: MIT */
/* blockstore.c: see blockstore.h. */
#include "web/server/blockstore.h"

#include "analyze/base/array.h"
#include "analyze/base/fullwrite.h"
#include "ask/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECE = 4096 /* lives that are written at once */ };

void blockstore_start(struct blockstore *store) {
    *store = (struct blockstore){.file = -1};
}

static int fail(struct blockstore *store, const char *what) {
    snprintf(store->reason, sizeof store->reason, "%s the temporary file of single blocks: %s",
             what, strerror(errno));
    return -1;
}

static int write_all(struct blockstore *store, const struct life *lives, size_t count) {
    return fullwrite(store->file, lives, count * sizeof *lives) == 0 ? 0
                                                                     : fail(store, "cannot write");
}

/* Where everything moves to when memory is full. */
static int open_file(struct blockstore *store) {
    char path[512];
    if (source_temporary(path, sizeof path, "blocks", "XXXXXX") != 0) {
        errno = ENAMETOOLONG;
        return fail(store, "cannot make");
    }
    store->file = mkstemp(path);
    if (store->file < 0) {
        return fail(store, "cannot make");
    }
    unlink(path);
    return write_all(store, store->lives, store->count);
}

static int add_to_file(struct blockstore *store, const struct life *life) {
    store->lives[store->waiting++] = *life;
    store->count++;
    if (store->waiting < PIECE) {
        return 0;
    }
    store->waiting = 0;
    return write_all(store, store->lives, PIECE);
}

int blockstore_add(struct blockstore *store, const struct life *life) {
    if (store->file >= 0) {
        return add_to_file(store, life);
    }
    if (store->count == BLOCKSTORE_MEMORY / sizeof *store->lives) {
        return open_file(store) == 0 ? add_to_file(store, life) : -1;
    }
    if (array_grow(&store->lives, &store->room, store->count, sizeof *store->lives) != 0) {
        return -1;
    }
    store->lives[store->count++] = *life;
    return 0;
}

int blockstore_explain(const struct blockstore *store, struct error *error) {
    return error_set(error, "%s", store->reason[0] != '\0' ? store->reason : "out of memory");
}

int blockstore_finish(struct blockstore *store, struct error *error) {
    void *mapped;
    size_t size = store->count * sizeof *store->lives;
    if (store->file < 0) {
        return 0;
    }
    if (write_all(store, store->lives, store->waiting) != 0) {
        return blockstore_explain(store, error);
    }
    mapped = mmap(NULL, size, PROT_READ, MAP_SHARED, store->file, 0);
    if (mapped == MAP_FAILED) {
        fail(store, "cannot map");
        return blockstore_explain(store, error);
    }
    free(store->lives);
    close(store->file);
    store->file = -1;
    store->lives = mapped;
    store->mapped = size;
    return 0;
}

void blockstore_free(struct blockstore *store) {
    if (store->mapped != 0) {
        munmap(store->lives, store->mapped);
    } else {
        free(store->lives);
    }
    if (store->file >= 0) {
        close(store->file);
    }
    blockstore_start(store);
}

void blockstore_forget(const struct blockstore *store) {
    if (store->mapped != 0) {
        madvise(store->lives, store->mapped, MADV_DONTNEED);
    }
}

size_t blockstore_bytes(const struct blockstore *store) {
    return store->mapped != 0 ? 0 : store->room * sizeof *store->lives;
}
