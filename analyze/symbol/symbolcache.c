/* SPDX-License-Identifier: MIT */
/*
 * symbolcache.c: names kept on disk. See symbolcache.h.
 *
 * A file is a head, the answers by offset, their frames, and the strings, each ended by NUL and
 * written once. A string is named by its place; place 0 is no string.
 */
#include "analyze/symbol/symbolcache.h"

#include "analyze/base/array.h"

#include "analyze/base/job.h"
#include "analyze/base/search.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

static const struct cachefolder_kind kind = {"symbols", 3, UINT64_C(256) << 20};

struct symbolcache_answer {
    uint64_t offset;
    uint32_t first; /* of its frames */
    uint32_t count;
};

struct symbolcache_frame {
    uint32_t function;
    uint32_t file;
    uint32_t line;
    uint32_t column;
    uint32_t inlined;
};

struct head {
    struct symbolcache_source source;
    uint64_t answers;
    uint64_t frames;
    uint64_t strings; /* bytes */
};

static struct symbolcache_file file_on_disk(const char *path) {
    struct stat status;
    if (!path || stat(path, &status) != 0) {
        return (struct symbolcache_file){0};
    }
    return (struct symbolcache_file){(uint64_t)status.st_size, status.st_mtim.tv_sec,
                                     status.st_mtim.tv_nsec};
}

struct symbolcache_source symbolcache_source(const struct symbol_module *module,
                                             const struct debugfile_paths *paths) {
    struct symbolcache_source source = {0};
    if (module->build_id_size < 2 || module->build_id_size > sizeof source.build_id ||
        (!paths->object && !paths->debug)) {
        return source;
    }
    memcpy(source.build_id, module->build_id, module->build_id_size);
    source.build_id_size = module->build_id_size;
    source.object = file_on_disk(paths->object);
    source.debug = file_on_disk(paths->debug);
    return source;
}

/* The name of the source's file. */
static const char *cache_file_name(const struct symbolcache_source *source, char name[2 * 64 + 1]) {
    for (size_t i = 0; i < source->build_id_size; i++) {
        snprintf(name + 2 * i, 3, "%02x", source->build_id[i]);
    }
    return name;
}

/* Whether the file is what it says, and of this source; then fills the rest. */
static bool divide(struct symbolcache *cache, const struct symbolcache_source *source) {
    const unsigned char *bytes = cache->file.bytes;
    const struct head *head = (const void *)bytes;
    size_t left = cache->file.size;
    if (left < sizeof *head || memcmp(&head->source, source, sizeof *source) != 0) {
        return false;
    }
    left -= sizeof *head;
    if (head->answers > left / sizeof *cache->answers) {
        return false;
    }
    left -= head->answers * sizeof *cache->answers;
    if (head->frames > left / sizeof *cache->frames) {
        return false;
    }
    left -= head->frames * sizeof *cache->frames;
    if (head->strings != left || left == 0 || bytes[cache->file.size - 1] != '\0') {
        return false;
    }
    cache->answers = (const void *)(head + 1);
    cache->answer_count = head->answers;
    cache->frames = (const void *)(cache->answers + head->answers);
    cache->frame_count = head->frames;
    cache->strings = (const char *)(cache->frames + head->frames);
    cache->string_size = left;
    return true;
}

void symbolcache_open(struct symbolcache *cache, const struct symbolcache_source *source) {
    char name[2 * 64 + 1];
    *cache = (struct symbolcache){0};
    if (source->build_id_size &&
        cachefolder_load(&kind, cache_file_name(source, name), &cache->file) == 0 &&
        !divide(cache, source)) {
        symbolcache_close(cache);
    }
}

void symbolcache_close(struct symbolcache *cache) {
    cachefolder_unload(&cache->file);
    *cache = (struct symbolcache){0};
}

static const char *string_at(const struct symbolcache *cache, uint32_t place) {
    return place && place < cache->string_size ? cache->strings + place : NULL;
}

static struct symbol_frame cache_frame(const struct symbolcache *cache, size_t i) {
    const struct symbolcache_frame *frame = &cache->frames[i];
    return (struct symbol_frame){
        .function = string_at(cache, frame->function),
        .file = string_at(cache, frame->file),
        .line = frame->line,
        .column = frame->column,
        .inlined = frame->inlined != 0,
    };
}

static bool has_frames(const struct symbolcache *cache, const struct symbolcache_answer *answer) {
    return answer->first <= cache->frame_count &&
           answer->count <= cache->frame_count - answer->first;
}

const struct symbol_frames *symbolcache_find(const struct symbolcache *cache, uint64_t offset,
                                             struct arena *memory) {
    size_t at = search_below(cache->answers, cache->answer_count, sizeof *cache->answers,
                             offsetof(struct symbolcache_answer, offset), offset);
    const struct symbolcache_answer *answer = &cache->answers[at];
    if (at == cache->answer_count || answer->offset != offset || !has_frames(cache, answer)) {
        return NULL;
    }
    struct symbol_frames *frames = arena_alloc(memory, sizeof *frames);
    struct symbol_frame *array = arena_alloc(memory, answer->count * sizeof *array);
    if (!frames || !array) {
        return NULL;
    }
    for (size_t i = 0; i < answer->count; i++) {
        array[i] = cache_frame(cache, answer->first + i);
    }
    *frames = (struct symbol_frames){answer->count, array};
    return frames;
}

/* --- storing ---------------------------------------------------------------------------------- */

struct writer {
    const struct symbolcache_source *source;
    const struct numbermap *known; /* what is to be written, */
    struct symbolcache older;      /* and what is there already */
    struct symbolcache_answer *answers;
    size_t answer_count;
    struct symbolcache_frame *frames;
    size_t frame_count;
    char *strings;
    size_t string_size;
    size_t string_room;
    struct numbermap places; /* hash of a string -> its place */
};

/* The place of the string, which is added if it is new. */
static uint32_t writer_place(struct writer *writer, const char *text) {
    if (!text) {
        return 0;
    }
    size_t size = strlen(text) + 1;
    size_t place = writer->string_size;
    uint64_t hash = XXH3_64bits(text, size);
    char *known;
    while ((known = numbermap_get(&writer->places, hash))) {
        if (strcmp(writer->strings + (uintptr_t)known, text) == 0) {
            return (uint32_t)(uintptr_t)known;
        }
        hash++;
    }
    if (place + size > UINT32_MAX / 2) {
        job_fail("too many names");
    }
    job_reserve(&writer->strings, &writer->string_room, place + size, 1);
    memcpy(writer->strings + place, text, size);
    writer->string_size += size;
    numbermap_set(&writer->places, hash, (void *)(uintptr_t)place);
    return (uint32_t)place;
}

static void writer_add_answer(struct writer *writer, uint64_t offset, size_t count) {
    writer->answers[writer->answer_count++] =
        (struct symbolcache_answer){offset, (uint32_t)writer->frame_count, (uint32_t)count};
}

static void writer_add_frame(struct writer *writer, const struct symbol_frame *frame) {
    writer->frames[writer->frame_count++] =
        (struct symbolcache_frame){.function = writer_place(writer, frame->function),
                                   .file = writer_place(writer, frame->file),
                                   .line = frame->line,
                                   .column = frame->column,
                                   .inlined = frame->inlined};
}

static void writer_write(void *what) {
    struct writer *writer = what;
    const struct numbermap *answers = writer->known;
    const struct symbolcache *older = &writer->older;
    size_t frames = older->frame_count;
    size_t left = frames; /* of the older ones: none is in two answers, unless somebody lies */
    char name[2 * 64 + 1];
    for (size_t i = 0; i < answers->places; i++) {
        const struct symbol_frames *answer = answers->entries[i].value;
        frames += answer ? answer->count : 0;
    }
    if (frames > UINT32_MAX) {
        job_fail("too many names");
    }
    writer->answers = job_array(answers->used + older->answer_count, sizeof *writer->answers);
    writer->frames = job_array(frames, sizeof *writer->frames);
    job_reserve(&writer->strings, &writer->string_room, 1, 1);
    writer->strings[writer->string_size++] = '\0';
    for (size_t i = 0; i < answers->places; i++) {
        const struct symbol_frames *answer = answers->entries[i].value;
        if (!answer) {
            continue;
        }
        writer_add_answer(writer, answers->entries[i].key, answer->count);
        for (size_t at = 0; at < answer->count; at++) {
            writer_add_frame(writer, &answer->frames[at]);
        }
    }
    for (size_t i = 0; i < older->answer_count; i++) {
        const struct symbolcache_answer *answer = &older->answers[i];
        if (numbermap_get(answers, answer->offset) || !has_frames(older, answer)) {
            continue;
        }
        if (answer->count > left) {
            break;
        }
        left -= answer->count;
        writer_add_answer(writer, answer->offset, answer->count);
        for (size_t at = 0; at < answer->count; at++) {
            struct symbol_frame frame = cache_frame(older, answer->first + at);
            writer_add_frame(writer, &frame);
        }
    }
    array_sort_by(writer->answers, writer->answer_count, sizeof *writer->answers,
                  offsetof(struct symbolcache_answer, offset));
    struct head head = {*writer->source, writer->answer_count, writer->frame_count,
                        writer->string_size};
    struct cachefolder_piece pieces[] = {
        {&head, sizeof head},
        {writer->answers, writer->answer_count * sizeof *writer->answers},
        {writer->frames, writer->frame_count * sizeof *writer->frames},
        {writer->strings, writer->string_size},
    };
    cachefolder_store(&kind, cache_file_name(writer->source, name), pieces,
                      sizeof pieces / sizeof pieces[0]);
}

void symbolcache_store(const struct symbolcache_source *source, const struct numbermap *answers) {
    struct writer writer = {.source = source, .known = answers};
    if (!source->build_id_size || !cachefolder_is_on()) {
        return;
    }
    symbolcache_open(&writer.older, source); /* another process may have written since */
    job_run(writer_write, &writer, NULL, NULL);
    symbolcache_close(&writer.older);
}
