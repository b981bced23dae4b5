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

static void slice_put_thread(struct slice_writer *writer, const struct slice_thread *thread) {
    struct varint_writer *bytes = &writer->bytes;
    varint_put(bytes, thread->id);
    varint_put(bytes, thread->alloc_units);
    varint_put(bytes, thread->alloc_bytes);
    varint_put(bytes, thread->free_units);
    varint_put(bytes, thread->free_bytes);
    varint_put(bytes, thread->foreign);
    writer->slice->threads++;
}

static void slice_put_foreign(struct slice_writer *writer, const struct slice_foreign *foreign) {
    varint_put(&writer->bytes, foreign->owner);
    varint_put(&writer->bytes, foreign->units);
    varint_put(&writer->bytes, foreign->bytes);
}

bool slice_put_thread_of(struct slice_writer *writer, struct slice_thread thread,
                         const struct foreign *foreign, size_t *next) {
    size_t first = *next;
    while (*next < foreign->count && foreign->pairs[*next].freer == thread.id) {
        ++*next;
    }
    thread.foreign = *next - first;
    if ((thread.alloc_units | thread.free_units | thread.foreign) == 0) {
        return false;
    }
    slice_put_thread(writer, &thread);
    for (size_t i = first; i < *next; i++) {
        const struct model_foreign *from = &foreign->pairs[i];
        slice_put_foreign(writer, &(struct slice_foreign){from->owner, from->blocks, from->bytes});
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

static void slice_get_lifetimes(struct varint_reader *bytes, uint64_t *lifetimes, uint64_t unit) {
    uint64_t mask = varint_get(bytes);
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        lifetimes[i] = mask >> i & 1 ? varint_get(bytes) * unit : 0;
    }
}

static double slice_get_double(struct varint_reader *bytes) {
    double value = 0;
    const void *at = varint_get_bytes(bytes, sizeof value);
    if (at != NULL) {
        memcpy(&value, at, sizeof value);
    }
    *bytes->failed |= !isfinite(value);
    return value;
}

/* What a context takes at most: its id, what follows, 6 numbers, the mask of lifetimes and these,
 * two variances. */
enum {
    MOST_BYTES = VARINT_MOST + 1 + (6 + 1 + MEMTRACE_LIFETIME_BUCKETS) * VARINT_MOST +
                 2 * (int)sizeof(double)
};

/* As the rest of slice_next_context(), where MOST_BYTES are there: windows are sums of millions of
 * contexts, and most of what they cost is to read these. */
static bool slice_take_context(struct slice_reader *reader, struct slice_context *context) {
    const unsigned char *at = reader->bytes.next;
    bool *failed = reader->bytes.failed;
    uint64_t unit;
    unsigned has;
    *context = (struct slice_context){.id = reader->last_id + (uint32_t)varint_take(&at, failed)};
    reader->last_id = context->id;
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
    reader->bytes.next = at;
    if (has & HAS_VARIANCE) {
        context->total_variance = slice_get_double(&reader->bytes);
        context->live_variance = slice_get_double(&reader->bytes);
    }
    return !reader->failed;
}

bool slice_next_context(struct slice_reader *reader, struct slice_context *context) {
    struct varint_reader *bytes = &reader->bytes;
    unsigned has;
    uint64_t unit;
    if (reader->contexts == 0 || reader->failed) {
        return false;
    }
    reader->contexts--;
    if (bytes->end - bytes->next >= MOST_BYTES) {
        return slice_take_context(reader, context);
    }
    *context = (struct slice_context){.id = reader->last_id + (uint32_t)varint_get(bytes)};
    reader->last_id = context->id;
    has = varint_get_byte(bytes);
    unit = has & HAS_WHOLE ? ACCOUNTS_ONE : 1;
    context->alloc_bytes = varint_get(bytes);
    context->alloc_units = varint_get(bytes) * unit;
    context->peak = varint_unzigzag(varint_get(bytes));
    if (has & HAS_FREES) {
        context->free_bytes = varint_get(bytes);
        context->free_units = varint_get(bytes) * unit;
        slice_get_lifetimes(bytes, context->lifetimes, unit);
    }
    context->temporary = has & HAS_TEMPORARY ? varint_get(bytes) * unit : 0;
    if (has & HAS_VARIANCE) {
        context->total_variance = slice_get_double(bytes);
        context->live_variance = slice_get_double(bytes);
    }
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

/* Whether the maximum of both is in the right one. What other classes hold may still change while
 * the heap is at its maximum, so of the same height the later moment counts. */
static bool is_right_higher(const struct slice *left, const struct slice *right) {
    return wrap_add(left->change, right->highest) > left->highest ||
           (left->at_maximum && right->highest == 0);
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

/* Both's foreign frees, by owner. Counts them if there is no writer. */
static uint64_t slice_join_foreign(struct slice_writer *writer, struct slice_reader left,
                                   uint64_t left_count, struct slice_reader right,
                                   uint64_t right_count) {
    struct slice_foreign a = {0};
    struct slice_foreign b = {0};
    uint64_t count = 0;
    bool has_a = false;
    bool has_b = false;
    left.bytes.failed = &left.failed;
    right.bytes.failed = &right.failed;
    while (left_count != 0 || right_count != 0 || has_a || has_b) {
        struct slice_foreign sum;
        if (!has_a && left_count != 0) {
            slice_next_foreign(&left, &a);
            left_count--;
            has_a = true;
        }
        if (!has_b && right_count != 0) {
            slice_next_foreign(&right, &b);
            right_count--;
            has_b = true;
        }
        if (has_a && has_b && a.owner == b.owner) {
            sum = (struct slice_foreign){a.owner, a.units + b.units, a.bytes + b.bytes};
            has_a = has_b = false;
        } else if (has_a && (!has_b || a.owner < b.owner)) {
            sum = a;
            has_a = false;
        } else {
            sum = b;
            has_b = false;
        }
        count++;
        if (writer != NULL) {
            slice_put_foreign(writer, &sum);
        }
    }
    return count;
}

static void slice_skip_foreign(struct slice_reader *reader, uint64_t count) {
    struct slice_foreign skipped;
    for (; count != 0; count--) {
        slice_next_foreign(reader, &skipped);
    }
}

static void slice_join_threads(struct slice_writer *writer, struct slice_reader *left,
                               struct slice_reader *right) {
    struct slice_thread a;
    struct slice_thread b;
    bool has_a = slice_next_thread(left, &a);
    bool has_b = slice_next_thread(right, &b);
    while (has_a || has_b) {
        bool takes_a = has_a && (!has_b || a.id <= b.id);
        bool takes_b = has_b && (!has_a || b.id <= a.id);
        struct slice_thread none = {.id = takes_a ? a.id : b.id};
        struct slice_thread from_a = takes_a ? a : none;
        struct slice_thread from_b = takes_b ? b : none;
        struct slice_thread sum = {
            .id = none.id,
            .alloc_units = from_a.alloc_units + from_b.alloc_units,
            .alloc_bytes = from_a.alloc_bytes + from_b.alloc_bytes,
            .free_units = from_a.free_units + from_b.free_units,
            .free_bytes = from_a.free_bytes + from_b.free_bytes,
            .foreign = slice_join_foreign(NULL, *left, from_a.foreign, *right, from_b.foreign)};
        slice_put_thread(writer, &sum);
        slice_join_foreign(writer, *left, from_a.foreign, *right, from_b.foreign);
        slice_skip_foreign(left, from_a.foreign);
        slice_skip_foreign(right, from_b.foreign);
        has_a = takes_a ? slice_next_thread(left, &a) : has_a;
        has_b = takes_b ? slice_next_thread(right, &b) : has_b;
    }
}

static struct slice_variance join_variance(const struct slice *left, const struct slice *right,
                                           bool is_right) {
    const struct slice_variance *a = &left->variance;
    const struct slice_variance *b = &right->variance;
    return (struct slice_variance){.total = a->total + b->total,
                                   .allocations = a->allocations + b->allocations,
                                   .live = a->live + b->live,
                                   .maximum = is_right ? a->live + b->maximum : a->maximum};
}

void slice_join(struct slice *left, struct slice *right) {
    bool is_right = is_right_higher(left, right);
    struct slice joined = {
        .first_tick = left->first_tick < right->first_tick ? left->first_tick : right->first_tick,
        .last_tick = left->last_tick > right->last_tick ? left->last_tick : right->last_tick,
        .events = left->events + right->events,
        .change = wrap_add(left->change, right->change),
        .highest = is_right ? wrap_add(left->change, right->highest) : left->highest,
        .maximum_ns = is_right && right->highest > 0 ? right->maximum_ns : left->maximum_ns,
        .at_maximum = is_right && right->at_maximum,
        .error_bytes =
            left->error_bytes > right->error_bytes ? left->error_bytes : right->error_bytes,
        .variance = join_variance(left, right, is_right),
    };
    struct slice_writer writer = {.slice = &joined, .bytes.of_job = true};
    struct slice_reader from_left;
    struct slice_reader from_right;
    slice_read(&from_left, left);
    slice_read(&from_right, right);
    slice_join_contexts(&writer, &from_left, &from_right, is_right);
    slice_join_threads(&writer, &from_left, &from_right);
    slice_finish(&writer);
    slice_free(left);
    slice_free(right);
    *left = joined;
}
