/* SPDX-License-Identifier: MIT */
/* recordsample.c: samples of a process. See recordsample.h. */
#include "collect/recordsample.h"

#include "analyze/base/scope.h"
#include "analyze/read/procfile.h"
#include "collect/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KIBIBYTE UINT64_C(1024)

enum {
    SAMPLE_MS = 100,
    SAMPLES_A_LIFE = 1000, /* from 100 s on a sample every thousandth of the life */
    WRITE_MS = 5000,       /* samples wait at most so long ... */
    BUSY_WRITE_MS = 500,  /* ... or where the file grows meanwhile, since who goes through events */
    BUSY_BYTES = 1 << 19, /* while they come waits for the samples between them */
    FIRST_MAPS_MS = 1000, /* then each time twice as late, ... */
    MAPS_MS = 5000,       /* ... at last at this distance, ... */
    MAPS_A_LIFE = 100,
    MAPS_COST = 100, /* and at most a hundredth of the time goes into looking */
    MAPS_LIMIT = 1 << 16,
};

/* --- numbers of the process ------------------------------------------------------------------- */

/* The file that tells the memory of the process's cgroup: version 2, else version 1. */
static int open_cgroup(pid_t pid) {
    char line[4096];
    SCOPE_FILE FILE *list = procfile_text("/proc/%ld/cgroup", (long)pid);
    int fd = -1;
    while (list != NULL && fd < 0 && fgets(line, sizeof line, list) != NULL) {
        const char *group = strrchr(line, ':');
        char path[sizeof line + 64];
        line[strcspn(line, "\n")] = '\0';
        if (group != NULL && strncmp(line, "0::", 3) == 0) {
            snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", group + 1);
        } else if (group != NULL && strstr(line, ":memory:") != NULL) {
            snprintf(path, sizeof path, "/sys/fs/cgroup/memory%s/memory.usage_in_bytes", group + 1);
        } else {
            continue;
        }
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    return fd;
}

void recordsample_open(struct recordsample *sample, pid_t pid) {
    *sample =
        (struct recordsample){.pid = pid,
                              .statm = procfile_open(O_RDONLY, "/proc/%ld/statm", (long)pid),
                              .status = procfile_open(O_RDONLY, "/proc/%ld/status", (long)pid),
                              .cgroup = open_cgroup(pid),
                              .next_maps_ns = FIRST_MAPS_MS * MS};
}

void recordsample_close(struct recordsample *sample) {
    scope_close(&sample->statm);
    scope_close(&sample->status);
    scope_close(&sample->cgroup);
}

/* The file's text from its start, "" where there is none. */
static const char *recordsample_read_text(int fd, char *text, size_t capacity) {
    ssize_t size = fd >= 0 ? pread(fd, text, capacity - 1, 0) : -1;
    text[size > 0 ? size : 0] = '\0';
    return text;
}

static bool recordsample_take_sample(struct recordsample *sample, uint64_t time_ns,
                                     uint64_t live_bytes) {
    struct memtrace_sample *to = &sample->samples[sample->count];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t swap = 0;
    char text[4096];
    const char *line;
    *to = (struct memtrace_sample){.time_ns = time_ns, .live_bytes = live_bytes};
    if (sscanf(recordsample_read_text(sample->statm, text, sizeof text), "%" SCNu64 " %" SCNu64,
               &to->virtual_bytes, &to->resident_bytes) != 2 ||
        to->virtual_bytes == 0) {
        return false; /* it is going */
    }
    to->virtual_bytes *= page;
    to->resident_bytes *= page;
    line = strstr(recordsample_read_text(sample->status, text, sizeof text), "VmSwap:");
    if (line != NULL && sscanf(line, "VmSwap: %" SCNu64, &swap) == 1) {
        to->swap_bytes = swap * KIBIBYTE;
    }
    to->cgroup_bytes =
        strtoull(recordsample_read_text(sample->cgroup, text, sizeof text), NULL, 10);
    sample->count++;
    return true;
}

static int write_samples(struct recordsample *sample, struct recordfile *file, uint64_t time_ns,
                         struct error *error) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_SAMPLES,
                                          .items = (uint32_t)sample->count};
    size_t size = sample->count * sizeof sample->samples[0];
    sample->written_ns = time_ns;
    sample->written_bytes = file->size;
    if (sample->count == 0) {
        return 0;
    }
    block.first_ns = sample->samples[0].time_ns;
    block.last_ns = sample->samples[sample->count - 1].time_ns;
    sample->count = 0;
    return recordfile_append(file, &block, sample->samples, size, error);
}

/* --- mappings --------------------------------------------------------------------------------- */

struct maps {
    struct memtrace_mapping *list; /* MAPS_LIMIT places */
    size_t count;
    size_t names_size;
    FILE *names_out;
};

/* "START-END PERMISSIONS OFFSET DEVICE INODE NAME". Whether the line is one of those. */
static bool read_head(const char *line, struct maps *maps) {
    struct memtrace_mapping mapping = {0};
    char permissions[5] = "";
    int name = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &mapping.start,
               &mapping.end, permissions, &mapping.offset, &name) != 4 ||
        name == 0) {
        return false;
    }
    mapping.protection = (permissions[0] == 'r' ? (uint32_t)PROT_READ : 0) |
                         (permissions[1] == 'w' ? (uint32_t)PROT_WRITE : 0) |
                         (permissions[2] == 'x' ? (uint32_t)PROT_EXEC : 0) |
                         (permissions[3] == 's' ? 8u : 0);
    mapping.name = (uint32_t)ftell(maps->names_out);
    fwrite(line + name, 1, strcspn(line + name, "\n"), maps->names_out);
    fputc('\0', maps->names_out);
    maps->list[maps->count++] = mapping;
    return true;
}

static void read_value(const char *line, struct memtrace_mapping *mapping) {
    char name[32];
    uint64_t kibibytes;
    if (sscanf(line, "%31[^:]: %" SCNu64, name, &kibibytes) != 2) {
        return;
    }
    if (strcmp(name, "Rss") == 0) {
        mapping->resident_bytes = kibibytes * KIBIBYTE;
    } else if (strcmp(name, "Swap") == 0) {
        mapping->swap_bytes = kibibytes * KIBIBYTE;
    } else if (strcmp(name, "Private_Dirty") == 0 || strcmp(name, "Shared_Dirty") == 0) {
        mapping->dirty_bytes += kibibytes * KIBIBYTE;
    }
}

/* Not where the process has lost its memory meanwhile, so that perhaps not all is there. (The
 * kernel gives the list out in parts. The open file is that of the memory, which an exec replaces.)
 */
static int take_maps(const struct recordsample *sample, struct recordfile *file, uint64_t time_ns,
                     struct error *error) {
    struct memtrace_block_header block = {
        .kind = MEMTRACE_BLOCK_SMAPS, .first_ns = time_ns, .last_ns = time_ns};
    SCOPE_FILE FILE *smaps = procfile_text("/proc/%ld/smaps", (long)sample->pid);
    SCOPE_MEMORY struct memtrace_mapping *list = malloc(MAPS_LIMIT * sizeof *list);
    SCOPE_MEMORY char *names = NULL;
    SCOPE_MEMORY char *line = NULL;
    struct maps maps = {.list = list};
    size_t size = 0;
    bool is_whole = false;
    maps.names_out = open_memstream(&names, &maps.names_size);
    if (smaps != NULL && list != NULL && maps.names_out != NULL) {
        while (getline(&line, &size, smaps) > 0) {
            if (maps.count == MAPS_LIMIT || (!read_head(line, &maps) && maps.count != 0)) {
                read_value(line, &list[maps.count - 1]);
            }
        }
        rewind(smaps);
        is_whole = getc(smaps) != EOF;
    }
    if (maps.names_out == NULL || fclose(maps.names_out) != 0 || maps.count == 0 || !is_whole) {
        return 0;
    }
    size = maps.count * sizeof *list;
    SCOPE_MEMORY unsigned char *payload = malloc(size + maps.names_size);
    if (payload == NULL) {
        return error_set(error, "out of memory while recording");
    }
    memcpy(payload, list, size);
    memcpy(payload + size, names, maps.names_size);
    block.items = (uint32_t)maps.count;
    return recordfile_append(file, &block, payload, size + maps.names_size, error);
}

/* --- when ------------------------------------------------------------------------------------- */

static uint64_t recordsample_larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

int recordsample_tick(struct recordsample *sample, struct recordfile *file, uint64_t time_ns,
                      uint64_t live_bytes, bool last, struct error *error) {
    int result = 0;
    if (time_ns >= sample->next_ns || last) {
        recordsample_take_sample(sample, time_ns, live_bytes);
        sample->next_ns = time_ns + recordsample_larger(SAMPLE_MS * MS, time_ns / SAMPLES_A_LIFE);
    }
    if (file->size < sample->written_bytes) { /* another part */
        sample->written_bytes = 0;
    }
    if (sample->count == RECORDSAMPLE_BATCH || last ||
        time_ns >= sample->written_ns + WRITE_MS * MS ||
        (time_ns >= sample->written_ns + BUSY_WRITE_MS * MS &&
         file->size - sample->written_bytes >= BUSY_BYTES)) {
        result = write_samples(sample, file, time_ns, error);
    }
    if (result == 0 && time_ns >= sample->next_maps_ns && !last) {
        uint64_t start = clock_now_ns();
        uint64_t usual_ns = time_ns < MAPS_MS * MS ? time_ns : MAPS_MS * MS;
        result = take_maps(sample, file, time_ns, error);
        sample->next_maps_ns =
            time_ns + recordsample_larger(recordsample_larger(usual_ns, time_ns / MAPS_A_LIFE),
                                          (clock_now_ns() - start) * MAPS_COST);
    }
    return result;
}
