/* SPDX-License-Identifier: MIT */
/* packedout.c: streams of the C library over zlib and zstd. See packedout.h. */
#include "analyze/export/packedout.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <zlib.h>
#include <zstd.h>

enum {
    BUFFER = 1 << 16,
    GZIP_WINDOW = 15 + 16, /* of deflateInit2: with gzip's header */
    GZIP_MEMORY = 8,
    ZSTD_LEVEL = 3
};

struct packedout {
    FILE *out;
    enum packing packing;
    z_stream gzip;
    ZSTD_CCtx *zstd;
    unsigned char buffer[BUFFER];
};

enum packing packing_of(const char *name) {
    size_t length = name != NULL ? strlen(name) : 0;
    if (name == NULL || (length > 4 && strcmp(name + length - 4, ".zst") == 0)) {
        return PACKING_ZSTD;
    }
    return length > 3 && strcmp(name + length - 3, ".gz") == 0 ? PACKING_GZIP : PACKING_NONE;
}

static int forward(struct packedout *packed, size_t size) {
    if (fwrite(packed->buffer, 1, size, packed->out) != size) {
        errno = EIO;
        return -1;
    }
    return 0;
}

static int pack_gzip(struct packedout *packed, const char *bytes, size_t size, int how) {
    z_stream *gzip = &packed->gzip;
    gzip->next_in = (Bytef *)(uintptr_t)bytes;
    gzip->avail_in = (uInt)size;
    do {
        gzip->next_out = packed->buffer;
        gzip->avail_out = sizeof packed->buffer;
        if (deflate(gzip, how) == Z_STREAM_ERROR ||
            forward(packed, sizeof packed->buffer - gzip->avail_out) != 0) {
            return -1;
        }
    } while (gzip->avail_out == 0);
    return 0;
}

static int pack_zstd(struct packedout *packed, const char *bytes, size_t size,
                     ZSTD_EndDirective how) {
    ZSTD_inBuffer in = {bytes, size, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {packed->buffer, sizeof packed->buffer, 0};
        left = ZSTD_compressStream2(packed->zstd, &out, &in, how);
        if (ZSTD_isError(left) || forward(packed, out.pos) != 0) {
            return -1;
        }
    } while (in.pos < in.size || (how == ZSTD_e_end && left != 0));
    return 0;
}

static ssize_t take(void *cookie, const char *bytes, size_t size) {
    struct packedout *packed = cookie;
    int result = packed->packing == PACKING_GZIP ? pack_gzip(packed, bytes, size, Z_NO_FLUSH)
                                                 : pack_zstd(packed, bytes, size, ZSTD_e_continue);
    return result == 0 ? (ssize_t)size : 0;
}

static int finish(void *cookie) {
    struct packedout *packed = cookie;
    int result;
    if (packed->packing == PACKING_GZIP) {
        result = pack_gzip(packed, NULL, 0, Z_FINISH);
        deflateEnd(&packed->gzip);
    } else {
        result = pack_zstd(packed, NULL, 0, ZSTD_e_end);
        ZSTD_freeCCtx(packed->zstd);
    }
    free(packed);
    return result;
}

static int start(struct packedout *packed) {
    if (packed->packing == PACKING_GZIP) {
        return deflateInit2(&packed->gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
                            GZIP_MEMORY, Z_DEFAULT_STRATEGY) == Z_OK
                   ? 0
                   : -1;
    }
    packed->zstd = ZSTD_createCCtx();
    return packed->zstd != NULL && !ZSTD_isError(ZSTD_CCtx_setParameter(
                                       packed->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL))
               ? 0
               : -1;
}

FILE *packedout_open(FILE *out, enum packing packing) {
    const cookie_io_functions_t functions = {.write = take, .close = finish};
    struct packedout *packed;
    FILE *stream;
    if (packing == PACKING_NONE) {
        return out;
    }
    packed = calloc(1, sizeof *packed);
    if (packed == NULL) {
        return NULL;
    }
    packed->out = out;
    packed->packing = packing;
    stream = start(packed) == 0 ? fopencookie(packed, "w", functions) : NULL;
    if (stream == NULL) {
        ZSTD_freeCCtx(packed->zstd);
        deflateEnd(&packed->gzip);
        free(packed);
        return NULL;
    }
    setvbuf(stream, NULL, _IOFBF, BUFFER);
    return stream;
}

int packedout_close(FILE *packed, FILE *out) {
    return packed == out ? (ferror(out) ? -1 : 0) : fclose(packed) == 0 ? 0 : -1;
}
