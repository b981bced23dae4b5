/* SPDX-License-Identifier: MIT */
/*
 * pprof.c: the profile.proto of pprof, gzip'd, with the sample types of Go's heap profiles, and two
 * more: what was held at the maximum, and temporary allocations.
 *
 * A message may come in pieces, one behind the other: so each sample, location and function is
 * written when it is known, and only numbers of what was written are kept.
 */
#include "analyze/base/job.h"
#include "analyze/export/packedout.h"
#include "analyze/export/pprof.pb-c.h"
#include "analyze/export/shared.h"
#include "analyze/report/bulk.h"
#include "analyze/rows/safetext.h"

#include <string.h>

enum { TYPES = 6 };

/* By enum metric: which type `--cost` makes the one that is shown first. */
static const char *const default_types[METRIC_COUNT] = {[METRIC_MAXIMUM] = "peak_space",
                                                        [METRIC_LEAKED] = "inuse_space",
                                                        [METRIC_CUMULATIVE] = "alloc_space",
                                                        [METRIC_ALLOCATIONS] = "alloc_objects",
                                                        [METRIC_TEMPORARY] = "temporary_objects"};

/* Go's four in Go's order. */
static const struct {
    const char *kind;
    const char *unit;
} types[TYPES] = {{"alloc_objects", "count"}, {"alloc_space", "bytes"},
                  {"inuse_objects", "count"}, {"inuse_space", "bytes"},
                  {"peak_space", "bytes"},    {"temporary_objects", "count"}};

struct pprof {
    const struct export *export;
    FILE *out;
    struct numbering texts;
    struct numbering functions; /* by names_frame.function_key */
    struct numbering locations; /* by frame */
};

/* ---- Pieces ---- */

struct pprof_stream {
    ProtobufCBuffer buffer;
    FILE *out;
};

static void pprof_put_bytes(ProtobufCBuffer *buffer, size_t size, const uint8_t *bytes) {
    fwrite(bytes, 1, size, ((struct pprof_stream *)buffer)->out);
}

static void pprof_put_piece(const struct pprof *pprof, const Pprof__Profile *piece) {
    struct pprof_stream stream = {{pprof_put_bytes}, pprof->out};
    pprof__profile__pack_to_buffer(piece, &stream.buffer);
}

/* The number of a text; NULL and "": 0. Texts must be UTF-8, or readers refuse the whole file:
 * other bytes become '?'. */
static int64_t pprof_text_number(struct pprof *pprof, const char *text) {
    uint64_t number;
    bool is_new;
    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    number = numbering_of(&pprof->texts, numbering_key(text), &is_new);
    if (is_new) {
        Pprof__Profile piece = PPROF__PROFILE__INIT;
        size_t size = strlen(text) + 1;
        char *copy = memcpy(job_array(size, 1), text, size);
        for (char *at = copy; *at != '\0';) {
            size_t length = utf8_length(at);
            *at = length != 0 ? *at : '?';
            at += length != 0 ? length : 1;
        }
        piece.texts = &copy;
        piece.n_texts = 1;
        pprof_put_piece(pprof, &piece);
        job_release(copy);
    }
    return (int64_t)number;
}

/* ---- What happened where ---- */

static uint64_t pprof_function_id(struct pprof *pprof, const struct names_frame *frame) {
    Pprof__Function function = PPROF__FUNCTION__INIT;
    Pprof__Function *item = &function;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    char label[EXPORT_LABEL];
    bool is_new;
    uint64_t id = numbering_of(&pprof->functions, frame->function_key, &is_new);
    if (!is_new) {
        return id;
    }
    function.id = id;
    function.name = pprof_text_number(pprof, export_name(pprof->export, frame, label));
    function.full_name = frame->function != NULL ? pprof_text_number(pprof, frame->function) : 0;
    function.file = pprof_text_number(pprof, frame->file);
    piece.functions = &item;
    piece.n_functions = 1;
    pprof_put_piece(pprof, &piece);
    return id;
}

static void pprof_put_location(struct pprof *pprof, uint64_t id, uint64_t frame) {
    struct model_place place = model_place(pprof->export->model, frame);
    Pprof__Location location = PPROF__LOCATION__INIT;
    Pprof__Location *item = &location;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    size_t count;
    const struct names_frame *frames = names_frames(pprof->export->names, frame, &count);
    Pprof__Line *lines = job_array(count, sizeof *lines);
    Pprof__Line **items = job_array(count, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        pprof__line__init(&lines[i]);
        lines[i].function = pprof_function_id(pprof, &frames[i]);
        lines[i].line = frames[i].line;
        lines[i].column = frames[i].column;
        items[i] = &lines[i];
    }
    location.id = id;
    location.mapping = place.module;
    location.address = place.called;
    if (frame < MEMTRACE_FRAME_CLASSES) {
        location.address = 0;
    }
    location.lines = items;
    location.n_lines = count;
    piece.locations = &item;
    piece.n_locations = 1;
    pprof_put_piece(pprof, &piece);
    job_release(lines);
    job_release(items);
}

static uint64_t pprof_location_id(struct pprof *pprof, uint64_t frame) {
    bool is_new;
    uint64_t id = numbering_of(&pprof->locations, frame, &is_new);
    if (is_new) {
        pprof_put_location(pprof, id, frame);
    }
    return id;
}

/* Innermost first; the caller releases it. */
static uint64_t *pprof_locations_of(struct pprof *pprof, uint32_t path, size_t *count) {
    const struct model_node *nodes = pprof->export->model->nodes;
    size_t most = pprof->export->depth != 0 ? pprof->export->depth : SIZE_MAX;
    uint64_t *ids;
    size_t depth = 0;
    for (uint32_t node = path; node != 0 && depth < most; node = nodes[node].parent) {
        depth += nodes[node].frame >= MEMTRACE_FRAME_CLASSES;
    }
    ids = job_array(depth + 1, sizeof *ids);
    *count = 0;
    for (uint32_t node = path; *count < depth; node = nodes[node].parent) {
        if (nodes[node].frame >= MEMTRACE_FRAME_CLASSES) {
            ids[(*count)++] = pprof_location_id(pprof, nodes[node].frame);
        }
    }
    if (*count == 0) {
        ids[(*count)++] = pprof_location_id(pprof, MEMTRACE_FRAME_UNKNOWN);
    }
    return ids;
}

static void pprof_put_sample(struct pprof *pprof, const struct model_context *context) {
    int64_t values[TYPES] = {(int64_t)context->allocations, (int64_t)context->total_bytes,
                             (int64_t)context->live_blocks, (int64_t)context->live_bytes,
                             (int64_t)context->peak_bytes,  (int64_t)context->temporary};
    Pprof__Sample sample = PPROF__SAMPLE__INIT;
    Pprof__Sample *item = &sample;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    sample.locations = pprof_locations_of(pprof, context->path, &sample.n_locations);
    sample.values = values;
    sample.n_values = TYPES;
    piece.samples = &item;
    piece.n_samples = 1;
    pprof_put_piece(pprof, &piece);
    job_release(sample.locations);
}

/* ---- What is said of the whole ---- */

static void pprof_put_mapping(struct pprof *pprof, const struct model_module *module, uint64_t id) {
    Pprof__Mapping mapping = PPROF__MAPPING__INIT;
    Pprof__Mapping *item = &mapping;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    char build_id[2 * sizeof module->build_id + 1] = "";
    for (size_t i = 0; i < module->build_id_size; i++) {
        snprintf(build_id + 2 * i, 3, "%02x", module->build_id[i]);
    }
    mapping.id = id;
    mapping.start = module->start;
    mapping.end = module->end;
    mapping.file = pprof_text_number(pprof, module->path);
    mapping.build_id = pprof_text_number(pprof, build_id);
    mapping.has_functions = mapping.has_files = mapping.has_lines = mapping.has_inlined = true;
    piece.mappings = &item;
    piece.n_mappings = 1;
    pprof_put_piece(pprof, &piece);
}

/* The first one is the main program's, by which readers name the profile. */
static void pprof_put_mappings(struct pprof *pprof) {
    const struct model *model = pprof->export->model;
    size_t first = 0;
    for (size_t i = 1; i < model->module_count && first == 0; i++) {
        first = strcmp(model->modules[i].path, model->header.executable) == 0 ? i : 0;
    }
    if (first != 0) {
        pprof_put_mapping(pprof, &model->modules[first], first);
    }
    for (size_t i = 1; i < model->module_count; i++) {
        if (i != first && model->modules[i].path[0] != '\0') {
            pprof_put_mapping(pprof, &model->modules[i], i);
        }
    }
}

static Pprof__ValueType pprof_value_type(struct pprof *pprof, const char *kind, const char *unit) {
    Pprof__ValueType type = PPROF__VALUE_TYPE__INIT;
    type.kind = pprof_text_number(pprof, kind);
    type.unit = pprof_text_number(pprof, unit);
    return type;
}

static void pprof_put_head(struct pprof *pprof) {
    const struct model *model = pprof->export->model;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    Pprof__ValueType values[TYPES];
    Pprof__ValueType *items[TYPES];
    Pprof__ValueType period = pprof_value_type(pprof, "space", "bytes");
    char comment[sizeof model->header.executable + 64];
    int64_t said;
    snprintf(comment, sizeof comment, "memtrace export of %s", model->header.executable);
    said = pprof_text_number(pprof, comment);
    for (size_t i = 0; i < TYPES; i++) {
        values[i] = pprof_value_type(pprof, types[i].kind, types[i].unit);
        items[i] = &values[i];
    }
    piece.sample_types = items;
    piece.n_sample_types = TYPES;
    piece.default_type = pprof_text_number(pprof, default_types[pprof->export->cost]);
    piece.time_ns = (int64_t)model->header.start_realtime_ns;
    piece.duration_ns = (int64_t)model->now_ns;
    piece.period_type = &period;
    piece.period = model->recording.sample_bytes != 0 ? (int64_t)model->recording.sample_bytes : 1;
    piece.comments = &said;
    piece.n_comments = 1;
    pprof_put_piece(pprof, &piece);
}

void export_pprof(const struct export *export) {
    const struct model *model = export->model;
    struct packedout *packed;
    struct pprof pprof = {.export = export};
    char nothing[] = "";
    char *empty = nothing;
    Pprof__Profile piece = PPROF__PROFILE__INIT;
    struct error error;
    if (!export->is_depth_given) {
        job_check(bulk_refuse_paths(model, export->names, BULK_NUMBERS,
                                    " unpacked: --depth N writes the N innermost frames of each",
                                    &error),
                  &error);
    }
    export_prepare_names(export);
    packed = packedout_open(export->out, PACKING_GZIP);
    pprof.out = packed->stream;
    piece.texts = &empty;
    piece.n_texts = 1;
    pprof_put_piece(&pprof, &piece);
    pprof_put_head(&pprof);
    pprof_put_mappings(&pprof);
    for (size_t i = 0; i < model->context_count; i++) {
        if (model->contexts[i].class == MODEL_HEAP) {
            pprof_put_sample(&pprof, &model->contexts[i]);
        }
    }
    packedout_close(packed);
}
