/* SPDX-License-Identifier: MIT */
/* info.c: `memtrace info`: what is in a file, by its headers alone: no event is looked at.
 * docs/info.md is its page. */
#include "analyze/base/job.h"
#include "analyze/read/block.h"
#include "analyze/read/profile.h"
#include "analyze/read/recording.h"
#include "analyze/read/run.h"
#include "analyze/report/reports.h"
#include "analyze/rows/facts.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "analyze/window/recordingtables.h"
#include "ask/memorylimit.h"
#include "ask/source.h"
#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { LABEL = 14, THREADS = 1 << MEMTRACE_THREAD_BITS };

/* Writes each fact once: as a line for people, or under its name in JSON. */
struct writer {
    struct jsonwriter *json; /* NULL: text */
};

static void info_put_line(const char *label, const char *text) {
    fprintf(stdout, "%-*s ", LABEL, label);
    put_safe(stdout, text);
    fputc('\n', stdout);
}

static void info_put_text(const struct writer *writer, const char *label, const char *name,
                          const char *text) {
    if (writer->json != NULL) {
        jsonwriter_string(writer->json, name, text);
    } else if (text[0] != '\0') {
        info_put_line(label, text);
    }
}

static void info_put_number(const struct writer *writer, const char *label, const char *name,
                            enum table_kind kind, uint64_t value) {
    const struct table_cell cell = {.is_known = true, .number = value, .kind = kind};
    struct number number;
    if (writer->json != NULL) {
        jsonwriter_number(writer->json, name, value);
    } else {
        info_put_line(label, tabletext_spell(&number, cell));
    }
}

/* What reports tell as well: its number is the headers' here. */
static void info_put_fact(const struct writer *writer, enum fact fact, uint64_t value) {
    const struct table_column *column = &rows_summary.columns[fact];
    info_put_number(writer, fact_label(fact), column->name, column->kind, value);
}

/* ---- The program ---- */

static const char *const states[] = {
    [MEMTRACE_STATE_RUNNING] = "running, or killed",
    [MEMTRACE_STATE_ENDED] = "ended",
    [MEMTRACE_STATE_EXECED] = "replaced itself (exec)",
    [MEMTRACE_STATE_COPIED] = "copied while running",
};

static const char *info_state_of(const struct memtrace_header *header) {
    if (header->state == MEMTRACE_STATE_ENDED && (header->flags & MEMTRACE_FLAG_LEFT) != 0) {
        return "detached";
    }
    return header->state < sizeof states / sizeof states[0] && states[header->state] != NULL
               ? states[header->state]
               : "unknown";
}

static void info_put_program(const struct writer *writer, const struct memtrace_header *header,
                             uint64_t last_ns) {
    time_t seconds = (time_t)(header->start_realtime_ns / UINT64_C(1000000000));
    struct tm when;
    char started[64];
    info_put_text(writer, fact_label(FACT_PROGRAM), "program", header->executable);
    info_put_text(writer, "command", "command",
                  job_take(rows_join_arguments(arguments_of(header))));
    if (writer->json != NULL) {
        jsonwriter_number(writer->json, "pid", header->pid);
    } else {
        fprintf(stdout, "%-*s %" PRIu32 "\n", LABEL, fact_label(FACT_PID), header->pid);
    }
    if (header->merged > 1) {
        info_put_fact(writer, FACT_MERGED, header->merged);
    }
    if (gmtime_r(&seconds, &when) != NULL &&
        strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &when) != 0) {
        info_put_text(writer, "started", "started", started);
    }
    if (header->end_monotonic_ns > header->start_monotonic_ns) {
        last_ns = header->end_monotonic_ns - header->start_monotonic_ns;
    }
    info_put_fact(writer, FACT_DURATION, last_ns);
    info_put_text(writer, "state", "state", info_state_of(header));
}

/* ---- Kinds of blocks and segments ---- */

struct kind_sum {
    uint64_t count;
    uint64_t items;
    uint64_t stored; /* bytes in the file, headers included */
    uint64_t raw;
};

static void info_put_kinds(const struct writer *writer, const char *name, const char *title,
                           const char *const *names, const struct kind_sum *sums, size_t count) {
    static const struct table_column columns[] = {
        {"kind", "kind", TABLE_TEXT, 10},           {"count", "count", TABLE_COUNT, 10},
        {"items", "items", TABLE_COUNT, 14},        {"stored_bytes", "in file", TABLE_BYTES, 12},
        {"raw_bytes", "unpacked", TABLE_BYTES, 12},
    };
    const struct report report = {.out = stdout};
    struct table table = table_begin_member(&report, writer->json, name, title, columns, 5);
    for (size_t i = 0; i < count; i++) {
        if (sums[i].count != 0) {
            table_row(&table, (struct table_cell[]){
                                  table_text(names[i]), table_number(sums[i].count),
                                  table_number(sums[i].items), table_number(sums[i].stored),
                                  table_number(sums[i].raw)});
        }
    }
    table_end_member(&table);
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
    [MEMTRACE_BLOCK_SLICES] = "slices",
    [MEMTRACE_BLOCK_SEGMENTS] = "unknown",
    [MEMTRACE_BLOCK_SENT] = "sent",
    [MEMTRACE_BLOCK_GAP] = "gaps",
    [MEMTRACE_BLOCK_TOTALS] = "totals",
    [MEMTRACE_BLOCK_THINNED] = "thinned",
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

static void info_add_block(struct recording_sum *sum, const struct memtrace_block_header *block) {
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

static void info_put_traits(const struct writer *writer, const struct recording *last) {
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
    info_put_line("recorded with", text);
}

static void info_put_events(const struct writer *writer, const struct recording_sum *sum) {
    uint64_t events = sum->kinds[MEMTRACE_BLOCK_EVENTS].items;
    info_put_fact(writer, FACT_EVENTS, events);
    info_put_fact(writer, FACT_ALLOCATIONS, sum->allocs);
    info_put_fact(writer, FACT_FREES, sum->frees);
    info_put_fact(writer, FACT_THREADS, sum->threads);
    info_put_fact(writer, FACT_CONTEXTS, sum->kinds[MEMTRACE_BLOCK_NODES].items);
    if (events != 0 && writer->json == NULL) {
        char text[40];
        snprintf(text, sizeof text, "%.2f bytes",
                 (double)sum->kinds[MEMTRACE_BLOCK_EVENTS].stored / (double)events);
        info_put_line("an event takes", text);
    }
}

/* As the program's header said last. */
static bool info_has_stopped(const struct recording *recording) {
    struct memtrace_recording told;
    memcpy(&told, recording->program.recording, sizeof told);
    return told.state == MEMTRACE_RECORD_STOPPED;
}

static void info_put_wholeness(const struct writer *writer, const struct recording *const *parts,
                               size_t count, const struct recording_sum *sum) {
    const char *damage = "";
    for (size_t i = count; i-- > 0;) {
        damage = parts[i]->damage[0] != '\0' ? parts[i]->damage : damage;
    }
    if (writer->json != NULL) {
        jsonwriter_bool(writer->json, "closed", parts[count - 1]->closed);
        jsonwriter_bool(writer->json, "stopped", info_has_stopped(parts[count - 1]));
        jsonwriter_number(writer->json, "damaged_blocks", sum->damaged);
        jsonwriter_string(writer->json, "damage", damage[0] != '\0' ? damage : NULL);
        return;
    }
    info_put_line("file", damage[0] != '\0' ? damage
                          : parts[count - 1]->closed
                              ? "whole"
                              : "without an index: cut off, or still being written");
    if (info_has_stopped(parts[count - 1])) {
        info_put_line("recording ended", "before the program did; its last mark says why");
    }
}

/* When events were lost (MEMTRACE_BLOCK_GAP), or left out since too many came (_THINNED). */
static void info_put_gaps(const struct writer *writer, const struct recording *const *parts,
                          size_t count, enum memtrace_block_kind kind) {
    bool are_lost = kind == MEMTRACE_BLOCK_GAP;
    size_t gap_count;
    const struct model_gap *gaps =
        recorded_gaps((struct timeorder_parts){parts, count}, kind, &gap_count);
    if (writer->json != NULL) {
        report_json_gaps(writer->json, !are_lost, gaps, gap_count);
    }
    for (size_t i = 0; writer->json == NULL && i < gap_count; i++) {
        char text[120];
        struct number bytes;
        int length = snprintf(text, sizeof text, "%.3f s to %.3f s", (double)gaps[i].from_ns / 1e9,
                              (double)gaps[i].to_ns / 1e9);
        if (!are_lost) {
            snprintf(text + length, sizeof text - (size_t)length, ": one allocation in up to %s",
                     number_bytes(&bytes, gaps[i].distance));
        }
        info_put_line(are_lost ? "events missing" : "thinned", text);
    }
}

static struct writer info_writer_begin(bool json) {
    struct writer writer = {.json = json ? jsonwriter_begin(stdout, JSONWRITER_INDENTED) : NULL};
    if (json) {
        jsonwriter_map(writer.json, NULL);
    }
    return writer;
}

static void info_writer_end(const struct writer *writer) {
    if (writer->json != NULL) {
        jsonwriter_end_map(writer->json);
        putchar('\n');
    }
}

static void info_tell_parts(const struct recording *const *parts, size_t count, bool json) {
    const struct writer writer = info_writer_begin(json);
    const struct recording *last = parts[count - 1];
    struct recording_sum *sum = job_alloc(sizeof *sum);
    for (size_t part = 0; part < count; part++) {
        sum->bytes += parts[part]->size;
        sum->damaged += parts[part]->damaged_blocks;
        for (size_t i = 0; i < parts[part]->block_count; i++) {
            info_add_block(sum, &parts[part]->blocks[i].block);
        }
    }
    info_put_text(&writer, "recording", "path", parts[0]->path);
    info_put_number(&writer, "size", "bytes", TABLE_BYTES, sum->bytes);
    if (json || count > 1) {
        info_put_number(&writer, "parts", "parts", TABLE_COUNT, count);
    }
    info_put_wholeness(&writer, parts, count, sum);
    info_put_program(&writer, &last->program, sum->last_ns);
    info_put_traits(&writer, last);
    info_put_events(&writer, sum);
    info_put_gaps(&writer, parts, count, MEMTRACE_BLOCK_GAP);
    info_put_gaps(&writer, parts, count, MEMTRACE_BLOCK_THINNED);
    info_put_kinds(&writer, "blocks", "Blocks", block_names, sum->kinds, BLOCK_KINDS);
    info_writer_end(&writer);
}

static void info_end_source(void *source) {
    source_close(source);
}

static void info_tell_recording(const char *name, bool json) {
    struct source *source = job_alloc(sizeof *source);
    struct error error = {""};
    job_check(source_open_parts(source, name, &error), &error);
    job_undo(info_end_source, source);
    info_tell_parts(source->parts.items, source->parts.count, json);
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
    [MEMTRACE_SEGMENT_POOL_ROOM] = "pool room",
};
enum { SEGMENT_KINDS = sizeof segment_names / sizeof segment_names[0] };

static void info_tell_profile(const char *name, bool json) {
    struct error error = {""};
    struct profile *profile = profile_open(name, &error);
    struct kind_sum kinds[SEGMENT_KINDS] = {{0}};
    struct writer writer;
    job_check(profile != NULL ? 0 : -1, &error);
    profile_goes_with_job(profile);
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        struct kind_sum *kind = &kinds[segment->kind < SEGMENT_KINDS ? segment->kind : 0];
        kind->count++;
        kind->items += segment->item_count;
        kind->stored += segment->size;
        kind->raw += segment->size;
    }
    writer = info_writer_begin(json);
    info_put_text(&writer, "profile", "path", profile->path);
    info_put_number(&writer, "size", "bytes", TABLE_BYTES, profile->size);
    if (json) {
        jsonwriter_string(writer.json, "damage",
                          profile->damage[0] != '\0' ? profile->damage : NULL);
    } else {
        info_put_line("file", profile->damage[0] != '\0' ? profile->damage : "whole");
    }
    info_put_program(&writer, &profile->header, profile->header.clock_ns);
    info_put_fact(&writer, FACT_THREADS, profile->header.thread_count);
    info_put_fact(&writer, FACT_CONTEXTS, profile->header.context_count);
    info_put_kinds(&writer, "segments", "Segments", segment_names, kinds, SEGMENT_KINDS);
    info_writer_end(&writer);
}

/* ---- Runs ---- */

/* Whose file it is: "cc1 (1300)", or how many processes it stands for. */
static void info_spell_owner(const struct run *run, const char *file, char *text, size_t size) {
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

static void info_end_run(void *run) {
    run_close(run);
}

static void info_tell_run(const char *name, bool json) {
    static const struct table_column columns[] = {
        {"file", "file", TABLE_TEXT, 36},
        {"bytes", "size", TABLE_BYTES, 0},
        {"of", "of", TABLE_TEXT, 0},
    };
    const struct report report = {.out = stdout};
    struct error error = {""};
    struct run *run = run_open(name, &error);
    struct writer writer;
    struct table table;
    job_check(run != NULL ? 0 : -1, &error);
    job_undo(info_end_run, run);
    writer = info_writer_begin(json);
    info_put_text(&writer, "run", "path", run->path);
    info_put_text(&writer, RUN_SUMMARY, "summary",
                  run->trouble[0] != '\0' ? run->trouble
                  : run->has_summary      ? "whole"
                                          : "none: the run goes on, or was killed");
    info_put_number(&writer, "processes", "processes", TABLE_COUNT, run->process_count);
    info_put_number(&writer, "duration", "duration_ns", TABLE_DURATION, run->duration_ns);
    info_put_number(&writer, "files", "file_count", TABLE_COUNT, run->file_count);
    table = table_begin_member(&report, writer.json, "files", "Files", columns, 3);
    for (size_t i = 0; i < run->file_count; i++) {
        const char *path = job_take(run_file_path(run, run->files[i]));
        struct stat status = {0};
        char owner[300];
        if (stat(path, &status) != 0) {
            status.st_size = 0;
        }
        info_spell_owner(run, run->files[i], owner, sizeof owner);
        table_row(&table,
                  (struct table_cell[]){table_text(run->files[i]),
                                        table_number((uint64_t)status.st_size), table_text(owner)});
    }
    table_end_member(&table);
    info_writer_end(&writer);
}

/* ---- The command ---- */

struct request {
    bool json;
};

static const struct option options[] = {{"json", 'j', NULL, "one JSON object for each file",
                                         OPTION_FLAG, OPTION_IN(struct request, json)},
                                        {.part = memorylimit_options},
                                        OPTION_END};

/* A file that cannot be told of does not keep others from it: each is a job. */
struct telling {
    const char *name;
    bool json;
};

static void info_tell(void *what) {
    const struct telling *telling = what;
    (run_is(telling->name)         ? info_tell_run
     : recording_is(telling->name) ? info_tell_recording
                                   : info_tell_profile)(telling->name, telling->json);
}

static int run_info(int argc, char **argv) {
    struct request request = {0};
    int status = CLI_OK;
    cli_read(&info_command, &argc, &argv, &request);
    if (argc == 0) {
        cli_usage("info", "a file is needed");
    }
    for (int i = 0; i < argc; i++) {
        struct telling telling = {argv[i], request.json};
        struct error error;
        if (job_run(info_tell, &telling, NULL, &error) != 0) {
            status = cli_error("%s", error.message);
        }
        if (i + 1 < argc && !request.json) {
            putchar('\n');
        }
    }
    return cli_finish(status);
}

const struct command info_command = {
    .name = "info",
    .run = run_info,
    .summary = "show what is in a profile or recording",
    .usage = "[--json] FILE|RUN...",
    .about = "Shows what is in a profile (*.mtp) or a recording (*.mtr): of which "
             "program, from when, how many events, what takes the space, whether it is "
             "complete. Events are not read. Of a run of several processes (a folder): "
             "which files are in it, and whose.",
    .options = options,
    .operands = "PROFILE",
};
