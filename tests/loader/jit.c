/* SPDX-License-Identifier: MIT */
/*
 * jit.c: code written at run time that calls the allocator, with unwind tables made by hand, at one
 * address after the other's. For each allocation one line: its size and the return address into the
 * written code. Its frames are large and full of return addresses that mean nothing.
 */
#include "subject.h"

#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { AREA = 16384, CODE = 64, MOST_PIECES = 3, THREADS = 4 };

extern void __register_frame(const void *frames);
extern void __deregister_frame(const void *frames);
extern void __register_frame_info(const void *frames, void *object);
extern void *__deregister_frame_info(const void *frames);
extern void __register_frame_table(const void *const *table);

typedef void *piece_function(size_t size, void *(*allocator)(size_t size));

/* The kinds of unwind table. */
enum table { BY_SP, BY_EXPRESSION, BY_FP };

static uint8_t *put(uint8_t *at, const void *bytes, size_t size) {
    memcpy(at, bytes, size);
    return at + size;
}

#define PUT(at, ...) put(at, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static uint8_t *put_word(uint8_t *at, uint32_t word) {
    return put(at, &word, sizeof word);
}

/* A function with `room` bytes of locals that calls its second argument; returns where that returns
 * to. room % 16 == 8. */
static uint8_t *write_code(uint8_t *code, uint32_t room) {
    uint8_t *at = PUT(code, 0x48, 0x81, 0xec); /* sub $room, %rsp */
    at = put_word(at, room);
    at = PUT(at, 0xff, 0xd6); /* call *%rsi */
    uint8_t *back = at;
    at = PUT(at, 0x48, 0x81, 0xc4); /* add $room, %rsp */
    at = put_word(at, room);
    PUT(at, 0xc3); /* ret */
    return back;
}

/* The same with a frame pointer. */
static uint8_t *write_fp_code(uint8_t *code, uint32_t room) {
    uint8_t *at = PUT(code, 0x55, 0x48, 0x89, 0xe5); /* push %rbp; mov %rsp, %rbp */
    at = PUT(at, 0x48, 0x81, 0xec);
    at = put_word(at, room + 8);
    at = PUT(at, 0xff, 0xd6);
    uint8_t *back = at;
    PUT(at, 0xc9, 0xc3); /* leave; ret */
    return back;
}

static uint8_t *put_uleb(uint8_t *at, uint32_t value) {
    for (; value >= 0x80; value >>= 7) {
        *at++ = (uint8_t)(value | 0x80);
    }
    *at++ = (uint8_t)value;
    return at;
}

static uint8_t *end_entry(uint8_t *entry, uint8_t *at) {
    uint32_t length;
    while ((at - entry - 4) % 8 != 4) {
        *at++ = 0; /* nop */
    }
    length = (uint32_t)(at - entry - 4);
    memcpy(entry, &length, sizeof length);
    return at;
}

/* A CIE for code whose CFA is rsp + 8 at its start, addresses absolute. */
static uint8_t *put_cie(uint8_t *entry) {
    uint8_t *at = PUT(entry + 4, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0);
    at = PUT(at, 0x0c, 7, 8, 0x90, 1); /* def_cfa rsp 8; the return address at CFA - 8 */
    return end_entry(entry, at);
}

static uint8_t *put_fde(uint8_t *entry, const uint8_t *cie, const uint8_t *code, uint32_t room,
                        enum table table) {
    const uint64_t where[2] = {(uintptr_t)code, CODE};
    uint8_t *at = put_word(entry + 4, (uint32_t)(entry + 4 - cie));
    at = put(at, where, sizeof where);
    *at++ = 0; /* no augmentation data */
    if (table == BY_FP) {
        at = PUT(at, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6); /* push, mov: CFA = rbp + 16 */
    } else {
        *at++ = 0x47; /* behind the sub */
        if (table == BY_SP) {
            *at++ = 0x0e;
            at = put_uleb(at, room + 8);
        } else {
            uint8_t block[8];
            uint8_t *end = put_uleb(PUT(block, 0x77, 0, 0x23), room + 8); /* rsp + 0, + room + 8 */
            *at++ = 0x0f;
            *at++ = (uint8_t)(end - block);
            at = put(at, block, (size_t)(end - block));
        }
    }
    return end_entry(entry, at);
}

/* --- a piece of code and its table ------------------------------------------------------------ */

struct piece {
    uint8_t *code;
    const uint8_t *back;
    uint8_t *frames; /* an .eh_frame of one FDE */
    uint8_t *fde;
};

static uint8_t *area;

static void new_area(void) {
    void *at = mmap(area, AREA, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS | (area != NULL ? MAP_FIXED : 0), -1, 0);
    check(at != MAP_FAILED, "mmap");
    area = at;
}

static struct piece write_piece(size_t place, uint32_t room, enum table table) {
    struct piece piece = {.code = area + place * CODE, .frames = area + AREA / 2 + place * 256};
    uint8_t *at;
    piece.back = table == BY_FP ? write_fp_code(piece.code, room) : write_code(piece.code, room);
    piece.fde = put_cie(piece.frames);
    at = put_fde(piece.fde, piece.frames, piece.code, room, table);
    put_word(at, 0);
    return piece;
}

/* Leaves on the stack what a guess would take for callers. */
NOINLINE static void litter(void) {
    volatile uintptr_t words[1000];
    for (size_t i = 0; i < 1000; i++) {
        words[i] = (uintptr_t)malloc + 16 + i % 7;
    }
}

NOINLINE static void *call(const struct piece *piece, size_t size) {
    litter();
    void *block = ((piece_function *)(uintptr_t)piece->code)(size, malloc);
    keep(block);
    return block;
}

NOINLINE static void allocate(const char *what, const struct piece *piece, size_t size) {
    char line[100];
    for (int i = 0; i < 3; i++) { /* the second is known again */
        keep(call(piece, size));
    }
    snprintf(line, sizeof line, "%s %zu %#lx\n", what, size, (unsigned long)(uintptr_t)piece->back);
    say(line);
}

/* --- cases ------------------------------------------------------------------------------------ */

static int frames_behind; /* the written code, as backtrace() saw it */
static const void *written;

NOINLINE static void *look_back(size_t size) {
    void *frames[64];
    int count = backtrace(frames, 64);
    for (int i = 0; i < count; i++) {
        if (frames[i] == written) {
            frames_behind = count - i - 1;
        }
    }
    return malloc(size);
}

/* What is registered reaches the unwinder of exceptions, too. */
NOINLINE static void check_foreign_unwinder(const struct piece *piece) {
    written = piece->back;
    keep(((piece_function *)(uintptr_t)piece->code)(81000, look_back));
    check(frames_behind >= 3, "backtrace() through written code");
}

/* Registered, by each of the ways. */
static void registered(void) {
    struct piece pieces[MOST_PIECES];
    const void *table[MOST_PIECES + 1] = {0};
    char object[256];
    for (size_t i = 0; i < MOST_PIECES; i++) {
        pieces[i] = write_piece(i, 136 + 1600 * (uint32_t)i, (enum table)i);
        table[i] = pieces[i].frames;
    }
    __register_frame(pieces[0].frames);
    allocate("known", &pieces[0], 81001);
    check_foreign_unwinder(&pieces[0]);
    __register_frame_info(pieces[1].frames, object);
    allocate("known", &pieces[1], 81003);
    allocate("known", &pieces[2], 81005); /* not registered: its frame pointer leads on */
    __deregister_frame_info(pieces[1].frames);
    __deregister_frame(pieces[0].frames);
    allocate("unknown", &pieces[0], 81007);
    __register_frame_table(table);
    for (size_t i = 0; i < MOST_PIECES; i++) {
        allocate("known", &pieces[i], 81011 + 2 * i);
    }
    __deregister_frame(table);
    __register_frame(pieces[1].fde); /* as for LLVM's unwinder */
    allocate("known", &pieces[1], 81021);
    __deregister_frame(pieces[1].fde);
}

/* Other code at the same addresses: its own frames, not those of the code before. */
static void replaced(void) {
    for (uint32_t i = 0; i < 40; i++) {
        struct piece piece;
        new_area();
        piece = write_piece(0, 8 + 272 * (i % 7), i % 2 == 0 ? BY_SP : BY_EXPRESSION);
        __register_frame(piece.frames);
        allocate("known", &piece, 82001 + 2 * i);
        __deregister_frame(piece.frames);
        munmap(area, AREA);
    }
}

/* Many at once, so that the table grows; every second one goes again. */
static void many(void) {
    enum { PIECES = 3000, EACH = 512 };
    uint8_t *wide = mmap(NULL, (size_t)PIECES * EACH, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct piece piece = {0};
    for (size_t i = 0; i < PIECES; i++) {
        uint8_t *fde;
        piece.code = wide + i * EACH;
        piece.frames = piece.code + CODE;
        piece.back = write_code(piece.code, 264);
        fde = put_cie(piece.frames);
        put_word(put_fde(fde, piece.frames, piece.code, 264, BY_SP), 0);
        __register_frame(piece.frames);
    }
    for (size_t i = 0; i < PIECES; i += 2) {
        __deregister_frame(wide + i * EACH + CODE);
    }
    allocate("known", &piece, 83001);
    piece.code = wide;
    piece.back = write_code(piece.code, 264);
    allocate("unknown", &piece, 83003);
}

/* Each writes, registers, runs and takes back code of its own, again and again. */
static void *work(void *argument) {
    size_t number = (size_t)argument;
    for (uint32_t i = 0; i < 300; i++) {
        struct piece piece = write_piece(number, 8 + 272 * (i % 7), BY_SP);
        __register_frame(piece.frames);
        keep(call(&piece, 84001 + number));
        __deregister_frame(piece.frames);
    }
    return NULL;
}

static void threads(void) {
    pthread_t thread[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        pthread_create(&thread[i], NULL, work, (void *)i);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    for (size_t i = 0; i < THREADS; i++) {
        struct piece piece = write_piece(i, 8, BY_SP);
        char line[100];
        snprintf(line, sizeof line, "thread %zu %#lx\n", 84001 + i,
                 (unsigned long)(uintptr_t)piece.back);
        say(line);
    }
}

int main(int argc, char **argv) {
    check(argc == 2, "usage");
    new_area();
    if (strcmp(argv[1], "registered") == 0) {
        registered();
    } else if (strcmp(argv[1], "replaced") == 0) {
        replaced();
    } else if (strcmp(argv[1], "many") == 0) {
        many();
    } else {
        threads();
    }
    return 3;
}
