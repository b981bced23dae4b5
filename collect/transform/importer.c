/* SPDX-License-Identifier: MIT */
/* importer.c: what a heaptrack file tells, line by line, into blocks of a recording. See
 * importer.h. */
#include "collect/transform/importer.h"

#include "analyze/read/eventcode.h"
#include "analyze/read/nodecode.h"
#include "collect/transform/importlive.h"
#include "collect/transform/importmodules.h"
#include "collect/transform/nameblocks.h"

#include <stdlib.h>
#include <string.h>

enum {
    THREAD = MEMTRACE_THREAD_OTHERS + 1,
    STREAM = 1,
    BLOCK_EVENTS = 1 << 16,
    SAMPLES = 1 << 12, /* in a block */
    NODES_MOST = 1 << MEMTRACE_CONTEXT_BITS,
};

/* A growing array of numbers. */
struct numbers {
    uint64_t *items;
    size_t count;
    size_t capacity;
};

struct importer {
    struct recordfile file;
    struct memtrace_header program;
    struct event_encoder *encoder;
    struct nameblocks *names;
    struct importmodules modules;
    struct importlive live;
    struct numbers places;                 /* by number: frame; 0: left out of call paths */
    struct numbers paths;                  /* by number: node */
    struct memtrace_recording_node *nodes; /* not written yet */
    size_t node_count;
    size_t node_capacity;
    uint32_t next_node;
    uint32_t unknown_node; /* of blocks without a call path; 0: none yet */
    struct memtrace_sample samples[SAMPLES];
    size_t sample_count;
    uint32_t sequence; /* of the next block of events */
    uint64_t number;   /* of the block that began last */
    uint64_t time_ns;
    uint64_t live_bytes;
    void (*progress)(void *context, uint64_t done, uint64_t total);
    struct importer_result *result;
    struct error *error;
};

/* As much of a text as there is room for. */
static void copy_text(char *to, size_t room, const char *text) {
    size_t size = strlen(text);
    size = size < room ? size : room - 1;
    memmove(to, text, size);
    to[size] = '\0';
}

static int no_memory(struct importer *importer) {
    return error_set(importer->error, "out of memory");
}

static int add_number(struct importer *importer, struct numbers *numbers, uint64_t number) {
    if (numbers->count == numbers->capacity) {
        size_t capacity = numbers->capacity != 0 ? numbers->capacity * 2 : 1024;
        uint64_t *grown = reallocarray(numbers->items, capacity, sizeof *grown);
        if (grown == NULL) {
            return no_memory(importer);
        }
        numbers->items = grown;
        numbers->capacity = capacity;
    }
    numbers->items[numbers->count++] = number;
    return 0;
}

/* Numbers begin at 1; of 0 and of those that nothing has: 0. */
static uint64_t number_at(const struct numbers *numbers, uint64_t place) {
    return place != 0 && place <= numbers->count ? numbers->items[place - 1] : 0;
}

/* ---- Blocks of the recording ---- */

static int write_nodes(struct importer *importer) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_NODES,
                                          .items = (uint32_t)importer->node_count};
    struct varint_writer payload = {0};
    int result;
    if (importer->node_count == 0) {
        return 0;
    }
    result = nodecode_pack(importer->nodes, importer->node_count, &payload) == 0
                 ? recordfile_append(&importer->file, &block, payload.bytes, payload.size,
                                     importer->error)
                 : no_memory(importer);
    free(payload.bytes);
    importer->node_count = 0;
    return result;
}

static int write_samples(struct importer *importer) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_SAMPLES,
                                          .items = (uint32_t)importer->sample_count};
    size_t size = importer->sample_count * sizeof importer->samples[0];
    if (importer->sample_count == 0) {
        return 0;
    }
    block.first_ns = importer->samples[0].time_ns;
    block.last_ns = importer->samples[importer->sample_count - 1].time_ns;
    importer->sample_count = 0;
    return recordfile_append(&importer->file, &block, importer->samples, size, importer->error);
}

/* The nodes that events need stand before them. */
static int write_events(struct importer *importer) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_EVENTS,
                                          .stream = STREAM,
                                          .first_sequence = importer->sequence,
                                          .end_sequence = importer->sequence + 1};
    const void *payload;
    size_t size;
    if (event_encoder_count(importer->encoder) == 0) {
        return 0;
    }
    payload = event_encoder_finish(importer->encoder, &size, &block);
    if (payload == NULL) {
        return no_memory(importer);
    }
    if (write_nodes(importer) != 0 ||
        recordfile_append(&importer->file, &block, payload, size, importer->error) != 0) {
        return -1;
    }
    importer->sequence++;
    event_encoder_start(importer->encoder, THREAD, importer->number + 1);
    return 0;
}

static int add_event(struct importer *importer, const struct event *event) {
    if (event_encoder_add(importer->encoder, event) != 0) {
        return no_memory(importer);
    }
    return 0;
}

/* ---- What the file tells: where ---- */

static int take_program(void *context, const char *path) {
    struct importer *importer = context;
    copy_text(importer->program.executable, sizeof importer->program.executable, path);
    return 0;
}

/* Its arguments were joined by spaces; split_command takes them apart. */
static int take_command(void *context, const char *text) {
    struct importer *importer = context;
    copy_text(importer->program.command, sizeof importer->program.command - 1, text);
    return 0;
}

static int take_modules_gone(void *context) {
    importmodules_unmap_all(&((struct importer *)context)->modules);
    return 0;
}

/* A raw file calls the program itself "x". */
static int take_module(void *context, const struct heaptrackfile_module *module) {
    struct importer *importer = context;
    struct heaptrackfile_module named = *module;
    if (strcmp(module->path, "x") == 0) {
        named.path = importer->program.executable;
    }
    return importmodules_map(&importer->modules, &named) == 0 ? 0 : no_memory(importer);
}

/* As a return address, which readers take one off. Small addresses of no module would be taken for
 * classes (format.h), so they get one that nothing has. */
static uint64_t make_frame(const struct importer *importer, uint64_t module, uint64_t address) {
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

static int add_names(struct importer *importer, uint64_t frame,
                     const struct heaptrackfile_frame *frames, size_t count) {
    struct framename names[HEAPTRACKFILE_FRAMES] = {{.frame = frame}};
    for (size_t i = 0; i < count; i++) {
        names[i] = (struct framename){.frame = frame,
                                      .function = frames[i].function,
                                      .file = frames[i].file,
                                      .line = frames[i].line};
    }
    /* One without a name is looked up nowhere else. */
    return nameblocks_add(importer->names, names, count != 0 ? count : 1, importer->error);
}

static int take_place(void *context, uint64_t address, const char *module,
                      const struct heaptrackfile_frame *frames, size_t count) {
    struct importer *importer = context;
    const struct heaptrackfile_module named = {module, 0, address, address + 1};
    int64_t id = importmodules_id(&importer->modules, &named);
    uint64_t frame;
    if (id < 0) {
        return no_memory(importer);
    }
    if (count != 0 && is_operator_new(frames[0].function)) {
        return add_number(importer, &importer->places, 0);
    }
    frame = make_frame(importer, (uint64_t)id, address);
    return add_names(importer, frame, frames, count) == 0
               ? add_number(importer, &importer->places, frame)
               : -1;
}

/* The id of a new node; 0: out of memory. */
static uint32_t add_node(struct importer *importer, uint64_t frame, uint32_t parent) {
    if (importer->node_count == importer->node_capacity) {
        size_t capacity = importer->node_capacity != 0 ? importer->node_capacity * 2 : 1024;
        struct memtrace_recording_node *grown =
            reallocarray(importer->nodes, capacity, sizeof *grown);
        if (grown == NULL) {
            return 0;
        }
        importer->nodes = grown;
        importer->node_capacity = capacity;
    }
    importer->nodes[importer->node_count++] =
        (struct memtrace_recording_node){frame, parent, importer->next_node};
    return importer->next_node++;
}

static int take_path(void *context, bool is_address, uint64_t place, uint64_t parent) {
    struct importer *importer = context;
    uint32_t node = (uint32_t)number_at(&importer->paths, parent);
    uint64_t frame = is_address
                         ? make_frame(importer, importmodules_at(&importer->modules, place), place)
                         : number_at(&importer->places, place);
    if (frame != 0 && importer->next_node == NODES_MOST) {
        importer->result->missing_paths++;
    } else if (frame != 0) {
        node = add_node(importer, frame, node);
        if (node == 0) {
            return no_memory(importer);
        }
    }
    return add_number(importer, &importer->paths, node);
}

/* ---- What the file tells: when ---- */

static int take_time(void *context, uint64_t time_ns) {
    struct importer *importer = context;
    importer->time_ns = time_ns > importer->time_ns ? time_ns : importer->time_ns;
    return 0;
}

static int take_resident(void *context, uint64_t bytes) {
    struct importer *importer = context;
    importer->samples[importer->sample_count++] = (struct memtrace_sample){
        .time_ns = importer->time_ns, .resident_bytes = bytes, .live_bytes = importer->live_bytes};
    return importer->sample_count == SAMPLES ? write_samples(importer) : 0;
}

/* The context of blocks with this call path; 0: out of memory. */
static uint32_t context_of(struct importer *importer, uint64_t path) {
    uint32_t node = (uint32_t)number_at(&importer->paths, path);
    if (node == 0 && importer->unknown_node == 0) {
        importer->unknown_node = add_node(importer, MEMTRACE_FRAME_UNKNOWN, 0);
    }
    return node != 0 ? node : importer->unknown_node;
}

static int take_begin(void *context, enum heaptrackfile_key kind, uint64_t key, uint64_t size,
                      uint64_t path) {
    struct importer *importer = context;
    struct event event = {.kind = EVENT_ALLOC,
                          .context = context_of(importer, path),
                          .time_ns = importer->time_ns,
                          .block = {++importer->number, THREAD},
                          .address =
                              kind == HEAPTRACKFILE_ADDRESS ? key & MEMTRACE_FRAME_ADDRESS_MASK : 0,
                          .size = size};
    if (event.context == 0 ||
        importlive_begin(&importer->live, kind, key, importer->number, size) != 0) {
        return no_memory(importer);
    }
    importer->live_bytes += size;
    importer->result->begins++;
    if (add_event(importer, &event) != 0) {
        return -1;
    }
    return event_encoder_count(importer->encoder) >= BLOCK_EVENTS ? write_events(importer) : 0;
}

static int take_end(void *context, enum heaptrackfile_key kind, uint64_t key) {
    struct importer *importer = context;
    struct importlive_block ended = importlive_end(&importer->live, kind, key);
    struct event event = {
        .kind = EVENT_FREE, .time_ns = importer->time_ns, .block = {ended.number, THREAD}};
    if (ended.number == 0) {
        /* Nothing is lost, but what comes next does not directly follow what was before. */
        event = (struct event){.kind = EVENT_LOST, .time_ns = importer->time_ns};
        importer->result->unknown_ends++;
    } else {
        importer->live_bytes -= ended.size;
        importer->result->ends++;
    }
    if (add_event(importer, &event) != 0) {
        return -1;
    }
    return event_encoder_count(importer->encoder) >= BLOCK_EVENTS ? write_events(importer) : 0;
}

static void take_progress(void *context, uint64_t done, uint64_t total) {
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
static void split_command(struct importer *importer) {
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
static void guess_program(struct importer *importer) {
    const char *slash = strrchr(importer->program.command, '/');
    const char *name = slash != NULL ? slash + 1 : importer->program.command;
    for (size_t i = 1; i < importer->modules.count; i++) {
        const char *path = importer->modules.items[i].path;
        const char *last = strrchr(path, '/');
        if (importer->program.executable[0] == '\0' &&
            strcmp(last != NULL ? last + 1 : path, name) == 0) {
            take_program(importer, path);
        }
    }
    if (importer->program.executable[0] == '\0') {
        take_program(importer, importer->program.command);
    }
}

static int write_program(struct importer *importer) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_PROGRAM, .items = 1};
    struct memtrace_header *program = &importer->program;
    memcpy(program->magic, MEMTRACE_MAGIC, sizeof program->magic);
    program->version = MEMTRACE_FORMAT_VERSION;
    program->header_size = MEMTRACE_HEADER_SIZE;
    program->byte_order = MEMTRACE_BYTE_ORDER;
    program->end = MEMTRACE_HEADER_SIZE;
    program->state = MEMTRACE_STATE_ENDED;
    program->flags = MEMTRACE_FLAG_ADJACENT;
    program->stacks = MEMTRACE_STACKS_FULL;
    program->start_monotonic_ns = 1;
    program->end_monotonic_ns = importer->time_ns + 1;
    program->clock_ns = importer->time_ns;
    return recordfile_append(&importer->file, &block, program, sizeof *program, importer->error);
}

static int write_thread(struct importer *importer) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_THREADS, .items = 1};
    struct memtrace_thread_record thread = {
        .id = THREAD, .state = MEMTRACE_THREAD_ENDED, .end_ns = importer->time_ns};
    const char *slash = strrchr(importer->program.executable, '/');
    copy_text(thread.name, sizeof thread.name,
              slash != NULL ? slash + 1 : importer->program.executable);
    return recordfile_append(&importer->file, &block, &thread, sizeof thread, importer->error);
}

static int close_names(struct importer *importer, bool finish) {
    struct nameblocks *names = importer->names;
    importer->names = NULL;
    return names != NULL ? nameblocks_close(names, finish, importer->error) : 0;
}

static int write_rest(struct importer *importer) {
    split_command(importer);
    guess_program(importer);
    if (write_events(importer) != 0 || write_nodes(importer) != 0 || write_samples(importer) != 0 ||
        close_names(importer, true) != 0 ||
        importmodules_write(&importer->modules, &importer->file, importer->error) != 0 ||
        write_thread(importer) != 0 || write_program(importer) != 0) {
        return -1;
    }
    return recordfile_close(&importer->file, importer->error);
}

static int convert(struct importer *importer, const char *from, const char *to) {
    const struct heaptrackfile_visitor visitor = {.context = importer,
                                                  .program = take_program,
                                                  .command = take_command,
                                                  .modules_gone = take_modules_gone,
                                                  .module = take_module,
                                                  .place = take_place,
                                                  .path = take_path,
                                                  .time = take_time,
                                                  .resident = take_resident,
                                                  .begin = take_begin,
                                                  .end = take_end,
                                                  .progress = take_progress};
    struct memtrace_recording_header header = {.version = MEMTRACE_RECORDING_VERSION,
                                               .header_size = sizeof header,
                                               .byte_order = MEMTRACE_BYTE_ORDER};
    memcpy(header.magic, MEMTRACE_RECORDING_MAGIC, sizeof header.magic);
    importer->encoder = event_encoder_new(0);
    importer->names = nameblocks_new(&importer->file);
    if (importer->encoder == NULL || importer->names == NULL) {
        return no_memory(importer);
    }
    event_encoder_start(importer->encoder, THREAD, 1);
    if (recordfile_create(&importer->file, to, &header, importer->error) != 0 ||
        heaptrackfile_read(from, &visitor, &importer->result->file, importer->error) != 0) {
        return -1;
    }
    return write_rest(importer);
}

int importer_run(const char *from, const char *to,
                 void (*progress)(void *context, uint64_t done, uint64_t total),
                 struct importer_result *result, struct error *error) {
    struct importer *importer = calloc(1, sizeof *importer);
    int status;
    *result = (struct importer_result){0};
    if (importer == NULL) {
        return error_set(error, "out of memory");
    }
    importer->file = RECORDFILE_NONE;
    importer->next_node = MEMTRACE_FIRST_CONTEXT;
    importer->progress = progress;
    importer->result = result;
    importer->error = error;
    status = convert(importer, from, to);
    close_names(importer, false);
    recordfile_release(&importer->file);
    event_encoder_free(importer->encoder);
    importmodules_free(&importer->modules);
    importlive_free(&importer->live);
    free(importer->places.items);
    free(importer->paths.items);
    free(importer->nodes);
    free(importer);
    return status;
}
