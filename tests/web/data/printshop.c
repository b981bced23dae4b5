/* SPDX-License-Identifier: MIT */
/* printshop.c: three workers render pages of orders, the main thread packs and frees them: threads,
 * scopes, a mapping that fills up, lives of all lengths. Recorded once, for the pictures of the
 * page (record). */
#include "memtrace/memtrace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORKERS = 3, ORDERS = 120, PAGES = 4, PROOFS = 120, MIB = 1 << 20, PLATES = 24 * MIB };

struct page {
    char *pixels;
    size_t size;
};

struct order {
    char *title;
    struct page pages[PAGES];
};

static struct order orders[ORDERS];
static char *plates;
static char *volatile proofs[PROOFS]; // kept for complaints: nobody looks at them again

static unsigned roll(unsigned *dice, unsigned sides) {
    *dice = *dice * 1664525u + 1013904223u;
    return (*dice >> 8) % sides;
}

__attribute__((noinline)) static char *load_font(unsigned *dice) {
    size_t size = 600 + roll(dice, 90);
    return memset(malloc(size), 1, size);
}

__attribute__((noinline)) static void keep_proof(unsigned number, unsigned *dice) {
    proofs[number] = calloc(1, 512u << roll(dice, 4));
}

/* Lines are appended one by one: a chain of reallocations. */
__attribute__((noinline)) static struct page render_page(unsigned *dice) {
    struct page page = {NULL, 0};
    unsigned lines = 4 + roll(dice, 12);
    for (unsigned line = 0; line < lines; line++) {
        char *font = load_font(dice);
        page.size += 2048 + roll(dice, 8192);
        page.pixels = realloc(page.pixels, page.size);
        page.pixels[page.size - 1] = font[0];
        free(font);
    }
    return page;
}

__attribute__((noinline)) static void render_order(struct order *order, unsigned number,
                                                   unsigned *dice) {
    MEMTRACE_SCOPE("order");
    order->title = strdup("a booklet of four pages");
    for (unsigned i = 0; i < PAGES; i++) {
        order->pages[i] = render_page(dice);
    }
    keep_proof(number, dice);
    memset(plates + (size_t)number * (PLATES / ORDERS), 1, PLATES / ORDERS);
}

static void *work(void *argument) {
    unsigned first = *(unsigned *)argument, dice = first;
    char name[] = "worker 0";
    name[sizeof name - 2] = (char)('1' + first);
    memtrace_name_thread(name);
    for (unsigned number = first; number < ORDERS; number += WORKERS) {
        render_order(&orders[number], number, &dice);
        usleep(270000);
    }
    return NULL;
}

__attribute__((noinline)) static void pack_order(struct order *order) {
    for (unsigned i = 0; i < PAGES; i++) {
        free(order->pages[i].pixels);
    }
    free(order->title);
}

int main(void) {
    pthread_t threads[WORKERS];
    unsigned numbers[WORKERS];
    plates = mmap(NULL, PLATES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    usleep(5000000);
    MEMTRACE_MARK("rush hour");
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    MEMTRACE_MARK("packing");
    for (unsigned i = 0; i < ORDERS; i++) {
        pack_order(&orders[i]);
        usleep(4000);
    }
    munmap(plates, PLATES);
    usleep(300000);
    return 0;
}
