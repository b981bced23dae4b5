/* SPDX-License-Identifier: MIT */
/*
 * modeltables.c: the tables that are short arrays of the model: summary, threads, modules,
 * timeline, who freed whose blocks. See vtable.h.
 */
#include "analyze/query/vtable.h"

/* ---- Summary ---- */

static const struct vtable_column summary_columns[] = {
    {"program", "TEXT", "the executable"},
    {"pid", "INTEGER", ""},
    {"duration", "INTEGER", "ns from the start to the latest time known"},
    {"maximum_bytes", "INTEGER", "held when the program held most"},
    {"maximum_error_bytes", "INTEGER", "bound of its error; 0 with one thread"},
    {"live_bytes", "INTEGER", "not freed at the end"},
    {"live_blocks", "INTEGER", ""},
    {"total_bytes", "INTEGER", "ever allocated"},
    {"allocations", "INTEGER", "reallocations included"},
    {"frees", "INTEGER", "reallocations included"},
    {"freed_bytes", "INTEGER", ""},
    {"temporary", "INTEGER", "freed by their thread before its next allocation"},
    {"contexts", "INTEGER", "call paths of the heap"},
    {"lost", "INTEGER", "what could not be kept; 0: everything is exact"},
    {"events", "INTEGER", "of a recording; NULL: a profile"},
    {"damage", "TEXT", "where the file breaks; NULL: it is whole"},
    {"peak_resident_bytes", "INTEGER", "the process's, as the kernel counts; NULL: not known"},
    {"peak_bytes", "INTEGER", "the same as maximum_bytes"},
    {"peak_error_bytes", "INTEGER", "the same as maximum_error_bytes"},
    {"sample_bytes", "INTEGER", "of a sample: one allocation in so many bytes; NULL: all counted"},
    {"maximum_bytes_error", "REAL", "of a sample: standard errors of the sums; else 0"},
    {"live_bytes_error", "REAL", ""},
    {"total_bytes_error", "REAL", ""},
    {"allocations_error", "REAL", ""},
};

enum { FIRST_ERROR = 20 };

/* Where it stands: sample_bytes, and behind it the standard errors. */
static void put_sample(const struct model_recording *recording, int column, sqlite3_context *out) {
    const struct model_errors *errors = &recording->errors;
    const double sums[] = {errors->maximum_bytes, errors->live_bytes, errors->total_bytes,
                           errors->allocations};
    if (column >= FIRST_ERROR) {
        sqlite3_result_double(out, sums[column - FIRST_ERROR]);
    } else if (recording->sampled) {
        vtable_put_number(out, recording->sample_bytes);
    }
}

static size_t one_row(const struct query *query) {
    (void)query;
    return 1;
}

static void put_summary(const struct query *query, size_t row, int column, sqlite3_context *out) {
    const struct model *model = query->source.model;
    const struct model_totals *totals = &model->totals;
    const uint64_t numbers[] = {
        model->header.pid,  model->now_ns,       totals->maximum_bytes, totals->maximum_error_bytes,
        totals->live_bytes, totals->live_blocks, totals->total_bytes,   totals->allocations,
        totals->frees,      totals->freed_bytes, totals->temporary,     totals->context_count,
        totals->lost,
    };
    enum { NUMBERS = sizeof numbers / sizeof numbers[0] };
    (void)row;
    if (column == 0) {
        vtable_put_text(out, model->header.executable);
    } else if (column <= NUMBERS) {
        vtable_put_number(out, numbers[column - 1]);
    } else if (column == NUMBERS + 1) {
        if (model->recording.present) {
            vtable_put_number(out, model->recording.events);
        }
    } else if (column == NUMBERS + 2) {
        vtable_put_text(out, model->damage[0] != '\0' ? model->damage : NULL);
    } else if (column == NUMBERS + 3) {
        vtable_put_unless(out, model->header.peak_resident_bytes, 0);
    } else if (column >= FIRST_ERROR - 1) {
        put_sample(&model->recording, column, out);
    } else {
        const uint64_t peaks[] = {totals->maximum_bytes, totals->maximum_error_bytes};
        vtable_put_number(out, peaks[column - NUMBERS - 4]);
    }
}

const struct vtable vtable_summary = {
    .name = "summary",
    .about = "the totals of the heap, in one row",
    VTABLE_COLUMNS(summary_columns),
    VTABLE_ARRAY,
    .count = one_row,
    .put = put_summary,
};

/* ---- Threads ---- */

enum {
    THREAD_ID,
    THREAD_TID,
    THREAD_NAME,
    THREAD_ALIVE,
    THREAD_STARTED,
    THREAD_ENDED,
    THREAD_SUMS
};

static const struct vtable_column thread_columns[] = {
    [THREAD_ID] = {"id", "INTEGER", "allocations.thread"},
    [THREAD_TID] = {"tid", "INTEGER", "the kernel's"},
    [THREAD_NAME] = {"name", "TEXT", ""},
    [THREAD_ALIVE] = {"alive", "INTEGER", "1: it had not ended"},
    [THREAD_STARTED] = {"started", "INTEGER", "ns since the program's start"},
    [THREAD_ENDED] = {"ended", "INTEGER", "ns; NULL: it had not"},
    [THREAD_SUMS] = {"allocations", "INTEGER", ""},
    {"total_bytes", "INTEGER", "that it allocated"},
    {"frees", "INTEGER", ""},
    {"freed_bytes", "INTEGER", ""},
    {"foreign_frees", "INTEGER", "blocks of others that it freed"},
    {"foreign_freed_bytes", "INTEGER", ""},
    {"live_bytes", "INTEGER", "what it allocated and nobody freed"},
};

static size_t count_threads(const struct query *query) {
    return query->source.model->thread_count;
}

static size_t find_thread(const struct query *query, sqlite3_int64 id) {
    const struct model *model = query->source.model;
    for (size_t i = 0; i < model->thread_count; i++) {
        if (model->threads[i].id == id) {
            return i;
        }
    }
    return SIZE_MAX;
}

static void put_thread(const struct query *query, size_t row, int column, sqlite3_context *out) {
    const struct model_thread *thread = &query->source.model->threads[row];
    const uint64_t sums[] = {thread->allocations,   thread->total_bytes,
                             thread->frees,         thread->freed_bytes,
                             thread->foreign_frees, thread->foreign_freed_bytes};
    enum { SUMS = sizeof sums / sizeof sums[0] };
    switch (column) {
    case THREAD_ID:
        vtable_put_number(out, thread->id);
        break;
    case THREAD_TID:
        vtable_put_number(out, thread->tid);
        break;
    case THREAD_NAME:
        vtable_put_text(out, thread->name);
        break;
    case THREAD_ALIVE:
        vtable_put_number(out, thread->alive);
        break;
    case THREAD_STARTED:
        vtable_put_number(out, thread->start_ns);
        break;
    case THREAD_ENDED:
        vtable_put_unless(out, thread->end_ns, 0);
        break;
    case THREAD_SUMS + SUMS:
        sqlite3_result_int64(out, thread->live_bytes);
        break;
    default:
        vtable_put_number(out, sums[column - THREAD_SUMS]);
        break;
    }
}

const struct vtable vtable_threads = {
    .name = "threads",
    .about = "what each thread allocated and freed",
    VTABLE_COLUMNS(thread_columns),
    VTABLE_ARRAY,
    .count = count_threads,
    .put = put_thread,
    .find = find_thread,
};

/* ---- Who freed whose ---- */

static const struct vtable_column foreign_columns[] = {
    {"freer", "INTEGER", "thread that freed"},
    {"owner", "INTEGER", "thread that had allocated"},
    {"blocks", "INTEGER", ""},
    {"bytes", "INTEGER", ""},
};

static size_t count_foreign(const struct query *query) {
    return query->source.model->foreign_count;
}

static void put_foreign(const struct query *query, size_t row, int column, sqlite3_context *out) {
    const struct model_foreign *foreign = &query->source.model->foreign[row];
    const uint64_t numbers[] = {foreign->freer, foreign->owner, foreign->blocks, foreign->bytes};
    vtable_put_number(out, numbers[column]);
}

const struct vtable vtable_foreign_frees = {
    .name = "foreign_frees",
    .about = "how much each thread freed of what others had allocated",
    VTABLE_COLUMNS(foreign_columns),
    VTABLE_ARRAY,
    .count = count_foreign,
    .put = put_foreign,
};

/* ---- Modules ---- */

enum {
    MODULE_ID,
    MODULE_PATH,
    MODULE_BUILD_ID,
    MODULE_START,
    MODULE_END,
    MODULE_BIAS,
    MODULE_LOADED,
    MODULE_UNLOADED
};

static const struct vtable_column module_columns[] = {
    [MODULE_ID] = {"id", "INTEGER", ""},
    [MODULE_PATH] = {"path", "TEXT", "program or library"},
    [MODULE_BUILD_ID] = {"build_id", "TEXT", "NULL: it has none"},
    [MODULE_START] = {"start", "INTEGER", "address"},
    [MODULE_END] = {"end", "INTEGER", "address behind it"},
    [MODULE_BIAS] = {"bias", "INTEGER", "address minus offset in the file"},
    [MODULE_LOADED] = {"loaded", "INTEGER", "ns since the program's start"},
    [MODULE_UNLOADED] = {"unloaded", "INTEGER", "ns; NULL: never"},
};

/* How many of the modules below `end` there are: slots of a profile may be empty. */
static size_t modules_below(const struct model *model, size_t end) {
    size_t count = 0;
    for (size_t id = 1; id < end; id++) {
        count += model->modules[id].path[0] != '\0';
    }
    return count;
}

static size_t count_modules(const struct query *query) {
    return modules_below(query->source.model, query->source.model->module_count);
}

static size_t find_module(const struct query *query, sqlite3_int64 id) {
    const struct model *model = query->source.model;
    return id >= 1 && (sqlite3_uint64)id < model->module_count && model->modules[id].path[0] != '\0'
               ? modules_below(model, (size_t)id)
               : SIZE_MAX;
}

static size_t module_of_row(const struct model *model, size_t row) {
    size_t id = 1;
    while (model->modules[id].path[0] == '\0' || row-- > 0) {
        id++;
    }
    return id;
}

static void put_build_id(const struct model_module *module, sqlite3_context *out) {
    char text[2 * sizeof module->build_id + 1] = "";
    for (uint32_t i = 0; i < module->build_id_size && i < sizeof module->build_id; i++) {
        sqlite3_snprintf(3, text + (size_t)2 * i, "%02x", module->build_id[i]);
    }
    vtable_put_text(out, text[0] != '\0' ? text : NULL);
}

static void put_module(const struct query *query, size_t row, int column, sqlite3_context *out) {
    size_t id = module_of_row(query->source.model, row);
    const struct model_module *module = &query->source.model->modules[id];
    switch (column) {
    case MODULE_ID:
        vtable_put_number(out, id);
        break;
    case MODULE_PATH:
        vtable_put_text(out, module->path);
        break;
    case MODULE_BUILD_ID:
        put_build_id(module, out);
        break;
    case MODULE_START:
        vtable_put_number(out, module->start);
        break;
    case MODULE_END:
        vtable_put_number(out, module->end);
        break;
    case MODULE_BIAS:
        vtable_put_number(out, module->bias);
        break;
    case MODULE_LOADED:
        vtable_put_number(out, module->load_ns);
        break;
    default:
        vtable_put_unless(out, module->unload_ns, 0);
        break;
    }
}

const struct vtable vtable_modules = {
    .name = "modules",
    .about = "the program and its libraries",
    VTABLE_COLUMNS(module_columns),
    VTABLE_ARRAY,
    .count = count_modules,
    .put = put_module,
    .find = find_module,
};

/* ---- Timeline ---- */

static const struct vtable_column timeline_columns[] = {
    {"time", "INTEGER", "ns since the program's start"}, {"live_bytes", "INTEGER", "of the heap"},
    {"resident_bytes", "INTEGER", "of the process"},     {"allocations", "INTEGER", "so far"},
    {"total_bytes", "INTEGER", "allocated so far"},
};

static size_t count_points(const struct query *query) {
    return query->source.model->timeline_count;
}

static void put_point(const struct query *query, size_t row, int column, sqlite3_context *out) {
    const struct memtrace_point *point = &query->source.model->timeline[row];
    const uint64_t numbers[] = {point->time_ns, point->live_bytes, point->resident_bytes,
                                point->alloc_count, point->alloc_bytes};
    vtable_put_number(out, numbers[column]);
}

const struct vtable vtable_timeline = {
    .name = "timeline",
    .about = "live and resident bytes over time",
    VTABLE_COLUMNS(timeline_columns),
    VTABLE_ARRAY,
    .count = count_points,
    .put = put_point,
};
