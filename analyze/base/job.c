/* SPDX-License-Identifier: MIT */
/* job.c: see job.h. */
#include "analyze/base/job.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 512, FIRST_CHUNK = 4 * 1024, CHUNK = 64 * 1024, FIRST_ITEMS = 16 };

/* In a list, from which it can be taken without knowing which: *link points to it. */
struct job_block {
    struct job_block *next;
    struct job_block **link;
    alignas(max_align_t) char bytes[];
};

struct job_undo {
    struct job_undo *older;
    void (*undo)(void *what);
    void *what;
};

struct job_memory {
    struct job_block *blocks;
    struct job_undo *undos; /* newest first; they lie in blocks */
    char *free;             /* of the newest chunk, for what is small */
    size_t left;
    size_t next_chunk; /* bytes of the next one */
};

struct job {
    jmp_buf border;
    struct job *outer;
    struct job_memory *memory;
    struct error error;
};

static _Thread_local struct job *innermost;
static _Thread_local struct job_memory outside; /* of threads without a job */

static void block_link(struct job_block *block, struct job_block **link) {
    block->link = link;
    block->next = *link;
    *link = block;
    if (block->next != NULL) {
        block->next->link = &block->next;
    }
}

void job_free(struct job_memory **kept) {
    struct job_memory *memory = *kept;
    struct job_block *next;
    if (memory == NULL) {
        return;
    }
    for (struct job_undo *undo = memory->undos; undo != NULL; undo = undo->older) {
        undo->undo(undo->what);
    }
    for (struct job_block *block = memory->blocks; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    free(memory);
    *kept = NULL;
}

/* What is older goes behind what is new. */
static void job_put_before(struct job_memory *memory, const struct job_memory *older) {
    struct job_block **end = &memory->blocks;
    struct job_undo **oldest = &memory->undos;
    while (*oldest != NULL) {
        oldest = &(*oldest)->older;
    }
    *oldest = older->undos;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = older->blocks;
    if (*end != NULL) {
        (*end)->link = end;
    }
}

static void job_keep(struct job_memory *memory, struct job_memory **kept) {
    if (*kept != NULL) {
        job_put_before(memory, *kept);
        free(*kept);
    }
    *kept = memory;
}

int job_run(void (*work)(void *what), void *what, struct job_memory **kept, struct error *error) {
    struct job job = {.outer = innermost, .memory = calloc(1, sizeof *job.memory)};
    if (job.memory == NULL) {
        return error_set(error, "out of memory");
    }
    if (kept != NULL && *kept != NULL) { /* what is left of its newest chunk is used first */
        job.memory->free = (*kept)->free;
        job.memory->left = (*kept)->left;
        job.memory->next_chunk = (*kept)->next_chunk;
        (*kept)->left = 0;
    }
    if (_setjmp(job.border) != 0) {
        innermost = job.outer;
        job_free(&job.memory);
        return error_set(error, "%s", job.error.message);
    }
    innermost = &job;
    work(what);
    innermost = job.outer;
    if (kept != NULL) {
        job_keep(job.memory, kept);
    } else {
        job_free(&job.memory);
    }
    return 0;
}

void job_within(void (*work)(void *what), void *what) {
    struct error error;
    job_check(job_run(work, what, NULL, &error), &error);
}

static struct job_memory *job_memory(void) {
    return innermost != NULL ? innermost->memory : &outside;
}

void job_finally(void (*work)(void *what), void (*finish)(void *what), void *what) {
    struct job job = {.outer = innermost, .memory = job_memory()};
    if (_setjmp(job.border) == 0) {
        innermost = &job;
        work(what);
        innermost = job.outer;
        finish(what);
    } else {
        innermost = job.outer;
        finish(what);
        job_fail_as(&job.error);
    }
}

int job_part(void (*work)(void *what), void *what, struct error *error) {
    struct job_memory *memory = job_memory();
    struct job_memory *part = NULL;
    if (job_run(work, what, &part, error) != 0) {
        return -1;
    }
    job_put_before(part, memory);
    memory->undos = part->undos;
    memory->blocks = part->blocks;
    if (memory->blocks != NULL) {
        memory->blocks->link = &memory->blocks;
    }
    free(part);
    return 0;
}

void job_fail_as(const struct error *error) {
    if (innermost == NULL) {
        fprintf(stderr, "memtrace: %s\n", error->message);
        exit(EXIT_FAILURE);
    }
    innermost->error = *error;
    _longjmp(innermost->border, 1);
}

void job_fail(const char *format, ...) {
    char *text = NULL;
    struct error error;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) {
        job_fail_memory();
    }
    va_end(arguments);
    error_set(&error, "%s", text);
    free(text);
    job_fail_as(&error);
}

void job_fail_memory(void) {
    struct error error;
    error_set(&error, "out of memory");
    job_fail_as(&error);
}

void job_check(int result, const struct error *error) {
    if (result != 0) {
        job_fail_as(error);
    }
}

/* A block of its own, cleared. NULL: out of memory. */
static struct job_block *block_new(size_t size) {
    struct job_block *block = NULL;
    size_t whole;
    if (!__builtin_add_overflow(sizeof *block, size, &whole)) {
        block = calloc(1, whole);
    }
    if (block != NULL) {
        block_link(block, &job_memory()->blocks);
    }
    return block;
}

static struct job_block *block_of(void *bytes) {
    return (struct job_block *)((char *)bytes - offsetof(struct job_block, bytes));
}

/* job_alloc(), but NULL: out of memory. */
static void *job_try(size_t size) {
    struct job_memory *memory = job_memory();
    struct job_block *block;
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (size <= SMALL && memory->left < size) {
        size_t chunk = memory->next_chunk != 0 ? memory->next_chunk : FIRST_CHUNK;
        block = block_new(chunk);
        if (block == NULL) {
            return NULL;
        }
        memory->free = block->bytes;
        memory->left = chunk;
        memory->next_chunk = chunk < CHUNK ? chunk * 4 : CHUNK;
    }
    if (size <= SMALL) {
        memory->free += size;
        memory->left -= size;
        return memory->free - size;
    }
    block = block_new(size);
    return block != NULL ? block->bytes : NULL;
}

static void *job_have(void *memory) {
    if (memory == NULL) {
        job_fail_memory();
    }
    return memory;
}

void *job_alloc(size_t size) {
    return job_have(size <= SIZE_MAX / 2 ? job_try(size) : NULL);
}

void *job_array(size_t count, size_t item_size) {
    size_t size;
    if (__builtin_mul_overflow(count, item_size, &size)) {
        job_fail_memory();
    }
    return ((struct job_block *)job_have(block_new(size)))->bytes;
}

void *job_copy(const void *items, size_t count, size_t item_size) {
    void *copy = job_array(count, item_size);
    return count != 0 ? memcpy(copy, items, count * item_size) : copy;
}

char *job_string(const char *text) {
    size_t size = strlen(text) + 1;
    return memcpy(job_alloc(size), text, size);
}

char *job_text(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return job_take(length >= 0 ? text : NULL);
}

void job_reserve(void *items, size_t *room, size_t wanted, size_t item_size) {
    size_t places = *room != 0 ? *room : item_size <= SMALL / 8 ? FIRST_ITEMS : 1;
    size_t size;
    void *old;
    struct job_block *block;
    if (wanted <= *room) {
        return;
    }
    while (places < wanted) {
        if (__builtin_mul_overflow(places, (size_t)2, &places)) {
            job_fail_memory();
        }
    }
    memcpy(&old, items, sizeof old); /* whatever it points to: pointers have one form */
    if (__builtin_mul_overflow(places, item_size, &size) ||
        __builtin_add_overflow(size, sizeof *block, &size)) {
        job_fail_memory();
    }
    if (old == NULL) {
        block = job_have(block_new(size - sizeof *block));
    } else {
        block = job_have(realloc(block_of(old), size));
        *block->link = block;
        if (block->next != NULL) {
            block->next->link = &block->next;
        }
    }
    old = block->bytes;
    memcpy(items, &old, sizeof old);
    *room = places;
}

void job_grow(void *items, size_t *room, size_t count, size_t item_size) {
    if (count >= *room) {
        job_reserve(items, room, count + 1, item_size);
    }
}

void job_release(void *items) {
    if (items != NULL) {
        struct job_block *block = block_of(items);
        *block->link = block->next;
        if (block->next != NULL) {
            block->next->link = block->link;
        }
        free(block);
    }
}

void job_undo(void (*undo)(void *what), void *what) {
    struct job_undo *entry = job_try(sizeof *entry);
    struct job_memory *memory = job_memory();
    if (entry == NULL) {
        undo(what);
        job_fail_memory();
    }
    *entry = (struct job_undo){memory->undos, undo, what};
    memory->undos = entry;
}

void job_undo_now(const void *what) {
    struct job_undo **at = &job_memory()->undos;
    while (*at != NULL && (*at)->what != what) {
        at = &(*at)->older;
    }
    if (*at != NULL) {
        struct job_undo *undo = *at;
        *at = undo->older;
        undo->undo(undo->what);
    }
}

void *job_take(void *memory) {
    if (memory == NULL) {
        job_fail_memory();
    }
    job_undo(free, memory);
    return memory;
}

static void job_print_end(void *what) {
    struct job_printing *printing = what;
    if (printing->out != NULL) {
        fclose(printing->out);
    }
    free(printing->text);
}

struct job_printing *job_print(void) {
    struct job_printing *printing = job_alloc(sizeof *printing);
    job_undo(job_print_end, printing);
    printing->out = job_have(open_memstream(&printing->text, &printing->size));
    return printing;
}

char *job_printed(struct job_printing *printing) {
    FILE *out = printing->out;
    printing->out = NULL;
    if (fclose(out) != 0) {
        job_fail_memory();
    }
    return printing->text;
}
