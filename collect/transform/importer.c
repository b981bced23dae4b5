/* SPDX-License-Identifier: MIT */
/* importer.c: what a heaptrack file tells, line by line, into a recording. See importer.h. */
#include "collect/transform/importer.h"

#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/replay/pairing.h"
#include "collect/transform/recordwriter.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum {
    THREAD = MEMTRACE_THREAD_OTHERS + 1,
    STREAM = 1,
    NODES_MOST = 1 << MEMTRACE_CONTEXT_BITS,
    MODULES_MOST = MEMTRACE_FRAME_MODULE_MASK + 1,
};

/* A growing array of numbers. */
struct numbers {
    uint64_t *items;
    size_t count;
    size_t room;
};

/* The program files, with ids. */
struct modules {
    struct memtrace_module *items; /* by id; 0 is none */
    size_t count;
    size_t room;
    struct numbermap ids;  /* hash of path and base -> id */
    struct numbers mapped; /* ids that are in memory now */
};

/* A block that lives: its number in the recording, and the one with the same key that began before
 * it. */
struct live_block {
    uint64_t number;
    uint64_t size;
    size_t before; /* place + 1; 0: none */
};

/* The blocks that live, by the keys under which the file ends them (heaptrackfile.h). Memory grows
 * with these and with the number of keys. */
struct live_blocks {
    struct blockmap addresses;
    struct numbers newest; /* by key: place + 1 of the one that began last; 0: none lives */
    struct live_block *items;
    size_t count;
    size_t room;
    size_t free; /* place + 1 of the first free one, linked by `before` */
};

struct importer {
    const char *from;
    const char *to;
    struct recordwriter *writer;
    struct memtrace_header program;
    struct modules modules;
    struct live_blocks live;
    struct numbers places; /* by number: frame; 0: left out of call paths */
    struct numbers paths;  /* by number: node */
    uint32_t next_node;
    uint32_t unknown_node; /* of blocks without a call path; 0: none yet */
    uint32_t sequence;     /* of the next block of events */
    uint64_t number;       /* of the block that began last */
    uint64_t time_ns;
    uint64_t live_bytes;
    void (*progress)(void *context, uint64_t done, uint64_t total);
    struct importer_result *result;
};

static void numbers_add(struct numbers *numbers, uint64_t number) {
    job_grow(&numbers->items, &numbers->room, numbers->count, sizeof number);
    numbers->items[numbers->count++] = number;
}

/* Numbers begin at 1; of 0 and of those that nothing has: 0. */
static uint64_t numbers_at(const struct numbers *numbers, uint64_t place) {
    return place != 0 && place <= numbers->count ? numbers->items[place - 1] : 0;
}

/* ---- Modules ---- */

/* The id of a module of this path and base, a new one where there is none; its range grows to hold
 * [start, end). 0 for "", and where there is no room for more. */
static uint32_t modules_id(struct modules *modules, const struct heaptrackfile_module *module) {
    uint64_t key = XXH3_64bits_withSeed(module->path, strlen(module->path), module->base);
    size_t id = (size_t)(uintptr_t)numbermap_get(&modules->ids, key);
    struct memtrace_module *item;
    if (module->path[0] == '\0') {
        return 0;
    }
    if (id == 0) {
        id = modules->count != 0 ? modules->count : 1;
        if (id == MODULES_MOST) {
            return 0;
        }
        job_reserve(&modules->items, &modules->room, id + 1, sizeof *item);
        numbermap_set(&modules->ids, key, (void *)(uintptr_t)id);
        modules->count = id + 1;
        modules->items[id] = (struct memtrace_module){
            .id = (uint32_t)id, .start = module->start, .end = module->end, .bias = module->base};
        snprintf(modules->items[id].path, sizeof modules->items[id].path, "%s", module->path);
    }
    item = &modules->items[id];
    item->start = module->start < item->start ? module->start : item->start;
    item->end = module->end > item->end ? module->end : item->end;
    return (uint32_t)id;
}

/* The id of what is mapped at an address; 0: nothing. */
static uint32_t modules_at(const struct modules *modules, uint64_t address) {
    for (size_t i = 0; i < modules->mapped.count; i++) {
        const struct memtrace_module *item = &modules->items[modules->mapped.items[i]];
        if (address >= item->start && address < item->end) {
            return item->id;
        }
    }
    return 0;
}

/* ---- Live blocks ---- */

/* A blockmap knows no key of 0. */
static uint64_t address_key(uint64_t address) {
    return address != 0 ? address : UINT64_MAX;
}

static void live_blocks_begin(struct live_blocks *live, enum heaptrackfile_key kind, uint64_t key,
                              uint64_t number, uint64_t size) {
    struct numbers *newest = &live->newest;
    size_t known = newest->count;
    size_t place = live->free;
    if (kind == HEAPTRACKFILE_ADDRESS) {
        const struct pairing_block block = {.size = size, .weight = number};
        blockmap_put(&live->addresses, address_key(key), &block);
        return;
    }
    if (key >= known) {
        job_reserve(&newest->items, &newest->room, key + 1, sizeof *newest->items);
        memset(newest->items + known, 0, (newest->room - known) * sizeof *newest->items);
        newest->count = newest->room;
    }
    if (place != 0) {
        live->free = live->items[place - 1].before;
    } else {
        job_grow(&live->items, &live->room, live->count, sizeof *live->items);
        place = ++live->count;
    }
    live->items[place - 1] = (struct live_block){number, size, newest->items[key]};
    newest->items[key] = place;
}

/* The block that ends; number 0: none is known. */
static struct live_block live_blocks_end(struct live_blocks *live, enum heaptrackfile_key kind,
                                         uint64_t key) {
    struct live_block ended = {0};
    struct pairing_block block;
    size_t place = key < live->newest.count ? live->newest.items[key] : 0;
    if (kind == HEAPTRACKFILE_ADDRESS) {
        return live->addresses.count != 0 &&
                       blockmap_take(&live->addresses, address_key(key), &block) == 1
                   ? (struct live_block){.number = block.weight, .size = block.size}
                   : ended;
    }
    if (place != 0) {
        ended = live->items[place - 1];
        live->newest.items[key] = ended.before;
        live->items[place - 1].before = live->free;
        live->free = place;
    }
    return ended;
}

/* ---- What the file tells: where ---- */

static void importer_program(void *context, const char *path) {
    struct importer *importer = context;
    snprintf(importer->program.executable, sizeof importer->program.executable, "%.*s",
             (int)sizeof importer->program.executable - 1, path);
}

/* Its arguments were joined by spaces; importer_split_command() takes them apart. */
static void importer_command(void *context, const char *text) {
    struct importer *importer = context;
    snprintf(importer->program.command, sizeof importer->program.command - 1, "%s", text);
}

static void importer_modules_gone(void *context) {
    ((struct importer *)context)->modules.mapped.count = 0;
}

/* A raw file calls the program itself "x". */
static void importer_module(void *context, const struct heaptrackfile_module *module) {
    struct importer *importer = context;
    struct heaptrackfile_module named = *module;
    uint32_t id;
    if (strcmp(module->path, "x") == 0) {
        named.path = importer->program.executable;
    }
    id = modules_id(&importer->modules, &named);
    if (id != 0) {
        numbers_add(&importer->modules.mapped, id);
    }
}

/* As a return address, which readers take one off. Small addresses of no module would be taken for
 * classes (format.h), so they get one that nothing has. */
static uint64_t importer_frame(const struct importer *importer, uint64_t module, uint64_t address) {
    if (module == 0 && address < MEMTRACE_FRAME_CLASSES) {
        return MEMTRACE_FRAME_EXACT | (MEMTRACE_FRAME_ADDRESS_MASK - importer->places.count);
    }
    return module << MEMTRACE_FRAME_MODULE_SHIFT | ((address + 1) & MEMTRACE_FRAME_ADDRESS_MASK);
}

/* heaptrack's readers leave these out: the caller is who allocates. */
static bool is_operator_new(const char *function) {
    return strncmp(function, "operator new", 12) == 0 &&
           (strcmp(function + 12, "(unsigned long)") == 0 ||
            strcmp(function + 12, "[](unsigned long)") == 0 ||
            strcmp(function + 12, "(unsigned int)") == 0 ||
            strcmp(function + 12, "[](unsigned int)") == 0);
}

static void importer_place(void *context, uint64_t address, const char *module,
                           const struct heaptrackfile_frame *frames, size_t count) {
    struct importer *importer = context;
    const struct heaptrackfile_module named = {module, 0, address, address + 1};
    uint32_t id = modules_id(&importer->modules, &named);
    uint64_t frame = importer_frame(importer, id, address);
    struct framename names[HEAPTRACKFILE_FRAMES] = {{.frame = frame}};
    if (count != 0 && is_operator_new(frames[0].function)) {
        numbers_add(&importer->places, 0);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        names[i] = (struct framename){.frame = frame,
                                      .function = frames[i].function,
                                      .file = frames[i].file,
                                      .line = frames[i].line};
    }
    /* One without a name is looked up nowhere else. */
    recordwriter_names(importer->writer, names, count != 0 ? count : 1);
    numbers_add(&importer->places, frame);
}

/* The id of a new node. */
static uint32_t importer_node(struct importer *importer, uint64_t frame, uint32_t parent) {
    const struct memtrace_recording_node node = {frame, parent, importer->next_node};
    recordwriter_node(importer->writer, &node);
    return importer->next_node++;
}

static void importer_path(void *context, bool is_address, uint64_t place, uint64_t parent) {
    struct importer *importer = context;
    uint32_t node = (uint32_t)numbers_at(&importer->paths, parent);
    uint64_t frame = is_address
                         ? importer_frame(importer, modules_at(&importer->modules, place), place)
                         : numbers_at(&importer->places, place);
    if (frame != 0 && importer->next_node == NODES_MOST) {
        importer->result->missing_paths++;
    } else if (frame != 0) {
        node = importer_node(importer, frame, node);
    }
    numbers_add(&importer->paths, node);
}

/* ---- What the file tells: when ---- */

static void importer_time(void *context, uint64_t time_ns) {
    struct importer *importer = context;
    importer->time_ns = time_ns > importer->time_ns ? time_ns : importer->time_ns;
}

static void importer_resident(void *context, uint64_t bytes) {
    struct importer *importer = context;
    const struct memtrace_sample sample = {
        .time_ns = importer->time_ns, .resident_bytes = bytes, .live_bytes = importer->live_bytes};
    recordwriter_sample(importer->writer, &sample);
}

static void importer_event(struct importer *importer, const struct event *event) {
    struct recordwriter *writer = importer->writer;
    if (!writer->has_events || event_encoder_count(writer->encoder) == RECORDWRITER_EVENTS) {
        struct memtrace_block_header block = {
            .stream = STREAM,
            .thread = THREAD,
            .first_number = event->kind == EVENT_ALLOC ? event->block.number : importer->number + 1,
            .first_sequence = importer->sequence,
            .end_sequence = importer->sequence + 1};
        importer->sequence++;
        recordwriter_begin_events(writer, &block);
    }
    recordwriter_event(writer, event);
}

static void importer_begin(void *context, enum heaptrackfile_key kind, uint64_t key, uint64_t size,
                           uint64_t path) {
    struct importer *importer = context;
    uint32_t node = (uint32_t)numbers_at(&importer->paths, path);
    struct event event = {.kind = EVENT_ALLOC,
                          .time_ns = importer->time_ns,
                          .block = {++importer->number, THREAD},
                          .address =
                              kind == HEAPTRACKFILE_ADDRESS ? key & MEMTRACE_FRAME_ADDRESS_MASK : 0,
                          .size = size};
    if (node == 0 && importer->unknown_node == 0) {
        importer->unknown_node = importer_node(importer, MEMTRACE_FRAME_UNKNOWN, 0);
    }
    event.context = node != 0 ? node : importer->unknown_node;
    live_blocks_begin(&importer->live, kind, key, importer->number, size);
    importer->live_bytes += size;
    importer->result->begins++;
    importer_event(importer, &event);
}

static void importer_end(void *context, enum heaptrackfile_key kind, uint64_t key) {
    struct importer *importer = context;
    struct live_block ended = live_blocks_end(&importer->live, kind, key);
    struct event event = {
        .kind = EVENT_FREE, .time_ns = importer->time_ns, .block = {ended.number, THREAD}};
    if (ended.number == 0) {
        /* Nothing is lost, but what comes next does not directly follow what was before. */
        event = (struct event){.kind = EVENT_LOST, .time_ns = importer->time_ns};
    } else {
        importer->live_bytes -= ended.size;
        importer->result->ends++;
    }
    importer_event(importer, &event);
}

static void importer_progress(void *context, uint64_t done, uint64_t total) {
    struct importer *importer = context;
    if (importer->progress != NULL) {
        importer->progress(NULL, done, total);
    }
}

/* ---- The whole ---- */

/* The longer of `length` and the path, if the command begins with that as its first argument. */
static size_t first_argument(const char *command, const char *path, size_t length) {
    size_t size = strlen(path);
    bool is_first =
        strncmp(command, path, size) == 0 && (command[size] == ' ' || command[size] == '\0');
    return is_first && size > length ? size : length;
}

/* The first argument may hold spaces where it is the path of the program or of a module. */
static void importer_split_command(struct importer *importer) {
    char *command = importer->program.command;
    size_t length = first_argument(command, importer->program.executable, strcspn(command, " "));
    for (size_t i = 1; i < importer->modules.count; i++) {
        length = first_argument(command, importer->modules.items[i].path, length);
    }
    for (char *at = strchr(command + length, ' '); at != NULL; at = strchr(at + 1, ' ')) {
        *at = '\0';
        while (at[1] == ' ') { /* two NULs would end it */
            memmove(at + 1, at + 2, strlen(at + 2) + 1);
        }
    }
}

/* Of interpreted files the program is the module that is called as the command is. */
static void importer_guess_program(struct importer *importer) {
    const char *name = pathname_base(importer->program.command);
    for (size_t i = 1; i < importer->modules.count; i++) {
        const char *path = importer->modules.items[i].path;
        if (importer->program.executable[0] == '\0' && strcmp(pathname_base(path), name) == 0) {
            importer_program(importer, path);
        }
    }
    if (importer->program.executable[0] == '\0') {
        importer_program(importer, importer->program.command);
    }
}

static void importer_write_program(struct importer *importer) {
    struct memtrace_header *program = &importer->program;
    const struct heaptrackfile_result *file = &importer->result->file;
    memcpy(program->magic, MEMTRACE_MAGIC, sizeof program->magic);
    program->version = MEMTRACE_FORMAT_VERSION;
    program->header_size = MEMTRACE_HEADER_SIZE;
    program->byte_order = MEMTRACE_BYTE_ORDER;
    program->end = MEMTRACE_HEADER_SIZE;
    program->state = MEMTRACE_STATE_ENDED;
    program->flags = MEMTRACE_FLAG_ADJACENT;
    importer->writer->is_incomplete =
        file->damage[0] != '\0' || file->bad_lines != 0 || file->is_incomplete;
    program->stacks = MEMTRACE_STACKS_FULL;
    program->start_monotonic_ns = 1;
    program->end_monotonic_ns = importer->time_ns + 1;
    program->clock_ns = importer->time_ns;
    recordwriter_table(importer->writer, MEMTRACE_BLOCK_PROGRAM, program, 1, sizeof *program);
}

static void importer_work(void *what) {
    struct importer *importer = what;
    const struct modules *modules = &importer->modules;
    const struct heaptrackfile_visitor visitor = {.context = importer,
                                                  .program = importer_program,
                                                  .command = importer_command,
                                                  .modules_gone = importer_modules_gone,
                                                  .module = importer_module,
                                                  .place = importer_place,
                                                  .path = importer_path,
                                                  .time = importer_time,
                                                  .resident = importer_resident,
                                                  .begin = importer_begin,
                                                  .end = importer_end,
                                                  .progress = importer_progress};
    struct memtrace_recording_header header = {.version = MEMTRACE_RECORDING_VERSION,
                                               .header_size = sizeof header,
                                               .byte_order = MEMTRACE_BYTE_ORDER};
    struct memtrace_thread_record thread = {.id = THREAD, .state = MEMTRACE_THREAD_ENDED};
    memcpy(header.magic, MEMTRACE_RECORDING_MAGIC, sizeof header.magic);
    importer->writer = recordwriter_open(importer->to, &header, BLOCK_PACK_LEVEL);
    heaptrackfile_read(importer->from, &visitor, &importer->result->file);
    importer_split_command(importer);
    importer_guess_program(importer);
    if (modules->count > 1) {
        recordwriter_table(importer->writer, MEMTRACE_BLOCK_MODULES, modules->items + 1,
                           modules->count - 1, sizeof *modules->items);
    }
    snprintf(thread.name, sizeof thread.name, "%.*s", (int)sizeof thread.name - 1,
             pathname_base(importer->program.executable));
    thread.end_ns = importer->time_ns;
    recordwriter_table(importer->writer, MEMTRACE_BLOCK_THREADS, &thread, 1, sizeof thread);
    importer_write_program(importer);
    recordwriter_close(importer->writer);
}

int importer_run(const char *from, const char *to,
                 void (*progress)(void *context, uint64_t done, uint64_t total),
                 struct importer_result *result, struct error *error) {
    struct importer importer = {.from = from,
                                .to = to,
                                .next_node = MEMTRACE_FIRST_CONTEXT,
                                .progress = progress,
                                .result = result};
    *result = (struct importer_result){0};
    return job_run(importer_work, &importer, NULL, error);
}
