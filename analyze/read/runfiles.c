/* SPDX-License-Identifier: MIT */
/*
 * runfiles.c: what a run without a summary was: the headers of its files, and their timelines added
 * up. Nothing else of them is read.
 */
#include "analyze/base/array.h"
#include "analyze/read/compressed.h"
#include "analyze/read/profile.h"
#include "analyze/read/recording.h"
#include "analyze/read/region.h"
#include "analyze/read/run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POINTS_MOST = 1000 };

/* By how much the sums of all grow at a time; modulo 2^64: or fall. */
struct step {
    uint64_t time_ns;
    uint64_t live_bytes;
    uint64_t resident_bytes;
    uint64_t processes;
};

/* What a process has in common with its other images, by its place in run->processes. */
struct origin {
    uint64_t start_realtime_ns;
    uint64_t start_ticks;
    size_t place;
    uint32_t pid;
};

struct scan {
    struct run *run;
    struct origin *origins;
    struct step *steps; /* times are those of the clock of the day */
    size_t step_count;
    size_t step_room;
};

/* ---- Timelines ---- */

static int add_step(struct scan *scan, struct step step) {
    if (array_grow(&scan->steps, &scan->step_room, scan->step_count, sizeof *scan->steps) != 0) {
        return -1;
    }
    scan->steps[scan->step_count++] = step;
    return 0;
}

/* A process's points one after the other: what its last one changed. */
struct series {
    struct scan *scan;
    uint64_t start_ns;
    uint64_t time_ns;
    uint64_t live_bytes;
    uint64_t resident_bytes;
};

static int series_point(struct series *series, uint64_t time_ns, uint64_t live, uint64_t resident) {
    struct step step = {.time_ns = series->start_ns + time_ns,
                        .live_bytes = live - series->live_bytes,
                        .resident_bytes = resident - series->resident_bytes};
    if (time_ns < series->time_ns || time_ns > UINT64_MAX - series->start_ns) {
        return 0; /* damaged, or repeated after a kill */
    }
    series->time_ns = time_ns;
    series->live_bytes = live;
    series->resident_bytes = resident;
    return add_step(series->scan, step);
}

/* It holds nothing before its start and from its end on. */
static int series_end(struct series *series, uint64_t start_ns, uint64_t end_ns) {
    uint64_t last_ns = series->start_ns + series->time_ns;
    struct step begin = {.time_ns = start_ns, .processes = 1};
    struct step end = {.time_ns = last_ns > end_ns ? last_ns : end_ns,
                       .live_bytes = 0 - series->live_bytes,
                       .resident_bytes = 0 - series->resident_bytes,
                       .processes = UINT64_MAX};
    return add_step(series->scan, begin) == 0 ? add_step(series->scan, end) : -1;
}

/* Of a file or, where `bytes` is not NULL, of so many bytes. */
static bool read_at(int fd, const unsigned char *bytes, void *to, size_t count, uint64_t offset,
                    uint64_t size) {
    if (bytes == NULL) {
        return pread(fd, to, count, (off_t)offset) == (ssize_t)count;
    }
    if (count > size - offset) {
        return false;
    }
    memcpy(to, bytes + offset, count);
    return true;
}

/* The timeline of a profile, whose segments are stepped over. */
static int add_points(struct series *series, int fd, const unsigned char *bytes, uint64_t size) {
    struct memtrace_timeline *timeline = malloc(sizeof *timeline);
    uint64_t offset = MEMTRACE_HEADER_SIZE;
    int result = timeline != NULL ? 0 : -1;
    while (result == 0 && offset < size) {
        struct memtrace_segment segment;
        if (!read_at(fd, bytes, &segment, sizeof segment, offset, size)) {
            break;
        }
        if (segment.magic != MEMTRACE_SEGMENT_MAGIC || segment.size < MEMTRACE_PAGE_SIZE ||
            segment.size % MEMTRACE_PAGE_SIZE != 0) {
            offset += MEMTRACE_PAGE_SIZE;
            continue;
        }
        if (segment.kind == MEMTRACE_SEGMENT_TIMELINE &&
            read_at(fd, bytes, timeline, sizeof *timeline, offset, size)) {
            uint32_t count = timeline->count < MEMTRACE_TIMELINE_POINTS ? timeline->count
                                                                        : MEMTRACE_TIMELINE_POINTS;
            for (uint32_t i = 0; result == 0 && i < count; i++) {
                const struct memtrace_point *point = &timeline->point[i];
                result =
                    series_point(series, point->time_ns, point->live_bytes, point->resident_bytes);
            }
            break;
        }
        offset = segment.size < size - offset ? offset + segment.size : size;
    }
    free(timeline);
    return result;
}

static int add_profile_points(struct series *series, int fd, const char *path,
                              const struct memtrace_header *header, uint64_t file_size) {
    char damage[256];
    unsigned char *bytes;
    int result;
    if (!compressed_is(header)) {
        return add_points(series, fd, NULL, file_size);
    }
    bytes = compressed_read(fd, path, header, true, damage, sizeof damage, NULL);
    if (bytes == NULL) {
        return 0; /* damaged, as a timeline may be */
    }
    result = add_points(series, -1, bytes, header->whole_bytes);
    munmap(bytes, header->whole_bytes);
    return result;
}

static int add_recording_points(struct series *series, const struct recording *recording) {
    struct recording_buffer buffer = {0};
    int result = 0;
    for (size_t i = 0; result == 0 && i < recording->block_count; i++) {
        size_t count = recording->blocks[i].block.items;
        if (recording->blocks[i].block.kind != MEMTRACE_BLOCK_SAMPLES ||
            recording_payload(recording, i, &buffer, NULL) != 0) {
            continue;
        }
        for (size_t item = 0; result == 0 && item < count; item++) {
            struct memtrace_sample sample;
            if ((item + 1) * sizeof sample > buffer.size) {
                break;
            }
            memcpy(&sample, buffer.bytes + item * sizeof sample, sizeof sample);
            result = series_point(series, sample.time_ns, sample.live_bytes, sample.resident_bytes);
        }
    }
    recording_buffer_free(&buffer);
    return result;
}

static int by_time(const void *left, const void *right) {
    const struct step *a = left;
    const struct step *b = right;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* Sums after each step, of those in one share of the time the highest. */
static int add_up(struct scan *scan, uint64_t start_ns) {
    struct run_point sum = {0};
    struct run_point most = {0};
    uint64_t last_ns = scan->steps[scan->step_count - 1].time_ns;
    double share = (double)(last_ns - start_ns) / POINTS_MOST;
    size_t column = 0;
    for (size_t i = 0; i < scan->step_count; i++) {
        const struct step *step = &scan->steps[i];
        size_t here;
        sum.time_ns = step->time_ns - start_ns;
        sum.live_bytes += step->live_bytes;
        sum.resident_bytes += step->resident_bytes;
        sum.processes += step->processes;
        if (i + 1 < scan->step_count && scan->steps[i + 1].time_ns == step->time_ns) {
            continue;
        }
        here = share > 0 ? (size_t)((double)sum.time_ns / share) : 0;
        if (here != column && run_add_point(scan->run, most) != 0) {
            return -1;
        }
        most = here != column || sum.live_bytes >= most.live_bytes ? sum : most;
        column = here;
    }
    return run_add_point(scan->run, most) == 0 ? run_add_point(scan->run, sum) : -1;
}

/* ---- Processes ---- */

static uint64_t at_least_zero(int64_t value) {
    return value > 0 ? (uint64_t)value : 0;
}

/* recording: NULL, it is a profile. */
static enum run_end end_of(const struct memtrace_header *header,
                           const struct recording *recording) {
    switch (header->state) {
    case MEMTRACE_STATE_EXECED:
        return RUN_EXECED;
    case MEMTRACE_STATE_RUNNING:
        return region_alive((pid_t)header->pid, header->process_start_ticks) ||
                       (recording != NULL && recording_grows(recording))
                   ? RUN_RUNNING
                   : RUN_KILLED;
    default:
        return (header->flags & MEMTRACE_FLAG_LEFT) != 0 ? RUN_DETACHED : RUN_ENDED;
    }
}

static uint64_t duration_of(const struct memtrace_header *header, const struct series *series) {
    uint64_t duration = header->end_monotonic_ns > header->start_monotonic_ns
                            ? header->end_monotonic_ns - header->start_monotonic_ns
                            : header->clock_ns;
    return series->time_ns > duration ? series->time_ns : duration;
}

/* Of merged profiles the header has sums; whose they are it does not say. */
static int add_process(struct scan *scan, const char *file, const struct memtrace_header *header,
                       const struct recording *recording, struct series *series) {
    bool merged = run_is_merged(file);
    size_t place = scan->run->process_count;
    struct run_process *process = run_add_process(scan->run);
    uint64_t duration = duration_of(header, series);
    uint64_t most = UINT64_MAX - header->start_realtime_ns;
    if (process == NULL) {
        return -1;
    }
    process->pid = merged ? 0 : header->pid;
    process->parent_pid = merged ? 0 : header->parent_pid;
    process->image = 1;
    process->program = strndup(merged ? file : header->executable, sizeof header->executable - 1);
    process->command = arguments_copy(merged ? (struct arguments){0} : arguments_of(header));
    process->file = strdup(file);
    process->start_ns = header->start_realtime_ns;
    process->end_ns = header->start_realtime_ns + (duration < most ? duration : most);
    process->end = end_of(header, recording);
    process->leaked_bytes = at_least_zero(header->live_bytes);
    process->peak_bytes = at_least_zero(header->maximum_bytes);
    process->peak_error_bytes = header->peak_error_bytes;
    process->lost = memtrace_lost_sum(header);
    scan->origins[place] = (struct origin){header->start_realtime_ns, header->process_start_ticks,
                                           place, process->pid};
    return process->program != NULL && process->command.bytes != NULL && process->file != NULL
               ? series_end(series, process->start_ns, process->end_ns)
               : -1;
}

static bool is_profile(const struct memtrace_header *header) {
    return memcmp(header->magic, MEMTRACE_MAGIC, sizeof header->magic) == 0 &&
           profile_knows_version(header->version) && header->header_size == MEMTRACE_HEADER_SIZE &&
           header->byte_order == MEMTRACE_BYTE_ORDER;
}

/* What is no profile is left out. */
static int add_profile(struct scan *scan, const char *file, const char *path) {
    struct memtrace_header *header = malloc(sizeof *header);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    int result = header != NULL ? 0 : -1;
    if (result == 0 && fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        pread(fd, header, sizeof *header, 0) == sizeof *header && is_profile(header)) {
        struct series series = {.scan = scan, .start_ns = header->start_realtime_ns};
        result = add_profile_points(&series, fd, path, header, (uint64_t)status.st_size);
        result = result == 0 ? add_process(scan, file, header, NULL, &series) : -1;
    }
    if (fd >= 0) {
        close(fd);
    }
    free(header);
    return result;
}

/* The first part of a rotated recording stands for all. */
static int add_recording(struct scan *scan, const char *file, const char *path) {
    struct recording *recording = recording_open(path, NULL);
    struct series series = {.scan = scan};
    int result = 0;
    if (recording != NULL && recording->header.part == 0) {
        series.start_ns = recording->program.start_realtime_ns;
        result = add_recording_points(&series, recording);
        result =
            result == 0 ? add_process(scan, file, &recording->program, recording, &series) : -1;
    }
    recording_close(recording);
    return result;
}

static int add_file(struct scan *scan, const char *file) {
    char *path = run_file_path(scan->run, file);
    int result = -1;
    if (path != NULL) {
        result =
            recording_is(path) ? add_recording(scan, file, path) : add_profile(scan, file, path);
    }
    free(path);
    return result;
}

static int by_process(const void *left, const void *right) {
    const struct origin *a = left;
    const struct origin *b = right;
    if (a->pid != b->pid) {
        return a->pid < b->pid ? -1 : 1;
    }
    if (a->start_ticks != b->start_ticks) {
        return a->start_ticks < b->start_ticks ? -1 : 1;
    }
    if (a->start_realtime_ns != b->start_realtime_ns) {
        return a->start_realtime_ns < b->start_realtime_ns ? -1 : 1;
    }
    return (a->place > b->place) - (a->place < b->place);
}

/* A process that replaced itself by exec has one start, and one file for each of its images. */
static void number_images(struct scan *scan) {
    const struct run *run = scan->run;
    qsort(scan->origins, run->process_count, sizeof *scan->origins, by_process);
    for (size_t i = 1; i < run->process_count; i++) {
        const struct origin *before = &scan->origins[i - 1];
        const struct origin *origin = &scan->origins[i];
        if (origin->pid != 0 && before->pid == origin->pid &&
            before->start_ticks == origin->start_ticks) {
            run->processes[origin->place].image = run->processes[before->place].image + 1;
        }
    }
}

/* Times count from when the first process started. */
static int finish(struct scan *scan) {
    struct run *run = scan->run;
    uint64_t start_ns = UINT64_MAX;
    if (run->process_count == 0) {
        return 0;
    }
    number_images(scan);
    for (size_t i = 0; i < run->process_count; i++) {
        start_ns = run->processes[i].start_ns < start_ns ? run->processes[i].start_ns : start_ns;
    }
    for (size_t i = 0; i < run->process_count; i++) {
        run->processes[i].start_ns -= start_ns;
        run->processes[i].end_ns -= start_ns;
    }
    qsort(scan->steps, scan->step_count, sizeof *scan->steps, by_time);
    return add_up(scan, start_ns);
}

int runfiles_read(struct run *run) {
    struct scan scan = {.run = run};
    int result;
    run->command = arguments_copy((struct arguments){0});
    scan.origins = calloc(run->file_count + 1, sizeof *scan.origins);
    result = run->command.bytes != NULL && scan.origins != NULL ? 0 : -1;
    for (size_t i = 0; result == 0 && i < run->file_count; i++) {
        result = add_file(&scan, run->files[i]);
    }
    result = result == 0 ? finish(&scan) : -1;
    free(scan.origins);
    free(scan.steps);
    return result;
}
