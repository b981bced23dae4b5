/* SPDX-License-Identifier: MIT */
/* census.c: see census.h. */
#define _GNU_SOURCE
#include "collect/attach/census.h"

#include "analyze/base/array.h"
#include "analyze/base/numbermap.h"
#include "analyze/base/search.h"
#include "analyze/read/procfile.h"
#include "analyze/symbol/symbol.h"
#include "collect/attach/attachfault.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

enum { LEAST_MOST = 24, OVERHEAD = 8 };

/* Sizes double with what malloc keeps with a block: 24, 56, 120, ... */
uint64_t census_most(int size) {
    return ((uint64_t)(LEAST_MOST + OVERHEAD) << size) - OVERHEAD;
}

/* --- the copy --------------------------------------------------------------------------------- */

static pid_t find_copy(pid_t pid) {
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    pid_t found = 0;
    while (folder != NULL && found == 0 && (entry = readdir(folder)) != NULL) {
        pid_t other = (pid_t)strtol(entry->d_name, NULL, 10);
        char value[64];
        if (other > 0 && procfile_status(other, other, "PPid", value, sizeof value) == 0 &&
            (pid_t)strtol(value, NULL, 10) == pid &&
            procfile_status(other, other, "Name", value, sizeof value) == 0 &&
            strcmp(value, MEMTRACE_CENSUS_COPY) == 0) {
            found = other;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return found;
}

pid_t census_hold_copy(pid_t pid) {
    pid_t copy = find_copy(pid);
    if (copy != 0) {
        attachfault_at("copy");
        ptrace(PTRACE_SEIZE, copy, NULL, (void *)PTRACE_O_EXITKILL);
        attachfault_at("copied");
    }
    return copy;
}

/* Its parent hears of its end when we have. */
void census_end_copy(pid_t copy) {
    kill(copy, SIGKILL);
    waitpid(copy, NULL, __WALL);
}

/* A command that is at work holds its copy as soon as it sees it. */
bool census_end_left(pid_t pid) {
    enum { TRIES = 40 };
    const struct timespec pause = {.tv_nsec = 10000000};
    pid_t copy = find_copy(pid);
    char tracer[32];
    for (int i = 0; i < TRIES && copy != 0; i++) {
        if (procfile_status(copy, copy, "TracerPid", tracer, sizeof tracer) == 0 &&
            strcmp(tracer, "0") != 0) {
            return false;
        }
        if (i == TRIES / 2) {
            kill(copy, SIGKILL);
        }
        nanosleep(&pause, NULL);
        if (find_copy(pid) != copy) {
            return true;
        }
    }
    return false;
}

/* --- first words ------------------------------------------------------------------------------ */

/* How many blocks begin with it. */
struct word {
    uint64_t value;
    struct census_sum sum;
};

struct vtable {
    uint64_t start, end;
    char *name;
};

struct counting {
    struct census *census;
    const struct attachtarget *target;
    const struct attachmapping *last; /* where the word before led to */
    struct numbermap places;          /* of words: index + 1 */
    struct word *words;
    size_t word_count, word_room;
    struct vtable *vtables;
    size_t vtable_count, vtable_room;
    bool is_short; /* of memory */
};

/* A table of functions lies in data of some file, or in what the loader has made of that. */
static bool may_be_table(struct counting *counting, uint64_t word) {
    const struct attachmapping *mapping = counting->last;
    if (word % sizeof word != 0) {
        return false;
    }
    if (mapping == NULL || word < mapping->start || word >= mapping->end) {
        mapping = attachtarget_at(counting->target, word);
    }
    if (mapping == NULL || mapping->inode == 0 || mapping->executable || !mapping->readable) {
        return false;
    }
    counting->last = mapping;
    return true;
}

static void count_word(struct counting *counting, uint64_t word, uint64_t bytes) {
    uintptr_t place = (uintptr_t)numbermap_get(&counting->places, word);
    if (place == 0) {
        if (array_grow(&counting->words, &counting->word_room, counting->word_count,
                       sizeof *counting->words) != 0 ||
            numbermap_put(&counting->places, word,
                          (void *)(counting->word_count + 1)) != 0) { // NOLINT
            counting->is_short = true;
            return;
        }
        counting->words[counting->word_count++] = (struct word){.value = word};
        place = counting->word_count;
    }
    counting->words[place - 1].sum.blocks++;
    counting->words[place - 1].sum.bytes += bytes;
}

static void census_add(struct census_sum *sum, const struct arenas_chunk *chunk) {
    sum->blocks++;
    sum->bytes += chunk->bytes;
}

static void census_count(void *context, const struct arenas_chunk *chunk) {
    struct counting *counting = context;
    struct census *census = counting->census;
    int size = 0;
    if (chunk->state != ARENAS_USED) {
        census_add(chunk->state == ARENAS_FREE   ? &census->free
                   : chunk->state == ARENAS_FAST ? &census->fast
                                                 : &census->cached,
                   chunk);
        return;
    }
    census_add(&census->used, chunk);
    if (chunk->is_mapped) {
        census_add(&census->mapped, chunk);
    }
    while (size < CENSUS_SIZES - 1 && chunk->bytes > census_most(size)) {
        size++;
    }
    census_add(&census->sizes[size], chunk);
    if (may_be_table(counting, chunk->first)) {
        count_word(counting, chunk->first, chunk->bytes);
    }
}

/* --- classes ---------------------------------------------------------------------------------- */

static void note_vtable(void *context, const char *name, uint64_t address, uint64_t size) {
    struct counting *counting = context;
    char *copy = strdup(name);
    if (copy == NULL || array_grow(&counting->vtables, &counting->vtable_room,
                                   counting->vtable_count, sizeof *counting->vtables) != 0) {
        free(copy);
        counting->is_short = true;
        return;
    }
    counting->vtables[counting->vtable_count++] =
        (struct vtable){.start = address, .end = address + size, .name = copy};
}

static int census_by_start(const void *left, const void *right) {
    const struct vtable *a = left;
    const struct vtable *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

/* Of the objects that words lead to. */
static void find_vtables(struct counting *counting) {
    const struct attachtarget *target = counting->target;
    for (size_t i = 0; i < target->count; i++) {
        const struct attachmapping *object = &target->mappings[i];
        bool is_wanted = false;
        for (size_t j = 0; object->offset == 0 && !is_wanted && j < counting->word_count; j++) {
            const struct attachmapping *at = attachtarget_at(target, counting->words[j].value);
            is_wanted =
                at != NULL && at->inode == object->inode && strcmp(at->path, object->path) == 0;
        }
        if (is_wanted) {
            attachtarget_vtables(target, object, note_vtable, counting);
        }
    }
    array_sort(counting->vtables, counting->vtable_count, sizeof *counting->vtables,
               census_by_start);
}

static const struct vtable *vtable_of(const struct counting *counting, uint64_t word) {
    size_t count = search_to(counting->vtables, counting->vtable_count, sizeof *counting->vtables,
                             offsetof(struct vtable, start), word);
    const struct vtable *last = count != 0 ? &counting->vtables[count - 1] : NULL;
    return last != NULL && word < last->end ? last : NULL;
}

/* "vtable for Shape" */
static char *census_class_name(const char *symbol) {
    static const char of[] = "vtable for ";
    char *full = symbol_demangle(symbol);
    char *name = full != NULL && strncmp(full, of, sizeof of - 1) == 0
                     ? strdup(full + sizeof of - 1)
                     : strdup(symbol);
    free(full);
    return name;
}

static void count_class(struct counting *counting, const char *symbol,
                        const struct census_sum *sum) {
    struct census *census = counting->census;
    char *name = census_class_name(symbol);
    size_t i = 0;
    if (name == NULL) {
        counting->is_short = true;
        return;
    }
    while (i < census->class_count && strcmp(census->classes[i].name, name) != 0) {
        i++;
    }
    if (i < census->class_count) {
        free(name);
    } else if (array_grow_by_count(&census->classes, i, sizeof *census->classes) != 0) {
        free(name);
        counting->is_short = true;
        return;
    } else {
        census->classes[census->class_count++] = (struct census_class){.name = name};
    }
    census->classes[i].sum.blocks += sum->blocks;
    census->classes[i].sum.bytes += sum->bytes;
}

static int census_by_bytes(const void *left, const void *right) {
    const struct census_class *a = left;
    const struct census_class *b = right;
    return a->sum.bytes != b->sum.bytes
               ? (a->sum.bytes < b->sum.bytes) - (a->sum.bytes > b->sum.bytes)
               : strcmp(a->name, b->name);
}

static void find_classes(struct counting *counting) {
    struct census *census = counting->census;
    find_vtables(counting);
    for (size_t i = 0; i < counting->word_count; i++) {
        const struct vtable *vtable = vtable_of(counting, counting->words[i].value);
        if (vtable != NULL) {
            count_class(counting, vtable->name, &counting->words[i].sum);
        }
    }
    array_sort(census->classes, census->class_count, sizeof *census->classes, census_by_bytes);
}

/* --- all of it -------------------------------------------------------------------------------- */

int census_take(pid_t copy, const struct memtrace_census *told, struct census *census,
                struct error *error) {
    struct attachtarget target;
    struct counting counting = {.census = census, .target = &target};
    int result;
    *census = (struct census){.told = *told};
    if (attachtarget_open(copy, &target, error) != 0) {
        return -1;
    }
    result = arenas_walk(&target, told, census_count, &counting, &census->arenas, error);
    if (result == 0) {
        find_classes(&counting);
        result = counting.is_short ? error_set(error, "out of memory") : 0;
    }
    for (size_t i = 0; i < counting.vtable_count; i++) {
        free(counting.vtables[i].name);
    }
    free(counting.vtables);
    free(counting.words);
    numbermap_free(&counting.places);
    attachtarget_close(&target);
    return result;
}

void census_free(struct census *census) {
    for (size_t i = 0; i < census->class_count; i++) {
        free(census->classes[i].name);
    }
    free(census->classes);
    *census = (struct census){0};
}
