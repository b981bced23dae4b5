/* SPDX-License-Identifier: MIT */
/* reuse.c: what need not be sent. See reuse.h. */
#include "stream/reuse.h"

#include "analyze/base/array.h"
#include "stream/filehash.h"

#include <stdlib.h>

enum {
    PIECE_LEAST = 4096, /* what is smaller is sent as fast as it is asked for */
    AHEAD_MOST = 16,    /* of those that come next; the receiver remembers what it lacks of them */
};

void reuse_end(struct reuse *reuse) {
    free(reuse->pieces);
    *reuse = (struct reuse){.fd = -1};
}

void reuse_note(struct reuse *reuse, uint64_t offset, const struct memtrace_block_header *block) {
    uint32_t size = block->stored_size;
    if (block->kind == MEMTRACE_BLOCK_FILE && size >= PIECE_LEAST && size <= WIRE_PIECE_MOST &&
        array_grow(&reuse->pieces, &reuse->room, reuse->count, sizeof *reuse->pieces) == 0) {
        reuse->pieces[reuse->count++] =
            (struct reuse_piece){.offset = offset + sizeof *block, .wire = {.size = size}};
    }
}

/* What begins before that is not asked for: a part of it is there, or nothing of it is wanted. */
static void reuse_skip(struct reuse *reuse, uint64_t next) {
    while (reuse->at < reuse->count && reuse->pieces[reuse->at].offset < next) {
        reuse->at++;
    }
}

static void reuse_set_all(struct reuse *reuse, uint64_t next, enum reuse_state state) {
    reuse->at = 0;
    reuse->asked = 0;
    for (size_t i = 0; i < reuse->count; i++) {
        reuse->pieces[i].state = state;
    }
    reuse_skip(reuse, next);
}

void reuse_begin(struct reuse *reuse, uint64_t next) {
    reuse_set_all(reuse, next, REUSE_NEW);
}

void reuse_stop(struct reuse *reuse, uint64_t next) {
    reuse_set_all(reuse, next, REUSE_LACKS);
}

/* The next one that was not asked for; NULL: there is none soon. */
static struct reuse_piece *reuse_to_ask(struct reuse *reuse) {
    for (size_t i = reuse->at; i < reuse->count && i < reuse->at + AHEAD_MOST; i++) {
        struct reuse_piece *piece = &reuse->pieces[i];
        if (piece->state != REUSE_NEW) {
            continue;
        }
        if (filehash_digest(reuse->fd, piece->offset, piece->wire.size, piece->wire.digest) == 0) {
            return piece;
        }
        piece->state = REUSE_LACKS;
    }
    return NULL;
}

size_t reuse_put(struct reuse *reuse, uint64_t next, uint8_t *to, uint64_t *known) {
    struct reuse_piece *piece;
    *known = 0;
    reuse_skip(reuse, next);
    piece = reuse->at < reuse->count ? &reuse->pieces[reuse->at] : NULL;
    if (piece != NULL && piece->offset == next && piece->state == REUSE_HAS) {
        *known = piece->wire.size;
        return wire_put_piece(to, WIRE_KNOWN, piece->offset, &piece->wire);
    }
    piece = reuse_to_ask(reuse);
    if (piece == NULL) {
        return 0;
    }
    piece->state = REUSE_ASKED;
    reuse->asked++;
    return wire_put_piece(to, WIRE_ASK, piece->offset, &piece->wire);
}

uint64_t reuse_sendable(const struct reuse *reuse, uint64_t next, uint64_t bytes) {
    for (size_t i = reuse->at; i < reuse->count; i++) {
        const struct reuse_piece *piece = &reuse->pieces[i];
        if (piece->offset >= next + bytes) {
            break;
        }
        if (piece->offset >= next && piece->state != REUSE_LACKS) {
            return piece->offset - next;
        }
    }
    return bytes;
}

int reuse_take(struct reuse *reuse, const struct wire_frame *frame) {
    bool has;
    if (wire_read_has(frame, &has) != 0) {
        return -1;
    }
    for (size_t i = reuse->at; i < reuse->count; i++) {
        struct reuse_piece *piece = &reuse->pieces[i];
        if (piece->offset == frame->offset && piece->state == REUSE_ASKED) {
            piece->state = has ? REUSE_HAS : REUSE_LACKS;
            reuse->asked--;
            return 0;
        }
    }
    /* Of before it wanted all anew. */
    return reuse->asked == 0 ? 0 : -1;
}
