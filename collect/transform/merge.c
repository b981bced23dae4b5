/* SPDX-License-Identifier: MIT */
/*
 * merge.c: one recording of several. See merge.h.
 *
 * Each process is replayed once, so that its tables become part of those of all (mergetables.h);
 * then all of them go through the transform, with a step that gives each id its new number.
 */
#include "collect/transform/merge.h"

#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/window/wholemodel.h"
#include "collect/mergetables.h"

#include <string.h>

enum {
    PROCESS_SHIFT = 48, /* mappings of two processes may have the same address: that of process n
                           is n << 48 higher here, where none can be */
};

struct process {
    struct mergesource source;
    uint64_t end_ns; /* in the new file's time: its latest event */
    bool has_files;  /* program files, or their symbols, are in its recording */
};

/* A sample of one process; of its last one a second one follows, all zero: it has ended. */
struct moment {
    struct memtrace_sample sample;
    size_t process;
};

struct merge {
    const struct recording *const *files;
    size_t file_count;
    const char *path;
    const struct transform_options *options;
    struct merge_result *result;
    struct timeorder_parts *inputs; /* processes in the order of their starts, whatever that of the
                                       files */
    size_t count;
    struct process *processes; /* as many */
    struct mergetables tables;
    struct model *model;     /* of the process that is added to the tables */
    struct framenames names; /* of the one whose names are written */
    uint64_t start_ns;       /* CLOCK_REALTIME: when the first of them started */
    bool is_incomplete;      /* not all of one of them could be read */
    size_t current;          /* whose events or tables pass */
    uint32_t stream_base;    /* added to its streams */
    uint32_t stream_most;    /* of those that passed so far */
    struct moment *moments;
    size_t moment_count;
    size_t moment_room;
};

/* ---- Which files belong together ---- */

static bool merge_is_process(const struct recording *a, const struct recording *b) {
    return a->header.pid == b->header.pid &&
           a->header.process_start_ticks == b->header.process_start_ticks &&
           a->program.start_realtime_ns == b->program.start_realtime_ns;
}

static int merge_compare_parts(const void *left, const void *right) {
    const struct recording *a = *(const struct recording *const *)left;
    const struct recording *b = *(const struct recording *const *)right;
    return (a->header.part > b->header.part) - (a->header.part < b->header.part);
}

/* All files of the process of files[first], by their parts; a part that is there twice counts once.
 * Returns how many. */
static size_t merge_take_process(const struct merge *merge, size_t first, bool *taken,
                                 const struct recording **parts) {
    size_t found = 0;
    size_t kept = 0;
    for (size_t i = first; i < merge->file_count; i++) {
        if (!taken[i] && merge_is_process(merge->files[i], merge->files[first])) {
            taken[i] = true;
            parts[found++] = merge->files[i];
        }
    }
    array_sort(parts, found, sizeof *parts, merge_compare_parts);
    for (size_t i = 0; i < found; i++) {
        if (kept == 0 || parts[kept - 1]->header.part != parts[i]->header.part) {
            parts[kept++] = parts[i];
        }
    }
    return kept;
}

static const struct memtrace_header *merge_program(const struct timeorder_parts *parts) {
    return &parts->items[parts->count - 1]->program;
}

static int merge_compare_processes(const void *left, const void *right) {
    const struct memtrace_header *a = merge_program(left);
    const struct memtrace_header *b = merge_program(right);
    if (a->start_realtime_ns != b->start_realtime_ns) {
        return a->start_realtime_ns < b->start_realtime_ns ? -1 : 1;
    }
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static void merge_find_processes(struct merge *merge) {
    bool *taken = job_array(merge->file_count, sizeof *taken);
    const struct recording **parts = job_array(merge->file_count, sizeof(void *));
    merge->inputs = job_array(merge->file_count, sizeof *merge->inputs);
    for (size_t i = 0; i < merge->file_count; i++) {
        if (!taken[i]) {
            struct timeorder_parts *process = &merge->inputs[merge->count++];
            process->items = parts;
            process->count = merge_take_process(merge, i, taken, parts);
            parts += process->count;
        }
    }
    array_sort(merge->inputs, merge->count, sizeof *merge->inputs, merge_compare_processes);
    merge->processes = job_array(merge->count, sizeof *merge->processes);
}

/* Sums of samples with another distance, or of other sizes, tell nothing. */
static void merge_check_alike(const struct merge *merge) {
    struct memtrace_recording first;
    memcpy(&first, merge_program(&merge->inputs[0])->recording, sizeof first);
    for (size_t i = 1; i < merge->count; i++) {
        struct memtrace_recording other;
        memcpy(&other, merge_program(&merge->inputs[i])->recording, sizeof other);
        if (other.sample_bytes != first.sample_bytes || other.size_least != first.size_least ||
            other.size_most != first.size_most) {
            job_fail("%.200s and %.200s cannot be added up: other allocations were recorded "
                     "(--sample, --sizes)",
                     merge->inputs[0].items[0]->path, merge->inputs[i].items[0]->path);
        }
    }
}

/* ---- One table of all ---- */

/* Sorted as they are, the first process is the one that started first. */
static void merge_add_tables(struct merge *merge) {
    struct error error;
    merge->start_ns = merge_program(&merge->inputs[0])->start_realtime_ns;
    for (size_t i = 0; i < merge->count; i++) {
        struct process *process = &merge->processes[i];
        uint64_t shift_ns = merge_program(&merge->inputs[i])->start_realtime_ns - merge->start_ns;
        merge->model = model_replay(merge->inputs[i], NULL, &error);
        job_check(merge->model != NULL ? 0 : -1, &error);
        mergetables_add(&merge->tables, merge->model, shift_ns, &process->source);
        process->end_ns = shift_ns + merge->model->now_ns;
        merge->is_incomplete |= merge->model->damage[0] != '\0';
        model_free(merge->model);
        merge->model = NULL;
    }
}

/* ---- The step: what stands before the events ---- */

/* What holds for all of them. */
static void merge_header(void *context, struct memtrace_recording_header *header) {
    const struct merge *merge = context;
    const uint32_t for_all = MEMTRACE_RECORDING_PRECISE | MEMTRACE_RECORDING_FREE_STACKS;
    uint32_t common = for_all;
    uint32_t any = 0;
    for (size_t i = 0; i < merge->count; i++) {
        common &= merge->inputs[i].items[0]->header.flags;
        any |= merge->inputs[i].items[0]->header.flags;
    }
    header->part = 0;
    header->flags = common | (any & ~for_all);
}

/* The first process's program, with the sums of all. */
static void merge_write_program(const struct merge *merge, struct recordwriter *writer) {
    struct memtrace_header header = *merge_program(&merge->inputs[0]);
    struct memtrace_recording recorded;
    uint64_t end_ns = merge->processes[0].end_ns;
    memcpy(&recorded, header.recording, sizeof recorded);
    mergetables_begin_header(&header);
    for (size_t i = 1; i < merge->count; i++) {
        const struct memtrace_header *other = merge_program(&merge->inputs[i]);
        struct memtrace_recording more;
        memcpy(&more, other->recording, sizeof more);
        recorded.lost_allocs += more.lost_allocs;
        recorded.lost_frees += more.lost_frees;
        mergetables_add_header(&header, other);
        end_ns = merge->processes[i].end_ns > end_ns ? merge->processes[i].end_ns : end_ns;
    }
    memcpy(header.recording, &recorded, sizeof recorded);
    header.end_monotonic_ns = header.end_monotonic_ns != 0 ? header.start_monotonic_ns + end_ns : 0;
    header.clock_ns = end_ns;
    mergetables_count(&merge->tables, &header);
    recordwriter_table(writer, MEMTRACE_BLOCK_PROGRAM, &header, 1, sizeof header);
}

/* Not all ids are in use: see mergetables.c. */
static void merge_write_tables(void *context, struct recordwriter *writer) {
    const struct merge *merge = context;
    const struct mergetables *tables = &merge->tables;
    writer->is_incomplete |= merge->is_incomplete;
    merge_write_program(merge, writer);
    for (size_t i = 0; i < tables->node_count; i++) {
        if (tables->nodes[i].frame != 0) {
            recordwriter_node(writer, &tables->nodes[i]);
        }
    }
    recordwriter_table(writer, MEMTRACE_BLOCK_MODULES, tables->modules + 1,
                       tables->module_count > 1 ? tables->module_count - 1 : 0,
                       sizeof *tables->modules);
    recordwriter_table(writer, MEMTRACE_BLOCK_POOLS, tables->pools, tables->pool_count,
                       sizeof *tables->pools);
}

/* ---- The step: events ---- */

static void merge_begin_process(void *context, size_t input) {
    struct merge *merge = context;
    merge->current = input;
    merge->stream_base = merge->stream_most;
}

static uint32_t merge_thread(struct merge *merge, uint32_t thread) {
    return mergesource_thread(&merge->processes[merge->current].source, &merge->tables, thread);
}

static void merge_number_stream(void *context, struct memtrace_block_header *block) {
    struct merge *merge = context;
    block->stream += merge->stream_base;
    block->thread = merge_thread(merge, block->thread);
    merge->stream_most = block->stream > merge->stream_most ? block->stream : merge->stream_most;
}

/* Whether the block's thread found a place. */
static bool merge_number_block(struct merge *merge, struct event_block *block) {
    block->thread = block->number != 0 ? merge_thread(merge, block->thread) : block->thread;
    return block->number == 0 || block->thread != 0;
}

/* An event of a thread that found no place is left out. */
static bool merge_number_event(void *context, const struct memtrace_block_header *stream,
                               struct event *event) {
    struct merge *merge = context;
    const struct mergesource *source = &merge->processes[merge->current].source;
    uint64_t space = (uint64_t)merge->current << PROCESS_SHIFT;
    (void)stream;
    event->context = mergesource_context(source, event->context);
    event->time_ns += source->shift_ns;
    if (event->kind == EVENT_MAP) {
        event->address += space;
        event->old_address += event->old_address != 0 ? space : 0;
    }
    return merge_number_block(merge, &event->block) &&
           (event->kind != EVENT_ALLOC || merge_number_block(merge, &event->old));
}

/* ---- The step: tables of each process ---- */

static bool merge_number_culled(struct merge *merge, const struct transform_payload *payload) {
    struct memtrace_culled *culled = (struct memtrace_culled *)(void *)payload->bytes;
    if (payload->size / sizeof *culled < payload->items) {
        return false;
    }
    for (size_t i = 0; i < payload->items; i++) {
        culled[i].context =
            mergesource_context(&merge->processes[merge->current].source, culled[i].context);
        culled[i].thread = merge_thread(merge, culled[i].thread);
    }
    return true;
}

/* Whether an earlier process has this file, too. */
static bool merge_has_earlier(const struct merge *merge, const struct memtrace_embedded *file,
                              const char *path) {
    for (size_t earlier = 0; earlier < merge->current; earlier++) {
        const struct process *process = &merge->processes[earlier];
        for (size_t i = 0; process->has_files && i < process->source.module_count; i++) {
            uint32_t id = process->source.modules[i];
            const struct memtrace_module *module = &merge->tables.modules[id];
            if (id != 0 && module->build_id_size == file->build_id_size &&
                (file->build_id_size != 0
                     ? memcmp(module->build_id, file->build_id, file->build_id_size) == 0
                     : strncmp(module->path, path, file->path_size) == 0)) {
                return true;
            }
        }
    }
    return false;
}

static bool merge_number_file(struct merge *merge, const struct transform_payload *payload) {
    struct process *process = &merge->processes[merge->current];
    struct memtrace_embedded head;
    if (payload->size < sizeof head) {
        return false;
    }
    memcpy(&head, payload->bytes, sizeof head);
    if (head.path_size > payload->size - sizeof head) {
        return false;
    }
    process->has_files = true;
    if (head.build_id_size > sizeof head.build_id ||
        merge_has_earlier(merge, &head, (const char *)payload->bytes + sizeof head)) {
        return false;
    }
    head.module =
        head.module < process->source.module_count ? process->source.modules[head.module] : 0;
    memcpy(payload->bytes, &head, sizeof head);
    return true;
}

static void merge_add_moment(struct merge *merge, const struct memtrace_sample *sample,
                             size_t process) {
    job_grow(&merge->moments, &merge->moment_room, merge->moment_count, sizeof *merge->moments);
    merge->moments[merge->moment_count++] = (struct moment){*sample, process};
}

/* Samples are summed up at the end, in the place of these. */
static void merge_take_samples(struct merge *merge, const struct transform_payload *payload) {
    struct process *process = &merge->processes[merge->current];
    for (size_t at = 0; at + sizeof(struct memtrace_sample) <= payload->size;
         at += sizeof(struct memtrace_sample)) {
        struct memtrace_sample sample;
        memcpy(&sample, payload->bytes + at, sizeof sample);
        sample.time_ns += process->source.shift_ns;
        process->end_ns = sample.time_ns >= process->end_ns ? sample.time_ns + 1 : process->end_ns;
        merge_add_moment(merge, &sample, merge->current);
    }
}

/* When events of a process were lost, or left out since too many came: both begin with two times.
 */
static void merge_shift_gaps(const struct merge *merge, const struct transform_payload *payload) {
    MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_gap) == sizeof(struct memtrace_thinned),
                           "both are as large");
    uint64_t shift_ns = merge->processes[merge->current].source.shift_ns;
    for (size_t at = 0; at + sizeof(struct memtrace_gap) <= payload->size;
         at += sizeof(struct memtrace_gap)) {
        struct memtrace_gap gap;
        memcpy(&gap, payload->bytes + at, sizeof gap);
        gap.from_ns += shift_ns;
        gap.to_ns += shift_ns;
        memcpy(payload->bytes + at, &gap, sizeof gap);
    }
}

static bool merge_number_table(void *context, enum memtrace_block_kind kind,
                               struct transform_payload *payload) {
    switch (kind) {
    case MEMTRACE_BLOCK_CULLED:
        return merge_number_culled(context, payload);
    case MEMTRACE_BLOCK_FILE:
        return merge_number_file(context, payload);
    case MEMTRACE_BLOCK_GAP:
    case MEMTRACE_BLOCK_THINNED:
        merge_shift_gaps(context, payload);
        return true;
    case MEMTRACE_BLOCK_SAMPLES:
        merge_take_samples(context, payload);
        return false;
    default: /* of all processes, or left out */
        return false;
    }
}

/* ---- The step: what all used together ---- */

static int merge_compare_moments(const void *left, const void *right) {
    const struct moment *a = left;
    const struct moment *b = right;
    if (a->sample.time_ns != b->sample.time_ns) {
        return a->sample.time_ns < b->sample.time_ns ? -1 : 1;
    }
    return (a->process > b->process) - (a->process < b->process);
}

static struct memtrace_sample merge_sum(const struct memtrace_sample *latest, size_t count,
                                        uint64_t time_ns) {
    struct memtrace_sample sum = {.time_ns = time_ns};
    for (size_t i = 0; i < count; i++) {
        sum.resident_bytes += latest[i].resident_bytes;
        sum.swap_bytes += latest[i].swap_bytes;
        sum.virtual_bytes += latest[i].virtual_bytes;
        sum.live_bytes += latest[i].live_bytes;
        sum.cgroup_bytes =
            latest[i].cgroup_bytes > sum.cgroup_bytes ? latest[i].cgroup_bytes : sum.cgroup_bytes;
    }
    return sum;
}

/* At each moment of any process's the sum of the latest samples of all that still ran. Memory that
 * processes share is counted in each. */
static void merge_write_samples(struct merge *merge, struct recordwriter *writer) {
    struct memtrace_sample *latest = job_array(merge->count, sizeof *latest);
    size_t count = merge->moment_count;
    for (size_t i = 0; i < count; i++) {
        size_t process = merge->moments[i].process;
        const struct memtrace_sample ended = {.time_ns = merge->processes[process].end_ns};
        if (latest[process].time_ns == 0) { /* once for each: its samples end with its end */
            latest[process].time_ns = ended.time_ns;
            merge_add_moment(merge, &ended, process);
        }
    }
    array_sort(merge->moments, merge->moment_count, sizeof *merge->moments, merge_compare_moments);
    for (size_t i = 0; i < merge->moment_count; i++) {
        const struct moment *moment = &merge->moments[i];
        struct memtrace_sample sum;
        latest[moment->process] = moment->sample;
        sum = merge_sum(latest, merge->count, moment->sample.time_ns);
        recordwriter_sample(writer, &sum);
    }
}

/* What one process's frames are called. */
static void merge_write_names(struct merge *merge, size_t i, struct recordwriter *writer) {
    const struct timeorder_parts *parts = &merge->inputs[i];
    struct framenames *names = &merge->names;
    struct error error;
    job_check(framenames_read(names, parts->items, parts->count, &error), &error);
    for (size_t at = 0; at < names->count;) {
        uint64_t frame = names->items[at].frame;
        size_t first = at;
        for (; at < names->count && names->items[at].frame == frame; at++) {
            names->items[at].frame = mergesource_frame(&merge->processes[i].source, frame);
        }
        recordwriter_names(writer, names->items + first, at - first);
    }
    framenames_free(names);
}

static void merge_finish(void *context, struct recordwriter *writer) {
    struct merge *merge = context;
    merge_write_samples(merge, writer);
    for (size_t i = 0; i < merge->count; i++) {
        merge_write_names(merge, i, writer);
    }
    recordwriter_table(writer, MEMTRACE_BLOCK_THREADS, merge->tables.threads,
                       merge->tables.thread_count, sizeof *merge->tables.threads);
}

/* ---- The whole ---- */

static void merge_write(void *what) {
    struct merge *merge = what;
    struct transform_step step = {0};
    struct error error;
    merge_find_processes(merge);
    if (merge->count != 1) {
        step = (struct transform_step){.header = merge_header,
                                       .begin = merge_write_tables,
                                       .input = merge_begin_process,
                                       .stream = merge_number_stream,
                                       .event = merge_number_event,
                                       .table = merge_number_table,
                                       .finish = merge_finish,
                                       .context = merge};
        merge_check_alike(merge);
        merge_add_tables(merge);
    }
    job_check(transform_run(merge->inputs, merge->count, merge->path, &step, merge->options,
                            &merge->result->written, &error),
              &error);
    merge->result->processes = merge->count;
    for (size_t i = 0; i < merge->count; i++) {
        merge->result->files += merge->inputs[i].count;
    }
}

int merge_recordings(const struct recording *const *recordings, size_t count, const char *path,
                     const struct transform_options *options, struct merge_result *result,
                     struct error *error) {
    struct merge merge = {.files = recordings,
                          .file_count = count,
                          .path = path,
                          .options = options,
                          .result = result};
    int status;
    *result = (struct merge_result){0};
    status = job_run(merge_write, &merge, NULL, error);
    model_free(merge.model);
    framenames_free(&merge.names);
    return status;
}
