/* SPDX-License-Identifier: MIT */
/* fileinfo.c: see fileinfo.h. */
#include "analyze/report/fileinfo.h"

#include "analyze/read/block.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { LABEL = 14, THREADS = 1 << MEMTRACE_THREAD_BITS };

/* Writes each fact once: as a line for people, or under its name in JSON. */
struct writer {
    FILE *out;
    struct jsonwriter *json; /* NULL: text */
};

static void put_line(const struct writer *writer, const char *label, const char *text) {
    fprintf(writer->out, "%-*s ", LABEL, label);
    put_safe(writer->out, text);
    fputc('\n', writer->out);
}

static void put_text(const struct writer *writer, const char *label, const char *name,
                     const char *text) {
    if (writer->json != NULL) {
        jsonwriter_string(writer->json, name, text);
    } else if (text[0] != '\0') {
        put_line(writer, label, text);
    }
}

static void put_count(const struct writer *writer, const char *label, const char *name,
                      uint64_t value) {
    struct number number;
    if (writer->json != NULL) {
        jsonwriter_number(writer->json, name, value);
    } else {
        put_line(writer, label, number_count(&number, value));
    }
}

static void put_bytes(const struct writer *writer, const char *label, const char *name,
                      uint64_t value) {
    struct number number;
    if (writer->json != NULL) {
        jsonwriter_number(writer->json, name, value);
    } else {
        put_line(writer, label, number_bytes(&number, value));
    }
}

static void put_duration(const struct writer *writer, const char *label, const char *name,
                         uint64_t ns) {
    struct number number;
    if (writer->json != NULL) {
        jsonwriter_number(writer->json, name, ns);
    } else {
        put_line(writer, label, number_duration(&number, ns));
    }
}

/* ---- The program ---- */

static const char *state_of(const struct memtrace_header *header) {
    switch (header->state) {
    case MEMTRACE_STATE_RUNNING:
        return "running, or killed";
    case MEMTRACE_STATE_ENDED:
        return "ended";
    case MEMTRACE_STATE_EXECED:
        return "replaced itself (exec)";
    case MEMTRACE_STATE_COPIED:
        return "copied while running";
    default:
        return "unknown";
    }
}

/* The arguments, which NULs separate, with spaces between. The caller frees it. */
static char *command_of(const struct memtrace_header *header) {
    size_t size = sizeof header->command;
    char *line = malloc(size + 1);
    size_t length = 0;
    if (line == NULL) {
        return NULL;
    }
    while (length + 1 < size &&
           (header->command[length] != '\0' || header->command[length + 1] != '\0')) {
        line[length] = header->command[length] != '\0' ? header->command[length] : ' ';
        length++;
    }
    line[length] = '\0';
    return line;
}

static void put_start(const struct writer *writer, const struct memtrace_header *header) {
    time_t seconds = (time_t)(header->start_realtime_ns / UINT64_C(1000000000));
    struct tm when;
    char text[64];
    if (gmtime_r(&seconds, &when) != NULL &&
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &when) != 0) {
        put_text(writer, "started", "started", text);
    }
}

static int put_program(const struct writer *writer, const struct memtrace_header *header,
                       uint64_t last_ns) {
    char *command = command_of(header);
    if (command == NULL) {
        return -1;
    }
    put_text(writer, "program", "executable", header->executable);
    put_text(writer, "command", "command", command);
    free(command);
    if (writer->json != NULL) {
        jsonwriter_number(writer->json, "pid", header->pid);
    } else {
        fprintf(writer->out, "%-*s %" PRIu32 "\n", LABEL, "process", header->pid);
    }
    if (header->merged > 1) {
        put_count(writer, "profiles in it", "merged", header->merged);
    }
    put_start(writer, header);
    if (header->end_monotonic_ns > header->start_monotonic_ns) {
        last_ns = header->end_monotonic_ns - header->start_monotonic_ns;
    }
    put_duration(writer, "ran for", "duration_ns", last_ns);
    put_text(writer, "state", "state", state_of(header));
    return 0;
}

/* ---- Kinds of blocks and segments ---- */

struct kind_sum {
    uint64_t count;
    uint64_t items;
    uint64_t stored; /* bytes in the file, headers included */
    uint64_t raw;
};

static void put_kinds(const struct writer *writer, const char *heading, const char *const *names,
                      const struct kind_sum *sums, size_t count) {
    if (writer->json != NULL) {
        jsonwriter_array(writer->json, heading);
    } else {
        fprintf(writer->out, "\n%-10s %10s %14s %12s %12s\n", heading, "count", "items", "in file",
                "unpacked");
    }
    for (size_t i = 0; i < count; i++) {
        struct number number[4];
        if (sums[i].count == 0) {
            continue;
        }
        if (writer->json != NULL) {
            jsonwriter_map(writer->json, NULL);
            jsonwriter_string(writer->json, "kind", names[i]);
            jsonwriter_number(writer->json, "count", sums[i].count);
            jsonwriter_number(writer->json, "items", sums[i].items);
            jsonwriter_number(writer->json, "stored_bytes", sums[i].stored);
            jsonwriter_number(writer->json, "raw_bytes", sums[i].raw);
            jsonwriter_end_map(writer->json);
        } else {
            fprintf(
                writer->out, "%-10s %10s %14s %12s %12s\n", names[i],
                number_count(&number[0], sums[i].count), number_count(&number[1], sums[i].items),
                number_bytes(&number[2], sums[i].stored), number_bytes(&number[3], sums[i].raw));
        }
    }
    if (writer->json != NULL) {
        jsonwriter_end_array(writer->json);
    }
}

/* ---- Recordings ---- */

static const char *const block_names[] = {
    [0] = "unknown",
    [MEMTRACE_BLOCK_PROGRAM] = "program",
    [MEMTRACE_BLOCK_NODES] = "nodes",
    [MEMTRACE_BLOCK_EVENTS] = "events",
    [MEMTRACE_BLOCK_THREADS] = "threads",
    [MEMTRACE_BLOCK_MODULES] = "modules",
    [MEMTRACE_BLOCK_POOLS] = "pools",
    [MEMTRACE_BLOCK_SAMPLES] = "samples",
    [MEMTRACE_BLOCK_SMAPS] = "smaps",
    [MEMTRACE_BLOCK_FILE] = "files",
    [MEMTRACE_BLOCK_INDEX] = "index",
    [11] = "unknown",
    [MEMTRACE_BLOCK_CULLED] = "culled",
    [MEMTRACE_BLOCK_NAMES] = "names",
};
enum { BLOCK_KINDS = sizeof block_names / sizeof block_names[0] };

struct recording_sum {
    struct kind_sum kinds[BLOCK_KINDS];
    uint64_t allocs;
    uint64_t frees;
    uint64_t streams; /* the highest number */
    uint64_t threads;
    uint64_t last_ns;
    uint64_t bytes;
    uint64_t damaged;
    bool seen[THREADS];
};

static void add_block(struct recording_sum *sum, const struct memtrace_block_header *block) {
    struct kind_sum *kind = &sum->kinds[block->kind < BLOCK_KINDS ? block->kind : 0];
    kind->count++;
    kind->items += block->items;
    kind->stored += block_size(block);
    kind->raw += block->raw_size;
    if (block->last_ns > sum->last_ns && block->last_ns != UINT64_MAX) {
        sum->last_ns = block->last_ns;
    }
    if (block->kind != MEMTRACE_BLOCK_EVENTS) {
        return;
    }
    sum->allocs += block->allocs;
    sum->frees += block->frees;
    sum->streams = block->stream > sum->streams ? block->stream : sum->streams;
    if (block->thread < THREADS && !sum->seen[block->thread]) {
        sum->seen[block->thread] = true;
        sum->threads++;
    }
}

static void put_traits(const struct writer *writer, const struct recording *last) {
    struct memtrace_recording told;
    char text[160];
    struct number number;
    uint32_t flags = last->header.flags;
    memcpy(&told, last->program.recording, sizeof told);
    if (writer->json != NULL) {
        jsonwriter_bool(writer->json, "precise", (flags & MEMTRACE_RECORDING_PRECISE) != 0);
        jsonwriter_bool(writer->json, "free_stacks", (flags & MEMTRACE_RECORDING_FREE_STACKS) != 0);
        jsonwriter_bool(writer->json, "addresses", (flags & MEMTRACE_RECORDING_NO_ADDRESSES) == 0);
        jsonwriter_number(writer->json, "sample_bytes", told.sample_bytes);
        return;
    }
    snprintf(text, sizeof text, "%s times%s%s%s%s",
             (flags & MEMTRACE_RECORDING_PRECISE) != 0 ? "precise" : "coarse",
             (flags & MEMTRACE_RECORDING_FREE_STACKS) != 0 ? ", stacks of frees" : "",
             (flags & MEMTRACE_RECORDING_NO_ADDRESSES) != 0 ? ", no addresses" : "",
             told.sample_bytes != 0 ? ", sampled: one allocation in " : "",
             told.sample_bytes != 0 ? number_bytes(&number, told.sample_bytes) : "");
    put_line(writer, "recorded with", text);
}

static void put_events(const struct writer *writer, const struct recording_sum *sum) {
    uint64_t events = sum->kinds[MEMTRACE_BLOCK_EVENTS].items;
    put_count(writer, "events", "events", events);
    put_count(writer, "allocations", "allocations", sum->allocs);
    put_count(writer, "frees", "frees", sum->frees);
    put_count(writer, "threads", "threads", sum->threads);
    put_count(writer, "call paths", "contexts", sum->kinds[MEMTRACE_BLOCK_NODES].items);
    if (events != 0 && writer->json == NULL) {
        char text[40];
        snprintf(text, sizeof text, "%.2f bytes",
                 (double)sum->kinds[MEMTRACE_BLOCK_EVENTS].stored / (double)events);
        put_line(writer, "an event takes", text);
    }
}

/* As the program's header said last. */
static bool has_stopped(const struct recording *recording) {
    struct memtrace_recording told;
    memcpy(&told, recording->program.recording, sizeof told);
    return told.state == MEMTRACE_RECORD_STOPPED;
}

static void put_wholeness(const struct writer *writer, const struct recording *const *parts,
                          size_t count, const struct recording_sum *sum) {
    const char *damage = "";
    for (size_t i = count; i-- > 0;) {
        damage = parts[i]->damage[0] != '\0' ? parts[i]->damage : damage;
    }
    if (writer->json != NULL) {
        jsonwriter_bool(writer->json, "closed", parts[count - 1]->closed);
        jsonwriter_bool(writer->json, "stopped", has_stopped(parts[count - 1]));
        jsonwriter_number(writer->json, "damaged_blocks", sum->damaged);
        jsonwriter_string(writer->json, "damage", damage[0] != '\0' ? damage : NULL);
        return;
    }
    put_line(writer, "file",
             damage[0] != '\0'          ? damage
             : parts[count - 1]->closed ? "whole"
                                        : "without an index: cut off, or still being written");
    if (has_stopped(parts[count - 1])) {
        put_line(writer, "recording ended", "before the program did; its last mark says why");
    }
}

static int put_recording(const struct writer *writer, const struct recording *const *parts,
                         size_t count, const struct recording_sum *sum) {
    const struct recording *last = parts[count - 1];
    put_text(writer, "recording", "path", parts[0]->path);
    put_bytes(writer, "size", "bytes", sum->bytes);
    if (writer->json != NULL || count > 1) {
        put_count(writer, "parts", "parts", count);
    }
    put_wholeness(writer, parts, count, sum);
    if (put_program(writer, &last->program, sum->last_ns) != 0) {
        return -1;
    }
    put_traits(writer, last);
    put_events(writer, sum);
    put_kinds(writer, "blocks", block_names, sum->kinds, BLOCK_KINDS);
    return 0;
}

static int open_writer(struct writer *writer, FILE *out, bool json) {
    *writer = (struct writer){.out = out};
    if (json) {
        writer->json = jsonwriter_open(out, JSONWRITER_INDENTED);
        if (writer->json == NULL) {
            return -1;
        }
        jsonwriter_map(writer->json, NULL);
    }
    return 0;
}

static void close_writer(struct writer *writer) {
    if (writer->json != NULL) {
        jsonwriter_end_map(writer->json);
        jsonwriter_close(writer->json);
        fputc('\n', writer->out);
    }
}

int fileinfo_recording(FILE *out, const struct recording *const *parts, size_t count, bool json) {
    struct recording_sum *sum = calloc(1, sizeof *sum);
    struct writer writer;
    int result;
    if (sum == NULL || open_writer(&writer, out, json) != 0) {
        free(sum);
        return -1;
    }
    for (size_t part = 0; part < count; part++) {
        sum->bytes += parts[part]->size;
        sum->damaged += parts[part]->damaged_blocks;
        for (size_t i = 0; i < parts[part]->block_count; i++) {
            add_block(sum, &parts[part]->blocks[i].block);
        }
    }
    result = put_recording(&writer, parts, count, sum);
    close_writer(&writer);
    free(sum);
    return result;
}

/* ---- Profiles ---- */

static const char *const segment_names[] = {
    [0] = "unknown",
    [MEMTRACE_SEGMENT_TREE] = "tree",
    [MEMTRACE_SEGMENT_LEDGER] = "ledger",
    [MEMTRACE_SEGMENT_LIFETIMES] = "lifetimes",
    [MEMTRACE_SEGMENT_THREADS] = "threads",
    [MEMTRACE_SEGMENT_MODULES] = "modules",
    [MEMTRACE_SEGMENT_POOLS] = "pools",
    [MEMTRACE_SEGMENT_TIMELINE] = "timeline",
    [MEMTRACE_SEGMENT_FREES] = "frees",
    [MEMTRACE_SEGMENT_EVENTS] = "events",
    [MEMTRACE_SEGMENT_PROCESSES] = "processes",
    [MEMTRACE_SEGMENT_PATHS] = "paths",
    [MEMTRACE_SEGMENT_CELLS] = "cells",
    [MEMTRACE_SEGMENT_NODES] = "nodes",
    [MEMTRACE_SEGMENT_AREAS] = "areas",
};
enum { SEGMENT_KINDS = sizeof segment_names / sizeof segment_names[0] };

int fileinfo_profile(FILE *out, const struct profile *profile, bool json) {
    struct kind_sum kinds[SEGMENT_KINDS] = {{0}};
    struct writer writer;
    int result;
    if (open_writer(&writer, out, json) != 0) {
        return -1;
    }
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        struct kind_sum *kind = &kinds[segment->kind < SEGMENT_KINDS ? segment->kind : 0];
        kind->count++;
        kind->items += segment->item_count;
        kind->stored += segment->size;
        kind->raw += segment->size;
    }
    put_text(&writer, "profile", "path", profile->path);
    put_bytes(&writer, "size", "bytes", profile->size);
    if (json) {
        jsonwriter_string(writer.json, "damage",
                          profile->damage[0] != '\0' ? profile->damage : NULL);
    } else {
        put_line(&writer, "file", profile->damage[0] != '\0' ? profile->damage : "whole");
    }
    result = put_program(&writer, &profile->header, profile->header.clock_ns);
    put_count(&writer, "threads", "threads", profile->header.thread_count);
    put_count(&writer, "call paths", "contexts", profile->header.context_count);
    put_kinds(&writer, "segments", segment_names, kinds, SEGMENT_KINDS);
    close_writer(&writer);
    return result;
}

/* ---- Runs ---- */

/* Whose file it is: "cc1 (1300)", or how many processes it stands for. */
static void spell_owner(const struct run *run, const char *file, char *text, size_t size) {
    const struct run_process *owner = NULL;
    size_t count = 0;
    size_t light = 0;
    for (size_t i = 0; i < run->process_count; i++) {
        const struct run_process *process = &run->processes[i];
        if (process->file != NULL && strcmp(process->file, file) == 0) {
            owner = owner == NULL || !process->light ? process : owner;
            count += !process->light;
            light += process->light;
        }
    }
    if (owner == NULL) {
        snprintf(text, size, "part of another file, or not of this run");
    } else if (count > 1 || run_is_merged(file)) {
        struct number number;
        snprintf(text, size, "the sums of %s", number_items(&number, count, "small process"));
    } else {
        int length = snprintf(text, size, "%s (%" PRIu32 ")", run_name(owner), owner->pid);
        if (light != 0 && length > 0 && (size_t)length < size) {
            snprintf(text + length, size - (size_t)length, " and %zu forked children", light);
        }
    }
}

static int put_run_file(const struct writer *writer, const struct run *run, const char *file) {
    char *path = run_file_path(run, file);
    struct stat status = {0};
    char owner[300];
    char text[700];
    struct number bytes;
    if (path == NULL) {
        return -1;
    }
    if (stat(path, &status) != 0) {
        status.st_size = 0;
    }
    free(path);
    spell_owner(run, file, owner, sizeof owner);
    if (writer->json != NULL) {
        jsonwriter_map(writer->json, NULL);
        jsonwriter_string(writer->json, "file", file);
        jsonwriter_number(writer->json, "bytes", (uint64_t)status.st_size);
        jsonwriter_string(writer->json, "of", owner);
        jsonwriter_end_map(writer->json);
        return 0;
    }
    snprintf(text, sizeof text, "%-36s %10s  %s", file,
             number_bytes(&bytes, (uint64_t)status.st_size), owner);
    put_line(writer, "", text);
    return 0;
}

int fileinfo_run(FILE *out, const struct run *run, bool json) {
    struct writer writer;
    int result = 0;
    if (open_writer(&writer, out, json) != 0) {
        return -1;
    }
    put_text(&writer, "run", "path", run->path);
    put_text(&writer, RUN_SUMMARY, "summary",
             run->trouble[0] != '\0' ? run->trouble
             : run->has_summary      ? "whole"
                                     : "none: the run goes on, or was killed");
    put_count(&writer, "processes", "processes", run->process_count);
    put_duration(&writer, "duration", "duration_ns", run->duration_ns);
    put_count(&writer, "files", "file_count", run->file_count);
    if (json) {
        jsonwriter_array(writer.json, "files");
    }
    for (size_t i = 0; result == 0 && i < run->file_count; i++) {
        result = put_run_file(&writer, run, run->files[i]);
    }
    if (json) {
        jsonwriter_end_array(writer.json);
    }
    close_writer(&writer);
    return result;
}
