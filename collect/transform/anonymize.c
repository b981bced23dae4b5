/* SPDX-License-Identifier: MIT */
/*
 * anonymize.c: recordings without words, and made-up names. See anonymize.h.
 *
 * What is not known to be harmless is left out: blocks of other kinds, reserved fields, what stands
 * behind the end of a string.
 */
#define XXH_INLINE_ALL
#include "collect/transform/anonymize.h"

#include "analyze/base/arena.h"
#include "analyze/base/job.h"
#include "analyze/base/numbermap.h"
#include "analyze/model/roles.h"
#include "analyze/read/arguments.h"

#include <inttypes.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* ---- Made-up names ---- */

enum { DIGEST_BYTES = 32 /* of SHA-256 */ };
enum { HASH_BYTES = 6 }; /* of a keyed name: a million names have one in 500 chance of a repeat */

static const char *const prefixes[FAKENAME_KINDS] = {
    "function", "file", "module", "path", "argument", "thread", "pool", "mark", "mapping", "build"};

/* A name that was met. */
struct known {
    enum fakename_kind kind;
    size_t size;
    uint64_t number; /* of its kind, from 1 on */
    char fakename[FAKENAME_MOST];
    char name[];
};

struct fakenames {
    EVP_MAC_CTX *hash;      /* NULL: without a key */
    struct numbermap known; /* by hash of kind and name */
    uint64_t counts[FAKENAME_KINDS];
    struct arena memory;
};

static void fakenames_undo(void *what) {
    struct fakenames *fakenames = what;
    EVP_MAC_CTX_free(fakenames->hash);
    numbermap_free(&fakenames->known);
    arena_free(&fakenames->memory);
}

struct fakenames *fakenames_new(const void *key, size_t key_size) {
    struct fakenames *fakenames = job_alloc(sizeof *fakenames);
    char digest[] = "SHA256";
    const OSSL_PARAM settings[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end()};
    EVP_MAC *kind;
    job_undo(fakenames_undo, fakenames);
    if (key_size != 0) {
        kind = EVP_MAC_fetch(NULL, "HMAC", NULL);
        fakenames->hash = kind != NULL ? EVP_MAC_CTX_new(kind) : NULL;
        EVP_MAC_free(kind); /* which lives as long as what it is needed for */
        if (fakenames->hash == NULL ||
            EVP_MAC_init(fakenames->hash, key, key_size, settings) != 1) {
            job_fail_memory();
        }
    }
    return fakenames;
}

/* DIGEST_BYTES that tell the name to nobody without the key. */
static void fakename_hash(struct fakenames *fakenames, enum fakename_kind kind, const void *name,
                          size_t size, uint8_t *digest) {
    size_t got;
    if (EVP_MAC_init(fakenames->hash, NULL, 0, NULL) != 1 ||
        EVP_MAC_update(fakenames->hash, (const uint8_t *)prefixes[kind],
                       strlen(prefixes[kind]) + 1) != 1 ||
        EVP_MAC_update(fakenames->hash, name, size) != 1 ||
        EVP_MAC_final(fakenames->hash, digest, &got, DIGEST_BYTES) != 1) {
        job_fail_memory();
    }
}

static void fakename_make(struct fakenames *fakenames, struct known *known) {
    const char *prefix = prefixes[known->kind];
    uint8_t digest[DIGEST_BYTES];
    int used;
    if (fakenames->hash == NULL) {
        snprintf(known->fakename, sizeof known->fakename, "%s_%" PRIu64, prefix, known->number);
        return;
    }
    fakename_hash(fakenames, known->kind, known->name, known->size, digest);
    used = snprintf(known->fakename, sizeof known->fakename, "%s_", prefix);
    for (size_t i = 0; i < HASH_BYTES; i++) {
        used += snprintf(known->fakename + used, sizeof known->fakename - (size_t)used, "%02x",
                         digest[i]);
    }
}

static const struct known *fakename_find(struct fakenames *fakenames, enum fakename_kind kind,
                                         const void *name, size_t size) {
    uint64_t hash = XXH3_64bits_withSeed(name, size, kind);
    struct known *known;
    while ((known = numbermap_get(&fakenames->known, hash)) != NULL) {
        if (known->kind == kind && known->size == size && memcmp(known->name, name, size) == 0) {
            return known;
        }
        hash++;
    }
    known = arena_alloc(&fakenames->memory, sizeof *known + size);
    if (known == NULL || numbermap_put(&fakenames->known, hash, known) != 0) {
        job_fail_memory();
    }
    *known = (struct known){.kind = kind, .size = size, .number = ++fakenames->counts[kind]};
    memcpy(known->name, name, size);
    fakename_make(fakenames, known);
    return known;
}

const char *fakename_of(struct fakenames *fakenames, enum fakename_kind kind, const char *name,
                        size_t size) {
    return size != 0 ? fakename_find(fakenames, kind, name, size)->fakename : "";
}

void fakename_bytes(struct fakenames *fakenames, enum fakename_kind kind, uint8_t *bytes,
                    size_t size) {
    uint8_t digest[DIGEST_BYTES] = {0};
    const struct known *known = size != 0 ? fakename_find(fakenames, kind, bytes, size) : NULL;
    if (known != NULL && fakenames->hash != NULL) {
        fakename_hash(fakenames, kind, known->name, size, digest);
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = digest[i % sizeof digest];
    }
    /* The number at the end, most significant byte first. */
    for (size_t i = 0; fakenames->hash == NULL && i < size && i < sizeof known->number; i++) {
        bytes[size - 1 - i] = (uint8_t)(known->number >> (8 * i));
    }
}

/* ---- Strings in tables ---- */

/* [vdso], [heap] stay: they are the kernel's words, not the program's. */
static const char *anonymize_name(struct anonymize *anonymize, enum fakename_kind kind,
                                  const char *name, size_t size) {
    bool is_kernels =
        size > 2 && name[0] == '[' && name[size - 1] == ']' && memchr(name, ':', size) == NULL;
    bool kept = (kind == FAKENAME_MODULE || kind == FAKENAME_MAPPING) && is_kernels;
    return kept ? name : fakename_of(anonymize->fakenames, kind, name, size);
}

/* Replaces a string and all that lies behind it in its array. */
static void anonymize_field(struct anonymize *anonymize, enum fakename_kind kind, char *field,
                            size_t capacity) {
    size_t size = strnlen(field, capacity);
    const char *hidden = anonymize_name(anonymize, kind, field, size);
    if (hidden == field) {
        memset(field + size, 0, capacity - size);
    } else {
        memset(field, 0, capacity);
        snprintf(field, capacity, "%s", hidden);
    }
}

static void anonymize_command(struct anonymize *anonymize, struct memtrace_header *header) {
    struct arguments left = arguments_of(header);
    char hidden[sizeof header->command] = "";
    size_t to = 0;
    const char *at;
    while ((at = arguments_next(&left)) != NULL) {
        const char *name = fakename_of(anonymize->fakenames, FAKENAME_ARGUMENT, at, strlen(at));
        size_t length = strlen(name) + 1;
        if (to + length + 1 >= sizeof hidden) {
            break;
        }
        memcpy(hidden + to, name, length);
        to += length;
    }
    memcpy(header->command, hidden, sizeof hidden);
    header->command_bytes = to;
}

/* Who ran it, and where. */
static void anonymize_host(struct memtrace_header *header) {
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

static bool anonymize_program(struct anonymize *anonymize, struct transform_payload *payload) {
    struct memtrace_header *header = (struct memtrace_header *)(void *)payload->bytes;
    struct memtrace_recording recording;
    if (payload->size < sizeof *header) {
        return false;
    }
    payload->size = sizeof *header;
    anonymize_host(header);
    memset(header->name, 0, sizeof header->name); /* it is called as its file is */
    memcpy(&recording, header->recording, sizeof recording);
    anonymize_field(anonymize, FAKENAME_PATH, recording.path, sizeof recording.path);
    anonymize_field(anonymize, FAKENAME_MODULE, header->executable, sizeof header->executable);
    anonymize_command(anonymize, header);
    anonymize_field(anonymize, FAKENAME_PATH, header->output, sizeof header->output);
    anonymize_field(anonymize, FAKENAME_PATH, header->log, sizeof header->log);
    memcpy(header->recording, &recording, sizeof recording);
    return true;
}

static void anonymize_modules(struct anonymize *anonymize, struct transform_payload *payload) {
    struct memtrace_module *module = (struct memtrace_module *)(void *)payload->bytes;
    for (size_t left = payload->size / sizeof *module; left > 0; left--, module++) {
        uint32_t size =
            module->build_id_size <= sizeof module->build_id ? module->build_id_size : 0;
        module->build_id_size = size;
        memset(module->build_id + size, 0, sizeof module->build_id - size);
        fakename_bytes(anonymize->fakenames, FAKENAME_BUILD_ID, module->build_id, size);
        anonymize_field(anonymize, FAKENAME_MODULE, module->path, sizeof module->path);
    }
}

/* A name in each item of an array. */
static void anonymize_items(struct anonymize *anonymize, struct transform_payload *payload,
                            enum fakename_kind kind, size_t item_size, size_t offset,
                            size_t capacity) {
    for (size_t at = 0; at + item_size <= payload->size; at += item_size) {
        anonymize_field(anonymize, kind, (char *)payload->bytes + at + offset, capacity);
    }
}

/* ---- Mappings: an array, then names of any length ---- */

/* The name of a mapping; modules are called what they are called elsewhere. */
static const char *anonymize_mapping(struct anonymize *anonymize, const char *name, size_t size) {
    const struct model *model = anonymize->model;
    enum fakename_kind kind = FAKENAME_MAPPING;
    for (size_t i = 0; i < model->module_count && kind == FAKENAME_MAPPING; i++) {
        if (strlen(model->modules[i].path) == size &&
            memcmp(model->modules[i].path, name, size) == 0) {
            kind = FAKENAME_MODULE;
        }
    }
    return anonymize_name(anonymize, kind, name, size);
}

/* New names, each mapping its own. */
static bool anonymize_mappings(struct anonymize *anonymize, struct transform_payload *payload) {
    size_t head = payload->items * sizeof(struct memtrace_mapping);
    const char *old = (const char *)payload->bytes + head;
    size_t old_size = payload->size - head;
    unsigned char *made = NULL;
    size_t size = head;
    size_t room = 0;
    if (head > payload->size) {
        return false;
    }
    job_reserve(&made, &room, head + 1, 1);
    for (size_t i = 0; i < payload->items; i++) {
        struct memtrace_mapping *mapping = (struct memtrace_mapping *)(void *)payload->bytes + i;
        const char *name = mapping->name < old_size ? old + mapping->name : "";
        size_t name_size = mapping->name < old_size ? strnlen(name, old_size - mapping->name) : 0;
        const char *hidden = anonymize_mapping(anonymize, name, name_size);
        size_t length = hidden == name ? name_size : strlen(hidden);
        job_reserve(&made, &room, size + length + 1, 1);
        memcpy(made + size, hidden, length);
        made[size + length] = '\0';
        mapping->name = (uint32_t)(size - head);
        size += length + 1;
    }
    memcpy(made, payload->bytes, head);
    job_release(payload->bytes);
    payload->bytes = made;
    payload->size = size;
    return true;
}

#define ANONYMIZE_ITEMS(type, kind)                                                                \
    anonymize_items(context, payload, kind, sizeof(type), offsetof(type, name),                    \
                    sizeof((type *)NULL)->name)

/* ---- The step ---- */

static bool anonymize_table(void *context, enum memtrace_block_kind kind,
                            struct transform_payload *payload) {
    switch (kind) {
    case MEMTRACE_BLOCK_PROGRAM:
        return anonymize_program(context, payload);
    case MEMTRACE_BLOCK_SMAPS:
        return anonymize_mappings(context, payload);
    case MEMTRACE_BLOCK_MODULES:
        anonymize_modules(context, payload);
        return true;
    case MEMTRACE_BLOCK_THREADS:
        ANONYMIZE_ITEMS(struct memtrace_thread_record, FAKENAME_THREAD);
        return true;
    case MEMTRACE_BLOCK_POOLS:
        ANONYMIZE_ITEMS(struct memtrace_recording_pool, FAKENAME_POOL);
        return true;
    case MEMTRACE_BLOCK_SAMPLES:
    case MEMTRACE_BLOCK_CULLED:
    case MEMTRACE_BLOCK_GAP:
    case MEMTRACE_BLOCK_TOTALS:
    case MEMTRACE_BLOCK_THINNED:
        return true;
    default:
        return false;
    }
}

static bool anonymize_event(void *context, const struct memtrace_block_header *stream,
                            struct event *event) {
    struct anonymize *anonymize = context;
    (void)stream;
    if (event->kind == EVENT_MARK && event->text_size != 0) {
        event->text =
            fakename_of(anonymize->fakenames, FAKENAME_MARK, event->text, event->text_size);
        event->text_size = (uint32_t)strlen(event->text);
    }
    return true;
}

static void anonymize_header(void *context, struct memtrace_recording_header *header) {
    (void)context;
    header->process_start_ticks = 0;
}

/* All functions at one frame, under other names. Those by which tools know where a program begins
 * stay: every program has them. */
static void anonymize_frame(struct anonymize *anonymize, uint64_t frame,
                            struct recordwriter *writer) {
    size_t count;
    const struct names_frame *real = names_frames(anonymize->names, frame, &count);
    struct framename *hidden = job_array(count, sizeof *hidden);
    for (size_t i = 0; i < count; i++) {
        const char *function = real[i].function;
        const char *file = real[i].file;
        if (function != NULL && (roles_of(function, NULL) & (ROLES_MAIN | ROLES_STARTUP)) == 0) {
            function =
                fakename_of(anonymize->fakenames, FAKENAME_FUNCTION, function, strlen(function));
        }
        if (file != NULL) {
            file = fakename_of(anonymize->fakenames, FAKENAME_FILE, file, strlen(file));
        }
        hidden[i] = (struct framename){frame, function, file, real[i].line, real[i].column};
    }
    recordwriter_names(writer, hidden, count);
    job_release(hidden);
}

/* Names for every frame, so that nobody looks any of them up. */
static void anonymize_finish(void *context, struct recordwriter *writer) {
    struct anonymize *anonymize = context;
    const struct model *model = anonymize->model;
    struct numbermap seen = {0};
    for (size_t i = 1; i < model->node_count; i++) {
        uint64_t frame = model->nodes[i].frame;
        if (frame >= MEMTRACE_FRAME_CLASSES && numbermap_get(&seen, frame) == NULL) {
            numbermap_set(&seen, frame, anonymize);
            anonymize_frame(anonymize, frame, writer);
        }
    }
}

struct transform_step anonymize_step(struct anonymize *anonymize) {
    return (struct transform_step){.header = anonymize_header,
                                   .event = anonymize_event,
                                   .table = anonymize_table,
                                   .finish = anonymize_finish,
                                   .context = anonymize};
}
