/* SPDX-License-Identifier: MIT */
/* timeline.c: samples and their thinning. See timeline.h. */
#include "collect/timeline.h"

#include "analyze/base/scope.h"
#include "analyze/read/filemap.h"
#include "analyze/read/procfile.h"
#include "memtrace/ownmaps.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Keeps points 1, 3, 5, …: the newest stays. */
static void timeline_thin(struct memtrace_timeline *timeline) {
    uint32_t kept = 0;
    for (uint32_t i = 1; i < MEMTRACE_TIMELINE_POINTS; i += 2) {
        timeline->point[kept++] = timeline->point[i];
    }
    __atomic_store_n(&timeline->count, kept, __ATOMIC_RELEASE);
    timeline->interval_ns *= 2;
}

void timeline_add(struct memtrace_timeline *timeline, const struct memtrace_point *point) {
    uint32_t count = timeline->count;
    if (count > 0 && count <= MEMTRACE_TIMELINE_POINTS &&
        timeline->point[count - 1].time_ns >= point->time_ns) {
        return;
    }
    if (count >= MEMTRACE_TIMELINE_POINTS) {
        timeline_thin(timeline);
        count = timeline->count;
    }
    timeline->point[count] = *point;
    __atomic_store_n(&timeline->count, count + 1,
                     __ATOMIC_RELEASE); /* a reader sees whole points */
}

void timeline_sum(const struct profile *profile, struct memtrace_point *point) {
    uint64_t there = profile_load_u64(&profile_header(profile)->inherited_bytes);
    uint64_t freed = 0;
    const struct memtrace_thread_record *thread;
    struct profile_items at = {.kind = MEMTRACE_SEGMENT_THREADS};
    while ((thread = profile_next(profile, &at)) != NULL) {
        freed += profile_load_u64(&thread->counts.free_bytes);
    }
    point->alloc_count = point->alloc_bytes = 0;
    at = (struct profile_items){.kind = MEMTRACE_SEGMENT_THREADS};
    while ((thread = profile_next(profile, &at)) != NULL) { /* after what they freed */
        point->alloc_bytes += profile_load_u64(&thread->counts.alloc_bytes);
        point->alloc_count += profile_load_u64(&thread->counts.alloc_count);
    }
    there += point->alloc_bytes;
    point->live_bytes = there > freed ? there - freed : 0;
}

uint64_t timeline_resident(pid_t pid) {
    char text[128];
    unsigned long long pages = 0;
    return sscanf(procfile_read(text, sizeof text, "/proc/%ld/statm", (long)pid), "%*u %llu",
                  &pages) == 1
               ? pages * (uint64_t)sysconf(_SC_PAGESIZE)
               : 0;
}

/* By /proc/PID/pagemap: 8 bytes a page, whose highest bit says that the page is present (kernel
 * documentation, admin-guide/mm/pagemap.rst). */
static uint64_t timeline_count_resident(const void *pagemap, uint64_t start, uint64_t size) {
    enum { BATCH = 4096 };
    uint64_t page_size = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t first = start / page_size;
    uint64_t left = (size + page_size - 1) / page_size;
    uint64_t present = 0;
    while (left > 0) {
        uint64_t entries[BATCH];
        size_t batch = left < BATCH ? (size_t)left : (size_t)BATCH;
        ssize_t bytes = (ssize_t)(batch * sizeof *entries);
        if (pread(*(const int *)pagemap, entries, (size_t)bytes,
                  (off_t)(first * sizeof *entries)) != bytes) {
            break;
        }
        for (size_t i = 0; i < batch; i++) {
            present += entries[i] >> 63;
        }
        first += batch;
        left -= batch;
    }
    return present * page_size;
}

/* The program's list, or NULL where its memory cannot be read. */
static struct memtrace_own_maps *read_own_maps(pid_t pid, uint64_t address) {
    struct memtrace_own_maps *maps = malloc(sizeof *maps);
    size_t head = offsetof(struct memtrace_own_maps, map);
    struct iovec to = {maps, head};
    struct iovec from = {(void *)(uintptr_t)address, head};
    if (maps == NULL || process_vm_readv(pid, &to, 1, &from, 1, 0) != (ssize_t)head ||
        maps->count > MEMTRACE_OWN_MAPS) {
        free(maps);
        return NULL;
    }
    to = (struct iovec){maps->map, maps->count * sizeof maps->map[0]};
    from = (struct iovec){(void *)(uintptr_t)(address + head), to.iov_len};
    if (process_vm_readv(pid, &to, 1, &from, 1, 0) != (ssize_t)to.iov_len) {
        free(maps);
        return NULL;
    }
    return maps;
}

void timeline_note_own_resident(pid_t pid, struct memtrace_header *header) {
    SCOPE_MEMORY struct memtrace_own_maps *maps = read_own_maps(pid, header->own_maps);
    SCOPE_FD int fd = maps != NULL ? procfile_open(O_RDONLY, "/proc/%ld/pagemap", (long)pid) : -1;
    char text[128];
    unsigned long long resident = 0;
    unsigned long long shared = 0;
    uint64_t anonymous = 0;
    uint64_t bytes;
    if (fd < 0) {
        return;
    }
    if (sscanf(procfile_read(text, sizeof text, "/proc/%ld/statm", (long)pid), "%*u %llu %llu",
               &resident, &shared) == 2 &&
        resident > shared) {
        anonymous = (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
    }
    bytes = memtrace_own_resident(timeline_count_resident, &fd, maps,
                                  __atomic_load_n(&header->end, __ATOMIC_RELAXED), anonymous);
    if (bytes != 0) { /* 0: it is going */
        __atomic_store_n(&header->own_resident_bytes, bytes, __ATOMIC_RELAXED);
    }
}

void timeline_note_resident_peak(pid_t pid, struct memtrace_header *header) {
    char text[4096];
    unsigned long long kibibytes = 0;
    const char *line =
        strstr(procfile_read(text, sizeof text, "/proc/%ld/status", (long)pid), "VmHWM:");
    uint64_t known = __atomic_load_n(&header->peak_resident_bytes, __ATOMIC_RELAXED);
    if (line == NULL || sscanf(line, "VmHWM: %llu", &kibibytes) != 1) {
        return;
    }
    while (kibibytes * 1024 > known && /* the program writes it, too, at its end */
           !__atomic_compare_exchange_n(&header->peak_resident_bytes, &known, kibibytes * 1024,
                                        true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

struct memtrace_timeline *timeline_map(const struct profile *profile, int fd, uint64_t *size) {
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        if (segment->kind != MEMTRACE_SEGMENT_TIMELINE ||
            segment->size < sizeof(struct memtrace_timeline)) {
            continue;
        }
        *size = segment->size;
        return filemap_open(fd, segment->offset, segment->size, FILEMAP_WRITES);
    }
    return NULL;
}
