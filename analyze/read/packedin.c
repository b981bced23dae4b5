/* SPDX-License-Identifier: MIT */
/* packedin.c: lines out of zlib, zstd or the file itself. See packedin.h. */
#include "analyze/read/packedin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum {
    PACKED = 1 << 16,
    ROOM = 1 << 18,
    LONGEST = 1 << 26, /* of a line: a longer one is no text */
    GZIP_WINDOW = 15 + 16
};

enum kind { PLAIN, GZIP, ZSTD };

struct packedin {
    int fd;
    enum kind kind;
    uint64_t size;
    uint64_t done;
    unsigned char *packed; /* [packed_next, packed_end) is read from the file and not unpacked */
    size_t packed_next;
    size_t packed_end;
    z_stream gzip;
    ZSTD_DCtx *zstd;
    bool in_frame; /* zstd, gzip: what began is not whole yet */
    char *text;    /* [next, end) is unpacked and not handed out */
    size_t room;
    size_t next;
    size_t end;
    bool at_end; /* nothing more comes */
    const char *trouble;
};

/* ---- Bytes ---- */

/* More of the file. false: there is none. */
static bool fill_packed(struct packedin *in) {
    ssize_t got;
    do {
        got = read(in->fd, in->packed, PACKED);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        in->trouble = "it cannot be read further";
    }
    in->packed_next = 0;
    in->packed_end = got > 0 ? (size_t)got : 0;
    in->done += in->packed_end;
    return got > 0;
}

/* How many bytes came out; what went in is taken off. SIZE_MAX: damaged. */
static size_t unpack_gzip(struct packedin *in, char *to, size_t room) {
    z_stream *gzip = &in->gzip;
    int result;
    if (!in->in_frame && inflateReset(gzip) != Z_OK) {
        return SIZE_MAX;
    }
    gzip->next_in = in->packed + in->packed_next;
    gzip->avail_in = (uInt)(in->packed_end - in->packed_next);
    gzip->next_out = (Bytef *)to;
    gzip->avail_out = (uInt)room;
    result = inflate(gzip, Z_NO_FLUSH);
    in->packed_next = in->packed_end - gzip->avail_in;
    in->in_frame = result != Z_STREAM_END;
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR
               ? room - gzip->avail_out
               : SIZE_MAX;
}

static size_t unpack_zstd(struct packedin *in, char *to, size_t room) {
    ZSTD_inBuffer from = {in->packed, in->packed_end, in->packed_next};
    ZSTD_outBuffer out = {to, room, 0};
    size_t result = ZSTD_decompressStream(in->zstd, &out, &from);
    in->packed_next = from.pos;
    in->in_frame = result != 0;
    return ZSTD_isError(result) ? SIZE_MAX : out.pos;
}

static size_t unpack_plain(struct packedin *in, char *to, size_t room) {
    size_t size = in->packed_end - in->packed_next;
    size = size < room ? size : room;
    memcpy(to, in->packed + in->packed_next, size);
    in->packed_next += size;
    return size;
}

/* More text behind `end`. What a packer still holds comes out with no bytes going in. */
static void fill_text(struct packedin *in) {
    size_t got = 0;
    while (got == 0 && !in->at_end) {
        size_t before;
        if (in->packed_next == in->packed_end && !fill_packed(in)) {
            in->at_end = true;
            if (in->in_frame && in->trouble == NULL) {
                in->trouble = "it is cut off";
            }
            return;
        }
        do {
            before = in->packed_next;
            got = in->kind == GZIP   ? unpack_gzip(in, in->text + in->end, in->room - in->end)
                  : in->kind == ZSTD ? unpack_zstd(in, in->text + in->end, in->room - in->end)
                                     : unpack_plain(in, in->text + in->end, in->room - in->end);
        } while (got == 0 && in->packed_next != before && in->packed_next != in->packed_end);
        if (got == SIZE_MAX) {
            in->trouble = "it is damaged";
            in->at_end = true;
            return;
        }
        in->end += got;
    }
}

/* Room for more text: what was handed out goes; then a line that fills all of it gets more. */
static bool packedin_make_room(struct packedin *in) {
    char *grown;
    if (in->next != 0) {
        memmove(in->text, in->text + in->next, in->end - in->next);
        in->end -= in->next;
        in->next = 0;
        return true;
    }
    if (in->end < in->room) {
        return true;
    }
    grown = in->room < LONGEST ? realloc(in->text, in->room * 2) : NULL;
    if (grown == NULL) {
        in->trouble = "one of its lines is too long";
        in->at_end = true;
        return false;
    }
    in->text = grown;
    in->room *= 2;
    return true;
}

/* ---- Lines ---- */

char *packedin_line(struct packedin *in, size_t *size) {
    size_t seen = 0; /* of the line, without an end */
    for (;;) {
        char *line = in->text + in->next;
        char *end = memchr(line + seen, '\n', in->end - in->next - seen);
        if (end != NULL) {
            *end = '\0';
            *size = (size_t)(end - line);
            in->next += *size + 1;
            return line;
        }
        seen = in->end - in->next;
        if (in->at_end || !packedin_make_room(in)) {
            break;
        }
        fill_text(in);
    }
    if (in->end != in->next && in->trouble == NULL) {
        in->trouble = "it is cut off";
    }
    return NULL;
}

const char *packedin_break(const struct packedin *in) {
    return in->trouble;
}

uint64_t packedin_done(const struct packedin *in) {
    return in->done;
}

uint64_t packedin_size(const struct packedin *in) {
    return in->size;
}

const void *packedin_bytes(struct packedin *in, size_t *size) {
    const char *bytes = in->text;
    in->next = in->end = 0;
    fill_text(in);
    *size = in->end;
    return in->end != 0 ? bytes : NULL;
}

/* ---- Opening ---- */

static enum kind packedin_kind(const unsigned char *bytes, size_t size) {
    if (size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) {
        return GZIP;
    }
    return size >= 4 && memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0 ? ZSTD : PLAIN;
}

bool packedin_is_packed(const void *bytes, size_t size) {
    return packedin_kind(bytes, size) != PLAIN;
}

struct packedin *packedin_open(const char *path, struct error *error) {
    struct packedin *in = calloc(1, sizeof *in);
    struct stat status;
    if (in == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    in->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (in->fd < 0 || fstat(in->fd, &status) != 0) {
        error_set(error, "cannot open %s: %s", path, strerror(errno));
    } else if (S_ISDIR(status.st_mode)) {
        error_set(error, "cannot read %s: it is a folder", path);
    } else {
        bool has_memory;
        in->size = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
        in->room = ROOM;
        in->packed = malloc(PACKED);
        in->text = malloc(in->room);
        has_memory = in->packed != NULL && in->text != NULL;
        if (has_memory) {
            fill_packed(in);
            in->kind = packedin_kind(in->packed, in->packed_end);
        }
        if (has_memory && in->kind == ZSTD) {
            in->zstd = ZSTD_createDCtx();
            has_memory = in->zstd != NULL;
        } else if (has_memory && in->kind == GZIP) {
            has_memory = inflateInit2(&in->gzip, GZIP_WINDOW) == Z_OK;
        }
        if (has_memory) {
            return in;
        }
        error_set(error, "out of memory");
    }
    packedin_close(in);
    return NULL;
}

void packedin_close(struct packedin *in) {
    if (in == NULL) {
        return;
    }
    if (in->fd >= 0) {
        close(in->fd);
    }
    inflateEnd(&in->gzip);
    ZSTD_freeDCtx(in->zstd);
    free(in->packed);
    free(in->text);
    free(in);
}
