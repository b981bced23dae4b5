/* SPDX-License-Identifier: MIT */
/*
 * blockstore.h: many single blocks, each with all that is known of it, to be had by their places in
 * any order: what a table of millions scrolls through.
 *
 * Called by web/server. Filled by one thread; then it does not change, and any thread reads it.
 * The first BLOCKSTORE_MEMORY bytes lie in memory; of more blocks all lie in a file without a name,
 * which is mapped, so that they take no memory that the kernel could not use otherwise.
 */
#ifndef WEB_SERVER_BLOCKSTORE_H
#define WEB_SERVER_BLOCKSTORE_H

#include "analyze/base/error.h"
#include "analyze/replay/lives.h"

enum { BLOCKSTORE_MEMORY = 32 << 20 };

struct blockstore {
    struct life *lives; /* in memory, or mapped */
    size_t count;
    size_t room;      /* in memory; in a file: of what is still to be written */
    size_t waiting;   /* of these */
    size_t mapped;    /* bytes; 0: they lie in memory */
    int file;         /* -1: none */
    char reason[200]; /* why it could not be written; "": out of memory */
};

void blockstore_start(struct blockstore *store);
/* 0, or -1: out of memory, or no room on the disk. */
int blockstore_add(struct blockstore *store, const struct life *life);
/* No more are added; now they can be read. 0 or -1: error is set. */
int blockstore_finish(struct blockstore *store, struct error *error);
/* Why blockstore_add() failed. */
int blockstore_explain(const struct blockstore *store, struct error *error);
void blockstore_free(struct blockstore *store);
/* Who went through many of them gives back the memory that this took. */
void blockstore_forget(const struct blockstore *store);
/* That it takes of the memory of this process alone. */
size_t blockstore_bytes(const struct blockstore *store);

#endif
