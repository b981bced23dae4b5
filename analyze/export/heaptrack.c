/* SPDX-License-Identifier: MIT */
/*
 * heaptrack.c: a heaptrack data file, in which every block begins and ends as in the recording.
 *
 * heaptrack calls a block temporary if its end is the very next line behind its beginning; here it
 * is one that its thread freed before the thread's next allocation. So that heaptrack's readers
 * count what memtrace counts, the beginning of each thread's newest block is held back until it is
 * known which of the two it is. That lowers what the file holds for a moment, so all that is held
 * back is written where the maximum is reached: the readers find the same maximum, and the same
 * blocks in it.
 *
 * What is told once (texts, places, call paths, sizes) is written when it is first needed. Memory
 * grows with contexts and distinct sizes, the latter up to a bound.
 *
 * What heaptrack's readers call temporary: a line '-' directly behind the line '+' of the same size
 * and call path, or a '-' of number 0 behind another '-'. Number 0 is here a size of 0 bytes that
 * never begins, so that its end changes no sum but that: it stands in front of an end that would
 * count as temporary by chance, and behind one that counts as such but does not follow its
 * beginning; then the file's first call path gets that one.
 */
#include "analyze/base/job.h"
#include "analyze/export/packedout.h"
#include "analyze/export/shared.h"
#include "analyze/read/packedin.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    VERSION = 0x10400, /* the heaptrack whose readers are meant */
    FILE_VERSION = 3,
    PAGE_SIZE = 4096,
    DIGITS = 16,
    INFOS_MOST = 1 << 20, /* remembered at a time */
};
#define NS_PER_MS UINT64_C(1000000)

struct text {
    FILE *out;
    const struct model *model;
    const struct names *names;
    struct numbering texts;
    struct numbering places; /* by frame */
    struct numbering infos;  /* by size and call path; number 0 is the block of no bytes */
    uint64_t *traces;        /* by node: number of its call path; 0: none yet */
    uint64_t trace_count;
    uint64_t last; /* number of the info that was allocated last; 0: a free came since */
    uint64_t time_ms;
    size_t point; /* of the model's timeline: the next one to write */
};

/* ---- Lines ---- */

static void heaptrack_put_number(FILE *out, uint64_t number) {
    char digits[DIGITS];
    size_t count = 0;
    do {
        digits[DIGITS - ++count] = "0123456789abcdef"[number & 15];
        number >>= 4;
    } while (number != 0);
    putc_unlocked(' ', out);
    for (; count != 0; count--) {
        putc_unlocked(digits[DIGITS - count], out);
    }
}

static void heaptrack_put_line(FILE *out, char kind, const uint64_t *numbers, size_t count) {
    putc_unlocked(kind, out);
    for (size_t i = 0; i < count; i++) {
        heaptrack_put_number(out, numbers[i]);
    }
    putc_unlocked('\n', out);
}

/* ---- What is told once ---- */

/* NULL and "": 0. Lines end at line ends, whatever the length before a text says. */
static uint64_t heaptrack_text(struct text *text, const char *bytes) {
    size_t size = bytes != NULL ? strlen(bytes) : 0;
    uint64_t number;
    bool is_new;
    if (size == 0) {
        return 0;
    }
    number = numbering_of(&text->texts, numbering_key(bytes), &is_new);
    if (is_new) {
        fputs("s", text->out);
        heaptrack_put_number(text->out, size);
        putc_unlocked(' ', text->out);
        for (size_t i = 0; i < size; i++) {
            putc_unlocked(bytes[i] == '\n' || bytes[i] == '\r' ? '?' : bytes[i], text->out);
        }
        putc_unlocked('\n', text->out);
    }
    return number;
}

/* Address and module, then function, file and line of each frame, innermost function first. Readers
 * look a place up as it is written, so it is that of the call, not behind it. */
static uint64_t heaptrack_place(struct text *text, uint64_t recorded) {
    struct model_place place = model_place(text->model, recorded);
    const struct names_frame *frames;
    uint64_t *numbers;
    uint64_t number;
    size_t count;
    bool is_new;
    number = numbering_of(&text->places, recorded, &is_new);
    if (!is_new) {
        return number;
    }
    frames = names_frames(text->names, recorded, &count);
    if (count == 1 && frames->function == NULL && frames->file == NULL) {
        count = 0; /* the readers show module and address */
    }
    numbers = job_array(2 + count * 3, sizeof *numbers);
    for (size_t i = 0; i < count; i++) {
        uint64_t *frame = numbers + 2 + i * 3;
        frame[0] = heaptrack_text(text, frames[i].function);
        frame[1] = heaptrack_text(text, frames[i].file);
        frame[2] = frames[i].line;
    }
    numbers[0] = place.called;
    numbers[1] = heaptrack_text(text, frames->module);
    heaptrack_put_line(text->out, 'i', numbers, 2 + count * 3);
    job_release(numbers);
    return number;
}

/* The place of blocks whose call path was not taken. */
static uint64_t heaptrack_unknown_place(struct text *text) {
    uint64_t numbers[] = {0, 0, heaptrack_text(text, "(unknown)"), 0, 0};
    heaptrack_put_line(text->out, 'i', numbers, sizeof numbers / sizeof numbers[0]);
    return ++text->places.count;
}

static void heaptrack_put_trace(struct text *text, uint32_t node, uint32_t parent) {
    uint64_t place = node != 0 ? heaptrack_place(text, text->model->nodes[node].frame)
                               : heaptrack_unknown_place(text);
    uint64_t numbers[] = {place, node != 0 && parent != 0 ? text->traces[parent] : 0};
    heaptrack_put_line(text->out, 't', numbers, 2);
    text->traces[node] = ++text->trace_count;
}

/* Outermost first, as each names the one before. */
static uint64_t heaptrack_trace_number(struct text *text, uint32_t context) {
    const struct model_node *nodes = text->model->nodes;
    uint32_t node = nodes[context].frame < MEMTRACE_FRAME_CLASSES ? nodes[context].parent : context;
    size_t depth = 0;
    uint32_t *path;
    if (text->traces[node] != 0) {
        return text->traces[node];
    }
    for (uint32_t at = node; at != 0 && text->traces[at] == 0; at = nodes[at].parent) {
        depth++;
    }
    path = job_array(depth + 1, sizeof *path);
    path[0] = node; /* 0: no call path */
    for (size_t i = 1; i < depth; i++) {
        path[i] = nodes[path[i - 1]].parent;
    }
    for (size_t i = depth != 0 ? depth : 1; i > 0; i--) {
        heaptrack_put_trace(text, path[i - 1], nodes[path[i - 1]].parent);
    }
    job_release(path);
    return text->traces[node];
}

/* Which pair of size and call path. The table is emptied now and then, because there may be as many
 * sizes as events: a pair that comes again then has a second number, which readers do not mind. */
static uint64_t heaptrack_info_number(struct text *text, uint32_t context, uint64_t size) {
    uint64_t trace = heaptrack_trace_number(text, context);
    uint64_t pair[] = {size, trace};
    const uint64_t none[] = {0, trace};
    uint64_t number;
    bool is_new;
    if (text->infos.numbers.used >= INFOS_MOST) {
        numbering_forget(&text->infos);
    }
    if (text->infos.count == 0) {
        heaptrack_put_line(text->out, 'a', none, 2); /* number 0 */
    }
    number = numbering_of(&text->infos, XXH3_64bits(pair, sizeof pair), &is_new);
    if (is_new) {
        heaptrack_put_line(text->out, 'a', pair, 2);
    }
    return number;
}

/* ---- Lines of events ---- */

/* The time of what follows, and the resident memory that was measured up to then. */
static void heaptrack_put_time(struct text *text, uint64_t time_ns) {
    const struct model *model = text->model;
    uint64_t time_ms = time_ns / NS_PER_MS;
    for (; text->point < model->timeline_count && model->timeline[text->point].time_ns <= time_ns;
         text->point++) {
        uint64_t pages = model->timeline[text->point].resident_bytes / PAGE_SIZE;
        if (pages != 0) {
            heaptrack_put_line(text->out, 'R', &pages, 1);
        }
    }
    if (time_ms > text->time_ms) {
        text->time_ms = time_ms;
        heaptrack_put_line(text->out, 'c', &time_ms, 1);
    }
}

static void heaptrack_put_alloc(struct text *text, uint32_t context, uint64_t size) {
    uint64_t info = heaptrack_info_number(text, context, size);
    heaptrack_put_line(text->out, '+', &info, 1);
    text->last = info;
}

static void heaptrack_put_free(struct text *text, uint32_t context, uint64_t size, bool temporary) {
    static const uint64_t nothing = 0;
    uint64_t info = heaptrack_info_number(text, context, size);
    bool is_last = text->last == info;
    if (!temporary && is_last) {
        heaptrack_put_line(text->out, '-', &nothing, 1);
    }
    heaptrack_put_line(text->out, '-', &info, 1);
    if (temporary && !is_last) {
        heaptrack_put_line(text->out, '-', &nothing, 1);
    }
    text->last = 0;
}

/* ---- Begin of the text ---- */

/* Writes what stands first: version, command, page size. */
static struct text heaptrack_start(const struct export *export, FILE *out) {
    static const uint64_t versions[] = {VERSION, FILE_VERSION};
    static const uint64_t system[] = {PAGE_SIZE, 0}; /* how much memory there was is not known */
    heaptrack_put_line(out, 'v', versions, 2);
    putc_unlocked('X', out);
    commandline_put(out, &export->model->header);
    putc_unlocked('\n', out);
    heaptrack_put_line(out, 'I', system, 2);
    if (export->model->damage[0] != '\0' || model_is_unfinished(export->model)) {
        fputs(PACKEDIN_INCOMPLETE "\n", out);
    }
    return (struct text){.out = out,
                         .model = export->model,
                         .names = export->names,
                         .traces = job_array(export->model->node_count + 1, sizeof(uint64_t))};
}

/* Blocks that were culled are made up from their sums, which take a few bytes for any number: at
 * most so many for each block that is in the recording, but always the least (120 MB of lines), and
 * never more than the most. */
enum { CULLED_FOR_EACH = 100, CULLED_LEAST = 10 * 1000 * 1000, CULLED_MOST = 200 * 1000 * 1000 };

/* A stream's newest block, not written yet. */
struct pending {
    bool is_set;
    struct event_block block;
    uint64_t order;
    uint64_t size;
    uint32_t context;
};

struct pass {
    struct text text;
    struct pending *pending; /* by stream */
    size_t stream_count;
    size_t stream_room;
    uint64_t live; /* as if nothing were held back */
    uint64_t maximum;
    bool reached;
};

/* ---- Each event ---- */

static void heaptrack_write_pending(struct pass *pass, struct pending *pending) {
    if (pending->is_set) {
        pending->is_set = false;
        heaptrack_put_alloc(&pass->text, pending->context, pending->size);
    }
}

static int heaptrack_by_order(const void *left, const void *right) {
    const struct pending *a = left;
    const struct pending *b = right;
    return (a->order > b->order) - (a->order < b->order);
}

/* In the order of their births; the array is then no longer by stream, but all are written. */
static void heaptrack_write_all_pending(struct pass *pass) {
    if (pass->stream_count != 0) {
        qsort(pass->pending, pass->stream_count, sizeof *pass->pending, heaptrack_by_order);
    }
    for (size_t i = 0; i < pass->stream_count; i++) {
        heaptrack_write_pending(pass, &pass->pending[i]);
    }
}

static struct pending *heaptrack_pending_of(struct pass *pass, uint32_t stream) {
    while (stream >= pass->stream_count) {
        job_grow(&pass->pending, &pass->stream_room, pass->stream_count, sizeof *pass->pending);
        pass->pending[pass->stream_count++] = (struct pending){0};
    }
    return &pass->pending[stream];
}

static int heaptrack_begin(void *context, const struct life *life) {
    struct pass *pass = context;
    struct pending *pending = heaptrack_pending_of(pass, life->stream);
    heaptrack_put_time(&pass->text, life->birth_ns);
    heaptrack_write_pending(pass, pending);
    *pending = (struct pending){.is_set = true,
                                .block = life->block,
                                .order = life->birth_order,
                                .size = life_bytes(life),
                                .context = life->context};
    pass->live += pending->size;
    if (!pass->reached && pass->live >= pass->maximum) {
        pass->reached = true;
        heaptrack_write_all_pending(pass);
    }
    return 0;
}

static int heaptrack_end(void *context, const struct life *life) {
    struct pass *pass = context;
    struct pending *pending = heaptrack_pending_of(pass, life->stream);
    heaptrack_put_time(&pass->text, life->death_ns);
    if (pending->is_set && pending->block.thread == life->block.thread &&
        pending->block.number == life->block.number) {
        heaptrack_write_pending(pass, pending); /* it was held back */
    }
    heaptrack_put_free(&pass->text, life->context, life_bytes(life), life->is_temporary);
    pass->live -= life_bytes(life);
    return 0;
}

/* ---- What the model knows without its events ---- */

/* What a pass before the real one finds: the maximum of what was selected, and which costs of each
 * context are no lives, because a recording culled them. */
struct survey {
    const struct model *model;
    uint64_t live;
    uint64_t maximum;
    uint64_t *counts; /* by node */
    uint64_t *bytes;
};

static int heaptrack_survey_begin(void *context, const struct life *life) {
    struct survey *survey = context;
    survey->live += life_bytes(life);
    survey->maximum = survey->live > survey->maximum ? survey->live : survey->maximum;
    survey->counts[life->context]++;
    survey->bytes[life->context] += life_bytes(life);
    return 0;
}

static int heaptrack_survey_end(void *context, const struct life *life) {
    struct survey *survey = context;
    survey->live -= life_bytes(life);
    return 0;
}

static bool heaptrack_has_culled(const struct export *export) {
    for (size_t part = 0; part < export->parts.count; part++) {
        const struct recording *recording = export->parts.items[part];
        for (size_t i = 0; i < recording->block_count; i++) {
            if (recording->blocks[i].block.kind == MEMTRACE_BLOCK_CULLED) {
                return true;
            }
        }
    }
    return false;
}

/* Those of a context that are no lives. */
static uint64_t heaptrack_culled_of(const struct survey *survey,
                                    const struct model_context *context) {
    uint64_t count = survey->counts[context->id];
    return context->class == MODEL_HEAP && context->allocations > count
               ? context->allocations - count
               : 0;
}

/* At the beginning, where they raise no maximum: blocks that begin and end at once. */
static void heaptrack_put_culled(struct text *text, const struct survey *survey) {
    const struct model *model = survey->model;
    uint64_t sum = 0;
    uint64_t most = CULLED_LEAST;
    for (size_t i = 0; i < model->node_count && most < CULLED_MOST; i++) {
        most += survey->counts[i] < CULLED_MOST ? survey->counts[i] * CULLED_FOR_EACH : CULLED_MOST;
    }
    most = most < CULLED_MOST ? most : CULLED_MOST;
    for (size_t i = 0; i < model->context_count; i++) {
        if (__builtin_add_overflow(sum, heaptrack_culled_of(survey, &model->contexts[i]), &sum) ||
            sum > most) {
            job_fail("heaptrack's format is made of events, and this recording left out too many "
                     "to make them up: record without `--cull-below`");
        }
    }
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        uint64_t count = heaptrack_culled_of(survey, context);
        uint64_t known = survey->bytes[context->id];
        uint64_t bytes = context->total_bytes > known ? context->total_bytes - known : 0;
        /* The first ones are a byte larger where it does not come out even. */
        for (uint64_t block = 0; block < count; block++) {
            uint64_t size = bytes / count + (block < bytes % count);
            heaptrack_put_alloc(text, context->id, size);
            heaptrack_put_free(text, context->id, size, false);
        }
    }
}

/* The maximum to reach, and culled blocks. */
static void heaptrack_look_ahead(const struct export *export, struct pass *pass) {
    struct survey survey = {.model = export->model};
    const struct lives_visitor visitor = {
        .begin = heaptrack_survey_begin, .end = heaptrack_survey_end, .context = &survey};
    bool is_culled = heaptrack_has_culled(export) && !export->model->recording.sampled;
    pass->maximum = export->model->totals.maximum_bytes;
    if (export->selection == NULL && !is_culled) {
        return;
    }
    survey.counts = job_array(export->model->node_count, sizeof *survey.counts);
    survey.bytes = job_array(export->model->node_count, sizeof *survey.bytes);
    lifepass_visit(export, &visitor);
    pass->maximum = survey.maximum;
    if (is_culled) {
        heaptrack_put_culled(&pass->text, &survey);
    }
    job_release(survey.counts);
    job_release(survey.bytes);
}

/* ---- The file ---- */

void export_heaptrack(const struct export *export) {
    struct packedout *packed = packedout_open(export->out, packing_of(export->name));
    struct pass pass = {0};
    const struct lives_visitor visitor = {
        .begin = heaptrack_begin, .end = heaptrack_end, .context = &pass};
    export_prepare_names(export);
    pass.text = heaptrack_start(export, packed->stream);
    if (!lifepass_possible(export)) {
        job_fail("heaptrack's format is made of events: %s",
                 export->parts.count == 0
                     ? "a profile has none, so make a recording with `memtrace record`"
                     : "filters that ask how a block ended do not go with it");
    }
    if (export->model->recording.sampled) {
        fputs("# a sampled recording: sizes are the bytes that an allocation stands for\n",
              packed->stream);
    }
    heaptrack_look_ahead(export, &pass);
    lifepass_visit(export, &visitor);
    heaptrack_write_all_pending(&pass);
    heaptrack_put_time(&pass.text, export->model->now_ns);
    packedout_close(packed); /* that it could not be written the caller sees */
}
