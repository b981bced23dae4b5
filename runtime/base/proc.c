/* SPDX-License-Identifier: MIT */
/* proc.c: reading /proc. See proc.h. */
#include "runtime/base/proc.h"

#include "runtime/base/compiler.h"
#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#include <fcntl.h>
#include <sys/auxv.h>

long proc_read(const char *path, char *buffer, size_t capacity) {
    long fd = sys_open(path, O_RDONLY, 0);
    long size = fd < 0 ? fd : sys_read((int)fd, buffer, capacity - 1);
    sys_close(fd);
    buffer[size > 0 ? size : 0] = '\0';
    return size;
}

/* The first number at or behind `at`. */
static uint64_t proc_number(const char *at) {
    while (*at != '\0' && (*at < '0' || *at > '9')) {
        at++;
    }
    return text_read_number(&at);
}

/* By the file of the first thread, which started with the process: an emulator of user space shows
 * another time in the process's own file, and who looks from outside sees the kernel's. Where /proc
 * counts pids otherwise there is no such thread. */
uint64_t proc_start_ticks(void) {
    char text[1024];
    const char *at = text;
    text_print(text, sizeof text, "/proc/self/task/%u/stat", sys_getpid());
    if (proc_read(text, text, sizeof text) <= 0) {
        proc_read("/proc/self/stat", text, sizeof text);
    }
    for (const char *c = text; *c != '\0'; c++) { /* the name may hold blanks and brackets */
        at = *c == ')' ? c : at;
    }
    for (int field = 2; field < 22 && *at != '\0'; at++) {
        field += *at == ' ';
    }
    return proc_number(at);
}

/* "pid:[4026531836]" */
uint64_t proc_pid_namespace(void) {
    char text[64];
    long length = sys_readlink("/proc/self/ns/pid", text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    return proc_number(text);
}

/* --- mappings --------------------------------------------------------------------------------- */

static int proc_next_byte(struct proc_maps *maps) {
    if (maps->at == maps->size) {
        long size = sys_read((int)maps->fd, maps->buffer, sizeof maps->buffer);
        maps->at = 0;
        maps->size = size > 0 ? (size_t)size : 0;
    }
    maps->byte = maps->at < maps->size ? (uint8_t)maps->buffer[maps->at++] : -1;
    return maps->byte;
}

/* A hexadecimal number, and the byte behind it. */
static uintptr_t proc_next_address(struct proc_maps *maps) {
    uintptr_t address = 0;
    int byte;
    while ((byte = proc_next_byte(maps)) >= 0) {
        int digit = byte >= '0' && byte <= '9'   ? byte - '0'
                    : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
                                                 : -1;
        if (digit < 0) {
            break;
        }
        address = address << 4 | (uintptr_t)digit;
    }
    return address;
}

void proc_open_maps(struct proc_maps *maps) {
    maps->fd = sys_open("/proc/self/maps", O_RDONLY, 0);
    maps->at = maps->size = 0;
    maps->byte = maps->fd >= 0 ? '\n' : -1;
}

int proc_next_map(struct proc_maps *maps) {
    while (maps->byte >= 0 && maps->byte != '\n') {
        proc_next_byte(maps);
    }
    if (maps->byte < 0) {
        return 0;
    }
    maps->start = proc_next_address(maps);
    maps->end = maps->byte == '-' ? proc_next_address(maps) : 0;
    return maps->byte >= 0;
}

/* The rest of the line from its first slash or bracket on. Only a new line is written otherwise
 * than it is: as "\\012". */
size_t proc_map_name(struct proc_maps *maps, char *name, size_t size) {
    size_t length = 0;
    int byte;
    while ((byte = proc_next_byte(maps)) >= 0 && byte != '\n') {
        if ((length != 0 || byte == '/' || byte == '[') && length < size) {
            name[length++] = (char)byte;
            if (length >= 4 && __builtin_memcmp(name + length - 4, "\\012", 4) == 0) {
                name[(length -= 3) - 1] = '\n';
            }
        }
    }
    length = length < size ? length : 0;
    name[length] = '\0';
    return length;
}

void proc_close_maps(const struct proc_maps *maps) {
    sys_close(maps->fd);
}

/* Glibc's and musl's loaders write the entry of what they start over their own; a loader that was
 * started has no base, since the kernel mapped no other. */
size_t proc_program_file(char *path, size_t size) {
    uintptr_t entry = getauxval(AT_ENTRY);
    struct proc_maps maps;
    size_t length = 0;
    long result;
    if (getauxval(AT_BASE) == 0) {
        proc_open_maps(&maps);
        while (proc_next_map(&maps)) {
            if (entry >= maps.start && entry < maps.end) {
                length = proc_map_name(&maps, path, size);
                length = path[0] == '/' ? length : 0;
                break;
            }
        }
        proc_close_maps(&maps);
    }
    if (length == 0) {
        result = sys_readlink("/proc/self/exe", path, size - 1);
        length = result > 0 ? (size_t)result : 0;
        path[length] = '\0';
    }
    return length;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Of /proc/self/statm: seven numbers, in pages. */
int proc_read_memory(struct proc_memory *memory) {
    enum { ADDRESS, RESIDENT, SHARED, DATA = 5, NUMBERS };
    uint64_t number[NUMBERS] = {0};
    char text[200];
    const char *at = text;
    long size = proc_read("/proc/self/statm", text, sizeof text);
    for (int i = 0; i < NUMBERS && *at != '\0'; i++) {
        number[i] = text_read_number(&at) * sys_page_bytes();
        at += *at != '\0';
    }
    *memory = (struct proc_memory){number[ADDRESS], number[RESIDENT], number[SHARED], number[DATA]};
    return size > 0 ? 0 : -1;
}

/* Of the file, which others write to as well: light children do, in the region of the process that
 * forked them. mincore(2) counts a page of it once it is in memory, /proc/self/pagemap (highest
 * bit) where this process has it. Whether that tells of this process at all, as it does not in an
 * emulator, is seen by the first page, which is the header. 0, or -1: it cannot tell. */
static int proc_count_mapped(int pagemap, uint64_t start, uint64_t size, uint64_t *bytes) {
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
static uint64_t proc_count_resident(const void *pagemap, uint64_t start, uint64_t size) {
    /* On stacks that may be small; and emulators that tell the program of larger pages answer with
     * their own, a byte for each 4 KiB. */
    enum { BATCH = 2048, BATCH_BYTES = BATCH * MEMTRACE_PAGE_SIZE };
    const uint64_t page = sys_page_bytes();
    unsigned char is_resident[BATCH];
    uint64_t pages = 0;
    uint64_t bytes;
    if (start == own_maps.region &&
        proc_count_mapped(*(const int *)pagemap, start, size, &bytes) == 0) {
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
    long pagemap = sys_open("/proc/self/pagemap", O_RDONLY, 0);
    int fd = (int)pagemap;
    struct proc_memory memory;
    uint64_t bytes;
    proc_read_memory(&memory);
    bytes = memtrace_own_resident(proc_count_resident, &fd, &own_maps, LOAD_RELAXED(&header->end),
                                  memory.resident > memory.shared ? memory.resident - memory.shared
                                                                  : 0);
    sys_close(pagemap);
    if (bytes != 0) { /* 0: a filter refuses to tell */
        STORE_RELAXED(&header->own_resident_bytes, bytes);
    }
}

void proc_note_resident_peak(struct memtrace_header *header) {
    char text[2048];
    const char *line = text;
    uint64_t bytes;
    proc_read("/proc/self/status", text, sizeof text);
    while (*line != '\0' && !text_starts(line, "VmHWM:")) { /* a whole line: the name is foreign */
        while (*line != '\0' && *line++ != '\n') {
        }
    }
    bytes = proc_number(line) * 1024;
    if (bytes > LOAD_RELAXED(&header->peak_resident_bytes)) {
        STORE_RELAXED(&header->peak_resident_bytes, bytes);
    }
}
