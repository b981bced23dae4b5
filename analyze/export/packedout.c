/* SPDX-License-Identifier: MIT */
/* packedout.c: streams of the C library over zlib and zstd. See packedout.h. */
#include "analyze/export/packedout.h"

#include "analyze/base/job.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
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

struct packer {
    struct packedout packed;
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

static int packer_forward(struct packer *packer, size_t size) {
    if (fwrite(packer->buffer, 1, size, packer->packed.out) != size) {
        errno = EIO;
        return -1;
    }
    return 0;
}

static int packer_gzip(struct packer *packer, const char *bytes, size_t size, int how) {
    z_stream *gzip = &packer->gzip;
    gzip->next_in = (Bytef *)(uintptr_t)bytes;
    gzip->avail_in = (uInt)size;
    do {
        gzip->next_out = packer->buffer;
        gzip->avail_out = sizeof packer->buffer;
        if (deflate(gzip, how) == Z_STREAM_ERROR ||
            packer_forward(packer, sizeof packer->buffer - gzip->avail_out) != 0) {
            return -1;
        }
    } while (gzip->avail_out == 0);
    return 0;
}

static int packer_zstd(struct packer *packer, const char *bytes, size_t size,
                       ZSTD_EndDirective how) {
    ZSTD_inBuffer in = {bytes, size, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {packer->buffer, sizeof packer->buffer, 0};
        left = ZSTD_compressStream2(packer->zstd, &out, &in, how);
        if (ZSTD_isError(left) || packer_forward(packer, out.pos) != 0) {
            return -1;
        }
    } while (in.pos < in.size || (how == ZSTD_e_end && left != 0));
    return 0;
}

static ssize_t packer_take(void *cookie, const char *bytes, size_t size) {
    struct packer *packer = cookie;
    int result = packer->packing == PACKING_GZIP
                     ? packer_gzip(packer, bytes, size, Z_NO_FLUSH)
                     : packer_zstd(packer, bytes, size, ZSTD_e_continue);
    return result == 0 ? (ssize_t)size : 0;
}

static int packer_finish(void *cookie) {
    struct packer *packer = cookie;
    int result;
    if (packer->packing == PACKING_GZIP) {
        result = packer_gzip(packer, NULL, 0, Z_FINISH);
        deflateEnd(&packer->gzip);
    } else {
        result = packer_zstd(packer, NULL, 0, ZSTD_e_end);
        ZSTD_freeCCtx(packer->zstd);
    }
    return result;
}

static void packedout_undo(void *what) {
    struct packedout *packed = what;
    if (packed->stream != NULL) {
        packedout_close(packed);
    }
}

struct packedout *packedout_open(FILE *out, enum packing packing) {
    const cookie_io_functions_t functions = {.write = packer_take, .close = packer_finish};
    struct packer *packer = job_alloc(sizeof *packer);
    bool is_started = true;
    packer->packed = (struct packedout){.stream = out, .out = out};
    packer->packing = packing;
    if (packing == PACKING_NONE) {
        return &packer->packed;
    }
    if (packing == PACKING_GZIP) {
        is_started = deflateInit2(&packer->gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
                                  GZIP_MEMORY, Z_DEFAULT_STRATEGY) == Z_OK;
    } else {
        packer->zstd = ZSTD_createCCtx();
        is_started = packer->zstd != NULL &&
                     !ZSTD_isError(
                         ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL));
    }
    packer->packed.stream = is_started ? fopencookie(packer, "w", functions) : NULL;
    if (packer->packed.stream == NULL) {
        ZSTD_freeCCtx(packer->zstd);
        deflateEnd(&packer->gzip);
        job_fail_memory();
    }
    job_undo(packedout_undo, packer);
    setvbuf(packer->packed.stream, NULL, _IOFBF, BUFFER);
    return &packer->packed;
}

int packedout_close(struct packedout *packed) {
    FILE *stream = packed->stream;
    packed->stream = NULL;
    if (stream == packed->out) {
        return ferror(packed->out) ? -1 : 0;
    }
    return fclose(stream) == 0 ? 0 : -1;
}
