/* SPDX-License-Identifier: MIT */
/* proc.c: reading /proc. See proc.h. */
#include "runtime/record/proc.h"

#include "runtime/base/compiler.h"
#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#include <fcntl.h>
#include <sys/auxv.h>

/* The start of a file, ended by NUL; "" where it cannot be read. */
static void read_start(const char *path, char *buffer, size_t capacity) {
    long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    long size = fd < 0 ? fd : sys_read((int)fd, buffer, capacity - 1);
    if (fd >= 0) {
        sys_close((int)fd);
    }
    buffer[size > 0 ? size : 0] = '\0';
}

/* The first number at or behind `at`. */
static uint64_t number_at(const char *at) {
    uint64_t number = 0;
    while (*at != '\0' && (*at < '0' || *at > '9')) {
        at++;
    }
    for (; *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (uint64_t)(*at - '0');
    }
    return number;
}

/* By the file of the first thread, which started with the process: an emulator of user space shows
 * another time in the process's own file, and who looks from outside sees the kernel's. Where /proc
 * counts pids otherwise there is no such thread. */
uint64_t proc_start_ticks(void) {
    char text[1024];
    struct text path;
    const char *at = text;
    text_init(&path, text, sizeof text);
    text_add(&path, "/proc/self/task/");
    text_add_number(&path, sys_getpid());
    text_add(&path, "/stat");
    read_start(text, text, sizeof text);
    if (text[0] == '\0') {
        read_start("/proc/self/stat", text, sizeof text);
    }
    for (const char *c = text; *c != '\0'; c++) { /* the name may hold blanks and brackets */
        at = *c == ')' ? c : at;
    }
    for (int field = 2; field < 22 && *at != '\0'; at++) {
        field += *at == ' ';
    }
    return number_at(at);
}

/* "pid:[4026531836]" */
uint64_t proc_pid_namespace(void) {
    char text[64];
    long length = sys_readlink("/proc/self/ns/pid", text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    return number_at(text);
}

/* --- the program's file ------------------------------------------------------------------------
 */

/* A file that is read byte by byte, through little of the stack. */
struct reader {
    int fd;
    size_t at, size;
    char buffer[512];
};

/* -1: there are no more. */
static int next_byte(struct reader *reader) {
    if (reader->at == reader->size) {
        long size = sys_read(reader->fd, reader->buffer, sizeof reader->buffer);
        reader->at = 0;
        reader->size = size > 0 ? (size_t)size : 0;
    }
    return reader->at < reader->size ? (uint8_t)reader->buffer[reader->at++] : -1;
}

/* A hexadecimal number; `end` becomes the byte behind it. */
static uintptr_t next_address(struct reader *reader, int *end) {
    uintptr_t address = 0;
    int byte;
    while ((byte = next_byte(reader)) >= 0) {
        int digit = byte >= '0' && byte <= '9'   ? byte - '0'
                    : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
                                                 : -1;
        if (digit < 0) {
            break;
        }
        address = address << 4 | (uintptr_t)digit;
    }
    *end = byte;
    return address;
}

/* The rest of the line from its first slash on, into path. Only a new line is written otherwise
 * than it is: as "\\012". 0: there is no slash, or no room. */
static size_t next_path(struct reader *reader, char *path, size_t size) {
    size_t length = 0;
    int byte;
    while ((byte = next_byte(reader)) >= 0 && byte != '\n') {
        if ((length != 0 || byte == '/') && length < size) {
            path[length++] = (char)byte;
            if (length >= 4 && __builtin_memcmp(path + length - 4, "\\012", 4) == 0) {
                path[(length -= 3) - 1] = '\n';
            }
        }
    }
    length = length < size ? length : 0;
    path[length] = '\0';
    return length;
}

/* Of the mapping that holds the address. */
static size_t file_at(int fd, uintptr_t address, char *path, size_t size) {
    struct reader reader = {.fd = fd};
    int byte = 0;
    while (byte >= 0) {
        uintptr_t start = next_address(&reader, &byte);
        uintptr_t end = byte == '-' ? next_address(&reader, &byte) : 0;
        if (address >= start && address < end) {
            return next_path(&reader, path, size);
        }
        while (byte >= 0 && byte != '\n') {
            byte = next_byte(&reader);
        }
    }
    return 0;
}

/* Glibc's and musl's loaders write the entry of what they start over their own; a loader that was
 * started has no base, since the kernel mapped no other. */
size_t proc_program_file(char *path, size_t size) {
    size_t length = 0;
    long result;
    if (getauxval(AT_BASE) == 0) {
        long fd = sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
        if (fd >= 0) {
            length = file_at((int)fd, getauxval(AT_ENTRY), path, size);
            sys_close((int)fd);
        }
    }
    if (length == 0) {
        result = sys_readlink("/proc/self/exe", path, size - 1);
        length = result > 0 ? (size_t)result : 0;
        path[length] = '\0';
    }
    return length;
}

/* --- memory ------------------------------------------------------------------------------------
 */

static const char *skip_number(const char *at) {
    while (*at != '\0' && *at != ' ') {
        at++;
    }
    return *at != '\0' ? at + 1 : at;
}

/* Of /proc/self/statm: the address space, what is resident, what of that is of files or shared. */
uint64_t proc_resident_bytes(void) {
    char text[128];
    read_start("/proc/self/statm", text, sizeof text);
    return number_at(skip_number(text)) * sys_page_bytes();
}

static uint64_t anonymous_bytes(void) {
    char text[128];
    const char *at;
    uint64_t resident;
    uint64_t shared;
    read_start("/proc/self/statm", text, sizeof text);
    at = skip_number(text);
    resident = number_at(at);
    shared = number_at(skip_number(at));
    return resident > shared ? (resident - shared) * sys_page_bytes() : 0;
}

/* Behind the line's name; NULL: there is no such line. */
static const char *find_line(const char *text, const char *name) {
    while (*text != '\0') {
        const char *at = name;
        while (*at != '\0' && *text == *at) {
            at++;
            text++;
        }
        if (*at == '\0') {
            return text;
        }
        while (*text != '\0' && *text++ != '\n') {
        }
    }
    return NULL;
}

/* Of the file, which others write to as well: light children do, in the region of the process that
 * forked them. mincore(2) counts a page of it once it is in memory, /proc/self/pagemap (highest
 * bit) where this process has it. Whether that tells of this process at all, as it does not in an
 * emulator, is seen by the first page, which is the header. 0, or -1: it cannot tell. */
static int count_mapped(int pagemap, uint64_t start, uint64_t size, uint64_t *bytes) {
    enum { BATCH = 512, PRESENT = 63 };
    const uint64_t page = sys_page_bytes();
    uint64_t entries[BATCH];
    uint64_t pages = 0;
    for (uint64_t at = 0; at < size;) {
        uint64_t left = (size - at + page - 1) / page;
        uint64_t count = left < BATCH ? left : BATCH;
        long got = sys_pread(pagemap, entries, count * sizeof *entries,
                             (start + at) / page * sizeof *entries);
        if (got != (long)(count * sizeof *entries) || (at == 0 && entries[0] >> PRESENT == 0)) {
            return -1;
        }
        for (uint64_t i = 0; i < count; i++) {
            pages += entries[i] >> PRESENT;
        }
        at += count * page;
    }
    *bytes = pages * page;
    return 0;
}

/* By mincore(2), which passes over what was never touched much faster than /proc/self/pagemap
 * tells of it: the tables are large and sparse, and nobody else has them. */
static uint64_t count_resident(const void *pagemap, uint64_t start, uint64_t size) {
    /* On stacks that may be small; and emulators that tell the program of larger pages answer with
     * their own, a byte for each 4 KiB. */
    enum { BATCH = 2048, BATCH_BYTES = BATCH * MEMTRACE_PAGE_SIZE };
    const uint64_t page = sys_page_bytes();
    unsigned char is_resident[BATCH];
    uint64_t pages = 0;
    uint64_t bytes;
    if (start == own_maps.region && count_mapped(*(const int *)pagemap, start, size, &bytes) == 0) {
        return bytes;
    }
    for (uint64_t at = 0; at < size; at += BATCH_BYTES) {
        uint64_t left = size - at;
        uint64_t batch = left < BATCH_BYTES ? left : BATCH_BYTES;
        if (sys_mincore((void *)(uintptr_t)(start + at), batch, is_resident) != 0) {
            break; /* it has just gone */
        }
        for (uint64_t i = 0; i * page < batch; i++) {
            pages += is_resident[i] & 1;
        }
    }
    return pages * page;
}

void proc_note_own_resident(struct memtrace_header *header) {
    int pagemap = (int)sys_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
    uint64_t bytes = memtrace_own_resident(count_resident, &pagemap, &own_maps,
                                           LOAD_RELAXED(&header->end), anonymous_bytes());
    if (pagemap >= 0) {
        sys_close(pagemap);
    }
    if (bytes != 0) { /* 0: a filter refuses to tell */
        STORE_RELAXED(&header->own_resident_bytes, bytes);
    }
}

void proc_note_resident_peak(struct memtrace_header *header) {
    char text[2048];
    const char *line;
    uint64_t bytes;
    read_start("/proc/self/status", text, sizeof text);
    line = find_line(text, "VmHWM:");
    bytes = line != NULL ? number_at(line) * 1024 : 0;
    if (bytes > LOAD_RELAXED(&header->peak_resident_bytes)) {
        STORE_RELAXED(&header->peak_resident_bytes, bytes);
    }
}
