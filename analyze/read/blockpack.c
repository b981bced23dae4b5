/* SPDX-License-Identifier: MIT */
/* blockpack.c: payloads into zstd frames. See blockpack.h. */
#include "analyze/read/blockpack.h"

#include "analyze/read/eventcolumns.h"
#include "analyze/read/nodecode.h"
#include "analyze/read/segmentpack.h"

#include <stdint.h>
#include <string.h>

enum { LARGE = 2048 }; /* bytes of a column that are worth a beginning of their own */

static size_t columns_of(enum memtrace_block_kind kind) {
    return kind == MEMTRACE_BLOCK_EVENTS     ? COLUMNS
           : kind == MEMTRACE_BLOCK_NODES    ? NODECODE_COLUMNS
           : kind == MEMTRACE_BLOCK_SEGMENTS ? SEGMENTPACK_COLUMNS
                                             : 0;
}

/* Where the column ends, given where the one before does; never behind the payload. */
static size_t column_end(const void *payload, size_t size, size_t column, size_t before) {
    uint32_t bytes;
    memcpy(&bytes, (const char *)payload + column * sizeof bytes, sizeof bytes);
    return bytes < size - before ? before + bytes : size;
}

size_t blockpack(ZSTD_CCtx *context, enum memtrace_block_kind kind, const void *payload,
                 size_t size, int level, void *packed) {
    ZSTD_outBuffer out = {packed, BLOCKPACK_BOUND(size), 0};
    ZSTD_inBuffer in = {payload, 0, 0};
    size_t columns = size >= LARGE ? columns_of(kind) : 0;
    size_t end = columns * sizeof(uint32_t);
    ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setPledgedSrcSize(context, size);
    for (size_t i = 0; i < columns; i++) {
        size_t start = end;
        end = column_end(payload, size, i, start);
        if (end - start >= LARGE) {
            in.size = end;
            if (ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush) != 0) {
                return 0;
            }
        }
    }
    in.size = size;
    return ZSTD_compressStream2(context, &out, &in, ZSTD_e_end) == 0 ? out.pos : 0;
}
