/* SPDX-License-Identifier: MIT */
/*
 * anonymize.c: recordings without words. See anonymize.h.
 *
 * What is not known to be harmless is left out: blocks of other kinds, reserved fields, what stands
 * behind the end of a string.
 */
#include "collect/transform/anonymize.h"

#include "analyze/base/numbermap.h"
#include "analyze/model/roles.h"
#include "analyze/read/arguments.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Strings in tables ---- */

/* [vdso], [heap]: the kernel's words, not the program's. */
static bool is_kernels(const char *name, size_t size) {
    return size > 2 && name[0] == '[' && name[size - 1] == ']' && memchr(name, ':', size) == NULL;
}

static const char *hide(struct anonymize *anonymize, enum fakename_kind kind, const char *name,
                        size_t size) {
    bool kept = (kind == FAKENAME_MODULE || kind == FAKENAME_MAPPING) && is_kernels(name, size);
    return kept ? name : fakename_of(anonymize->fakenames, kind, name, size);
}

/* Replaces a string and all that lies behind it in its array. 0 or -1. */
static int hide_field(struct anonymize *anonymize, enum fakename_kind kind, char *field,
                      size_t capacity) {
    size_t size = strnlen(field, capacity);
    const char *hidden = hide(anonymize, kind, field, size);
    if (hidden == NULL) {
        return -1;
    }
    if (hidden == field) {
        memset(field + size, 0, capacity - size);
        return 0;
    }
    memset(field, 0, capacity);
    snprintf(field, capacity, "%s", hidden);
    return 0;
}

static int hide_command(struct anonymize *anonymize, struct memtrace_header *header) {
    struct arguments left = arguments_of(header);
    size_t capacity = sizeof header->command;
    char *hidden = calloc(1, capacity);
    size_t to = 0;
    int result = hidden != NULL ? 0 : -1;
    const char *at;
    while (result == 0 && (at = arguments_next(&left)) != NULL) {
        const char *name = fakename_of(anonymize->fakenames, FAKENAME_ARGUMENT, at, strlen(at));
        size_t length = name != NULL ? strlen(name) + 1 : 0;
        result = name != NULL ? 0 : -1;
        if (result != 0 || to + length + 1 >= capacity) {
            break;
        }
        memcpy(hidden + to, name, length);
        to += length;
    }
    if (result == 0) {
        memcpy(header->command, hidden, capacity);
        header->command_bytes = to;
    }
    free(hidden);
    return result;
}

/* Who ran it, and where. */
static void forget_host(struct memtrace_header *header) {
    header->parent_pid = header->uid = header->collector_pid = 0;
    header->process_start_ticks = 0;
    header->shadow_heap = header->pool_heap = header->foreign_heap = 0;
    header->owner = (struct memtrace_owner){0};
    if (header->malloc_by.place == MEMTRACE_MALLOC_LIBRARY) {
        memset(header->malloc_by.name, 0, sizeof header->malloc_by.name);
    } else if (header->malloc_by.place == MEMTRACE_MALLOC_INSIDE) { /* the allocator's stays */
        header->malloc_by.name[sizeof header->malloc_by.name - 1] = '\0';
        char *in = strstr(header->malloc_by.name, " in ");
        size_t length = in != NULL ? (size_t)(in - header->malloc_by.name) : 0;
        memset(header->malloc_by.name + length, 0, sizeof header->malloc_by.name - length);
    }
    memset(header->not_followed, 0, sizeof header->not_followed);
    header->run.not_reached = 0;
}

static int hide_program(struct anonymize *anonymize, struct transform_payload *payload) {
    struct memtrace_header *header = (struct memtrace_header *)(void *)payload->bytes;
    struct memtrace_recording recording;
    if (payload->size < sizeof *header) {
        return 0;
    }
    payload->size = sizeof *header;
    forget_host(header);
    memset(header->name, 0, sizeof header->name); /* it is called as its file is */
    memcpy(&recording, header->recording, sizeof recording);
    if (hide_field(anonymize, FAKENAME_PATH, recording.path, sizeof recording.path) != 0 ||
        hide_field(anonymize, FAKENAME_MODULE, header->executable, sizeof header->executable) !=
            0 ||
        hide_command(anonymize, header) != 0 ||
        hide_field(anonymize, FAKENAME_PATH, header->output, sizeof header->output) != 0 ||
        hide_field(anonymize, FAKENAME_PATH, header->log, sizeof header->log) != 0) {
        return -1;
    }
    memcpy(header->recording, &recording, sizeof recording);
    return 1;
}

static int hide_modules(struct anonymize *anonymize, struct transform_payload *payload) {
    struct memtrace_module *module = (struct memtrace_module *)(void *)payload->bytes;
    for (size_t left = payload->size / sizeof *module; left > 0; left--, module++) {
        uint32_t size =
            module->build_id_size <= sizeof module->build_id ? module->build_id_size : 0;
        module->build_id_size = size;
        memset(module->build_id + size, 0, sizeof module->build_id - size);
        if (fakename_bytes(anonymize->fakenames, FAKENAME_BUILD_ID, module->build_id, size) != 0 ||
            hide_field(anonymize, FAKENAME_MODULE, module->path, sizeof module->path) != 0) {
            return -1;
        }
    }
    return 1;
}

/* A name in each item of an array. */
static int hide_items(struct anonymize *anonymize, struct transform_payload *payload,
                      enum fakename_kind kind, size_t item_size, size_t offset, size_t capacity) {
    for (size_t at = 0; at + item_size <= payload->size; at += item_size) {
        if (hide_field(anonymize, kind, (char *)payload->bytes + at + offset, capacity) != 0) {
            return -1;
        }
    }
    return 1;
}

#define HIDE_ITEMS(type, kind)                                                                     \
    hide_items(context, payload, kind, sizeof(type), offsetof(type, name),                         \
               sizeof((type *)NULL)->name)

/* ---- Mappings: an array, then names of any length ---- */

/* The name of a mapping; modules are called what they are called elsewhere. */
static const char *hide_mapping(struct anonymize *anonymize, const char *name, size_t size) {
    const struct model *model = anonymize->model;
    for (size_t i = 0; i < model->module_count; i++) {
        if (strlen(model->modules[i].path) == size &&
            memcmp(model->modules[i].path, name, size) == 0) {
            return hide(anonymize, FAKENAME_MODULE, name, size);
        }
    }
    return hide(anonymize, FAKENAME_MAPPING, name, size);
}

/* New names, each mapping its own. */
static int hide_mappings(struct anonymize *anonymize, struct transform_payload *payload) {
    size_t head = payload->items * sizeof(struct memtrace_mapping);
    const char *old = (const char *)payload->bytes + head;
    char *names = NULL;
    size_t names_size = 0;
    FILE *out = head <= payload->size ? open_memstream(&names, &names_size) : NULL;
    size_t room = payload->size - head;
    bool good = out != NULL;
    unsigned char *bytes;
    for (size_t i = 0; good && i < payload->items; i++) {
        struct memtrace_mapping *mapping = (struct memtrace_mapping *)(void *)payload->bytes + i;
        const char *name = mapping->name < room ? old + mapping->name : "";
        size_t size = mapping->name < room ? strnlen(name, room - mapping->name) : 0;
        const char *hidden = hide_mapping(anonymize, name, size);
        good = hidden != NULL;
        if (good) {
            mapping->name = (uint32_t)ftell(out);
            fwrite(hidden, 1, hidden == name ? size : strlen(hidden), out);
            fputc('\0', out);
        }
    }
    if (out == NULL || fclose(out) != 0 || !good ||
        (bytes = realloc(payload->bytes, head + names_size + 1)) == NULL) {
        free(names);
        return head <= payload->size ? -1 : 0;
    }
    memcpy(bytes + head, names, names_size);
    payload->bytes = bytes;
    payload->size = head + names_size;
    free(names);
    return 1;
}

/* ---- The step ---- */

static int hide_table(void *context, enum memtrace_block_kind kind,
                      struct transform_payload *payload) {
    switch (kind) {
    case MEMTRACE_BLOCK_PROGRAM:
        return hide_program(context, payload);
    case MEMTRACE_BLOCK_MODULES:
        return hide_modules(context, payload);
    case MEMTRACE_BLOCK_THREADS:
        return HIDE_ITEMS(struct memtrace_thread_record, FAKENAME_THREAD);
    case MEMTRACE_BLOCK_POOLS:
        return HIDE_ITEMS(struct memtrace_recording_pool, FAKENAME_POOL);
    case MEMTRACE_BLOCK_SMAPS:
        return hide_mappings(context, payload);
    case MEMTRACE_BLOCK_SAMPLES:
    case MEMTRACE_BLOCK_CULLED:
    case MEMTRACE_BLOCK_GAP:
    case MEMTRACE_BLOCK_TOTALS:
    case MEMTRACE_BLOCK_THINNED:
        return 1;
    default:
        return 0;
    }
}

static int hide_event(void *context, const struct memtrace_block_header *stream,
                      struct event *event) {
    struct anonymize *anonymize = context;
    (void)stream;
    if (event->kind == EVENT_MARK && event->text_size != 0) {
        event->text =
            fakename_of(anonymize->fakenames, FAKENAME_MARK, event->text, event->text_size);
        event->text_size = event->text != NULL ? (uint32_t)strlen(event->text) : 0;
        return event->text != NULL ? 1 : -1;
    }
    return 1;
}

static void hide_header(void *context, struct memtrace_recording_header *header) {
    (void)context;
    header->process_start_ticks = 0;
}

/* Names by which tools know where a program begins; every program has them. */
static bool is_public(const char *function) {
    return (roles_of(function, NULL) & (ROLES_MAIN | ROLES_STARTUP)) != 0;
}

static const char *hide_function(struct anonymize *anonymize, const char *function) {
    return function == NULL || is_public(function)
               ? function
               : fakename_of(anonymize->fakenames, FAKENAME_FUNCTION, function, strlen(function));
}

static const char *hide_file(struct anonymize *anonymize, const char *file) {
    return file == NULL ? NULL
                        : fakename_of(anonymize->fakenames, FAKENAME_FILE, file, strlen(file));
}

static int no_memory(struct error *error) {
    return error_set(error, "out of memory while hiding names");
}

/* All functions at one frame, under other names. 0 or -1. */
static int write_frame(struct anonymize *anonymize, uint64_t frame, struct recordwriter *writer) {
    size_t count;
    const struct names_frame *real = names_frames(anonymize->names, frame, &count);
    struct framename *hidden = calloc(count, sizeof *hidden);
    bool good = hidden != NULL;
    int result;
    for (size_t i = 0; good && i < count; i++) {
        hidden[i] = (struct framename){.frame = frame,
                                       .function = hide_function(anonymize, real[i].function),
                                       .file = hide_file(anonymize, real[i].file),
                                       .line = real[i].line,
                                       .column = real[i].column};
        good = (hidden[i].function != NULL) == (real[i].function != NULL) &&
               (hidden[i].file != NULL) == (real[i].file != NULL);
    }
    result = good ? recordwriter_names(writer, hidden, count) : no_memory(writer->error);
    free(hidden);
    return result;
}

/* Names for every frame, so that nobody looks any of them up. */
static int write_names(void *context, struct recordwriter *writer) {
    struct anonymize *anonymize = context;
    const struct model *model = anonymize->model;
    struct numbermap seen = {0};
    int result = 0;
    for (size_t i = 1; i < model->node_count && result == 0; i++) {
        uint64_t frame = model->nodes[i].frame;
        if (frame < MEMTRACE_FRAME_CLASSES || numbermap_get(&seen, frame) != NULL) {
            continue;
        }
        result = numbermap_put(&seen, frame, anonymize) == 0 ? write_frame(anonymize, frame, writer)
                                                             : no_memory(writer->error);
    }
    numbermap_free(&seen);
    return result;
}

struct transform_step anonymize_step(struct anonymize *anonymize) {
    return (struct transform_step){.header = hide_header,
                                   .event = hide_event,
                                   .table = hide_table,
                                   .finish = write_names,
                                   .context = anonymize};
}
