/* SPDX-License-Identifier: MIT */
/* modelrows.c: the things that lie in a model or a run, but for contexts (heaprows.c) and what is
 * told of the whole (facts.c). See rows.h. */
#include "analyze/rows/rows.h"

#include <stdlib.h>
#include <string.h>

static struct table_cell spell_id(uint32_t id) {
    char *text;
    return table_made_text(asprintf(&text, "%u", id) >= 0 ? text : NULL);
}

/* ---- Threads ---- */

enum { TABLES = TABLE_REPORT | TABLE_PAGE }; /* the document has these in a form of its own */

static size_t modelrows_find_thread(const struct rows_of *of, int64_t id) {
    for (size_t i = 0; i < of->model->thread_count; i++) {
        if (of->model->threads[i].id == id) {
            return i;
        }
    }
    return SIZE_MAX;
}

ROWS_CELL(thread_live, struct model_thread, thread,
          table_number(thread->live_bytes > 0 ? (uint64_t)thread->live_bytes : 0))

ROWS_CELL(thread_tid_text, struct model_thread, it, spell_id(it->tid))

static struct table_cell thread_long_name(const struct rows_of *of, const void *record) {
    const struct model_thread *thread = record;
    char earlier[40] = "";
    char *text;
    (void)of;
    if (thread->earlier != 0) {
        snprintf(earlier, sizeof earlier, " and %u before it", thread->earlier);
    }
    return table_made_text(asprintf(&text, "%s%s%s", thread->name[0] != '\0' ? thread->name : "-",
                                    thread->end_ns == 0 ? "" : " (ended)", earlier) >= 0
                               ? text
                               : NULL);
}

#define OF(member) ROWS_FIELD(struct model_thread, member)
static const struct table_column thread_columns[] = {
    {"id", "id", TABLE_COUNT, 6, "id", "allocations.thread", OF(id), .only = TABLES},
    {"tid", NULL, TABLE_COUNT, 0, "tid", "the kernel's", OF(tid), .only = TABLE_PAGE},
    {"tid", "tid", TABLE_TEXT, 8, .cell = thread_tid_text, .only = TABLE_REPORT},
    {"name", NULL, TABLE_TEXT, 0, "name", "", OF(name), .only = TABLE_PAGE},
    {"alive", NULL, TABLE_COUNT, 0, "alive", "1: it had not ended", OF(alive), .only = TABLE_PAGE},
    {"start_ns", NULL, TABLE_DURATION, 0, "started", "ns since the program's start", OF(start_ns),
     .only = TABLE_PAGE},
    {"end_ns", NULL, TABLE_DURATION, 0, "ended", "ns; NULL: it had not", OF(end_ns),
     .none = TABLE_ZERO, .only = TABLE_PAGE},
    {"allocations", "allocations", TABLE_COUNT, 0, "allocations", "", OF(allocations),
     .only = TABLES},
    {"total_bytes", "bytes", TABLE_BYTES, 0, "total_bytes", "that it allocated", OF(total_bytes),
     .only = TABLES},
    {"frees", "frees", TABLE_COUNT, 0, "frees", "", OF(frees), .only = TABLES},
    {"freed_bytes", NULL, TABLE_BYTES, 0, "freed_bytes", "", OF(freed_bytes), .only = TABLES},
    {"live_bytes", "live", TABLE_BYTES, 0, .cell = thread_live, .only = TABLES},
    {"freed_for_others", "freed of others", TABLE_COUNT, 15, "foreign_frees",
     "blocks of others that it freed", OF(foreign_frees), .only = TABLES},
    {"freed_for_others_bytes", NULL, TABLE_BYTES, 0, "foreign_freed_bytes", "",
     OF(foreign_freed_bytes), .only = TABLES},
    {NULL, NULL, TABLE_SIGNED, 0, "live_bytes", "what it allocated and nobody freed",
     OF(live_bytes), .only = TABLE_SQL},
    {"name", NULL, TABLE_TEXT, 0, OF(name), .only = TABLE_REPORT},
    {NULL, "name", TABLE_TEXT, 0, .cell = thread_long_name, .only = TABLE_REPORT},
};
#undef OF

const struct rows rows_threads = {
    .name = "threads",
    .about = "what each thread allocated and freed",
    ROWS_COLUMNS(thread_columns),
    ROWS_ARRAY(threads, thread_count),
    .find = modelrows_find_thread,
};

/* ---- Who freed whose ---- */

static struct table_cell thread_name(const struct rows_of *of, uint32_t id) {
    size_t row = modelrows_find_thread(of, id);
    bool has_name = row != SIZE_MAX && of->model->threads[row].name[0] != '\0';
    return table_text(has_name ? of->model->threads[row].name : "-");
}

static struct table_cell freer_name(const struct rows_of *of, const void *record) {
    return thread_name(of, ((const struct model_foreign *)record)->freer);
}

static struct table_cell owner_name(const struct rows_of *of, const void *record) {
    return thread_name(of, ((const struct model_foreign *)record)->owner);
}

#define OF(member) ROWS_FIELD(struct model_foreign, member)
static const struct table_column foreign_columns[FOREIGN_COLUMNS] = {
    [FOREIGN_FREER] = {"freer", "to", TABLE_COUNT, 6, "freer", "thread that freed", OF(freer)},
    [FOREIGN_OWNER] = {"owner", "from", TABLE_COUNT, 6, "owner", "thread that had allocated",
                       OF(owner)},
    [FOREIGN_BLOCKS] = {"blocks", "blocks", TABLE_COUNT, 0, "blocks", "", OF(blocks)},
    [FOREIGN_BYTES] = {"bytes", "bytes", TABLE_BYTES, 0, "bytes", "", OF(bytes)},
    [FOREIGN_FREER_NAME] = {"freer_name", "freed by", TABLE_TEXT, 16, .cell = freer_name},
    [FOREIGN_OWNER_NAME] = {"owner_name", "allocated by", TABLE_TEXT, 16, .cell = owner_name},
};
#undef OF

const struct rows rows_foreign = {
    .name = "foreign_frees",
    .about = "how much each thread freed of what others had allocated",
    ROWS_COLUMNS(foreign_columns),
    ROWS_ARRAY(foreign, foreign_count),
};

/* ---- Modules ---- */

/* How many of the modules below `end` there are: slots of a profile may be empty. */
static size_t modules_below(const struct model *model, size_t end) {
    size_t count = 0;
    for (size_t id = 1; id < end; id++) {
        count += model->modules[id].path[0] != '\0';
    }
    return count;
}

static size_t modelrows_count_modules(const struct rows_of *of) {
    return modules_below(of->model, of->model->module_count);
}

static size_t modelrows_find_module(const struct rows_of *of, int64_t id) {
    const struct model *model = of->model;
    return id >= 1 && (uint64_t)id < model->module_count && model->modules[id].path[0] != '\0'
               ? modules_below(model, (size_t)id)
               : SIZE_MAX;
}

static const void *modelrows_module_at(const struct rows_of *of, size_t row, void *room) {
    size_t id = 1;
    (void)room;
    while (of->model->modules[id].path[0] == '\0' || row-- > 0) {
        id++;
    }
    return &of->model->modules[id];
}

static struct table_cell module_id(const struct rows_of *of, const void *record) {
    return table_number((uint64_t)((const struct model_module *)record - of->model->modules));
}

static struct table_cell module_build_id(const struct rows_of *of, const void *record) {
    const struct model_module *module = record;
    char *text = calloc(2 * sizeof module->build_id + 1, 1);
    (void)of;
    for (uint32_t i = 0; text != NULL && i < module->build_id_size && i < sizeof module->build_id;
         i++) {
        snprintf(text + (size_t)2 * i, 3, "%02x", module->build_id[i]);
    }
    return (struct table_cell){
        .is_known = text != NULL && text[0] != '\0', .text = text, .is_owned = true};
}

#define OF(member) ROWS_FIELD(struct model_module, member)
static const struct table_column module_columns[] = {
    {"id", NULL, TABLE_COUNT, 0, "id", "", .cell = module_id},
    {"path", NULL, TABLE_TEXT, 0, "path", "program or library", OF(path)},
    {"build_id", NULL, TABLE_TEXT, 0, "build_id", "NULL: it has none", .cell = module_build_id},
    {"start", NULL, TABLE_ADDRESS, 0, "start", "address", OF(start)},
    {"end", NULL, TABLE_ADDRESS, 0, "end", "address behind it", OF(end)},
    {"bias", NULL, TABLE_ADDRESS, 0, "bias", "address minus offset in the file", OF(bias)},
    {"load_ns", NULL, TABLE_DURATION, 0, "loaded", "ns since the program's start", OF(load_ns)},
    {"unload_ns", NULL, TABLE_DURATION, 0, "unloaded", "ns; NULL: never", OF(unload_ns),
     .none = TABLE_ZERO},
};
#undef OF

const struct rows rows_modules = {
    .name = "modules",
    .about = "the program and its libraries",
    ROWS_COLUMNS(module_columns),
    .count = modelrows_count_modules,
    .record = modelrows_module_at,
    .find = modelrows_find_module,
};

/* ---- Timeline ---- */

#define OF(member) ROWS_FIELD(struct memtrace_point, member)
static const struct table_column timeline_columns[] = {
    {"time_ns", NULL, TABLE_DURATION, 0, "time", "ns since the program's start", OF(time_ns)},
    {"live_bytes", NULL, TABLE_BYTES, 0, "live_bytes", "of the heap", OF(live_bytes)},
    {"resident_bytes", NULL, TABLE_BYTES, 0, "resident_bytes", "of the process",
     OF(resident_bytes)},
    {"allocations", NULL, TABLE_COUNT, 0, "allocations", "so far", OF(alloc_count)},
    {"total_bytes", NULL, TABLE_BYTES, 0, "total_bytes", "allocated so far", OF(alloc_bytes)},
};
#undef OF

const struct rows rows_timeline = {
    .name = "timeline",
    .about = "live and resident bytes over time",
    ROWS_COLUMNS(timeline_columns),
    ROWS_ARRAY(timeline, timeline_count),
};

/* ---- Marks ---- */

/* In SQL, and for people. */
static const char *const mark_words[][2] = {
    [MEMTRACE_MARK_POINT] = {"mark", "mark"},
    [MEMTRACE_MARK_SCOPE_BEGIN] = {"scope begin", "scope begins"},
    [MEMTRACE_MARK_SCOPE_END] = {"scope end", "scope ends"},
    [MEMTRACE_MARK_SNAPSHOT] = {"snapshot", "snapshot"},
    [MEMTRACE_MARK_ON] = {"on", "recording on"},
    [MEMTRACE_MARK_OFF] = {"off", "recording off"},
    [MEMTRACE_MARK_SAMPLE] = {"sample", "sampling"},
    [MEMTRACE_MARK_MALLOPT] = {"mallopt", "mallopt"},
};

static const char *mark_word(const void *record, size_t form) {
    uint32_t what = ((const struct model_mark *)record)->what;
    return what < sizeof mark_words / sizeof mark_words[0] ? mark_words[what][form] : NULL;
}

static struct table_cell mark_kind(const struct rows_of *of, const void *record) {
    (void)of;
    return table_text(mark_word(record, 0));
}

static struct table_cell mark_what(const struct rows_of *of, const void *record) {
    const char *word = mark_word(record, 1);
    (void)of;
    return table_text(word != NULL ? word : "unknown");
}

ROWS_CELL(mark_scope, struct model_mark, mark,
          table_number_if(mark->what == MEMTRACE_MARK_SCOPE_BEGIN ||
                              mark->what == MEMTRACE_MARK_SCOPE_END,
                          mark->id))

#define OF(member) ROWS_FIELD(struct model_mark, member)
static const struct table_column mark_columns[MARK_COLUMNS] = {
    [MARK_TIME] = {"time_ns", "time", TABLE_DURATION, 0, "time", "ns since the program's start",
                   OF(time_ns)},
    [MARK_THREAD] = {"thread", "thread", TABLE_COUNT, 7, "thread", "threads.id", OF(thread)},
    [MARK_KIND] = {NULL, NULL, TABLE_TEXT, 0, "kind",
                   "mark, scope begin, scope end, snapshot, on, off, sample or mallopt",
                   .cell = mark_kind, .only = TABLE_SQL},
    [MARK_NAME] = {NULL, NULL, TABLE_TEXT, 0, "name", "NULL: it has none", OF(name),
                   .none = TABLE_ZERO, .only = TABLE_SQL},
    [MARK_SCOPE] = {NULL, NULL, TABLE_COUNT, 0, "scope", "of scopes: which; NULL: none",
                    .cell = mark_scope, .only = TABLE_SQL},
    [MARK_WHAT] = {"what", "what", TABLE_TEXT, 13, .cell = mark_what},
    [MARK_ID] = {"id", NULL, TABLE_COUNT, 0, OF(id)},
    [MARK_ANY_NAME] = {"name", "name", TABLE_TEXT, 0, OF(name)},
};
#undef OF

const struct rows rows_marks = {
    .name = "markers",
    .about = "what the program said of itself: memtrace_mark(), scopes, snapshots, on and off",
    ROWS_COLUMNS(mark_columns),
    ROWS_ARRAY(marks, mark_count),
};

/* ---- Scopes ---- */

static size_t count_scopes(const struct rows_of *of) {
    return of->scope_count;
}

/* UINT64_MAX: it never ended. */
struct scope_row {
    const char *name;
    uint64_t id, thread, begin_ns, end_ns, duration_ns, ended_by;
};

static const void *scope_at(const struct rows_of *of, size_t row, void *room) {
    const struct rows_scope *scope = &of->scopes[row];
    const struct model_mark *begin = &of->model->marks[scope->begin];
    struct scope_row *made = room;
    *made = (struct scope_row){.name = begin->name,
                               .id = begin->id,
                               .thread = begin->thread,
                               .begin_ns = begin->time_ns,
                               .end_ns = UINT64_MAX,
                               .duration_ns = UINT64_MAX,
                               .ended_by = UINT64_MAX};
    if (scope->end != SIZE_MAX) {
        const struct model_mark *end = &of->model->marks[scope->end];
        made->end_ns = end->time_ns;
        made->duration_ns = end->time_ns - begin->time_ns;
        made->ended_by = end->thread;
    }
    return made;
}

#define OF(member) ROWS_FIELD(struct scope_row, member)
static const struct table_column scope_columns[] = {
    {"id", NULL, TABLE_COUNT, 0, "id", "markers.scope", OF(id)},
    {"name", NULL, TABLE_TEXT, 0, "name", "", OF(name)},
    {"thread", NULL, TABLE_COUNT, 0, "thread", "that began it", OF(thread)},
    {"begin_ns", NULL, TABLE_DURATION, 0, "begun", "ns since the program's start", OF(begin_ns)},
    {"end_ns", NULL, TABLE_DURATION, 0, "ended", "ns; NULL: it never did", OF(end_ns),
     .none = TABLE_MOST},
    {"duration_ns", NULL, TABLE_DURATION, 0, "duration", "ns; NULL: it never ended",
     OF(duration_ns), .none = TABLE_MOST, .only = TABLE_SQL},
    {"ended_by", NULL, TABLE_COUNT, 0, "ended_by", "thread; NULL: it never ended", OF(ended_by),
     .none = TABLE_MOST, .only = TABLE_SQL},
};
#undef OF

const struct rows rows_scopes = {
    .name = "scopes",
    .about = "scopes (memtrace_scope_begin() to memtrace_scope_end()) by their beginning",
    ROWS_COLUMNS(scope_columns),
    .count = count_scopes,
    .record = scope_at,
};

int rows_pair_scopes(struct rows_of *of) {
    const struct model *model = of->model;
    size_t *open = calloc(model->mark_count + 1, sizeof *open);
    size_t open_count = 0;
    of->scopes = calloc(model->mark_count + 1, sizeof *of->scopes);
    if (open == NULL || of->scopes == NULL) {
        free(open);
        return -1;
    }
    for (size_t i = 0; i < model->mark_count; i++) {
        const struct model_mark *mark = &model->marks[i];
        size_t place = open_count;
        if (mark->what == MEMTRACE_MARK_SCOPE_BEGIN) {
            open[open_count++] = of->scope_count;
            of->scopes[of->scope_count++] = (struct rows_scope){i, SIZE_MAX};
        } else if (mark->what == MEMTRACE_MARK_SCOPE_END) {
            /* The latest that is open and has this id. */
            while (place > 0 && model->marks[of->scopes[open[place - 1]].begin].id != mark->id) {
                place--;
            }
            if (place > 0) {
                of->scopes[open[place - 1]].end = i;
                for (open_count--; place <= open_count; place++) {
                    open[place - 1] = open[place];
                }
            }
        }
    }
    free(open);
    return 0;
}

/* ---- Processes: those of a run, or the one of a file and the children it forked ---- */

static struct run_process own(const struct model *model) {
    const struct model_totals *totals = &model->totals;
    uint32_t state = model->header.state;
    return (struct run_process){
        .pid = model->header.pid,
        .parent_pid = model->header.parent_pid,
        .image = 1,
        .program = (char *)model->header.executable,
        .command = arguments_of(&model->header),
        .end_ns = model->now_ns,
        .end = state == MEMTRACE_STATE_EXECED    ? RUN_EXECED
               : model_is_left(model)            ? RUN_DETACHED
               : state != MEMTRACE_STATE_RUNNING ? RUN_ENDED
               : model->live                     ? RUN_RUNNING
                                                 : RUN_KILLED,
        .is_counted = true,
        .allocations = totals->allocations,
        .total_bytes = totals->total_bytes,
        .frees = totals->frees,
        .leaked_bytes = totals->live_bytes,
        .leaked_blocks = totals->live_blocks,
        .peak_bytes = totals->maximum_bytes,
        .lost = totals->lost,
    };
}

static struct run_process modelrows_child_of(const struct model *model,
                                             const struct model_child *child) {
    return (struct run_process){
        .pid = child->pid,
        .parent_pid = child->parent_pid,
        .image = 1,
        .program = (char *)child->name,
        .start_ns = child->start_ns,
        .end_ns = child->end_ns > child->start_ns ? child->end_ns : child->start_ns,
        .end = child->execed  ? RUN_EXECED
               : child->ended ? RUN_ENDED
               : model->live  ? RUN_RUNNING
                              : RUN_KILLED,
        .light = true,
        .is_counted = true,
        .allocations = child->allocations,
        .total_bytes = child->total_bytes,
        .frees = child->frees,
        .leaked_bytes = child->total_bytes - child->freed_bytes,
        .leaked_blocks = child->allocations - child->frees,
        .peak_bytes = child->maximum_bytes,
        .lost = child->lost,
    };
}

static size_t modelrows_count_processes(const struct rows_of *of) {
    return of->run != NULL ? of->run->process_count : 1 + of->whole->child_count;
}

static const void *process_at(const struct rows_of *of, size_t row, void *room) {
    _Static_assert(sizeof(struct run_process) <= ROWS_ROOM, "a process has room");
    if (of->run != NULL) {
        return &of->run->processes[row];
    }
    *(struct run_process *)room =
        row == 0 ? own(of->whole) : modelrows_child_of(of->whole, &of->whole->children[row - 1]);
    return room;
}

char *rows_join_arguments(struct arguments all) {
    char *text = malloc(3 * all.size + 1); /* an empty one becomes two quotes and a blank */
    char *to = text;
    size_t most = all.size;
    const char *at;
    while (text != NULL && (at = arguments_next(&all)) != NULL) {
        size_t length = strnlen(at, most);
        to = stpcpy(to, to != text ? " " : "");
        to = length != 0 ? mempcpy(to, at, length) : stpcpy(to, "''");
        most = all.size;
    }
    if (text != NULL) {
        *to = '\0';
    }
    return text;
}

ROWS_CELL(process_command, struct run_process, process,
          process->command.size != 0 ? table_made_text(rows_join_arguments(process->command))
                                     : table_none())

ROWS_CELL(process_end, struct run_process, it, table_text(run_end_word(it->end)))

/* Numbers that are not known without run.json. */
ROWS_CELL(process_allocations, struct run_process, process,
          table_number_if(process->is_counted, process->allocations))
ROWS_CELL(process_total_bytes, struct run_process, process,
          table_number_if(process->is_counted, process->total_bytes))
ROWS_CELL(process_frees, struct run_process, process,
          table_number_if(process->is_counted, process->frees))
ROWS_CELL(process_live_blocks, struct run_process, process,
          table_number_if(process->is_counted, process->leaked_blocks))

ROWS_CELL(process_pid_text, struct run_process, it, spell_id(it->pid))

static struct table_cell process_name(const struct rows_of *of, const void *record) {
    (void)of;
    return table_text(run_name(record));
}

ROWS_CELL(process_duration, struct run_process, process,
          table_number(process->end_ns - process->start_ns))

#define OF(member) ROWS_FIELD(struct run_process, member)
static const struct table_column process_columns[PROCESS_COLUMNS] = {
    [PROCESS_PID] = {"pid", NULL, TABLE_COUNT, 0, "pid", "", OF(pid)},
    [PROCESS_PARENT] = {"parent_pid", NULL, TABLE_COUNT, 0, "parent_pid", "", OF(parent_pid)},
    [PROCESS_IMAGE] = {"image", "image", TABLE_COUNT, 0, "image",
                       "1, 2, ... of one process, in the order of exec", OF(image)},
    [PROCESS_PROGRAM] = {"program", NULL, TABLE_TEXT, 0, "program",
                         "the executable, or the name of a small forked child", OF(program)},
    [PROCESS_COMMAND] = {"command", NULL, TABLE_TEXT, 0, "command",
                         "its arguments; NULL: not known", .cell = process_command},
    [PROCESS_STARTED] = {"start_ns", "start", TABLE_DURATION, 0, "started",
                         "ns since the run's start", OF(start_ns)},
    [PROCESS_ENDED] = {"end_ns", NULL, TABLE_DURATION, 0, "ended", "ns", OF(end_ns)},
    [PROCESS_END] = {"end", "end", TABLE_TEXT, 8, "end", "ended, execed, killed or running",
                     .cell = process_end},
    [PROCESS_PEAK] = {"peak_bytes", "peak", TABLE_BYTES, 0, "peak_bytes", "the most that it held",
                      OF(peak_bytes)},
    [PROCESS_LIVE_BYTES] = {"live_bytes", "not freed", TABLE_BYTES, 0, "live_bytes",
                            "not freed at its end", OF(leaked_bytes)},
    [PROCESS_LOST] = {"lost", "lost", TABLE_COUNT, 0, "lost", "", OF(lost)},
    [PROCESS_ALLOCATIONS] = {"allocations", "allocations", TABLE_COUNT, 0, "allocations",
                             "NULL from here on: not known without run.json",
                             .cell = process_allocations},
    [PROCESS_TOTAL_BYTES] = {"total_bytes", "allocated", TABLE_BYTES, 0, "total_bytes",
                             "ever allocated", .cell = process_total_bytes},
    [PROCESS_FREES] = {"frees", NULL, TABLE_COUNT, 0, "frees", "", .cell = process_frees},
    [PROCESS_LIVE_BLOCKS] = {"live_blocks", NULL, TABLE_COUNT, 0, "live_blocks", "",
                             .cell = process_live_blocks},
    [PROCESS_FILE] = {"file", "file", TABLE_TEXT, 0, "file",
                      "in the run's folder; NULL: nothing was kept", OF(file)},
    [PROCESS_LIGHT] = {"light", NULL, TABLE_COUNT, 0, "light",
                       "1: a small forked child, which stands in its parent's file", OF(light)},
    [PROCESS_PID_TEXT] = {NULL, "pid", TABLE_TEXT, 8, .cell = process_pid_text},
    [PROCESS_NAME] = {"name", "name", TABLE_TEXT, 20, .cell = process_name},
    [PROCESS_DURATION] = {"duration_ns", "duration", TABLE_DURATION, 0, .cell = process_duration},
};
#undef OF

const struct rows rows_processes = {
    .name = "processes",
    .about = "those of a run, or the one of a file and its small forked children",
    ROWS_COLUMNS(process_columns),
    .count = modelrows_count_processes,
    .record = process_at,
};
