/* SPDX-License-Identifier: MIT */
/* segmentpack.c: see segmentpack.h. */
#include "analyze/read/segmentpack.h"

#include "analyze/base/hotpath.h"

#include <stdlib.h>
#include <string.h>

enum column {
    COLUMN_FORM = 0,   /* the number of fields, then of each its width, and NUMBERED */
    COLUMN_PIECES = 1, /* pages from the end of the piece before, pages */
    COLUMN_NEW = 2,    /* the values of a numbered field, in the order of their first use */
    COLUMN_FIELDS = 3, /* one each; where there are none the first has the bytes themselves */
};
enum { NUMBERED = 0x80, PAGE = MEMTRACE_PAGE_SIZE };

/* ---- Forms ---- */

static uint32_t item_bytes(const struct segmentpack_form *form) {
    uint32_t bytes = 0;
    for (unsigned i = 0; i < form->count; i++) {
        bytes += form->width[i];
    }
    return bytes;
}

struct segmentpack_form segmentpack_form(uint32_t kind, uint32_t item_size) {
    static const struct {
        uint32_t kind;
        struct segmentpack_form form;
    } forms[] = {
        {MEMTRACE_SEGMENT_TREE, {{8, 4, 4}, 3, true}},
        /* The frame's lower bits, the parent, the area. */
        {MEMTRACE_SEGMENT_NODES, {{3, 3, 2}, 3, true}},
        /* peak_epoch and lifetimes are the last ones. */
        {MEMTRACE_SEGMENT_LEDGER, {{8, 8, 8, 8, 8, 8, 4, 4}, 8, false}},
        {MEMTRACE_SEGMENT_CELLS, {{8, 8, 8, 8, 8, 8, 4, 4}, 8, false}},
        {MEMTRACE_SEGMENT_LIFETIMES,
         {{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}, MEMTRACE_LIFETIME_BUCKETS, false}},
        {MEMTRACE_SEGMENT_FREES, {{8, 8}, 2, false}},
        {MEMTRACE_SEGMENT_PATHS, {{8, 8, 8, 8, 8, 8}, 6, false}},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (forms[i].kind == kind && item_bytes(&forms[i].form) == item_size) {
            return forms[i].form;
        }
    }
    return (struct segmentpack_form){.count = 0};
}

bool segmentpack_same(const struct segmentpack_form *one, const struct segmentpack_form *other) {
    return one->count == other->count && one->numbered == other->numbered &&
           memcmp(one->width, other->width, one->count) == 0;
}

/* ---- Packing ---- */

static inline uint64_t load_field(const unsigned char *bytes, unsigned width) {
    uint64_t value = 0;
    memcpy(&value, bytes, width); /* little-endian, as all that MemTrace runs on */
    return value;
}

/* `count` values, `stride` bytes from each to the next. Room for them was made. */
HOT_INLINE void put_values(struct segmentpack *pack, unsigned field, const unsigned char *bytes,
                           size_t count, size_t stride, unsigned width) {
    struct varint_writer *column = &pack->columns[COLUMN_FIELDS + field];
    unsigned char *to = column->bytes + column->size;
    uint64_t before = pack->before[field];
    for (; count > 0; count--, bytes += stride) {
        uint64_t value = load_field(bytes, width);
        uint64_t left = varint_zigzag(value - before);
        if (value == before) { /* as most are */
            *to++ = 0;
            continue;
        }
        for (before = value; left >= 0x80; left >>= 7) {
            *to++ = (unsigned char)(left | 0x80);
        }
        *to++ = (unsigned char)left;
    }
    column->size = (size_t)(to - column->bytes);
    pack->before[field] = before;
}

/* The number of a value, plus one; 0: no memory. */
static uintptr_t segmentpack_number(struct segmentpack *pack, uint64_t value) {
    uintptr_t number = (uintptr_t)numbermap_get(&pack->numbers, value);
    if (number == 0) {
        number = pack->numbers.used + 1;
        varint_put(&pack->columns[COLUMN_NEW], varint_zigzag(value - pack->before[0]));
        pack->before[0] = value;
        if (numbermap_put(&pack->numbers, value, (void *)number) != 0) {
            return 0;
        }
    }
    return number;
}

HOT_INLINE void put_numbers(struct segmentpack *pack, const unsigned char *bytes, size_t count,
                            size_t stride, unsigned width) {
    struct varint_writer *column = &pack->columns[COLUMN_FIELDS];
    uint64_t last = 0;
    uintptr_t number = 0; /* of `last`, if there was one */
    for (; count > 0; count--, bytes += stride) {
        uint64_t value = load_field(bytes, width);
        if (number == 0 || value != last) { /* siblings often have the same */
            number = segmentpack_number(pack, value);
            last = value;
        }
        column->failed |= number == 0;
        varint_put(column, number - 1);
    }
}

/* Where the width is a constant to the compiler a value is a load, else a call. */
static void segmentpack_put_field(struct segmentpack *pack, unsigned field,
                                  const unsigned char *bytes, size_t count, size_t stride) {
    unsigned width = pack->form.width[field];
    if (field == 0 && pack->form.numbered) {
        if (width == 8) {
            put_numbers(pack, bytes, count, stride, 8);
        } else if (width == 3) {
            put_numbers(pack, bytes, count, stride, 3);
        } else {
            put_numbers(pack, bytes, count, stride, width);
        }
    } else if (width == 8) {
        put_values(pack, field, bytes, count, stride, 8);
    } else if (width == 4) {
        put_values(pack, field, bytes, count, stride, 4);
    } else if (width == 3) {
        put_values(pack, field, bytes, count, stride, 3);
    } else if (width == 2) {
        put_values(pack, field, bytes, count, stride, 2);
    } else {
        put_values(pack, field, bytes, count, stride, width);
    }
}

static void put_items(struct segmentpack *pack, const unsigned char *bytes, size_t size) {
    size_t stride = item_bytes(&pack->form);
    size_t at = 0;
    for (unsigned i = 0; i < pack->form.count; at += pack->form.width[i++]) {
        unsigned width = pack->form.width[i];
        size_t count = (size - at + stride - width) / stride; /* whole ones, the last item's too */
        if (!varint_room(&pack->columns[COLUMN_FIELDS + i], count * VARINT_MOST)) {
            return;
        }
        segmentpack_put_field(pack, i, bytes + at, count, stride);
    }
}

static void segmentpack_put_piece(struct segmentpack *pack, const unsigned char *bytes,
                                  uint64_t page, size_t pages) {
    varint_put(&pack->columns[COLUMN_PIECES], page - pack->end);
    varint_put(&pack->columns[COLUMN_PIECES], pages);
    pack->end = page + pages;
    pack->pages += pages;
    if (pack->form.count == 0) {
        varint_put_bytes(&pack->columns[COLUMN_FIELDS], bytes, pages * PAGE);
    } else {
        put_items(pack, bytes, pages * PAGE);
    }
}

static bool is_zero(const unsigned char *page) {
    return page[0] == 0 && memcmp(page, page + 1, PAGE - 1) == 0;
}

void segmentpack_add(struct segmentpack *pack, const unsigned char *bytes, uint64_t page,
                     size_t pages) {
    if (pack->form.count != 0) {
        segmentpack_put_piece(pack, bytes, page, pages);
        return;
    }
    for (size_t i = 0; i < pages;) {
        size_t first = i;
        while (i < pages && !is_zero(bytes + i * PAGE)) {
            i++;
        }
        if (i != first) {
            segmentpack_put_piece(pack, bytes + first * PAGE, page + first, i - first);
        } else {
            i++;
        }
    }
}

int segmentpack_end(struct segmentpack *pack, struct varint_writer *payload) {
    struct varint_writer *form = &pack->columns[COLUMN_FORM];
    varint_put_byte(form, (unsigned char)pack->form.count);
    for (unsigned i = 0; i < pack->form.count; i++) {
        bool numbered = i == 0 && pack->form.numbered;
        varint_put_byte(form, pack->form.width[i] | (numbered ? NUMBERED : 0));
    }
    varint_join(pack->columns, SEGMENTPACK_COLUMNS, payload);
    for (size_t i = 0; i < SEGMENTPACK_COLUMNS; i++) {
        pack->columns[i].size = 0;
    }
    numbermap_free(&pack->numbers);
    pack->numbers = (struct numbermap){0};
    memset(pack->before, 0, sizeof pack->before);
    pack->end = 0;
    return payload->failed ? -1 : 0;
}

void segmentpack_free(struct segmentpack *pack) {
    for (size_t i = 0; i < SEGMENTPACK_COLUMNS; i++) {
        free(pack->columns[i].bytes);
    }
    numbermap_free(&pack->numbers);
}

/* ---- Unpacking ---- */

struct unpack {
    struct segmentpack_form form;
    struct varint_reader columns[SEGMENTPACK_COLUMNS];
    uint64_t before[SEGMENTPACK_FIELDS];
    uint64_t *values; /* of the numbered field */
    size_t value_count;
    uint64_t *budget; /* bytes of pages that may still be written */
    bool failed;
};

/* Into zeros: what is 0 is not written, so that its page need not come to be. */
static inline void get_values(struct unpack *unpack, unsigned field, unsigned char *bytes,
                              size_t count, size_t stride, unsigned width) {
    struct varint_reader column = unpack->columns[COLUMN_FIELDS + field];
    uint64_t value = unpack->before[field];
    for (; count > 0 && !unpack->failed; count--, bytes += stride) {
        value += varint_unzigzag(varint_get(&column));
        if (value != 0) {
            memcpy(bytes, &value, width);
        }
    }
    unpack->columns[COLUMN_FIELDS + field] = column;
    unpack->before[field] = value;
}

static void get_numbers(struct unpack *unpack, unsigned char *bytes, size_t count, size_t stride) {
    for (; count > 0 && !unpack->failed; count--, bytes += stride) {
        uint64_t number = varint_get(&unpack->columns[COLUMN_FIELDS]);
        if (number >= unpack->value_count) {
            unpack->failed = true;
        } else if (unpack->values[number] != 0) {
            memcpy(bytes, &unpack->values[number], unpack->form.width[0]);
        }
    }
}

static void get_items(struct unpack *unpack, unsigned char *bytes, size_t size) {
    size_t stride = item_bytes(&unpack->form);
    size_t at = 0;
    for (unsigned i = 0; i < unpack->form.count; at += unpack->form.width[i++]) {
        unsigned width = unpack->form.width[i];
        size_t count = (size - at + stride - width) / stride;
        if (i == 0 && unpack->form.numbered) {
            get_numbers(unpack, bytes, count, stride);
        } else if (width == 8) {
            get_values(unpack, i, bytes + at, count, stride, 8);
        } else if (width == 4) {
            get_values(unpack, i, bytes + at, count, stride, 4);
        } else {
            get_values(unpack, i, bytes + at, count, stride, width);
        }
    }
}

static void get_form(struct unpack *unpack) {
    struct varint_reader *reader = &unpack->columns[COLUMN_FORM];
    unpack->form.count = (unsigned)varint_get_byte(reader);
    if (unpack->form.count > SEGMENTPACK_FIELDS) {
        unpack->failed = true;
        return;
    }
    for (unsigned i = 0; i < unpack->form.count; i++) {
        unsigned char width = varint_get_byte(reader);
        unpack->form.numbered |= i == 0 && (width & NUMBERED) != 0;
        unpack->form.width[i] = width & ~NUMBERED;
        unpack->failed |= unpack->form.width[i] < 1 || unpack->form.width[i] > 8;
    }
}

static int get_new(struct unpack *unpack) {
    struct varint_reader *reader = &unpack->columns[COLUMN_NEW];
    uint64_t value = 0;
    unpack->values = malloc(((size_t)(reader->end - reader->next) + 1) * sizeof *unpack->values);
    if (unpack->values == NULL) {
        return -1;
    }
    while (reader->next != reader->end && !unpack->failed) {
        value += varint_unzigzag(varint_get(reader));
        unpack->values[unpack->value_count++] = value;
    }
    return 0;
}

static void get_pieces(struct unpack *unpack, unsigned char *bytes, uint64_t size) {
    struct varint_reader *pieces = &unpack->columns[COLUMN_PIECES];
    uint64_t end = 0; /* in pages */
    while (pieces->next != pieces->end && !unpack->failed) {
        uint64_t start = end + varint_get(pieces);
        uint64_t pages = varint_get(pieces);
        uint64_t room = size / PAGE;
        if (start < end || start > room || pages > room - start) {
            unpack->failed = true;
            return;
        }
        end = start + pages;
        if (pages >= *unpack->budget / PAGE) {
            *unpack->budget = 0;
            unpack->failed = true;
            return;
        }
        *unpack->budget -= pages * PAGE;
        if (unpack->form.count == 0) {
            const void *from = varint_get_bytes(&unpack->columns[COLUMN_FIELDS], pages * PAGE);
            if (from != NULL) {
                memcpy(bytes + start * PAGE, from, pages * PAGE);
            }
        } else {
            get_items(unpack, bytes + start * PAGE, pages * PAGE);
        }
    }
}

int segmentpack_unpack(const void *payload, size_t payload_size, unsigned char *bytes,
                       uint64_t size, uint64_t *budget) {
    struct unpack unpack = {.budget = budget};
    if (varint_split(payload, payload_size, unpack.columns, SEGMENTPACK_COLUMNS, &unpack.failed) !=
        0) {
        return -1;
    }
    get_form(&unpack);
    if (!unpack.failed && get_new(&unpack) == 0) {
        get_pieces(&unpack, bytes, size);
    } else {
        unpack.failed = true;
    }
    free(unpack.values);
    return unpack.failed ? -1 : 0;
}
