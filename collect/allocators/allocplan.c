/* SPDX-License-Identifier: MIT */
/* allocplan.c: see allocplan.h. */
#define _GNU_SOURCE
#include "collect/allocators/allocplan.h"

#include "analyze/base/array.h"
#include "analyze/base/fullwrite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096, STUB_ROOM = 96, ROOM = 256 /* of one function */, INT3 = 0xcc };
_Static_assert((int)STUB_ROOM + (int)PATCHMOVE_ROOM <= (int)ROOM, "a function's code fits");

/* ---- Code ---- */

struct writer {
    uint8_t *to;
    size_t size;
};

static void put(struct writer *writer, const void *bytes, size_t size) {
    memcpy(writer->to + writer->size, bytes, size);
    writer->size += size;
}

#define PUT(writer, ...)                                                                           \
    put(writer, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* Before the stub of a function of a library that defines malloc: what MemTrace calls there itself,
 * as the malloc behind its own, it counts itself. Flags mean nothing where a function begins. */
static size_t write_guard(const struct codefile_range *runtime, size_t stub, uint8_t *to) {
    struct writer writer = {.to = to};
    uint64_t negative = -runtime->low;
    uint32_t size = (uint32_t)(runtime->high - runtime->low);
    uint32_t over = (uint32_t)stub;
    PUT(&writer, 0x41, 0x53); /* push %r11 */
    PUT(&writer, 0x49, 0xbb); /* movabs $-LOW, %r11 */
    put(&writer, &negative, sizeof negative);
    PUT(&writer, 0x4c, 0x03, 0x5c, 0x24, 0x08); /* add 8(%rsp), %r11: the return address */
    PUT(&writer, 0x49, 0x81, 0xfb);             /* cmp $SIZE, %r11 */
    put(&writer, &size, sizeof size);
    PUT(&writer, 0x41, 0x5b); /* pop %r11 */
    PUT(&writer, 0x0f, 0x82); /* jb: over the stub */
    put(&writer, &over, sizeof over);
    return writer.size;
}

/* The stub, as memtrace/allocators.h describes it. The entry's address lies at its end, since it
 * may be anywhere. */
static size_t write_stub(uint8_t kind, const struct memtrace_allocator_entries *entries,
                         uint64_t site, uint8_t to[STUB_ROOM]) {
    struct writer writer = {.to = to};
    bool nests = kind < MEMTRACE_ALLOCATOR_FREE;
    uint64_t entry = !nests                               ? entries->leave
                     : kind == MEMTRACE_ALLOCATOR_REALLOC ? entries->resize
                                                          : entries->enter;
    PUT(&writer, 0x55);             /* push %rbp */
    PUT(&writer, 0x48, 0x89, 0xe5); /* mov %rsp, %rbp */
    PUT(&writer, 0x41, 0x53);       /* push %r11 */
    PUT(&writer, 0x49, 0xbb);       /* movabs $SITE, %r11 */
    put(&writer, &site, sizeof site);
    if (nests) {
        PUT(&writer, 0xff, 0x25, 0, 0, 0, 0); /* jmp *0(%rip) */
        put(&writer, &entry, sizeof entry);
    } else {
        PUT(&writer, 0xff, 0x15, 2, 0, 0, 0); /* call *2(%rip) */
        PUT(&writer, 0xeb, sizeof entry);     /* jmp over it */
        put(&writer, &entry, sizeof entry);
        PUT(&writer, 0x41, 0x5b, 0x5d); /* pop %r11; pop %rbp */
    }
    return writer.size;
}

/* false: something is too far from there. */
static bool write_function(struct allocplan *plan, size_t number) {
    struct memtrace_plan_site *site = &plan->list[number];
    const struct allocplan_code *code = &plan->code[number];
    uint64_t runtime_site = plan->sites + ((uint64_t)(plan->first + number) << MEMTRACE_SITE_SHIFT);
    uint64_t at = plan->blocks[code->block].address + code->at;
    uint8_t *to = plan->bytes[code->block] + code->at;
    uint8_t unguarded[STUB_ROOM];
    size_t stub = write_stub(site->signature.kind, &plan->entries, runtime_site, unguarded);
    size_t guard = code->is_guarded ? write_guard(&plan->runtime, stub, to) : 0;
    int64_t distance = (int64_t)(at - (site->address + PATCH_JUMP));
    int32_t field = (int32_t)distance;
    memcpy(to + guard, unguarded, stub);
    stub += guard;
    site->original = at + stub;
    site->new[0] = 0xe9;
    memcpy(site->new + 1, &field, sizeof field);
    memset(site->new + PATCH_JUMP, INT3, site->length - PATCH_JUMP);
    return patchmove_write(&code->move, at + stub, to + stub) != 0 && field == distance;
}

/* ---- Functions ---- */

static void name_pool(struct memtrace_plan_site *site, const struct allocfound *found) {
    char *name = found->spec->pool[0] == '\0' ? allocfind_name(found->symbol->name) : NULL;
    snprintf(site->pool, sizeof site->pool, "%s", name != NULL ? name : found->spec->pool);
    free(name);
}

int allocplan_add(struct allocplan *plan, const struct allocfound *found,
                  const struct patchmove *move) {
    const struct allocspec *spec = found->spec;
    bool is_in_malloc = !found->object->is_program && allocfind_has_malloc(found->object);
    struct memtrace_plan_site *site;
    if (array_grow(&plan->list, &plan->room, plan->count, sizeof *plan->list) != 0 ||
        array_grow(&plan->code, &plan->code_room, plan->count, sizeof *plan->code) != 0) {
        return -1;
    }
    plan->code[plan->count] = (struct allocplan_code){.object = found->object,
                                                      .symbol = found->symbol,
                                                      .set = spec->set,
                                                      .move = *move,
                                                      .is_guarded = is_in_malloc,
                                                      .is_inner = is_in_malloc && spec->is_inner};
    site = &plan->list[plan->count++];
    memset(site, 0, sizeof *site);
    site->address = move->address;
    site->length = move->length;
    memcpy(site->old, move->bytes, move->length);
    site->signature = spec->signature;
    if (!spec->signature.is_heap) {
        name_pool(site, found);
    }
    return 0;
}

void allocplan_leave_out(struct allocplan *plan, size_t number) {
    size_t behind = plan->count - number - 1;
    memmove(&plan->list[number], &plan->list[number + 1], behind * sizeof *plan->list);
    memmove(&plan->code[number], &plan->code[number + 1], behind * sizeof *plan->code);
    plan->count--;
}

/* A block for its functions, one after the other. 0, or -1: there is no room, or no memory for it.
 */
static int place_object(struct allocplan *plan, struct allocprocess *process,
                        const struct allocobject *object) {
    struct memtrace_plan_block *block = &plan->blocks[plan->block_count];
    uint64_t size = 0;
    if (plan->block_count == MEMTRACE_PLAN_BLOCKS) {
        return -1;
    }
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->code[i].object == object) {
            plan->code[i].block = plan->block_count;
            plan->code[i].at = size;
            size += ROOM;
        }
    }
    block->size = (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    plan->bytes[plan->block_count] = malloc(block->size);
    block->address = plan->bytes[plan->block_count] != NULL
                         ? allocprocess_take(process, object, block->size)
                         : 0;
    if (block->address == 0) {
        free(plan->bytes[plan->block_count]);
        return -1;
    }
    memset(plan->bytes[plan->block_count++], INT3, block->size);
    return 0;
}

/* Each has its final number only when none is left out any more. */
static void write_functions(struct allocplan *plan, void (*tell)(const char *line)) {
    char line[MEMTRACE_SITE_NAME + 128];
    for (size_t i = plan->count; i-- > 0;) {
        if (!write_function(plan, i)) {
            snprintf(line, sizeof line, "the function at %#llx leads too far away to be moved",
                     (unsigned long long)plan->list[i].address);
            tell(line);
            allocplan_leave_out(plan, i);
        }
    }
    for (size_t i = 0; i < plan->count; i++) {
        write_function(plan, i);
    }
}

static void tell_no_room(const struct allocobject *object, void (*tell)(const char *line)) {
    char line[PATH_MAX + 64];
    snprintf(line, sizeof line, "%s: there is no room beside it for code: none of its functions",
             object->path);
    tell(line);
}

static void limit(struct allocplan *plan, void (*tell)(const char *line)) {
    size_t most = plan->first < MEMTRACE_SITES ? MEMTRACE_SITES - plan->first : 0;
    char line[128];
    if (plan->count > most) {
        snprintf(line, sizeof line,
                 "%zu functions are more than the %d that there may be: the first %zu are taken",
                 plan->count, MEMTRACE_SITES, most);
        tell(line);
        plan->count = most;
    }
}

int allocplan_place(struct allocplan *plan, struct allocprocess *process,
                    void (*tell)(const char *line), struct error *error) {
    limit(plan, tell);
    for (size_t i = 0; i < process->object_count; i++) {
        const struct allocobject *object = &process->objects[i];
        size_t number = 0;
        while (number < plan->count && plan->code[number].object != object) {
            number++;
        }
        if (number == plan->count || place_object(plan, process, object) == 0) {
            continue;
        }
        tell_no_room(object, tell);
        for (size_t j = plan->count; j-- > 0;) {
            if (plan->code[j].object == object) {
                allocplan_leave_out(plan, j);
            }
        }
    }
    write_functions(plan, tell);
    return plan->count != 0 ? 0 : error_set(error, "no function is left to be followed");
}

/* ---- The file ---- */

static int write_parts(int fd, const struct allocplan *plan) {
    struct memtrace_plan header = {.magic = MEMTRACE_PLAN_MAGIC,
                                   .site_count = (uint32_t)plan->count,
                                   .block_count = (uint32_t)plan->block_count};
    uint64_t at = sizeof header + plan->count * sizeof *plan->list;
    for (size_t i = 0; i < plan->block_count; i++) {
        header.block[i] = plan->blocks[i];
        header.block[i].at = at;
        at += plan->blocks[i].size;
    }
    if (fullwrite(fd, &header, sizeof header) != 0 ||
        fullwrite(fd, plan->list, plan->count * sizeof *plan->list) != 0) {
        return -1;
    }
    for (size_t i = 0; i < plan->block_count; i++) {
        if (fullwrite(fd, plan->bytes[i], plan->blocks[i].size) != 0) {
            return -1;
        }
    }
    return 0;
}

int allocplan_write_to(const struct allocplan *plan, int fd, struct error *error) {
    return write_parts(fd, plan) == 0
               ? 0
               : error_set(error, "the plan cannot be written: %s", strerror(errno));
}

int allocplan_write(const struct allocplan *plan, const char *path, struct error *error) {
    char *temporary = NULL;
    int fd;
    int status;
    if (asprintf(&temporary, "%s.%ld", path, (long)getpid()) < 0) {
        return error_set(error, "out of memory");
    }
    fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    status = fd >= 0 ? write_parts(fd, plan) : -1;
    status = fd >= 0 && close(fd) != 0 ? -1 : status;
    status = status == 0 ? rename(temporary, path) : status;
    if (status != 0) {
        error_set(error, "%s: %s", path, strerror(errno));
        if (fd >= 0) {
            unlink(temporary);
        }
    }
    free(temporary);
    return status;
}

void allocplan_free(struct allocplan *plan) {
    for (size_t i = 0; i < plan->block_count; i++) {
        free(plan->bytes[i]);
    }
    free(plan->list);
    free(plan->code);
    *plan = (struct allocplan){0};
}
