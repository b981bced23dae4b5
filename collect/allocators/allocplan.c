/* SPDX-License-Identifier: MIT */
/* allocplan.c: see allocplan.h. */
#define _GNU_SOURCE
#include "collect/allocators/allocplan.h"

#include "analyze/base/fullwrite.h"
#include "analyze/base/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

static void writer_put(struct writer *writer, const void *bytes, size_t size) {
    memcpy(writer->to + writer->size, bytes, size);
    writer->size += size;
}

#define PUT(writer, ...)                                                                           \
    writer_put(writer, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* Before the stub of a function of a library that defines malloc: what MemTrace calls there itself,
 * as the malloc behind its own, it counts itself. Flags mean nothing where a function begins. */
static size_t write_guard(const struct codefile_range *runtime, size_t stub, uint8_t *to) {
    struct writer writer = {.to = to};
    uint64_t negative = -runtime->low;
    uint32_t size = (uint32_t)(runtime->high - runtime->low);
    uint32_t over = (uint32_t)stub;
    PUT(&writer, 0x41, 0x53); /* push %r11 */
    PUT(&writer, 0x49, 0xbb); /* movabs $-LOW, %r11 */
    writer_put(&writer, &negative, sizeof negative);
    PUT(&writer, 0x4c, 0x03, 0x5c, 0x24, 0x08); /* add 8(%rsp), %r11: the return address */
    PUT(&writer, 0x49, 0x81, 0xfb);             /* cmp $SIZE, %r11 */
    writer_put(&writer, &size, sizeof size);
    PUT(&writer, 0x41, 0x5b); /* pop %r11 */
    PUT(&writer, 0x0f, 0x82); /* jb: over the stub */
    writer_put(&writer, &over, sizeof over);
    return writer.size;
}

/* The stub, as memtrace/allocators.h describes it. The entry's address lies at its end, since it
 * may be anywhere. */
static size_t allocplan_write_stub(uint8_t kind, const struct memtrace_allocator_entries *entries,
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
    writer_put(&writer, &site, sizeof site);
    if (nests) {
        PUT(&writer, 0xff, 0x25, 0, 0, 0, 0); /* jmp *0(%rip) */
        writer_put(&writer, &entry, sizeof entry);
    } else {
        PUT(&writer, 0xff, 0x15, 2, 0, 0, 0); /* call *2(%rip) */
        PUT(&writer, 0xeb, sizeof entry);     /* jmp over it */
        writer_put(&writer, &entry, sizeof entry);
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
    size_t stub =
        allocplan_write_stub(site->signature.kind, &plan->entries, runtime_site, unguarded);
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

void allocplan_add(struct allocplan *plan, const struct allocfound *found,
                   const struct patchmove *move) {
    const struct allocspec *spec = found->spec;
    bool is_in_malloc = !found->object->is_program && allocfind_has_malloc(found->object);
    struct memtrace_plan_site *site;
    job_grow(&plan->list, &plan->room, plan->count, sizeof *plan->list);
    job_grow(&plan->code, &plan->code_room, plan->count, sizeof *plan->code);
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
        const char *name = job_take(allocfind_name(found->symbol->name));
        snprintf(site->pool, sizeof site->pool, "%s", spec->pool[0] != '\0' ? spec->pool : name);
    }
}

static void allocplan_leave_out(struct allocplan *plan, size_t number) {
    size_t behind = plan->count - number - 1;
    memmove(&plan->list[number], &plan->list[number + 1], behind * sizeof *plan->list);
    memmove(&plan->code[number], &plan->code[number + 1], behind * sizeof *plan->code);
    plan->count--;
}

/* ---- Functions that lead to each other ---- */

enum { PARTS = 64 /* so many functions are looked at, by jumps from one */ };

struct nest {
    struct allocplan *plan;
    const struct allocplan_code *outer; /* the function that is looked at */
    bool calls_another;
    struct codefile_range parts[PARTS]; /* it, and where it goes on by jumps; if inner, by calls */
    size_t part_count;
};

static bool allocates(const struct allocplan *plan, size_t number) {
    return plan->list[number].signature.kind < MEMTRACE_ALLOCATOR_FREE;
}

/* The other function of its set that begins there; NULL: there is none. */
static struct allocplan_code *other_at(const struct nest *nest, uint64_t address) {
    const struct allocplan *plan = nest->plan;
    for (size_t i = 0; i < plan->count; i++) {
        struct allocplan_code *code = &plan->code[i];
        if (code != nest->outer && code->object == nest->outer->object &&
            code->symbol->address == address && code->set != NULL &&
            strcmp(code->set, nest->outer->set) == 0 && allocates(plan, i)) {
            return code;
        }
    }
    return NULL;
}

static struct codefile_range range_at(const struct codefile *code, uint64_t address) {
    const struct codefile_range *frame = codefile_frame(code, address);
    size_t symbol = codefile_symbol_from(code, address);
    uint64_t size = symbol < code->symbol_count && code->symbols[symbol].address == address
                        ? code->symbols[symbol].size
                        : 0;
    return frame != NULL ? *frame : (struct codefile_range){address, address + size};
}

static void nest_add(struct nest *nest, uint64_t address) {
    for (size_t i = 0; i < nest->part_count; i++) {
        if (address >= nest->parts[i].low && address < nest->parts[i].high) {
            return;
        }
    }
    if (nest->part_count < PARTS) {
        nest->parts[nest->part_count++] = range_at(&nest->outer->object->code, address);
    }
}

static void nest_leave(struct nest *nest, bool is_call, uint64_t target) {
    struct allocplan_code *other = other_at(nest, target);
    /* Guards tell by return addresses, which say nothing where the runtime is part of the program.
     */
    bool can_guard = nest->plan->runtime.low != nest->outer->object->low;
    if (other != NULL && !is_call && can_guard) {
        other->is_guarded = true;
    } else if (other != NULL) {
        nest->calls_another = true;
    }
    if (!is_call || nest->outer->is_inner) { /* the program's call goes on there */
        nest_add(nest, target);
    }
}

/* Where a call or jump by a word of the file's leads; a function is called by its name through such
 * a word, by the PLT or at once. 0: nowhere in this file, or it is none. */
static uint64_t nest_by_word(struct codefile *code, const struct patchcode *instruction,
                             uint64_t at) {
    ZydisInstructionCategory category = instruction->it.meta.category;
    uint64_t word;
    return (category == ZYDIS_CATEGORY_CALL || category == ZYDIS_CATEGORY_UNCOND_BR) &&
                   patchcode_relative(instruction, at, &word)
               ? codefile_bound_to(code, word)
               : 0;
}

/* An entry of the PLT has one such jump, behind an endbr64 where there is one. */
static uint64_t behind_plt(struct codefile *code, uint64_t at) {
    struct patchcode instruction;
    uint64_t target = 0;
    size_t left;
    for (int i = 0; i < 2 && target == 0; i++) {
        const uint8_t *bytes = codefile_text(code, at, &left);
        if (bytes == NULL || !patchcode_read(&instruction, bytes, left)) {
            return 0;
        }
        target = nest_by_word(code, &instruction, at);
        at += instruction.it.length;
    }
    return target;
}

/* What an instruction leads to outside of its function; 0: nothing, or nothing that is known. */
static uint64_t nest_leads_to(struct codefile *code, const struct patchcode *instruction,
                              uint64_t at, struct codefile_range function) {
    uint64_t target;
    if (!patchcode_target(instruction, at, &target)) {
        return nest_by_word(code, instruction, at);
    }
    if (codefile_is_plt(code, target)) {
        return behind_plt(code, target);
    }
    return target < function.low || target >= function.high ? target : 0;
}

static void nest_look_at(struct nest *nest, struct codefile_range range) {
    struct codefile *code = &nest->outer->object->code;
    struct patchcode instruction;
    uint64_t target;
    size_t left;
    for (uint64_t at = range.low; at < range.high; at += instruction.it.length) {
        const uint8_t *bytes = codefile_text(code, at, &left);
        if (bytes == NULL || !patchcode_read(&instruction, bytes, left)) {
            return;
        }
        target = nest_leads_to(code, &instruction, at, range);
        if (target != 0) {
            nest_leave(nest, instruction.it.meta.category == ZYDIS_CATEGORY_CALL, target);
        }
    }
}

void allocplan_resolve(struct allocplan *plan) {
    for (size_t i = 0; i < plan->count; i++) {
        struct nest nest = {.plan = plan, .outer = &plan->code[i]};
        if (nest.outer->set != NULL && allocates(plan, i)) {
            nest_add(&nest, nest.outer->symbol->address);
            for (size_t part = 0; part < nest.part_count; part++) {
                nest_look_at(&nest, nest.parts[part]);
            }
            plan->code[i].is_wrapper = nest.calls_another;
        }
    }
    for (size_t i = plan->count; i-- > 0;) {
        if (plan->code[i].is_wrapper) {
            allocplan_leave_out(plan, i);
        }
    }
}

/* ---- Places ---- */

/* A block for its functions, one after the other. Whether there is room. */
static bool allocplan_place_object(struct allocplan *plan, struct allocprocess *process,
                                   const struct allocobject *object) {
    struct memtrace_plan_block *block = &plan->blocks[plan->block_count];
    uint64_t size = 0;
    if (plan->block_count == MEMTRACE_PLAN_BLOCKS) {
        return false;
    }
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->code[i].object == object) {
            plan->code[i].block = plan->block_count;
            plan->code[i].at = size;
            size += ROOM;
        }
    }
    block->size = (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    block->address = allocprocess_take(process, object, block->size);
    if (block->address != 0) {
        plan->bytes[plan->block_count] = job_array(block->size, 1);
        memset(plan->bytes[plan->block_count++], INT3, block->size);
    }
    return block->address != 0;
}

void allocplan_place(struct allocplan *plan, struct allocprocess *process,
                     void (*tell)(const char *line)) {
    size_t most = plan->first < MEMTRACE_SITES ? MEMTRACE_SITES - plan->first : 0;
    if (plan->count > most) {
        tell(job_text("%zu functions are more than the %d that there may be: the first %zu are "
                      "taken",
                      plan->count, MEMTRACE_SITES, most));
        plan->count = most;
    }
    for (size_t i = 0; i < process->object_count; i++) {
        const struct allocobject *object = &process->objects[i];
        size_t number = 0;
        while (number < plan->count && plan->code[number].object != object) {
            number++;
        }
        if (number == plan->count || allocplan_place_object(plan, process, object)) {
            continue;
        }
        tell(job_text("%s: there is no room beside it for code: none of its functions",
                      object->path));
        for (size_t j = plan->count; j-- > 0;) {
            if (plan->code[j].object == object) {
                allocplan_leave_out(plan, j);
            }
        }
    }
    for (size_t i = plan->count; i-- > 0;) {
        if (!write_function(plan, i)) {
            tell(job_text("the function at %#llx leads too far away to be moved",
                          (unsigned long long)plan->list[i].address));
            allocplan_leave_out(plan, i);
        }
    }
    /* Each has its final number only now that none is left out any more. */
    for (size_t i = 0; i < plan->count; i++) {
        write_function(plan, i);
    }
    if (plan->count == 0) {
        job_fail("no function is left to be followed");
    }
}

/* ---- The file ---- */

static int allocplan_write_parts(int fd, const struct allocplan *plan) {
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

void allocplan_write_to(const struct allocplan *plan, int fd) {
    if (allocplan_write_parts(fd, plan) != 0) {
        job_fail("the plan cannot be written: %s", strerror(errno));
    }
}

void allocplan_write(const struct allocplan *plan, const char *path) {
    const char *temporary = job_text("%s.%ld", path, (long)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int status = fd >= 0 ? allocplan_write_parts(fd, plan) : -1;
    status = fd >= 0 && close(fd) != 0 ? -1 : status;
    status = status == 0 ? rename(temporary, path) : status;
    if (status != 0) {
        int reason = errno;
        if (fd >= 0) {
            unlink(temporary);
        }
        job_fail("%s: %s", path, strerror(reason));
    }
}
