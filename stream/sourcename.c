/* SPDX-License-Identifier: MIT */
/* sourcename.c: identities and names of recordings. See sourcename.h. */
#define XXH_INLINE_ALL
#include "stream/sourcename.h"

#include "analyze/read/block.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

_Static_assert(SOURCE_HEAD ==
                   sizeof(struct memtrace_recording_header) + sizeof(struct memtrace_block_header),
               "what tells a recording");

void source_id(const uint8_t *head, uint8_t id[WIRE_ID]) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(head, SOURCE_HEAD));
    memcpy(id, canonical.digest, WIRE_ID);
}

/* What the first block, that of the program, says. 1; 0: it is not whole yet. */
static int describe_program(int fd, struct wire_hello *hello, struct error *error) {
    struct recording_buffer buffer = {0};
    struct memtrace_block_header block;
    const struct memtrace_header *program;
    int result = 0;
    if (block_load(fd, INT64_MAX, sizeof(struct memtrace_recording_header), &block, &buffer) ==
            BLOCK_WHOLE &&
        block_unpack(&block, &buffer) == 0) {
        program = (const struct memtrace_header *)buffer.bytes;
        result = block.kind == MEMTRACE_BLOCK_PROGRAM && buffer.size >= sizeof *program
                     ? 1
                     : error_set(error, "its first block is not that of its program");
    }
    if (result == 1) {
        const char *slash = memrchr(program->executable, '/',
                                    strnlen(program->executable, sizeof program->executable));
        const char *name = slash != NULL ? slash + 1 : program->executable;
        size_t room = sizeof program->executable - (size_t)(name - program->executable);
        snprintf(hello->program, sizeof hello->program, "%.*s", (int)strnlen(name, room), name);
        hello->started_ns = program->start_realtime_ns;
    }
    recording_buffer_free(&buffer);
    return result;
}

int source_describe(int fd, const char *path, struct wire_hello *hello, struct error *error) {
    uint8_t head[SOURCE_HEAD];
    struct memtrace_recording_header header;
    struct error reason = {""};
    int result;
    ssize_t size = block_read_at(fd, head, sizeof head, 0);
    *hello = (struct wire_hello){.version = WIRE_VERSION};
    if (size < 0) {
        return errno == EISDIR
                   ? error_set(error, "%s is a folder: its recordings are sent one by one", path)
                   : error_set(error, "cannot read %s: %s", path, strerror(errno));
    }
    if (size < (ssize_t)sizeof header) {
        return size == 0 || memcmp(head, MEMTRACE_RECORDING_MAGIC, size < 8 ? (size_t)size : 8) == 0
                   ? 0
                   : error_set(error, "%s is not a recording", path);
    }
    memcpy(&header, head, sizeof header);
    if (memcmp(header.magic, MEMTRACE_RECORDING_MAGIC, sizeof header.magic) != 0 ||
        header.version != MEMTRACE_RECORDING_VERSION) {
        return error_set(error, "%s is not a recording of this version", path);
    }
    if (size < SOURCE_HEAD) {
        return 0;
    }
    hello->pid = header.pid;
    hello->part = header.part;
    source_id(head, hello->id);
    if (gethostname(hello->host, sizeof hello->host - 1) != 0 || hello->host[0] == '\0') {
        strcpy(hello->host, "host");
    }
    result = describe_program(fd, hello, &reason);
    if (hello->program[0] == '\0') {
        strcpy(hello->program, "program");
    }
    return result >= 0 ? result : error_set(error, "%s: %s", path, reason.message);
}

void source_path(int fd, char path[PATH_MAX]) {
    char link[32];
    ssize_t size;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, path, PATH_MAX - 1);
    path[size > 0 ? size : 0] = '\0';
}

void source_word(const char *name, char word[SOURCE_WORD]) {
    size_t size = 0;
    for (; name[size] != '\0' && size < SOURCE_WORD - 1; size++) {
        char c = name[size];
        bool is_fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '+' || (c == '.' && size > 0);
        word[size] = is_fine ? c : '_';
    }
    if (size == 0) {
        word[size++] = '_';
    }
    word[size] = '\0';
}

void source_name(const struct wire_hello *hello, unsigned n, char name[SOURCE_NAME]) {
    char host[SOURCE_WORD];
    char program[SOURCE_WORD];
    char when[32];
    char part[16] = "";
    char more[16] = "";
    struct tm utc;
    time_t seconds = (time_t)(hello->started_ns / 1000000000u);
    source_word(hello->host, host);
    source_word(hello->program, program);
    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &utc) == 0) {
        strcpy(when, "0");
    }
    if (hello->part != 0) {
        snprintf(part, sizeof part, ".part%u", hello->part);
    }
    if (n > 1) {
        snprintf(more, sizeof more, "-%u", n);
    }
    snprintf(name, SOURCE_NAME, "%s/%s.%u.%s%s%s.mtr", host, program, hello->pid, when, part, more);
}
