/* SPDX-License-Identifier: MIT */
/*
 * runfiles.c: what a run without a summary was: the headers of its files, and their timelines added
 * up. Nothing else of them is read. Called by run.c, in its job; each file is looked at in one of
 * its own, with which what it takes goes.
 */
#include "analyze/base/job.h"

#include "analyze/base/array.h"
#include "analyze/read/profile.h"
#include "analyze/read/recording.h"
#include "analyze/read/region.h"
#include "analyze/read/run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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

/* One file: its header, which is that of a process if `is_process`, and its points one after the
 * other. */
struct look {
    struct scan *scan;
    const char *file;
    bool is_process;
    enum run_end end;
    struct memtrace_header header;
    int fd; /* what is open, to be closed at the border */
    const unsigned char *bytes;
    struct recording *recording;
    struct recording_buffer buffer;
    uint64_t time_ns; /* of the last point, and what all so far changed */
    uint64_t live_bytes;
    uint64_t resident_bytes;
};

/* ---- Timelines ---- */

static void add_step(struct scan *scan, struct step step) {
    job_grow(&scan->steps, &scan->step_room, scan->step_count, sizeof *scan->steps);
    scan->steps[scan->step_count++] = step;
}

static void look_add_point(struct look *look, uint64_t time_ns, uint64_t live, uint64_t resident) {
    uint64_t start_ns = look->header.start_realtime_ns;
    if (time_ns < look->time_ns || time_ns > UINT64_MAX - start_ns) {
        return; /* damaged, or repeated after a kill */
    }
    add_step(look->scan, (struct step){.time_ns = start_ns + time_ns,
                                       .live_bytes = live - look->live_bytes,
                                       .resident_bytes = resident - look->resident_bytes});
    look->time_ns = time_ns;
    look->live_bytes = live;
    look->resident_bytes = resident;
}

/* Of a file or, where `bytes` is not NULL, of so many bytes. */
static bool look_read(int fd, const unsigned char *bytes, void *to, size_t count, uint64_t offset,
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
static void look_add_points(struct look *look, int fd, const unsigned char *bytes, uint64_t size) {
    struct memtrace_timeline *timeline = job_alloc(sizeof *timeline);
    uint64_t offset = MEMTRACE_HEADER_SIZE;
    while (offset < size) {
        struct memtrace_segment segment;
        if (!look_read(fd, bytes, &segment, sizeof segment, offset, size)) {
            break;
        }
        if (segment.magic != MEMTRACE_SEGMENT_MAGIC || segment.size < MEMTRACE_PAGE_SIZE ||
            segment.size % MEMTRACE_PAGE_SIZE != 0) {
            offset += MEMTRACE_PAGE_SIZE;
            continue;
        }
        if (segment.kind == MEMTRACE_SEGMENT_TIMELINE &&
            look_read(fd, bytes, timeline, sizeof *timeline, offset, size)) {
            uint32_t count = timeline->count < MEMTRACE_TIMELINE_POINTS ? timeline->count
                                                                        : MEMTRACE_TIMELINE_POINTS;
            for (uint32_t i = 0; i < count; i++) {
                const struct memtrace_point *point = &timeline->point[i];
                look_add_point(look, point->time_ns, point->live_bytes, point->resident_bytes);
            }
            break;
        }
        offset = segment.size < size - offset ? offset + segment.size : size;
    }
}

/* Sums after each step, of those in one share of the time the highest. */
static void scan_add_up(struct scan *scan, uint64_t start_ns) {
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
        if (here != column) {
            run_add_point(scan->run, most);
        }
        most = here != column || sum.live_bytes >= most.live_bytes ? sum : most;
        column = here;
    }
    run_add_point(scan->run, most);
    run_add_point(scan->run, sum);
}

/* ---- Processes ---- */

static uint64_t at_least_zero(int64_t value) {
    return value > 0 ? (uint64_t)value : 0;
}

/* recording: NULL, it is a profile. */
static enum run_end process_end(const struct memtrace_header *header,
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

static void look_uncompress(void *what) {
    struct look *look = what;
    char damage[256];
    look->bytes =
        profile_uncompress(look->fd, look->file, &look->header, true, damage, sizeof damage);
}

/* What is no profile is left out. */
static void look_at_profile(struct look *look, const char *path) {
    struct memtrace_header *header = &look->header;
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    look->fd = fd;
    look->is_process = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                       pread(fd, header, sizeof *header, 0) == sizeof *header &&
                       memcmp(header->magic, MEMTRACE_MAGIC, sizeof header->magic) == 0 &&
                       profile_knows_version(header->version) &&
                       header->header_size == MEMTRACE_HEADER_SIZE &&
                       header->byte_order == MEMTRACE_BYTE_ORDER;
    if (!look->is_process) {
        return;
    }
    look->end = process_end(header, NULL);
    if (!profile_is_compressed(header)) {
        look_add_points(look, fd, NULL, (uint64_t)status.st_size);
        return;
    }
    if (job_part(look_uncompress, look, NULL) == 0) { /* else it is damaged, as a timeline may be */
        look_add_points(look, -1, look->bytes, header->whole_bytes);
    }
}

/* The first part of a rotated recording stands for all. */
static void look_at_recording(struct look *look, const char *path) {
    struct recording_buffer *buffer = &look->buffer;
    const struct recording *recording = look->recording = recording_open(path, NULL);
    if (recording == NULL || recording->header.part != 0) {
        return;
    }
    look->is_process = true;
    look->header = recording->program;
    look->end = process_end(&look->header, recording);
    for (size_t next = 0; recording_next(recording, MEMTRACE_BLOCK_SAMPLES, &next, buffer);) {
        size_t count = recording->blocks[next - 1].block.items;
        for (size_t item = 0; item < count; item++) {
            struct memtrace_sample sample;
            if ((item + 1) * sizeof sample > buffer->size) {
                break;
            }
            memcpy(&sample, buffer->bytes + item * sizeof sample, sizeof sample);
            look_add_point(look, sample.time_ns, sample.live_bytes, sample.resident_bytes);
        }
    }
}

static void look_run(void *what) {
    struct look *look = what;
    const char *path = job_text("%s/%s", look->scan->run->path, look->file);
    if (recording_is(path)) {
        look_at_recording(look, path);
    } else {
        look_at_profile(look, path);
    }
}

/* Of merged profiles the header has sums; whose they are it does not say. */
static void add_process(const struct look *look) {
    const struct memtrace_header *header = &look->header;
    struct scan *scan = look->scan;
    bool merged = run_is_merged(look->file);
    size_t place = scan->run->process_count;
    struct run_process *process = run_add_process(scan->run);
    uint64_t start_ns = header->start_realtime_ns;
    uint64_t duration = header->end_monotonic_ns > header->start_monotonic_ns
                            ? header->end_monotonic_ns - header->start_monotonic_ns
                            : header->clock_ns;
    uint64_t last_ns = start_ns + look->time_ns;
    duration = look->time_ns > duration ? look->time_ns : duration;
    process->pid = merged ? 0 : header->pid;
    process->parent_pid = merged ? 0 : header->parent_pid;
    process->image = 1;
    process->program =
        merged ? job_string(look->file)
               : job_text("%.*s", (int)sizeof header->executable - 1, header->executable);
    if (!merged) {
        process->command = arguments_copy(arguments_of(header));
        job_take(process->command.bytes);
    }
    process->file = job_string(look->file);
    process->start_ns = start_ns;
    process->end_ns = duration < UINT64_MAX - start_ns ? start_ns + duration : UINT64_MAX;
    process->end = look->end;
    process->leaked_bytes = at_least_zero(header->live_bytes);
    process->peak_bytes = at_least_zero(header->maximum_bytes);
    process->peak_error_bytes = header->peak_error_bytes;
    process->lost = memtrace_lost_sum(header);
    scan->origins[place] =
        (struct origin){start_ns, header->process_start_ticks, place, process->pid};
    /* It holds nothing before its start and from its end on. */
    add_step(scan, (struct step){.time_ns = start_ns, .processes = 1});
    add_step(scan, (struct step){.time_ns = last_ns > process->end_ns ? last_ns : process->end_ns,
                                 .live_bytes = 0 - look->live_bytes,
                                 .resident_bytes = 0 - look->resident_bytes,
                                 .processes = UINT64_MAX});
}

static int compare_origins(const void *left, const void *right) {
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
static void scan_number_images(struct scan *scan) {
    const struct run *run = scan->run;
    qsort(scan->origins, run->process_count, sizeof *scan->origins, compare_origins);
    for (size_t i = 1; i < run->process_count; i++) {
        const struct origin *before = &scan->origins[i - 1];
        const struct origin *origin = &scan->origins[i];
        if (origin->pid != 0 && before->pid == origin->pid &&
            before->start_ticks == origin->start_ticks) {
            run->processes[origin->place].image = run->processes[before->place].image + 1;
        }
    }
}

void runfiles_read(struct run *run) {
    struct scan scan = {.run = run, .origins = job_array(run->file_count, sizeof *scan.origins)};
    struct look *look = job_alloc(sizeof *look);
    uint64_t start_ns = UINT64_MAX;
    struct error error;
    /* Begun here, since what begins in a file's job goes with it. */
    job_reserve(&scan.steps, &scan.step_room, POINTS_MOST, sizeof *scan.steps);
    for (size_t i = 0; i < run->file_count; i++) {
        int result;
        *look = (struct look){.scan = &scan, .file = run->files[i], .fd = -1};
        result = job_run(look_run, look, NULL, &error);
        recording_buffer_free(&look->buffer);
        recording_close(look->recording);
        if (look->fd >= 0) {
            close(look->fd);
        }
        job_check(result, &error);
        if (look->is_process) {
            add_process(look);
        }
    }
    if (run->process_count != 0) {
        scan_number_images(&scan);
        for (size_t i = 0; i < run->process_count; i++) {
            uint64_t here_ns = run->processes[i].start_ns;
            start_ns = here_ns < start_ns ? here_ns : start_ns;
        }
        /* Times count from when the first process started. */
        for (size_t i = 0; i < run->process_count; i++) {
            run->processes[i].start_ns -= start_ns;
            run->processes[i].end_ns -= start_ns;
        }
        array_sort_by(scan.steps, scan.step_count, sizeof *scan.steps,
                      offsetof(struct step, time_ns));
        scan_add_up(&scan, start_ns);
    }
    job_release(scan.origins);
    job_release(scan.steps);
}
