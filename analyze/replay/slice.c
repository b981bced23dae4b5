/* SPDX-License-Identifier: MIT */
/* slice.c: packs and unpacks slices. See slice.h. */
#include "analyze/replay/slice.h"

#include "analyze/base/job.h"

#include <math.h>

/* What follows of a context. */
enum {
    HAS_WHOLE = 1 << 0, /* units are written as whole allocations */
    HAS_FREES = 1 << 1, /* and lifetimes */
    HAS_TEMPORARY = 1 << 2,
    HAS_VARIANCE = 1 << 3,
};

void slice_free(struct slice *slice) {
    job_release(slice->bytes);
    *slice = (struct slice){0};
}

/* ---- Writing ---- */

static uint64_t slice_all_units(const struct slice_context *context) {
    uint64_t units = context->alloc_units | context->free_units | context->temporary;
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        units |= context->lifetimes[i];
    }
    return units;
}

static void slice_put_lifetimes(struct varint_writer *bytes, const uint64_t *lifetimes,
                                uint64_t unit) {
    uint32_t mask = 0;
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        mask |= (uint32_t)(lifetimes[i] != 0) << i;
    }
    varint_put(bytes, mask);
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        if (lifetimes[i] != 0) {
            varint_put(bytes, lifetimes[i] / unit);
        }
    }
}

void slice_put_context(struct slice_writer *writer, const struct slice_context *context) {
    struct varint_writer *bytes = &writer->bytes;
    bool is_whole = slice_all_units(context) % ACCOUNTS_ONE == 0;
    bool has_frees = (context->free_bytes | context->free_units) != 0;
    bool has_variance = context->total_variance != 0 || context->live_variance != 0;
    uint64_t unit = is_whole ? ACCOUNTS_ONE : 1;
    varint_put(bytes, context->id - writer->last_id);
    varint_put_byte(bytes,
                    (unsigned char)((is_whole ? HAS_WHOLE : 0) | (has_frees ? HAS_FREES : 0) |
                                    (context->temporary != 0 ? HAS_TEMPORARY : 0) |
                                    (has_variance ? HAS_VARIANCE : 0)));
    varint_put(bytes, context->alloc_bytes);
    varint_put(bytes, context->alloc_units / unit);
    varint_put(bytes, varint_zigzag(context->peak));
    if (has_frees) {
        varint_put(bytes, context->free_bytes);
        varint_put(bytes, context->free_units / unit);
        slice_put_lifetimes(bytes, context->lifetimes, unit);
    }
    if (context->temporary != 0) {
        varint_put(bytes, context->temporary / unit);
    }
    if (has_variance) {
        varint_put_bytes(bytes, &context->total_variance, sizeof(double));
        varint_put_bytes(bytes, &context->live_variance, sizeof(double));
    }
    writer->last_id = context->id;
    writer->slice->contexts++;
}

bool slice_put_thread_of(struct slice_writer *writer, struct slice_thread thread,
                         const struct foreign *foreign, size_t *next) {
    struct varint_writer *bytes = &writer->bytes;
    size_t first = *next;
    while (*next < foreign->count && foreign->pairs[*next].freer == thread.id) {
        ++*next;
    }
    thread.foreign = *next - first;
    if ((thread.alloc_units | thread.free_units | thread.foreign) == 0) {
        return false;
    }
    varint_put(bytes, thread.id);
    varint_put(bytes, thread.alloc_units);
    varint_put(bytes, thread.alloc_bytes);
    varint_put(bytes, thread.free_units);
    varint_put(bytes, thread.free_bytes);
    varint_put(bytes, thread.foreign);
    writer->slice->threads++;
    for (size_t i = first; i < *next; i++) {
        varint_put(bytes, foreign->pairs[i].owner);
        varint_put(bytes, foreign->pairs[i].blocks);
        varint_put(bytes, foreign->pairs[i].bytes);
    }
    return true;
}

void slice_finish(struct slice_writer *writer) {
    struct slice *slice = writer->slice;
    slice->size = writer->bytes.size;
    slice->bytes = varint_keep(&writer->bytes);
}

/* ---- Reading ---- */

void slice_read(struct slice_reader *reader, const struct slice *slice) {
    const unsigned char *end = slice->size != 0 ? slice->bytes + slice->size : slice->bytes;
    *reader = (struct slice_reader){
        .bytes = {slice->bytes, end, &reader->failed}, /* an empty one has no bytes to point to */
        .contexts = slice->contexts,
        .threads = slice->threads,
    };
}

static double slice_take_double(const unsigned char **at, bool *failed) {
    double value;
    memcpy(&value, *at, sizeof value);
    *at += sizeof value;
    *failed |= !isfinite(value);
    return value;
}

/* What a context takes at most: its id, what follows, 6 numbers, the mask of lifetimes and these,
 * two variances. */
enum {
    MOST_BYTES = VARINT_MOST + 1 + (6 + 1 + MEMTRACE_LIFETIME_BUCKETS) * VARINT_MOST +
                 2 * (int)sizeof(double)
};

/* From `at` on, where MOST_BYTES are there: windows are sums of millions of contexts, and most of
 * what they cost is to read these. Returns where it ends. */
static const unsigned char *slice_take_context(const unsigned char *at, uint32_t last_id,
                                               struct slice_context *context, bool *failed) {
    uint64_t unit;
    unsigned has;
    *context = (struct slice_context){.id = last_id + (uint32_t)varint_take(&at, failed)};
    has = *at++;
    unit = has & HAS_WHOLE ? ACCOUNTS_ONE : 1;
    context->alloc_bytes = varint_take(&at, failed);
    context->alloc_units = varint_take(&at, failed) * unit;
    context->peak = varint_unzigzag(varint_take(&at, failed));
    if (has & HAS_FREES) {
        uint64_t mask;
        context->free_bytes = varint_take(&at, failed);
        context->free_units = varint_take(&at, failed) * unit;
        mask = varint_take(&at, failed) & ((UINT64_C(1) << MEMTRACE_LIFETIME_BUCKETS) - 1);
        for (; mask != 0; mask &= mask - 1) {
            context->lifetimes[__builtin_ctzll(mask)] = varint_take(&at, failed) * unit;
        }
    }
    context->temporary = has & HAS_TEMPORARY ? varint_take(&at, failed) * unit : 0;
    if (has & HAS_VARIANCE) {
        context->total_variance = slice_take_double(&at, failed);
        context->live_variance = slice_take_double(&at, failed);
    }
    return at;
}

bool slice_next_context(struct slice_reader *reader, struct slice_context *context) {
    struct varint_reader *bytes = &reader->bytes;
    size_t left = (size_t)(bytes->end - bytes->next);
    if (reader->contexts == 0 || reader->failed) {
        return false;
    }
    reader->contexts--;
    if (left >= MOST_BYTES) {
        bytes->next = slice_take_context(bytes->next, reader->last_id, context, &reader->failed);
    } else { /* of a copy with room behind it */
        unsigned char last[MOST_BYTES] = {0};
        size_t taken;
        if (left != 0) {
            memcpy(last, bytes->next, left);
        }
        taken =
            (size_t)(slice_take_context(last, reader->last_id, context, &reader->failed) - last);
        reader->failed |= taken > left;
        bytes->next = taken < left ? bytes->next + taken : bytes->end;
    }
    reader->last_id = context->id;
    return !reader->failed;
}

bool slice_next_thread(struct slice_reader *reader, struct slice_thread *thread) {
    struct varint_reader *bytes = &reader->bytes;
    if (reader->threads == 0 || reader->failed) {
        return false;
    }
    reader->threads--;
    *thread = (struct slice_thread){.id = (uint32_t)varint_get(bytes)};
    thread->alloc_units = varint_get(bytes);
    thread->alloc_bytes = varint_get(bytes);
    thread->free_units = varint_get(bytes);
    thread->free_bytes = varint_get(bytes);
    thread->foreign = varint_get(bytes);
    if (thread->foreign > 1u << MEMTRACE_THREAD_BITS || thread->id >> MEMTRACE_THREAD_BITS != 0) {
        reader->failed = true;
    }
    return !reader->failed;
}

void slice_next_foreign(struct slice_reader *reader, struct slice_foreign *foreign) {
    struct varint_reader *bytes = &reader->bytes;
    foreign->owner = (uint32_t)varint_get(bytes);
    foreign->units = varint_get(bytes);
    foreign->bytes = varint_get(bytes);
    if (foreign->owner >> MEMTRACE_THREAD_BITS != 0) {
        reader->failed = true;
        foreign->owner = 0;
    }
}

/* ---- Joining ---- */

bool slice_add_totals(struct slice *left, const struct slice *right) {
    /* What other classes hold may still change while the heap is at its maximum, so of the same
     * height the later moment counts. */
    bool is_right = wrap_add(left->change, right->highest) > left->highest ||
                    (left->at_maximum && right->highest == 0);
    if (is_right) {
        left->maximum_ns = right->highest > 0 ? right->maximum_ns : left->maximum_ns;
        left->highest = wrap_add(left->change, right->highest);
        left->variance.maximum = left->variance.live + right->variance.maximum;
    }
    left->at_maximum = is_right && right->at_maximum;
    left->change = wrap_add(left->change, right->change);
    left->variance.total += right->variance.total;
    left->variance.allocations += right->variance.allocations;
    left->variance.live += right->variance.live;
    if (right->error_bytes > left->error_bytes) {
        left->error_bytes = right->error_bytes;
    }
    return is_right;
}

static void slice_add_context(struct slice_context *left, const struct slice_context *right,
                              bool is_right) {
    if (is_right) {
        left->peak = left->alloc_bytes - left->free_bytes + right->peak;
    }
    left->alloc_bytes += right->alloc_bytes;
    left->alloc_units += right->alloc_units;
    left->free_bytes += right->free_bytes;
    left->free_units += right->free_units;
    left->temporary += right->temporary;
    left->total_variance += right->total_variance;
    left->live_variance += right->live_variance;
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        left->lifetimes[i] += right->lifetimes[i];
    }
}

static void slice_join_contexts(struct slice_writer *writer, struct slice_reader *left,
                                struct slice_reader *right, bool is_right) {
    struct slice_context a;
    struct slice_context b;
    bool has_a = slice_next_context(left, &a);
    bool has_b = slice_next_context(right, &b);
    while (has_a || has_b) {
        bool takes_a = has_a && (!has_b || a.id <= b.id);
        bool takes_b = has_b && (!has_a || b.id <= a.id);
        struct slice_context sum = takes_a ? a : (struct slice_context){.id = b.id};
        struct slice_context none = {0};
        slice_add_context(&sum, takes_b ? &b : &none, is_right);
        slice_put_context(writer, &sum);
        has_a = takes_a ? slice_next_context(left, &a) : has_a;
        has_b = takes_b ? slice_next_context(right, &b) : has_b;
    }
}

/* What the thread freed of others', by both. */
static void slice_take_foreign(struct slice_reader *reader, const struct slice_thread *thread,
                               struct foreign *foreign) {
    for (uint64_t i = 0; i < thread->foreign; i++) {
        struct slice_foreign next;
        slice_next_foreign(reader, &next);
        foreign_add(foreign, (struct model_foreign){.freer = thread->id,
                                                    .owner = next.owner,
                                                    .blocks = next.units,
                                                    .bytes = next.bytes});
    }
}

static void slice_join_threads(struct slice_writer *writer, struct slice_reader *left,
                               struct slice_reader *right) {
    struct foreign foreign = {0};
    struct slice_thread a;
    struct slice_thread b;
    bool has_a = slice_next_thread(left, &a);
    bool has_b = slice_next_thread(right, &b);
    while (has_a || has_b) {
        bool takes_a = has_a && (!has_b || a.id <= b.id);
        bool takes_b = has_b && (!has_a || b.id <= a.id);
        struct slice_thread sum = takes_a ? a : (struct slice_thread){.id = b.id};
        size_t next = 0;
        if (takes_a) {
            slice_take_foreign(left, &a, &foreign);
            has_a = slice_next_thread(left, &a);
        }
        if (takes_b) {
            sum.alloc_units += b.alloc_units;
            sum.alloc_bytes += b.alloc_bytes;
            sum.free_units += b.free_units;
            sum.free_bytes += b.free_bytes;
            slice_take_foreign(right, &b, &foreign);
            has_b = slice_next_thread(right, &b);
        }
        foreign_sort(&foreign);
        slice_put_thread_of(writer, sum, &foreign, &next);
        foreign_clear(&foreign);
    }
    foreign_free(&foreign);
}

void slice_join(struct slice *left, struct slice *right) {
    struct slice joined = *left;
    bool is_right = slice_add_totals(&joined, right);
    struct slice_writer writer = {.slice = &joined, .bytes.of_job = true};
    struct slice_reader from_left;
    struct slice_reader from_right;
    if (right->first_tick < left->first_tick) {
        joined.first_tick = right->first_tick;
    }
    if (right->last_tick > left->last_tick) {
        joined.last_tick = right->last_tick;
    }
    joined.events += right->events;
    joined.contexts = joined.threads = 0;
    slice_read(&from_left, left);
    slice_read(&from_right, right);
    slice_join_contexts(&writer, &from_left, &from_right, is_right);
    slice_join_threads(&writer, &from_left, &from_right);
    slice_finish(&writer);
    slice_free(left);
    slice_free(right);
    *left = joined;
}
